//! Stamps: how many tokens a message takes, and what counted them.
//!
//! A counter may be a caller's own code, so messages are counted before a transaction begins. Each
//! row bears the key of its counter: rows of another one are counted anew when figures are needed.

use rusqlite::{Connection, OptionalExtension};

use super::fault::Outcome;
use crate::message::Message;
use crate::tokens::{Counter, HEURISTIC};

/// The key of talktree's own estimate.
pub(super) const OWN: i64 = 0;

/// What one row bears.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp {
    pub(super) tokens: u64,
    pub(super) counter: i64,
}

/// The tokens of messages that are about to be stored.
pub(super) struct Counted<'a> {
    counter: &'a Counter,
    tokens: Vec<u64>,
}

impl<'a> Counted<'a> {
    pub(super) fn of<'m>(
        counter: &'a Counter,
        messages: impl IntoIterator<Item = &'m Message>,
    ) -> Self {
        let tokens = messages.into_iter().map(|message| counter.message(message)).collect();
        Self { counter, tokens }
    }

    /// Returns what counted them.
    pub(super) fn counter(&self) -> &Counter {
        self.counter
    }

    /// Returns the stamps, in the order of the messages.
    pub(super) fn stamps(&self, conn: &Connection) -> Outcome<impl Iterator<Item = Stamp>> {
        let counter = key_to_write(conn, self.counter)?;
        Ok(self.tokens.iter().map(move |&tokens| Stamp { tokens, counter }))
    }
}

/// Returns the key of a counter; none if nothing was counted by it.
pub(super) fn key(conn: &Connection, counter: &Counter) -> Outcome<Option<i64>> {
    if counter.name() == HEURISTIC {
        return Ok(Some(OWN));
    }
    let key = conn
        .prepare_cached("SELECT key FROM token_counter WHERE name = ?1")?
        .query_row([counter.name()], |row| row.get(0))
        .optional()?;
    Ok(key)
}

/// Returns the key of a counter, which gets one if it has none.
pub(super) fn key_to_write(conn: &Connection, counter: &Counter) -> Outcome<i64> {
    if let Some(key) = key(conn, counter)? {
        return Ok(key);
    }
    conn.prepare_cached("INSERT INTO token_counter (name) VALUES (?1)")?
        .execute([counter.name()])?;
    Ok(conn.last_insert_rowid())
}
