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
use super::super::search_index;
use super::super::segments::Segments;
use super::super::transaction::run;
use crate::error::Result;

/// How many pages of an index one transaction merges: about ten milliseconds.
const PAGES_PER_STEP: i64 = 1_000;
/// How long one attempt to empty the log waits for readers. Writers wait, too.
const ATTEMPT: Duration = Duration::from_millis(50);
/// How long writers can work between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// How many segments of a level a merge takes at least while an erasure merges: as few as FTS5 allows.
const LEAST: u64 = 2;

/// The statements of a search index.
struct Index {
    merge: &'static str,
    /// Sets how many segments of a level a merge takes at least.
    set_least: &'static str,
    usual_least: u64,
    segments: &'static str,
    /// Adds an entry and removes it, so that there are segments with nothing else.
    add: [&'static str; 2],
}

const INDEXES: [Index; 2] = [
    Index {
        merge: "INSERT INTO search (search, rank) VALUES ('merge', ?1)",
        set_least: "INSERT INTO search (search, rank) VALUES ('usermerge', ?1)",
        usual_least: search_index::LEAST,
        segments: "SELECT block FROM search_data WHERE id = 10",
        add: [
            "INSERT INTO search (rowid, text) VALUES (-1, 'x')",
            "INSERT INTO search (search, rowid, text) VALUES ('delete', -1, 'x')",
        ],
    },
    Index {
        merge: "INSERT INTO context_search (context_search, rank) VALUES ('merge', ?1)",
        set_least: "INSERT INTO context_search (context_search, rank) VALUES ('usermerge', ?1)",
        // FTS5's default.
        usual_least: 4,
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
        let Some(level) = self.begin_merge(index)? else { return Ok(()) };
        while self.merge_more(index, level)? {}
        Ok(())
    }

    /// Begins to merge all segments; returns their level unless that was all.
    fn begin_merge(&self, index: &Index) -> Result<Option<usize>> {
        // A negative number begins a merge of all segments. Called again, it would start over if others have written a
        // segment meanwhile.
        self.write(|conn| {
            conn.prepare_cached(index.merge)?.execute([-PAGES_PER_STEP])?;
            Ok(Segments::in_record(conn, index.segments)?.highest_merging())
        })
    }

    /// Continues a merge; returns whether there is more to do.
    fn merge_more(&self, index: &Index, level: usize) -> Result<bool> {
        self.write(|conn| {
            // FTS5 does not go on with a merge while a lower level has as many segments as are being merged: others may have
            // written them meanwhile. It would wait until there are as many as it usually merges.
            conn.prepare_cached(index.set_least)?.execute([LEAST])?;
            conn.prepare_cached(index.merge)?.execute([PAGES_PER_STEP])?;
            conn.prepare_cached(index.set_least)?.execute([index.usual_least])?;
            let highest = Segments::in_record(conn, index.segments)?.highest_merging();
            // New segments are merged on lower levels.
            Ok(highest.is_some_and(|highest| highest >= level))
        })
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::connection::Config;
    use super::super::super::session::SqliteSession;
    use super::*;
    use crate::id::SessionId;
    use crate::message::Message;
    use crate::storage::SessionProvider;
    use crate::view::{ExpectedHead, Parent};

    /// Appends messages and indexes them in a segment of their own.
    fn append(database: &Database, chat: &SqliteSession, texts: &[String]) -> Result<()> {
        let messages: Vec<_> = texts.iter().map(Message::user).collect();
        chat.append(&Parent::Head, &ExpectedHead::Any, &messages)?;
        database.write(|conn| {
            let mut words = database.known_words.recorder(conn)?;
            search_index::index_pending(conn, &mut words, messages.len(), None)?;
            words.finish().map(|_| ())
        })
    }

    /// FTS5 went on with a merge of two segments only when others had written eight: an erasure beside a writer that paused
    /// never ended.
    #[test]
    fn segments_that_others_write_do_not_stop_a_merge() -> Result<()> {
        let database = Arc::new(Database::open_in_memory(Config::default())?);
        let chat = SqliteSession::new(Arc::clone(&database), SessionId::from("s"));
        // Words that share no beginning, so that two segments are more than one step.
        let word = |number: u64| {
            let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{mixed:016x}{:016x}", mixed.wrapping_mul(0xc2b2_ae3d_27d4_eb4f))
        };
        let long = |message: u64| {
            (message * 50..(message + 1) * 50).map(word).collect::<Vec<_>>().join(" ")
        };
        append(&database, &chat, &(0..300).map(long).collect::<Vec<_>>())?;
        append(&database, &chat, &["first".to_owned()])?;
        // The result is on a higher level. Segments on different levels are merged on one of their own.
        database.merge_indexes()?;
        append(&database, &chat, &(300..400).map(long).collect::<Vec<_>>())?;
        let index = &INDEXES[0];
        let level = database.begin_merge(index)?.expect("more than one step");
        for number in 0..6 {
            append(&database, &chat, &[format!("other{number}")])?;
        }
        let ended = (0..100).find_map(|_| match database.merge_more(index, level) {
            Ok(true) => None,
            answer => Some(answer),
        });
        assert!(!ended.expect("the merge ends")?);
        let least: u64 = database.read(|conn| {
            let sql = "SELECT v FROM search_config WHERE k = 'usermerge'";
            Ok(conn.query_row(sql, [], |row| row.get(0))?)
        })?;
        assert_eq!(least, index.usual_least);
        Ok(())
    }
}
