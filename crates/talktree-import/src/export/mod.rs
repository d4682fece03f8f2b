//! Writes conversations to files.
//!
//! talktree's own JSON lines hold everything that a read of a session returns, and [`import`](crate::import) reads them.
//! Markdown is for people. Claude Code, Codex and Pi go on with a session from a file of theirs. [`export_person`] writes the data of one person.
//! [`content_hash`] compares the content of two stores.
//!
//! # The own format
//!
//! JSON lines, version 2:
//!
//! ```json
//! {"format":"talktree","version":2}
//! {"type":"session","id":"s","name":"..","created_at":"..","session":255434962}
//! {"type":"message","session":255434962,"message":{"id":"a","parent":null,"role":"user","parts":[..],"created_at":".."}}
//! {"type":"tombstone","session":255434962,"number":1,"parent":"a","ends":["d"]}
//! {"type":"message","session":255434962,"below":1,"message":{"id":"c","parent":"a",..}}
//! {"type":"compaction","session":255434962,"id":"c","first":"a","last":"a","count":1,"summary":"..",..}
//! {"type":"compaction","session":255434962,"id":"d","first":"a","last":"b","last_tombstone":1,..}
//! {"type":"elision","message":"c","call":"call_1","marker":"..","session":255434962}
//! {"type":"label","name":"start","id":"a","session":255434962}
//! {"type":"head","id":"a","session":255434962}
//! {"type":"end","sessions":1,"messages":2,"compactions":2,"labels":1,"checksum":".."}
//! ```
//!
//! The export holds all branches of a session in order of creation, so parents come first. The checksum is a chain of
//! version 5 UUIDs over the lines. The export omits what only matters inside a store: addresses, the log of the head,
//! import records, and the origin of forked messages. An export of a store omits the sessions in the trash.
//!
//! A session record is followed by the other records of its session, the head last. All of them have the same number in
//! `session`, made from the id of the session. So a reader notices that the record of a session is damaged or missing, and
//! adds no message to the session before it. Former builds wrote no numbers.
//!
//! The parent of a message is its nearest living ancestor. Of deleted messages the export has those at which a compaction
//! starts or ends, because it depends on their places what a path shows. Such a *tombstone* has a number, and `below` says
//! that it lies between a message, or another tombstone, and its parent. `starts` and `ends` list its compactions, which
//! name it as `first_tombstone` and `last_tombstone`. A reader that ignores tombstones reads every message; of compactions
//! that end close together it may show another one.

mod claude_code;
mod codex;
mod hash;
mod jsonl;
mod markdown;
mod person;
mod pi;
mod steps;

pub use claude_code::{export_claude_code, session_of_claude_code};
pub use codex::{export_codex, session_of_codex};
pub(crate) use hash::hash_of;
pub use hash::{content_hash, session_hash};
pub(crate) use jsonl::{Counts, VERSION, chain, number_of};
pub use jsonl::{export_jsonl, export_readable_jsonl, export_session};
pub use markdown::export_markdown;
pub use person::{Person, PersonExport, PersonFormat, export_person};
pub use pi::export_pi;
pub use steps::LeftOut;

use talktree::Error;

fn output_error(source: std::io::Error) -> Error {
    Error::Io { path: "the output of an export".into(), source }
}
