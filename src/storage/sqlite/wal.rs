//! The write-ahead log, and keeping it short.
//!
//! SQLite checkpoints the log every thousand pages. It restarts the log from the beginning only if everything is
//! checkpointed and nobody reads from it. Where several processes read and write without a pause that never happens,
//! and the log would grow without limit. So a writer that leaves a long log blocks the others until it is
//! checkpointed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::transaction;

/// The log is truncated to this size when it restarts; a longer one is due for a restart.
pub(super) const LIMIT: u64 = 16 << 20;
/// If a log cannot restart because someone reads it, the next attempt is when it has grown by this part of its size.
const STEP: u64 = 8;
/// The size is measured after a write that took this long, and after this many others: in less time a write fills about
/// a hundred pages, so the log grows by a few megabytes in between.
pub(super) const LONG_WRITE: Duration = Duration::from_micros(100);
const WRITES_BETWEEN: u64 = 16;
/// How often an attempt polls for the lock of writers, and then of readers, about a millisecond each time. While it
/// has the writers' lock they wait.
const MAX_ASKED: i32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Wal {
    /// The size at which the next restart is attempted.
    due: AtomicU64,
    writes: AtomicU64,
}

impl Default for Wal {
    fn default() -> Self {
        Self { due: AtomicU64::new(LIMIT), writes: AtomicU64::new(0) }
    }
}

impl Wal {
    /// Returns whether the size of the log is to be measured after a write.
    pub(super) fn is_due(&self, is_long: bool) -> bool {
        self.writes.fetch_add(1, Ordering::Relaxed).is_multiple_of(WRITES_BETWEEN) || is_long
    }

    /// Makes the next write restart the log if it is long.
    ///
    /// The write is committed: an error here is not one of the write.
    pub(super) fn keep_short(&self, conn: &mut Connection, bytes: u64, usual: Duration) {
        if bytes <= LIMIT {
            self.due.store(LIMIT, Ordering::Relaxed);
        } else if bytes > self.due.load(Ordering::Relaxed) {
            self.due.store(bytes + bytes / STEP, Ordering::Relaxed);
            if conn.busy_handler(Some(ask_again)).is_ok() {
                let _ = transaction::run(conn, "PRAGMA wal_checkpoint(RESTART)");
                let _ = conn.busy_timeout(usual);
            }
        }
    }
    /// Copies the log to the file and empties it, unless a reader uses it.
    pub(super) fn empty(&self, conn: &mut Connection, usual: Duration) {
        if conn.busy_handler(Some(ask_again)).is_ok() {
            let _ = transaction::run(conn, "PRAGMA wal_checkpoint(TRUNCATE)");
            let _ = conn.busy_timeout(usual);
        }
    }
}

fn ask_again(asked: i32) -> bool {
    std::thread::sleep(transaction::jitter(PAUSE));
    asked < MAX_ASKED
}
