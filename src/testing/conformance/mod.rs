//! The contract of a provider, as a suite.
//!
//! A rule is a sentence and a check that is given an empty session. The rules are told in the order
//! of the table; each file holds those of one noun.

#![expect(clippy::panic, reason = "a suite says by panicking which rule was broken")]

mod compaction;
mod copy;
mod delete;
mod head;
mod message;
mod plan;
mod probe;
mod read;
mod tree;

use std::sync::Arc;

use crate::error::Result;
use crate::id::SessionId;
use crate::storage::SessionProvider;
use probe::Probe;

/// Runs the contract of [`SessionProvider`] against the providers that `make` gives.
///
/// `make` is called with a new id each time and returns an empty session. Required verbs are held
/// strictly; others may answer [`Error::Unsupported`](crate::Error::Unsupported).
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

/// Panics with what was found instead, or returns an error that should not be, if a rule is broken.
type Check = fn(&Probe) -> Result<()>;

const RULES: &[(&str, Check)] = &[
    ("a session that was never written to reads as empty", tree::empty),
    ("what is appended reads back as it was", message::round_trip),
    ("appends hang where they were placed and move the head", tree::places),
    ("a known id is left as it is and the chain goes on from it", tree::known_ids),
    ("an unknown id is an error and nothing is done", tree::unknown_ids),
    ("an update replaces content and keeps the place", message::updates),
    ("a deleted message leaves its place to its children", delete::deletes),
    ("the head moves up from a message that went", delete::head_after_delete),
    ("a cleared session is empty and can be written to", delete::clears),
    ("a summary stands for its stretch on the paths that hold its end", compaction::summaries),
    ("a summary compactions whole items of the view", compaction::summary_ends),
    (
        "of compactions with one end the furthest-reaching shows, of equals the newest",
        compaction::nesting,
    ),
    ("hidden are stored and not shown", compaction::hidden),
    ("compactions of deleted messages go and say so", compaction::deletes_under_summaries),
    ("a summary is laid over what was seen or refused", plan::stale),
    ("what a model sees is counted truly", plan::counted),
    ("a branch is left from where the head is", plan::leaving),
    ("a search finds text in its scope", read::searches),
    ("a stream gives what a read gives", read::streams),
    ("the head moves and moves back", head::heads),
    ("labels point at messages", head::labels),
    ("leaves are the messages without children", tree::leaves),
    ("a branch is deleted whole", delete::branches),
    ("a summary that is taken off brings back what was under it", compaction::removals),
    ("a record is imported once", copy::imports),
    ("a fork has the path it was made from", copy::forks),
    ("a session that goes on in another is ended", plan::splits),
    ("threads may write at the same time", tree::threads),
];
