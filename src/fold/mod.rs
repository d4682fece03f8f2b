//! The policy of compaction, as pure logic: no I/O, no clock, no model.

mod boundary;
mod counter;
mod item;
mod options;
mod prompt;
#[cfg(test)]
mod tests;
mod tool;

pub use boundary::NotFolded;
pub(crate) use boundary::boundary;
pub(crate) use counter::Counter;
pub use counter::{HeuristicCounter, TokenCounter};
pub(crate) use item::Item;
pub use options::CompactionOptions;
pub(crate) use prompt::prompt;
