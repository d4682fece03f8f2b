//! One round: workers write to a store and are killed one after the other; then the store is opened and checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rusqlite::Connection;
use talktree::Store;

use super::Case;
use super::check::{Check, Findings};
use super::model::Replay;
use super::operation::read;
use super::worker;
use crate::Result;
use crate::process::Worker;

/// How many rounds use the same store.
pub(crate) const LIFE: u64 = 10;
/// The latest moment of a kill, in microseconds after the worker has started.
const LATEST: u64 = 150_000;
/// The same for kills that should hit the opening of the store.
const SOON: u64 = 6_000;

/// What a round found.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) findings: Findings,
    pub(crate) kills: u64,
    pub(crate) acknowledged: u64,
    /// The verb in which each worker was killed.
    pub(crate) killed_in: Vec<&'static str>,
    /// The time until the store was open and the first read had returned.
    pub(crate) reopening: Duration,
}

/// The random choices of a round.
pub(crate) fn dice(seed: u64, case: &Case, round: u64) -> Rng {
    let (writers, is_full) = (case.writers as u64, u64::from(case.durability == "full"));
    let case = (case.threads as u64 - 1) << 32 | writers << 1 | is_full;
    Rng::with_seed(seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ case)
}

/// Runs a round on the store in a folder.
pub(crate) fn run(
    case: &Case,
    program: Option<&Path>,
    folder: &Path,
    mut rng: Rng,
) -> Result<Outcome> {
    let count = case.writers * case.threads;
    let names: Vec<String> = (0..count).map(|number| format!("w{number}")).collect();
    let before = replays(folder, &names)?;
    let is_aged = rng.u32(..8) == 0 && worker::store_in(folder).exists();
    if is_aged {
        age_index(folder)?;
    }

    let mut outcome = Outcome::default();
    kill_all(case, program, folder, &names, &mut rng, &mut outcome)?;

    let mut replays = replays(folder, &names)?;
    for (name, replay) in &replays {
        outcome.acknowledged += replay.acknowledged - before[name].acknowledged;
        outcome
            .killed_in
            .push(replay.pending.as_ref().map_or("nothing", |operation| operation.verb()));
    }
    // A read-only store leaves the write-ahead log alone: the next round recovers from two crashes.
    let is_open_known = before.values().any(|replay| replay.model.openings > 0);
    let is_read_only = is_open_known && !is_aged && rng.u32(..3) == 0;
    let began = Instant::now();
    let store = match is_read_only {
        true => Store::open_read_only(worker::store_in(folder))?,
        false => Store::open(worker::store_in(folder))?,
    };
    store.session("w0")?.head()?;
    outcome.reopening = began.elapsed();

    let findings = Findings::default();
    let mut check = Check { store: &store, folder, is_read_only, rng: &mut rng, findings };
    check.run(&mut replays)?;
    outcome.findings = std::mem::take(&mut check.findings);
    Ok(outcome)
}

/// Starts the workers and kills each at a random moment.
fn kill_all(
    case: &Case,
    program: Option<&Path>,
    folder: &Path,
    names: &[String],
    rng: &mut Rng,
    outcome: &mut Outcome,
) -> Result<()> {
    let folder = folder.to_str().ok_or("the folder's name is not UTF-8")?;
    let mut workers = Vec::new();
    for names in names.chunks(case.threads) {
        let seed = rng.u32(..).to_string();
        let durability = case.durability.as_str();
        let mut args = vec!["worker", "--seed", &seed, "--folder", folder];
        args.extend(["--durability", durability]);
        args.extend(names.iter().flat_map(|name| ["--name", name]));
        let worker = Worker::start(program, args)?;
        let latest = if rng.u32(..4) == 0 { SOON } else { LATEST };
        workers.push((Duration::from_micros(rng.u64(..latest)), worker));
    }
    for (_, worker) in &mut workers {
        worker.wait_for_sign()?;
    }
    workers.sort_by_key(|(moment, _)| *moment);
    let began = Instant::now();
    for (moment, mut worker) in workers {
        std::thread::sleep(moment.saturating_sub(began.elapsed()));
        if worker.has_ended()? {
            outcome.findings.faults.push(format!("a worker gave up: {}", worker.complaints()));
        }
        worker.kill()?;
        outcome.kills += 1;
    }
    Ok(())
}

/// Replays the logs of the workers.
fn replays(folder: &Path, names: &[String]) -> Result<BTreeMap<String, Replay>> {
    names
        .iter()
        .map(|name| Ok((name.clone(), Replay::of(&read(&worker::log_in(folder, name))?)?)))
        .collect()
}

/// Marks the search index as one of an older version: the next opening discards it.
fn age_index(folder: &Path) -> Result<()> {
    let sqlite = Connection::open(worker::store_in(folder))?;
    let is_made: bool = sqlite.query_row(
        "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'setting'",
        [],
        |row| row.get(0),
    )?;
    if is_made {
        sqlite.execute("UPDATE setting SET value = '0' WHERE name = 'index_version'", [])?;
    }
    Ok(())
}
