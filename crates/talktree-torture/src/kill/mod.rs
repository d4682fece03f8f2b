//! Killing processes that write, at random moments.
//!
//! Workers are this program, started again, or threads of it that share a store. Each writes with every verb to its own session and to a shared one, and
//! logs what it begins and what returned. The parent kills them, opens the store and compares it with a model built
//! from the logs: everything acknowledged is there, and of each worker at most the one operation that had not
//! returned, as a whole. A store lives for several rounds, so that a crash can follow a crash.

mod check;
mod compactions;
mod journal;
mod model;
mod operation;
mod random;
mod round;
mod state;
mod transcripts;
pub mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::spread::Spread;
use crate::{Report, Result};
use round::LIFE;

/// How many processes are killed.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many processes are killed for each number of writers and each durability.
    #[arg(long, default_value_t = 500)]
    pub kills: u64,
    /// How many processes write at once; 1, then 4, then 1 with 6 threads, if absent.
    #[arg(long)]
    pub writers: Option<usize>,
    /// How many threads of each process write with one store.
    #[arg(long, requires = "writers")]
    pub threads: Option<usize>,
    /// `full` or `normal`; both if absent.
    #[arg(long)]
    pub durability: Option<String>,
    /// Repeat only this round, after the rounds that made its store.
    #[arg(long)]
    pub round: Option<u64>,
    /// The program to start as a worker, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
}

/// The number of processes, of threads in each, and the durability.
#[derive(Debug, Clone)]
struct Case {
    writers: usize,
    threads: usize,
    durability: String,
}

/// The processes and their threads if none are named.
const CASES: [(usize, usize); 3] = [(1, 1), (4, 1), (1, 6)];

/// The figures of all rounds.
#[derive(Debug, Default)]
struct Figures {
    kills: u64,
    acknowledged: u64,
    lost: u64,
    unacknowledged: BTreeMap<&'static str, u64>,
    killed_in: BTreeMap<&'static str, u64>,
    reopening: Spread,
}

/// Kills processes that write.
///
/// # Errors
/// If a worker cannot be started, or a store cannot be opened at all.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let threads = args.threads.unwrap_or(1).max(1);
    let cases = args.writers.map_or(CASES.to_vec(), |writers| vec![(writers.max(1), threads)]);
    let durabilities = ["full", "normal"].map(str::to_owned);
    let durabilities = args.durability.clone().map_or(durabilities.to_vec(), |one| vec![one]);
    let mut figures = Figures::default();
    for durability in durabilities {
        worker::durability(&durability)?;
        for &(writers, threads) in &cases {
            let case = Case { writers, threads, durability: durability.clone() };
            run_case(&case, args, report, &mut figures)?;
        }
    }
    report.fact("kills", figures.kills);
    report.fact("verbs acknowledged", figures.acknowledged);
    report.fact("faults found", figures.lost);
    report.fact("committed but not acknowledged", figures.unacknowledged.values().sum::<u64>());
    report.fact("committed but not acknowledged, by verb", list(&figures.unacknowledged));
    report.fact("killed during", list(&figures.killed_in));
    report.fact("reopening", &figures.reopening);
    Ok(())
}

fn run_case(case: &Case, args: &Args, report: &mut Report, figures: &mut Figures) -> Result<()> {
    let count = args.kills.div_ceil(case.writers as u64);
    let rounds = match args.round {
        None => 0..count,
        Some(round) => round / LIFE * LIFE..round + 1,
    };
    let before = (figures.kills, figures.acknowledged);
    let mut folder = tempfile::tempdir()?;
    for number in rounds {
        if number % LIFE == 0 {
            folder = tempfile::tempdir()?;
        }
        let replay = format!(
            "just torture kill --seed {} --writers {} --threads {} --durability {} --round {number}",
            report.seed(),
            case.writers,
            case.threads,
            case.durability,
        );
        let dice = round::dice(report.seed(), case, number);
        let outcome = match round::run(case, args.program.as_deref(), folder.path(), dice) {
            Ok(outcome) => outcome,
            Err(error) => {
                figures.lost += 1;
                report.failure(format!("the store cannot be checked: {error}"), replay);
                folder = tempfile::tempdir()?;
                continue;
            }
        };
        for fault in &outcome.findings.faults {
            report.failure(fault, &replay);
        }
        if !outcome.findings.faults.is_empty() {
            // The same fault would be found again in each following round.
            folder = tempfile::tempdir()?;
        }
        figures.take(outcome);
        if number % 50 == 49 {
            eprintln!("kill: {case:?}: {} of {count} rounds, {} kills", number + 1, figures.kills);
        }
    }
    let (kills, acknowledged) = (figures.kills - before.0, figures.acknowledged - before.1);
    report.fact(
        format!(
            "writers: {}, threads: {}, durability: {}",
            case.writers, case.threads, case.durability
        ),
        format!("{kills} kills, {acknowledged} acknowledged"),
    );
    Ok(())
}

impl Figures {
    fn take(&mut self, outcome: round::Outcome) {
        self.kills += outcome.kills;
        self.acknowledged += outcome.acknowledged;
        self.lost += outcome.findings.faults.len() as u64;
        for verb in outcome.findings.unacknowledged {
            *self.unacknowledged.entry(verb).or_default() += 1;
        }
        for verb in outcome.killed_in {
            *self.killed_in.entry(verb).or_default() += 1;
        }
        self.reopening.push(outcome.reopening);
    }
}

fn list(counts: &BTreeMap<&str, u64>) -> String {
    let counts: Vec<String> =
        counts.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
    counts.join(", ")
}
