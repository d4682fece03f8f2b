//! The ledger of usage equals a count by hand: on random trees with forks, deletes and compactions.

use std::collections::BTreeMap;

use crate::common::random::cases;
use proptest::prelude::*;
use serde_json::json;
use talktree::{
    Cost, Message, MessageId, Result, Session, SessionDetails, Store, Usage, UsageGroup, UsageTotal,
};
use talktree_import::export::{content_hash, export_jsonl};

fn usage(output: u64) -> Usage {
    let cost = Some(Cost { micros: output * 3, currency: "USD".to_owned() });
    Usage { model: Some(format!("m{}", output % 3)), input: 7, output, cost, ..Usage::default() }
}

/// Returns answers, output and cost.
fn figures(total: &UsageTotal) -> (u64, u64, u64) {
    (total.answers, total.output, total.costs.iter().map(|cost| cost.micros).sum())
}

/// What a path took: each answer by what was said of it last, where it was written first.
fn of_path(
    chat: &Session,
    leaf: &MessageId,
    paid: &BTreeMap<MessageId, u64>,
) -> Result<(u64, u64, u64)> {
    let path = chat.at(leaf).raw_history()?;
    let found: Vec<u64> =
        path.iter().filter_map(|message| paid.get(&message.id).copied()).collect();
    let output = found.iter().sum();
    Ok((found.len() as u64, output, output * 3))
}

#[derive(Debug, Clone)]
enum Step {
    Answer { session: usize, at: usize, output: u64 },
    Update { session: usize, at: usize, output: u64 },
    Fork { session: usize, at: usize },
    Delete { session: usize, at: usize },
    Compact { session: usize },
    Free { session: usize, output: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let (session, at, output) = (0..3_usize, 0..20_usize, 1..100_u64);
    prop_oneof![
        5 => (session.clone(), at.clone(), output.clone()).prop_map(|(session, at, output)| Step::Answer { session, at, output }),
        1 => (session.clone(), at.clone(), output.clone()).prop_map(|(session, at, output)| Step::Update { session, at, output }),
        1 => (session.clone(), at.clone()).prop_map(|(session, at)| Step::Fork { session, at }),
        1 => (session.clone(), at).prop_map(|(session, at)| Step::Delete { session, at }),
        1 => session.clone().prop_map(|session| Step::Compact { session }),
        1 => (session, output).prop_map(|(session, output)| Step::Free { session, output }),
    ]
}

/// A session, its messages that are not deleted, and what it was charged by hand.
struct Plain {
    chat: Session,
    messages: Vec<MessageId>,
    /// Of messages written here, deleted ones included; `None` is usage of no message.
    charged: BTreeMap<Option<MessageId>, Vec<u64>>,
}

fn play(steps: &[Step]) -> Result<()> {
    let store = Store::open_in_memory()?;
    let root = store.session("root")?;
    let first = root.append(Message::user("?"))?.id;
    let mut all = vec![Plain { chat: root, messages: vec![first], charged: BTreeMap::new() }];
    for step in steps {
        let count = all.len();
        match *step {
            Step::Answer { session, at, output } => {
                let plain = &mut all[session % count];
                let message = Message::assistant("text").with_usage(&usage(output));
                let id = match plain.messages.is_empty() {
                    true => plain.chat.append_root(message)?.id,
                    false => {
                        let parent = &plain.messages[at % plain.messages.len()];
                        plain.chat.append_to(parent, message)?.id
                    }
                };
                plain.charged.insert(Some(id.clone()), vec![output]);
                plain.messages.push(id);
            }
            Step::Update { session, at, output } => {
                let plain = &mut all[session % count];
                let Some(id) = plain.messages.get(at % plain.messages.len().max(1)) else {
                    continue;
                };
                if let Some(charged) = plain.charged.get_mut(&Some(id.clone())) {
                    let message = Message::assistant("changed").with_usage(&usage(output));
                    plain.chat.update(message.with_id(id.clone()))?;
                    *charged = vec![output];
                }
            }
            Step::Fork { session, at } if count < 3 => {
                let plain = &all[session % count];
                let Some(at) = plain.messages.get(at % plain.messages.len().max(1)) else {
                    continue;
                };
                let fork = plain.chat.fork(at, "fork")?;
                let messages = fork.raw_history()?.into_iter().map(|message| message.id).collect();
                all.push(Plain { chat: fork, messages, charged: BTreeMap::new() });
            }
            Step::Delete { session, at } => {
                let plain = &mut all[session % count];
                if !plain.messages.is_empty() {
                    let id = plain.messages.remove(at % plain.messages.len());
                    plain.chat.delete([&id])?;
                }
            }
            Step::Compact { session } => {
                let chat = &all[session % count].chat;
                let path = chat.raw_history()?;
                if let (Some(first), Some(last)) = (path.first(), path.last()) {
                    // A summary that would lengthen the history is refused.
                    let _ = chat.add_compaction("They talked.", &first.id, &last.id);
                }
            }
            Step::Free { session, output } => {
                let plain = &mut all[session % count];
                plain.chat.add_usage(None, &usage(output))?;
                plain.charged.entry(None).or_default().push(output);
            }
            Step::Fork { .. } => {}
        }
    }
    let mut paid = BTreeMap::new();
    for Plain { charged, .. } in &all {
        let of_messages =
            charged.iter().filter_map(|(id, outputs)| Some((id.clone()?, outputs[0])));
        paid.extend(of_messages);
    }
    let mut whole = (0, 0, 0);
    for Plain { chat, messages, charged } in &all {
        let outputs = || charged.values().flatten();
        let output: u64 = outputs().sum();
        let expected = (outputs().count() as u64, output, output * 3);
        assert_eq!(figures(&chat.usage()?), expected, "session {:?}", chat.id());
        whole = (whole.0 + expected.0, whole.1 + expected.1, whole.2 + expected.2);
        for leaf in messages {
            assert_eq!(
                figures(&chat.at(leaf).usage()?),
                of_path(chat, leaf, &paid)?,
                "path to {leaf:?}"
            );
        }
    }
    assert_eq!(figures(&store.usage().total()?), whole);
    for report in [
        store.usage().by(UsageGroup::Model),
        store.usage().by(UsageGroup::Session),
        store.usage().by(UsageGroup::Day),
    ] {
        let rows = report.run()?;
        let output: u64 = rows.iter().map(|row| row.output).sum();
        assert_eq!(output, whole.1, "{rows:?}");
    }
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_equals_a_count_by_hand(steps in prop::collection::vec(step(), 1..40)) {
        play(&steps).map_err(|error| TestCaseError::fail(error.to_string()))?;
    }
}

#[test]
fn an_answer_in_several_records_is_counted_once_with_its_final_numbers() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    for (part, output) in [("thinking", 1), ("text", 40), ("call", 40)] {
        // As Claude Code writes them.
        let about = json!({"id": "msg_1", "model": "large", "usage": {"input_tokens": 9, "output_tokens": output}});
        chat.append(Message::assistant(part).with_metadata(json!({"message": about})))?;
    }
    let total = chat.usage()?;
    assert_eq!((total.answers, total.input, total.output), (1, 9, 40));
    Ok(())
}

#[test]
fn usage_follows_the_owner_and_outlives_the_session() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append(Message::assistant("1").with_usage(&usage(5)))?;
    let owner = Some("user:1".to_owned());
    chat.set_details(&SessionDetails { owner, ..SessionDetails::default() })?;
    chat.append(Message::assistant("2").with_usage(&usage(6)))?;
    assert_eq!(store.usage().owner("user:1").total()?.output, 11);
    store.remove(chat.id())?;
    assert_eq!(store.usage().owner("user:1").total()?.output, 11);
    assert_eq!(store.usage().session("s").total()?, UsageTotal::default());
    let rows = store.usage().by(UsageGroup::Session).run()?;
    assert_eq!((rows.len(), rows[0].group.as_deref()), (1, None));
    Ok(())
}

/// The changed copy had a row of its own beside that of the answer, and the path counted both.
#[test]
fn a_changed_copy_of_an_answer_is_not_counted_twice() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("origin")?;
    let answer = |text: &str, output: u64| {
        let usage = json!({"usage": {"input_tokens": 7, "output_tokens": output}});
        Message::assistant(text).with_id("a").with_metadata(usage)
    };
    let id = chat.append(answer("Red.", 20))?.id;
    let fork = chat.fork(&id, "fork")?;
    let figures = || -> Result<[u64; 4]> {
        let (own, path) = (fork.usage()?.output, fork.path().usage()?.output);
        let all = store.usage().run()?.iter().map(|row| row.output).sum();
        Ok([own, path, chat.path().usage()?.output, all])
    };
    assert_eq!(figures()?, [0, 20, 20, 20]);
    fork.update(answer("Blue.", 20))?;
    assert_eq!(figures()?, [0, 20, 20, 20]);
    fork.upsert(answer("Green.", 20))?;
    assert_eq!(figures()?, [0, 20, 20, 20]);
    // Another answer in its place was paid for, too.
    fork.update(answer("Yellow.", 30))?;
    assert_eq!(figures()?, [30, 30, 20, 50]);
    let free = Usage { output: 7, ..Usage::default() };
    fork.add_usage(Some(&id), &free)?;
    assert_eq!(figures()?, [7, 7, 20, 27]);
    Ok(())
}

#[test]
fn a_message_appended_again_is_not_counted_twice() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let answer = Message::assistant("4").with_id("a").with_usage(&usage(5));
    chat.append(answer.clone())?;
    chat.append(answer)?;
    chat.add_usage(Some(&"a".into()), &usage(8))?;
    assert_eq!((chat.usage()?.answers, chat.usage()?.output), (1, 8));
    assert!(chat.add_usage(Some(&"b".into()), &usage(8)).is_err());
    Ok(())
}

/// The messages of a fork counted again in a copy of the store, and a search found them twice.
#[test]
fn a_copy_of_a_store_has_the_totals_of_the_store() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("c")?;
    let said = |id: &str, output| {
        Message::assistant("a planetarium").with_id(id).with_usage(&usage(output))
    };
    let first = chat.append(said("1", 10))?.id;
    let fork = chat.fork_as(&"f".into(), &first, "f")?;
    let second = fork.append(said("2", 20))?.id;
    fork.fork_as(&"g".into(), &second, "g")?.append(said("3", 30))?;
    let mut export = Vec::new();
    export_jsonl(&store, &mut export)?;

    let copy = Store::open_in_memory()?;
    let options = talktree_import::ImportOptions::default();
    talktree_import::import_reader(&copy, "e", std::io::Cursor::new(&export), &options, |_| {})?;
    assert_eq!(content_hash(&copy)?, content_hash(&store)?);
    for id in ["c", "f", "g"] {
        let (of, copied) = (store.session(id)?, copy.session(id)?);
        assert_eq!(copied.usage()?, of.usage()?, "{id}");
        assert_eq!(copied.path().usage()?, of.path().usage()?, "{id}");
    }
    assert_eq!(figures(&copy.usage().total()?), (3, 60, 180));
    assert_eq!(copy.search("planetarium").run()?.hits.len(), 3);
    let extent = copy.erasure_extent(&talktree::Erasure::messages(chat.id(), [&first]))?;
    assert_eq!(extent.copies_left.len(), 2);
    assert_eq!(copy.verify(|_| {})?.damages, []);
    Ok(())
}

/// Two numbers near the limit of the store made the totals of everybody an error.
#[test]
fn numbers_that_no_model_takes_are_not_added() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let huge = Usage { input: 9_000_000_000_000_000_000, output: 1, ..Usage::default() };
    let why = chat.add_usage(None, &huge).unwrap_err().to_string();
    assert_eq!(
        why,
        "number of tokens \"9000000000000000000\" cannot be used: it is over the limit of 1000000000"
    );
    for _ in 0..2 {
        chat.append(Message::assistant("a").with_usage(&huge))?;
    }
    let total = store.usage().total()?;
    assert_eq!((total.answers, total.input, total.output), (2, 0, 2));
    let price = Some(Cost { micros: u64::MAX, currency: "USD".to_owned() });
    assert!(chat.add_usage(None, &Usage { cost: price, ..usage(1) }).is_err());
    Ok(())
}

/// An answer is to the author of the nearest message above it, on its path, that has one.
#[test]
fn usage_is_that_of_the_person_who_was_answered() -> Result<()> {
    let store = Store::open_in_memory()?;
    let group = store.session("group")?;
    let asks = |author: &str| Message::user("2 + 2?").from(&talktree::Author::new(author));
    let answer = |output: u64| Message::assistant("4").with_usage(&usage(output));
    let before = group.append(answer(1))?.id;
    let ann = group.append(asks("ann"))?.id;
    // With a round of tools between.
    group.append(answer(10))?;
    group.append(Message::new("tool", Vec::new()))?;
    let last = group.append(answer(20))?.id;
    group.append(asks("bob"))?;
    group.append(answer(100))?;
    // Another answer to the first question, although others wrote since.
    group.append_to(&ann, answer(1_000))?;
    group.append_to(&before, answer(7))?;
    let of = |author: &str| store.usage().author(author).total().map(|total| total.output);
    assert_eq!((of("ann")?, of("bob")?, of("eve")?), (1_030, 100, 0));
    let rows = store.usage().by(UsageGroup::Author).run()?;
    let rows: Vec<_> = rows.iter().map(|row| (row.group.as_deref(), row.output)).collect();
    assert_eq!(rows, [(Some("ann"), 1_030), (Some("bob"), 100), (None, 8)]);
    // A fork and a streamed answer count once, for the same person.
    let fork = group.fork(&last, "fork")?;
    fork.upsert(answer(1).with_id("streamed"))?;
    fork.upsert(answer(5).with_id("streamed"))?;
    assert_eq!((of("ann")?, of("bob")?), (1_035, 100));
    // Too far above.
    fork.append_all((0..300).map(|_| Message::user("more")))?;
    fork.append(answer(3))?;
    assert_eq!(of("ann")?, 1_035);
    Ok(())
}
