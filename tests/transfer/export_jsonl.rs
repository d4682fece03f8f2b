//! talktree's own format: an export that is imported into another store gives the same content.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{self, random};
use proptest::prelude::*;
use serde_json::json;
use talktree::{
    Compaction, Error, Json, Message, MessageId, Part, Record, Result, Session, SessionChange,
    SessionDetails, Store,
};
use talktree_import::export::{
    Person, PersonFormat, content_hash, export_jsonl, export_markdown, export_person,
    export_readable_jsonl, export_session, session_hash,
};
use talktree_import::{ImportOptions, ImportReport, import_reader};

fn export(store: &Store) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    export_jsonl(store, &mut file)?;
    Ok(file)
}

fn import(file: &[u8], options: &ImportOptions) -> Result<(Store, ImportReport)> {
    let copy = Store::open_in_memory()?;
    let report = import_reader(&copy, "export.jsonl", Cursor::new(file), options, |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok((copy, report))
}

/// Exports, imports strictly, compares, and repeats it with the copy.
fn round_trip(store: &Store) -> Result<Store> {
    let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
    let file = export(store)?;
    let (copy, report) = import(&file, &strict)?;
    assert_eq!(report.format, "talktree");
    assert_eq!(content_hash(&copy)?, content_hash(store)?);
    assert!(export(&copy)? == file, "the copy exports other bytes");
    let again = import_reader(&copy, "export.jsonl", Cursor::new(&file), &strict, |_| {})?;
    assert_eq!(again.added, 0);
    assert_eq!(content_hash(&copy)?, content_hash(store)?);
    Ok(copy)
}

fn views(session: &Session) -> Result<Vec<Vec<String>>> {
    let texts = |leaf: &MessageId| -> Result<Vec<String>> {
        Ok(session.at(leaf).history()?.iter().map(Message::text).collect())
    };
    session.leaves()?.iter().map(texts).collect()
}

#[test]
fn everything_in_a_session_survives_the_round_trip() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let metadata = Json::parse("{\n \"deep\": {\"n\": 1e2}\r\n}")?;
    let odd_metadata = Json::parse(r#"{"mark": "\ud800"}"#)?;
    chat.set_details(&SessionDetails {
        name: Some("A talk\nabout two lines".into()),
        parent_session: Some("p".into()),
        fork_point: Some("q".into()),
        model: Some("m".into()),
        source: Some("telegram".into()),
        metadata: Some(metadata.clone()),
        end_reason: Some("over".into()),
        owner: Some("user:42".into()),
        tags: vec!["home".into(), "work".into()],
        is_pinned: Some(true),
        ended_at: Some("2024-02-03T11:00:00Z".parse().unwrap()),
        created_at: None,
        updated_at: None,
    })?;
    let a = chat.append(Message::user("a \u{2028} \0").with_id("a").with_metadata(metadata))?.id;
    let b = chat
        .append(
            Message::new(
                "critic",
                vec![Part::reasoning("hm"), Part::tool_call("t", "c", json!({"x": null}))],
            )
            .with_part(Part::Other(Json::parse("{\"type\":\"data-x\",\n\"data\":[1.0, 1]}")?))
            .with_id("b"),
        )?
        .id;
    let mut odd = Message::assistant("c").hidden().with_metadata(odd_metadata);
    odd.extra.insert("type".into(), Json::from(json!("message")));
    let c = chat.append(odd)?.id;
    let d = chat.append_to(&a, Message::user("d"))?.id;
    chat.append_root(Message::system("another tree"))?;
    chat.add_compaction("a and b", &a, &b)?;
    chat.add_compaction_with("all", &a, &c, json!({"why": "long"}))?;
    chat.label("two words", &b)?;
    chat.label("d", &d)?;
    chat.checkout(&c)?;
    store.session("empty head")?.append(Message::user("x"))?;
    store.session("empty head")?.checkout_start()?;
    store.create_session("nothing said yet")?;
    chat.fork(&b, "a fork")?;

    let copy = round_trip(&store)?;
    let copied = copy.session("s")?;
    assert_eq!(views(&copied)?, views(&chat)?);
    assert_eq!(copied.raw_history()?, chat.raw_history()?);
    assert_eq!(copied.info()?, chat.info()?);
    assert_eq!(copied.compactions()?, chat.compactions()?);
    assert_eq!(copied.labels()?, chat.labels()?);
    assert_eq!(copy.session("empty head")?.head()?, None);
    assert_eq!(copy.sessions()?.len(), 4);
    assert!(copy.verify(|_| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn the_hash_changes_with_the_content() -> Result<()> {
    let make = || -> Result<(Store, Session)> {
        let store = Store::open_in_memory()?;
        let chat = store.session("s")?;
        let time = "2026-01-02T03:04:05Z".parse().unwrap();
        chat.set_details(&SessionDetails { created_at: Some(time), ..SessionDetails::default() })?;
        for id in ["a", "b"] {
            chat.append(
                Message::user(id).with_id(id).at(time).with_metadata(json!({"x": 1, "y": 2})),
            )?;
        }
        Ok((store, chat))
    };
    let plain = content_hash(&make()?.0)?;
    assert_eq!(content_hash(&make()?.0)?, plain);
    type Change = fn(&Session) -> Result<()>;
    let changes: [Change; 6] = [
        |chat| chat.checkout(&"a".into()),
        |chat| chat.label("l", &"a".into()),
        |chat| chat.add_compaction("s", &"a".into(), &"b".into()).map(|_| ()),
        |chat| chat.update(Message::user("b").with_id("b")).map(|_| ()),
        |chat| chat.delete([&"b".into()]).map(|_| ()),
        |chat| {
            chat.set_details(&SessionDetails {
                model: Some("m".into()),
                ..SessionDetails::default()
            })
        },
    ];
    for (at, change) in changes.iter().enumerate() {
        let (store, chat) = make()?;
        change(&chat)?;
        assert_ne!(content_hash(&store)?, plain, "change {at}");
        assert_ne!(session_hash(&chat)?, session_hash(&make()?.1)?);
    }
    // The spelling of JSON does not matter.
    let (store, chat) = make()?;
    let spelled = Json::parse("{ \"y\": 2,\n\"x\" :1}")?;
    for id in ["a", "b"] {
        chat.update(Message::user(id).with_id(id).with_metadata(spelled.clone()))?;
    }
    assert_eq!(content_hash(&store)?, plain);
    Ok(())
}

#[test]
fn deleted_messages_are_omitted_and_compactions_keep_their_places() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(["a", "b", "c", "d", "e", "f"].map(|id| Message::user(id).with_id(id)))?;
    chat.append_to(&"c".into(), Message::user("x").with_id("x"))?;
    chat.add_compaction("b to d", &"b".into(), &"d".into())?;
    chat.delete([&"b".into(), &"d".into()])?;
    let shown = views(&chat)?;
    let copy = round_trip(&store)?;
    let copied = copy.session("s")?;
    assert_eq!(copied.compactions()?, chat.compactions()?);
    assert_eq!(views(&copied)?, shown);
    assert_eq!(shown, [vec!["a", "b to d", "e", "f"], vec!["a", "c", "x"]]);
    assert_eq!(copied.message(&"e".into())?.unwrap().parent, Some("c".into()));
    Ok(())
}

#[test]
fn compactions_that_overlap_after_an_end_is_deleted_are_all_kept() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(["a", "b", "c", "d", "e"].map(|id| Message::user(id).with_id(id)))?;
    chat.add_compaction("a to d", &"a".into(), &"d".into())?;
    chat.append_to(&"c".into(), Message::user("x").with_id("x"))?;
    chat.add_compaction("b to x", &"b".into(), &"x".into())?;
    chat.delete([&"d".into()])?;
    let shown = views(&chat)?;
    assert_eq!(shown, [vec!["a to d", "e"], vec!["a", "b to x"]]);
    assert_eq!(views(&round_trip(&store)?.session("s")?)?, shown);
    Ok(())
}

/// An end that was deleted moved to the message above it. There another compaction ended that reached further back, so the
/// copy showed `[X] e`, and its hash was that of the source.
#[test]
fn a_copy_shows_what_its_source_shows() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(["a", "b", "c", "d", "e"].map(|id| Message::user(id).with_id(id)))?;
    chat.add_compaction("Y", &"b".into(), &"d".into())?;
    chat.add_compaction("X", &"a".into(), &"c".into())?;
    chat.delete([&"d".into()])?;
    assert_eq!(views(&chat)?, [["a", "Y", "e"]]);
    let copy = round_trip(&store)?;
    let copied = copy.session("s")?;
    assert_eq!(views(&copied)?, [["a", "Y", "e"]]);
    assert_eq!(copied.at(&"c".into()).history()?, chat.at(&"c".into()).history()?);
    assert_eq!(copied.compactions()?, chat.compactions()?);
    assert!(copy.verify(|_| {})?.damages.is_empty());
    Ok(())
}

/// A later summary hid the one that crosses; after it was removed, an import refused what the source still shows.
#[test]
fn compactions_that_cross_because_one_was_removed_are_all_kept() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(["a", "b", "c", "d", "e"].map(|id| Message::user(id).with_id(id)))?;
    let removed = chat.add_compaction("R", &"b".into(), &"d".into())?.id;
    chat.add_compaction("S", &"a".into(), &"c".into())?;
    chat.add_compaction("Z", &removed.as_message(), &"e".into())?;
    chat.remove_compaction(&removed)?;
    assert_eq!(views(&chat)?, [["a", "Z"]]);
    let copied = round_trip(&store)?.session("s")?;
    assert_eq!(views(&copied)?, [["a", "Z"]]);
    assert_eq!(copied.compactions()?, chat.compactions()?);
    Ok(())
}

/// Both stores hold the messages a, b, c and e, and the same two summaries.
#[test]
fn stores_that_show_other_histories_have_other_hashes() -> Result<()> {
    let time = "2026-01-02T03:04:05Z".parse().unwrap();
    let make = |deletes_last: bool| -> Result<Store> {
        let store = Store::open_in_memory()?;
        let chat = store.session("s")?;
        chat.set_details(&SessionDetails { created_at: Some(time), ..SessionDetails::default() })?;
        let ids: &[&str] =
            if deletes_last { &["a", "b", "c", "d", "e"] } else { &["a", "b", "c", "e"] };
        chat.append_all(ids.iter().map(|id| Message::user(*id).with_id(*id).at(time)))?;
        let add = |id: &str, first: &str, last: &str| {
            let mut compaction = Compaction::new(id, first.into(), last.into());
            (compaction.id, compaction.created_at, compaction.count) = (id.into(), time, 3);
            chat.import_compaction(&compaction)
        };
        add("Y", "b", if deletes_last { "d" } else { "c" })?;
        if deletes_last {
            add("X", "a", "c")?;
            chat.delete([&"d".into()])?;
        } else {
            add("X", "a", "c")?;
        }
        Ok(store)
    };
    let (one, other) = (make(true)?, make(false)?);
    assert_eq!(views(&one.session("s")?)?, [["a", "Y", "e"]]);
    assert_eq!(views(&other.session("s")?)?, [["X", "e"]]);
    assert_ne!(content_hash(&one)?, content_hash(&other)?);
    Ok(())
}

/// A later export of the same session continues below the place where a summary ends, although its message is deleted.
#[test]
fn a_later_export_continues_at_the_place_of_a_deleted_message() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(["a", "b", "c", "d", "e"].map(|id| Message::user(id).with_id(id)))?;
    let summary = chat.add_compaction("Y", &"b".into(), &"d".into())?.id.as_message();
    chat.add_compaction("X", &"a".into(), &"c".into())?;
    chat.delete([&"d".into()])?;
    let (copy, _) = import(&export(&store)?, &ImportOptions::default())?;
    chat.append_to(&summary, Message::user("f").with_id("f"))?;
    assert_eq!(views(&chat)?, [["a", "Y", "e"], ["a", "Y", "f"]]);
    let grown = export(&store)?;
    let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
    let report = import_reader(&copy, "grown", Cursor::new(&grown), &strict, |_| {})?;
    assert_eq!((report.added, report.known), (1, 4), "{report:#?}");
    assert_eq!(views(&copy.session("s")?)?, views(&chat)?);
    assert_eq!(content_hash(&copy)?, content_hash(&store)?);
    Ok(())
}

/// A head below a deleted message at which a summary ends.
#[test]
fn a_head_at_a_deleted_message_stays_there() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(["a", "b", "c", "d"].map(|id| Message::user(id).with_id(id)))?;
    chat.add_compaction("Y", &"b".into(), &"c".into())?;
    chat.checkout(&"c".into())?;
    chat.delete([&"c".into()])?;
    let copied = round_trip(&store)?.session("s")?;
    assert_eq!(copied.head()?, chat.head()?);
    assert_eq!(copied.history()?, chat.history()?);
    copied.append(Message::user("f"))?;
    assert_eq!(copied.history()?.iter().map(Message::text).collect::<String>(), "aYf");
    Ok(())
}

#[test]
fn a_truncated_or_changed_export_is_detected() -> Result<()> {
    let store = Store::open_in_memory()?;
    store
        .session("s")?
        .append_all([Message::user("one").with_id("a"), Message::user("two").with_id("b")])?;
    let whole = String::from_utf8(export(&store)?).unwrap();
    let lenient = ImportOptions::default();
    let lines: Vec<&str> = whole.lines().collect();

    let (copy, report) = import(lines[..lines.len() - 1].join("\n").as_bytes(), &lenient)?;
    assert!(report.first_fault().unwrap().why.contains("cut off"), "{report:?}");
    assert_eq!(copy.session("s")?.path_length()?, 2);

    let (_, report) = import(whole.replace("two", "2").as_bytes(), &lenient)?;
    assert!(report.first_fault().unwrap().why.contains("checksum"), "{report:?}");

    let without = [&lines[..3], &lines[4..]].concat().join("\n");
    let (_, report) = import(without.as_bytes(), &lenient)?;
    assert!(report.first_fault().unwrap().why.contains("1 messages"), "{report:?}");

    let newer = whole.replace("\"version\":2", "\"version\":9");
    let (copy, report) = import(newer.as_bytes(), &lenient)?;
    assert_eq!((report.kept, report.dropped), (0, lines.len() as u64));
    assert!(copy.sessions()?.is_empty());

    let strict = ImportOptions { is_strict: true, ..lenient };
    for bad in [lines[..lines.len() - 1].join("\n"), whole.replace("two", "2"), without, newer] {
        assert!(import(bad.as_bytes(), &strict).is_err());
    }
    // A file may contain two exports.
    let other = Store::open_in_memory()?;
    other.session("t")?.append(Message::user("three"))?;
    let both = [whole.as_bytes(), &export(&other)?].concat();
    let (copy, report) = import(&both, &strict)?;
    assert_eq!((report.kept, copy.sessions()?.len()), (3, 2));
    Ok(())
}

#[test]
fn inconsistent_records_of_an_export_are_reported() -> Result<()> {
    let file = concat!(
        r#"{"format":"talktree","version":2}"#,
        "\n",
        r#"{"type":"message","message":{"id":"z","role":"user","parts":[]}}"#,
        "\n",
        r#"{"type":"session","id":"s"}"#,
        "\n",
        r#"{"type":"message","message":{"id":"a","parent":null,"role":"user","parts":[]}}"#,
        "\n",
        r#"{"type":"message","message":{"role":"user","parts":[]}}"#,
        "\n",
        r#"{"type":"message","message":{"id":"b","parts":[]}}"#,
        "\n",
        r#"{"type":"message","message":{"id":"compaction_1","role":"user","parts":[]}}"#,
        "\n",
        r#"{"type":"compaction","id":"c","first":"a","last":"nobody","summary":"x","created_at":"2026-01-01T00:00:00Z"}"#,
        "\n",
        r#"{"type":"label","name":"l","id":"nobody"}"#,
        "\n",
        r#"{"type":"label","name":"","id":"a"}"#,
        "\n",
        r#"{"type":"novelty"}"#,
        "\n",
    );
    let (copy, report) = import(file.as_bytes(), &ImportOptions::default())?;
    assert_eq!((report.kept, report.converted, report.dropped), (1, 2, 8), "{report:#?}");
    let lines: Vec<_> = report.notes.iter().filter_map(|note| note.line).collect();
    assert_eq!(lines, [2, 5, 6, 7, 8, 9, 10, 11, 11]);
    assert_eq!(copy.session("s")?.path_length()?, 1);
    Ok(())
}

/// An import that stops has stored whole sessions only, and is completed by the next one.
#[test]
fn an_import_that_stopped_anywhere_is_completed_by_the_next() -> Result<()> {
    let store = Store::open_in_memory()?;
    let time = "2026-01-02T03:04:05Z".parse().unwrap();
    for id in ["s", "t"] {
        let chat = store.session(id)?;
        chat.set_details(&SessionDetails { created_at: Some(time), ..SessionDetails::default() })?;
        let text = "long ".repeat(100);
        let said = |n| Message::user(format!("{n} {text}")).with_id(format!("m{n}"));
        chat.append_all((0..2_500).map(said))?;
        chat.add_compaction("the first", &"m0".into(), &"m9".into())?;
        chat.label("start", &"m0".into())?;
        chat.checkout(&"m1000".into())?;
    }
    let file = export(&store)?;
    let mut stored = BTreeSet::new();
    for calls in 1.. {
        let copy = Store::open_in_memory()?;
        let (handle, mut left) = (copy.interrupt_handle(), calls);
        let options = ImportOptions::default();
        let stopped = import_reader(&copy, "e", Cursor::new(&file), &options, |_| {
            left -= 1;
            if left == 0 {
                handle.interrupt();
            }
        });
        let is_stopped = matches!(stopped, Err(Error::Interrupted));
        stored.insert(copy.stats()?.messages);
        import_reader(&copy, "e", Cursor::new(&file), &options, |_| {})?;
        assert_eq!(content_hash(&copy)?, content_hash(&store)?, "stopped at call {calls}");
        // A completed import does not set the head again.
        let copied = copy.session("s")?;
        copied.checkout(&"m7".into())?;
        import_reader(&copy, "e", Cursor::new(&file), &options, |_| {})?;
        assert_eq!(copied.head()?, Some("m7".into()));
        if !is_stopped {
            break;
        }
    }
    assert_eq!(stored, BTreeSet::from([0, 2_500, 5_000]));
    Ok(())
}

#[test]
fn a_compaction_or_label_removed_after_an_import_stays_removed() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(["a", "b", "c"].map(|id| Message::user(id).with_id(id)))?;
    let compaction = chat.add_compaction("a to b", &"a".into(), &"b".into())?.id;
    chat.label("l", &"a".into())?;
    let file = export(&store)?;
    chat.append(Message::user("d").with_id("d"))?;
    let grown = export(&store)?;
    let (copy, _) = import(&file, &ImportOptions::default())?;
    let copied = copy.session("s")?;
    copied.remove_compaction(&compaction)?;
    copied.unlabel("l")?;
    let hash = content_hash(&copy)?;
    for (file, is_equal) in [(&file, true), (&grown, false)] {
        let report =
            import_reader(&copy, "e", Cursor::new(file), &ImportOptions::default(), |_| {})?;
        assert_eq!(report.dropped, 0, "{report:#?}");
        assert_eq!(content_hash(&copy)? == hash, is_equal);
        assert!(copied.compactions()?.is_empty() && copied.labels()?.is_empty());
    }
    assert_eq!(copied.head()?, Some("d".into()));
    Ok(())
}

#[test]
fn a_compaction_keeps_its_count_when_messages_of_its_range_are_deleted() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(["a", "b", "c"].map(|id| Message::user(id).with_id(id)))?;
    chat.add_compaction("all", &"a".into(), &"c".into())?;
    chat.delete([&"b".into()])?;
    let copy = round_trip(&store)?;
    assert_eq!(copy.session("s")?.compactions()?[0].count, 3);
    Ok(())
}

#[derive(Debug, Clone)]
enum Step {
    Append(u8, String, bool),
    To(usize, String),
    Root(String),
    Compact(usize, usize),
    Delete(usize),
    /// Appends a message with the id of a deleted one.
    Again(usize, String),
    RemoveCompaction(usize),
    AtSummary(usize, String),
    Label(u8, usize),
    Checkout(usize),
    Fork(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let text = || "[a-c\\n\"\\\\é😀\u{0}]{0,6}";
    prop_oneof![
        4 => (any::<u8>(), text(), any::<bool>()).prop_map(|(r, t, a)| Step::Append(r, t, a)),
        3 => (any::<usize>(), text()).prop_map(|(at, t)| Step::To(at, t)),
        1 => text().prop_map(Step::Root),
        4 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Step::Compact(a, b)),
        2 => any::<usize>().prop_map(Step::Delete),
        1 => (any::<usize>(), text()).prop_map(|(at, t)| Step::Again(at, t)),
        1 => any::<usize>().prop_map(Step::RemoveCompaction),
        1 => (any::<usize>(), text()).prop_map(|(at, t)| Step::AtSummary(at, t)),
        1 => (0..3_u8, any::<usize>()).prop_map(|(n, at)| Step::Label(n, at)),
        1 => any::<usize>().prop_map(Step::Checkout),
        1 => any::<usize>().prop_map(Step::Fork),
    ]
}

fn run(store: &Store, steps: &[Step], prefix: &str) -> Result<()> {
    let chat = store.session("s")?;
    let mut ids: Vec<MessageId> = chat
        .all_messages()
        .map(|message| message.map(|message| message.id))
        .collect::<Result<_>>()?;
    let mut deleted: Vec<MessageId> = Vec::new();
    let pick =
        |ids: &[MessageId], at: usize| (!ids.is_empty()).then(|| ids[at % ids.len()].clone());
    for (number, step) in steps.iter().enumerate() {
        let message = |text: &str| Message::user(text).with_id(format!("{prefix}{number}"));
        match step {
            Step::Append(role, text, is_hidden) => {
                let mut message = message(text).with_metadata(json!({"n": role, "t": text}));
                message.role = ["user", "assistant", "tool", "x"][usize::from(*role) % 4].into();
                message.is_hidden = *is_hidden;
                ids.push(chat.append(message)?.id);
            }
            Step::To(at, text) => match pick(&ids, *at) {
                Some(parent) => ids.push(chat.append_to(&parent, message(text))?.id),
                None => continue,
            },
            Step::Root(text) => ids.push(chat.append_root(message(text))?.id),
            Step::Compact(first, last) => {
                let (Some(last), Some(_)) = (pick(&ids, *last), pick(&ids, *first)) else {
                    continue;
                };
                let path = chat.at(&last).raw_history()?;
                let first = &path[first % path.len()].id;
                // A range that would split a summary is refused.
                let _ = chat.add_compaction(format!("sum {number}"), first, &last);
            }
            Step::Delete(at) => {
                let Some(id) = pick(&ids, *at) else { continue };
                chat.delete([&id])?;
                ids.retain(|other| *other != id);
                deleted.push(id);
            }
            Step::Again(at, text) => {
                let Some(id) = pick(&deleted, *at) else { continue };
                deleted.retain(|other| *other != id);
                ids.push(chat.append(message(text).with_id(id))?.id);
            }
            Step::RemoveCompaction(at) => {
                let all = chat.compactions()?;
                if !all.is_empty() {
                    chat.remove_compaction(&all[at % all.len()].id)?;
                }
            }
            Step::AtSummary(at, text) => {
                let all = chat.compactions()?;
                if !all.is_empty() {
                    let summary = all[at % all.len()].id.as_message();
                    ids.push(chat.append_to(&summary, message(text))?.id);
                }
            }
            Step::Label(name, at) => {
                let Some(id) = pick(&ids, *at) else { continue };
                chat.label(&format!("label {name}"), &id)?;
            }
            Step::Checkout(at) => match pick(&ids, *at) {
                Some(id) => chat.checkout(&id)?,
                None => continue,
            },
            Step::Fork(at) => {
                let Some(id) = pick(&ids, *at) else { continue };
                chat.fork_as(&format!("{prefix} fork {number}").as_str().into(), &id, "fork")?;
            }
        }
    }
    Ok(())
}

/// Returns what every place of every session shows: each message, each summary, the head.
fn everything_shown(store: &Store) -> Result<Vec<String>> {
    let mut shown = Vec::new();
    let mut sessions = store.sessions()?;
    sessions.sort_by(|one, other| one.id.cmp(&other.id));
    for info in sessions {
        let chat = store.session(&info.id)?;
        let mut places = Vec::new();
        for message in chat.all_messages() {
            places.push(message?.id);
        }
        places.extend(chat.compactions()?.iter().map(|compaction| compaction.id.as_message()));
        for place in places {
            shown.push(format!("{place}: {:?}", chat.at(&place).history()?));
        }
        shown.push(format!("{} {:?}: {:?}", info.id, chat.head()?, chat.history()?));
    }
    Ok(shown)
}

/// Checks that a fork shows on its path what the source shows there, also at summaries whose ends were deleted.
fn check_forks(store: &Store) -> Result<()> {
    for info in store.sessions()? {
        let chat = store.session(&info.id)?;
        let mut leaves = chat.leaves()?;
        leaves.extend(chat.compactions()?.iter().map(|compaction| compaction.id.as_message()));
        for leaf in leaves {
            let path = chat.at(&leaf);
            let raw = path.raw_history()?;
            let fork = match chat.fork(&leaf, "copy") {
                // Of what this summary replaces nothing is left.
                Err(Error::UnknownMessage { .. }) => continue,
                fork => fork?,
            };
            // If the last message of a summary is deleted, the one above takes its place.
            let end = raw.last().map(|last| &last.id);
            let is_moved = chat.at(end.unwrap()).history()? != path.history()?;
            let texts = |view: Vec<Message>| view.iter().map(Message::text).collect::<Vec<_>>();
            assert_eq!(texts(fork.history()?), texts(path.history()?), "at {leaf}");
            assert_eq!(fork.raw_history()?, raw, "at {leaf}");
            for message in raw.iter().filter(|message| !is_moved || Some(&message.id) != end) {
                let (here, there) = (chat.at(&message.id), fork.at(&message.id));
                assert_eq!(there.history()?, here.history()?, "at {} below {leaf}", message.id);
            }
            for compaction in fork.compactions()? {
                let source = chat.compaction(&compaction.id)?;
                let is_same = source == compaction;
                assert!(is_same || is_moved && Some(&compaction.last) == end, "{compaction:?}");
                let (here, there) = (chat.expand(&compaction.id)?, fork.expand(&compaction.id)?);
                assert!(!is_same || there == here, "{:?}", compaction.id);
            }
            store.remove(fork.id())?;
        }
        assert_eq!(store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

/// Runs the steps, and compares the store with its copy; then changes the copy and compares hashes and views.
fn check(steps: &[Step], more: &[Step]) -> Result<()> {
    let store = Store::open_in_memory()?;
    run(&store, steps, "m")?;
    let copy = round_trip(&store)?;
    let shown = everything_shown(&store)?;
    assert_eq!(everything_shown(&copy)?, shown);
    for info in store.sessions()? {
        let (here, there) = (store.session(&info.id)?, copy.session(&info.id)?);
        assert_eq!(here.raw_history()?, there.raw_history()?);
        assert_eq!(here.compactions()?, there.compactions()?);
    }
    assert_eq!(copy.verify(|_| {})?.damages, vec![]);

    check_forks(&store)?;

    let mut seen = vec![(content_hash(&copy)?, shown)];
    for (number, step) in more.iter().enumerate() {
        run(&copy, std::slice::from_ref(step), &format!("n{number} "))?;
        let (hash, shown) = (content_hash(&copy)?, everything_shown(&copy)?);
        for (other, other_shown) in &seen {
            assert!(*other != hash || *other_shown == shown, "{step:?} changes views only");
        }
        seen.push((hash, shown));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(random::cases(96)))]

    #[test]
    fn random_stores_survive_the_round_trip(
        steps in prop::collection::vec(step(), 1.. 60),
        more in prop::collection::vec(step(), 0.. 8),
    ) {
        check(&steps, &more).unwrap();
    }
}

/// An output that deletes and appends messages while it is written to.
struct Meddling<'a> {
    chat: &'a talktree::Session,
    ids: Vec<MessageId>,
    written: Vec<u8>,
}

impl std::io::Write for Meddling<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(id) = self.ids.pop() {
            self.chat.delete([&id]).map_err(std::io::Error::other)?;
            self.chat.append(Message::user("late")).map_err(std::io::Error::other)?;
        }
        self.written.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An export consisted of many reads: it failed when a message was deleted meanwhile, or mixed several states.
#[test]
fn an_export_is_a_snapshot_while_others_delete() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for store in [Store::open_in_memory()?, Store::open(folder.path().join("bot.db"))?] {
        let chat = store.session("s")?;
        chat.append_all((0..3_000).map(|n| Message::user("hello").with_id(format!("m{n}"))))?;
        for n in [0, 1_000, 2_998] {
            let id = format!("m{n}").as_str().into();
            chat.add_compaction("Short.", &id, &id)?;
            chat.label(&format!("label {n}"), &id)?;
        }
        let ids = || -> Vec<MessageId> {
            [2_999, 2_998, 2_500, 1_500, 1_000, 0].map(|n| format!("m{n}").as_str().into()).into()
        };
        let mut expected = Vec::new();
        export_jsonl(&store, &mut expected)?;
        let mut output = Meddling { chat: &chat, ids: ids(), written: Vec::new() };
        export_jsonl(&store, &mut output)?;
        assert!(output.ids.is_empty() && output.written == expected);

        for id in ids() {
            chat.append(Message::user("again").with_id(id))?;
        }
        let mut expected = Vec::new();
        export_session(&chat, &mut expected)?;
        let mut output = Meddling { chat: &chat, ids: ids(), written: Vec::new() };
        export_session(&chat, &mut output)?;
        assert!(output.written == expected);
        let mut output = Meddling { chat: &chat, ids: Vec::new(), written: Vec::new() };
        let skipped = |id: &_, error: &_| panic!("{id}: {error}");
        export_readable_jsonl(&store, &mut output, skipped)?;
        assert!(output.written != expected);
    }
    Ok(())
}

/// The export of a damaged store had them, so an import brought them back alive.
#[test]
fn sessions_in_the_trash_are_not_exported_with_the_store() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.session("kept")?.append(Message::user("hello"))?;
    let kept = (export(&store)?, content_hash(&store)?);
    let thrown = store.session("thrown away")?;
    thrown.append(Message::user("secret"))?;
    assert_ne!(content_hash(&store)?, kept.1);
    store.change_session(thrown.id(), &SessionChange::Delete)?;
    assert!(export(&store)? == kept.0);
    assert_eq!(content_hash(&store)?, kept.1);
    let mut readable = Vec::new();
    export_readable_jsonl(&store, &mut readable, |id, error| panic!("{id}: {error}"))?;
    assert!(readable == kept.0);
    let copy = round_trip(&store)?;
    assert_eq!(copy.sessions()?.len(), 1);
    // A session that is asked for by its name is exported.
    let mut alone = Vec::new();
    export_session(&thrown, &mut alone)?;
    assert!(String::from_utf8(alone).unwrap().contains("secret"));
    Ok(())
}

/// Interrupts a store with the first bytes that are written.
struct Interrupting(talktree::InterruptHandle);

impl std::io::Write for Interrupting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.interrupt();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An export of a session looked for an interrupt never, and one of a store between two sessions.
#[test]
fn an_interrupt_ends_the_export_of_a_long_session() -> Result<()> {
    type Export<'a> = &'a dyn Fn(&mut Interrupting) -> Result<()>;
    let folder = common::folder()?;
    let store = Store::open(folder.path().join("bot.db"))?;
    let owner = Some("ann".to_owned());
    let chat = store.create_session(SessionDetails { owner, ..SessionDetails::default() })?;
    chat.append_all((0..5_000).map(|n| Message::user(format!("message {n}"))))?;
    let export: [Export<'_>; 4] = [
        &|output| export_jsonl(&store, output),
        &|output| {
            export_person(&store, Person::Owner("ann"), PersonFormat::Jsonl, output).map(drop)
        },
        &|output| export_session(&chat, output),
        &|output| export_markdown(&chat.path(), output),
    ];
    for (at, export) in export.iter().enumerate() {
        let stopped = export(&mut Interrupting(store.interrupt_handle()));
        assert!(matches!(stopped, Err(Error::Interrupted)), "{at}: {stopped:?}");
    }
    // It is over with the export.
    assert_eq!(export_lines(&store)?, 5_000 + 4);
    Ok(())
}

/// Takes nothing more from its first bytes on until it is released.
struct Stopped {
    begun: Option<mpsc::Sender<()>>,
    released: mpsc::Receiver<()>,
    written: Vec<u8>,
}

impl std::io::Write for Stopped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(begun) = self.begun.take() {
            begun.send(()).unwrap();
            // An error if the test has failed.
            let _ = self.released.recv();
        }
        self.written.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The snapshot stayed open for as long as the output took: the log grew, and nothing could be erased.
#[test]
fn an_output_that_takes_nothing_more_keeps_no_log() -> Result<()> {
    type Export<'a> = &'a (dyn Fn(&mut Stopped) -> Result<()> + Sync);
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = Store::options().busy_timeout(Duration::from_millis(300)).open(&path)?;
    let owner = Some("ann".to_owned());
    let chat = store.create_session(SessionDetails { owner, ..SessionDetails::default() })?;
    let bob = talktree::Author::new("bob");
    let long =
        |n| Message::user(format!("message {n} {}", "of many words ".repeat(200))).from(&bob);
    chat.append_all((0..1_000).map(long))?;
    let of_owner = |format| {
        let store = &store;
        move |output: &mut Stopped| {
            export_person(store, Person::Owner("ann"), format, output).map(drop)
        }
    };
    let export: [Export<'_>; 7] = [
        &|output| {
            export_person(&store, Person::Author("bob"), PersonFormat::Markdown, output).map(drop)
        },
        &|output| export_jsonl(&store, output),
        &|output| export_readable_jsonl(&store, output, |id, error| panic!("{id}: {error}")),
        &of_owner(PersonFormat::Jsonl),
        &of_owner(PersonFormat::Markdown),
        &|output| export_session(&chat, output),
        &|output| export_markdown(&chat.path(), output),
    ];
    for (at, export) in export.iter().enumerate() {
        std::thread::scope(|scope| -> Result<()> {
            let (begun, has_begun) = mpsc::channel();
            let (release, released) = mpsc::channel();
            let mut output = Stopped { begun: Some(begun), released, written: Vec::new() };
            let exporting = scope.spawn(move || export(&mut output).map(|()| output.written));
            has_begun.recv().unwrap();
            let late = chat.append(Message::user("late"))?.id;
            let erased = chat.erase([&late])?;
            // So the log is empty.
            assert!(erased.is_complete(), "{at}");
            // No file is left, though the text did not fit in memory.
            let names = std::fs::read_dir(folder.path()).unwrap();
            let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
            assert!(names.into_iter().all(|name| name.starts_with("bot.db")), "{at}");
            release.send(()).unwrap();
            let written = String::from_utf8(exporting.join().unwrap()?).unwrap();
            assert!(written.len() > 2 << 20, "{at}");
            assert!(written.contains("message 999 of") && !written.contains("late"), "{at}");
            Ok(())
        })?;
    }
    Ok(())
}

fn export_lines(store: &Store) -> Result<usize> {
    Ok(export(store)?.iter().filter(|byte| **byte == b'\n').count())
}

/// The output of a skill that was unloaded came back as a whole in a copy.
#[test]
fn an_elided_output_is_elided_in_a_copy() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let result = Part::tool_result("load_context", "c1", json!("A long recipe."));
    chat.append(Message::assistant("").with_part(result).with_id("r"))?;
    let before = content_hash(&store)?;
    let session = Record::Session { id: "s".into(), details: SessionDetails::default() };
    let (message, call, marker) = ("r".into(), "c1".to_owned(), "[unloaded]".to_owned());
    store.import([Ok(session), Ok(Record::Elision { message, call, marker })])?;
    assert_ne!(content_hash(&store)?, before);
    let copy = round_trip(&store)?;
    let copied = copy.session("s")?;
    assert_eq!(copied.history()?, chat.history()?);
    assert_eq!(copied.raw_history()?, chat.raw_history()?);

    // An elision that was removed since does not come back.
    copied.update(Message::assistant("").with_id("r"))?;
    copied.update(chat.raw_history()?.remove(0))?;
    let raw = copied.raw_history()?;
    assert_eq!(copied.history()?, raw);
    let file = export(&store)?;
    import_reader(&copy, "e", Cursor::new(&file), &ImportOptions::default(), |_| {})?;
    assert_eq!(copied.history()?, raw);
    Ok(())
}
