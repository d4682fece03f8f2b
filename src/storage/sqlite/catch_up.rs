//! When pending messages are indexed, and when the index is merged.
//!
//! FTS5 writes a *segment* each time messages are indexed, and a search reads all segments, so they are merged. Appends
//! defer both. After every few small appends one of them does a *step* of the deferred work, which takes about a
//! millisecond. A large append and a search index everything that is pending, in chunks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use super::search_index::{index_pending, merge};
use crate::error::{Error, Result};

/// After this many appended messages a handle does a step ..
const APPENDS_PER_STEP: u64 = 32;
/// .. and this many steps after an indexing it indexes again; the steps between them merge.
const STEPS_PER_INDEXING: u64 = 4;
/// How many messages one step indexes: more than are appended meanwhile, so that a backlog shrinks.
const MESSAGES_PER_STEP: usize = 160;
/// After this time a step indexes no further message. Writing the segment takes about half as long again.
const STEP_TIME: Duration = Duration::from_micros(800);
/// How many pages of the index a step merges at most: about a millisecond.
const PAGES_PER_STEP: u64 = 100;
/// How many pages are merged for each message that is indexed. A message takes about half a page, and is merged once for
/// every eightfold growth of the index.
const PAGES_PER_MESSAGE: u64 = 3;

/// How many messages the first transaction of a series indexes; the following ones adapt to the time it took.
const FIRST_CHUNK: usize = 1_024;
const MAX_CHUNK: usize = 8_192;
/// How long one such transaction may hold the write lock.
const CHUNK_TIME: Duration = Duration::from_millis(100);
/// How many chunks an append indexes at most, so that it returns soon even if others have left many pending.
const CHUNKS_PER_APPEND: usize = 4;
/// With this many pending, a search waits for the write lock rather than index them in a temporary table.
const MANY_PENDING: usize = 2_048;
/// How often it tries to get the write lock, and how long it sleeps in between.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// The work that a handle has deferred since it opened the store.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Messages appended since the last indexing.
    pub(super) appended: AtomicU64,
    /// Pages to merge for the messages that were indexed.
    pages: AtomicU64,
}

impl Database {
    /// Counts appended messages, and does a part of the deferred work if it is due.
    pub(super) fn appended(&self, count: u64) {
        let before = self.deferred.appended.fetch_add(count, Ordering::Relaxed);
        // Messages that cannot be indexed now stay pending, and a search still finds them.
        if count > MESSAGES_PER_STEP as u64 {
            let _ = self.index_some();
        } else if before / APPENDS_PER_STEP != (before + count) / APPENDS_PER_STEP {
            let _ = match (before + count) / APPENDS_PER_STEP >= STEPS_PER_INDEXING {
                true => self.index_step(),
                false => self.merge_step(),
            };
        }
    }

    /// Indexes pending messages for [`STEP_TIME`].
    fn index_step(&self) -> Result<()> {
        self.deferred.appended.store(0, Ordering::Relaxed);
        let step = |conn: &Connection| {
            let until = Instant::now() + STEP_TIME;
            let count = index_pending(conn, MESSAGES_PER_STEP, Some(until))?;
            Ok((count, Instant::now() >= until))
        };
        let (count, is_cut_short) = self.write_soon(step)?.unwrap_or_default();
        if is_cut_short {
            // Long messages or a slow machine: the rest is due sooner.
            let half = APPENDS_PER_STEP * STEPS_PER_INDEXING / 2;
            self.deferred.appended.fetch_add(half, Ordering::Relaxed);
        }
        self.deferred.pages.fetch_add(count as u64 * PAGES_PER_MESSAGE, Ordering::Relaxed);
        Ok(())
    }

    fn merge_step(&self) -> Result<()> {
        let pages = self.deferred.pages.load(Ordering::Relaxed).min(PAGES_PER_STEP);
        if pages == 0 {
            return Ok(());
        }
        match self.write_soon(|conn| merge(conn, pages))? {
            Some(true) => _ = self.deferred.pages.fetch_sub(pages, Ordering::Relaxed),
            Some(false) => self.deferred.pages.store(0, Ordering::Relaxed),
            None => {}
        }
        Ok(())
    }

    /// Indexes a few chunks of pending messages.
    ///
    /// Yields to other writers: if the lock is not free at once, the rest stays pending.
    fn index_some(&self) -> Result<()> {
        self.deferred.appended.store(0, Ordering::Relaxed);
        let mut chunks = 0;
        self.index_chunks(|is_free| {
            chunks += 1;
            Ok(is_free && chunks < CHUNKS_PER_APPEND)
        })
    }

    /// Indexes the pending messages before a search; those that cannot be indexed now stay pending.
    ///
    /// # Errors
    /// [`Error::Interrupted`] between two chunks. A spent budget is no error: the rest stays pending.
    pub(super) fn catch_up_for_search(&self, watch: &Watch) -> Result<()> {
        let pending = self.read(|conn| count_pending(conn, MANY_PENDING))?;
        if pending == 0 || self.is_read_only() {
            return Ok(());
        }
        let mut attempts = if pending < MANY_PENDING { 0 } else { LOCK_ATTEMPTS };
        self.index_chunks(|is_free| {
            if watch.is_interrupted() {
                return Err(Error::Interrupted);
            }
            if watch.is_spent() {
                return Ok(false);
            }
            if is_free || attempts == 0 {
                return Ok(is_free);
            }
            attempts -= 1;
            std::thread::sleep(LOCK_PAUSE);
            Ok(true)
        })
    }

    /// Indexes chunks until nothing is left. `goes_on` is called after each with whether the lock was free, and
    /// decides whether to continue.
    fn index_chunks(&self, mut goes_on: impl FnMut(bool) -> Result<bool>) -> Result<()> {
        let mut chunk = FIRST_CHUNK;
        loop {
            let began = Instant::now();
            let count = match self.try_write(|conn| index_chunk(conn, chunk)) {
                // A full or failing disk is an error for a write, not for a search: pending messages are found
                // anyway.
                Err(Error::DiskFull | Error::Storage { .. }) => None,
                answer => answer?,
            };
            if count.is_some_and(|count| count < chunk) || !goes_on(count.is_some())? {
                return Ok(());
            }
            if count.is_some() && began.elapsed() < CHUNK_TIME / 2 {
                chunk = MAX_CHUNK.min(chunk * 2);
            } else if count.is_some() && began.elapsed() > CHUNK_TIME {
                chunk = (chunk / 2).max(1);
            }
        }
    }
}

fn index_chunk(conn: &Connection, limit: usize) -> BackendResult<usize> {
    let count = index_pending(conn, limit, None)?;
    merge(conn, count as u64 * PAGES_PER_MESSAGE)?;
    Ok(count)
}

/// Returns how many messages are pending, at most `max`.
fn count_pending(conn: &Connection, max: usize) -> BackendResult<usize> {
    let found = conn.prepare_cached(COUNT_PENDING)?.query_row([max], |row| row.get(0))?;
    Ok(found)
}

/// A damaged count must not end a search.
const COUNT_PENDING: &str =
    "SELECT CAST(coalesce(sum(min(max(next - unindexed, 1), ?1)), 0) AS INTEGER)
   FROM (SELECT next, unindexed
           FROM session INDEXED BY session_unindexed
          WHERE unindexed IS NOT NULL
          LIMIT ?1)";
