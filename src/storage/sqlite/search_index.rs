//! Keeping the search index in step with the messages.
//!
//! Indexing is deferred: an append adds the address to `search_pending`. The index catches up before a search, and
//! every few hundred appends.
//!
//! Invariant: a message's text is in the index or its address is pending, never both. The index stores no text, so
//! deleting an entry needs the old text, before the row changes.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};

use super::connection::{Config, Database};
use super::error::BackendResult;
use super::interrupt::Watch;
use super::transaction;
use crate::error::{Error, Result};
use crate::message::parts_from_text;
use crate::search::indexed_text;
use crate::tree::Address;

/// After this many appends a handle indexes the pending messages.
const APPENDS_BETWEEN: u64 = 512;
/// How many messages the first transaction of a series indexes; the following ones adapt to the time it took.
const FIRST_CHUNK: usize = 1_024;
const MAX_CHUNK: usize = 8_192;
/// How long one such transaction may hold the write lock.
const CHUNK_TIME: Duration = Duration::from_millis(100);
/// How many chunks an append indexes at most, so that it returns soon even if others have left many pending.
const CHUNKS_PER_APPEND: usize = 4;
/// With this many pending, a search waits for the write lock rather than indexing them for itself alone ..
const MANY_PENDING: usize = 2_048;
/// .. this many times this long.
const TURNS: u32 = 100;
const TURN: Duration = Duration::from_millis(2);

pub(super) fn add_pending(conn: &Connection, address: Address) -> BackendResult<()> {
    conn.prepare_cached("INSERT INTO search_pending (address) VALUES (?1)")?.execute([address])?;
    Ok(())
}

/// Adds new messages of a session, given by their numbers, to `search_pending`.
pub(super) fn add_pending_numbers(
    conn: &Connection,
    session: i64,
    numbers: Range<u64>,
) -> BackendResult<()> {
    let at = |number: u64| Address::new(session, number as u32);
    match numbers.end.saturating_sub(numbers.start) {
        0 => Ok(()),
        1 => add_pending(conn, at(numbers.start)),
        _ => {
            conn.prepare_cached(
                "WITH RECURSIVE new (address) AS (
                     SELECT ?1 UNION ALL SELECT address + 1 FROM new WHERE address < ?2)
                 INSERT INTO search_pending (address) SELECT address FROM new",
            )?
            .execute([at(numbers.start), at(numbers.end - 1)])?;
            Ok(())
        }
    }
}

/// Adds a range of new messages to `search_pending`.
pub(super) fn add_pending_range(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<()> {
    conn.prepare_cached(
        "INSERT INTO search_pending (address)
         SELECT address
           FROM message
          WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL
          ORDER BY address",
    )?
    .execute([first, last])?;
    Ok(())
}

/// Deletes a message's index entry and makes the message pending again. Must run before its row changes.
pub(super) fn make_pending(conn: &Connection, address: Address) -> BackendResult<()> {
    delete_entries(conn, address, address)?;
    conn.prepare_cached("INSERT OR IGNORE INTO search_pending (address) VALUES (?1)")?
        .execute([address])?;
    Ok(())
}

/// Deletes the index entries of a range of messages. Must run before their rows are deleted.
pub(super) fn remove(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    delete_entries(conn, first, last)?;
    conn.prepare_cached("DELETE FROM search_pending WHERE address BETWEEN ?1 AND ?2")?
        .execute([first, last])?;
    Ok(())
}

/// Deletes the index entries of several ranges, in ascending order. Must run before their rows are deleted.
///
/// In one statement: FTS5 flushes what it has buffered at the beginning of each.
pub(super) fn remove_all(conn: &Connection, ranges: &[(Address, Address)]) -> BackendResult<()> {
    let pairs = ranges.iter().map(|(first, last)| (first.raw(), last.raw()));
    let json = format!("{:?}", pairs.map(|(first, last)| [first, last]).collect::<Vec<_>>());
    conn.prepare_cached(DELETE_ALL_ENTRIES)?.execute([json])?;
    let mut pending =
        conn.prepare_cached("DELETE FROM search_pending WHERE address BETWEEN ?1 AND ?2")?;
    for &(first, last) in ranges {
        pending.execute([first, last])?;
    }
    Ok(())
}

const DELETE_ALL_ENTRIES: &str = "INSERT INTO search (search, rowid, text, tools)
 SELECT 'delete', address, text, tools
   FROM json_each(?1) AS range
  CROSS JOIN search_source
  WHERE address BETWEEN range.value ->> 0 AND range.value ->> 1";

/// Pending messages are not in `search_source`: deleting an entry that does not exist would corrupt the index.
fn delete_entries(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    conn.prepare_cached(DELETE_ENTRIES)?.execute([first, last])?;
    Ok(())
}

pub(super) const DELETE_ENTRIES: &str = "INSERT INTO search (search, rowid, text, tools)
 SELECT 'delete', address, text, tools
   FROM search_source
  WHERE address BETWEEN ?1 AND ?2";

/// Indexes up to `limit` pending messages and returns how many there were.
pub(super) fn index_pending(conn: &Connection, limit: usize) -> BackendResult<usize> {
    // In order of address: FTS5 writes a segment each time the order is broken.
    let last: Option<Address> = conn
        .prepare_cached(
            "SELECT max(address)
               FROM (SELECT address FROM search_pending ORDER BY address LIMIT ?1)",
        )?
        .query_row([limit], |row| row.get(0))?;
    let Some(last) = last else { return Ok(0) };
    let mut insert =
        conn.prepare_cached("INSERT INTO search (rowid, text, tools) VALUES (?1, ?2, ?3)")?;
    let mut pending = conn.prepare_cached(PENDING_PARTS)?;
    let mut rows = pending.query([last])?;
    while let Some(row) = rows.next()? {
        let address: Address = row.get(0)?;
        // Damaged parts have no text, as in the SQL functions.
        let parts = row.get_ref(1)?.as_str().ok().and_then(|text| parts_from_text(text).ok());
        let text = parts.as_ref().map(|parts| indexed_text::text(parts));
        let tools = parts.as_ref().map(|parts| indexed_text::tools(parts));
        insert.execute(params![address, text, tools])?;
    }
    drop(rows);
    let count =
        conn.prepare_cached("DELETE FROM search_pending WHERE address <= ?1")?.execute([last])?;
    Ok(count)
}

/// The cross join fixes the join order: the planner must never scan the messages to find the pending ones. The caller
/// extracts both texts: the SQL functions would parse the parts twice.
pub(super) const PENDING_PARTS: &str = "SELECT search_pending.address, parts
   FROM search_pending
  CROSS JOIN message ON message.address = search_pending.address
  WHERE search_pending.address <= ?1 AND message.id IS NOT NULL
  ORDER BY search_pending.address";

/// Returns how many messages are pending, at most `max`.
fn count_pending(conn: &Connection, max: usize) -> BackendResult<usize> {
    let found = conn
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM search_pending LIMIT ?1)")?
        .query_row([max], |row| row.get(0))?;
    Ok(found)
}

/// Checks that the index holds the current version of the indexed text.
///
/// Otherwise the index is emptied and everything is pending: the store opens at once, and the following writes and
/// searches index a chunk at a time.
pub(super) fn empty_if_outdated(conn: &Connection, config: &Config) -> BackendResult<()> {
    if has_current_version(conn)? {
        return Ok(());
    }
    transaction::write(conn, config, config.busy_timeout, empty_index)
}

fn empty_index(conn: &Connection) -> BackendResult<()> {
    // Another process may have done it meanwhile.
    if has_current_version(conn)? {
        return Ok(());
    }
    conn.execute("INSERT INTO search (search) VALUES ('delete-all')", [])?;
    conn.execute(
        "INSERT OR IGNORE INTO search_pending (address)
         SELECT address FROM message WHERE id IS NOT NULL ORDER BY address",
        [],
    )?;
    // Documents are few compared with messages, and are never pending.
    conn.execute(REBUILD_CONTEXT, [])?;
    store_version(conn)
}

fn has_current_version(conn: &Connection) -> BackendResult<bool> {
    let version: Option<String> = conn
        .prepare_cached("SELECT value FROM setting WHERE name = 'index_version'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(version.is_some_and(|version| version == indexed_text::VERSION.to_string()))
}

/// Records the version of the indexed text.
pub(super) fn store_version(conn: &Connection) -> BackendResult<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO setting (name, value) VALUES ('index_version', ?1)",
    )?
    .execute(params![indexed_text::VERSION.to_string()])?;
    Ok(())
}

/// Rebuilds the indexes of messages and of the context.
pub(super) fn rebuild(conn: &Connection) -> BackendResult<()> {
    conn.execute("DELETE FROM search_pending", [])?;
    conn.execute("INSERT INTO search (search) VALUES ('rebuild')", [])?;
    conn.execute(REBUILD_CONTEXT, [])?;
    store_version(conn)
}

const REBUILD_CONTEXT: &str = "INSERT INTO context_search (context_search) VALUES ('rebuild')";

impl Database {
    /// Rebuilds the search indexes.
    pub(crate) fn rebuild_search(&self) -> Result<()> {
        self.write_long(rebuild)
    }

    /// Counts appends, and indexes the pending messages after many of them.
    pub(super) fn appended(&self, count: u64) {
        let before = self.unindexed.fetch_add(count, Ordering::Relaxed);
        if before + count >= APPENDS_BETWEEN {
            // Messages that cannot be indexed now stay pending, and a search still finds them.
            let _ = self.index_some();
        }
    }

    /// Indexes a few chunks of pending messages; returns whether none is left.
    ///
    /// Yields to other writers: if the lock is not free at once, the rest stays pending.
    fn index_some(&self) -> Result<bool> {
        self.unindexed.store(0, Ordering::Relaxed);
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
        let mut turns = if pending < MANY_PENDING { 0 } else { TURNS };
        self.index_chunks(|is_free| {
            if watch.is_interrupted() {
                return Err(Error::Interrupted);
            }
            if watch.is_spent() {
                return Ok(false);
            }
            if is_free || turns == 0 {
                return Ok(is_free);
            }
            turns -= 1;
            std::thread::sleep(TURN);
            Ok(true)
        })?;
        Ok(())
    }

    /// Indexes chunks until nothing is left. `goes_on` is called after each with whether the lock was free, and
    /// decides whether to continue.
    fn index_chunks(&self, mut goes_on: impl FnMut(bool) -> Result<bool>) -> Result<bool> {
        let mut chunk = FIRST_CHUNK;
        loop {
            let began = Instant::now();
            let count = match self.try_write(|conn| index_pending(conn, chunk)) {
                // A full or failing disk is an error for a write, not for a search: pending messages are found
                // anyway.
                Err(Error::DiskFull | Error::Storage { .. }) => None,
                answer => answer?,
            };
            if count.is_some_and(|count| count < chunk) {
                return Ok(true);
            }
            if !goes_on(count.is_some())? {
                return Ok(false);
            }
            if count.is_some() && began.elapsed() < CHUNK_TIME / 2 {
                chunk = MAX_CHUNK.min(chunk * 2);
            } else if count.is_some() && began.elapsed() > CHUNK_TIME {
                chunk = (chunk / 2).max(1);
            }
        }
    }
}
