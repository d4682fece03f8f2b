//! The command: one subcommand per torture test.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
#[cfg(feature = "postgres")]
use talktree_torture::hosts;
use talktree_torture::{
    Report, Result, callbacks, commits, contend, damage, erasures, faults, grow, hostile, imports,
    kill, neighbours, power, scarce, soak,
};

/// Breaks talktree on purpose and reports what survived.
#[derive(Parser)]
struct Command {
    /// The seed of all random choices; one is drawn and printed if it is absent.
    #[arg(long, global = true)]
    seed: Option<u64>,
    #[command(subcommand)]
    test: Test,
}

/// The torture tests, in the order in which `all` runs them.
#[derive(Subcommand)]
enum Test {
    /// Run all tests in their long form, one after the other.
    All,
    /// Kill writing processes at random moments.
    Kill(kill::Args),
    /// Kill an erasure after each of its commits, and those that finish it.
    Erasures(erasures::Args),
    /// Cut the power: rebuild the disk as a power cut could leave it, and open the store.
    Power(power::Args),
    /// Make every n-th system call fail under every verb.
    Faults(faults::Args),
    /// Fill the disk, limit memory, forbid writing.
    Scarce(scarce::Args),
    /// Let threads share commits: on a slow disk, with failing system calls, before power cuts.
    Commits(commits::Args),
    /// Write to one file from many processes and threads at once.
    Contend(contend::Args),
    /// Measure the write-ahead log under open readers, and memory during long imports and reads.
    Grow(grow::Args),
    /// Let other programs write to the file of a store.
    Neighbours(neighbours::Args),
    /// Run callbacks of every kind that panic, fail, block and call back.
    Callbacks(callbacks::Args),
    /// Run queries, importers, messages and names on hostile input.
    Hostile(hostile::Args),
    /// Flip bytes, truncate files, swap pages, damage logs.
    Damage(damage::Args),
    /// Kill imports, import beside other writers.
    Imports(imports::Args),
    /// Play a bot for many people: resume, compact, erase, kill; check every message and every byte.
    Soak(soak::Args),
    /// Let several hosts write to one PostgreSQL server while hosts, network and server fail.
    #[cfg(feature = "postgres")]
    Hosts(hosts::Args),
    /// Play one of the hosts.
    #[cfg(feature = "postgres")]
    #[command(hide = true)]
    Host(hosts::HostArgs),
    /// Import files until killed.
    #[command(hide = true)]
    ImportWorker(imports::WorkerArgs),
    /// Write to a store and read it until the time is up.
    #[command(hide = true)]
    Writer(contend::writer::Args),
    /// Play the people of one process.
    #[command(hide = true)]
    SoakWorker(soak::worker::Args),
    /// Write to a store until killed.
    #[command(hide = true)]
    Worker(kill::worker::Args),
    /// Run the command `talktree`.
    #[command(hide = true)]
    Talktree {
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> Result<ExitCode> {
    let command = Command::parse();
    let seed = command.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    match &command.test {
        Test::All => all(seed),
        Test::Kill(args) => report_of("kill", seed, |report| kill::run(args, report)),
        Test::Erasures(args) => report_of("erasures", seed, |report| erasures::run(args, report)),
        Test::Power(args) => report_of("power", seed, |report| power::run(args, report)),
        Test::Faults(args) => report_of("faults", seed, |report| faults::run(args, report)),
        Test::Scarce(args) => report_of("scarce", seed, |report| scarce::run(args, report)),
        Test::Commits(args) => report_of("commits", seed, |report| commits::run(args, report)),
        Test::Contend(args) => report_of("contend", seed, |report| contend::run(args, report)),
        Test::Grow(args) => report_of("grow", seed, |report| grow::run(args, report)),
        Test::Neighbours(args) => {
            report_of("neighbours", seed, |report| neighbours::run(args, report))
        }
        Test::Callbacks(args) => {
            report_of("callbacks", seed, |report| callbacks::run(args, report))
        }
        Test::Hostile(args) => report_of("hostile", seed, |report| hostile::run(args, report)),
        Test::Damage(args) => report_of("damage", seed, |report| damage::run(args, report)),
        Test::Imports(args) => report_of("imports", seed, |report| imports::run(args, report)),
        Test::Soak(args) => report_of("soak", seed, |report| soak::run(args, report)),
        #[cfg(feature = "postgres")]
        Test::Hosts(args) => report_of("hosts", seed, |report| hosts::run(args, report)),
        #[cfg(feature = "postgres")]
        Test::Host(args) => hosts::play(args, seed).map(|()| ExitCode::SUCCESS),
        Test::SoakWorker(args) => soak::worker::run(args, seed).map(|()| ExitCode::SUCCESS),
        Test::ImportWorker(args) => imports::work(args).map(|()| ExitCode::SUCCESS),
        Test::Writer(args) => contend::writer::run(args, seed).map(|()| ExitCode::SUCCESS),
        Test::Worker(args) => kill::worker::run(args).map(|()| ExitCode::SUCCESS),
        Test::Talktree { arguments } => {
            let name = OsString::from("talktree");
            Ok(talktree_cli::run([&[name], &arguments[..]].concat()))
        }
    }
}

/// Runs a torture test and prints its report.
fn report_of(
    test: &str,
    seed: u64,
    run: impl FnOnce(&mut Report) -> Result<()>,
) -> Result<ExitCode> {
    // Printed first: if the process dies, its seed is known.
    eprintln!("{test}: replay with `just torture --seed {seed} {test}` and the same arguments");
    let mut report = Report::new(test, seed);
    run(&mut report)?;
    print!("{report}");
    Ok(if report.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs each test in a child process, so that one that crashes does not stop the rest.
fn all(seed: u64) -> Result<ExitCode> {
    let mut failed = Vec::new();
    for test in Command::command().get_subcommands() {
        if test.is_hide_set() || test.get_name() == "all" || test.get_name() == "help" {
            continue;
        }
        let status = std::process::Command::new(std::env::current_exe()?)
            .args([test.get_name(), "--seed", &seed.to_string()])
            .status()?;
        if !status.success() {
            failed.push(test.get_name().to_owned());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}
