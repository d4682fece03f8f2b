//! The contract of a provider, as a suite.
//!
//! Trees are drawn as text: a letter is a message whose id it is, `[s]` the summary of the
//! compaction `s`.

#![expect(clippy::panic, reason = "a suite says by panicking which rule was broken")]

use std::sync::Arc;

use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Json, Message, Part};
use crate::outcome::{Deleted, Incoming};
use crate::search::{Scope, SearchRequest};
use crate::storage::{Cursor, SessionProvider};
use crate::view::{Order, Place, View};

/// Runs the contract of [`SessionProvider`] against the providers that `make` gives.
///
/// `make` is called with a new id each time and returns an empty session. Required verbs are held
/// strictly; others may answer [`Error::Unsupported`].
///
/// ```
/// use std::sync::Arc;
///
/// use talktree::Store;
/// use talktree::testing::{MemorySession, conformance};
///
/// conformance(|id| Arc::new(MemorySession::new(id)));
///
/// let store = Store::open_in_memory()?;
/// conformance(|id| store.session(id).expect("the id is sound").provider());
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Panics
/// If a rule is broken; the message names it.
pub fn conformance(mut make: impl FnMut(SessionId) -> Arc<dyn SessionProvider>) {
    for (rule, check) in RULES {
        let id = SessionId::from(format!("conformance: {rule}"));
        let provider = make(id.clone());
        assert_eq!(*provider.id(), id, "a session has the id it was made with");
        if let Err(error) = check(&Probe { provider }) {
            panic!("{rule}: {error}");
        }
    }
}

type Check = fn(&Probe) -> Result<()>;

const RULES: &[(&str, Check)] = &[
    ("a session that was never written to reads as empty", empty),
    ("what is appended reads back as it was", round_trip),
    ("appends hang where they were placed and move the head", places),
    ("a known id is left as it is and the chain goes on from it", known_ids),
    ("an unknown id is an error and nothing is done", unknown_ids),
    ("an update replaces content and keeps the place", updates),
    ("a deleted message leaves its place to its children", deletes),
    ("the head moves up from a message that went", head_after_delete),
    ("a cleared session is empty and can be written to", clears),
    ("a summary stands for its stretch on the paths that hold its end", summaries),
    ("a summary folds whole items of the view", summary_ends),
    ("of compactions with one end the furthest-reaching shows, of equals the newest", nesting),
    ("asides are stored and not shown", asides),
    ("compactions of deleted messages go and say so", deletes_under_summaries),
    ("a search finds text in its scope", searches),
    ("a stream gives what a read gives", streams),
    ("the head moves and moves back", heads),
    ("labels point at messages", labels),
    ("leaves are the messages without children", leaves),
    ("a branch is deleted whole", branches),
    ("a summary that is taken off brings back what was under it", removals),
    ("a record is imported once", imports),
    ("a fork has the path it was made from", forks),
    ("threads may write at the same time", threads),
];

/// A provider, and the shorthand of the rules.
struct Probe {
    provider: Arc<dyn SessionProvider>,
}

fn id(letter: &str) -> MessageId {
    MessageId::from(letter)
}

fn message(letter: &str) -> Message {
    Message::user(format!("text of {letter}")).with_id(letter)
}

impl Probe {
    /// Builds a tree drawn as pairs: `"a- ba cb da"` is the path a b c, and d beside b.
    fn draw(&self, tree: &str) -> Result<()> {
        for node in tree.split(' ') {
            let (letter, parent) = node.split_at(1);
            let place = match parent {
                "-" => Place::Root,
                parent => Place::To(id(parent)),
            };
            self.provider.append(&place, &[message(letter)])?;
        }
        Ok(())
    }

    fn fold(&self, name: &str, first: &str, last: &str) -> Result<()> {
        self.provider.add_compaction(&Compaction {
            id: CompactionId::from(name),
            first: id(first),
            last: id(last),
            count: 0,
            summary: format!("summary {name}"),
            details: Some(Json::from(serde_json::json!({"of": name}))),
            created_at: crate::message::now(),
        })
    }

    fn history(&self, leaf: &str) -> Result<String> {
        Ok(drawn(&self.provider.history(Some(&id(leaf)))?))
    }

    fn raw(&self, leaf: &str) -> Result<String> {
        Ok(drawn(&self.provider.raw_history(Some(&id(leaf)))?))
    }

    /// The path to the head.
    fn head(&self) -> Result<String> {
        Ok(drawn(&self.provider.raw_history(None)?))
    }

    fn children(&self, of: Option<&str>) -> Result<String> {
        Ok(drawn(&self.provider.branches(of.map(id).as_ref())?))
    }

    fn delete(&self, ids: &str) -> Result<Deleted> {
        let ids: Vec<MessageId> = ids.split(' ').map(id).collect();
        self.provider.delete(&ids)
    }

    fn found(&self, text: &str, scope: Scope) -> Result<String> {
        let found = self.provider.search(&SearchRequest::new(text, scope))?;
        let mut ids: Vec<String> = found.hits.iter().map(|hit| hit.id.to_string()).collect();
        ids.sort();
        Ok(ids.join(" "))
    }
}

/// Letters for messages, `[s]` for summaries.
fn drawn(messages: &[Message]) -> String {
    let name = |message: &Message| match CompactionId::from_message(&message.id) {
        Some(compaction) => format!("[{compaction}]"),
        None => message.id.to_string(),
    };
    messages.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn ids(compactions: &[CompactionId]) -> String {
    compactions.iter().map(CompactionId::as_str).collect::<Vec<_>>().join(" ")
}

/// Returns the answer of a verb that a provider need not have; `None` if it has it not.
fn supported<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(Error::Unsupported { .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

#[track_caller]
fn assert_unknown<T>(answer: Result<T>) {
    match answer.err() {
        Some(Error::UnknownMessage { .. }) => {}
        other => panic!("an unknown id should be Error::UnknownMessage, not {other:?}"),
    }
}

fn empty(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    assert!(provider.history(None)?.is_empty());
    assert!(provider.raw_history(None)?.is_empty());
    assert_eq!(provider.latest_leaf()?, None);
    assert!(provider.branches(None)?.is_empty());
    assert_eq!(provider.path_length(None)?, 0);
    assert_eq!(provider.message(&id("a"))?, None);
    assert!(provider.compactions()?.is_empty());
    assert_eq!(provider.head()?, None);
    assert_eq!(probe.found("text", Scope::Session(provider.id().clone()))?, "");
    assert_unknown(provider.history(Some(&id("a"))));
    assert_unknown(provider.update(&message("a")));
    assert_unknown(probe.delete("a"));
    assert!(provider.append(&Place::Head, &[])?.is_empty());
    provider.clear()
}

fn round_trip(probe: &Probe) -> Result<()> {
    let call = serde_json::json!({"city": "Jena", "n": 1.5, "deep": [[[null, true]]]});
    let other = r#"{"type": "data-x", "mark": "\ud800", "n": 123456789012345678901234567890}"#;
    let other = serde_json::from_str::<Part>(other)
        .map_err(|source| Error::Json { what: "a part", source })?;
    let mut rich = Message::new("critic", vec![Part::text("It's \"so\" \0 \u{1F600}\n")])
        .with_id("quote ' and \0 and \u{1F600}")
        .with_part(Part::reasoning("hm"))
        .with_part(Part::tool_call("weather", "call-1", call.clone()))
        .with_part(Part::tool_result("weather", "call-1", call))
        .with_part(Part::file("image/png", "data:,"))
        .with_part(other)
        .with_metadata(serde_json::json!({"a": null}))
        .at(crate::message::now() - chrono::TimeDelta::days(400));
    rich.extra.insert("further".to_owned(), Json::from(serde_json::json!([1, "x"])));
    let blank = Message::new("user", Vec::new()).with_id("blank");
    let answers = probe.provider.append(&Place::Head, &[rich.clone(), blank.clone()])?;
    assert!(answers.iter().all(|answer| answer.is_new && !answer.differs));
    let blank = Message { parent: Some(rich.id.clone()), ..blank };
    assert_eq!(probe.provider.raw_history(None)?, [rich.clone(), blank.clone()]);
    assert_eq!(probe.provider.history(None)?, [rich.clone(), blank]);
    assert_eq!(probe.provider.message(&rich.id)?, Some(rich));
    Ok(())
}

fn places(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    provider.append(&Place::Head, &[message("a"), message("b"), message("c")])?;
    assert_eq!(probe.head()?, "a b c");
    provider.append(&Place::To(id("a")), &[message("d"), message("e")])?;
    assert_eq!(probe.head()?, "a d e");
    provider.append(&Place::Head, &[message("f")])?;
    provider.append(&Place::Root, &[message("r")])?;
    assert_eq!(probe.head()?, "r");
    assert_eq!((probe.raw("f")?, probe.raw("c")?), ("a d e f".into(), "a b c".into()));
    assert_eq!((probe.children(None)?, probe.children(Some("a"))?), ("a r".into(), "b d".into()));
    assert_eq!(probe.children(Some("f"))?, "");
    assert_eq!(provider.path_length(Some(&id("f")))?, 4);
    assert_eq!(provider.path_length(None)?, 1);
    assert_eq!(provider.latest_leaf()?.map(|message| message.id), Some(id("r")));
    let parents = provider.branches(Some(&id("a")))?;
    assert!(parents.iter().all(|child| child.parent == Some(id("a"))));
    match provider.append(&Place::HeadAt(Some(id("f"))), &[message("g")]) {
        Err(Error::HeadMoved { found, .. }) => assert_eq!(found, Some(id("r"))),
        answer => panic!("a head elsewhere should be Error::HeadMoved, not {answer:?}"),
    }
    provider.append(&Place::HeadAt(Some(id("r"))), &[message("g")])?;
    assert_eq!(probe.head()?, "r g");
    // A retry, after an answer that was lost, is no refusal.
    assert!(!provider.append(&Place::HeadAt(Some(id("r"))), &[message("g")])?[0].is_new);
    assert_eq!(probe.head()?, "r g");
    Ok(())
}

fn known_ids(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba ca")?;
    let again = provider.append(&Place::Head, &[message("b")])?;
    assert!(!again[0].is_new && !again[0].differs && again[0].id == id("b"));
    let other = Message::user("something else").with_id("b");
    assert!(provider.append(&Place::Root, &[other])?[0].differs);
    assert_eq!((probe.head()?, probe.raw("b")?), ("a c".into(), "a b".into()));
    assert_eq!(provider.raw_history(Some(&id("b")))?[1].text(), "text of b");
    let answers = provider.append(&Place::Root, &[message("a"), message("b"), message("d")])?;
    let are_new: Vec<bool> = answers.iter().map(|answer| answer.is_new).collect();
    assert_eq!((are_new, probe.head()?), (vec![false, false, true], "a b d".into()));
    Ok(())
}

fn unknown_ids(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba")?;
    let x = id("x");
    assert_unknown(provider.append(&Place::To(x.clone()), &[message("c")]));
    assert_unknown(provider.history(Some(&x)));
    assert_unknown(provider.raw_history(Some(&x)));
    assert_unknown(provider.branches(Some(&x)));
    assert_unknown(provider.path_length(Some(&x)));
    assert_unknown(provider.update(&message("x")));
    assert_unknown(probe.delete("b x"));
    assert_unknown(probe.fold("s", "x", "b"));
    assert_unknown(probe.fold("s", "a", "x"));
    if let Some(answer) = supported(provider.is_on_path(&id("a"), None))? {
        assert!(answer);
    }
    assert_eq!((provider.message(&x)?, probe.head()?), (None, "a b".into()));
    assert!(provider.compactions()?.is_empty());
    Ok(())
}

fn updates(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb")?;
    let before = read(probe, "b")?;
    let mut changed =
        Message::assistant("changed").with_id("b").with_metadata(serde_json::json!(true));
    changed.is_aside = true;
    let updated = provider.update(&changed)?;
    assert!(updated.is_changed && updated.covered_by.is_empty());
    let after = read(probe, "b")?;
    assert_eq!((after.text(), after.role.as_str()), ("changed".into(), "assistant"));
    assert_eq!(after.metadata, changed.metadata);
    assert!(!after.is_aside, "an update leaves the aside flag as it is");
    assert_eq!((after.parent, after.created_at), (before.parent, before.created_at));
    assert!(!provider.update(&changed)?.is_changed);
    probe.fold("s", "a", "b")?;
    assert_eq!(ids(&provider.update(&message("b"))?.covered_by), "s");
    assert_eq!(probe.head()?, "a b c");
    Ok(())
}

/// Reads a message that must be there.
fn read(probe: &Probe, letter: &str) -> Result<Message> {
    let session = probe.provider.id().clone();
    let unknown = Error::UnknownMessage { session, id: id(letter) };
    probe.provider.message(&id(letter))?.ok_or(unknown)
}

fn deletes(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb db ea")?;
    let deleted = probe.delete("b")?;
    assert_eq!(deleted.messages, [id("b")]);
    assert_eq!((probe.raw("c")?, probe.raw("d")?), ("a c".into(), "a d".into()));
    assert_eq!(probe.children(Some("a"))?, "c d e");
    assert_eq!(provider.path_length(Some(&id("c")))?, 2);
    assert_eq!(provider.message(&id("c"))?.and_then(|message| message.parent), Some(id("a")));
    assert_unknown(provider.history(Some(&id("b"))));
    assert_unknown(probe.delete("b"));
    probe.delete("a")?;
    assert_eq!((probe.children(None)?, probe.raw("c")?), ("c d e".into(), "c".into()));
    // What was deleted may be said again, elsewhere.
    assert!(provider.append(&Place::To(id("e")), &[message("b")])?[0].is_new);
    assert_eq!(probe.raw("b")?, "e b");
    probe.delete("c c d e b")?;
    assert_eq!((probe.children(None)?, provider.latest_leaf()?), (String::new(), None));
    Ok(())
}

fn head_after_delete(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb")?;
    probe.delete("c")?;
    assert_eq!(probe.head()?, "a b");
    probe.draw("da")?;
    probe.provider.append(&Place::To(id("b")), &[message("e")])?;
    probe.delete("b")?;
    probe.delete("e")?;
    assert_eq!(probe.head()?, "a");
    probe.provider.append(&Place::Head, &[message("f")])?;
    assert_eq!(probe.head()?, "a f");
    Ok(())
}

fn clears(probe: &Probe) -> Result<()> {
    probe.draw("a- ba")?;
    probe.fold("s", "a", "b")?;
    probe.provider.clear()?;
    assert_eq!((probe.head()?, probe.children(None)?), (String::new(), String::new()));
    assert!(probe.provider.compactions()?.is_empty());
    assert_eq!(probe.provider.message(&id("a"))?, None);
    probe.draw("b- ab")?;
    assert_eq!(probe.history("a")?, "b a");
    Ok(())
}

fn summaries(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb dc xb")?;
    probe.fold("s", "b", "c")?;
    for (leaf, shown) in [("d", "a [s] d"), ("c", "a [s]"), ("b", "a b"), ("x", "a b x")] {
        assert_eq!(probe.history(leaf)?, shown, "the history at {leaf}");
    }
    assert_eq!(probe.raw("d")?, "a b c d");
    assert_eq!(provider.path_length(Some(&id("d")))?, 4);
    let first = provider.history(Some(&id("d")))?;
    assert_eq!(first, provider.history(Some(&id("d")))?, "two reads of one state are equal");
    let stored = provider.compactions()?;
    assert_eq!((stored[0].count, stored[0].summary.as_str()), (2, "summary s"));
    assert_eq!((&stored[0].first, &stored[0].last), (&id("b"), &id("c")));
    assert_eq!(stored[0].details, Some(Json::from(serde_json::json!({"of": "s"}))));
    assert_eq!(first[1], stored[0].to_message(Some(id("a"))));
    assert_eq!(provider.summary(&"s".into())?.as_ref(), Some(&first[1]));
    assert_eq!(drawn(&provider.expand(&"s".into())?), "b c");
    // One whose id stands is left as it is.
    probe.fold("s", "a", "a")?;
    assert_eq!(provider.compactions()?, stored);
    Ok(())
}

fn summary_ends(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc ed xb")?;
    for (first, last) in [("c", "b"), ("x", "e"), ("c", "x")] {
        let answer = probe.fold("s", first, last);
        assert!(matches!(answer, Err(Error::NotAncestor { .. })), "{first}..{last}: {answer:?}");
    }
    probe.fold("s", "b", "d")?;
    match probe.fold("t", "c", "e") {
        Err(Error::InsideSummary { compaction, id: given }) => {
            assert_eq!((compaction, given), ("s".into(), id("c")));
        }
        answer => panic!("an end inside a summary should be Error::InsideSummary, not {answer:?}"),
    }
    assert_eq!(probe.history("e")?, "a [s] e");
    // Where the summary does not show, its messages are items themselves.
    probe.fold("u", "a", "c")?;
    assert_eq!((probe.history("c")?, probe.history("e")?), ("[u]".into(), "a [s] e".into()));
    assert_eq!(probe.history("x")?, "a b x");
    Ok(())
}

fn nesting(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc ed")?;
    probe.fold("s", "b", "c")?;
    probe.fold("t", "b", "d")?;
    assert_eq!(probe.history("e")?, "a [t] e");
    assert_eq!(probe.history("c")?, "a [s]");
    probe.fold("u", "a", "d")?;
    assert_eq!(probe.history("e")?, "[u] e");
    probe.fold("v", "a", "d")?;
    assert_eq!(probe.history("e")?, "[v] e");
    let made: Vec<CompactionId> =
        probe.provider.compactions()?.into_iter().map(|compaction| compaction.id).collect();
    assert_eq!(ids(&made), "s t u v");
    assert_eq!(drawn(&probe.provider.expand(&"v".into())?), "a b c d");
    Ok(())
}

fn asides(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    provider.append(&Place::Head, &[message("a"), message("b").as_aside(), message("c")])?;
    assert_eq!((probe.history("c")?, probe.raw("c")?), ("a c".into(), "a b c".into()));
    assert_eq!(provider.history(None)?[1].parent, Some(id("b")));
    assert_eq!(provider.path_length(None)?, 3);
    assert!(provider.message(&id("b"))?.is_some_and(|message| message.is_aside));
    let answer = probe.fold("s", "b", "b");
    assert!(matches!(answer, Err(Error::NothingToFold { .. })), "{answer:?}");
    probe.fold("s", "b", "c")?;
    assert_eq!(probe.history("c")?, "a [s]");
    Ok(())
}

fn deletes_under_summaries(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc ed")?;
    probe.fold("s", "b", "c")?;
    probe.fold("t", "a", "d")?;
    let deleted = probe.delete("b")?;
    assert_eq!(ids(&deleted.covered_by), "s t");
    assert_eq!((probe.history("e")?, probe.history("c")?), ("[t] e".into(), "a [s]".into()));
    let deleted = probe.delete("c")?;
    assert_eq!(
        (ids(&deleted.compactions_gone), ids(&deleted.covered_by)),
        ("s".into(), "t".into())
    );
    // Its end is a tombstone now, and goes with the last message below.
    assert_eq!(ids(&probe.delete("d")?.covered_by), "t");
    assert_eq!(probe.history("e")?, "[t] e");
    assert_eq!(ids(&probe.delete("e")?.compactions_gone), "t");
    assert_eq!((probe.history("a")?, probe.provider.compactions()?.len()), ("a".into(), 0));
    probe.draw("fa gf hg")?;
    probe.fold("u", "a", "f")?;
    probe.fold("v", "a", "h")?;
    let deleted = probe.delete("h")?;
    assert_eq!(
        (ids(&deleted.compactions_gone), ids(&deleted.compactions_back)),
        ("v".into(), "u".into())
    );
    assert_eq!(probe.history("g")?, "[u] g");
    Ok(())
}

fn searches(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    let all = || Scope::Session(provider.id().clone());
    let path = |leaf: Option<&str>| Scope::Path(provider.id().clone(), leaf.map(id));
    for (letter, parent, text) in [
        ("a", None, "Which colour shall the door have?"),
        ("b", Some("a"), "The door shall be red."),
        ("c", Some("a"), "Green, and the window as well."),
    ] {
        let place = parent.map_or(Place::Root, |parent| Place::To(id(parent)));
        provider.append(&place, &[Message::user(text).with_id(letter)])?;
    }
    assert_eq!(probe.found("door", all())?, "a b");
    assert_eq!(probe.found("DOOR red", all())?, "b");
    assert_eq!(probe.found("door", path(None))?, "a");
    assert_eq!(probe.found("door", path(Some("b")))?, "a b");
    assert_eq!(probe.found("elephant", all())?, "");
    let found = provider.search(&SearchRequest::new("red", all()))?;
    let hit = &found.hits[0];
    assert_eq!((&hit.session, hit.on_path, &hit.under), (provider.id(), false, &None));
    assert!(hit.snippet.text.contains("red"));
    for text in ["", "\"", "AND", "a OR", "-", "*", "role:", "\0", "') --"] {
        provider.search(&SearchRequest::new(text, all()))?;
    }
    probe.fold("s", "a", "c")?;
    let found = provider.search(&SearchRequest::new("colour", all()))?;
    assert_eq!((found.hits[0].on_path, &found.hits[0].under), (true, &Some("s".into())));
    provider.update(&Message::user("It shall be blue.").with_id("b"))?;
    assert_eq!(
        (probe.found("red", all())?, probe.found("blue", all())?),
        (String::new(), "b".into())
    );
    probe.delete("b")?;
    assert_eq!(probe.found("blue", all())?, "");
    provider.clear()?;
    assert_eq!(probe.found("window", all())?, "");
    Ok(())
}

fn streams(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc ed")?;
    probe.fold("s", "b", "c")?;
    for (view, shown) in [(View::head(), "a [s] d e"), (View::at(&id("d")).raw(), "a b c d")] {
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let Some(mut cursor) = supported(probe.provider.cursor(&view, order))? else {
                return Ok(());
            };
            assert_eq!(cursor.total(), shown.split(' ').count() as u64);
            let mut read = read_by(&mut *cursor, 2)?;
            if order == Order::NewestFirst {
                read.reverse();
            }
            assert_eq!(drawn(&read), shown);
        }
    }
    let mut cursor = probe.provider.cursor(&View::head(), Order::OldestFirst)?;
    assert!(!cursor.skip_past(&id("x"))?);
    assert!(cursor.skip_past(&CompactionId::from("s").as_message())?);
    assert_eq!(drawn(&read_by(&mut *cursor, 9)?), "d e");
    let stats = probe.provider.row_stats(None)?;
    assert_eq!(stats.len(), 5);
    for (stat, message) in stats.iter().zip(probe.provider.raw_history(None)?) {
        assert_eq!((&stat.id, &stat.role), (&message.id, &message.role));
        assert_eq!(
            (stat.tokens, stat.bytes),
            (message.tokens(), crate::message::stored_bytes(&message)?)
        );
    }
    if let Some(mut cursor) = supported(probe.provider.all_messages())? {
        assert_eq!(drawn(&read_by(&mut *cursor, 2)?), "a b c d e");
    }
    Ok(())
}

fn read_by(cursor: &mut dyn Cursor, limit: usize) -> Result<Vec<Message>> {
    let mut read = Vec::new();
    loop {
        let batch = cursor.next(limit)?;
        assert!(batch.len() <= limit, "a batch is within its limit");
        if batch.is_empty() {
            return Ok(read);
        }
        read.extend(batch);
    }
}

fn heads(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba ca")?;
    if supported(provider.checkout(Some(&id("b"))))?.is_none() {
        return Ok(());
    }
    assert_eq!((provider.head()?, probe.head()?), (Some(id("b")), "a b".into()));
    assert_unknown(provider.checkout(Some(&id("x"))));
    provider.append(&Place::Head, &[message("d")])?;
    assert_eq!(probe.head()?, "a b d");
    if supported(provider.undo_head())? == Some(true) {
        assert_eq!(probe.head()?, "a c");
        assert!(provider.redo_head()?);
        assert_eq!((probe.head()?, provider.redo_head()?), ("a b d".into(), false));
        let log = provider.head_log()?;
        assert_eq!(log.iter().filter(|entry| entry.is_present).count(), 1);
    }
    provider.checkout(None)?;
    assert_eq!((provider.head()?, probe.head()?), (None, String::new()));
    provider.append(&Place::Head, &[message("r")])?;
    assert_eq!(probe.children(None)?, "a r");
    Ok(())
}

fn labels(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb")?;
    if supported(provider.label("y", Some(&id("a"))))?.is_none() {
        return Ok(());
    }
    provider.label("x", Some(&id("b")))?;
    provider.label("y", Some(&id("c")))?;
    assert_unknown(provider.label("z", Some(&id("x"))));
    let all = || -> Result<String> {
        let labels = provider.labels()?;
        let names: Vec<_> =
            labels.iter().map(|label| format!("{}={}", label.name, label.id)).collect();
        Ok(names.join(" "))
    };
    assert_eq!(all()?, "x=b y=c");
    probe.delete("b")?;
    assert_eq!(all()?, "y=c");
    provider.label("y", None)?;
    provider.label("y", None)?;
    assert_eq!(all()?, "");
    Ok(())
}

fn leaves(probe: &Probe) -> Result<()> {
    probe.draw("a- ba ca db r-")?;
    let Some(leaves) = supported(probe.provider.leaves())? else { return Ok(()) };
    assert_eq!(leaves, [id("c"), id("d"), id("r")]);
    Ok(())
}

fn branches(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb da eb fe gd")?;
    let Some(deleted) = supported(probe.provider.delete_branch(&id("b")))? else { return Ok(()) };
    assert_eq!(deleted.messages, ["b", "c", "e", "f"].map(id));
    assert_eq!((probe.children(Some("a"))?, probe.raw("g")?), ("d".into(), "a d g".into()));
    assert_unknown(probe.provider.delete_branch(&id("c")));
    Ok(())
}

fn removals(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc")?;
    probe.fold("s", "a", "b")?;
    probe.fold("t", "a", "c")?;
    if supported(probe.provider.remove_compaction(&"t".into()))?.is_none() {
        return Ok(());
    }
    assert_eq!(probe.history("d")?, "[s] c d");
    let answer = probe.provider.remove_compaction(&"t".into());
    assert!(matches!(answer, Err(Error::UnknownCompaction { .. })), "{answer:?}");
    probe.provider.remove_compaction(&"s".into())?;
    assert_eq!(probe.history("d")?, "a b c d");
    Ok(())
}

fn imports(probe: &Probe) -> Result<()> {
    use crate::outcome::Arrival::{Added, Differs, Known};
    let record = |letter: &str, parent: Option<&str>| Incoming {
        record: format!("record {letter}"),
        parent: parent.map(id),
        message: message(letter),
    };
    let records = [record("a", None), record("b", Some("a")), record("c", Some("a"))];
    let Some(arrivals) = supported(probe.provider.import(&records))? else { return Ok(()) };
    assert_eq!(arrivals, [Added, Added, Added]);
    assert_eq!((probe.head()?, probe.children(Some("a"))?), ("a b".into(), "b c".into()));
    probe.delete("c")?;
    assert_eq!(probe.provider.import(&records)?, [Known, Known, Known]);
    assert_eq!(probe.provider.message(&id("c"))?, None);
    let mut other = record("b", None);
    other.record = "another".to_owned();
    other.message = Message::user("other").with_id("b");
    assert_eq!(probe.provider.import(&[other])?, [Differs]);
    assert_unknown(probe.provider.import(&[record("d", None), record("e", Some("x"))]));
    assert_eq!(probe.provider.message(&id("d"))?, None);
    Ok(())
}

fn forks(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc xb")?;
    probe.fold("s", "a", "b")?;
    probe.fold("t", "a", "d")?;
    let details = crate::outcome::SessionDetails::default();
    let name = SessionId::from(format!("fork of {}", probe.provider.id()));
    let Some(fork) = supported(probe.provider.fork(&id("c"), &name, &details))? else {
        return Ok(());
    };
    let fork = Probe { provider: fork };
    assert_eq!(*fork.provider.id(), name);
    assert_eq!((fork.history("c")?, fork.head()?), ("[s] c".into(), "a b c".into()));
    assert_eq!(fork.provider.message(&id("x"))?, None);
    fork.provider.append(&Place::Head, &[message("n")])?;
    assert_eq!((probe.children(Some("c"))?, fork.children(Some("c"))?), ("d".into(), "n".into()));
    let again = probe.provider.fork(&id("c"), &name, &details);
    assert!(matches!(again.err(), Some(Error::SessionExists { .. })));
    Ok(())
}

fn threads(probe: &Probe) -> Result<()> {
    const THREADS: usize = 4;
    const EACH: usize = 25;
    let write = |thread: usize| -> Result<()> {
        for n in 0..EACH {
            let message = Message::user("x").with_id(format!("{thread}-{n}"));
            probe.provider.append(&Place::Head, &[message])?;
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (0..THREADS).map(|at| scope.spawn(move || write(at))).collect();
        for writer in writers {
            writer.join().unwrap_or_else(|_| panic!("a writing thread panicked"))?;
        }
        Ok(())
    })?;
    assert_eq!(probe.provider.path_length(None)?, (THREADS * EACH) as u64);
    Ok(())
}
