//! Counting tokens again where the stored counts cannot be trusted.
//!
//! A caller's counter is not at hand here, so its counts are replaced by estimates: the next handle with that counter
//! counts the messages again.

use rusqlite::{Connection, params};

use super::super::connection::Database;
use super::super::error::BackendResult;
use super::super::row::message::StoredMessage;
use super::HEURISTIC_KEY;
use crate::error::Result;
use crate::tokens::Counter;
use crate::tree::Address;

impl Database {
    /// Discards the counts of all sessions and of callers' counters, and estimates those messages.
    pub(crate) fn recount_tokens(&self) -> Result<()> {
        self.write_long(|conn| {
            conn.execute(DISCARD, [])?;
            let mut after = Address::from_raw(i64::MIN);
            while let Some(last) = count_some(conn, after)? {
                after = last;
            }
            Ok(())
        })
    }
}

/// The totals are computed on demand. The change to `changes` keeps a concurrent count from storing an old total.
const DISCARD: &str = "UPDATE session
    SET visible_tokens = NULL, counter = 0, changes = max(changes, 0) + 1";

/// Estimates a batch of messages; returns the last of them. A damaged message counts 0.
fn count_some(conn: &Connection, after: Address) -> BackendResult<Option<Address>> {
    let mut statement = conn.prepare_cached(UNKNOWN)?;
    let mut rows = statement.query(params![after, HEURISTIC_KEY])?;
    let (own, mut counts) = (Counter::default(), Vec::new());
    while let Some(row) = rows.next()? {
        let message = StoredMessage::read(row).ok().and_then(|stored| stored.message);
        counts
            .push((row.get::<_, Address>(0)?, message.map_or(0, |message| own.message(&message))));
    }
    let mut statement =
        conn.prepare_cached("UPDATE message SET tokens = ?2, counter = ?3 WHERE address = ?1")?;
    for (address, tokens) in &counts {
        statement.execute(params![address, tokens, HEURISTIC_KEY])?;
    }
    Ok(counts.last().map(|(address, _)| *address))
}

/// Messages with an impossible count, or with one that is not talktree's own.
const UNKNOWN: &str = concat!(
    "SELECT ",
    stored_columns!(),
    "
   FROM message
  WHERE address > ?1
    AND id IS NOT NULL
    AND (tokens NOT BETWEEN 0 AND 4294967295 OR counter <> ?2)
  ORDER BY address
  LIMIT 512"
);
