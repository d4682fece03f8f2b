//! A fork reads like its origin, byte for byte; from then on no verb on one of them changes the other.

use crate::common::random::cases;
use proptest::prelude::*;
use talktree::{Block, Error, Message, MessageId, Result, Session, SessionDetails, Store};
use talktree_import::export::{content_hash, export_jsonl};

#[derive(Debug, Clone)]
enum Step {
    Append { at: usize, text: String, is_hidden: bool },
    Update { at: usize, text: String },
    Delete { at: usize },
    DeleteBranch { at: usize },
    Compact { from: usize, to: usize },
    RemoveCompaction { at: usize },
    Checkout { at: usize },
    UndoHead,
    Label { at: usize, name: usize },
    Unlabel { name: usize },
    Remember { text: String },
    Erase { at: usize },
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let (at, text) = (0..40_usize, "[a-z]{3,8}( [a-z]{3,8}){0,12}");
    prop_oneof![
        12 => (at.clone(), text, any::<bool>()).prop_map(|(at, text, hidden)| Step::Append { at, text, is_hidden: hidden && at % 5 == 0 }),
        2 => (at.clone(), text).prop_map(|(at, text)| Step::Update { at, text }),
        2 => at.clone().prop_map(|at| Step::Delete { at }),
        1 => at.clone().prop_map(|at| Step::DeleteBranch { at }),
        4 => (at.clone(), at.clone()).prop_map(|(from, to)| Step::Compact { from, to }),
        1 => at.clone().prop_map(|at| Step::RemoveCompaction { at }),
        2 => at.clone().prop_map(|at| Step::Checkout { at }),
        1 => Just(Step::UndoHead),
        1 => (at.clone(), 0..3_usize).prop_map(|(at, name)| Step::Label { at, name }),
        1 => (0..3_usize).prop_map(|name| Step::Unlabel { name }),
        1 => text.prop_map(|text| Step::Remember { text }),
        1 => at.prop_map(|at| Step::Erase { at }),
    ]
}

/// Returns the ids of all messages of a session, oldest first.
fn ids(chat: &Session) -> Result<Vec<MessageId>> {
    chat.all_messages().map(|message| Ok(message?.id)).collect()
}

fn run(chat: &Session, step: &Step) -> Result<()> {
    let all = ids(chat)?;
    let pick = |at: usize| all.get(at % all.len().max(1));
    match step {
        Step::Append { at, text, is_hidden } => {
            let message = if at % 2 == 0 { Message::user(text) } else { Message::assistant(text) };
            let message = if *is_hidden { message.hidden() } else { message };
            match pick(*at).filter(|_| at % 4 == 0) {
                Some(parent) => chat.append_to(parent, message)?,
                None => chat.append(message)?,
            };
        }
        Step::Update { at, text } => {
            if let Some(id) = pick(*at) {
                chat.update(Message::user(text).with_id(id.clone()))?;
            }
        }
        Step::Delete { at } => {
            if let Some(id) = pick(*at) {
                chat.delete([id])?;
            }
        }
        Step::DeleteBranch { at } => {
            if let Some(id) = pick(*at).filter(|_| at % 3 == 0) {
                chat.delete_branch(id)?;
            }
        }
        Step::Compact { from, to } => {
            let path: Vec<MessageId> =
                chat.raw_history()?.into_iter().map(|message| message.id).collect();
            if !path.is_empty() {
                let (from, to) = (from % path.len(), to % path.len());
                // A range that cuts a summary, and a summary that lengthens the history, are refused.
                let _ = chat.add_compaction("Much.", &path[from.min(to)], &path[from.max(to)]);
            }
        }
        Step::RemoveCompaction { at } => {
            let all = chat.compactions()?;
            if let Some(compaction) = all.get(at % all.len().max(1)) {
                chat.remove_compaction(&compaction.id)?;
            }
        }
        Step::Checkout { at } => {
            if let Some(id) = pick(*at) {
                chat.checkout(id)?;
            }
        }
        Step::UndoHead => {
            chat.undo_head()?;
        }
        Step::Label { at, name } => {
            if let Some(id) = pick(*at) {
                chat.label(&format!("label {name}"), id)?;
            }
        }
        Step::Unlabel { name } => {
            let _ = chat.unlabel(&format!("label {name}")); // if there is one
        }
        Step::Remember { text } => {
            chat.context().set("memory", text)?;
        }
        Step::Erase { at } => {
            if let Some(id) = pick(*at) {
                let _ = chat.erase([id])?;
            }
        }
        Step::Clear => chat.clear()?,
    }
    Ok(())
}

fn json(messages: Vec<Message>) -> String {
    serde_json::to_string(&messages).unwrap()
}

/// Everything that a program can read of a session, except where it was forked: the id of an erased message is erased
/// there, too.
fn everything(store: &Store, chat: &Session) -> Result<Vec<String>> {
    let mut info = chat.info()?;
    if let Some(info) = &mut info {
        info.fork_point = None;
    }
    let mut seen = vec![
        json(chat.history()?),
        json(chat.raw_history()?),
        json(chat.all_messages().collect::<Result<_>>()?),
        format!("{:?}", chat.head()?),
        format!("{:?}", chat.head_log()?),
        format!("{:?}", chat.labels()?),
        format!("{:?}", chat.compactions()?),
        format!("{:?}", chat.row_stats()?),
        format!("{info:?}"),
        format!("{:?}", chat.blocks()?),
        chat.prompt()?,
        chat.visible_tokens()?.to_string(),
        chat.tree()?.to_string(),
    ];
    for leaf in chat.leaves()? {
        seen.push(json(chat.at(&leaf).history()?));
    }
    let hits = store.search("a*").session(chat.id().clone()).limit(100).run()?.hits;
    seen.extend(hits.iter().map(|hit| format!("{:?} {}", hit.id, hit.snippet)));
    Ok(seen)
}

fn opened(store: &Store, id: &str) -> Result<Session> {
    store.session_builder(id).block("memory", Block::stored()).cached_prompt().open()
}

fn check(before: &[Step], at: usize, after: &[(bool, Step)]) -> Result<()> {
    let store = Store::open_in_memory()?;
    let origin = opened(&store, "origin")?;
    origin.append(Message::user("the first message"))?;
    for step in before {
        run(&origin, step)?;
    }
    if ids(&origin)?.is_empty() {
        origin.append(Message::user("all others are gone"))?;
    }
    let all = ids(&origin)?;
    let at = &all[at % all.len()];
    origin.fork_as(&"fork".into(), at, "fork")?;
    let fork = opened(&store, "fork")?;

    // The path is equal: as stored, and as a model sees it.
    assert_eq!(json(fork.raw_history()?), json(origin.at(at).raw_history()?));
    assert_eq!(json(fork.history()?), json(origin.at(at).history()?));

    for (is_fork, step) in after {
        let (changed, other) = if *is_fork { (&fork, &origin) } else { (&origin, &fork) };
        let expected = everything(&store, other)?;
        run(changed, step)?;
        assert_eq!(everything(&store, other)?, expected, "{step:?}");
    }
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_verb_on_a_fork_or_its_origin_changes_the_other(
        before in prop::collection::vec(step(), 0..40),
        at in 0..40_usize,
        after in prop::collection::vec((any::<bool>(), step()), 1..16),
    ) {
        check(&before, at, &after).unwrap();
    }
}

#[test]
fn clearing_and_removing_one_leaves_the_other() -> Result<()> {
    let store = Store::open_in_memory()?;
    let origin = opened(&store, "origin")?;
    let last =
        origin.append_all((0..40).map(|n| Message::user(format!("about {n}"))))?.pop().unwrap().id;
    origin.fork_as(&"fork".into(), &last, "fork")?;
    let fork = opened(&store, "fork")?;

    let expected = everything(&store, &fork)?;
    run(&origin, &Step::Clear)?;
    assert_eq!(everything(&store, &fork)?, expected);
    store.remove(&"origin".into())?;
    assert_eq!(json(fork.raw_history()?).matches("about ").count(), 40);

    let copy = fork.fork_as(&"copy".into(), &last, "copy")?;
    let expected = everything(&store, &copy)?;
    let details = SessionDetails { model: Some("m".to_owned()), ..SessionDetails::default() };
    fork.set_details(&details)?;
    store.rename(&"fork".into(), "another name")?;
    assert_eq!(everything(&store, &copy)?, expected);
    Ok(())
}

/// The fork ended with a tombstone without children: `verify` called the store damaged, the fork had no leaf, and a copy of
/// the store did not have the summary.
#[test]
fn a_fork_at_a_summary_whose_last_message_is_deleted_ends_at_the_message_above() -> Result<()> {
    /// The ranges that are compacted, what is deleted, and the history of the fork at the last summary.
    type Case<'a> = (&'a [(usize, usize)], &'a [usize], &'a [&'a str]);
    let cases: [Case<'_>; 5] = [
        (&[(1, 3)], &[3], &["m0", "1..3"]),
        (&[(1, 3)], &[2, 3], &["m0", "1..3"]),
        (&[(2, 3), (1, 3)], &[3], &["m0", "1..3"]),
        (&[(1, 2), (1, 3)], &[3], &["m0", "1..3"]),
        // This one reaches further back, and is not what the origin shows there.
        (&[(1, 3), (0, 2)], &[3], &["m0", "1..3"]),
    ];
    for (ranges, deleted, history) in cases {
        let store = Store::open_in_memory()?;
        let chat = store.session("origin")?;
        let ids: Vec<MessageId> = (0..5).map(|n| MessageId::from(format!("m{n}"))).collect();
        chat.append_all(ids.iter().map(|id| Message::user(id.to_string()).with_id(id.clone())))?;
        let mut at = None;
        for (first, last) in ranges {
            let summary = format!("{first}..{last}");
            let added = chat.add_compaction(&summary, &ids[*first], &ids[*last])?.id;
            if summary == history[1] {
                at = Some(added.as_message());
            }
        }
        let at = at.unwrap();
        chat.delete(deleted.iter().map(|n| &ids[*n]))?;
        let texts = |view: Vec<Message>| view.iter().map(Message::text).collect::<Vec<_>>();
        assert_eq!(texts(chat.at(&at).history()?), history, "{ranges:?}");

        let fork = chat.fork_as(&"fork".into(), &at, "fork")?;
        assert_eq!(texts(fork.history()?), history, "{ranges:?}");
        assert_eq!(texts(fork.raw_history()?), texts(chat.at(&at).raw_history()?));
        assert_eq!(fork.leaves()?.len(), 1);
        assert_eq!(store.verify(|_| {})?.damages, []);

        let mut file = Vec::new();
        export_jsonl(&store, &mut file)?;
        let copy = Store::open_in_memory()?;
        talktree_import::import_reader(
            &copy,
            "e",
            std::io::Cursor::new(&file),
            &Default::default(),
            |_| {},
        )?;
        assert_eq!(content_hash(&copy)?, content_hash(&store)?, "{ranges:?}");
        fork.append(Message::user("and then?"))?;
        assert_eq!(texts(fork.history()?).len(), history.len() + 1);
    }
    Ok(())
}

#[test]
fn a_fork_at_a_summary_of_which_no_message_is_left_is_refused() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("origin")?;
    let ids: Vec<MessageId> = (0..4)
        .map(|n| chat.append(Message::user(format!("m{n}"))).map(|it| it.id))
        .collect::<Result<_>>()?;
    let summary = chat.add_compaction("1..2", &ids[1], &ids[2])?.id.as_message();
    chat.delete(&ids[1..3])?;
    let refused = chat.fork(&summary, "fork");
    assert!(matches!(refused, Err(Error::UnknownMessage { .. })), "{refused:?}");
    assert_eq!(store.sessions()?.len(), 1);
    Ok(())
}

/// It led every list, and no rule for idle sessions ever met it.
#[test]
fn a_fork_at_a_message_of_the_future_counts_as_written_now() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("origin")?;
    let mut message = Message::user("hello");
    message.created_at += chrono::Duration::days(365_000);
    let id = chat.append(message)?.id;
    let fork = chat.fork(&id, "fork")?;
    let last =
        |session: &Session| session.info().map(|info| info.unwrap().last_message_at.unwrap());
    assert!(last(&fork)? - last(&chat)? < chrono::Duration::minutes(1));
    Ok(())
}
