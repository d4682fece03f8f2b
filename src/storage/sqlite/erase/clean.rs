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
use super::super::segments::Segments;
use super::super::transaction::run;
use crate::error::Result;

/// How many pages of an index one transaction merges: about ten milliseconds.
const PAGES_PER_STEP: i64 = 1_000;
/// How long one attempt to empty the log waits for readers. Writers wait, too.
const ATTEMPT: Duration = Duration::from_millis(50);
/// How long writers can work between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// The statements of a search index.
struct Index {
    merge: &'static str,
    segments: &'static str,
    /// Adds an entry and removes it, so that there are segments with nothing else.
    add: [&'static str; 2],
}

const INDEXES: [Index; 2] = [
    Index {
        merge: "INSERT INTO search (search, rank) VALUES ('merge', ?1)",
        segments: "SELECT block FROM search_data WHERE id = 10",
        add: [
            "INSERT INTO search (rowid, text) VALUES (-1, 'x')",
            "INSERT INTO search (search, rowid, text) VALUES ('delete', -1, 'x')",
        ],
    },
    Index {
        merge: "INSERT INTO context_search (context_search, rank) VALUES ('merge', ?1)",
        segments: "SELECT block FROM context_search_data WHERE id = 10",
        add: [
            "INSERT INTO context_search (rowid, text) VALUES (-1, 'x')",
            "INSERT INTO context_search (context_search, rowid, text) VALUES ('delete', -1, 'x')",
        ],
    },
];

impl Database {
    /// Merges the segments of both search indexes, so that no removed entry is left in them.
    pub(super) fn merge_indexes(&self) -> Result<()> {
        for index in &INDEXES {
            self.merge_segments(index)?;
            // FTS5 drops removed entries only from a segment on the last level. Segments that were all on one level are
            // merged into the next one, which is not the last if higher levels are empty. With a segment on another level
            // they are merged into the last.
            let is_last = self
                .read(|conn| Ok(Segments::in_record(conn, index.segments)?.is_last_level_used()))?;
            if !is_last {
                self.write(|conn| {
                    for statement in index.add {
                        conn.prepare_cached(statement)?.execute([])?;
                    }
                    Ok(())
                })?;
                self.merge_segments(index)?;
            }
        }
        Ok(())
    }

    fn merge_segments(&self, index: &Index) -> Result<()> {
        // A negative number begins a merge of all segments. Called again, it would start over if others have written a
        // segment meanwhile.
        let level = self.write(|conn| {
            conn.prepare_cached(index.merge)?.execute([-PAGES_PER_STEP])?;
            Ok(Segments::in_record(conn, index.segments)?.highest_merging())
        })?;
        let Some(level) = level else { return Ok(()) };
        loop {
            let is_merging = self.write(|conn| {
                conn.prepare_cached(index.merge)?.execute([PAGES_PER_STEP])?;
                let highest = Segments::in_record(conn, index.segments)?.highest_merging();
                // New segments are merged on lower levels.
                Ok(highest.is_some_and(|highest| highest >= level))
            })?;
            if !is_merging {
                return Ok(());
            }
        }
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
                Ok(false) | Err(crate::error::Error::Busy { .. }) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                Ok(is_empty) => return Ok(is_empty),
                Err(crate::error::Error::Busy { .. }) => return Ok(false),
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
