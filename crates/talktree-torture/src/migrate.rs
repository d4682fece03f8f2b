//! Killing processes that raise the format of a store.
//!
//! The store is of a former version. Each round copies it and starts processes that open it, one after the other, and
//! kills each at a random moment; another process may read meanwhile. What is left must be wholly of the old version or
//! of the new one, and the next opening must find every message.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use talktree::{Error, Store};

use crate::process::Worker;
use crate::scratch::scratch;
use crate::visit;
use crate::{Report, Result};

/// The schemas and rows of the former versions, from version 1.
const FORMER: &[(&str, &str)] = &[
    (
        include_str!("../../../tests/fixtures/schema_1.sql"),
        include_str!("../../../tests/fixtures/content_1.sql"),
    ),
    (
        include_str!("../../../tests/fixtures/schema_2.sql"),
        include_str!("../../../tests/fixtures/content_2.sql"),
    ),
    (
        include_str!("../../../tests/fixtures/schema_3.sql"),
        include_str!("../../../tests/fixtures/content_3.sql"),
    ),
];

/// How many processes are killed, and how large the store is.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many rounds are played for each former version; up to three processes are killed in each.
    #[arg(long, default_value_t = 200)]
    pub rounds: u64,
    /// How many messages the store has whose migration is killed.
    #[arg(long, default_value_t = 50_000)]
    pub messages: u64,
    /// How many messages the store has whose migration is measured.
    #[arg(long, default_value_t = 1_000_000)]
    pub large: u64,
    /// The program to start as a worker, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
}

/// Kills migrations.
///
/// # Errors
/// If a store cannot be made or a worker cannot be started.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let mut dice = fastrand::Rng::with_seed(report.seed());
    for (version, former) in (1..).zip(FORMER) {
        let folder = scratch()?;
        let template = folder.path().join("template.db");
        create(&template, former, args.messages)?;
        let whole = folder.path().join("whole.db");
        std::fs::copy(&template, &whole)?;
        let mut worker = Worker::start(args.program.as_deref(), visit::args(&whole))?;
        worker.wait_for_sign()?;
        let began = Instant::now();
        worker.wait()?;
        // A process is also killed while it closes the store.
        let longest = began.elapsed().mul_f64(1.1);
        let (mut old, mut new, mut kills) = (0, 0, 0);
        for round in 0..args.rounds {
            let path = folder.path().join(format!("killed {round}.db"));
            std::fs::copy(&template, &path)?;
            for _ in 0..dice.u32(1..=3) {
                kill_one(args, &path, longest.mul_f64(dice.f64()))?;
                kills += 1;
            }
            let outcome = check(&path, version, args.messages, round.is_multiple_of(10));
            match outcome {
                Ok(true) => new += 1,
                Ok(false) => old += 1,
                Err(what) => report.failure(
                    format!("version {version}, round {round}: {what}"),
                    format!(
                        "just torture migrate --seed {} --rounds {} --messages {}",
                        report.seed(),
                        args.rounds,
                        args.messages
                    ),
                ),
            }
            for suffix in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
            }
        }
        report.fact(format!("version {version}: processes killed"), kills);
        report.fact(format!("version {version}: stores left old"), old);
        report.fact(format!("version {version}: stores left new"), new);
        measure(version, former, args.large, report)?;
    }
    Ok(())
}

fn create(path: &Path, (schema, content): &(&str, &str), messages: u64) -> Result<()> {
    let conn = Connection::open(path)?;
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; BEGIN")?;
    conn.execute_batch(schema)?;
    conn.execute_batch(&content.replace("{messages}", &messages.to_string()))?;
    Ok(conn.execute_batch("COMMIT")?)
}

fn kill_one(args: &Args, path: &Path, after: Duration) -> Result<()> {
    let mut worker = Worker::start(args.program.as_deref(), visit::args(path))?;
    worker.wait_for_sign()?;
    std::thread::sleep(after);
    worker.kill()
}

/// Checks what a killed migration left; returns whether it was complete.
fn check(path: &Path, former: u32, messages: u64, is_thorough: bool) -> Result<bool> {
    let found: u32 =
        Connection::open(path)?.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match Store::open_read_only(path) {
        Err(Error::OlderStore { .. }) if found == former => {}
        Ok(_) if found > former => {}
        answer => return Err(format!("a reader of version {found} gets {answer:?}").into()),
    }
    let store = Store::open(path)?;
    let chat = store.session("s")?;
    let held = chat.all_messages().try_fold(0, |count, message| message.map(|_| count + 1))?;
    if held != messages {
        return Err(format!("{held} of {messages} messages are left").into());
    }
    if is_thorough {
        let damages = store.verify(|_| {})?.damages;
        if !damages.is_empty() {
            return Err(format!("damage: {damages:?}").into());
        }
    }
    Ok(found > former)
}

/// Measures the migration of a large store.
fn measure(version: u32, former: &(&str, &str), messages: u64, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.db");
    create(&path, former, messages)?;
    let began = Instant::now();
    let store = Store::open(&path)?;
    report.fact(
        format!("version {version}: migrating {messages} messages"),
        format!("{:.1?}", began.elapsed()),
    );
    report.fact(format!("version {version}: their bytes"), store.stats()?.bytes);
    Ok(())
}
