//! The verbs that fold, by a summarizer that needs no model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talktree::{Compacted, CompactionOptions, Error, FoldPlan, Plan, Session, Store};

use super::{Verb, done, message, read, write};
use crate::fold::{brief, by_words, folding, options};

/// The window of the session that folds by itself: much less than it holds.
const THRESHOLD: u64 = 2_000;
/// What an append answers whose folding worked, and one whose folding failed.
const FOLDED: &str = "folded";
const NOT_FOLDED: &str = "not folded, and heard of";

pub(super) const VERBS: &[Verb] = &[
    write("commit of a plan", |store, _| {
        let chat = store.session("chat")?;
        let plan = planned(&chat, &options())?;
        let folded = chat.commit(plan, brief("all of it").map_err(refused)?)?;
        Ok(format!("{} {}", folded.messages, folded.tokens_after))
    }),
    write("update under a plan", |store, _| {
        let chat = store.session("chat")?;
        let plan = planned(&chat, &options())?;
        chat.update(message("m200", "said otherwise"))?;
        match chat.commit(plan, "They spoke of coffee.") {
            Err(Error::Stale { why }) => Ok(why.to_string()),
            Err(error) => Err(error),
            Ok(folded) => Ok(format!("{folded:?}")),
        }
    }),
    write("compact", |store, _| match folding(store, "chat")?.compact()? {
        Compacted::Folded(folded) => Ok(format!("{} {}", folded.messages, folded.tokens_after)),
        Compacted::Nothing(why) => Ok(why.to_string()),
    }),
    Verb {
        name: "append that folds",
        changes: true,
        run: append_and_fold,
        first: Some(|store, _| {
            store.session("chat")?.append(message("new", "a new turn"))?;
            Ok(NOT_FOLDED.to_owned())
        }),
    },
    write("compact and split", |store, _| {
        store.session("chat")?.compact_and_split_as(&"next".into(), "In brief: coffee.").map(done)
    }),
    write("checkout that leaves", |store, _| {
        let chat = store.session("chat")?;
        match chat.plan_leave(&"m60".into(), &options())? {
            Some(plan) => chat.checkout_leaving(plan, "It came to nothing.").map(done),
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

/// Appends to a session that folds by itself; the answer says whether it did.
fn append_and_fold(store: &Store, _: &std::path::Path) -> talktree::Result<String> {
    let has_failed = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&has_failed);
    let chat = store
        .session_builder("chat")
        .summarizer(brief)
        .compact_after(THRESHOLD)
        .on_compaction_error(move |_| heard.store(true, Ordering::Relaxed))
        .open()?;
    chat.append(message("new", "a new turn"))?;
    let answer = if has_failed.load(Ordering::Relaxed) { NOT_FOLDED } else { FOLDED };
    Ok(answer.to_owned())
}

fn planned(chat: &Session, options: &CompactionOptions) -> talktree::Result<FoldPlan> {
    match chat.plan_compaction(options)? {
        Plan::Fold(plan) => Ok(plan),
        Plan::Nothing(_) => Err(Error::Unsupported { what: "a fold of nothing" }),
    }
}

fn refused(source: talktree::BoxError) -> Error {
    Error::Summarizer { source }
}
