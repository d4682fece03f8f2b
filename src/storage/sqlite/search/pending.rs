//! A temporary index of the pending messages, for one search.
//!
//! If the index could not be brought up to date (others hold the lock, or the store is read-only), the pending
//! messages are indexed in the connection's temporary schema and searched there.
//!
//! The table is kept until someone writes to the store, so a read-only handle fills it once.

use rusqlite::{Connection, OptionalExtension};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::super::time_budget::Phase;
use crate::tree::Address;

/// The pending messages from address ?1 to ?2, in order of address: session by session.
macro_rules! pending_messages {
    () => {
        "session INDEXED BY session_unindexed
   CROSS JOIN message ON address BETWEEN max((key << 32) + unindexed, ?1)
                                     AND min((key << 32) + 4294967295, ?2)
   WHERE unindexed IS NOT NULL AND key BETWEEN ?1 >> 32 AND ?2 >> 32
     AND message.id IS NOT NULL"
    };
}

/// The same tokenizer as in `schema.sql`. Contentless: the text is not stored.
pub(super) const CREATE: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.pending_index USING fts5 (
    text, tools,
    content = '',
    tokenize = \"porter unicode61 remove_diacritics 2 categories 'L* N* Co So'\"
);
CREATE TABLE IF NOT EXISTS temp.pending_index_of (version, low, high, reached)";

/// What the temporary index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prepared {
    /// No message is pending.
    Nothing,
    /// The temporary index holds some of the pending messages, because the budget is spent.
    Some,
    /// The temporary index holds all of them.
    All,
}

/// Indexes the pending messages in a range of addresses.
///
/// With a budget they are indexed in chunks. What is left when it is spent is indexed by the next search on this connection.
pub(super) fn prepare(
    conn: &Connection,
    (low, high): (Address, Address),
    watch: &Watch,
) -> BackendResult<Prepared> {
    let is_any: bool = conn.prepare_cached(IS_PENDING)?.query_row([low, high], |row| row.get(0))?;
    let is_made: bool = conn
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM sqlite_temp_schema WHERE name = 'pending_index')",
        )?
        .query_row([], |row| row.get(0))?;
    if !is_any {
        if is_made {
            clear(conn)?;
        }
        return Ok(Prepared::Nothing);
    }
    if !is_made {
        conn.execute_batch(CREATE)?;
    }
    // `data_version` does not count a connection's own writes.
    let is_reader = conn.is_readonly("main")?;
    let version: i64 = conn.pragma_query_value(None, "data_version", |row| row.get(0))?;
    let reached: Option<Address> = conn
        .prepare_cached(
            "SELECT reached FROM temp.pending_index_of WHERE (version, low, high) = (?1, ?2, ?3)",
        )?
        .query_row((version, low, high), |row| row.get(0))
        .optional()?
        .filter(|_| is_reader);
    let mut from = match reached {
        Some(reached) if reached == high => return Ok(Prepared::All),
        Some(reached) => reached.after(),
        None => {
            clear(conn)?;
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
        let last: Option<Address> = match watch.has_budget() {
            true => conn
                .prepare_cached(NTH_PENDING)?
                .query_row((from, high, CHUNK - 1), |row| row.get(0))?,
            false => None,
        };
        let to = last.unwrap_or(high);
        conn.prepare_cached(FILL)?.execute([from, to])?;
        conn.prepare_cached("DELETE FROM temp.pending_index_of")?.execute([])?;
        conn.prepare_cached("INSERT INTO temp.pending_index_of VALUES (?1, ?2, ?3, ?4)")?
            .execute((version, low, high, to))?;
        if to == high {
            return Ok(Prepared::All);
        }
        from = to.after();
    }
}

/// How many messages are indexed at a time if there is a budget.
const CHUNK: i64 = 2_048;

/// The end of a chunk; NULL if it is the last one.
pub(super) const NTH_PENDING: &str =
    concat!("SELECT (SELECT address FROM ", pending_messages!(), " LIMIT 1 OFFSET ?3)");

/// Replaces the content of the temporary index by the next `limit` messages that are not pending, for `verify`;
/// returns the last one.
pub(in super::super) fn fill_after(
    conn: &Connection,
    after: Address,
    limit: u64,
) -> BackendResult<Option<Address>> {
    conn.execute_batch(CREATE)?;
    conn.prepare_cached("DELETE FROM temp.pending_index_of")?.execute([])?;
    conn.prepare_cached("INSERT INTO temp.pending_index (pending_index) VALUES ('delete-all')")?
        .execute([])?;
    let last: Option<Address> = conn
        .prepare_cached(
            "SELECT max(address)
               FROM (SELECT address FROM message WHERE address > ?1 ORDER BY address LIMIT ?2)",
        )?
        .query_row((after, limit), |row| row.get(0))?;
    if let Some(last) = last {
        conn.prepare_cached(
            "INSERT INTO temp.pending_index (rowid, text, tools)
             SELECT address, text, tools FROM search_source WHERE address > ?1 AND address <= ?2",
        )?
        .execute([after, last])?;
    }
    Ok(last)
}

fn clear(conn: &Connection) -> BackendResult<()> {
    let count = conn.prepare_cached("DELETE FROM temp.pending_index_of")?.execute([])?;
    if count > 0 {
        conn.prepare_cached(
            "INSERT INTO temp.pending_index (pending_index) VALUES ('delete-all')",
        )?
        .execute([])?;
    }
    Ok(())
}

pub(super) const IS_PENDING: &str = "SELECT EXISTS (SELECT 1
                  FROM session INDEXED BY session_unindexed
                 WHERE unindexed IS NOT NULL AND key BETWEEN ?1 >> 32 AND ?2 >> 32)";

pub(super) const FILL: &str = concat!(
    "INSERT INTO temp.pending_index (rowid, text, tools)
     SELECT address, talktree_text(parts), talktree_tools(parts) FROM ",
    pending_messages!()
);

#[cfg(test)]
mod tests {
    #[test]
    fn the_tokenizer_is_that_of_the_index() {
        let schema = include_str!("../../../../schema.sql");
        let line = schema.lines().find(|line| line.trim_start().starts_with("tokenize"));
        assert!(super::CREATE.contains(line.unwrap_or("missing").trim()));
    }
}
