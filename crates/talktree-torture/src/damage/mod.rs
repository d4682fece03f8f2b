//! Damaged files: flipped bytes, truncated files, zeroed and swapped pages, damaged logs.
//!
//! A store with every kind of content is built once and read once: the *baseline*. Each *case* corrupts a copy in one
//! way, opens it, verifies it, reads everything again, and appends. The number of a case decides all its random
//! choices, so one case can be replayed.
//!
//! Invariant: no case panics or hangs, and `verify` finds what a read reports. How much damage nothing can detect (a
//! changed byte in a text) is a figure in the report.

mod answers;
mod case;
mod corruption;
mod fixture;
mod log;
mod tally;
mod threads;

use std::time::Duration;

use crate::{Report, Result};
use case::Baseline;
use corruption::Corruption;
use tally::Tally;

/// How much of each kind of damage is done.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Positions at which a byte or a bit is flipped.
    #[arg(long, default_value_t = 10_000)]
    pub places: u64,
    /// Lengths to which the file is truncated.
    #[arg(long, default_value_t = 300)]
    pub lengths: u64,
    /// Pages that are zeroed, and pairs of pages that are swapped.
    #[arg(long, default_value_t = 300)]
    pub pages: u64,
    /// Positions in the log at which a byte is flipped.
    #[arg(long, default_value_t = 500)]
    pub log_places: u64,
    /// Threads that run cases.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Seconds after which a case counts as hanging.
    #[arg(long, default_value_t = 60)]
    pub limit: u64,
    /// Replay only this case and print everything about it.
    #[arg(long)]
    pub round: Option<u64>,
}

/// Damages stores in every way.
///
/// # Errors
/// If the files to damage cannot be made, or a case hangs.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let seed = report.seed();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sound.db");
    let ids = fixture::build(&path)?;
    let baseline = Baseline::survey(&path, ids)?;
    report.fact("bytes of the store", baseline.bytes.len());
    report.fact("messages", baseline.messages);
    report.fact("reads compared in each case", baseline.answers.len());

    let counts =
        corruption::Counts { flips: args.places, lengths: args.lengths, pages: args.pages };
    let corruption = |round| Corruption::of_round(seed, round, &counts, &baseline);
    let limit = Duration::from_secs(args.limit);
    if let Some(round) = args.round {
        let corruption = corruption(round);
        let seen = case::run(&baseline, corruption, &folder.path().join("case.db"))?;
        report.fact(format!("round {round}, {corruption}"), &seen);
        return Ok(());
    }
    let replay = |round: u64| {
        format!(
            "just torture --seed {seed} damage --places {} --lengths {} --pages {} --round {round}",
            args.places, args.lengths, args.pages
        )
    };
    let mut tally = Tally::default();
    threads::run_cases(
        args.threads,
        counts.total(),
        limit,
        |worker, round| {
            case::run(
                &baseline,
                corruption(round),
                &folder.path().join(format!("case-{worker}.db")),
            )
        },
        |round, ended| tally.add(report, &replay(round), corruption(round), ended),
    )?;
    tally.report(report);
    log::run(args, folder.path(), report)
}
