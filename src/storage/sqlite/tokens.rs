//! Token counts: how many tokens a message takes, and which counter said so.
//!
//! A counter may be a caller's own code, so messages are counted before a transaction begins. Each row stores the key
//! of its counter; rows of another counter are counted again when a total is needed. Where a counter fails, the row holds
//! talktree's own estimate under its own key, and is counted again like any row of another counter.
//!
//! The count of what a model sees on the path to the head is stored in the session's row and grows with each append at the head. Every other change of the view
//! discards it; it is then computed on demand from the counts in the rows. Rows of another counter are counted first,
//! a batch at a time, and the counts are stored only if nothing changed meanwhile. Where the counter fails, the total holds
//! estimates and is not stored.

use super::connection::Database;
use super::context::elision;
use super::row::message::{Content, StoredMessage};
use super::row::session::SessionRow;
use super::session::Handle;
use super::{compaction, message, path};
use crate::error::Result;
use crate::message::Message;
use crate::sql::{BackendResult, Connection, Read};
use crate::tokens::{Count, Counter, ESTIMATE_VERSION, HEURISTIC};
use crate::tree::{Address, Plan, PlanPart};

/// The key of talktree's own estimate: 0 of its first version, -1 of the second, and so on.
pub(super) const HEURISTIC_KEY: i64 = 1 - ESTIMATE_VERSION;

/// How many tokens a message takes, and the key of the counter that said so.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenCount {
    pub(super) tokens: u64,
    pub(super) counter: i64,
}

/// The tokens of messages that are about to be stored.
pub(crate) struct CountedMessages<'a> {
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
    conn.first("SELECT key FROM token_counter WHERE name = ?1", counter.name())
}

/// Returns the key of a counter, creating one if it has none.
pub(super) fn counter_key_to_write(conn: &Connection, counter: &Counter) -> BackendResult<i64> {
    if let Some(key) = counter_key(conn, counter)? {
        return Ok(key);
    }
    conn.one("INSERT INTO token_counter (name) VALUES (?1) RETURNING key", counter.name())
}

/// How many rows of another counter are counted at a time.
const BATCH: usize = 512;
/// How often counting starts over because others write to the session, before the count is returned without being
/// stored.
const MAX_ATTEMPTS: usize = 4;

/// How many failures of a counter end a recount: one that cannot be reached fails for every row, and may take its time.
const MAX_FAILURES: usize = 4;

/// A key that no counter has: a counter without a key has counted no row.
const NO_COUNTER: i64 = i64::MIN;

/// What one read of a session found.
enum Found {
    /// The count is in the session's row.
    Known(u64),
    /// Rows of another counter are visible: they have to be counted first.
    Uncounted(Plan),
    /// The tokens of the rows, and what else is visible: summaries and messages with elisions.
    Sum { session: SessionRow, of_rows: u64, has_estimates: bool, others: Vec<Message> },
}

/// A row with another counter's count.
struct Uncounted {
    address: Address,
    /// Its columns when it was read.
    content: Content<'static>,
    message: Message,
}

impl Database {
    /// Returns how many tokens a model sees on the path to the head; `None` if rows of another counter cannot be
    /// updated.
    pub(super) fn visible_tokens(&self, handle: &Handle, counter: &Counter) -> Result<Option<u64>> {
        let (mut counted, mut takes_estimates) = (None, false);
        for _ in 0..MAX_ATTEMPTS {
            match self.read(|conn| read_count(conn, handle, counter, takes_estimates))? {
                Found::Known(tokens) => return Ok(Some(tokens)),
                Found::Uncounted(_) if self.is_read_only() => return Ok(None),
                Found::Uncounted(plan) => takes_estimates = !self.recount_all(plan, counter)?,
                Found::Sum { session, of_rows, mut has_estimates, others } => {
                    let mut tokens = of_rows;
                    for count in others.iter().map(|message| counter.count(message)) {
                        tokens = tokens.saturating_add(count.tokens);
                        has_estimates |= count.is_estimate;
                    }
                    // In a read-only store the total is computed each time.
                    let is_kept = self.is_read_only() || has_estimates;
                    if is_kept || self.store_count(&session, tokens, counter)? {
                        return Ok(Some(tokens));
                    }
                    counted = Some(tokens);
                }
            }
        }
        Ok(counted)
    }

    /// Counts all rows of a plan that have another counter's count; returns whether the counter never failed.
    fn recount_all(&self, mut plan: Plan, counter: &Counter) -> Result<bool> {
        let mut failures = 0;
        loop {
            let rows = self.read(|conn| next_uncounted(conn, &mut plan, counter))?;
            if rows.is_empty() {
                return Ok(failures == 0);
            }
            let mut counts = Vec::with_capacity(rows.len());
            for row in rows {
                let count = counter.count(&row.message);
                match count.is_estimate {
                    false => counts.push((row, count.tokens)),
                    true => failures += 1,
                }
                if failures >= MAX_FAILURES {
                    break;
                }
            }
            if !counts.is_empty() {
                self.store_recounted(&counts, counter)?;
            }
            if failures >= MAX_FAILURES {
                return Ok(false);
            }
        }
    }

    /// Stores the counts of rows that have not changed since they were read.
    fn store_recounted(&self, counts: &[(Uncounted, u64)], counter: &Counter) -> Result<()> {
        self.write(|conn| {
            let key = counter_key_to_write(conn, counter)?;
            for &(ref found, tokens) in counts {
                let count = TokenCount { tokens, counter: key };
                let Uncounted { address, content, .. } = found;
                conn.run(RECOUNT, (count, address, address, content))?;
            }
            Ok(())
        })
    }

    /// Stores the total, if the session has not changed since it was counted.
    fn store_count(&self, session: &SessionRow, tokens: u64, counter: &Counter) -> Result<bool> {
        self.write(|conn| {
            let key = counter_key_to_write(conn, counter)?;
            let count = conn.run(
                "UPDATE session
                        SET visible_tokens = ?2, counter = ?3
                      WHERE key = ?1 AND next = ?4 AND changes = ?5",
                (session.key, tokens, key, session.next, session.changes),
            )?;
            Ok(count > 0)
        })
    }
}

/// A message that was updated since it was read has a count of its new content.
const RECOUNT: &str = concat!(
    "UPDATE message SET ",
    token_columns!(assign),
    " WHERE address = ? AND (address",
    content_columns!(names),
    ") IS NOT DISTINCT FROM (?",
    content_columns!(values),
    ")"
);

fn read_count(
    conn: &Connection,
    handle: &Handle,
    counter: &Counter,
    takes_estimates: bool,
) -> BackendResult<Found> {
    let Some(session) = handle.find(conn)? else { return Ok(Found::Known(0)) };
    let key = counter_key(conn, counter)?;
    if let Some(tokens) = session.visible_tokens.0.filter(|_| key == Some(session.counter)) {
        return Ok(Found::Known(tokens));
    }
    let plan = path::plan(conn, session.key, session.head, false)?;
    let sums = sums(conn, &plan, key.unwrap_or(NO_COUNTER))?;
    let has_estimates = sums.uncounted > 0;
    if has_estimates && !takes_estimates {
        return Ok(Found::Uncounted(plan));
    }
    let (of_rows, others) = split_sum(conn, &plan, sums.tokens)?;
    Ok(Found::Sum { session, of_rows, has_estimates, others })
}

/// Returns the total that the counts in the rows add up to; `None` if only a caller's own counter can tell.
pub(super) fn from_rows(conn: &Connection, session: &SessionRow) -> BackendResult<Option<u64>> {
    let plan = path::plan(conn, session.key, session.head, false)?;
    let sums = sums(conn, &plan, session.counter)?;
    let (of_rows, others) = split_sum(conn, &plan, sums.tokens)?;
    if sums.uncounted > 0 || (session.counter != HEURISTIC_KEY && !others.is_empty()) {
        return Ok(None);
    }
    let own = Counter::default();
    let others: u64 = others.iter().map(|message| own.message(message)).sum();
    Ok(Some(of_rows.saturating_add(others)))
}

/// Returns which tokens of the rows a model sees, and the visible messages that rows do not count.
fn split_sum(conn: &Connection, plan: &Plan, of_rows: u64) -> BackendResult<(u64, Vec<Message>)> {
    let mut others = Vec::new();
    for planned in plan {
        if let PlanPart::Summary(span) = planned {
            others.extend(compaction::by_key(conn, span.key)?.map(|it| it.to_message(None)));
        }
    }
    let elided = elided(conn, plan)?;
    let replaced = elided.iter().fold(0u64, |sum, (tokens, _)| sum.saturating_add(*tokens));
    others.extend(elided.into_iter().map(|(_, message)| message));
    Ok((of_rows.saturating_sub(replaced), others))
}

/// The counts of a plan's messages.
#[derive(Default)]
struct Sums {
    tokens: u64,
    /// How many rows have another counter's count.
    uncounted: u64,
}

fn sums(conn: &Connection, plan: &Plan, key: i64) -> BackendResult<Sums> {
    let mut sums = Sums::default();
    for planned in plan {
        let PlanPart::Messages { first, last } = *planned else { continue };
        let (tokens, uncounted): (u64, u64) = conn.one(SUMS, (first, last, key))?;
        sums.tokens = sums.tokens.saturating_add(tokens);
        sums.uncounted += uncounted;
    }
    Ok(sums)
}

/// Returns the tokens of a plan's messages, of any counter.
pub(super) fn of_rows(conn: &Connection, plan: &Plan) -> BackendResult<u64> {
    Ok(sums(conn, plan, HEURISTIC_KEY)?.tokens)
}

pub(super) const SUMS: &str = "SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT),
        count(CASE WHEN counter <> ?3 THEN 1 END)
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND hidden = 0
    AND id IS NOT NULL";

/// Takes the oldest ranges from a plan, up to a batch of rows with another counter's count, and returns those
/// rows; none if no such row is left.
fn next_uncounted(
    conn: &Connection,
    plan: &mut Plan,
    counter: &Counter,
) -> BackendResult<Vec<Uncounted>> {
    let key = counter_key(conn, counter)?.unwrap_or(NO_COUNTER);
    let mut found: Vec<Uncounted> = Vec::new();
    while found.len() < BATCH
        && let Some(planned) = plan.pop()
    {
        let PlanPart::Messages { first, last } = planned else { continue };
        conn.each(UNCOUNTED, (first, last, key, BATCH - found.len()), |row| {
            let StoredMessage { address, message, .. } = StoredMessage::read(row)?;
            if let Some(message) = message {
                let content = Content::of_row(row)?.into_owned();
                found.push(Uncounted { address, content, message });
            }
            Ok(true)
        })?;
        // The range may have more such rows than the batch.
        if let Some(newest) = found.last()
            && found.len() == BATCH
            && newest.address < last
        {
            plan.push(PlanPart::Messages { first: newest.address.after(), last });
        }
    }
    Ok(found)
}

pub(super) const UNCOUNTED: &str = concat!(
    "SELECT ",
    stored_columns!(),
    " FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND hidden = 0
    AND id IS NOT NULL
    AND counter <> ?3
  ORDER BY address
  LIMIT ?4"
);

/// Returns the messages of a plan that have elisions, as a model sees them, with the tokens of their rows.
fn elided(conn: &Connection, plan: &Plan) -> BackendResult<Vec<(u64, Message)>> {
    let mut found = Vec::new();
    for planned in plan {
        let PlanPart::Messages { first, last } = *planned else { continue };
        for address in elision::messages_with(conn, first, last)? {
            let Some(mut message) = message::stored(conn, address)?.message else { continue };
            if message.is_hidden {
                continue;
            }
            elision::apply(conn, address, &mut message)?;
            let tokens = conn.one("SELECT tokens FROM message WHERE address = ?1", address)?;
            found.push((tokens, message));
        }
    }
    Ok(found)
}

impl Database {
    /// Discards the counts of all sessions and of callers' counters, and estimates those messages.
    pub(crate) fn recount_tokens(&self) -> Result<()> {
        self.write_long(|conn| {
            conn.run(DISCARD, ())?;
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
    SET visible_tokens = NULL, counter = 0, changes = CASE WHEN changes < 0 THEN 0 ELSE changes END + 1";

/// Estimates a batch of messages; returns the last of them. A damaged message counts 0.
fn count_some(conn: &Connection, after: Address) -> BackendResult<Option<Address>> {
    let own = Counter::default();
    let counts = conn.rows_with(UNKNOWN, (after, HEURISTIC_KEY), |row| {
        let message = StoredMessage::read(row).ok().and_then(|stored| stored.message);
        Ok((Address::read(row, 0)?, message.map_or(0, |message| own.message(&message))))
    })?;
    for (address, tokens) in &counts {
        conn.run(
            "UPDATE message SET tokens = ?2, counter = ?3 WHERE address = ?1",
            (address, tokens, HEURISTIC_KEY),
        )?;
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
