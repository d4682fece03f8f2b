//! The write-ahead log, and keeping it short.
//!
//! SQLite moves the log into the file every thousand pages, and begins it anew where all of it is moved and nobody
//! reads it. Where several processes write and read without a pause that moment does not come, and the log would grow
//! for as long as they go on. So a writer that leaves the log long keeps the others out until it is moved.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::transaction;

/// The log is cut back to this many bytes when it begins anew; one that is longer is to begin anew.
pub(super) const LIMIT: u64 = 16 << 20;
/// A log that cannot begin anew, because someone reads it, grows by this part of its size until that is tried again.
const STEP: u64 = 8;
/// How often that asks for the locks of writers, and then of readers, about a millisecond each time. Once the writers'
/// lock is had they wait, too.
const MAX_ASKED: i32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// The log of one database.
pub(super) struct Wal {
    path: PathBuf,
    /// The size at which it is to begin anew.
    due: AtomicU64,
}

impl Wal {
    pub(super) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), due: AtomicU64::new(LIMIT) }
    }

    pub(super) fn size(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |log| log.len())
    }

    /// Sees to it, after a write, that a long log begins anew with the next one.
    ///
    /// What was written is in the log: a failure here is none of the write.
    pub(super) fn keep_short(&self, conn: &mut Connection, usual: Duration) {
        let size = self.size();
        if size <= LIMIT {
            self.due.store(LIMIT, Ordering::Relaxed);
        } else if size > self.due.load(Ordering::Relaxed) {
            self.due.store(size + size / STEP, Ordering::Relaxed);
            if conn.busy_handler(Some(ask_again)).is_ok() {
                let _ = transaction::run(conn, "PRAGMA wal_checkpoint(RESTART)");
                let _ = conn.busy_timeout(usual);
            }
        }
    }
}

fn ask_again(asked: i32) -> bool {
    std::thread::sleep(transaction::jitter(PAUSE));
    asked < MAX_ASKED
}
