//! The command: one subcommand a work.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use talktree_torture::{Report, Result, faults, power, scarce};

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
    /// Cuts the power: rebuilds the disk as it may be after the last sync, and opens what is left.
    Power(power::Args),
    /// Lets every n-th system call fail under every verb.
    Faults(faults::Args),
    /// Fills a disk, limits memory and the size of files, forbids writing.
    Scarce(scarce::Args),
}

fn main() -> Result<ExitCode> {
    let command = Command::parse();
    let seed = command.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let report = match &command.work {
        Work::Power(args) => {
            let mut report = Report::new("power", seed);
            power::run(args, &mut report)?;
            report
        }
        Work::Faults(args) => {
            let mut report = Report::new("faults", seed);
            faults::run(args, &mut report)?;
            report
        }
        Work::Scarce(args) => {
            let mut report = Report::new("scarce", seed);
            scarce::run(args, &mut report)?;
            report
        }
    };
    print!("{report}");
    Ok(if report.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
