//! Backups of a store that other processes write to.
//!
//! Each writer logs every acknowledged message. The copy must be sound and hold every message that was in a log when
//! the backup began, and the writers must make progress meanwhile.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use talktree::Store;

use crate::contend::start;
use crate::contend::writer::Plan;
use crate::kill::worker::store_in;
use crate::process::Worker;
use crate::spread::Spread;
use crate::{Report, Result};

/// How many seconds longer than the last backup the writers could run; they are killed when the test is done.
const GRACE: f64 = 600.0;

/// How many processes write, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many seconds backups are made for.
    #[arg(long, default_value_t = 60.0)]
    pub seconds: f64,
    /// How many processes write at the same time.
    #[arg(long, default_value_t = 4)]
    pub writers: usize,
    /// `full` or `normal`.
    #[arg(long, default_value = "normal")]
    pub durability: String,
    /// The program to start as a writer, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
}

/// Makes backups while other processes write.
///
/// # Errors
/// If a writer cannot be started or the store cannot be opened.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = store_in(folder.path());
    let plans: Vec<Plan> = (0..args.writers)
        .map(|number| Plan {
            name: format!("w{number}x"),
            seconds: args.seconds + GRACE,
            log: Some(folder.path().join(format!("{number}.log"))),
        })
        .collect();
    let store = Store::open(&path)?;
    let mut workers = plans
        .iter()
        .map(|plan| start(args.program.as_deref(), &path, plan, &args.durability, report.seed()))
        .collect::<Result<Vec<Worker>>>()?;

    let replay = format!(
        "just torture backup --seed {} --seconds {} --writers {} --durability {}",
        report.seed(),
        args.seconds,
        args.writers,
        args.durability,
    );
    let until = Instant::now() + Duration::from_secs_f64(args.seconds);
    let (mut times, mut checked, mut meanwhile) = (Spread::default(), 0, 0);
    while Instant::now() < until {
        let copy = folder.path().join(format!("copy {}.db", times.len()));
        let before = acknowledged(&plans)?;
        let began = Instant::now();
        store.backup(&copy, |_| {})?;
        times.push(began.elapsed());
        meanwhile += acknowledged(&plans)?.len() - before.len();
        for fault in check(&copy, &before)? {
            report.failure(fault, &replay);
        }
        checked += before.len();
        std::fs::remove_file(&copy)?;
        for worker in &mut workers {
            if worker.has_ended()? {
                let complaints = worker.complaints();
                return Err(format!("a writer gave up: {complaints}").into());
            }
        }
    }
    let written = acknowledged(&plans)?.len();
    report.fact("backups", times.len());
    report.fact("time per backup", &times);
    report.fact("acknowledged messages", written);
    report.fact("messages looked up in copies", checked);
    report.fact("messages acknowledged during backups", meanwhile);
    report.fact("store size in bytes", std::fs::metadata(&path)?.len());
    Ok(())
}

/// Returns the lines of all logs: the session and id of each message that the writers have acknowledged so far.
fn acknowledged(plans: &[Plan]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for log in plans.iter().filter_map(|plan| plan.log.as_ref()).filter(|log| log.exists()) {
        lines.extend(std::fs::read_to_string(log)?.lines().map(str::to_owned));
    }
    Ok(lines)
}

/// Checks that a copy is sound and holds all these messages; returns what is wrong.
fn check(copy: &Path, messages: &[String]) -> Result<Vec<String>> {
    let copy = Store::open(copy)?;
    let damages = copy.verify(|_| {})?.damages;
    let mut faults: Vec<String> =
        damages.iter().map(|damage| format!("verify: {damage:?}")).collect();
    let mut held = HashSet::new();
    for session in copy.sessions()? {
        for message in copy.session(&session.id)?.raw_history()? {
            held.insert(format!("{} {}", session.id, message.id));
        }
    }
    let lost: Vec<&String> = messages.iter().filter(|message| !held.contains(*message)).collect();
    if !lost.is_empty() {
        faults.push(format!(
            "{} messages are missing from the copy, first {:?}",
            lost.len(),
            lost[0]
        ));
    }
    Ok(faults)
}
