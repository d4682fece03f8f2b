//! The conformance suite of [`SessionProvider`].
//!
//! A rule is a sentence and a check. Each check runs on an empty session, in the order of the table.

#![expect(clippy::panic, reason = "a test suite panics if a rule is broken")]

mod compaction;
mod copy;
mod delete;
mod head;
mod message;
mod plan;
mod probe;
mod read;
mod removal;
mod tree;
mod turn;

use std::sync::Arc;

use crate::error::Result;
use crate::id::SessionId;
use crate::storage::SessionProvider;
use probe::Probe;

/// Tests the providers that `make` returns against the contract of [`SessionProvider`].
///
/// `make` is called with a new id for each rule and returns an empty session. Required methods must work; optional ones
/// may return [`Error::Unsupported`](crate::Error::Unsupported).
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
/// If a rule is broken. The message names the rule.
pub fn conformance(mut make: impl FnMut(SessionId) -> Arc<dyn SessionProvider>) {
    for (rule, check) in RULES {
        let id = SessionId::from(format!("conformance: {rule}"));
        let provider = make(id.clone());
        assert_eq!(*provider.id(), id, "a session has the id it was created with");
        if let Err(error) = check(&Probe { provider }) {
            panic!("{rule}: {error}");
        }
    }
}

/// Tests what becomes of the providers of a session that is removed.
///
/// For a storage that can remove sessions. `make` is called with an id and returns its session as it is; `remove`
/// removes the session of an id.
///
/// ```
/// use talktree::Store;
/// use talktree::testing::conformance_of_removal;
///
/// let store = Store::open_in_memory()?;
/// conformance_of_removal(
///     |id| store.session(id).expect("the id is sound").provider(),
///     |id| store.remove(id),
/// );
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Panics
/// If a rule is broken. The message names the rule.
pub fn conformance_of_removal(
    mut make: impl FnMut(SessionId) -> Arc<dyn SessionProvider>,
    mut remove: impl FnMut(&SessionId) -> Result<()>,
) {
    for (verb, write) in removal::WRITES {
        let rule = format!("a removed session does not come back by {verb}");
        let id = SessionId::from(format!("conformance: {rule}"));
        let mut check = || {
            let old = make(id.clone());
            removal::fill(&*old)?;
            remove(&id)?;
            removal::refused(&*old, *write)?;
            let new = make(id.clone());
            removal::fill(&*new)?;
            removal::refused(&*old, *write)?;
            removal::is_filled(&*new)
        };
        if let Err(error) = check() {
            panic!("{rule}: {error}");
        }
    }
}

/// Panics or returns an error if a rule is broken.
type Check = fn(&Probe) -> Result<()>;

const RULES: &[(&str, Check)] = &[
    ("a new session is empty", tree::empty),
    ("an appended message is read back unchanged", message::round_trip),
    ("an append adds to its parent and moves the head", tree::places),
    ("a known id is a no-op and the chain continues from it", tree::known_ids),
    ("an unknown id is an error and nothing is changed", tree::unknown_ids),
    ("an update replaces the content but not the parent", message::updates),
    ("the children of a deleted message become those of its parent", delete::deletes),
    ("the head moves to the parent of a deleted message", delete::head_after_delete),
    ("a cleared session is empty and can be written to", delete::clears),
    ("a summary replaces its range on the paths with its last message", compaction::summaries),
    ("a compaction covers whole items of the view", compaction::summary_ends),
    (
        "of compactions with one last message the longest is visible, of equals the newest",
        compaction::nesting,
    ),
    ("the id of a summary names the place of its last message", compaction::places),
    ("the head is named by what the history ends with", compaction::heads),
    ("hidden messages are stored but not visible", compaction::hidden),
    (
        "a compaction of deleted messages is removed and reported",
        compaction::deletes_under_summaries,
    ),
    ("a plan is committed if its range is unchanged, and refused otherwise", plan::stale),
    ("the visible tokens are those of the history", plan::counted),
    ("an append with an expected head requires that head", plan::leaving),
    ("a search finds text in its scope", read::searches),
    ("a cursor returns the same messages as a read", read::streams),
    ("the head can be moved, undone and redone", head::heads),
    ("the head is moved only from where the caller saw it", head::moves_if),
    ("a retry moves the head to the question that was answered", turn::retries),
    ("an edit is a sibling of the edited message", turn::edits),
    ("labels point to messages", head::labels),
    ("a page of branches is a part of them", tree::branch_pages),
    ("leaves are the messages without children", tree::leaves),
    ("a branch is deleted with all its messages", delete::branches),
    ("removing a compaction makes its range visible again", compaction::removals),
    ("a record is imported once", copy::imports),
    ("a fork has the path to its fork point", copy::forks),
    ("a session that is split is ended", plan::splits),
    ("threads can write at the same time", tree::threads),
];
