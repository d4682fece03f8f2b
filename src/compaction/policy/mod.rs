//! The policy of compaction: pure logic without I/O, clock or model.
//!
//! A *view* is what a model sees of a path: messages and summaries, each with its tokens. Its head
//! and its tail are protected. [`boundary()`] chooses the range to compact from the *middle* between
//! them, [`summary_prompt()`] asks for its summary, and [`judge()`] says whether the answer may
//! replace the range. A program may have a [`CompactionPolicy`] of its own instead: its range and its summary are held to
//! the same rules. [`WindowUsage`] shows how the tokens are spread over the view. One
//! [`Counter`](crate::tokens::Counter) counts the tokens for all of them.
//!
//! Invariant: a tool call and its result are both inside a compaction or both outside.
//! Invariant: an accepted summary has fewer tokens than the range it replaces.

mod boundary;
mod custom;
mod extract;
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
pub use custom::{CompactionPolicy, CompactionWindow, RangeSummary};
pub(crate) use custom::{Given, choose};
pub use extract::Extract;
pub(crate) use item::Item;
pub(crate) use judge::judge;
pub use options::CompactionOptions;
pub use plan::{CompactionPlan, Planned};
pub(crate) use summarizer::ask;
pub use summarizer::{Summarized, Summarizer};
pub(crate) use summary_prompt::{Purpose, summary_prompt};
pub(crate) use usage::BesidesMessages;
pub use usage::{RequestTokens, ThresholdOf, WindowUsage};
