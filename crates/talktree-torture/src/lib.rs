//! Breaks talktree on purpose and reports what survived.
//!
//! Each *torture test* is one way of breaking a store: killing the process that writes, cutting the power, failing a
//! system call. It is a module with `Args` and `run`, a subcommand of the same name, and a short form in this crate's
//! `tests/`. Its [`Report`] holds facts (measured figures) and failures, each with the command and seed that replay it.

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

pub mod callbacks;
pub mod commits;
pub mod contend;
pub mod damage;
pub mod erasures;
pub mod faults;
pub mod grow;
pub mod hostile;
#[cfg(feature = "postgres")]
pub mod hosts;
pub mod imports;
pub mod kill;
pub mod neighbours;
pub mod power;
pub mod scarce;
pub mod soak;
pub mod vfs;

pub use report::Report;
pub use snapshot::{digest, snapshot};
pub use workload::Workload;

/// The result of a torture test; an error means that the test itself could not run.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
