//! Another answer, another question: where the head goes, and what is heard of it.

use std::sync::mpsc;

use serde_json::json;
use talktree::{Change, CompactionId, Message, Part, Result, Role, Session, Store};

/// Appends messages drawn as words: `u` a user, `a` a model, `c` a call, `r` its result, `s` a system message; `R` a result
/// that is stored as a user message, `h` a hidden user message.
fn say(chat: &Session, conversation: &str) -> Result<()> {
    for word in conversation.split_whitespace() {
        let id = &word[1..];
        let message = match &word[..1] {
            "u" => Message::user(word),
            "h" => Message::user(word).hidden(),
            "a" => Message::assistant(word),
            "s" => Message::system(word),
            "c" => Message::new(Role::Assistant, vec![Part::tool_call("t", id, json!({}))]),
            "r" => Message::new(Role::Tool, vec![Part::tool_result("t", id, json!(1))]),
            _ => Message::new(Role::User, vec![Part::tool_result("t", id, json!(1))]),
        };
        chat.append(message.with_id(word))?;
    }
    Ok(())
}

#[test]
fn a_retry_goes_back_to_the_question() -> Result<()> {
    for (rule, conversation, question) in [
        ("an answer", "u1 a1 u2 a2", Some("u2")),
        ("two answers in a row", "u1 a1 a2", Some("u1")),
        ("two questions in a row", "u1 u2 a1", Some("u2")),
        ("a tool round is part of the answer", "u1 c1 r1 a1", Some("u1")),
        ("a round that was not finished", "u1 c1 r1", Some("u1")),
        ("a call without a result", "u1 c1", Some("u1")),
        ("a result that is stored as a user message", "u1 c1 R1 a1", Some("u1")),
        ("what a user said during the round", "u1 c1 u2 r1 a1", Some("u1")),
        ("what a user said after the round", "u1 c1 r1 a1 u2 a2", Some("u2")),
        ("a hidden message is no question", "u1 a1 h2 a2", Some("u1")),
        ("a system message is no question", "u1 s1 a1", Some("u1")),
        ("a result without a call", "u1 a1 u2 r9 a2", Some("u2")),
        ("one beside a round", "u1 c1 u2 r9 r1 u3 a2", Some("u3")),
        ("one inside a round", "u1 c1 u2 r9 r1 a2", Some("u1")),
    ] {
        let store = Store::open_in_memory()?;
        {
            let chat = store.session("s")?;
            say(&chat, conversation)?;
            let retried = chat.retry()?;
            assert_eq!(retried, question.map(Into::into), "{rule}");
            assert_eq!(chat.head()?, retried, "{rule}");
        }
    }
    Ok(())
}

#[test]
fn a_retry_without_an_answer_moves_nothing() -> Result<()> {
    for (conversation, question) in [
        ("", None),
        ("u1", Some("u1")),
        ("u1 a1 u2", Some("u2")),
        ("u1 s1 h1", Some("u1")),
        ("a1 s1", None),
    ] {
        let chat = Store::open_in_memory()?.session("s")?;
        say(&chat, conversation)?;
        let head = chat.head()?;
        let (sender, changes) = mpsc::channel();
        let _subscription = chat.subscribe(move |event| drop(sender.send(event.change.clone())));
        assert_eq!((chat.question()?, chat.retry()?), (question.map(Into::into), None));
        assert_eq!((chat.head()?, changes.try_iter().count()), (head, 0), "{conversation}");
    }
    Ok(())
}

#[test]
fn the_next_answer_is_a_sibling_and_a_retry_can_be_undone() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "u1 c1 r1 a1")?;
    let (sender, changes) = mpsc::channel();
    let _subscription = chat.subscribe(move |event| drop(sender.send(event.change.clone())));
    chat.retry()?;
    assert_eq!(changes.try_recv().ok(), Some(Change::Head { id: Some("u1".into()) }));
    assert!(chat.undo_head()?);
    assert_eq!(chat.head()?, Some("a1".into()));
    assert!(chat.redo_head()?);
    say(&chat, "a2")?;
    let siblings: Vec<_> = chat.branches(&"u1".into())?.into_iter().map(|it| it.id).collect();
    assert_eq!(siblings, ["c1", "a2"]);
    Ok(())
}

#[test]
fn a_summary_below_the_question_is_not_visible_after_a_retry() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "u1 a1 u2 a2")?;
    let summary = chat.add_compaction("All.", &"u1".into(), &"a2".into())?.id;
    assert_eq!(chat.history()?.len(), 1);
    assert_eq!(chat.retry()?, Some("u2".into()));
    let ids = |chat: &Session| -> Result<Vec<String>> {
        Ok(chat.history()?.iter().map(|message| message.id.to_string()).collect())
    };
    assert_eq!(ids(&chat)?, ["u1", "a1", "u2"]);
    chat.undo_head()?;
    assert_eq!(ids(&chat)?, [summary.as_message().to_string()]);
    // A summary that ends above the question stays.
    chat.remove_compaction(&summary)?;
    let above = chat.add_compaction("1.", &"u1".into(), &"a1".into())?.id;
    chat.retry()?;
    assert_eq!(ids(&chat)?, [above.as_message().to_string(), "u2".to_owned()]);
    Ok(())
}

#[test]
fn a_question_is_found_far_above() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "u1")?;
    for round in 0..300 {
        say(&chat, &format!("c{round} r{round}"))?;
    }
    assert_eq!(chat.retry()?, Some("u1".into()));
    // A result without a call is not looked for without end.
    let chat = Store::open_in_memory()?.session("s")?;
    for turn in 0..100 {
        say(&chat, &format!("u{turn} a{turn}"))?;
    }
    say(&chat, "u100 r100 a100")?;
    assert_eq!(chat.retry()?, Some("u100".into()));
    Ok(())
}

#[test]
fn an_edit_is_a_sibling_and_is_heard() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "u1 a1 u2 a2")?;
    let (sender, changes) = mpsc::channel();
    let _subscription = chat.subscribe(move |event| drop(sender.send(event.change.clone())));
    let edited = chat.edit(&"u2".into(), Message::user("u3").with_id("u3"))?;
    assert!(edited.is_new);
    assert_eq!(changes.try_recv().ok(), Some(Change::Append { ids: vec!["u3".into()] }));
    assert_eq!(chat.message(&"u3".into())?.unwrap().parent, Some("a1".into()));
    assert_eq!(chat.head()?, Some("u3".into()));
    assert!(chat.undo_head()?);
    assert_eq!(chat.head()?, Some("a2".into()));

    let root = chat.edit(&"u1".into(), Message::user("u4"))?.id;
    assert_eq!(chat.message(&root)?.unwrap().parent, None);
    assert_eq!(chat.roots()?.len(), 2);
    // The edited message's own id is known, so nothing is written.
    let same = chat.edit(&"u2".into(), Message::user("other").with_id("u2"))?;
    assert_eq!((same.is_new, same.differs, chat.head()?), (false, true, Some(root)));
    Ok(())
}

#[test]
fn an_edit_of_what_is_no_message_is_refused() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "u1 a1")?;
    let summary: CompactionId = chat.add_compaction("1.", &"u1".into(), &"a1".into())?.id;
    for id in ["nobody".into(), summary.as_message()] {
        let refused = chat.edit(&id, Message::user("x"));
        assert!(matches!(refused, Err(talktree::Error::UnknownMessage { .. })), "{refused:?}");
    }
    assert_eq!((chat.path_length()?, chat.head()?), (2, Some("a1".into())));
    Ok(())
}
