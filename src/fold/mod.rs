//! The policy of compaction, as pure logic: no I/O, no clock, no model.

mod counter;
mod options;

pub(crate) use counter::Counter;
pub use counter::{HeuristicCounter, TokenCounter};
pub use options::CompactionOptions;
