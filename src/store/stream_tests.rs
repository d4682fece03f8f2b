//! Streams over random trees, in batches of any size, while messages and summaries are deleted.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;
use crate::session::Session;
use crate::store::Store;
use crate::view::{ExpectedHead, Order, Parent, View};

#[derive(Debug, Clone)]
struct Case {
    /// For each message the distance to its parent, and whether it is hidden.
    messages: Vec<(u8, bool)>,
    deleted_before: Vec<u8>,
    compactions: Vec<(u8, u8)>,
    leaf: u8,
    is_raw: bool,
    is_newest_first: bool,
    /// The size of a batch; the deletes follow the first batch.
    batches: Vec<u8>,
    deleted_meanwhile: Vec<u8>,
    a_compaction_removed_meanwhile: Vec<u8>,
    skipped_to: Option<u8>,
}

fn case() -> impl Strategy<Value = Case> {
    // The parent is mostly the previous message: runs of some length, with gaps between them.
    let parent = prop_oneof![6 => Just(1), 2 => 1..6_u8, 1 => 1..40_u8];
    let shape = (
        prop::collection::vec((parent, prop::bool::weighted(0.15)), 1..90),
        prop::collection::vec(any::<u8>(), 0..25),
        prop::collection::vec(any::<(u8, u8)>(), 0..8),
        any::<(u8, bool, bool)>(),
    );
    let reading = (
        prop::collection::vec(1..12_u8, 1..6),
        prop::collection::vec(any::<u8>(), 0..25),
        prop::collection::vec(any::<u8>(), 0..3),
        prop::option::weighted(0.2, any::<u8>()),
    );
    (shape, reading).prop_map(|(shape, reading)| {
        let (messages, deleted_before, compactions, (leaf, is_raw, is_newest_first)) = shape;
        let (batches, deleted_meanwhile, a_compaction_removed_meanwhile, skipped_to) = reading;
        Case {
            messages,
            deleted_before,
            compactions,
            leaf,
            is_raw,
            is_newest_first,
            batches,
            deleted_meanwhile,
            a_compaction_removed_meanwhile,
            skipped_to,
        }
    })
}

fn pick<T: Clone>(items: &[T], at: u8) -> Option<T> {
    items.get(usize::from(at) % items.len().max(1)).cloned()
}

fn all(chat: &Session) -> Result<Vec<MessageId>> {
    chat.all_messages().map(|message| Ok(message?.id)).collect()
}

fn delete(chat: &Session, picks: &[u8]) -> Result<()> {
    for at in picks {
        if let Some(id) = pick(&all(chat)?, *at) {
            chat.delete([&id])?;
        }
    }
    Ok(())
}

fn build(chat: &Session, case: &Case) -> Result<()> {
    for (n, (back, is_hidden)) in case.messages.iter().enumerate() {
        let message = Message::user(format!("text {n}")).with_id(n.to_string());
        let message = if *is_hidden { message.hidden() } else { message };
        match n.checked_sub(usize::from(*back)) {
            Some(parent) => chat.append_to(&parent.to_string().into(), message)?,
            None => chat.append_root(message)?,
        };
    }
    delete(chat, &case.deleted_before)?;
    for (a, b) in &case.compactions {
        let ids = all(chat)?;
        let Some(leaf) = pick(&ids, *a) else { continue };
        let path = chat.at(&leaf).history()?;
        if let Some(first) = pick(&path, *b) {
            // A range that cannot be compacted is skipped.
            let _ = chat.add_compaction(format!("summary {a} {b}"), &first.id, &leaf);
        }
    }
    Ok(())
}

fn check(case: &Case) -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    build(&chat, case)?;
    let Some(leaf) = pick(&all(&chat)?, case.leaf) else { return Ok(()) };
    let view = if case.is_raw { View::at(&leaf).raw() } else { View::at(&leaf) };
    let mut whole =
        if case.is_raw { chat.at(&leaf).raw_history()? } else { chat.at(&leaf).history()? };
    let order = if case.is_newest_first { Order::NewestFirst } else { Order::OldestFirst };
    if case.is_newest_first {
        whole.reverse();
    }
    let mut cursor = chat.storage().cursor(&view, order)?;
    assert_eq!(cursor.total()?, whole.len() as u64);
    let mut rest = &whole[..];
    if let Some(at) = case.skipped_to
        && let Some(message) = pick(&whole, at)
    {
        assert!(cursor.skip_past(&message.id)?);
        let at = whole.iter().position(|other| other.id == message.id);
        rest = &whole[at.map_or(0, |at| at + 1)..];
    }
    let mut sizes = case.batches.iter().cycle().map(|size| usize::from(*size));
    let first = cursor.next(sizes.next().unwrap_or(1))?;
    assert_eq!(first, &rest[..first.len()]);
    rest = &rest[first.len()..];

    delete(&chat, &case.deleted_meanwhile)?;
    for at in &case.a_compaction_removed_meanwhile {
        if let Some(compaction) = pick(&chat.compactions()?, *at) {
            chat.remove_compaction(&compaction.id)?;
        }
    }
    let there = |id: &MessageId| Ok(chat.message(id)?.is_some());
    let mut expected = Vec::new();
    for message in rest {
        if there(&message.id)? {
            expected.push(message.id.clone());
        }
    }
    let mut read = Vec::new();
    for size in sizes {
        let batch = cursor.next(size)?;
        assert!(batch.len() <= size);
        if batch.is_empty() {
            break;
        }
        for message in &batch {
            // Each message is current, including its parent.
            assert_eq!(chat.message(&message.id)?.as_ref(), Some(message));
        }
        read.extend(batch.into_iter().map(|message| message.id));
    }
    assert_eq!(read, expected);
    assert_eq!(read.iter().collect::<HashSet<_>>().len(), read.len());
    Ok(())
}

#[test]
fn a_stream_yields_its_messages_at_opening_minus_deleted_ones() {
    let cases = if cfg!(talktree_on_postgres) { 16 } else { 64 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&case(), |case| check(&case).map_err(|error| TestCaseError::fail(error.to_string())))
        .unwrap();
}

#[test]
fn a_stream_counts_what_is_left_of_its_path() -> Result<()> {
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let chat = Store::open_in_memory()?.session("s")?;
        chat.append_all((1..=100).map(|n| Message::user("text").with_id(n.to_string())))?;
        let mut cursor = chat.storage().cursor(&View::head(), order)?;
        chat.delete_branch(&"51".into())?;
        assert_eq!(cursor.total()?, 50, "{order:?}");
        chat.clear()?;
        assert_eq!(cursor.total()?, 0, "{order:?}");
        assert_eq!(cursor.next(9)?, []);
    }
    Ok(())
}

struct Ten;

impl crate::tokens::TokenCounter for Ten {
    fn name(&self) -> &str {
        "ten"
    }

    fn count_text(&self, _: &str) -> f64 {
        10.0
    }

    fn count(&self, _: &Message) -> f64 {
        10.0
    }
}

#[test]
fn an_append_of_a_known_message_does_not_return_the_figure_of_another_counter() -> Result<()> {
    let store = Store::open_in_memory()?;
    let hello = [Message::user("Hello world")];
    let tokens = |chat: &Session| -> Result<Option<u64>> {
        Ok(chat.storage().append(&Parent::Head, &ExpectedHead::Any, &hello, None)?.visible_tokens)
    };
    let plain = store.session("s")?;
    assert_eq!(tokens(&plain)?, Some(7));
    assert_eq!(tokens(&plain)?, Some(7), "a retry");
    let chat = store.session_builder("s").token_counter(Ten).open()?;
    assert_eq!(tokens(&chat)?, None);
    assert_eq!(chat.visible_tokens()?, 10);
    assert_eq!((tokens(&chat)?, tokens(&plain)?), (Some(10), None));
    Ok(())
}
