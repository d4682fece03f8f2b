//! Compaction of a session: by hand, by a model, and automatically after an append.
//!
//! A model takes seconds to write a summary, so none is asked inside a transaction or under a lock.
//! Work is in two phases ([`by_model`]): a *plan* holds the range to compact, the prompt to send and
//! what was seen of the range; a *commit* stores the summary if the range still reads as it did.
//! [`Session::compact`] runs both with the session's own summarizer, and [`auto`] runs them after an
//! append that takes the window over its threshold: at once, or on the program's executor ([`background`]). With a policy of
//! the program, the range and the summary are its answer instead ([`draft`]). [`by_hand`] adds a summary to any range.

mod auto;
mod background;
mod branch_summary;
mod by_hand;
mod by_model;
mod cached_count;
mod draft;
mod in_progress;
mod settings;
mod split;
mod wait;
mod window;

use super::{Path, Session};

pub use background::CompactionJob;
pub use branch_summary::BranchSummaryPlan;
pub use by_hand::AddedCompaction;
pub use by_model::{Compacted, CompactionOutcome};
pub(crate) use settings::{CompactionSettings, CompactionSettingsBuilder, WeakSettings};
