//! Transcripts: the entries of agent sessions, as the Claude Agent SDK writes them.
//!
//! An *entry* is a JSON object, which is kept as its text. A *transcript* is the list of entries under one
//! [`TranscriptKey`]: of a project, a session and a subpath. The one without a subpath is the *main* one; the others are
//! of subagents. Each session has a *summary*, which every append to its main transcript extends.
//!
//! This module reads entries and does no I/O. It parses only the members that it needs, and returns the same as the
//! Python SDK for the same entries. Programs use `handle`.

mod chain;
mod entry;
mod facts;
mod first_prompt;
mod fork;
pub(crate) mod handle;
mod info;
mod key;
mod layout;
mod object;
mod outcome;
mod projection;
mod projector;
mod subagent;
mod summary;
mod tag;
mod text;

pub use chain::TranscriptMessage;
pub(crate) use facts::Facts;
pub use info::TranscriptInfo;
pub(crate) use key::check_owner;
pub use key::{MAX_TRANSCRIPT_BATCH_BYTES, TranscriptKey};
pub use outcome::{
    AppendedEntries, ListedTranscript, StoredTranscript, TranscriptFiles, TranscriptFilter,
    TranscriptFork, UnreadLine,
};
pub use projection::{MissingParent, Projection, ProjectionReport};
pub(crate) use projector::{At, Connected, Projector};
pub(crate) use summary::fold;
pub use summary::{TranscriptSummary, fold_transcript_summary};
