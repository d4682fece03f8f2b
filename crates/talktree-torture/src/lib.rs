//! Breaks talktree on purpose, and says what held.
//!
//! A *work* is one way of breaking a store: killing the process that writes, cutting the power, failing a call of the
//! operating system. Each is a module with its `Args` and a `run`, a subcommand of the same name, and a short form among
//! the crate's tests. What a work finds goes into a [`Report`]: facts with their figures, and failures, each with the
//! seed that replays it.

mod compaction;
mod fixture;
mod memory;
mod process;
mod report;
mod scratch;
mod snapshot;
mod spread;
mod text;
mod verbs;
mod workload;

pub mod addresses;
pub mod backup;
pub mod contend;
pub mod damage;
pub mod extremes;
pub mod faults;
pub mod grow;
pub mod hostile;
pub mod kill;
pub mod power;
pub mod scarce;
pub mod vfs;

pub use report::Report;
pub use snapshot::{digest, snapshot};
pub use workload::Workload;

/// What a work comes back with when it could not be done at all.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
