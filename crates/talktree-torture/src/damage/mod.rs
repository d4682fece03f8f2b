//! Damage to the file: flipped bytes, lost ends, empty and exchanged pages, another's log, files of other kinds.
//!
//! A store with a bit of everything is built once, and asked everything once: the sound answers. Then each *case* does
//! one harm to a copy, opens it, verifies it, asks everything again, and appends. The cases are numbered, and the
//! number of a case decides all of its dice, so one case can be run again by itself.
//!
//! Invariant: no case panics or goes on for ever, and what a read tells, `verify` tells, too. How much damage nobody
//! can tell, a byte in a text say, is a figure of the report.

mod answers;
mod case;
mod crew;
mod fixture;
mod foreign;
mod harm;
mod log;
mod recovery;
mod rows;
mod tally;

use std::time::Duration;

use crate::{Report, Result};
use case::Ground;
use harm::Harm;
use tally::Tally;

/// How much of each kind of damage is done.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Backing at which a byte or a bit is flipped.
    #[arg(long, default_value_t = 10_000)]
    pub places: u64,
    /// Lengths to which the file is cut.
    #[arg(long, default_value_t = 300)]
    pub lengths: u64,
    /// Pages that are zeroed, and pairs of pages that are exchanged.
    #[arg(long, default_value_t = 300)]
    pub pages: u64,
    /// Backing in the log at which a byte is flipped.
    #[arg(long, default_value_t = 500)]
    pub log_places: u64,
    /// Messages of each of the store's sessions.
    #[arg(long, default_value_t = 40)]
    pub messages: usize,
    /// Stores of which pages are damaged and what is left is brought back, for each number of damaged pages.
    #[arg(long, default_value_t = 5)]
    pub recoveries: u64,
    /// Threads that work on cases at the same time.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Seconds after which a case counts as hanging.
    #[arg(long, default_value_t = 60)]
    pub limit: u64,
    /// Runs this one case of the damaged file again and tells all about it.
    #[arg(long)]
    pub round: Option<u64>,
}

/// Damages stores in every way there is.
///
/// # Errors
/// If the files to damage cannot be made, or a case does not end.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let seed = report.seed();
    let again = format!("just torture --seed {seed} damage --messages {}", args.messages);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sound.db");
    let ids = fixture::build(&path, seed, args.messages)?;
    let ground = Ground::survey(&path, ids)?;
    report.fact("bytes of the store", ground.bytes.len());
    report.fact("messages", ground.messages);
    report.fact("answers compared in each case", ground.answers.len());

    let counts = harm::Counts { flips: args.places, lengths: args.lengths, pages: args.pages };
    let harm = |round| Harm::of_round(seed, round, &counts, &ground);
    let limit = Duration::from_secs(args.limit);
    if let Some(round) = args.round {
        let harm = harm(round);
        let seen = case::run(&ground, harm, &folder.path().join("case.db"))?;
        report.fact(format!("round {round}, {harm}"), &seen);
        return Ok(());
    }
    let again = |round: u64| {
        format!(
            "{again} --places {} --lengths {} --pages {} --round {round}",
            args.places, args.lengths, args.pages
        )
    };
    let mut tally = Tally::default();
    crew::work(
        args.threads,
        counts.total(),
        limit,
        |worker, round| {
            case::run(&ground, harm(round), &folder.path().join(format!("case-{worker}.db")))
        },
        |round, ended| tally.add(report, &again(round), harm(round), ended),
    )?;
    tally.tell(report);
    foreign::run(&ground, folder.path(), report)?;
    log::run(args, folder.path(), report)?;
    recovery::run(args, &ground, folder.path(), report)
}
