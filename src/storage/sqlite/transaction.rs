//! Transactions: begun, committed after the work, rolled back after an error or a panic.
//!
//! A write polls for SQLite's write lock. SQLite's own busy handler backs off, to ten attempts a second in the end, and
//! the lock has no queue: the first to ask after its release gets it. So those who have waited longest are the least
//! likely to get it, and among many processes that write without a pause some starve. Here the poll interval stays at a
//! few milliseconds and shrinks again with the time waited, and jitter keeps processes from polling in step.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::Config;
use crate::sql::{BackendError, BackendResult, jitter};

/// Runs reads in a transaction.
pub(super) fn read<T>(
    conn: &Connection,
    work: impl FnOnce(&Connection) -> BackendResult<T>,
) -> BackendResult<T> {
    let transaction = Transaction(conn);
    run(conn, "BEGIN")?;
    transaction.commit_after(work)
}

/// Runs writes in a transaction, after waiting up to `timeout` for the write lock.
pub(super) fn write<T>(
    conn: &Connection,
    config: &Config,
    timeout: Duration,
    work: impl FnOnce(&Connection) -> BackendResult<T>,
) -> BackendResult<T> {
    write_after(conn, config, timeout, &mut None, work)
}

/// The same; `refused_since` says since when every attempt to get the lock has failed.
pub(super) fn write_after<T>(
    conn: &Connection,
    config: &Config,
    timeout: Duration,
    refused_since: &mut Option<Instant>,
    work: impl FnOnce(&Connection) -> BackendResult<T>,
) -> BackendResult<T> {
    let transaction = Transaction(conn);
    begin(conn, config, timeout, refused_since)?;
    transaction.commit_after(work)
}

/// Begins a write after waiting up to `timeout` for the write lock.
pub(super) fn begin(
    conn: &Connection,
    config: &Config,
    timeout: Duration,
    refused_since: &mut Option<Instant>,
) -> BackendResult<()> {
    conn.busy_timeout(Duration::ZERO)?;
    let begun = begin_immediate(conn, timeout, refused_since);
    let reset = conn.busy_timeout(config.busy_timeout);
    begun.and(reset.map_err(BackendError::from)).inspect_err(|_| rollback(conn))
}

/// Commits a transaction, or rolls it back if that fails.
pub(super) fn commit(conn: &Connection) -> BackendResult<()> {
    Transaction(conn).commit_after(|_| Ok(()))
}

/// Rolls back the transaction, if one is open.
pub(super) fn rollback(conn: &Connection) {
    drop(Transaction(conn));
}

/// Returns the error of a transaction that SQLite has rolled back by itself.
pub(super) fn rolled_back() -> BackendError {
    let failed = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
    let what = "a system call failed, and SQLite rolled the transaction back".to_owned();
    BackendError::Sqlite(rusqlite::Error::SqliteFailure(failed, Some(what)))
}

/// Runs a statement and discards its rows.
pub(super) fn run(conn: &Connection, sql: &str) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// A transaction on this connection, rolled back on drop unless it was committed.
struct Transaction<'c>(&'c Connection);

impl Transaction<'_> {
    fn commit_after<T>(
        self,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> BackendResult<T> {
        let answer = work(self.0)?;
        // A system call that fails below one of FTS5's own statements rolls the transaction back, and the statement
        // that ran it may still succeed.
        if self.0.is_autocommit() {
            return Err(rolled_back());
        }
        run(self.0, "COMMIT")?;
        Ok(answer)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // Where this fails SQLite has rolled back by itself.
            let _ = run(self.0, "ROLLBACK");
        }
    }
}

/// Begins a write on a connection whose busy timeout is zero.
fn begin_immediate(
    conn: &Connection,
    timeout: Duration,
    refused_since: &mut Option<Instant>,
) -> BackendResult<()> {
    let mut began = None;
    loop {
        let error = match run(conn, "BEGIN IMMEDIATE") {
            Err(error) if error.is_busy() => error,
            answer => {
                *refused_since = None;
                return answer;
            }
        };
        let began: Instant = *began.get_or_insert_with(Instant::now);
        refused_since.get_or_insert(began);
        let waited = began.elapsed();
        if waited >= timeout {
            return Err(error);
        }
        std::thread::sleep(jitter(poll_interval(waited)).min(timeout.saturating_sub(waited)));
    }
}

/// Returns how long to sleep before the next attempt.
fn poll_interval(waited: Duration) -> Duration {
    match waited.as_millis() {
        // Most writes take less than a millisecond.
        0..2 => Duration::from_micros(200),
        2..20 => Duration::from_millis(1),
        20..500 => Duration::from_millis(3),
        // Those who have waited long poll more often than those who came later.
        500..2_000 => Duration::from_millis(1),
        _ => Duration::from_micros(300),
    }
}
