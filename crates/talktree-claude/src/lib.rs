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
mod fork;
mod store;
mod summary;

pub use chain::TranscriptMessage;
pub use conversation::{MissingParent, Projection, ProjectionReport};
pub use files::{TranscriptFiles, UnreadLine};
pub use store::{SessionStore, TranscriptFork};
pub use summary::{TranscriptInfo, fold_summary};

use talktree::records::fields::Fields;
use talktree::{Error, Json};

/// Returns an entry about a session, with one more member.
fn about(session: &str, kind: &str, name: &str, value: impl Into<Json>) -> Json {
    let entry = Fields::default()
        .with("type", Some(serde_json::Value::from(kind)))
        .with(name, Some(value))
        .with("sessionId", Some(serde_json::Value::from(session)))
        .with("uuid", Some(serde_json::Value::from(uuid())))
        .with("timestamp", Some(now()));
    entry.into_json().unwrap_or_else(|| serde_json::Value::Null.into())
}

/// Returns the time as the SDK writes it.
fn now() -> Json {
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    serde_json::Value::from(now).into()
}

fn uuid() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Returns whether Python takes a value for true.
fn is_truthy(value: Option<&Json>) -> bool {
    value.is_some_and(|it| !matches!(it.as_str(), "null" | "false" | "0" | "\"\"" | "[]" | "{}"))
}

fn invalid(what: &'static str, given: &str, why: &str) -> Error {
    Error::InvalidValue { what, given: given.chars().take(80).collect(), why: why.to_owned() }
}

/// Runs the examples of the document.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/transcripts.md")]
    mod transcripts {}
}
