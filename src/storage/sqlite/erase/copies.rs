//! Finds the copies of messages, in forks.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension};

use super::super::error::BackendResult;
use crate::tree::Address;

/// Which messages were asked for. A chain of forks has as many copies as sessions, and each of them has the same others: so
/// only the first one is answered.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The first messages of those that have copies.
    asked: HashSet<Address>,
}

impl Copies {
    /// Returns the other messages that are copies of the same one, the first one and deleted ones included; none if another
    /// one of them was asked for before.
    pub(super) fn of(
        &mut self,
        conn: &Connection,
        address: Address,
    ) -> BackendResult<Vec<Address>> {
        let first: Option<Address> =
            conn.prepare_cached(FIRST)?.query_row([address], |row| row.get(0)).optional()?;
        let Some(first) = first.filter(|first| !self.asked.contains(first)) else {
            return Ok(Vec::new());
        };
        let mut found = all(conn, first)?;
        found.retain(|copy| *copy != address);
        if !found.is_empty() {
            self.asked.insert(first);
        }
        Ok(found)
    }

    /// Returns the first messages of those that were asked for, and forgets them.
    pub(super) fn take(&mut self) -> Vec<Address> {
        std::mem::take(&mut self.asked).into_iter().collect()
    }
}

/// Returns a message and its copies. It may have been removed, and its session too.
pub(super) fn all(conn: &Connection, first: Address) -> BackendResult<Vec<Address>> {
    let copies = conn
        .prepare_cached(ALL)?
        .query_map([first], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(copies)
}

pub(in super::super) const FIRST: &str =
    "SELECT coalesce(origin, address) FROM message WHERE address = ?1";
pub(in super::super) const ALL: &str = "SELECT address FROM message WHERE address = ?1
 UNION ALL
 SELECT address FROM message WHERE origin = ?1";
