//! Writes conversations to files.
//!
//! There are three formats: talktree's own JSON lines, which hold everything that a read of a session returns and
//! which [`Store::import_jsonl`](crate::Store::import_jsonl) reads; Markdown, for people; and messages of the OpenAI chat API, for programs.
//! [`content_hash`] compares the content of two stores.
//!
//! # The own format
//!
//! JSON lines, version 1:
//!
//! ```json
//! {"format":"talktree","version":2}
//! {"type":"session","id":"s","name":"..","created_at":".."}
//! {"type":"message","message":{"id":"a","parent":null,"role":"user","parts":[..],"created_at":".."}}
//! {"type":"compaction","id":"c","first":"a","last":"a","count":1,"summary":"..","created_at":".."}
//! {"type":"label","name":"start","id":"a"}
//! {"type":"head","id":"a"}
//! {"type":"end","sessions":1,"messages":1,"compactions":1,"labels":1,"checksum":".."}
//! ```
//!
//! The export holds all branches of a session in order of creation, so parents come first. The checksum is a chain of
//! version 5 UUIDs over the lines. The export omits what only matters inside a store: addresses, tombstones, the log of
//! the head, import records, and the origin of forked messages.
//!
//! Invariant: an export has no tombstones. The parent of a message is its nearest living ancestor, and the ends of a
//! compaction are living messages.

mod compactions;
mod hash;
mod jsonl;
mod markdown;
mod openai;

pub use hash::{content_hash, session_hash};
pub(crate) use jsonl::{Counts, FORMAT_VERSION, chain};

use crate::error::Error;

fn output_error(source: std::io::Error) -> Error {
    Error::Io { path: "the output of an export".into(), source }
}
