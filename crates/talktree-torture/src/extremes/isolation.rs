//! Two sessions with equal ids and texts: no verb of one may return text of the other or change it.
//!
//! The library's own tests use ids that only one session has; here both sessions have half of all ids.

use talktree::{
    Budget, Compaction, CompactionId, Json, Message, MessageId, Parent, Result as Answer, Session,
    Store,
};
use talktree_import::export::{export_markdown, session_hash};

use super::Args;
use crate::{Report, Result};

/// In every message of the other session that differs, and nowhere else.
const SECRET: &str = "betasecret";
/// Messages in each session.
const MESSAGES: usize = 40;

/// Calls verbs of one session with ids of both.
pub(super) fn run(args: &Args, report: &mut Report) -> Result<()> {
    let mut dice = fastrand::Rng::with_seed(report.seed());
    let store = Store::open_in_memory()?;
    let (chat, other) = (store.session("alpha")?, store.session("beta")?);
    fill(&chat, "alphaopen", "a")?;
    fill(&other, SECRET, "b")?;
    let before = session_hash(&other)?;
    let (mut succeeded, mut refused) = (0, 0);
    for round in 0..args.foreign_ids {
        let verb = dice.usize(..VERBS.len());
        let ids = [pick(&mut dice), pick(&mut dice)];
        let replay = format!(
            "just torture --seed {} extremes --messages 1000 --children 1000 --branches 100 --foreign-ids {}",
            report.seed(),
            round + 1
        );
        let answer = VERBS[verb].1(&chat, &ids[0], &ids[1]);
        let text = match &answer {
            Ok(text) => text.clone(),
            Err(error) => error.to_string(),
        };
        if text.contains(SECRET) {
            report.failure(
                format!("{} with {ids:?} returns text of another session: {text}", VERBS[verb].0),
                &replay,
            );
        }
        if answer.is_ok() {
            succeeded += 1
        } else {
            refused += 1
        }
        if session_hash(&other)? != before {
            report.failure(
                format!("{} with {ids:?} changed another session", VERBS[verb].0),
                &replay,
            );
            break;
        }
        // Cleared or deleted messages are appended again, so that there is something to find.
        if chat.path_length()? < 5 || round.is_multiple_of(50) {
            chat.clear()?;
            fill(&chat, "alphaopen", "a")?;
        }
    }
    let damages = store.verify(|_| {})?.damages;
    if !damages.is_empty() {
        report.failure(
            format!("after verbs with ids of another session: {damages:?}"),
            "just torture extremes",
        );
    }
    report.fact("calls with foreign ids", format!("{succeeded} succeeded, {refused} refused"));
    report.fact("verbs called with foreign ids", VERBS.len());
    Ok(())
}

/// Fills a session. Odd messages have the same text in both sessions, even ones differ; an id starts with `m` in both
/// or with the session's letter.
fn fill(chat: &Session, word: &str, letter: &str) -> Result<()> {
    for n in 0..MESSAGES {
        let text = if n % 2 == 0 { format!("{word} {n}") } else { format!("said in both {n}") };
        let id = if n % 4 < 2 { format!("m{n}") } else { format!("{letter}{n}") };
        chat.append(Message::user(text).with_id(id))?;
    }
    chat.append_to(&"m4".into(), Message::assistant(format!("{word} hidden")).with_id("side"))?;
    chat.label("shared", &"m5".into())?;
    chat.label(letter, &"m8".into())?;
    for (id, first, last) in [("shared", "m0", "m1"), (letter, "m8", "m9")] {
        chat.import_compaction(&compaction(id, word, first, last))?;
    }
    Ok(())
}

fn pick(dice: &mut fastrand::Rng) -> String {
    let n = dice.usize(..MESSAGES);
    match dice.u8(..10) {
        0 => "shared".to_owned(),
        1 => "b".to_owned(),
        2 => "compaction_b".to_owned(),
        3 => "compaction_shared".to_owned(),
        4 => "side".to_owned(),
        5 | 6 => format!("b{n}"),
        7 => format!("a{n}"),
        _ => format!("m{n}"),
    }
}

/// A verb called with one or two ids; returns the debug text of its value.
type Verb = fn(&Session, &str, &str) -> Answer<String>;

fn words(answer: impl std::fmt::Debug) -> String {
    format!("{answer:?}")
}

fn collected(stream: talktree::Messages) -> Answer<String> {
    stream.collect::<Answer<Vec<Message>>>().map(words)
}

fn new_message(text: &str) -> Message {
    Message::user(format!("new {text}"))
}

const VERBS: &[(&str, Verb)] = &[
    ("message", |chat, id, _| chat.message(&id.into()).map(words)),
    ("history of a path", |chat, id, _| chat.at(&id.into()).history().map(words)),
    ("raw_history of a path", |chat, id, _| chat.at(&id.into()).raw_history().map(words)),
    ("history", |chat, _, _| chat.history().map(words)),
    ("path_length of a path", |chat, id, _| chat.at(&id.into()).path_length().map(words)),
    ("row_stats of a path", |chat, id, _| chat.at(&id.into()).row_stats().map(words)),
    ("branches", |chat, id, _| chat.branches(&id.into()).map(words)),
    ("siblings", |chat, id, _| chat.siblings(&id.into()).map(words)),
    ("is_on_path", |chat, id, _| chat.is_on_path(&id.into()).map(words)),
    ("is_ancestor", |chat, id, other| chat.is_ancestor(&id.into(), &other.into()).map(words)),
    ("iter of a path", |chat, id, _| collected(chat.at(&id.into()).iter())),
    ("iter_rev of a path", |chat, id, _| collected(chat.at(&id.into()).raw().iter_rev())),
    ("all_messages", |chat, _, _| collected(chat.all_messages())),
    ("recent of a path", |chat, id, _| chat.at(&id.into()).recent(Budget::messages(5)).map(words)),
    ("page before", |chat, id, _| chat.page().before(&id.into()).run().map(words)),
    ("page after", |chat, id, _| chat.page().after(&id.into()).run().map(words)),
    ("page of a path", |chat, id, other| {
        chat.at(&id.into()).page().after(&other.into()).run().map(words)
    }),
    ("search on a path", |chat, id, _| {
        chat.at(&id.into()).search(SECRET).run().map(|found| words(found.hits))
    }),
    ("search", |chat, _, _| {
        chat.search(format!("{SECRET} OR both")).run().map(|found| words(found.hits))
    }),
    ("search by session", |chat, id, _| {
        chat.search(format!("{id} in:all session:alpha")).run().map(|found| words(found.hits))
    }),
    ("compaction", |chat, id, _| chat.compaction(&id.into()).map(words)),
    ("compactions", |chat, _, _| chat.compactions().map(words)),
    ("expand_raw", |chat, id, _| chat.expand_raw(&id.into()).map(words)),
    ("labelled", |chat, id, _| chat.labelled(id).map(words)),
    ("labels", |chat, _, _| chat.labels().map(words)),
    ("head_log", |chat, _, _| chat.head_log().map(words)),
    ("tree", |chat, _, _| chat.tree().map(words)),
    ("info", |chat, _, _| chat.info().map(words)),
    ("export_markdown", |chat, id, _| {
        let mut text = Vec::new();
        export_markdown(&chat.at(&id.into()), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }),
    ("append_to", |chat, id, _| chat.append_to(&id.into(), new_message(id)).map(words)),
    ("append_all_to", |chat, id, _| {
        chat.append_all_to(&Parent::Message(id.into()), [new_message(id), new_message(id)])
            .map(words)
    }),
    ("append_if_head", |chat, id, _| {
        chat.append_if_head(Some(&id.into()), new_message(id)).map(words)
    }),
    ("append with the id", |chat, id, _| chat.append(new_message(id).with_id(id)).map(words)),
    ("import_message", |chat, id, other| {
        chat.import_message(Some(&id.into()), new_message(id).with_id(other)).map(words)
    }),
    ("import_messages", |chat, id, other| {
        chat.import_messages([(Some(other.into()), new_message(id))]).map(words)
    }),
    ("update", |chat, id, _| chat.update(new_message(id).with_id(id)).map(words)),
    ("upsert", |chat, id, _| chat.upsert(new_message(id).with_id(id)).map(words)),
    ("delete", |chat, id, other| chat.delete([&MessageId::from(id), &other.into()]).map(words)),
    ("delete_branch", |chat, id, _| chat.delete_branch(&id.into()).map(words)),
    ("checkout", |chat, id, _| chat.checkout(&id.into()).map(words)),
    ("undo_head", |chat, _, _| chat.undo_head().map(words)),
    ("redo_head", |chat, _, _| chat.redo_head().map(words)),
    ("label", |chat, id, other| chat.label(id, &other.into()).map(words)),
    ("unlabel", |chat, id, _| chat.unlabel(id).map(words)),
    ("add_compaction", |chat, id, other| {
        chat.add_compaction("compacted", &id.into(), &other.into()).map(words)
    }),
    ("add_compaction_with", |chat, id, other| {
        chat.add_compaction_with("compacted", &id.into(), &other.into(), Json::parse("{}")?)
            .map(words)
    }),
    ("import_compaction", |chat, id, other| {
        chat.import_compaction(&compaction(id, "compacted", id, other)).map(words)
    }),
    ("remove_compaction", |chat, id, _| chat.remove_compaction(&id.into()).map(words)),
    ("fork", |chat, id, _| {
        // The id of the other session is taken: the fork must not overwrite it.
        chat.fork_as(&"beta".into(), &id.into(), "fork").map(words)
    }),
    ("clear", |chat, _, _| chat.clear().map(words)),
];

fn compaction(id: &str, summary: &str, first: &str, last: &str) -> Compaction {
    let mut compaction = Compaction::new(summary, first.into(), last.into());
    compaction.id = CompactionId::from(id);
    compaction
}
