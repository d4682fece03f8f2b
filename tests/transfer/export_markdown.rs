//! The Markdown export.

use serde_json::json;
use talktree::{Message, Part, Result, SessionDetails, Store};
use talktree_import::export::export_markdown;

#[test]
fn a_conversation_is_a_page_of_headings_and_fences() -> Result<()> {
    let time = "2026-01-02T03:04:05Z".parse().unwrap();
    let chat = Store::open_in_memory()?.session("s")?;
    chat.set_details(&SessionDetails {
        name: Some("Two\n# lines".into()),
        ..SessionDetails::default()
    })?;
    let mut call = Part::tool_call("ls", "c1", json!({"path": "."}));
    if let Part::Tool(tool) = &mut call {
        tool.output = Some(json!("a.md\n```\n").into());
    }
    let messages = [
        Message::user("first").with_id("a"),
        Message::assistant("second").with_id("b"),
        Message::user("**files**?\n")
            .with_part(Part::file("image/png", "https://example.org/x.png")),
        Message::new("assistant", vec![Part::reasoning("one\ntwo"), call, Part::text("done")]),
    ];
    chat.append_all(messages.map(|message| message.at(time)))?;
    chat.add_compaction("They began.", &"a".into(), &"b".into())?;
    let mut page = Vec::new();
    export_markdown(&chat.path(), &mut page)?;
    let page = String::from_utf8(page).unwrap();
    let (begin, rest) = page.split_once("\n\nThey began.\n").unwrap();
    assert!(begin.starts_with("# Two # lines\n\n## Summary, "), "{begin}");
    let expected = "
## User, 2026-01-02 03:04:05 UTC

**files**?

[image/png](<https://example.org/x.png>)

## Assistant, 2026-01-02 03:04:05 UTC

> one
> two

Call of `ls`:

```json
{\"path\":\".\"}
```

Result of `ls`:

````
a.md
```
````

done
";
    assert_eq!(rest, expected);
    Ok(())
}
