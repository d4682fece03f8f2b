//! What a label may be called.
//!
//! The library and the imports took `head` and the ids of messages as labels. Whoever typed such a label meant the
//! labelled message and got another one, also to delete it.

mod common;

use std::io::Cursor;

use talktree::import::JsonlOptions;
use talktree::{
    Error, ImportRecord, Label, Message, MessageId, Result, SessionImport, Store, export,
};

/// Returns why a label is refused.
fn refused(answer: Result<()>) -> String {
    match answer {
        Err(Error::InvalidValue { what: "label", why, .. }) => why,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_label_never_means_something_else() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let (a, b) = ("a".into(), "b".into());
    for id in ["a", "b"] {
        chat.append(Message::user(id).with_id(id))?;
    }
    assert_eq!(refused(chat.label("head", &a)), "it always means the head");
    assert!(refused(chat.label("b", &a)).contains("the id of a message"));
    assert!(refused(chat.label("b", &b)).contains("the id of a message"));
    assert!(refused(chat.label("compaction_1", &a)).contains("summaries"));
    assert!(chat.labels()?.is_empty());
    for fine in ["Head", "HEAD", "head ", "c", "compaction"] {
        chat.label(fine, &a)?;
    }
    // The id of a deleted message is free.
    chat.delete([&b])?;
    chat.label("b", &a)
}

#[test]
fn a_message_may_get_the_name_of_a_label() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let first = chat.append(Message::user("first").with_id("first"))?.id;
    chat.label("late", &first)?;
    let late = chat.append(Message::user("late").with_id("late"))?.id;
    assert_eq!(chat.labelled("late")?, Some(first.clone()));
    // The label cannot be set again, and a fork keeps it.
    assert!(refused(chat.label("late", &first)).contains("the id of a message"));
    assert_eq!(chat.fork(&late, "fork")?.labelled("late")?, Some(first));
    chat.unlabel("late")
}

/// An export of an older build may have such labels: they are left out, and all else is imported.
#[test]
fn an_import_leaves_such_labels_out_and_says_so() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    for id in ["a", "b"] {
        chat.append(Message::user(id).with_id(id))?;
    }
    chat.label("fine", &"a".into())?;
    let mut file = Vec::new();
    chat.export_jsonl(&mut file)?;
    let file = String::from_utf8(file).unwrap();
    for (name, why) in
        [("head", "always means the head"), ("b", "the id of a message"), ("", "empty")]
    {
        let line = format!("{{\"type\":\"label\",\"name\":{name:?},\"id\":\"a\"}}\n");
        let at = file.find("{\"type\":\"label\"").unwrap();
        let file = format!("{}{line}{}", &file[..at], &file[at..]);
        for is_dry_run in [true, false] {
            let copy = Store::open_in_memory()?;
            let options = JsonlOptions { is_dry_run, ..JsonlOptions::default() };
            let report = copy.import_jsonl("export", Cursor::new(&file), &options, |_| {})?;
            let note = report.notes.iter().find(|note| note.why.contains(why));
            assert!(note.is_some_and(|note| note.is_fault), "{name:?}: {:?}", report.notes);
            assert_eq!((report.added, report.dropped), (2, 1), "{name:?}");
            if !is_dry_run {
                let copied = copy.session("s")?;
                assert_eq!(copied.labels()?, [Label::new("fine", "a".into())]);
                assert_eq!(export::session_hash(&copied)?, export::session_hash(&chat)?);
            }
        }
    }
    Ok(())
}

#[test]
fn a_whole_session_with_such_a_label_is_refused_alone() -> Result<()> {
    let store = Store::open_in_memory()?;
    let session = |id: &str, label: &str| {
        let record = |id: &str| ImportRecord {
            record: id.to_owned(),
            parent: None,
            message: Message::user(id).with_id(id),
        };
        SessionImport {
            records: vec![record("a"), record("b")],
            labels: vec![Label::new(label, MessageId::from("a"))],
            ..SessionImport::new(id)
        }
    };
    let sessions = [session("1", "head"), session("2", "b"), session("3", "fine")];
    let outcomes = store.import_sessions(&sessions)?;
    for outcome in &outcomes[..2] {
        assert!(matches!(outcome, Err(Error::InvalidValue { what: "label", .. })), "{outcome:?}");
    }
    assert!(outcomes[2].is_ok());
    assert_eq!(store.sessions()?.len(), 1);
    Ok(())
}
