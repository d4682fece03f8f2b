//! The shape of a conversation, as pure logic: no I/O, no SQL, no clock.
//!
//! A message's [`Address`] is its session and its place in the order of appends. A [`Run`] is a
//! stretch of consecutive addresses in which each message hangs from the one before. A path is a
//! short list of runs, and a history is planned over it: the [`Walk`] goes back from a leaf and
//! yields stretches of messages to show and summaries to put between them.
//!
//! Invariant: a parent's address is smaller than its child's, so every walk ends.

mod address;
mod cut;
mod outline;
mod walk;

pub(crate) use address::{Address, MAX_MESSAGES, MAX_SESSIONS};
pub(crate) use cut::Cut;
pub use outline::{CompactionMark, DrawOptions, Ink, Landmark, Line, Lines, Segment, Tree};
pub(crate) use outline::{Skeleton, Stem, line, outermost, preview};
pub(crate) use walk::{Plan, Run, Span, Stretch, TreeSource, Walk};
