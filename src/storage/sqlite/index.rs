//! The search index, kept in step with the messages.
//!
//! Indexing is deferred: an append notes the address in `search_pending`, and the index catches up
//! before a search and every few hundred appends.
//!
//! Invariant: a message's text is in the index or its address is pending, never both. The index
//! holds no text of its own, so an entry is taken out with the old text, before the row changes.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, params};

use super::connection::Database;
use super::fault::Outcome;
use crate::error::Result;
use crate::search::indexed;
use crate::tree::Address;

/// How many appends of this handle go by before it brings the index up to date.
const APPENDS_BETWEEN: u64 = 512;
/// How many messages are indexed in one transaction, so that other writers wait only briefly.
const CHUNK: usize = 2_048;

/// Notes that a message's text is not in the index.
pub(super) fn note(conn: &Connection, address: Address) -> Outcome<()> {
    conn.prepare_cached("INSERT INTO search_pending (address) VALUES (?1)")?.execute([address])?;
    Ok(())
}

/// Notes that the texts of a stretch of new messages are not in the index.
pub(super) fn note_range(conn: &Connection, first: Address, last: Address) -> Outcome<()> {
    conn.prepare_cached(
        "INSERT INTO search_pending (address)
         SELECT address FROM message WHERE address BETWEEN ?1 AND ?2 ORDER BY address",
    )?
    .execute([first, last])?;
    Ok(())
}

/// Takes a message's text out of the index, before it changes, and notes it as pending again.
pub(super) fn refresh(conn: &Connection, address: Address) -> Outcome<()> {
    take_out(conn, address, address)?;
    conn.prepare_cached("INSERT OR IGNORE INTO search_pending (address) VALUES (?1)")?
        .execute([address])?;
    Ok(())
}

/// Takes the texts of a stretch of messages out of the index, before they go.
pub(super) fn forget(conn: &Connection, first: Address, last: Address) -> Outcome<()> {
    take_out(conn, first, last)?;
    conn.prepare_cached("DELETE FROM search_pending WHERE address BETWEEN ?1 AND ?2")?
        .execute([first, last])?;
    Ok(())
}

/// What is pending is not in `search_source`: deleting what is not there would damage the index.
fn take_out(conn: &Connection, first: Address, last: Address) -> Outcome<()> {
    conn.prepare_cached(
        "INSERT INTO search (search, rowid, text, tools)
         SELECT 'delete', address, text, tools
           FROM search_source
          WHERE address BETWEEN ?1 AND ?2",
    )?
    .execute([first, last])?;
    Ok(())
}

/// Indexes up to `limit` pending messages, in order of address, and returns how many there were.
pub(super) fn catch_up(conn: &Connection, limit: usize) -> Outcome<usize> {
    // In order of address: FTS5 writes a segment each time the order breaks.
    let last: Option<Address> = conn
        .prepare_cached(
            "SELECT max(address)
               FROM (SELECT address FROM search_pending ORDER BY address LIMIT ?1)",
        )?
        .query_row([limit], |row| row.get(0))?;
    let Some(last) = last else { return Ok(0) };
    conn.prepare_cached(
        "INSERT INTO search (rowid, text, tools)
         SELECT address, talktree_text(parts), talktree_tools(parts)
           FROM search_pending JOIN message USING (address)
          WHERE address <= ?1 AND id IS NOT NULL
          ORDER BY address",
    )?
    .execute([last])?;
    let count =
        conn.prepare_cached("DELETE FROM search_pending WHERE address <= ?1")?.execute([last])?;
    Ok(count)
}

/// Returns whether any message is pending.
pub(super) fn has_pending(conn: &Connection) -> Outcome<bool> {
    let found = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM search_pending)")?
        .query_row([], |row| row.get(0))?;
    Ok(found)
}

/// Records which cutting of text the index was made with.
pub(super) fn stamp_version(conn: &Connection) -> Outcome<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO setting (name, value) VALUES ('index_version', ?1)",
    )?
    .execute(params![indexed::VERSION.to_string()])?;
    Ok(())
}

/// Builds the index anew.
pub(super) fn rebuild(conn: &Connection) -> Outcome<()> {
    conn.execute("DELETE FROM search_pending", [])?;
    conn.execute("INSERT INTO search (search) VALUES ('rebuild')", [])?;
    stamp_version(conn)
}

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
            let _ = self.index_pending();
        }
    }

    /// Indexes what is pending, a chunk at a time; returns whether nothing is left.
    ///
    /// Gives way to other writers: where the lock is not free at once, it stays pending.
    pub(super) fn index_pending(&self) -> Result<bool> {
        self.unindexed.store(0, Ordering::Relaxed);
        loop {
            match self.try_write(|conn| catch_up(conn, CHUNK))? {
                None => return Ok(false),
                Some(count) if count < CHUNK => return Ok(true),
                Some(_) => {}
            }
        }
    }
}
