//! Transcripts of Claude Code.
//!
//! Entries form a tree by `uuid` and `parentUuid`. Entries by the model or a person become messages; other entries with a
//! `uuid` become hidden messages in the same position. Entries without a `uuid` become hidden messages after the entry
//! before them, or session details (titles, tags). `progress` entries only link others, and are left out.
//!
//! An answer of the model is several entries, and their results hang under their own calls: [`Rounds`] puts each answer in
//! one piece, so that a path has every result.
//!
//! A compaction is a boundary, which begins a new chain, and a summary. The boundary becomes a child of the last entry
//! before the cut, both become hidden messages, and the summary replaces all messages before them.
//!
//! A [`Talk`] reads the entries of one session in their order and says which message follows which; [`message`] makes a
//! message of one entry.

mod entry;
mod links;
mod rounds;
mod talk;

pub use entry::{called, is_link, kind_of, message, uuid_of};
pub use links::{Chain, Progress};
pub use rounds::{Rounds, Share};
pub use talk::{Cut, Node, Talk};
