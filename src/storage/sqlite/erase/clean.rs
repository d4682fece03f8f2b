//! Overwrites what remains of deleted rows: in the search indexes, in the write-ahead log, in the pages of the file.
//!
//! `secure_delete` overwrites rows and pages when they are deleted. An entry of a search index stays in its segment until
//! that is merged, so all segments are merged into one, a part in each transaction. FTS5's option `secure-delete` is not
//! used: it makes a delete twenty times as slow, leaves the words that pages of the index begin with, and no SQLite
//! before 3.42 could read the index.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::connection::Database;
use super::super::error::BackendResult;
use super::super::index::{Index, sweep};
use super::super::transaction::run;
use crate::error::{Error, Result};

/// How many pages of an index one transaction merges: about ten milliseconds.
const PAGES_PER_STEP: i64 = 1_000;
/// How long one attempt to empty the log waits for readers. Writers wait, too.
const ATTEMPT: Duration = Duration::from_millis(50);
/// How long writers can work between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

impl Database {
    /// Merges the segments of both search indexes, so that no removed entry is left in them.
    ///
    /// A merge of all segments is begun and goes on in steps. Others may write segments meanwhile; those have no removed entry.
    pub(super) fn merge_indexes(&self) -> Result<()> {
        for index in [Index::Messages, Index::Context] {
            let mut begins = true;
            while self.write(|conn| index.merge(conn, PAGES_PER_STEP, begins))? {
                begins = false;
            }
        }
        Ok(())
    }

    /// Removes the terms that no message has any more.
    pub(super) fn sweep_terms(&self) -> Result<()> {
        let watch = self.watch();
        let mut after = Some(String::new());
        while let Some(term) = after {
            watch.check()?;
            after = self.write(|conn| sweep(conn, &term))?;
        }
        Ok(())
    }

    /// Empties the write-ahead log; `false` if a reader used it until the busy timeout was over.
    pub(super) fn empty_log(&self) -> Result<bool> {
        if self.path().is_none() {
            return Ok(true);
        }
        let until = Instant::now() + self.config.busy_timeout;
        loop {
            let usual = self.config.busy_timeout;
            let is_empty = self.with_writer(|conn| {
                conn.busy_timeout(ATTEMPT.min(usual))?;
                let answer = conn
                    .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
                conn.busy_timeout(usual)?;
                Ok(answer? == 0)
            });
            match is_empty {
                Ok(false) | Err(Error::Busy { .. }) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                Ok(is_empty) => return Ok(is_empty),
                Err(Error::Busy { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Rewrites the file with its present rows only.
    pub(super) fn rewrite(&self) -> Result<()> {
        if self.path().is_none() {
            return Ok(());
        }
        self.with_writer(vacuum)
    }
}

/// The new file is first written to a temporary one, which would be as large in memory.
fn vacuum(conn: &Connection) -> BackendResult<()> {
    conn.pragma_update(None, "temp_store", "FILE")?;
    let vacuumed = run(conn, "VACUUM");
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    vacuumed
}
