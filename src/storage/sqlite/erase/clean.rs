//! Overwrites what remains of deleted rows: in the search indexes, in the write-ahead log, in the pages of the file.
//!
//! `secure_delete` overwrites rows and pages when they are deleted. An entry of a search index stays in its segment until
//! that is merged, so all segments are merged into one, a part in each transaction. FTS5's option `secure-delete` is not
//! used: it makes a delete twenty times as slow, leaves the words that pages of the index begin with, and no SQLite
//! before 3.42 could read the index.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::connection::Database;
use super::super::index::{Index, merge, sweep};
use super::super::interrupt::{Watch, interruptible};
use super::super::transaction::run;
use super::texts::Texts;
use crate::erasure::Erased;
use crate::error::{Error, Result};
use crate::sql::BackendResult;

/// How many pages of an index one transaction merges: about ten milliseconds.
const PAGES_PER_STEP: i64 = 1_000;
/// How long one attempt to empty the log waits for readers. Writers wait, too.
const ATTEMPT: Duration = Duration::from_millis(50);
/// How long writers can work between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Whether an erasure is not complete.
const IS_LEFT: &str = "SELECT 1 FROM leftover WHERE number = ?1";

impl Database {
    /// Overwrites what remains of the rows that an erasure has deleted, unless one that began later is quicker. If their texts are not
    /// known, the file is rewritten.
    pub(super) fn clean(
        &self,
        watch: &Watch,
        erasure: i64,
        texts: Option<&Texts>,
        out: &mut Erased,
    ) -> Result<()> {
        self.sweep_terms(watch)?;
        let is_done = || self.read(|conn| Ok(!conn.has(IS_LEFT, erasure)?));
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            return server.vacuum(is_done);
        }
        let Some(file) = &self.file else { return Ok(()) };
        if is_done()? {
            return Ok(());
        }
        self.merge_indexes(watch)?;
        // SQLite moves rows between pages and leaves copies in the gaps, which it does not overwrite. They cannot be found
        // in an encrypted file.
        let known = texts.filter(|_| {
            file.bytes() > self.config.rewritten_up_to && self.config.encryption.is_none()
        });
        out.is_rewritten = known.is_none();
        if out.is_rewritten {
            self.with_writer(|conn| vacuum(conn, watch))?;
        }
        out.is_log_in_use = !self.empty_log(watch)?;
        // A log that is in use cannot be overwritten.
        if out.is_complete()
            && let Some(texts) = known.filter(|texts| texts.sequences() > 0)
            && self.scan_for(texts)?.occurrences.iter().any(|(path, _)| path == file.path())
        {
            self.with_writer(|conn| vacuum(conn, watch))?;
            out.is_rewritten = true;
            out.is_log_in_use = !self.empty_log(watch)?;
        }
        Ok(())
    }

    /// Removes the terms that no message has any more.
    fn sweep_terms(&self, watch: &Watch) -> Result<()> {
        let mut after = Some(String::new());
        while let Some(term) = after {
            watch.check()?;
            after = self.write(|conn| sweep(conn, &term))?;
        }
        Ok(())
    }

    /// Merges the segments of both search indexes, so that no removed entry is left in them.
    ///
    /// A merge of all segments is begun and goes on in steps. Others may write segments meanwhile; those have no removed entry.
    fn merge_indexes(&self, watch: &Watch) -> Result<()> {
        for index in [Index::Messages, Index::Context] {
            let mut begins = true;
            while self.write(|conn| merge(index, conn, PAGES_PER_STEP, begins))? {
                watch.check()?;
                begins = false;
            }
        }
        Ok(())
    }

    /// Empties the write-ahead log; `false` if a reader used it until the busy timeout was over.
    pub(super) fn empty_log(&self, watch: &Watch) -> Result<bool> {
        let until = Instant::now() + self.config.busy_timeout;
        loop {
            watch.check()?;
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
}

/// Rewrites the file with its present rows only.
///
/// The new file is first written to a temporary one, which would be as large in memory.
fn vacuum(conn: &mut Connection, watch: &Watch) -> BackendResult<()> {
    conn.pragma_update(None, "temp_store", "FILE")?;
    let vacuumed = interruptible(conn, watch.clone(), |conn| run(conn, "VACUUM"));
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    vacuumed
}

#[cfg(test)]
mod tests {
    use super::super::super::connection::Config;
    use super::*;

    #[test]
    fn an_interrupt_stops_the_rewriting_of_a_file() -> Result<()> {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::open(&folder.path().join("bot.db"), Config::default())?;
        let rows =
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
             INSERT INTO setting SELECT n, n FROM n";
        database.write(|conn| conn.run(rows, ()).map(drop))?;
        let raised = database.watch();
        raised.raise();
        let stopped = database.with_writer(|conn| vacuum(conn, &raised));
        assert!(matches!(stopped, Err(Error::Interrupted)));
        database.with_writer(|conn| vacuum(conn, &database.watch()))
    }
}
