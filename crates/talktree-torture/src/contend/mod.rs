//! Many writers of one file: processes, threads that share one store, and threads with one store each.
//!
//! Each writer uses words that no other writer uses, so a lost message, a double one and one in the wrong session are
//! found. The time of the slowest verb shows how near the busy timeout is.

pub mod writer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use talktree::Store;

use crate::process::{SHARED, Worker, durability, store_in};
use crate::spread::Spread;
use crate::{Report, Result};
use writer::{Plan, Tally};

/// How many write, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many seconds the largest number of writers works; smaller numbers work a quarter of it.
    #[arg(long, default_value_t = 60.0)]
    pub seconds: f64,
    /// The numbers of writers.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16], value_parser = some_writers)]
    pub writers: Vec<usize>,
    /// `full` or `normal`.
    #[arg(long, default_value = "full")]
    pub durability: String,
    /// The program to start as a writer, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
}

fn some_writers(given: &str) -> std::result::Result<usize, String> {
    match given.parse::<usize>() {
        Ok(0) => Err("at least one writer is needed".to_owned()),
        count => count.map_err(|error| error.to_string()),
    }
}

/// What the writers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Processes,
    ThreadsOfOneStore,
    ThreadsWithStores,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::ThreadsOfOneStore => "threads with one store",
            Self::ThreadsWithStores => "threads with a store each",
        }
    }
}

/// Runs each number of writers of each kind.
///
/// # Errors
/// If a writer cannot be started or the store cannot be opened.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let most = args.writers.iter().max().copied().unwrap_or_default();
    let mut total = Total::default();
    for kind in [Kind::Processes, Kind::ThreadsOfOneStore, Kind::ThreadsWithStores] {
        for &count in &args.writers {
            let seconds = if count == most { args.seconds } else { args.seconds / 4.0 };
            eprintln!("contend: {count} {}, {seconds} s", kind.name());
            run_case(kind, count, seconds, args, report, &mut total)?;
        }
    }
    report.fact("writes", total.writes);
    report.fact("reads", total.reads);
    report.fact("compactions of the shared session", total.compactions);
    report.fact("compactions refused because another came first", total.refused);
    report.fact("longest time of a verb", format!("{:.3} s", total.longest.as_secs_f64()));
    Ok(())
}

/// The figures of all cases.
#[derive(Default)]
struct Total {
    writes: usize,
    reads: usize,
    compactions: u64,
    refused: u64,
    longest: Duration,
}

fn run_case(
    kind: Kind,
    count: usize,
    seconds: f64,
    args: &Args,
    report: &mut Report,
    total: &mut Total,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = store_in(folder.path());
    let plans: Vec<Plan> =
        (0..count).map(|number| Plan { name: format!("w{number}x"), seconds }).collect();
    let tallies = match kind {
        Kind::Processes => processes(&path, &plans, args, report.seed())?,
        _ => threads(kind, &path, &plans, args, report.seed())?,
    };
    let faults = check(&path, &plans, &tallies)?;
    total.compactions += Store::open(&path)?.stats()?.compactions;

    let (mut writes, mut reads) = (Spread::default(), Spread::default());
    for tally in &tallies {
        writes.extend(tally.writes.iter().copied());
        reads.extend(tally.reads.iter().copied());
        total.refused += tally.refused_compactions;
    }
    let rate = |spread: &Spread| spread.len() as f64 / seconds;
    report.fact(
        format!("{count} {}", kind.name()),
        format!("{:.0} writes/s ({writes}), {:.0} reads/s ({reads})", rate(&writes), rate(&reads)),
    );
    let replay = format!(
        "just torture contend --seed {} --writers {count} --seconds {seconds} --durability {}",
        report.seed(),
        args.durability,
    );
    for fault in &faults {
        report.failure(format!("{count} {}: {fault}", kind.name()), &replay);
    }
    total.writes += writes.len();
    total.reads += reads.len();
    total.longest = total.longest.max(writes.max()).max(reads.max());
    Ok(())
}

fn processes(path: &Path, plans: &[Plan], args: &Args, seed: u64) -> Result<Vec<Tally>> {
    let workers: Vec<Worker> = plans
        .iter()
        .map(|plan| start(args.program.as_deref(), path, plan, &args.durability, seed))
        .collect::<Result<_>>()?;
    tallies(workers)
}

/// Waits for processes that write, and returns what they did.
pub(crate) fn tallies(workers: Vec<Worker>) -> Result<Vec<Tally>> {
    workers.into_iter().map(|worker| Ok(serde_json::from_str(&worker.wait()?)?)).collect()
}

/// Starts a writer as a process.
pub(crate) fn start(
    program: Option<&Path>,
    path: &Path,
    plan: &Plan,
    durability: &str,
    seed: u64,
) -> Result<Worker> {
    let path = path.to_str().ok_or("the path is not UTF-8")?;
    let (seed, seconds) = (seed.to_string(), plan.seconds.to_string());
    let mut args = vec!["writer", "--seed", &seed, "--store", path, "--name", &plan.name];
    args.extend(["--seconds", &seconds, "--durability", durability]);
    Worker::start(program, args)
}

fn threads(kind: Kind, path: &Path, plans: &[Plan], args: &Args, seed: u64) -> Result<Vec<Tally>> {
    let durability = durability(&args.durability)?;
    let open = || Store::options().durability(durability).open(path);
    let shared = open()?;
    std::thread::scope(|scope| {
        let work = |plan| -> Result<Tally> {
            match kind {
                Kind::ThreadsWithStores => writer::work(&open()?, plan, seed),
                _ => writer::work(&shared, plan, seed),
            }
        };
        let threads: Vec<_> = plans.iter().map(|plan| scope.spawn(move || work(plan))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?).collect()
    })
}

/// Compares the store with what the writers acknowledged.
pub(crate) fn check(path: &Path, plans: &[Plan], tallies: &[Tally]) -> Result<Vec<String>> {
    let store = Store::open(path)?;
    let mut faults: Vec<String> = tallies.iter().flat_map(|tally| tally.faults.clone()).collect();
    let busy: u64 = tallies.iter().map(|tally| tally.busy).sum();
    if busy > 0 {
        faults.push(format!("{busy} busy errors"));
    }
    let ids = |session: &str| -> Result<Vec<String>> {
        let path = store.session(session)?.raw_history()?;
        Ok(path.into_iter().map(|message| message.id.to_string()).collect())
    };
    let (mut own_sessions, mut messages) = (0, 0);
    for (Plan { name, .. }, tally) in plans.iter().zip(tallies) {
        let own = ids(name)?;
        if own != tally.own {
            faults.push(format!(
                "{name} acknowledged {} messages, {} are present",
                tally.own.len(),
                own.len()
            ));
        }
        for (fork, length) in &tally.forks {
            if ids(fork)? != tally.own[..*length] {
                faults.push(format!("fork {fork} differs from the path it copied"));
            }
        }
        own_sessions += 1 + tally.forks.len();
        messages += tally.own.len() + tally.forks.values().sum::<usize>() + tally.shared.len();
    }
    let shared = ids(SHARED)?;
    let position: HashMap<&str, usize> =
        shared.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    for tally in tallies {
        let positions: Option<Vec<usize>> =
            tally.shared.iter().map(|id| position.get(id.as_str()).copied()).collect();
        if !positions.is_some_and(|positions| positions.is_sorted()) {
            faults.push("a shared message is lost or out of order".to_owned());
        }
    }
    let stats = store.stats()?;
    let sessions = own_sessions + usize::from(!shared.is_empty());
    if (stats.messages, stats.sessions) != (messages as u64, sessions as u64) {
        faults.push(format!(
            "{messages} messages in {sessions} sessions were acknowledged: {stats:?}"
        ));
    }
    let damages = store.verify(|_| {})?.damages;
    faults.extend(damages.iter().map(|damage| format!("verify: {damage:?}")));
    Ok(faults)
}
