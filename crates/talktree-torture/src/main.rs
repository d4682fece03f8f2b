//! The command: one subcommand a work.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use talktree_torture::{
    Report, Result, addresses, backup, contend, damage, extremes, faults, grow, hostile, kill,
    power, scarce,
};

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
    /// All works, one after the other, each in its long form.
    All,
    /// Kills processes that write, at random moments.
    Kill(kill::Args),
    /// Cuts the power: rebuilds the disk as it may be after the last sync, and opens what is left.
    Power(power::Args),
    /// Lets every n-th system call fail under every verb.
    Faults(faults::Args),
    /// Fills a disk, limits memory and the size of files, forbids writing.
    Scarce(scarce::Args),
    /// Lets many write to one file at once.
    Contend(contend::Args),
    /// Measures the write-ahead log under readers, and memory under long imports and paths.
    Grow(grow::Args),
    /// Makes backups while others write.
    Backup(backup::Args),
    /// Feeds queries, importers, messages and names with hostile input.
    Hostile(hostile::Args),
    /// Does verbs under any names, beside a plain list of parents.
    Addresses(addresses::Args),
    /// Flips bytes, cuts files, exchanges pages, damages logs, opens what is no store.
    Damage(damage::Args),
    /// Grows very long, wide and branchy trees, mixes up sessions and clocks.
    Extremes(extremes::Args),
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
    match &command.work {
        Work::All => all(seed),
        Work::Kill(args) => told("kill", seed, |report| kill::run(args, report)),
        Work::Power(args) => told("power", seed, |report| power::run(args, report)),
        Work::Faults(args) => told("faults", seed, |report| faults::run(args, report)),
        Work::Scarce(args) => told("scarce", seed, |report| scarce::run(args, report)),
        Work::Contend(args) => told("contend", seed, |report| contend::run(args, report)),
        Work::Grow(args) => told("grow", seed, |report| grow::run(args, report)),
        Work::Backup(args) => told("backup", seed, |report| backup::run(args, report)),
        Work::Hostile(args) => told("hostile", seed, |report| hostile::run(args, report)),
        Work::Addresses(args) => told("addresses", seed, |report| addresses::run(args, report)),
        Work::Damage(args) => told("damage", seed, |report| damage::run(args, report)),
        Work::Extremes(args) => told("extremes", seed, |report| extremes::run(args, report)),
        Work::Writer(args) => contend::writer::run(args, seed).map(|()| ExitCode::SUCCESS),
        Work::Worker(args) => kill::worker::run(args, seed).map(|()| ExitCode::SUCCESS),
    }
}

/// Does a work and prints its report.
fn told(work: &str, seed: u64, run: impl FnOnce(&mut Report) -> Result<()>) -> Result<ExitCode> {
    // Told at once: whatever ends the process, its dice are known.
    eprintln!("{work}: again with `just torture --seed {seed} {work}` and the same arguments");
    let mut report = Report::new(work, seed);
    run(&mut report)?;
    print!("{report}");
    Ok(if report.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Does every work that is not hidden in a process of its own: one that fails does not keep the next from being done.
fn all(seed: u64) -> Result<ExitCode> {
    let mut broken = Vec::new();
    for work in Command::command().get_subcommands() {
        if work.is_hide_set() || work.get_name() == "all" || work.get_name() == "help" {
            continue;
        }
        let status = std::process::Command::new(std::env::current_exe()?)
            .args([work.get_name(), "--seed", &seed.to_string()])
            .status()?;
        if !status.success() {
            broken.push(work.get_name().to_owned());
        }
    }
    if broken.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("broken: {}", broken.join(", "));
    Ok(ExitCode::FAILURE)
}
