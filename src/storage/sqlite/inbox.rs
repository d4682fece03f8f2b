//! Inboxes: the items that were received from a source and are not handled yet.
//!
//! The row of a handled item keeps only its id. A unique index over the ids decides whether an item is new, also if several
//! processes receive it at the same time.
//!
//! Invariant: `inbox_source.handled` is the number of handled items of the source. So a write need not count them to know how
//! many ids to forget.

use chrono::{DateTime, Utc};

use super::connection::Database;
use super::row::session as row;
use crate::error::{Result, check_size};
use crate::id::check_name;
use crate::inbox::{InboxItem, MAX_HANDLED_IDS, check_batch};
use crate::sql::{BackendResult, Connection, Read, Row, time};

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
            let mut are_new = Vec::with_capacity(items.len());
            for InboxItem { id, key, owner, body, .. } in items {
                are_new.push(conn.run(INSERT, (source, id, now, key, owner, body))? == 1);
            }
            if let Some(offset) = offset {
                conn.run(SET_OFFSET, (source, offset, now))?;
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
            let offset: Option<(i64, i64)> = conn.first(OFFSET, source)?;
            offset.map(|(value, stored_at)| Ok((value, time(stored_at)?))).transpose()
        })
    }

    /// Returns the keys with pending items, that of the oldest item first.
    pub(crate) fn inbox_keys(&self, source: &str) -> Result<Vec<String>> {
        check_source(source)?;
        self.read(|conn| conn.rows(KEYS, (source, MAX_KEYS)))
    }

    /// Returns the oldest pending item of a key.
    pub(crate) fn next_item(&self, source: &str, key: &str) -> Result<Option<InboxItem>> {
        check_source(source)?;
        self.read(|conn| conn.first_with(NEXT, (source, key), |row| read_item(row, 0)))
    }

    /// Returns how many items are pending.
    pub(crate) fn pending_items(&self, source: &str) -> Result<u64> {
        check_source(source)?;
        self.read(|conn| conn.one(COUNT, source))
    }

    /// Stores how far the handling of an item came; `false` if it is not pending.
    pub(crate) fn note_item(&self, source: &str, id: &str, note: &str) -> Result<bool> {
        check_source(source)?;
        check_size("the note of an inbox item", note.len(), self.config.max_message_bytes)?;
        let work = |conn: &Connection| Ok(conn.run(SET_NOTE, (source, id, note))? == 1);
        match note.len() <= MAX_SHORT {
            true => self.write_short(work),
            false => self.write(work),
        }
    }

    /// Ends the handling of an item; `false` if it is not pending.
    pub(crate) fn end_item(&self, source: &str, id: &str) -> Result<bool> {
        check_source(source)?;
        self.write_short(|conn| {
            let pending: Option<i64> = conn.first(FIND, (source, id))?;
            pending.map_or(Ok(false), |number| end(conn, number))
        })
    }
}

fn check_source(source: &str) -> Result<()> {
    check_name("inbox", source)
}

/// Returns the key of a source, which is added if it is new.
fn key_of(conn: &Connection, name: &str) -> BackendResult<i64> {
    let found = conn.first("SELECT key FROM inbox_source WHERE name = ?1", name)?;
    if let Some(key) = found {
        return Ok(key);
    }
    conn.one("INSERT INTO inbox_source (name) VALUES (?1) RETURNING key", name)
}

/// Removes all of a pending item but its id; `false` if it is not pending.
pub(super) fn end(conn: &Connection, number: i64) -> BackendResult<bool> {
    let is_ended = conn.run(END, number)? == 1;
    if is_ended {
        conn.run(COUNT_HANDLED, number)?;
    }
    Ok(is_ended)
}

/// Forgets the oldest ids of handled items over the limit, at most this many at once.
fn forget(conn: &Connection, source: i64, at_most: usize) -> BackendResult<()> {
    let handled: i64 = conn.one("SELECT handled FROM inbox_source WHERE key = ?1", source)?;
    let too_many = u64::try_from(handled).unwrap_or_default().saturating_sub(MAX_HANDLED_IDS);
    if too_many == 0 {
        return Ok(());
    }
    let forgotten = conn.run(FORGET, (source, too_many.min(at_most as u64)))?;
    conn.run("UPDATE inbox_source SET handled = handled - ?2 WHERE key = ?1", (source, forgotten))?;
    Ok(())
}

/// Reads an item whose columns begin at this column.
pub(super) fn read_item(row: &Row<'_>, at: usize) -> BackendResult<InboxItem> {
    let (id, key, owner, body, note, received_at) = Read::read(row, at)?;
    Ok(InboxItem { id, key, owner, body, note, received_at: Some(received_at) })
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
                    ORDER BY key, number
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
            conn.run(
                "WITH RECURSIVE ids (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM ids WHERE id + 1 < ?2)
                 INSERT INTO inbox_item (source, id, received_at)
                 SELECT ?1, CAST(id AS TEXT), 0 FROM ids",
                (key, count),
            )?;
            conn.run("UPDATE inbox_source SET handled = ?1", count).map(drop)
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
                    "SELECT count(*), min(CAST(id AS BIGINT)) FROM inbox_item WHERE source = 1";
                conn.one(sql, ())
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
            let count: u64 =
                database.read(|conn| conn.one("SELECT count(*) FROM inbox_item", ()))?;
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
            conn.script(
                "UPDATE inbox_source SET handled = 5;
                 INSERT INTO inbox_item (source, id, received_at) VALUES (9, 'x', 0);",
            )
        })?;
        let found: Vec<String> =
            database.verify(|_| {})?.damages.into_iter().map(|damage| damage.what).collect();
        assert_eq!(
            found,
            [
                "items are stored under inbox 9, which does not exist",
                "inbox telegram has 1 handled items, not 5"
            ]
        );
        Ok(())
    }
}
