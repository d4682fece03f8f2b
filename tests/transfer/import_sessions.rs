//! Whole sessions imported in one transaction: equal to the same sessions imported step by step. If one is refused, the
//! others are stored.

use std::error::Error as StdError;

use chrono::{DateTime, TimeDelta, Utc};
use talktree::{
    Compaction, Error, ImportRecord, Imported, Label, Message, Result, SessionDetails,
    SessionImport, Store,
};
use talktree_import::export::session_hash;

type Outcome = std::result::Result<(), Box<dyn StdError>>;

/// Makes a session one that is refused.
type Spoil = Box<dyn Fn(&mut SessionImport)>;

fn day(n: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(n)
}

/// Messages, drawn: each word a message under the letter after it; a root stands alone.
fn records(tree: &str) -> Vec<ImportRecord> {
    let record = |(n, word): (usize, &str)| {
        let (id, parent) = word.split_at(1);
        let message = Message::user(format!("says {id}")).with_id(id).at(day(n as i64 + 1));
        let parent = Some(parent).filter(|parent| !parent.is_empty()).map(Into::into);
        ImportRecord { record: format!("line {n}"), parent, message }
    };
    tree.split(' ').enumerate().map(record).collect()
}

fn compaction(id: &str, first: &str, last: &str) -> Compaction {
    let mut compaction = Compaction::new(format!("summary {id}"), first.into(), last.into());
    (compaction.id, compaction.created_at) = (id.into(), day(9));
    compaction
}

fn whole(id: &str) -> SessionImport {
    SessionImport {
        details: SessionDetails {
            created_at: Some(day(1)),
            updated_at: Some(day(5)),
            ..SessionDetails::named("Trip")
        },
        records: records("a ba cb db ed"),
        compactions: vec![compaction("k1", "a", "b"), compaction("k2", "a", "d")],
        labels: vec![Label::new("best", "c".into())],
        head: Some("d".into()),
        marks: vec!["file".to_owned()],
        ..SessionImport::new(id)
    }
}

#[test]
fn a_session_imported_as_a_whole_equals_one_imported_step_by_step() -> Outcome {
    let store = Store::open_in_memory()?;
    let import = whole("s");
    let outcomes = store.import_sessions(std::slice::from_ref(&import))?;
    assert!(matches!(&outcomes[..], [Ok(imported)] if *imported == [Imported::Added; 5]));

    let other = Store::open_in_memory()?;
    let steps = other.session("s")?;
    steps.import_messages(&import.records)?;
    for compaction in &import.compactions {
        steps.import_compaction(compaction)?;
    }
    steps.label("best", &"c".into())?;
    steps.checkout(&"d".into())?;
    steps.set_details(&import.details)?;
    let chat = store.session("s")?;
    assert_eq!(session_hash(&chat)?, session_hash(&steps)?);
    assert_eq!(chat.history()?, steps.history()?);
    assert_eq!(chat.head_log()?.len(), steps.head_log()?.len());
    assert_eq!(chat.visible_tokens()?, steps.visible_tokens()?);
    assert!(chat.is_imported("file")? && chat.is_imported("line 4")? && !chat.is_imported("x")?);
    let info = chat.info()?.ok_or("no session")?;
    assert_eq!((info.created_at, info.updated_at), (day(1), day(5)));
    assert_eq!(store.search("says e").run()?.hits.len(), other.search("says e").run()?.hits.len());
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn a_session_that_is_refused_leaves_nothing_and_the_others_are_stored() -> Outcome {
    let faults: Vec<(&str, Spoil)> = vec![
        ("no message", Box::new(|s| s.records = records("a bx"))),
        ("no message", Box::new(|s| s.head = Some("x".into()))),
        ("no message", Box::new(|s| s.labels = vec![Label::new("l", "x".into())])),
        ("no message", Box::new(|s| s.compactions = vec![compaction("k", "a", "x")])),
        ("summary", Box::new(|s| s.compactions[1].summary = " ".to_owned())),
        ("inside", Box::new(|s| s.compactions.push(compaction("k3", "b", "e")))),
        ("label", Box::new(|s| s.labels = vec![Label::new("", "a".into())])),
        ("name", Box::new(|s| s.details.name = Some(String::new()))),
        (
            "limit",
            Box::new(|s| s.records[2].message = Message::user("x".repeat(2_000)).with_id("c")),
        ),
        ("already has", Box::new(|s| s.id = "first".into())),
        ("id", Box::new(|s| s.id = "".into())),
    ];
    for (expected, spoil) in faults {
        let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
        let mut bad = whole("bad");
        spoil(&mut bad);
        let sessions = [whole("first"), bad.clone(), whole("last")];
        let outcomes = store.import_sessions(&sessions)?;
        let [Ok(first), Err(error), Ok(last)] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!((first.len(), last.len()), (5, 5));
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        let ids: Vec<_> = store.sessions()?.into_iter().map(|session| session.id).collect();
        assert_eq!(ids.len(), 2, "{expected}: {ids:?}");
        assert!(store.verify(|_| {})?.damages.is_empty(), "{expected}");
        // Its id is free.
        if expected != "already has" && expected != "id" {
            assert!(store.import_sessions(&[whole("bad")])?[0].is_ok());
        }
    }
    Ok(())
}

#[test]
fn subscribers_receive_an_event_of_each_session() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (sender, heard) = std::sync::mpsc::channel();
    let _subscription = store.subscribe(move |event| drop(sender.send(event.session.clone())));
    store.import_sessions(&[whole("a"), whole("a"), whole("b"), SessionImport::new("empty")])?;
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), ["a", "b"]);
    assert!(matches!(
        store.import_sessions(&[whole("a")])?[..],
        [Err(Error::SessionExists { .. })]
    ));
    Ok(())
}
