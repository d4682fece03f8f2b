//! The verbs that compaction, by a summarizer that needs no model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talktree::{
    CompactionOptions, CompactionOutcome, CompactionPlan, Error, Planned, Session, Store,
};

use super::{Verb, done, message, read, write};
use crate::compaction::{brief, by_words, compaction, options};

/// The window of the session that compacts by itself: much less than it holds.
const THRESHOLD: u64 = 2_000;
/// What an append answers whose compaction worked, and one whose compaction failed.
const COMPACTED: &str = "compacted";
const NOT_COMPACTED: &str = "not compacted, and heard of";

pub(super) const VERBS: &[Verb] = &[
    write("commit of a plan", |store, _| {
        let chat = store.session("chat")?;
        let plan = planned(&chat, &options())?;
        let compacted = chat.commit(plan, brief("all of it").map_err(refused)?)?;
        Ok(format!("{} {}", compacted.messages, compacted.tokens_after))
    }),
    write("update under a plan", |store, _| {
        let chat = store.session("chat")?;
        let plan = planned(&chat, &options())?;
        chat.update(message("m200", "said otherwise"))?;
        match chat.commit(plan, "They spoke of coffee.") {
            Err(Error::Stale { why }) => Ok(why.to_string()),
            Err(error) => Err(error),
            Ok(compacted) => Ok(format!("{compacted:?}")),
        }
    }),
    write("compact", |store, _| match compaction(store, "chat")?.compact()? {
        CompactionOutcome::Compacted(compacted) => {
            Ok(format!("{} {}", compacted.messages, compacted.tokens_after))
        }
        CompactionOutcome::Nothing(why) => Ok(why.to_string()),
    }),
    Verb {
        name: "append that compactions",
        changes: true,
        run: append_and_compact,
        first: Some(|store, _| {
            store.session("chat")?.append(message("new", "a new turn"))?;
            Ok(NOT_COMPACTED.to_owned())
        }),
    },
    write("compact and split", |store, _| {
        store.session("chat")?.compact_and_split_as(&"next".into(), "In brief: coffee.").map(done)
    }),
    write("checkout that leaves", |store, _| {
        let chat = store.session("chat")?;
        match chat.plan_branch_summary(&"m60".into(), &options())? {
            Some(plan) => chat.checkout_with_summary(plan, "It came to nothing.").map(done),
            None => Ok("nothing is left".to_owned()),
        }
    }),
    read("tokens of a session", |store, _| {
        store.session("chat")?.visible_tokens().map(|tokens| tokens.to_string())
    }),
    read("tokens by another counter", |store, _| {
        by_words(store, "chat")?.visible_tokens().map(|tokens| tokens.to_string())
    }),
    read("tokens counted anew", |store, _| {
        store.recount_tokens()?;
        store.session("chat")?.visible_tokens().map(|tokens| tokens.to_string())
    }),
    read("plan", |store, _| Ok(planned(&store.session("chat")?, &options())?.prompt().to_owned())),
];

/// Appends to a session that compacts by itself; the answer says whether it did.
fn append_and_compact(store: &Store, _: &std::path::Path) -> talktree::Result<String> {
    let has_failed = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&has_failed);
    let chat = store
        .session_builder("chat")
        .summarizer(brief)
        .compact_after(THRESHOLD)
        .on_compaction_error(move |_| heard.store(true, Ordering::Relaxed))
        .open()?;
    chat.append(message("new", "a new turn"))?;
    let answer = if has_failed.load(Ordering::Relaxed) { NOT_COMPACTED } else { COMPACTED };
    Ok(answer.to_owned())
}

fn planned(chat: &Session, options: &CompactionOptions) -> talktree::Result<CompactionPlan> {
    match chat.plan_compaction(options)? {
        Planned::Compact(plan) => Ok(plan),
        Planned::Nothing(_) => Err(Error::Unsupported { what: "a compaction of nothing" }),
    }
}

fn refused(source: talktree::BoxError) -> Error {
    Error::Summarizer { source }
}
