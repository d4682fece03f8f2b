//! Other programs that write to the file of a store: clients that vacuum it or change its settings, and rows that talktree
//! did not write.
//!
//! After each of them every verb is called. Whatever the rows are, no verb panics or hangs, an error is a named one, and
//! an append that is acknowledged can be read. What does no harm must change no answer; what does must be found by
//! `verify`.

mod rows;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use rusqlite::Connection;
use talktree::{Message, Store};

use crate::fixture::Fixture;
use crate::scratch::scratch;
use crate::verbs::Verb;
use crate::{Report, Result, snapshot};

/// How often each kind of program writes.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many random combinations of foreign rows are tried, besides each by itself.
    #[arg(long, default_value_t = 400)]
    pub rounds: u64,
    /// Call only every n-th verb on each of the rows.
    #[arg(long, default_value_t = 1)]
    pub step: usize,
    /// How many messages are written while clients vacuum the file and change its settings.
    #[arg(long, default_value_t = 3_000)]
    pub messages: u64,
}

/// What clients do to a store without harming it.
const HARMLESS: &[&str] = &[
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA auto_vacuum = FULL; VACUUM",
    "PRAGMA page_size = 8192; VACUUM",
    "PRAGMA optimize",
    "CREATE TABLE IF NOT EXISTS foreign_notes (x); INSERT INTO foreign_notes VALUES (1)",
    "CREATE INDEX IF NOT EXISTS foreign_index ON message (role)",
    "BEGIN EXCLUSIVE; SELECT count(*) FROM message; COMMIT",
];

/// Lets other programs write to stores.
///
/// # Errors
/// If a store cannot be made.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let fixture = Fixture::new()?;
    clients_between_openings(&fixture, report)?;
    clients_during_writes(args, report)?;
    rows::run(args, &fixture, report)
}

/// Each client changes the closed file; the next opening restores what promises rest on.
fn clients_between_openings(fixture: &Fixture, report: &mut Report) -> Result<()> {
    for sql in HARMLESS {
        let path = fixture.copy()?;
        let before = snapshot(&Store::open(&path)?)?;
        Connection::open(&path)?.execute_batch(sql)?;
        let store = Store::open(&path)?;
        let mode: String =
            Connection::open(&path)?.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let damages = store.verify(|_| {})?.damages;
        for (what, is_wrong) in [
            ("the content differs", snapshot(&store)? != before),
            ("the write-ahead log is off", mode != "wal"),
            ("verify finds damage", !damages.is_empty()),
        ] {
            if is_wrong {
                report.failure(
                    format!("after {sql:?}: {what} {damages:?}"),
                    "just torture neighbours",
                );
            }
        }
    }
    report.fact("clients between two openings", HARMLESS.len());
    Ok(())
}

/// A handle writes at least until a client has run so many statements.
const LEAST_STATEMENTS: u64 = 12;

/// A client changes the file again and again while a handle writes.
fn clients_during_writes(args: &Args, report: &mut Report) -> Result<()> {
    let folder = scratch()?;
    let path = folder.path().join("talk.db");
    let store = Store::open(&path)?;
    let is_over = AtomicBool::new(false);
    let seed = report.seed();
    let done = AtomicU64::new(0);
    let mut count = 0;
    let written = std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut dice = Rng::with_seed(seed);
            while !is_over.load(Ordering::Relaxed) {
                let sql = HARMLESS[dice.usize(..HARMLESS.len())];
                let ran = Connection::open(&path).and_then(|conn| {
                    conn.busy_timeout(Duration::from_millis(50))?;
                    conn.execute_batch(sql)
                });
                // Many need the file for themselves and are refused while it is open.
                done.fetch_add(u64::from(ran.is_ok()), Ordering::Relaxed);
            }
        });
        let mut written = Ok(());
        // How often a client gets its turn depends on the machine.
        while written.is_ok()
            && (count == 0 || done.load(Ordering::Relaxed) < LEAST_STATEMENTS)
            && count < args.messages * 100
        {
            written = write(&store, args.messages);
            count += args.messages;
        }
        is_over.store(true, Ordering::Relaxed);
        written
    });
    if let Err(error) = written {
        report
            .failure(format!("while clients change the file: {error}"), "just torture neighbours");
    }
    drop(store);
    let store = Store::open(&path)?;
    let held = store.session("s")?.path_length()?;
    let damages = store.verify(|_| {})?.damages;
    if held != count || !damages.is_empty() {
        report.failure(
            format!("{held} of {count} messages after clients changed the file, {damages:?}"),
            "just torture neighbours",
        );
    }
    report.fact("statements of clients during writes", done.into_inner());
    Ok(())
}

fn write(store: &Store, messages: u64) -> talktree::Result<()> {
    let chat = store.session("s")?;
    for n in 0..messages {
        chat.append(Message::user(format!("message {n} of the garden")))?;
        if n % 50 == 0 {
            chat.search("garden").limit(3).run()?;
            chat.history()?;
        }
    }
    Ok(())
}

/// Calls a verb; the outer error is a panic.
fn call(store: &Store, verb: &Verb) -> std::result::Result<talktree::Result<String>, String> {
    let run = || -> Result<talktree::Result<String>> {
        let folder = scratch()?;
        Ok((verb.run)(store, &folder.path().join("copy.db")))
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("a panic".to_owned()),
    }
}
