//! The write-ahead log, and keeping it short.
//!
//! A commit after which the log has a thousand pages checkpoints it, as in SQLite by default. A checkpoint takes as long as
//! several steps of deferred work, and one append would wait for both. So a commit with such a step, or with what a search
//! indexes, checkpoints only from two thousand pages on, and leaves a shorter log to the next commit without a step.
//!
//! SQLite restarts the log from the beginning only if everything is checkpointed and nobody reads from it. Where several
//! processes read and write without a pause that never happens, and the log would grow without limit. So a writer that
//! leaves a long log blocks the others until it is checkpointed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::transaction;
use crate::sql::BackendResult;

/// A commit checkpoints a log of this many pages.
const PAGES: i32 = 1_000;
/// The same for a commit with a step of deferred work.
const PAGES_AFTER_STEP: i32 = 2 * PAGES;
/// The log is truncated to this size when it restarts.
pub(super) const LIMIT: u64 = 16 << 20;
/// A log of more pages is due for a restart: about as many as fit in [`LIMIT`].
const MAX_PAGES: i32 = 4_000;
/// If a log cannot restart because someone reads it, the next attempt is when it has grown by this part of its size.
const STEP: i32 = 8;
/// How often an attempt polls for the lock of writers, and then of readers, about a millisecond each time. While it
/// has the writers' lock they wait.
const MAX_ASKED: i32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// The log as the last commit of the writing connection has left it.
#[derive(Default)]
pub(super) struct Wal(Arc<State>);

#[derive(Default)]
struct State {
    /// How many pages it has, those of other processes included.
    pages: AtomicI32,
    /// How many it had when a restart was attempted last; 0 if it has restarted since.
    tried: AtomicI32,
    /// Whether the open transaction holds a step of deferred work.
    has_step: AtomicBool,
}

impl Wal {
    /// Makes the commits of a connection checkpoint the log.
    pub(super) fn install_hook(&self, conn: &mut Connection) -> BackendResult<()> {
        let state = Arc::clone(&self.0);
        conn.wal_hook(Some(move |log: &mut rusqlite::hooks::Wal, pages| {
            state.pages.store(pages, Ordering::Relaxed);
            let is_step = state.has_step.load(Ordering::Relaxed);
            if pages >= if is_step { PAGES_AFTER_STEP } else { PAGES } {
                // The write is committed, so it does not fail if the checkpoint fails.
                let _ = log.checkpoint();
            }
            Ok(())
        }))?;
        Ok(())
    }

    /// Notes that a transaction begins.
    pub(super) fn note_begin(&self) {
        self.0.has_step.store(false, Ordering::Relaxed);
    }

    /// Notes that the open transaction holds a step of deferred work.
    pub(super) fn note_step(&self) {
        self.0.has_step.store(true, Ordering::Relaxed);
    }

    /// Makes the next write restart the log if it is long.
    pub(super) fn keep_short(&self, conn: &mut Connection, usual: Duration) {
        let pages = self.0.pages.load(Ordering::Relaxed);
        let tried = self.0.tried.load(Ordering::Relaxed);
        if pages <= MAX_PAGES {
            self.0.tried.store(0, Ordering::Relaxed);
        } else if pages > tried + tried / STEP {
            self.0.tried.store(pages, Ordering::Relaxed);
            checkpoint(conn, "PRAGMA wal_checkpoint(RESTART)", usual);
        }
    }
}

/// Copies the log to the file and empties it, unless a reader uses it.
pub(super) fn empty(conn: &mut Connection, usual: Duration) {
    checkpoint(conn, "PRAGMA wal_checkpoint(TRUNCATE)", usual);
}

/// What was written is committed: no error here is one of a write.
fn checkpoint(conn: &mut Connection, sql: &str, usual: Duration) {
    if conn.busy_handler(Some(ask_again)).is_ok() {
        let _ = transaction::run(conn, sql);
        let _ = conn.busy_timeout(usual);
    }
}

fn ask_again(asked: i32) -> bool {
    std::thread::sleep(crate::sql::jitter(PAUSE));
    asked < MAX_ASKED
}

#[cfg(test)]
mod tests {
    use super::super::connection::{Config, Database};
    use super::*;
    use crate::error::Result;

    /// A store whose file is small as long as its log is not checkpointed.
    struct Logged {
        database: Database,
        bytes: u64,
        _folder: tempfile::TempDir,
    }

    impl Logged {
        fn new() -> Result<Self> {
            let folder = tempfile::tempdir().unwrap();
            let database = Database::open(&folder.path().join("bot.db"), Config::default())?;
            database
                .write(|conn| Ok(conn.sqlite()?.execute_batch("CREATE TABLE many (value)")?))?;
            let bytes = database.file.as_ref().unwrap().bytes();
            Ok(Self { database, bytes, _folder: folder })
        }

        fn is_checkpointed(&self) -> bool {
            self.database.file.as_ref().unwrap().bytes() > self.bytes + (1 << 20)
        }
    }

    /// Writes more pages than a write leaves in the log, and fewer than a step leaves there.
    fn insert_many(conn: &crate::sql::Connection<'_>) -> BackendResult<usize> {
        let bytes = 4_096 * (PAGES + PAGES_AFTER_STEP) / 2;
        Ok(conn.sqlite()?.execute("INSERT INTO many (value) VALUES (zeroblob(?1))", [bytes])?)
    }

    #[test]
    fn a_write_that_leaves_a_long_log_checkpoints_it() -> Result<()> {
        let store = Logged::new()?;
        store.database.write(insert_many)?;
        assert!(store.is_checkpointed());
        Ok(())
    }

    #[test]
    fn a_step_of_deferred_work_leaves_the_checkpoint_to_the_next_write() -> Result<()> {
        let store = Logged::new()?;
        assert_eq!(store.database.write_step(insert_many)?, Some(1));
        assert!(!store.is_checkpointed());
        store.database.write_short(|conn| Ok(conn.sqlite()?.execute("DELETE FROM many", [])?))?;
        assert!(store.is_checkpointed());
        Ok(())
    }

    #[test]
    fn a_step_that_writes_nothing_delays_no_checkpoint() -> Result<()> {
        let store = Logged::new()?;
        assert_eq!(store.database.write_step(|_| Ok(()))?, Some(()));
        assert_eq!(
            store.database.write_step(|_| Err::<(), _>(rusqlite::Error::InvalidQuery.into())).ok(),
            None
        );
        store.database.write_short(insert_many)?;
        assert!(store.is_checkpointed());
        Ok(())
    }

    #[test]
    fn a_step_checkpoints_a_log_that_steps_alone_have_made_long() -> Result<()> {
        let store = Logged::new()?;
        for _ in 0..2 {
            assert_eq!(store.database.write_step(insert_many)?, Some(1));
        }
        assert!(store.is_checkpointed());
        Ok(())
    }
}
