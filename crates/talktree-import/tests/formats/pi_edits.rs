//! Pi 1.5: context edits, usage entries and prompt sections.
//!
//! An edit hides or replaces an earlier message. It was imported as a hidden message, so a history showed what Pi no longer
//! sends. System messages with sections were imported blank.

use std::io::Cursor;

use talktree::{Message, Part, Result, Store};
use talktree_import::ImportReport;
use talktree_import::export::content_hash;
use talktree_import::{ImportOptions, import_reader};

fn entry(id: &str, parent: &str, rest: &str) -> String {
    let parent = if parent == "-" { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        "\n{{\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-02T03:04:05Z\",{rest}}}"
    )
}

fn said(id: &str, parent: &str, role: &str) -> String {
    let message =
        format!(r#""type":"message","message":{{"role":"{role}","content":"{id} said"}}"#);
    entry(id, parent, &message)
}

fn edit(id: &str, parent: &str, target: &str, replacement: &str) -> String {
    let rest =
        format!(r#""type":"context_edit","targetId":"{target}","replacement":{replacement}"#);
    entry(id, parent, &rest)
}

/// u1 a1 u2 a2, one after the other.
fn talk() -> String {
    let mut file = String::from(r#"{"type":"session","version":3,"id":"s"}"#);
    for (id, parent, role) in [
        ("u1", "-", "user"),
        ("a1", "u1", "assistant"),
        ("u2", "a1", "user"),
        ("a2", "u2", "assistant"),
    ] {
        file += &said(id, parent, role);
    }
    file
}

fn import(store: &Store, file: &str) -> Result<ImportReport> {
    let report = import_reader(store, "f", Cursor::new(file), &ImportOptions::default(), |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(report)
}

fn texts(messages: &[Message]) -> String {
    let text = |message: &Message| format!("{}: {}", message.role, message.text());
    messages.iter().map(text).collect::<Vec<_>>().join(" | ")
}

/// Returns the history, and the ids of the raw one with `-` before the hidden.
fn shown(file: &str) -> Result<(String, String)> {
    let store = Store::open_in_memory()?;
    import(&store, file)?;
    let (chat, hash) = (store.session("s")?, content_hash(&store)?);
    assert_eq!(import(&store, file)?.added, 0);
    assert_eq!(content_hash(&store)?, hash, "a second import changes nothing");
    let mark = |m: &Message| format!("{}{}", if m.is_hidden { "-" } else { "" }, m.id);
    let raw: Vec<String> = chat.raw_history()?.iter().map(mark).collect();
    Ok((texts(&chat.history()?), raw.join(" ")))
}

#[test]
fn an_omitted_message_is_hidden() -> Result<()> {
    let file = talk() + &edit("e", "a2", "a1", "null") + &said("u3", "e", "user");
    let (history, raw) = shown(&file)?;
    assert_eq!(history, "user: u1 said | user: u2 said | assistant: a2 said | user: u3 said");
    assert_eq!(raw, "u1 -a1 u2 a2 -e u3");
    Ok(())
}

#[test]
fn a_replacement_takes_the_place_of_its_message() -> Result<()> {
    let file = talk()
        + &edit("e1", "a2", "u1", r#"{"content":"first"}"#)
        + &edit("e2", "e1", "u1", r#"{"content":[{"type":"text","text":"second"}]}"#)
        + &edit("e3", "e2", "a1", r#"{"content":"short"}"#)
        + &said("u3", "e3", "user");
    let (history, raw) = shown(&file)?;
    assert_eq!(
        history,
        "user: second | assistant: short | user: u2 said | assistant: a2 said | user: u3 said"
    );
    assert_eq!(raw, "-u1 e2 -a1 e3 u2 a2 -e1 u3");
    // At the end of the file, and of the last message.
    let (history, raw) = shown(&(talk() + &edit("e", "a2", "a2", r#"{"content":"short"}"#)))?;
    assert!(history.ends_with("user: u2 said | assistant: short"), "{history}");
    assert_eq!(raw, "u1 a1 u2 -a2 e");
    // Replaced, then omitted.
    let file =
        talk() + &edit("e1", "a2", "u1", r#"{"content":"x"}"#) + &edit("e2", "e1", "u1", "null");
    assert!(shown(&file)?.0.starts_with("assistant: a1 said"));
    Ok(())
}

#[test]
fn a_replaced_result_belongs_to_its_call() -> Result<()> {
    let file = talk()
        + &entry(
            "c",
            "a2",
            r#""type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"t","name":"ls","arguments":{}}]}"#,
        )
        + &entry(
            "r",
            "c",
            r#""type":"message","message":{"role":"toolResult","toolCallId":"t","toolName":"ls","content":[{"type":"text","text":"a very long list"}]}"#,
        )
        + &edit("e", "r", "r", r#"{"content":[{"type":"text","text":"[pruned]"}]}"#)
        + &said("u3", "e", "user");
    let store = Store::open_in_memory()?;
    import(&store, &file)?;
    let history = store.session("s")?.history()?;
    let result = &history[5];
    assert!(matches!(&result.parts[..], [Part::Tool(tool)]
        if tool.name == "ls" && tool.call_id == "t" && tool.output.as_ref().unwrap().value() == "[pruned]"));
    assert_eq!((history.len(), result.role.as_str()), (7, "tool"));
    // What was said is still found.
    assert_eq!(store.search("long list in:all").run()?.hits.len(), 1);
    Ok(())
}

#[test]
fn an_edit_of_another_branch_changes_nothing_and_a_shared_one_is_noted() -> Result<()> {
    // The head is on a branch that leaves before the edit.
    let left = talk() + &edit("e", "a2", "u1", "null") + &said("b", "a1", "user");
    let store = Store::open_in_memory()?;
    let report = import(&store, &left)?;
    assert_eq!(
        texts(&store.session("s")?.history()?),
        "user: u1 said | assistant: a1 said | user: b said"
    );
    assert!(report.notes[0].why.contains("the head has left"), "{report:#?}");
    // The head is behind the edit: it holds on the other branch, too.
    let shared = talk() + &said("b", "a1", "user") + &edit("e", "a2", "u1", "null");
    let store = Store::open_in_memory()?;
    let report = import(&store, &shared)?;
    assert!(!texts(&store.session("s")?.history()?).contains("u1"));
    assert!(report.notes[0].why.contains("a branch leaves"), "{report:#?}");
    // Nothing to edit.
    let store = Store::open_in_memory()?;
    let report = import(&store, &(talk() + &edit("e", "a2", "gone", "null")))?;
    assert_eq!(store.session("s")?.history()?.len(), 4);
    assert!(report.notes[0].why.contains("not in the file"), "{report:#?}");
    Ok(())
}

#[test]
fn an_edit_of_a_message_that_is_stored_is_noted() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &talk())?;
    let chat = store.session("s")?;
    let mut file = talk() + &edit("e1", "a2", "a1", "null");
    for (next, what) in [
        (edit("e2", "e1", "u1", r#"{"content":"x"}"#), "before it was hidden"),
        (said("u3", "e2", "user"), "before it was replaced"),
    ] {
        let report = import(&store, &file)?;
        assert_eq!(report.added, 1);
        assert!(report.notes.iter().any(|note| note.why.contains(what)), "{report:#?}");
        assert_eq!(chat.history()?.len(), 4);
        file += &next;
    }
    import(&store, &file)?;
    assert!(texts(&chat.history()?).ends_with("a2 said | user: u3 said"));
    let hash = content_hash(&store)?;
    assert_eq!(import(&store, &file)?.added, 0);
    assert_eq!(content_hash(&store)?, hash);
    Ok(())
}

#[test]
fn sections_of_the_prompt_are_shown_and_usage_is_not() -> Result<()> {
    let system = |id: &str, parent: &str, rest: &str| {
        entry(
            id,
            parent,
            &format!(r#""type":"message","message":{{"role":"system","content":"",{rest}}}"#),
        )
    };
    let file = String::from(r#"{"type":"session","version":3,"id":"s"}"#)
        + &system(
            "p",
            "-",
            r#""sections":{"preamble":"You code.","skills":"Two skills."},"toolsAdded":[{"name":"ls"}]"#,
        )
        + &said("u1", "p", "user")
        + &entry(
            "n",
            "u1",
            r#""type":"usage","kind":"cache_warm","provider":"x","model":"m","usage":{"input":1}"#,
        )
        + &system("q", "n", r#""toolsRemoved":[{"name":"ls"}]"#)
        + &system("w", "q", r#""sections":{"skills":null,"rules":"Be brief."}"#)
        + &said("a1", "w", "assistant");
    let (history, raw) = shown(&file)?;
    assert_eq!(
        history,
        "system: You code.\n\nTwo skills. | user: u1 said | system: Be brief. | assistant: a1 said"
            .replace("\n\n", if history.contains("\n\n") { "\n\n" } else { "\n" })
    );
    assert_eq!(raw, "p u1 -n -q w a1");
    let store = Store::open_in_memory()?;
    import(&store, &file)?;
    let prompt = store.session("s")?.message(&"p".into())?.expect("a prompt");
    assert!(
        matches!(&prompt.parts[1], Part::Text(text) if text.extra["section"].value() == "skills")
    );
    assert_eq!(prompt.metadata.expect("metadata").value()["toolsAdded"][0]["name"], "ls");
    Ok(())
}

#[test]
fn a_compaction_that_keeps_nothing_or_an_edit_ends_where_it_should() -> Result<()> {
    let compaction = |id: &str, parent: &str, kept: &str| {
        let rest = format!(
            r#""type":"compaction","summary":"so far","firstKeptEntryId":"{kept}","tokensBefore":9"#
        );
        entry(id, parent, &rest)
    };
    // It keeps nothing: it names itself.
    let file = talk() + &compaction("k", "a2", "k") + &said("u3", "k", "user");
    assert_eq!(shown(&file)?.0, "assistant: so far | user: u3 said");
    // The first entry that it keeps is an edit, which is now elsewhere.
    let file = talk()
        + &edit("e", "a2", "u2", r#"{"content":"x"}"#)
        + &said("u3", "e", "user")
        + &compaction("k", "u3", "e")
        + &said("u4", "k", "user");
    assert_eq!(shown(&file)?.0, "assistant: so far | user: u3 said | user: u4 said");
    Ok(())
}
