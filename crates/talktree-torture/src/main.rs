//! The command: one subcommand a work.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use talktree_torture::{Report, Result, addresses};

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
    /// Does verbs under any names, beside a plain list of parents.
    Addresses(addresses::Args),
}

fn main() -> Result<ExitCode> {
    let command = Command::parse();
    let seed = command.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let report: Report = match command.work {
        Work::Addresses(args) => {
            let mut own = Report::new("addresses", seed);
            addresses::run(&args, &mut own)?;
            own
        }
    };
    print!("{report}");
    Ok(if report.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
