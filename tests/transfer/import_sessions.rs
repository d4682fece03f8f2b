//! Sessions imported record by record, in one transaction: equal to the same sessions written verb by verb. What is refused
//! leaves nothing behind, and the rest is stored.

use std::error::Error as StdError;

use chrono::{DateTime, TimeDelta, Utc};
use talktree::{
    Compaction, Error, Label, Message, MessageId, MessageTag, Record, Result, SessionChange,
    SessionDetails, Store,
};
use talktree_import::export::{content_hash, session_hash};

type Outcome = std::result::Result<(), Box<dyn StdError>>;

fn day(n: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(n)
}

/// Messages with their parents, drawn: each word a message under the letter after it; a root stands alone.
fn drawn(tree: &str) -> Vec<(Option<MessageId>, Message)> {
    let message = |(n, word): (usize, &str)| {
        let (id, parent) = word.split_at(1);
        let message = Message::user(format!("says {id}")).with_id(id).at(day(n as i64 + 1));
        (Some(parent).filter(|parent| !parent.is_empty()).map(Into::into), message)
    };
    tree.split(' ').enumerate().map(message).collect()
}

fn messages(tree: &str) -> impl Iterator<Item = Record> {
    drawn(tree).into_iter().map(|(parent, mut message)| {
        let name = Some(format!("line of {}", message.id));
        message.parent = parent;
        Record::Message { below: None, message, name }
    })
}

fn compaction(id: &str, first: &str, last: &str) -> Record {
    let mut compaction = Compaction::new(format!("summary {id}"), first.into(), last.into());
    (compaction.id, compaction.created_at) = (id.into(), day(9));
    Record::Compaction { compaction, first_tombstone: None, last_tombstone: None }
}

fn details() -> SessionDetails {
    SessionDetails {
        created_at: Some(day(1)),
        updated_at: Some(day(5)),
        ..SessionDetails::named("Trip")
    }
}

fn begin(id: &str) -> Record {
    Record::Session { id: id.into(), details: details() }
}

fn tag(id: &str, tag: &str) -> Record {
    let record = serde_json::json!({ "message": id, "tag": tag });
    Record::Tag(serde_json::from_value::<MessageTag>(record).expect("a tag"))
}

fn whole(id: &str) -> Vec<Record> {
    let mut records = vec![begin(id)];
    records.extend(messages("a ba cb db ed"));
    records.extend([
        compaction("k1", "a", "b"),
        compaction("k2", "a", "d"),
        Record::Label(Label::new("best", "c".into())),
        tag("c", "good"),
        Record::Imported { name: "file".to_owned() },
        Record::Head { id: Some("d".into()) },
    ]);
    records
}

fn import(store: &Store, records: impl IntoIterator<Item = Record>) -> Result<(u64, Vec<u64>)> {
    let (added, refused) = store.import(records.into_iter().map(Ok))?;
    Ok((added, refused.into_iter().map(|(number, _)| number).collect()))
}

#[test]
fn an_imported_session_equals_one_written_verb_by_verb() -> Outcome {
    let store = Store::open_in_memory()?;
    assert_eq!(import(&store, whole("s"))?, (5, vec![]));

    let other = Store::open_in_memory()?;
    let steps = other.session("s")?;
    steps.import_messages(drawn("a ba cb db ed"))?;
    for record in whole("s") {
        if let Record::Compaction { compaction, .. } = record {
            steps.import_compaction(&compaction)?;
        }
    }
    steps.label("best", &"c".into())?;
    steps.tag(&"c".into(), "good")?;
    steps.checkout(&"d".into())?;
    steps.set_details(&details())?;
    let chat = store.session("s")?;
    assert_eq!(session_hash(&chat)?, session_hash(&steps)?);
    assert_eq!(chat.history()?, steps.history()?);
    assert_eq!(chat.head_log()?.len(), steps.head_log()?.len());
    assert_eq!(chat.visible_tokens()?, steps.visible_tokens()?);
    assert!(chat.is_imported("file")? && chat.is_imported("line of e")?);
    assert!(!chat.is_imported("x")?);
    let info = chat.info()?.ok_or("no session")?;
    assert_eq!((info.created_at, info.updated_at), (day(1), day(5)));
    assert_eq!(store.search("says e").run()?.hits.len(), other.search("says e").run()?.hits.len());
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn a_second_import_changes_nothing_and_brings_nothing_back() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, whole("s"))?;
    let chat = store.session("s")?;
    let hash = content_hash(&store)?;
    assert_eq!(import(&store, whole("s"))?, (0, vec![]));
    assert_eq!(content_hash(&store)?, hash);

    chat.delete([&"e".into()])?;
    chat.unlabel("best")?;
    chat.untag(&"c".into(), "good")?;
    chat.remove_compaction(&"k1".into())?;
    let hash = content_hash(&store)?;
    assert_eq!(import(&store, whole("s"))?, (0, vec![]));
    assert_eq!(content_hash(&store)?, hash);
    // What is new goes below the nearest one above that is left.
    let grown = [begin("s")].into_iter().chain(messages("a ba cb db ed fe"));
    assert_eq!(import(&store, grown)?, (1, vec![]));
    assert_eq!(chat.message(&"f".into())?.expect("f").parent, Some("d".into()));
    Ok(())
}

#[test]
fn what_is_refused_leaves_nothing_and_the_rest_is_stored() -> Outcome {
    let large = || {
        let message = Message::user("x".repeat(2_000)).with_id("y");
        Record::Message { below: None, message, name: None }
    };
    let mut nameless = details();
    nameless.name = Some(String::new());
    let blank = Compaction::new(" ", "a".into(), "b".into());
    let blank =
        Record::Compaction { compaction: blank, first_tombstone: None, last_tombstone: None };
    for (expected, bad) in [
        ("no message", messages("yx").next().expect("a message")),
        ("no message", Record::Head { id: Some("x".into()) }),
        ("no message", Record::Label(Label::new("l", "x".into()))),
        ("no message", tag("x", "t")),
        ("no message", compaction("k", "a", "x")),
        ("summary", blank),
        ("inside", compaction("k3", "b", "e")),
        ("label", Record::Label(Label::new("", "a".into()))),
        ("limit", large()),
        ("name", Record::Session { id: "first".into(), details: nameless.clone() }),
        ("name", Record::Session { id: "bad".into(), details: nameless.clone() }),
        ("id", Record::Session { id: "".into(), details: details() }),
    ] {
        let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
        let mut records = whole("first");
        let number = records.len() as u64;
        records.push(bad);
        records.extend(whole("last"));
        let (added, refused) = store.import(records.into_iter().map(Ok))?;
        let [(at, error)] = &refused[..] else { panic!("{expected}: {refused:?}") };
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!((added, *at), (10, number), "{expected}");
        let plain = Store::open_in_memory()?;
        import(&plain, whole("first").into_iter().chain(whole("last")))?;
        assert_eq!(content_hash(&store)?, content_hash(&plain)?, "{expected}");
        assert!(store.verify(|_| {})?.damages.is_empty(), "{expected}");
    }
    Ok(())
}

#[test]
fn a_session_in_the_trash_is_refused_as_a_whole() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, whole("s"))?;
    store.change_session(&"s".into(), &SessionChange::Delete)?;
    assert_eq!(import(&store, whole("s").into_iter().chain(whole("t")))?, (5, vec![0]));
    Ok(())
}

#[test]
fn an_error_of_the_source_stores_nothing() -> Result<()> {
    let store = Store::open_in_memory()?;
    let records = whole("s").into_iter().map(Ok);
    let failed = store.import(records.chain([Err(Error::Interrupted)]));
    assert!(matches!(failed, Err(Error::Interrupted)));
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn subscribers_receive_an_event_of_each_session() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (sender, heard) = std::sync::mpsc::channel();
    let _subscription = store.subscribe(move |event| drop(sender.send(event.session.clone())));
    import(&store, ["a", "b"].into_iter().flat_map(whole).chain([begin("empty")]))?;
    import(&store, whole("a"))?;
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), ["a", "b"]);
    Ok(())
}

/// Records that a program makes of what the store has: each asks the store, which waits for the import to end.
#[test]
fn records_that_write_to_their_store_get_an_error_and_the_import_goes_on() -> Outcome {
    let folder = tempfile::tempdir()?;
    for store in [Store::open(folder.path().join("talk.db"))?, Store::open_in_memory()?] {
        let used = store.clone();
        let records = ["a", "b"].map(|id| Record::Message {
            below: None,
            message: Message::user("hello").with_id(id),
            name: None,
        });
        let session = Record::Session { id: "s".into(), details: SessionDetails::default() };
        let mut refused = 0;
        let records = [session].into_iter().chain(records).map(|record| {
            let written = used.session("other").and_then(|it| it.append(Message::user("x")));
            refused += u32::from(matches!(written, Err(Error::InvalidValue { .. })));
            Ok(record)
        });
        let (added, left_out) = store.import(records)?;
        assert_eq!((added, left_out.len()), (2, 0));
        assert_eq!((refused, store.sessions()?.len()), (3, 1));
        store.session("other")?.append(Message::user("x"))?;
    }
    Ok(())
}
