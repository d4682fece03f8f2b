//! Killing processes that write, at random moments.
//!
//! Workers are this program, started again, or threads of it that share a store. Each is an `Actor`, and logs what it begins and what
//! returned. The parent kills them and opens the store; it plays the same actors on stores in memory. Everything acknowledged must be there,
//! and of each worker at most the one verb that had not returned, as a whole. A store lives for several rounds, so that a crash can follow
//! a crash.

mod actor;
mod round;
pub mod worker;

use std::path::PathBuf;

use fastrand::Rng;

use crate::spread::Spread;
use crate::{Report, Result};
use round::Life;

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
/// How many rounds use the same store.
const LIFE: u64 = 10;

/// The figures of all rounds.
#[derive(Debug, Default)]
struct Figures {
    kills: u64,
    acknowledged: u64,
    /// Verbs that were committed and not acknowledged.
    unacknowledged: u64,
    backups: u64,
    /// The time until the store was open and the first read had returned.
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
        // An unknown one is refused here, not by each worker.
        crate::process::durability(&durability)?;
        for &(writers, threads) in &cases {
            let case = Case { writers, threads, durability: durability.clone() };
            run_case(&case, args, report, &mut figures)?;
        }
    }
    report.fact("kills", figures.kills);
    report.fact("verbs acknowledged", figures.acknowledged);
    report.fact("committed but not acknowledged", figures.unacknowledged);
    report.fact("backups opened", figures.backups);
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
    let mut life = None;
    for number in rounds {
        let replay = format!(
            "just torture kill --seed {} --writers {} --threads {} --durability {} --round {number}",
            report.seed(),
            case.writers,
            case.threads,
            case.durability,
        );
        let mut dice = dice(report.seed(), case, number);
        let mut present = match life.take().filter(|_| number % LIFE > 0) {
            Some(life) => life,
            None => Life::begin(case, &mut dice)?,
        };
        let faults = match present.round(case, args.program.as_deref(), &mut dice, figures) {
            Ok(faults) => faults,
            Err(error) => vec![format!("the store cannot be checked: {error}")],
        };
        for fault in &faults {
            report.failure(fault, &replay);
        }
        // The same fault would be found again in each following round.
        life = Some(present).filter(|life| faults.is_empty() && !life.is_over);
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

/// Returns the random choices of a round.
fn dice(seed: u64, case: &Case, round: u64) -> Rng {
    let (writers, is_full) = (case.writers as u64, u64::from(case.durability == "full"));
    let case = (case.threads as u64 - 1) << 32 | writers << 1 | is_full;
    Rng::with_seed(seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ case)
}
