//! A temporary index of the pending messages, for one search.
//!
//! If the index could not be brought up to date (others hold the lock, or the store is read-only), the pending
//! messages are indexed in the connection's temporary schema and searched there.
//!
//! The table is kept until someone writes to the store, so a read-only handle fills it once.

use rusqlite::{Connection, OptionalExtension, params};

use super::Index;
use super::feed::{Doc, read_doc, tags};
use super::terms::Found;
use crate::storage::sqlite::error::BackendResult;
use crate::storage::sqlite::interrupt::Phase;
use crate::storage::sqlite::interrupt::Watch;
use crate::tree::Address;

/// What the temporary index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Prepared {
    /// No message is pending.
    Nothing,
    /// The temporary index holds some of the pending messages, because the budget is spent.
    Some,
    /// The temporary index holds all of them.
    All,
}

pub(in super::super) const CREATE: &str =
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.pending_index USING fts5 (
    text, tools, labels,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE TABLE IF NOT EXISTS temp.pending_index_of (version, low, high, last)";

/// How many messages are indexed between two checks of the budget.
const CHUNK: u32 = 256;

/// Indexes the pending messages in a range of addresses.
///
/// What is left when a budget is spent is indexed by the next search on this connection.
pub(in super::super) fn prepare(
    conn: &Connection,
    (low, high): (Address, Address),
    watch: &Watch,
) -> BackendResult<Prepared> {
    let is_any: bool = conn.prepare_cached(IS_PENDING)?.query_row([low, high], |row| row.get(0))?;
    if !is_any {
        return Ok(Prepared::Nothing);
    }
    conn.execute_batch(CREATE)?;
    // `data_version` does not count a connection's own writes.
    let is_reader = conn.is_readonly("main")?;
    let version: i64 = conn.pragma_query_value(None, "data_version", |row| row.get(0))?;
    let last: Option<Address> = conn
        .prepare_cached(
            "SELECT last FROM temp.pending_index_of WHERE (version, low, high) = (?1, ?2, ?3)",
        )?
        .query_row((version, low, high), |row| row.get(0))
        .optional()?
        .filter(|_| is_reader);
    let mut from = match last {
        Some(last) if last == high => return Ok(Prepared::All),
        Some(last) => last.after(),
        None => {
            Index::Pending.clear(conn)?;
            low
        }
    };
    loop {
        // An interrupted write would roll the whole transaction back, so the budget is checked between two writes.
        watch.enter(Phase::Indexing);
        if watch.is_spent() {
            return Ok(Prepared::Some);
        }
        watch.enter(Phase::Finishing);
        let mut statement = conn.prepare_cached(PENDING)?;
        let mut rows = statement.query(params![from, high, CHUNK])?;
        let (mut count, mut last) = (0, high);
        while let Some(row) = rows.next()? {
            let Doc { address, text, tools, labels } = read_doc(row, &mut Found::default())?;
            Index::Pending.put(conn, address, [&text, &tools, &labels])?;
            (count, last) = (count + 1, address);
        }
        let to = if count == CHUNK { last } else { high };
        conn.prepare_cached("DELETE FROM temp.pending_index_of")?.execute([])?;
        conn.prepare_cached("INSERT INTO temp.pending_index_of VALUES (?1, ?2, ?3, ?4)")?
            .execute((version, low, high, to))?;
        if to == high {
            return Ok(Prepared::All);
        }
        from = to.after();
    }
}

pub(in super::super) const IS_PENDING: &str = "SELECT EXISTS (SELECT 1
                  FROM session INDEXED BY session_unindexed
                 WHERE unindexed IS NOT NULL AND key BETWEEN ?1 >> 32 AND ?2 >> 32)";

/// The pending messages from address ?1 to ?2, in order of address: session by session.
pub(in super::super) const PENDING: &str = concat!(
    "SELECT address, parts, role, message.created_at, author, ",
    tags!(),
    "
   FROM session INDEXED BY session_unindexed
  CROSS JOIN message ON address BETWEEN max((key << 32) + unindexed, ?1)
                                    AND min((key << 32) + 4294967295, ?2)
  WHERE unindexed IS NOT NULL AND key BETWEEN ?1 >> 32 AND ?2 >> 32
    AND message.id IS NOT NULL
  LIMIT ?3"
);
