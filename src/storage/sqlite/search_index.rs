//! The search index, kept in step with the messages.
//!
//! Indexing is deferred: an append notes the address in `search_pending`, and the index catches up
//! before a search and every few hundred appends.
//!
//! Invariant: a message's text is in the index or its address is pending, never both. The index
//! holds no text of its own, so an entry is taken out with the old text, before the row changes.

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
use crate::search::indexed;
use crate::tree::Address;

/// How many appends of this handle go by before it brings the index up to date.
const APPENDS_BETWEEN: u64 = 512;
/// How many messages are indexed in the first transaction of a row; the next ones take as many as fit the time.
const FIRST_CHUNK: usize = 1_024;
const MAX_CHUNK: usize = 8_192;
/// How long one such transaction may hold off other writers.
const CHUNK_TIME: Duration = Duration::from_millis(100);
/// How many chunks an append takes on: it returns soon however much others have left pending.
const CHUNKS_PER_APPEND: usize = 4;
/// With so many pending a search would rather wait for its turn to write than index them for itself ..
const MANY_PENDING: usize = 2_048;
/// .. for so long.
const TURNS: u32 = 100;
const TURN: Duration = Duration::from_millis(2);

/// Notes that a message's text is not in the index.
pub(super) fn note(conn: &Connection, address: Address) -> BackendResult<()> {
    conn.prepare_cached("INSERT INTO search_pending (address) VALUES (?1)")?.execute([address])?;
    Ok(())
}

/// Notes that the texts of a session's new messages of these numbers are not in the index.
pub(super) fn note_numbers(
    conn: &Connection,
    session: i64,
    numbers: Range<u64>,
) -> BackendResult<()> {
    let at = |number: u64| Address::new(session, number as u32);
    match numbers.end.saturating_sub(numbers.start) {
        0 => Ok(()),
        1 => note(conn, at(numbers.start)),
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

/// Notes that the texts of a stretch of new messages are not in the index.
pub(super) fn note_range(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
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

/// Takes a message's text out of the index, before it changes, and notes it as pending again.
pub(super) fn refresh(conn: &Connection, address: Address) -> BackendResult<()> {
    take_out(conn, address, address)?;
    conn.prepare_cached("INSERT OR IGNORE INTO search_pending (address) VALUES (?1)")?
        .execute([address])?;
    Ok(())
}

/// Takes the texts of a stretch of messages out of the index, before they go.
pub(super) fn forget(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    take_out(conn, first, last)?;
    conn.prepare_cached("DELETE FROM search_pending WHERE address BETWEEN ?1 AND ?2")?
        .execute([first, last])?;
    Ok(())
}

/// Takes the texts of many stretches out of the index, in ascending order, before they go.
///
/// In one statement: FTS5 writes what it has gathered at the beginning of each.
pub(super) fn forget_all(conn: &Connection, stretches: &[(Address, Address)]) -> BackendResult<()> {
    let pairs = stretches.iter().map(|(first, last)| (first.raw(), last.raw()));
    let json = format!("{:?}", pairs.map(|(first, last)| [first, last]).collect::<Vec<_>>());
    conn.prepare_cached(TAKE_OUT_ALL)?.execute([json])?;
    let mut pending =
        conn.prepare_cached("DELETE FROM search_pending WHERE address BETWEEN ?1 AND ?2")?;
    for &(first, last) in stretches {
        pending.execute([first, last])?;
    }
    Ok(())
}

const TAKE_OUT_ALL: &str = "INSERT INTO search (search, rowid, text, tools)
 SELECT 'delete', address, text, tools
   FROM json_each(?1) AS stretch
  CROSS JOIN search_source
  WHERE address BETWEEN stretch.value ->> 0 AND stretch.value ->> 1";

/// What is pending is not in `search_source`: deleting what is not there would damage the index.
fn take_out(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    conn.prepare_cached(TAKE_OUT)?.execute([first, last])?;
    Ok(())
}

pub(super) const TAKE_OUT: &str = "INSERT INTO search (search, rowid, text, tools)
 SELECT 'delete', address, text, tools
   FROM search_source
  WHERE address BETWEEN ?1 AND ?2";

/// Indexes up to `limit` pending messages, in order of address, and returns how many there were.
pub(super) fn catch_up(conn: &Connection, limit: usize) -> BackendResult<usize> {
    // In order of address: FTS5 writes a segment each time the order breaks.
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
        // Parts that cannot be read have no text, as the functions have it.
        let parts = row.get_ref(1)?.as_str().ok().and_then(|text| parts_from_text(text).ok());
        let text = parts.as_ref().map(|parts| indexed::text(parts));
        let tools = parts.as_ref().map(|parts| indexed::tools(parts));
        insert.execute(params![address, text, tools])?;
    }
    drop(rows);
    let count =
        conn.prepare_cached("DELETE FROM search_pending WHERE address <= ?1")?.execute([last])?;
    Ok(count)
}

/// The cross join holds the planner to this order: it must never walk the messages to find the
/// pending. The parts are cut by the caller: the functions of the schema would each read them anew.
pub(super) const PENDING_PARTS: &str = "SELECT search_pending.address, parts
   FROM search_pending
  CROSS JOIN message ON message.address = search_pending.address
  WHERE search_pending.address <= ?1 AND message.id IS NOT NULL
  ORDER BY search_pending.address";

/// Returns how many messages are pending, counting to `max`.
fn count_pending(conn: &Connection, max: usize) -> BackendResult<usize> {
    let found = conn
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM search_pending LIMIT ?1)")?
        .query_row([max], |row| row.get(0))?;
    Ok(found)
}

/// Sees to it that the index is made with the present cutting of text.
///
/// If not, all is taken out and pending: the store opens at once, and what follows indexes a chunk at a time.
pub(super) fn bring_up_to_date(conn: &Connection, config: &Config) -> BackendResult<()> {
    if has_present_version(conn)? {
        return Ok(());
    }
    transaction::write(conn, config, config.busy_timeout, empty_if_old)
}

fn empty_if_old(conn: &Connection) -> BackendResult<()> {
    // Another process may have been quicker.
    if has_present_version(conn)? {
        return Ok(());
    }
    conn.execute("INSERT INTO search (search) VALUES ('delete-all')", [])?;
    conn.execute(
        "INSERT OR IGNORE INTO search_pending (address)
         SELECT address FROM message WHERE id IS NOT NULL ORDER BY address",
        [],
    )?;
    // Documents are few beside messages, and nothing of them is ever pending.
    conn.execute(REBUILD_CONTEXT, [])?;
    stamp_version(conn)
}

fn has_present_version(conn: &Connection) -> BackendResult<bool> {
    let version: Option<String> = conn
        .prepare_cached("SELECT value FROM setting WHERE name = 'index_version'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(version.is_some_and(|version| version == indexed::VERSION.to_string()))
}

/// Records which cutting of text the index was made with.
pub(super) fn stamp_version(conn: &Connection) -> BackendResult<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO setting (name, value) VALUES ('index_version', ?1)",
    )?
    .execute(params![indexed::VERSION.to_string()])?;
    Ok(())
}

/// Builds the indexes of messages and of the context anew.
pub(super) fn rebuild(conn: &Connection) -> BackendResult<()> {
    conn.execute("DELETE FROM search_pending", [])?;
    conn.execute("INSERT INTO search (search) VALUES ('rebuild')", [])?;
    conn.execute(REBUILD_CONTEXT, [])?;
    stamp_version(conn)
}

const REBUILD_CONTEXT: &str = "INSERT INTO context_search (context_search) VALUES ('rebuild')";

impl Database {
    /// Builds the search index anew.
    pub(crate) fn rebuild_search(&self) -> Result<()> {
        self.write_long(rebuild)
    }

    /// Counts appends, and brings the index up to date when there were many.
    pub(super) fn appended(&self, count: u64) {
        let before = self.unindexed.fetch_add(count, Ordering::Relaxed);
        if before + count >= APPENDS_BETWEEN {
            // What cannot be indexed now stays pending, and a search finds it all the same.
            let _ = self.index_some();
        }
    }

    /// Indexes a few chunks of what is pending; returns whether nothing is left.
    ///
    /// Gives way to other writers: where the lock is not free at once, it stays pending.
    fn index_some(&self) -> Result<bool> {
        self.unindexed.store(0, Ordering::Relaxed);
        let mut chunks = 0;
        self.index_chunks(|is_free| {
            chunks += 1;
            Ok(is_free && chunks < CHUNKS_PER_APPEND)
        })
    }

    /// Indexes what is pending before a search; what cannot be indexed now stays pending.
    ///
    /// # Errors
    /// [`Error::Interrupted`] between two chunks.
    pub(super) fn catch_up_for_search(&self, watch: &Watch) -> Result<()> {
        let pending = self.read(|conn| count_pending(conn, MANY_PENDING))?;
        if pending == 0 || self.is_read_only() {
            return Ok(());
        }
        let mut turns = if pending < MANY_PENDING { 0 } else { TURNS };
        self.index_chunks(|is_free| {
            watch.check()?;
            if is_free || turns == 0 {
                return Ok(is_free);
            }
            turns -= 1;
            std::thread::sleep(TURN);
            Ok(true)
        })?;
        Ok(())
    }

    /// Indexes chunks until nothing is left; `goes_on` is asked after each, and told whether the lock was free.
    fn index_chunks(&self, mut goes_on: impl FnMut(bool) -> Result<bool>) -> Result<bool> {
        let mut chunk = FIRST_CHUNK;
        loop {
            let began = Instant::now();
            let count = match self.try_write(|conn| catch_up(conn, chunk)) {
                // A full or failing disk is news for a write. What is pending is found all the same.
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
