//! Extreme trees and inputs: a million messages in a row, a million answers to one message, thousands of branches, all
//! on a small stack; ids of another session; clocks that go backwards; the same id twice.
//!
//! Invariant: no verb recurses along a path or over children, none returns data of another session, and the order of
//! messages is the order of appends, whatever their times are.

mod clock;
mod isolation;
mod meter;
mod repeats;
mod shapes;
mod verbs;

use crate::{Report, Result};
use meter::Meter;

/// The size of each extreme.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Messages on the long path.
    #[arg(long, default_value_t = 1_000_000)]
    pub messages: usize,
    /// Answers to one message.
    #[arg(long, default_value_t = 1_000_000)]
    pub children: usize,
    /// Branches of a path, each from another message.
    #[arg(long, default_value_t = 10_000)]
    pub branches: usize,
    /// Calls with ids of another session.
    #[arg(long, default_value_t = 20_000)]
    pub foreign_ids: u64,
    /// Messages with times out of order.
    #[arg(long, default_value_t = 5_000)]
    pub times: usize,
}

/// Runs every verb on extreme trees and inputs.
///
/// # Errors
/// If a verb fails, or memory cannot be measured.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    isolation::run(args, report)?;
    clock::run(args, report)?;
    repeats::run(report)?;
    for (name, shape) in [
        ("path", shapes::path as shapes::Shape),
        ("children", shapes::children),
        ("branches", shapes::branches),
    ] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("talk.db");
        on_small_stack(|| {
            let mut meter = Meter::new(name, report);
            let grown = meter.time("grow", || shape(args, &path))?;
            verbs::read(&grown, &mut meter)?;
            verbs::write(&grown, &mut meter)
        })?;
    }
    Ok(())
}

/// Runs `work` on a stack so small that recursion along a path overflows it.
fn on_small_stack(work: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
