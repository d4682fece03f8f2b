//! The policy of compaction: pure logic without I/O, clock or model.
//!
//! A *view* is what a model sees of a path: messages and summaries, each with its tokens. Its head
//! and its tail are protected. [`boundary()`] chooses the range to compact from the *middle* between
//! them, [`summary_prompt()`] asks for its summary, and [`judge()`] says whether the answer may
//! replace the range. [`WindowUsage`] shows how the tokens are spread over the view. One
//! [`Counter`](crate::tokens::Counter) counts the tokens for all of them.
//!
//! Invariant: a tool call and its result are both inside a compaction or both outside.
//! Invariant: an accepted summary has fewer tokens than the range it replaces.

mod boundary;
mod item;
mod judge;
mod options;
mod plan;
mod summarizer;
mod summary_prompt;
#[cfg(test)]
mod tests;
mod usage;

pub use boundary::NothingToCompact;
pub(crate) use boundary::boundary;
pub(crate) use item::Item;
pub(crate) use judge::judge;
pub use options::CompactionOptions;
pub use plan::{CompactionPlan, Planned};
pub use summarizer::Summarizer;
pub(crate) use summarizer::ask;
pub(crate) use summary_prompt::{Purpose, summary_prompt};
pub use usage::WindowUsage;
