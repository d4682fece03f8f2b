//! Inboxes: the items that were received from a source and are not handled yet.
//!
//! The row of a handled item keeps only its id. A unique index over the ids decides whether an item is new, also if several
//! processes receive it at the same time.
//!
//! Invariant: `inbox_source.handled` is the number of handled items of the source. So a write need not count them to know how
//! many ids to forget.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::connection::Database;
use super::error::BackendResult;
use super::row::{session as row, time};
use crate::error::{Result, check_size};
use crate::id::check_name;
use crate::inbox::{InboxItem, MAX_HANDLED_IDS, check_batch};

/// The maximum number of items of a write that may share a commit with others.
const MAX_FEW: usize = 100;
/// The maximum size of a write that may share a commit with others, in bytes.
const MAX_SHORT: usize = 256 << 10;
/// The maximum number of keys that one read returns.
const MAX_KEYS: usize = 10_000;
/// How many ids of handled items a write of few items forgets, at most. A write of many items forgets up to twice their number,
/// so that the ids cannot grow faster than they are forgotten.
const MIN_FORGOTTEN: usize = 100;

impl Database {
    /// Stores items and the offset to read from next; returns for each item whether it is new.
    pub(crate) fn receive(
        &self,
        source: &str,
        items: &[InboxItem],
        offset: Option<i64>,
    ) -> Result<Vec<bool>> {
        check_source(source)?;
        items.iter().try_for_each(|item| item.check(self.config.max_message_bytes))?;
        check_batch(items.iter().map(InboxItem::bytes))?;
        let work = |conn: &Connection| {
            let source = key_of(conn, source)?;
            let now = row::now();
            let mut insert = conn.prepare_cached(INSERT)?;
            let mut are_new = Vec::with_capacity(items.len());
            for InboxItem { id, key, owner, body, .. } in items {
                are_new.push(insert.execute(params![source, id, now, key, owner, body])? == 1);
            }
            if let Some(offset) = offset {
                conn.prepare_cached(SET_OFFSET)?.execute(params![source, offset, now])?;
            }
            forget(conn, source, MIN_FORGOTTEN.max(2 * items.len()))?;
            Ok(are_new)
        };
        let bytes: usize = items.iter().map(InboxItem::bytes).sum();
        match items.len() <= MAX_FEW && bytes <= MAX_SHORT {
            true => self.write_short(work),
            false => self.write(work),
        }
    }

    /// Returns the offset to read from next.
    pub(crate) fn inbox_offset(&self, source: &str) -> Result<Option<(i64, DateTime<Utc>)>> {
        check_source(source)?;
        self.read(|conn| {
            let offset: Option<(i64, i64)> = conn
                .prepare_cached(OFFSET)?
                .query_row([source], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            offset.map(|(value, stored_at)| Ok((value, time(stored_at)?))).transpose()
        })
    }

    /// Returns the keys with pending items, that of the oldest item first.
    pub(crate) fn inbox_keys(&self, source: &str) -> Result<Vec<String>> {
        check_source(source)?;
        self.read(|conn| {
            let mut statement = conn.prepare_cached(KEYS)?;
            let keys = statement.query_map(params![source, MAX_KEYS], |row| row.get(0))?;
            Ok(keys.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the oldest pending item of a key.
    pub(crate) fn next_item(&self, source: &str, key: &str) -> Result<Option<InboxItem>> {
        check_source(source)?;
        self.read(|conn| {
            let mut statement = conn.prepare_cached(NEXT)?;
            let mut rows = statement.query([source, key])?;
            rows.next()?.map(|row| read_item(row, 0)).transpose()
        })
    }

    /// Returns how many items are pending.
    pub(crate) fn pending_items(&self, source: &str) -> Result<u64> {
        check_source(source)?;
        self.read(|conn| Ok(conn.prepare_cached(COUNT)?.query_row([source], |row| row.get(0))?))
    }

    /// Stores how far the handling of an item came; `false` if it is not pending.
    pub(crate) fn note_item(&self, source: &str, id: &str, note: &str) -> Result<bool> {
        check_source(source)?;
        check_size("the note of an inbox item", note.len(), self.config.max_message_bytes)?;
        let work = |conn: &Connection| {
            Ok(conn.prepare_cached(SET_NOTE)?.execute(params![source, id, note])? == 1)
        };
        match note.len() <= MAX_SHORT {
            true => self.write_short(work),
            false => self.write(work),
        }
    }

    /// Ends the handling of an item; `false` if it is not pending.
    pub(crate) fn end_item(&self, source: &str, id: &str) -> Result<bool> {
        check_source(source)?;
        self.write_short(|conn| {
            let pending: Option<i64> =
                conn.prepare_cached(FIND)?.query_row([source, id], |row| row.get(0)).optional()?;
            pending.map_or(Ok(false), |number| end(conn, number))
        })
    }
}

fn check_source(source: &str) -> Result<()> {
    check_name("inbox", source)
}

/// Returns the key of a source, which is added if it is new.
fn key_of(conn: &Connection, name: &str) -> BackendResult<i64> {
    let found = conn
        .prepare_cached("SELECT key FROM inbox_source WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if let Some(key) = found {
        return Ok(key);
    }
    Ok(conn
        .prepare_cached("INSERT INTO inbox_source (name) VALUES (?1) RETURNING key")?
        .query_row([name], |row| row.get(0))?)
}

/// Removes all of a pending item but its id; `false` if it is not pending.
pub(super) fn end(conn: &Connection, number: i64) -> BackendResult<bool> {
    let is_ended = conn.prepare_cached(END)?.execute([number])? == 1;
    if is_ended {
        conn.prepare_cached(COUNT_HANDLED)?.execute([number])?;
    }
    Ok(is_ended)
}

/// Forgets the oldest ids of handled items over the limit, at most this many at once.
fn forget(conn: &Connection, source: i64, at_most: usize) -> BackendResult<()> {
    let handled: i64 = conn
        .prepare_cached("SELECT handled FROM inbox_source WHERE key = ?1")?
        .query_row([source], |row| row.get(0))?;
    let too_many = u64::try_from(handled).unwrap_or_default().saturating_sub(MAX_HANDLED_IDS);
    if too_many == 0 {
        return Ok(());
    }
    let forgotten =
        conn.prepare_cached(FORGET)?.execute(params![source, too_many.min(at_most as u64)])?;
    conn.prepare_cached("UPDATE inbox_source SET handled = handled - ?2 WHERE key = ?1")?
        .execute(params![source, forgotten])?;
    Ok(())
}

/// Reads an item whose columns begin at this column.
pub(super) fn read_item(row: &Row<'_>, at: usize) -> BackendResult<InboxItem> {
    Ok(InboxItem {
        id: row.get(at)?,
        key: row.get(at + 1)?,
        owner: row.get(at + 2)?,
        body: row.get(at + 3)?,
        note: row.get(at + 4)?,
        received_at: Some(time(row.get(at + 5)?)?),
    })
}

pub(super) const INSERT: &str = "INSERT INTO inbox_item (source, id, received_at, key, owner, body)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
 ON CONFLICT (source, id) DO NOTHING";
const SET_OFFSET: &str = "UPDATE inbox_source SET next_offset = ?2, stored_at = ?3 WHERE key = ?1";
const OFFSET: &str = "SELECT next_offset, stored_at
   FROM inbox_source
  WHERE name = ?1
    AND next_offset IS NOT NULL";
pub(super) const KEYS: &str = "SELECT key
   FROM inbox_item
  WHERE source = (SELECT key FROM inbox_source WHERE name = ?1)
    AND key IS NOT NULL
  GROUP BY key
  ORDER BY min(number)
  LIMIT ?2";
pub(super) const NEXT: &str = "SELECT id, key, owner, body, note, received_at
   FROM inbox_item
  WHERE source = (SELECT key FROM inbox_source WHERE name = ?1)
    AND key = ?2
  ORDER BY number
  LIMIT 1";
pub(super) const COUNT: &str = "SELECT count(*)
   FROM inbox_item
  WHERE source = (SELECT key FROM inbox_source WHERE name = ?1)
    AND key IS NOT NULL";
pub(super) const FIND: &str = "SELECT number
   FROM inbox_item
  WHERE source = (SELECT key FROM inbox_source WHERE name = ?1)
    AND id = ?2
    AND key IS NOT NULL";
pub(super) const SET_NOTE: &str = "UPDATE inbox_item
    SET note = ?3
  WHERE source = (SELECT key FROM inbox_source WHERE name = ?1)
    AND id = ?2
    AND key IS NOT NULL";
const END: &str = "UPDATE inbox_item
    SET key = NULL, owner = NULL, note = NULL, body = NULL
  WHERE number = ?1
    AND key IS NOT NULL";
const COUNT_HANDLED: &str = "UPDATE inbox_source
    SET handled = handled + 1
  WHERE key = (SELECT source FROM inbox_item WHERE number = ?1)";
pub(super) const FORGET: &str = "DELETE FROM inbox_item
  WHERE number IN (SELECT number
                     FROM inbox_item
                    WHERE source = ?1
                      AND key IS NULL
                    ORDER BY number
                    LIMIT ?2)";

#[cfg(test)]
mod tests {
    use super::super::connection::Config;
    use super::*;

    /// Stores handled items with the ids `0`, `1`, ..
    fn with_handled(source: &str, count: u64) -> Result<Database> {
        let database = Database::open_in_memory(Config::default())?;
        database.receive(source, &[], Some(0))?;
        database.write(|conn| {
            let key = key_of(conn, source)?;
            conn.execute(
                "WITH RECURSIVE ids (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM ids WHERE id + 1 < ?2)
                 INSERT INTO inbox_item (source, id, received_at) SELECT ?1, id, 0 FROM ids",
                params![key, count],
            )?;
            conn.execute("UPDATE inbox_source SET handled = ?1", [count])?;
            Ok(())
        })?;
        Ok(database)
    }

    fn items(ids: &[u64]) -> Vec<InboxItem> {
        ids.iter().map(|id| InboxItem::new(id.to_string(), "k", "body")).collect()
    }

    #[test]
    fn the_newest_handled_ids_are_remembered_and_older_ones_forgotten_a_few_at_a_time() -> Result<()>
    {
        let more = 3 * MIN_FORGOTTEN as u64;
        let database = with_handled("telegram", MAX_HANDLED_IDS + more)?;
        database.receive("webhook", &items(&[7]), None)?;
        let stored = |database: &Database| -> Result<(u64, i64)> {
            database.read(|conn| {
                let sql =
                    "SELECT count(*), min(cast(id AS INTEGER)) FROM inbox_item WHERE source = 1";
                Ok(conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
            })
        };
        for step in 1..=3 {
            database.receive("telegram", &[], Some(step))?;
            let oldest = step * MIN_FORGOTTEN as i64;
            assert_eq!(stored(&database)?, (MAX_HANDLED_IDS + more - oldest as u64, oldest));
        }
        database.receive("telegram", &[], Some(9))?;
        assert_eq!(stored(&database)?, (MAX_HANDLED_IDS, more as i64), "100 000 stay");

        // The oldest that is remembered is a duplicate, the one before it is new again.
        let new = database.receive("telegram", &items(&[more, more - 1]), None)?;
        assert_eq!(new, [false, true]);
        // A pending item is not forgotten, however old it is; its place in the order is that of a new one.
        assert!(database.end_item("telegram", &(more - 1).to_string())?);
        database.receive("telegram", &[], Some(10))?;
        assert_eq!(stored(&database)?, (MAX_HANDLED_IDS, more as i64 - 1));
        assert_eq!(database.receive("telegram", &items(&[more]), None)?, [true], "forgotten now");
        assert_eq!(database.pending_items("webhook")?, 1);
        assert_eq!(database.verify(|_| {})?.damages, []);
        Ok(())
    }

    #[test]
    fn a_batch_of_many_items_forgets_as_many_ids_as_it_may_add() -> Result<()> {
        let database = with_handled("telegram", MAX_HANDLED_IDS)?;
        for round in 1..4 {
            let batch: Vec<u64> = (0..500).map(|n| 1_000_000 * round + n).collect();
            database.receive("telegram", &items(&batch), None)?;
            for id in &batch {
                database.end_item("telegram", &id.to_string())?;
            }
            let count: u64 = database.read(|conn| {
                Ok(conn.query_row("SELECT count(*) FROM inbox_item", [], |row| row.get(0))?)
            })?;
            assert_eq!(count, MAX_HANDLED_IDS + 500, "round {round}");
        }
        Ok(())
    }

    #[test]
    fn verify_finds_a_wrong_count_and_items_of_no_inbox() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        database.receive("telegram", &items(&[1, 2]), None)?;
        database.end_item("telegram", "1")?;
        assert_eq!(database.verify(|_| {})?.damages, []);
        database.write(|conn| {
            conn.execute_batch(
                "UPDATE inbox_source SET handled = 5;
                 INSERT INTO inbox_item (source, id, received_at) VALUES (9, 'x', 0);",
            )?;
            Ok(())
        })?;
        let found: Vec<String> =
            database.verify(|_| {})?.damages.into_iter().map(|damage| damage.what).collect();
        assert_eq!(
            found,
            [
                "items are stored under inbox 9, which does not exist",
                "inbox 'telegram' has 1 handled items, not 5"
            ]
        );
        Ok(())
    }
}
