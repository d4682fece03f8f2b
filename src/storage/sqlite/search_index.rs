//! The entries of the search index: adding, removing, rebuilding them.
//!
//! Indexing is deferred: the messages of a session from number `session.unindexed` on are *pending*, and
//! [`catch_up`](super::catch_up) decides when they are indexed.
//!
//! Invariant: a message's text is in the index or the message is pending, never both. The index stores no text, so
//! deleting an entry needs the old text, before the row changes.

use std::time::Instant;

use rusqlite::{Connection, OptionalExtension, params};

use super::connection::{Config, Database};
use super::error::BackendResult;
use super::row::session::SessionRow;
use super::segments::Segments;
use super::vocabulary::Recorder;
use super::{search_filter, transaction, vocabulary};
use crate::error::Result;
use crate::message::parts_from_text;
use crate::search::{indexed_text, script};
use crate::tree::Address;

/// Makes the session's messages from this number on pending.
pub(super) fn make_pending(
    conn: &Connection,
    session: &mut SessionRow,
    number: u64,
) -> BackendResult<()> {
    if session.unindexed.is_none_or(|first| number < first) && number < session.next {
        session.unindexed = Some(number);
        store_unindexed(conn, session.key, session.unindexed)?;
    }
    Ok(())
}

fn store_unindexed(conn: &Connection, session: i64, first: Option<u64>) -> BackendResult<()> {
    conn.prepare_cached("UPDATE session SET unindexed = ?2 WHERE key = ?1")?
        .execute(params![session, first])?;
    Ok(())
}

/// Deletes a message's index entry before its row changes; returns whether the caller has to add it again.
///
/// The newest message becomes pending instead: it may be streamed, and each update would write to the index.
pub(super) fn remove_to_update(
    conn: &Connection,
    session: &mut SessionRow,
    address: Address,
) -> BackendResult<bool> {
    let number = u64::from(address.n());
    let first_pending = session.unindexed.unwrap_or(session.next);
    if number >= first_pending {
        return Ok(false);
    }
    remove(conn, address, address)?;
    if number + 1 < first_pending {
        return Ok(true);
    }
    make_pending(conn, session, number)?;
    Ok(false)
}

/// Indexes a message that is not pending.
pub(super) fn add(conn: &Connection, address: Address) -> BackendResult<()> {
    conn.prepare_cached(
        "INSERT INTO search (rowid, text, tools)
         SELECT address, text, tools FROM search_source WHERE address = ?1",
    )?
    .execute([address])?;
    search_filter::add(conn, address)?;
    vocabulary::add(conn, address)
}

/// Deletes the index entries of a range of messages. Must run before their rows change.
///
/// Pending messages are not in `search_source`: deleting an entry that does not exist would corrupt the index.
pub(super) fn remove(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    conn.prepare_cached(DELETE_ENTRIES)?.execute([first, last])?;
    search_filter::remove(conn, first, last)
}

pub(super) const DELETE_ENTRIES: &str = "INSERT INTO search (search, rowid, text, tools)
 SELECT 'delete', address, text, tools
   FROM search_source
  WHERE address BETWEEN ?1 AND ?2";

/// Deletes the index entries of several ranges, in ascending order. Must run before their rows are deleted.
///
/// In one statement: FTS5 flushes what it has buffered at the beginning of each.
pub(super) fn remove_all(conn: &Connection, ranges: &[(Address, Address)]) -> BackendResult<()> {
    let pairs = ranges.iter().map(|(first, last)| (first.raw(), last.raw()));
    let json = format!("{:?}", pairs.map(|(first, last)| [first, last]).collect::<Vec<_>>());
    conn.prepare_cached(DELETE_ALL_ENTRIES)?.execute([json])?;
    ranges.iter().try_for_each(|&(first, last)| search_filter::remove(conn, first, last))
}

const DELETE_ALL_ENTRIES: &str = "INSERT INTO search (search, rowid, text, tools)
 SELECT 'delete', address, text, tools
   FROM json_each(?1) AS range
  CROSS JOIN search_source
  WHERE address BETWEEN range.value ->> 0 AND range.value ->> 1";

/// What was indexed.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Indexed {
    pub(super) messages: usize,
    /// The length of their texts.
    pub(super) bytes: usize,
}

/// Indexes up to `limit` pending messages and records their words, but none after the time is up.
pub(super) fn index_pending(
    conn: &Connection,
    words: &mut Recorder<'_>,
    limit: usize,
    until: Option<Instant>,
) -> BackendResult<Indexed> {
    let mut all = Indexed::default();
    while all.messages < limit
        && until.is_none_or(|until| Instant::now() + words.time_left() < until)
    {
        // In order of address: FTS5 writes a segment each time the order is broken.
        let session: Option<(i64, i64, i64)> = conn
            .prepare_cached(FIRST_PENDING)?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((key, first, next)) = session else { break };
        // `verify` reports a number that is damaged.
        let first = u32::try_from(first.max(1)).unwrap_or(u32::MAX);
        let (indexed, last) =
            index_session(conn, words, (key, first), limit - all.messages, until)?;
        all.messages += indexed.messages;
        all.bytes += indexed.bytes;
        let rest = last.map(|last| u64::from(last.n()) + 1);
        let rest = rest.filter(|rest| i64::try_from(*rest).is_ok_and(|rest| rest < next));
        store_unindexed(conn, key, rest)?;
    }
    Ok(all)
}

pub(super) const FIRST_PENDING: &str = "SELECT key, unindexed, next
   FROM session INDEXED BY session_unindexed
  WHERE unindexed IS NOT NULL
  ORDER BY key
  LIMIT 1";

/// Indexes a session's pending messages; returns also the last one.
fn index_session(
    conn: &Connection,
    words: &mut Recorder<'_>,
    (session, first): (i64, u32),
    limit: usize,
    until: Option<Instant>,
) -> BackendResult<(Indexed, Option<Address>)> {
    let mut insert =
        conn.prepare_cached("INSERT INTO search (rowid, text, tools) VALUES (?1, ?2, ?3)")?;
    let mut pending = conn.prepare_cached(PENDING_PARTS)?;
    let (_, end) = Address::range_of(session);
    let mut rows = pending.query(params![Address::new(session, first), end, limit])?;
    let mut filter = search_filter::Adder::new(conn);
    let (mut indexed, mut last) = (Indexed::default(), None);
    while let Some(row) = rows.next()? {
        let address: Address = row.get(0)?;
        // Damaged parts have no text, as in the SQL functions.
        let parts = row.get_ref(1)?.as_str().ok().and_then(|text| parts_from_text(text).ok());
        let text = parts.as_ref().map(|parts| indexed_text::plain_text(parts));
        let tools = parts.as_ref().map(|parts| indexed_text::plain_tools(parts));
        words.add([&text, &tools].map(|text| text.as_deref().unwrap_or_default()))?;
        indexed.messages += 1;
        indexed.bytes +=
            [&text, &tools].iter().filter_map(|text| text.as_ref()).map(String::len).sum::<usize>();
        let [text, tools] = [&text, &tools].map(|text| text.as_deref().map(script::segment));
        insert.execute(params![address, text, tools])?;
        filter.add(address, row.get_ref(2)?.as_bytes()?, row.get(3)?)?;
        last = Some(address);
        if until.is_some_and(|until| Instant::now() + words.time_left() >= until) {
            break;
        }
    }
    filter.finish()?;
    Ok((indexed, last))
}

/// The caller extracts both texts: the SQL functions would parse the parts twice.
pub(super) const PENDING_PARTS: &str = "SELECT address, parts, role, created_at
   FROM message
  WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL
  ORDER BY address
  LIMIT ?3";

/// How many segments of a level a merge takes at least: `usermerge` in schema.sql.
///
/// Few at a time mean few segments for searches, and more work, because a message is merged at more levels. A mean append
/// takes a quarter longer with 4.
pub(super) const LEAST: u64 = 8;
/// The same where there is time: in a search, an import or a large append.
const LEAST_FOR_SEARCH: u64 = 4;

/// Merges as [`merge`] does, but also where only a few segments can be merged.
pub(super) fn merge_for_search(conn: &Connection, pages: u64) -> BackendResult<()> {
    if pages == 0 || !Segments::of(conn)?.can_merge(LEAST_FOR_SEARCH) {
        return Ok(());
    }
    // The setting is stored in the index. No other connection sees this one: both changes are in one transaction.
    let set = "INSERT INTO search (search, rank) VALUES ('usermerge', ?1)";
    conn.prepare_cached(set)?.execute([LEAST_FOR_SEARCH])?;
    merge(conn, pages)?;
    conn.prepare_cached(set)?.execute([LEAST])?;
    Ok(())
}

/// Merges segments of the index, writing about this many of its pages; returns whether there was anything to merge.
pub(super) fn merge(conn: &Connection, pages: u64) -> BackendResult<bool> {
    let before = conn.total_changes();
    conn.prepare_cached("INSERT INTO search (search, rank) VALUES ('merge', ?1)")?
        .execute([i64::try_from(pages).unwrap_or(i64::MAX)])?;
    // The statement itself is one change.
    Ok(conn.total_changes() - before > 1)
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
    search_filter::clear(conn)?;
    vocabulary::clear(conn)?;
    conn.execute("UPDATE session SET unindexed = 1 WHERE next > 1", [])?;
    // Documents are few compared with messages, and are never pending.
    conn.execute(REBUILD_CONTEXT, [])?;
    store_version(conn)
}

/// Returns whether the index holds the current version of the indexed text.
pub(super) fn has_current_version(conn: &Connection) -> BackendResult<bool> {
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
    conn.execute("UPDATE session SET unindexed = NULL WHERE unindexed IS NOT NULL", [])?;
    conn.execute("INSERT INTO search (search) VALUES ('rebuild')", [])?;
    conn.execute(REBUILD_CONTEXT, [])?;
    search_filter::rebuild(conn)?;
    vocabulary::rebuild(conn)?;
    store_version(conn)
}

const REBUILD_CONTEXT: &str = "INSERT INTO context_search (context_search) VALUES ('rebuild')";

impl Database {
    /// Rebuilds the search indexes.
    pub(crate) fn rebuild_search(&self) -> Result<()> {
        self.write_long(rebuild)
    }
}
