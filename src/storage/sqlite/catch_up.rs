//! When pending messages are indexed, and when the index is merged.
//!
//! FTS5 writes a *segment* each time messages are indexed, and a search reads all segments, so they are merged. Appends
//! defer both. After every few small appends one of them does a *step* of the deferred work, which takes about a
//! millisecond. A large append and a search index everything that is pending, in chunks.
//!
//! How many messages a step can index depends on their length: of a few words 160, of a page one. So the number of appends
//! until the next step follows what the last one could do. It was constant once: of 10 000 appended answers of a model, which
//! are longer, 7 000 were left to the next search.
//!
//! Merging few segments at a time leaves few of them, and is more work. So small appends merge eight of a level, all
//! other work four. A search merges only in proportion to what it indexes: each more segment takes it 3 µs, and merging those of
//! a large store would take hundreds of searches 4 ms each.
//!
//! Invariant: no level gets as many segments as `crisismerge` in schema.sql. FTS5 would then merge all of them at once,
//! in the transaction that writes the last one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use super::search_index::{Indexed, index_pending, merge, merge_for_search};
use super::segments::Segments;
use super::transaction;
use super::vocabulary::{self, Recorder};
use crate::error::{Error, Result};
use crate::report::Progress;

/// A handle indexes after this many appended messages at most, and merges three times in between.
const MAX_APPENDS: u64 = 128;
/// The same for a new handle to a file.
const FIRST_APPENDS: u64 = 16;
/// How many steps a handle does for each indexing, with the indexing.
const STEPS: u64 = 4;
/// How many messages one step indexes: more than are appended meanwhile, so that a backlog shrinks.
const MESSAGES_PER_STEP: usize = 160;
/// After this time a step indexes no further message. Writing the segment takes about half as long again.
const STEP_TIME: Duration = Duration::from_micros(800);
/// How many pages of the index a step merges at most: about a millisecond.
const PAGES_PER_STEP: u64 = 100;
/// Of how much text each page is merged once it is indexed: five times as much as is written, because a text is merged
/// again when the index has grown to a multiple.
const BYTES_PER_PAGE: u64 = 160;
/// With this many segments on a level a step merges instead of indexing: half of `crisismerge`.
const MAX_ON_A_LEVEL: u64 = 32;

/// How many messages the first transaction of a series indexes; the following ones adapt to the time it took.
const FIRST_CHUNK: usize = 4_096;
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
#[derive(Debug)]
pub(super) struct Deferred {
    /// Messages appended since the last indexing.
    appended: AtomicU64,
    /// After how many of them the next indexing is due.
    due_after: AtomicU64,
    /// Pages to merge for the messages that were indexed.
    pages: AtomicU64,
}

impl Default for Deferred {
    fn default() -> Self {
        Self {
            appended: AtomicU64::default(),
            due_after: AtomicU64::new(MAX_APPENDS),
            pages: AtomicU64::default(),
        }
    }
}

impl Deferred {
    /// Returns that of a file, which many programs may open to append a few messages: it begins with a random number of
    /// appended ones, so that these programs do their part.
    pub(super) fn in_file() -> Self {
        Self {
            appended: AtomicU64::new(u64::from(transaction::random()) % FIRST_APPENDS),
            due_after: AtomicU64::new(FIRST_APPENDS),
            ..Self::default()
        }
    }

    /// Lets appends do nothing, however many there are.
    #[cfg(test)]
    pub(super) fn suspend(&self) {
        self.due_after.store(u64::MAX, Ordering::Relaxed);
    }
}

impl Database {
    /// Counts appended messages, and does a part of the deferred work if it is due.
    pub(super) fn appended(&self, count: u64) {
        let before = self.deferred.appended.fetch_add(count, Ordering::Relaxed);
        let (after, due_after) = (before + count, self.deferred.due_after.load(Ordering::Relaxed));
        // Messages that cannot be indexed now stay pending, and a search still finds them.
        if count > MESSAGES_PER_STEP as u64 {
            let _ = self.index_some();
        } else if after >= due_after {
            let _ = self.index_step();
            if due_after < STEPS {
                let _ = self.merge_step();
            }
        } else if before * STEPS / due_after != after * STEPS / due_after {
            let _ = self.merge_step();
        }
    }

    /// Indexes pending messages for [`STEP_TIME`], unless there is too much to merge.
    fn index_step(&self) -> Result<()> {
        let appended = self.deferred.appended.swap(0, Ordering::Relaxed);
        let step = |conn: &Connection| {
            let until = Instant::now() + STEP_TIME;
            if Segments::of(conn)?.most_on_a_level() < MAX_ON_A_LEVEL {
                let mut words = self.known_words.recorder(conn)?;
                let indexed = index_pending(conn, &mut words, MESSAGES_PER_STEP, Some(until))?;
                let is_cut_short = Instant::now() + words.time_left() >= until;
                return Ok(Some((indexed, words.finish()?, is_cut_short)));
            }
            merge(conn, PAGES_PER_STEP)?;
            Ok(None)
        };
        match self.write_step(step)? {
            Some(Some((indexed, words, is_cut_short))) => {
                self.known_words.remember(words);
                self.deferred.pages.fetch_add(pages_to_merge(indexed), Ordering::Relaxed);
                self.adapt(appended, indexed.messages as u64, is_cut_short);
            }
            // The next append tries again.
            Some(None) => _ = self.deferred.appended.fetch_add(appended, Ordering::Relaxed),
            None => {}
        }
        Ok(())
    }

    /// Decides when the next indexing is due, by what this one could do.
    fn adapt(&self, appended: u64, indexed: u64, is_cut_short: bool) {
        let deferred = &self.deferred;
        if is_cut_short {
            // A fifth fewer than a step can index, so that a backlog shrinks.
            deferred.due_after.store((indexed * 4 / 5).clamp(1, MAX_APPENDS), Ordering::Relaxed);
            deferred.appended.fetch_add(appended.saturating_sub(indexed), Ordering::Relaxed);
        } else {
            let due_after = deferred.due_after.load(Ordering::Relaxed);
            deferred.due_after.store(MAX_APPENDS.min(due_after * 5 / 4 + 1), Ordering::Relaxed);
        }
    }

    /// Moves the recent words if there are many, or merges pages of the index.
    fn merge_step(&self) -> Result<()> {
        let pages = self.deferred.pages.load(Ordering::Relaxed).min(PAGES_PER_STEP);
        if pages == 0 {
            return Ok(());
        }
        let step = |conn: &Connection| {
            if vocabulary::move_many(conn)? { Ok(None) } else { merge(conn, pages).map(Some) }
        };
        match self.write_step(step)?.flatten() {
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
        if self.is_read_only() {
            return Ok(());
        }
        match self.read(|conn| count_pending(conn, MANY_PENDING))? {
            0 => Ok(()),
            pending => self.index_for_search(watch, pending),
        }
    }

    fn index_for_search(&self, watch: &Watch, pending: usize) -> Result<()> {
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

    /// Indexes every pending message; `progress` is called before the first transaction and after each.
    ///
    /// Waits for the write lock as every write does. What is indexed is stored, so a call that is stopped is continued by the
    /// next one, or by searches.
    pub(crate) fn index_all(&self, mut progress: impl FnMut(Progress)) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        let watch = self.interrupt_signal().watch();
        let pending = self.read(|conn| count_pending(conn, u32::MAX as usize))? as u64;
        if pending == 0 {
            return Ok(());
        }
        let (mut done, mut chunk) = (0, Chunk::first());
        loop {
            // Numbers without a message were counted, and others may have appended.
            progress(Progress { done, total: pending.max(done) });
            watch.check()?;
            let mut began = Instant::now();
            let (count, words) = self.write(|conn| {
                // Waiting for the lock took no time from others.
                began = Instant::now();
                let mut words = self.known_words.recorder(conn)?;
                Ok((index_chunk(conn, &mut words, chunk.messages)?, words.finish()?))
            })?;
            self.known_words.remember(words);
            done += count as u64;
            if count < chunk.messages {
                progress(Progress { done, total: done });
                return Ok(());
            }
            chunk.adapt(began.elapsed());
        }
    }

    /// Indexes chunks until nothing is left. `goes_on` is called after each with whether the lock was free, and
    /// decides whether to continue.
    fn index_chunks(&self, mut goes_on: impl FnMut(bool) -> Result<bool>) -> Result<()> {
        let mut chunk = Chunk::first();
        loop {
            let began = Instant::now();
            let indexed = unless_disk_fails(self.try_write(|conn| {
                self.log.note_step();
                let mut words = self.known_words.recorder(conn)?;
                Ok((index_chunk(conn, &mut words, chunk.messages)?, words.finish()?))
            }))?;
            let count = indexed.map(|(count, words)| {
                self.known_words.remember(words);
                count
            });
            if count.is_some_and(|count| count < chunk.messages) || !goes_on(count.is_some())? {
                return Ok(());
            }
            if count.is_some() {
                chunk.adapt(began.elapsed());
            }
        }
    }
}

/// How many messages the next transaction of a series indexes.
struct Chunk {
    messages: usize,
}

impl Chunk {
    fn first() -> Self {
        Self { messages: FIRST_CHUNK }
    }

    /// Adapts the next one to the time that the last one took.
    fn adapt(&mut self, took: Duration) {
        if took < CHUNK_TIME / 2 {
            self.messages = MAX_CHUNK.min(self.messages * 2);
        } else if took > CHUNK_TIME {
            self.messages = (self.messages / 2).max(1);
        }
    }
}

fn index_chunk(conn: &Connection, words: &mut Recorder<'_>, limit: usize) -> BackendResult<usize> {
    let indexed = index_pending(conn, words, limit, None)?;
    merge_for_search(conn, pages_to_merge(indexed))?;
    vocabulary::move_many(conn)?;
    Ok(indexed.messages)
}

fn pages_to_merge(indexed: Indexed) -> u64 {
    (indexed.messages as u64) + (indexed.bytes as u64) / BYTES_PER_PAGE
}

/// A full or failing disk is an error for a write, not for a search: pending messages are found anyway.
fn unless_disk_fails<T>(answer: Result<Option<T>>) -> Result<Option<T>> {
    match answer {
        Err(Error::DiskFull | Error::Storage { .. }) => Ok(None),
        answer => answer,
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::connection::Config;
    use super::super::session::SqliteSession;
    use super::*;
    use crate::id::SessionId;
    use crate::message::Message;
    use crate::search::{Scope, SearchRequest};
    use crate::storage::SessionProvider;
    use crate::view::{ExpectedHead, Parent};

    /// As in schema.sql.
    const CRISIS: u64 = 64;

    fn store() -> Result<(Arc<Database>, SqliteSession)> {
        let database = Arc::new(Database::open_in_memory(Config::default())?);
        let chat = SqliteSession::new(Arc::clone(&database), SessionId::from("s"));
        Ok((database, chat))
    }

    fn append(chat: &SqliteSession, text: String) -> Result<()> {
        chat.append(&Parent::Head, &ExpectedHead::Any, &[Message::user(text)]).map(|_| ())
    }

    fn segments(database: &Database) -> Result<Segments> {
        database.read(Segments::of)
    }

    /// Returns how many messages a search finds, and checks the index.
    fn found(database: &Database, text: &str) -> Result<usize> {
        database.write(|conn| {
            conn.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)", [])?;
            Ok(())
        })?;
        let request = SearchRequest { limit: 1_000, ..SearchRequest::new(text, Scope::Store) };
        Ok(database.search(&request)?.hits.len())
    }

    /// Indexes a message in a segment of its own, and merges nothing.
    fn append_segment(database: &Database, chat: &SqliteSession, number: u64) -> Result<()> {
        append(chat, format!("common word{number}"))?;
        database.write(|conn| {
            let mut words = database.known_words.recorder(conn)?;
            index_pending(conn, &mut words, 1, None)?;
            words.finish().map(|_| ())
        })
    }

    #[test]
    fn a_crisis_merge_leaves_one_segment_and_loses_nothing() -> Result<()> {
        let (database, chat) = store()?;
        for number in 0..CRISIS - 1 {
            append_segment(&database, &chat, number)?;
        }
        assert_eq!(segments(&database)?.count(), CRISIS - 1);
        append_segment(&database, &chat, CRISIS - 1)?;
        assert_eq!(segments(&database)?.count(), 1);
        assert_eq!(found(&database, "common")?, CRISIS as usize);
        assert_eq!(found(&database, "word7")?, 1);
        Ok(())
    }

    /// Pages to merge were counted by messages: behind long ones the merges fell back, until FTS5 merged 64 segments in
    /// one append.
    #[test]
    fn appends_of_long_messages_never_reach_a_crisis_merge() -> Result<()> {
        let (database, chat) = store()?;
        let mut most = 0;
        for round in 0..3 * CRISIS {
            let words = (0..1_000).map(|word| format!("w{round}x{word}"));
            append(&chat, words.collect::<Vec<_>>().join(" "))?;
            database.index_step()?;
            most = most.max(segments(&database)?.most_on_a_level());
        }
        assert!(most > 8 && most <= CRISIS / 2, "{most}");
        assert_eq!(found(&database, "w0x7")?, 1);
        Ok(())
    }

    /// A step was due after 128 appends, or 64 if it was cut short, however few messages it could index.
    #[test]
    fn appends_of_long_messages_leave_few_of_them_to_a_search() -> Result<()> {
        let (database, chat) = store()?;
        for number in 0..600 {
            let words = (0..1_000).map(|word| format!("w{word}"));
            append(&chat, format!("n{number} {}", words.collect::<Vec<_>>().join(" ")))?;
        }
        let pending = database.read(|conn| count_pending(conn, 1_000))?;
        assert!(pending < 160, "{pending}");
        Ok(())
    }

    /// A handle did its first step after 32 appends, so with these programs all was left to a search.
    #[test]
    fn programs_that_append_a_few_messages_and_end_leave_few_of_them_to_a_search() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let open = || Database::open(&folder.path().join("bot.db"), Config::default());
        for number in 0..300 {
            let chat = SqliteSession::new(Arc::new(open()?), SessionId::from("s"));
            for part in 0..4 {
                append(&chat, format!("common word{number}x{part}"))?;
            }
        }
        let pending = open()?.read(|conn| count_pending(conn, 10_000))?;
        // It would be more once in 10^16 runs.
        assert!(pending < 600, "{pending}");
        Ok(())
    }

    /// It merged what appends had left: a search of a word took 5 ms instead of 0.5, hundreds of times in a large store.
    #[test]
    fn a_search_with_nothing_to_index_leaves_the_index_as_it_is() -> Result<()> {
        let (database, chat) = store()?;
        for number in 0..24 {
            append_segment(&database, &chat, number)?;
        }
        let before = segments(&database)?;
        assert_eq!(before.count(), 24);
        for _ in 0..3 {
            assert_eq!(found(&database, "common")?, 24);
        }
        assert_eq!(segments(&database)?, before);
        Ok(())
    }

    #[test]
    fn searches_that_index_one_message_each_leave_few_segments() -> Result<()> {
        let (database, chat) = store()?;
        for number in 0..4 * CRISIS {
            append(&chat, format!("common word{number}"))?;
            assert_eq!(found(&database, &format!("word{number}"))?, 1);
        }
        let segments = segments(&database)?;
        assert!(segments.most_on_a_level() < MAX_ON_A_LEVEL, "{segments:?}");
        // What the appends merge by is as it was.
        let least: u64 = database.read(|conn| {
            let sql = "SELECT v FROM search_config WHERE k = 'usermerge'";
            Ok(conn.query_row(sql, [], |row| row.get(0))?)
        })?;
        assert_eq!(least, 8);
        Ok(())
    }
}
