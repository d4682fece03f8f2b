//! The command: one subcommand a work.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use talktree_torture::{Report, Result, backup, contend, grow, kill};

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
    /// Kills processes that write, at random moments.
    Kill(kill::Args),
    /// Lets many write to one file at once.
    Contend(contend::Args),
    /// Measures the write-ahead log under readers, and memory under long imports and paths.
    Grow(grow::Args),
    /// Makes backups while others write.
    Backup(backup::Args),
    /// Writes to a store and reads it until its time is up.
    #[command(hide = true)]
    Writer(contend::writer::Args),
    /// Writes to a store until it is killed.
    #[command(hide = true)]
    Worker(kill::worker::Args),
}

fn main() -> Result<ExitCode> {
    let command = Command::parse();
    let seed = command.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let mut report;
    match command.work {
        Work::Kill(args) => {
            report = Report::new("kill", seed);
            kill::run(&args, &mut report)?;
        }
        Work::Contend(args) => {
            report = Report::new("contend", seed);
            contend::run(&args, &mut report)?;
        }
        Work::Grow(args) => {
            report = Report::new("grow", seed);
            grow::run(&args, &mut report)?;
        }
        Work::Backup(args) => {
            report = Report::new("backup", seed);
            backup::run(&args, &mut report)?;
        }
        Work::Writer(args) => return contend::writer::run(&args, seed).map(|()| ExitCode::SUCCESS),
        Work::Worker(args) => return kill::worker::run(&args, seed).map(|()| ExitCode::SUCCESS),
    }
    print!("{report}");
    Ok(if report.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
