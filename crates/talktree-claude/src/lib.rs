//! Transcripts of the Claude Agent SDK and of Claude Code in a [`talktree`] store.
//!
//! The store keeps each transcript as a log of entries. This crate knows what they mean: [`SessionStore`] has the summaries,
//! conversations, subagents, copies and files of the SDK, and shows transcripts as sessions of the store. Its answers are those
//! of the Python SDK for the same entries.
//!
//! `docs/transcripts.md` in the repository says more.

mod chain;
mod conversation;
#[doc(hidden)]
pub mod entries;
mod files;
mod first_prompt;
mod fork;
mod link;
mod store;
mod summary;
mod text;

pub use chain::TranscriptMessage;
pub use conversation::{MissingParent, Projection, ProjectionReport};
pub use files::{TranscriptFiles, UnreadLine};
pub use store::{SessionStore, TranscriptFork};
pub use summary::{TranscriptInfo, fold_summary};

use talktree::records::ids::session_id;
use talktree::{SessionId, TranscriptKey};

/// Returns the id that the session of a transcript has unless another one has it.
fn session_of(key: &TranscriptKey) -> SessionId {
    match key.is_main() {
        true => session_id(key.session.as_str()),
        false => session_id(format!("{}/{}", key.session, key.subpath)),
    }
}

/// Returns the time as the SDK writes it.
fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

fn uuid() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Runs the examples of the document.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/transcripts.md")]
    mod transcripts {}
}
