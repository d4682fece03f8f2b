//! The verbs that compact or count tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talktree::{CompactionOptions, CompactionPlan, Error, Session, Store};

use super::{Verb, done, message, read, write};
use crate::compaction::{brief, by_words, compaction, options};

/// The token limit of the session that compacts automatically: much less than it holds.
const THRESHOLD: u64 = 2_000;
/// What an append returns if its automatic compaction succeeded, and if it failed.
const COMPACTED: &str = "compacted";
const NOT_COMPACTED: &str = "compaction failed";

pub(super) const VERBS: &[Verb] = &[
    write("commit a plan", |store, _| {
        let chat = store.session("chat")?;
        let plan = planned(&chat, &options())?;
        let compacted = chat.commit(plan, brief("all of it").map_err(refused)?)?;
        Ok(format!("{} {}", compacted.messages, compacted.tokens_after))
    }),
    write("commit a stale plan", |store, _| {
        let chat = store.session("chat")?;
        let plan = planned(&chat, &options())?;
        chat.update(message("m200", "another text"))?;
        match chat.commit(plan, "They spoke of coffee.") {
            Err(Error::Stale { why }) => Ok(why.to_string()),
            Err(error) => Err(error),
            Ok(compacted) => Ok(format!("{compacted:?}")),
        }
    }),
    write("compact", |store, _| match compaction(store, "chat")?.compact()? {
        Ok(compacted) => Ok(format!("{} {}", compacted.messages, compacted.tokens_after)),
        Err(why) => Ok(why.to_string()),
    }),
    Verb {
        name: "append with automatic compaction",
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
    write("checkout with a branch summary", |store, _| {
        let chat = store.session("chat")?;
        match chat.plan_branch_summary(&"m60".into(), &options())? {
            Some(plan) => chat.checkout_with_summary(plan, "It came to nothing.").map(done),
            None => Ok("no branch to summarize".to_owned()),
        }
    }),
    read("visible tokens", |store, _| {
        store.session("chat")?.visible_tokens().map(|tokens| tokens.to_string())
    }),
    read("visible tokens by another counter", |store, _| {
        by_words(store, "chat")?.visible_tokens().map(|tokens| tokens.to_string())
    }),
    read("recount tokens", |store, _| {
        store.recount_tokens()?;
        store.session("chat")?.visible_tokens().map(|tokens| tokens.to_string())
    }),
    read("plan", |store, _| Ok(planned(&store.session("chat")?, &options())?.prompt().to_owned())),
];

/// Appends to a session that compacts automatically; returns whether the compaction succeeded.
fn append_and_compact(store: &Store, _: &std::path::Path) -> talktree::Result<String> {
    let has_failed = Arc::new(AtomicBool::new(false));
    let failed = Arc::clone(&has_failed);
    let chat = store
        .session_builder("chat")
        .summarizer(brief)
        .compact_after(THRESHOLD)
        .on_error(move |_| failed.store(true, Ordering::Relaxed))
        .open()?;
    chat.append(message("new", "a new turn"))?;
    let answer = if has_failed.load(Ordering::Relaxed) { NOT_COMPACTED } else { COMPACTED };
    Ok(answer.to_owned())
}

fn planned(chat: &Session, options: &CompactionOptions) -> talktree::Result<CompactionPlan> {
    match chat.plan_compaction(options)? {
        Ok(plan) => Ok(plan),
        Err(_) => Err(Error::Unsupported { what: "a compaction of nothing" }),
    }
}

fn refused(source: talktree::BoxError) -> Error {
    Error::Summarizer { source }
}
