//! The shape of a conversation, as pure logic: no I/O, no SQL, no clock.
//!
//! The [`Address`] of a message is its session and its number in the order of appends. A [`Run`] is a sequence of
//! messages at consecutive addresses in which each message is the parent of the next. A path is a short list of runs.
//! [`Walk`] follows it from a leaf back to the root and plans a history: runs of messages, with summaries in place of
//! compacted ranges. [`Cut`] chooses where a range of a history may begin. [`Tree`] is the outline of a whole session.
//!
//! Invariant: a parent's address is smaller than its child's, so every walk ends.

mod address;
mod cut;
mod outline;
mod walk;

pub(crate) use address::{Address, MAX_MESSAGES, MAX_SESSIONS};
pub(crate) use cut::Cut;
pub(crate) use outline::{BoundedRun, SegmentMap, line, outermost, preview};
pub use outline::{CompactionMark, DrawOptions, Landmark, Line, Lines, PieceKind, Segment, Tree};
pub(crate) use walk::{Plan, Run, Span, Stretch, TreeSource, Walk};
