//! Other programs that write to the file of a store: clients that vacuum it or change its settings, rows that talktree
//! did not write, another format.
//!
//! After each of them every verb is called. Whatever the rows are, no verb panics or hangs, an error is a named one, and
//! an append that is acknowledged can be read. What does no harm must change no answer; what does must be found by
//! `verify`.

mod rows;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use rusqlite::Connection;
use talktree::{Error, Message, Store};

use crate::scratch::scratch;
use crate::verbs::{self, Verb};
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

/// What lets a handle refuse every verb: the statement and how the error begins.
const FORMATS: &[(&str, &str)] = &[
    ("PRAGMA user_version = 99", "store has schema version 99"),
    (
        "ALTER TABLE message ADD COLUMN newer TEXT; PRAGMA user_version = 3000",
        "store has schema version 3000",
    ),
    ("PRAGMA user_version = 1", "store has schema version 1;"),
];

/// Lets other programs write to stores.
///
/// # Errors
/// If a store cannot be made.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let template = Template::new()?;
    clients_between_openings(&template, report)?;
    clients_during_writes(args, report)?;
    formats(&template, report)?;
    rows::run(args, &template, report)
}

/// A store with every kind of content.
struct Template {
    bytes: Vec<u8>,
    folder: tempfile::TempDir,
}

impl Template {
    fn new() -> Result<Self> {
        let folder = scratch()?;
        let path = folder.path().join("made.db");
        verbs::fill(&Store::open(&path)?)?;
        Ok(Self { bytes: std::fs::read(&path)?, folder })
    }

    /// Returns a fresh copy.
    fn copy(&self) -> Result<PathBuf> {
        for entry in std::fs::read_dir(self.folder.path())? {
            std::fs::remove_file(entry?.path())?;
        }
        let path = self.folder.path().join("talk.db");
        std::fs::write(&path, &self.bytes)?;
        Ok(path)
    }
}

/// Each client changes the closed file; the next opening restores what promises rest on.
fn clients_between_openings(template: &Template, report: &mut Report) -> Result<()> {
    for sql in HARMLESS {
        let path = template.copy()?;
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

/// The format changes under an open handle: every verb refuses and writes nothing.
fn formats(template: &Template, report: &mut Report) -> Result<()> {
    let mut refused = 0;
    for (sql, error) in FORMATS {
        let path = template.copy()?;
        let stores = [Store::open(&path)?, Store::open_read_only(&path)?];
        let foreign = Connection::open(&path)?;
        foreign.execute_batch(sql)?;
        let before = content(&foreign)?;
        for (store, verb) in
            stores.iter().flat_map(|store| verbs::all().map(move |verb| (store, verb)))
        {
            let answer = call(store, verb);
            match answer {
                // Of the store that was opened for reading only.
                Ok(Err(Error::ReadOnly)) => {}
                Ok(Err(told)) if told.to_string().starts_with(error) => refused += 1,
                answer => report.failure(
                    format!("{} after {sql:?} answers {answer:?}", verb.name),
                    "just torture neighbours",
                ),
            }
        }
        if content(&foreign)? != before {
            report.failure(format!("a verb wrote after {sql:?}"), "just torture neighbours");
        }
    }
    report.fact("verbs refused after a change of the format", refused);
    Ok(())
}

/// Returns the sizes of the tables that verbs write to.
fn content(conn: &Connection) -> Result<Vec<i64>> {
    ["message", "session", "compaction", "label", "head_log", "context_entry", "context_version"]
        .iter()
        .map(|table| {
            Ok(conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?)
        })
        .collect()
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
