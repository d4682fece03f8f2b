//! How many tokens a model sees on the path to the head.
//!
//! The figure stands in the session's row and grows with each append there. What else changes the
//! view takes it away; then it is counted anew from the stamps of the rows, when somebody asks.
//! Rows of another counter are stamped first, a batch at a time. A counter may be a caller's own
//! code: it is called between transactions, and what was counted is stored only if nothing changed
//! meanwhile.

use rusqlite::{Connection, params};

use super::catalog::{self, SessionRow};
use super::connection::Database;
use super::context::elision;
use super::fault::Outcome;
use super::message::{self, StoredMessage};
use super::{compaction, path, stamp};
use crate::error::Result;
use crate::id::SessionId;
use crate::message::Message;
use crate::tokens::Counter;
use crate::tree::{Address, Plan, Stretch};

/// How many rows of another counter are stamped anew at a time.
const BATCH: usize = 512;
/// How often what was counted may be out of date by the time it is stored before it is left unstored.
const MAX_ATTEMPTS: usize = 4;

/// What a look at a session found.
enum Look {
    /// The figure stands in the row.
    Known(u64),
    /// Rows of another counter: to be counted, and looked again.
    Foreign(Vec<Foreign>),
    /// The tokens of plain messages, and what else is seen: summaries and elided messages.
    Sum { session: SessionRow, stamped: u64, others: Vec<Message> },
}

/// A row that another counter stamped.
struct Foreign {
    address: Address,
    parts: String,
    message: Message,
}

impl Database {
    /// Returns how many tokens a model sees on the path to the head of a session; `None` if rows
    /// cannot be stamped anew.
    pub(super) fn visible_tokens(&self, id: &SessionId, counter: &Counter) -> Result<Option<u64>> {
        let mut attempts = 0;
        loop {
            let (session, stamped, others) = match self.read(|conn| look(conn, id, counter))? {
                Look::Known(tokens) => return Ok(Some(tokens)),
                Look::Foreign(_) if self.is_read_only() => return Ok(None),
                Look::Foreign(rows) => {
                    self.restamp(&rows, counter)?;
                    continue;
                }
                Look::Sum { session, stamped, others } => (session, stamped, others),
            };
            let others: u64 = others.iter().map(|message| counter.message(message)).sum();
            let tokens = stamped.saturating_add(others);
            attempts += 1;
            // What cannot be written to is counted each time.
            let is_kept = self.is_read_only() || self.keep(&session, tokens, counter)?;
            if is_kept || attempts == MAX_ATTEMPTS {
                return Ok(Some(tokens));
            }
        }
    }

    /// Stamps rows anew, but for those that were written since they were read.
    fn restamp(&self, rows: &[Foreign], counter: &Counter) -> Result<()> {
        let counts: Vec<u64> = rows.iter().map(|row| counter.message(&row.message)).collect();
        self.write(|conn| {
            let key = stamp::key_to_write(conn, counter)?;
            let mut statement = conn.prepare_cached(
                "UPDATE message SET tokens = ?2, counter = ?3 WHERE address = ?1 AND parts = ?4",
            )?;
            for (row, tokens) in rows.iter().zip(&counts) {
                statement.execute(params![row.address, tokens, key, row.parts])?;
            }
            Ok(())
        })
    }

    /// Stores the figure, if the session is as it was when it was counted.
    fn keep(&self, session: &SessionRow, tokens: u64, counter: &Counter) -> Result<bool> {
        self.write(|conn| {
            let key = stamp::key_to_write(conn, counter)?;
            let count = conn
                .prepare_cached(
                    "UPDATE session
                        SET visible_tokens = ?2, counter = ?3
                      WHERE key = ?1 AND next = ?4 AND changes = ?5",
                )?
                .execute(params![session.key, tokens, key, session.next, session.changes])?;
            Ok(count > 0)
        })
    }
}

fn look(conn: &Connection, id: &SessionId, counter: &Counter) -> Outcome<Look> {
    let Some(session) = catalog::find(conn, id)? else { return Ok(Look::Known(0)) };
    let key = stamp::key(conn, counter)?;
    if let Some(tokens) = session.visible_tokens.filter(|_| key == Some(session.counter)) {
        return Ok(Look::Known(tokens));
    }
    let plan = path::plan(conn, session.key, session.head, false)?;
    // A key that no counter has: what nothing was counted by has stamped no row.
    let sums = sums(conn, &plan, key.unwrap_or(-1))?;
    if sums.foreign > 0 {
        return Ok(Look::Foreign(foreign(conn, &plan, key.unwrap_or(-1))?));
    }
    let (stamped, others) = told_apart(conn, &plan, sums.tokens)?;
    Ok(Look::Sum { session, stamped, others })
}

/// Returns what the figure of a session must be by the stamps on the path to its head; `None` where
/// only a counter of the caller's own can tell.
pub(super) fn by_stamps(conn: &Connection, session: &SessionRow) -> Outcome<Option<u64>> {
    let plan = path::plan(conn, session.key, session.head, false)?;
    let sums = sums(conn, &plan, session.counter)?;
    let (stamped, others) = told_apart(conn, &plan, sums.tokens)?;
    if sums.foreign > 0 || (session.counter != stamp::OWN && !others.is_empty()) {
        return Ok(None);
    }
    let own = Counter::default();
    let others: u64 = others.iter().map(|message| own.message(message)).sum();
    Ok(Some(stamped.saturating_add(others)))
}

/// Returns what of the stamps of a plan a model sees, and what else it sees, which bears none.
fn told_apart(conn: &Connection, plan: &Plan, stamped: u64) -> Outcome<(u64, Vec<Message>)> {
    let mut others = Vec::new();
    for stretch in plan {
        if let Stretch::Summary(overlay) = stretch {
            others.extend(compaction::by_key(conn, overlay.key)?.map(|it| it.to_message(None)));
        }
    }
    let elided = elided(conn, plan)?;
    let replaced = elided.iter().fold(0u64, |sum, (tokens, _)| sum.saturating_add(*tokens));
    others.extend(elided.into_iter().map(|(_, message)| message));
    Ok((stamped.saturating_sub(replaced), others))
}

/// The stamps of a plan's messages.
#[derive(Default)]
struct Sums {
    tokens: u64,
    /// How many bear the stamp of another counter.
    foreign: u64,
}

/// Returns the sums of a plan's stamps, told apart by whether this counter made them.
fn sums(conn: &Connection, plan: &Plan, key: i64) -> Outcome<Sums> {
    let mut statement = conn.prepare_cached(SUMS)?;
    let mut sums = Sums::default();
    for stretch in plan {
        let Stretch::Messages { first, last } = *stretch else { continue };
        let (tokens, foreign): (u64, u64) =
            statement.query_row(params![first, last, key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        sums.tokens = sums.tokens.saturating_add(tokens);
        sums.foreign += foreign;
    }
    Ok(sums)
}

/// Returns the tokens of the stamps of a plan's messages, whoever made them.
pub(super) fn stamped(conn: &Connection, plan: &Plan) -> Outcome<u64> {
    Ok(sums(conn, plan, stamp::OWN)?.tokens)
}

pub(super) const SUMS: &str = "SELECT coalesce(sum(tokens), 0), coalesce(sum(counter <> ?3), 0)
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND aside = 0
    AND id IS NOT NULL";

/// Returns the next rows of a plan that bear the stamp of another counter.
fn foreign(conn: &Connection, plan: &Plan, key: i64) -> Outcome<Vec<Foreign>> {
    let mut statement = conn.prepare_cached(FOREIGN)?;
    let mut found = Vec::new();
    for stretch in plan {
        let Stretch::Messages { first, last } = *stretch else { continue };
        let mut rows = statement.query(params![first, last, key, BATCH - found.len()])?;
        while let Some(row) = rows.next()? {
            let parts = row.get_ref(4)?.as_str()?.to_owned();
            let StoredMessage { address, message, .. } = StoredMessage::read(row)?;
            found.extend(message.map(|message| Foreign { address, parts, message }));
        }
        if found.len() >= BATCH {
            break;
        }
    }
    Ok(found)
}

pub(super) const FOREIGN: &str =
    "SELECT address, parent, id, role, parts, metadata, extra, aside, created_at
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND aside = 0
    AND id IS NOT NULL
    AND counter <> ?3
  ORDER BY address
  LIMIT ?4";

/// Returns the elided messages of a plan as a model sees them, with their stamps.
fn elided(conn: &Connection, plan: &Plan) -> Outcome<Vec<(u64, Message)>> {
    let mut found = Vec::new();
    for stretch in plan {
        let Stretch::Messages { first, last } = *stretch else { continue };
        for address in elision::messages_with(conn, first, last)? {
            let Some(mut message) = message::stored(conn, address)?.message else { continue };
            if message.is_aside {
                continue;
            }
            elision::apply(conn, address, &mut message)?;
            let tokens = conn
                .prepare_cached("SELECT tokens FROM message WHERE address = ?1")?
                .query_row([address], |row| row.get(0))?;
            found.push((tokens, message));
        }
    }
    Ok(found)
}
