//! Token counts: how many tokens a message takes, and which counter said so.
//!
//! A counter may be a caller's own code, so messages are counted before a transaction begins. Each row stores the key
//! of its counter; rows of another counter are counted again when a total is needed. Where a counter fails, the row holds
//! talktree's own estimate under its own key, and is counted again like any row of another counter.

mod recount;
pub(super) mod visible;

use rusqlite::{Connection, OptionalExtension};

use super::error::BackendResult;
use crate::message::Message;
use crate::tokens::{Count, Counter, ESTIMATE_VERSION, HEURISTIC};

/// The key of talktree's own estimate: 0 of its first version, -1 of the second, and so on.
pub(super) const HEURISTIC_KEY: i64 = 1 - ESTIMATE_VERSION;

/// How many tokens a message takes, and the key of the counter that said so.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenCount {
    pub(super) tokens: u64,
    pub(super) counter: i64,
}

/// The tokens of messages that are about to be stored.
pub(super) struct CountedMessages<'a> {
    counter: &'a Counter,
    counts: Vec<Count>,
}

impl<'a> CountedMessages<'a> {
    pub(super) fn of<'m>(
        counter: &'a Counter,
        messages: impl IntoIterator<Item = &'m Message>,
    ) -> Self {
        let counts = messages.into_iter().map(|message| counter.count(message)).collect();
        Self { counter, counts }
    }

    pub(super) fn counter(&self) -> &Counter {
        self.counter
    }

    /// Returns the counts, in the order of the messages.
    pub(super) fn token_counts(
        &self,
        conn: &Connection,
    ) -> BackendResult<impl Iterator<Item = TokenCount>> {
        let key = match self.counts.iter().all(|count| count.is_estimate) {
            true => HEURISTIC_KEY,
            false => counter_key_to_write(conn, self.counter)?,
        };
        Ok(self.counts.iter().map(move |count| TokenCount {
            tokens: count.tokens,
            counter: if count.is_estimate { HEURISTIC_KEY } else { key },
        }))
    }
}

/// Returns the key of a counter; none if it has counted nothing yet.
pub(super) fn counter_key(conn: &Connection, counter: &Counter) -> BackendResult<Option<i64>> {
    if counter.name() == HEURISTIC {
        return Ok(Some(HEURISTIC_KEY));
    }
    let key = conn
        .prepare_cached("SELECT key FROM token_counter WHERE name = ?1")?
        .query_row([counter.name()], |row| row.get(0))
        .optional()?;
    Ok(key)
}

/// Returns the key of a counter, creating one if it has none.
pub(super) fn counter_key_to_write(conn: &Connection, counter: &Counter) -> BackendResult<i64> {
    if let Some(key) = counter_key(conn, counter)? {
        return Ok(key);
    }
    conn.prepare_cached("INSERT INTO token_counter (name) VALUES (?1)")?
        .execute([counter.name()])?;
    Ok(conn.last_insert_rowid())
}
