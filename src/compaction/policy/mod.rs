//! The policy of compaction, as pure logic: no I/O, no clock, no model.
//!
//! A *view* is what a model sees of a path: messages and summaries, each with its tokens. Its head
//! and its tail are protected; of the *middle* between them [`boundary()`] takes the stretch to
//! compact, [`summary_prompt()`] asks for its summary, and [`judge()`] says whether the answer may stand in
//! its place. [`WindowUsage`] tells how the tokens are spread. All of them go by the figures of
//! one [`Counter`](crate::tokens::Counter).
//!
//! Invariant: no call of a tool and no result of it that stand in different messages are put on
//! different sides of a compaction.
//! Invariant: an accepted summary has fewer tokens than what it replaces.

mod boundary;
mod item;
mod judge;
mod options;
mod plan;
mod summarizer;
mod summary_prompt;
#[cfg(test)]
mod tests;
mod tool;
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
