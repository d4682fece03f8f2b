//! Writing conversations to files.
//!
//! Three forms: talktree's own JSON lines, which hold all that can be read of a session and are read
//! by [`Store::import_jsonl`](crate::Store::import_jsonl); Markdown, for people; and messages of the OpenAI chat API, for
//! programs. [`content_hash`] tells whether two stores hold the same.
//!
//! # The own format
//!
//! JSON lines, version 1:
//!
//! ```json
//! {"format":"talktree","version":1}
//! {"type":"session","id":"s","name":"..","created_at":".."}
//! {"type":"message","message":{"id":"a","parent":null,"role":"user","parts":[..],"created_at":".."}}
//! {"type":"compaction","id":"c","first":"a","last":"a","count":1,"summary":"..","created_at":".."}
//! {"type":"label","name":"start","id":"a"}
//! {"type":"head","id":"a"}
//! {"type":"end","sessions":1,"messages":1,"compactions":1,"labels":1,"checksum":".."}
//! ```
//!
//! All branches of a session are there, in order of creation, so parents come first. The checksum
//! is a chain of version 5 UUIDs over the lines. What a store keeps for itself is not written:
//! addresses, tombstones, the log of the head, which records were imported, from which message a fork copied.
//!
//! Invariant: an export has no tombstones. What hung from a deleted message hangs from its nearest
//! living ancestor, and a compaction whose ends were deleted ends at the living messages it covers.

mod hash;
mod jsonl;
mod markdown;
mod openai;
mod outline;

pub use hash::{content_hash, session_hash};
pub(crate) use jsonl::{Counts, FORMAT_VERSION, chain};

use crate::error::Error;

/// Returns the error of a writer.
fn output_error(source: std::io::Error) -> Error {
    Error::Io { path: "the output of an export".into(), source }
}
