//! Elisions of tool outputs.

use super::*;

#[test]
fn an_elision_is_shown_in_histories_and_the_row_stays() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    context.elide(&[("r".into(), "call".into())], "first")?;
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    let shown = |view: &View, order| -> Result<Vec<String>> {
        Ok(outputs(&chat.cursor(view, order)?.next(10)?))
    };
    assert_eq!(outputs(&chat.history(None, false)?), [MARKER]);
    assert_eq!(outputs(&chat.history(Some(&"r".into()), false)?), [MARKER]);
    for order in [Order::OldestFirst, Order::NewestFirst] {
        assert_eq!(shown(&View::head(), order)?, [MARKER]);
        assert_eq!(shown(&View::head().raw(), order)?, [STORED]);
    }
    assert_eq!(outputs(&chat.history(None, true)?), [STORED]);
    assert_eq!(outputs(&chat.all_messages()?.next(10)?), [STORED]);
    assert_eq!(outputs(&[chat.message(&"r".into())?.unwrap()]), [STORED]);
    sound(&database)
}

#[test]
fn an_elision_needs_the_result_of_a_call() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    let call = Part::tool_call("load", "open", json!({}));
    chat.append(
        &Parent::Head,
        &ExpectedHead::Any,
        &[Message::assistant("").with_part(call).with_id("c")],
        None,
    )?;
    for (id, call) in [("q", "call"), ("r", "other"), ("c", "open")] {
        let answer =
            context.elide(&[("r".into(), "call".into()), (id.into(), call.into())], "unloaded");
        assert!(matches!(answer, Err(Error::UnknownCall { .. })), "{answer:?}");
    }
    let answer = context.elide(&[("nobody".into(), "call".into())], "unloaded");
    assert!(matches!(answer, Err(Error::UnknownMessage { .. })), "{answer:?}");
    assert_eq!(database.stats()?.elisions, 0, "all or none");
    Ok(())
}

#[test]
fn every_shape_of_a_result_takes_a_marker() -> Result<()> {
    let database = in_memory()?;
    let chat = session(&database, "s");
    let parts = [
        r#"{"type": "dynamic-tool", "toolName": "t", "toolCallId": "call", "result": [1]}"#,
        r#"{"output": "\ud800", "type": "tool-t", "toolCallId": "call"}"#,
        r#"{"type": "tool-t", "toolCallId": "call", "input": {}, "output": null}"#,
        r#"{"type": "tool-t", "toolCallId": "call", "output": "text", "errorText": null}"#,
    ];
    let parts: Vec<Part> = parts.iter().map(|part| serde_json::from_str(part).unwrap()).collect();
    let stored = Message::new("assistant", parts).with_id("r");
    chat.append(&Parent::Head, &ExpectedHead::Any, std::slice::from_ref(&stored), None)?;
    database.context(&"s".into()).elide(&[("r".into(), "call".into())], "unloaded")?;
    let shown = chat.history(None, false)?;
    assert_eq!(outputs(&shown), [MARKER, MARKER, MARKER, MARKER]);
    assert!(!serde_json::to_string(&shown).unwrap().contains("\"result\""));
    assert_eq!(chat.history(None, true)?[0].parts, stored.parts);
    Ok(())
}

#[test]
fn a_changed_output_and_a_deletion_remove_elisions() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    let elide = || context.elide(&[("r".into(), "call".into())], "unloaded");
    let left = || -> Result<u64> { Ok(database.stats()?.elisions) };
    elide()?;
    let stored = chat.message(&"r".into())?.unwrap();
    chat.update(&stored)?;
    assert_eq!(left()?, 1, "nothing was changed");
    chat.update(&stored.clone().with_part("more".into()))?;
    assert_eq!((left()?, outputs(&chat.history(None, false)?)), (1, vec![MARKER.to_owned()]));
    let other = Part::tool_result("load", "call", json!("another skill"));
    chat.update(&Message::assistant("here").with_part(other).with_id("r"))?;
    assert_eq!(left()?, 0);
    chat.update(&stored)?;
    assert_eq!(outputs(&chat.history(None, false)?), [STORED]);
    elide()?;
    chat.delete(&["r".into()])?;
    assert_eq!(left()?, 0);
    chat.append(&Parent::Head, &ExpectedHead::Any, &[stored], None)?;
    elide()?;
    chat.delete_branch(&"q".into())?;
    assert_eq!(left()?, 0);
    sound(&database)
}

#[test]
fn a_fork_starts_with_the_current_texts_and_the_elisions_on_its_path() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    put(&context, "k", "red fox")?;
    put(&context, "k", "blue fox")?;
    put(&context, "gone", "green fox")?;
    context.remove(BlockScope::Session, "memory", "gone")?;
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    context.set_frozen(Some(&section("one")))?;
    let fork = chat.fork(&"r".into(), &"fork".into(), &SessionDetails::default())?;
    chat.fork(&"q".into(), &"early".into(), &SessionDetails::default())?;
    let copy = database.context(&"fork".into());
    assert_eq!(outputs(&fork.history(None, false)?), [MARKER]);
    assert_eq!(outputs(&fork.history(None, true)?), [STORED]);
    assert_eq!(copy.frozen()?, None);
    assert_eq!(copy.versions(BlockScope::Session, "memory", "k")?.len(), 1);
    assert_eq!(copy.entry(BlockScope::Session, "memory", "k")?.unwrap().version, 2);
    assert_eq!(copy.versions(BlockScope::Session, "memory", "gone")?.len(), 0);
    assert_eq!(keys(&copy, "fox")?.0, ["k"]);
    put(&copy, "k", "yellow fox")?;
    put(&copy, "new", "white fox")?;
    assert_eq!(context.entry(BlockScope::Session, "memory", "k")?.unwrap().content, "blue fox");
    assert_eq!(database.stats()?.elisions, 2);
    sound(&database)?;
    database.remove(&"s".into())?;
    assert_eq!(keys(&copy, "white")?.0, ["new"]);
    assert_eq!(outputs(&fork.history(None, false)?), [MARKER]);
    sound(&database)
}
