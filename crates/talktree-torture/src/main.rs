//! The command: one subcommand a work.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use talktree_torture::{Report, Result, damage, extremes};

/// Breaks talktree on purpose, and says what held.
#[derive(Parser)]
struct Command {
    /// The seed of all dice; one is made up and printed where none is given.
    #[arg(long, global = true)]
    seed: Option<u64>,
    #[command(subcommand)]
    work: Work,
}

/// The works, in the order of `just torture`.
#[derive(Subcommand)]
enum Work {
    /// Flips bytes, cuts files, exchanges pages, damages logs, opens what is no store.
    Damage(damage::Args),
    /// Grows very long, wide and branchy trees, mixes up sessions and clocks.
    Extremes(extremes::Args),
}

fn main() -> Result<ExitCode> {
    let command = Command::parse();
    let seed = command.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let mut report;
    match command.work {
        Work::Damage(args) => {
            report = Report::new("damage", seed);
            damage::run(&args, &mut report)?;
        }
        Work::Extremes(args) => {
            report = Report::new("extremes", seed);
            extremes::run(&args, &mut report)?;
        }
    }
    print!("{report}");
    Ok(if report.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
