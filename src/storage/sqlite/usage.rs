//! The ledger of usage: a row for each answer that says what it took.
//!
//! A row belongs to the address at which the answer was written first. A fork copies messages and no rows, so a store's
//! total counts a shared prefix once; the total of a path in a fork finds the rows by the origin of its messages. A copy that
//! was replaced by another answer has a row of its own. A row stays when its message is deleted: the answer was paid for.
//!
//! Invariant: a row has the owner and the source of its session, and those that it had last when the session is removed. Whatever
//! changes them calls [`follow`]. The model is that of the answer or, if it names none, the first one of its session.
//! The author is the nearest one above the answer when the row is written.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::connection::Database;
use super::path::SessionTree;
use super::row::session as session_row;
use super::{message, path};
use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;
use crate::sql::{BackendResult, Connection, Read, Row, corrupt, damaged, time};
use crate::tree::{Address, PlanPart, Walk};
use crate::usage::{Cost, Usage, UsageFilter, UsageGroup, UsageTotal};

/// The greatest number in a row: every reader of JSON holds it exactly. A greater one is stored as this.
pub(super) const MAX_NUMBER: u64 = 1 << 53;

/// Adds what a stored message says about its usage; what was known of the message is replaced.
pub(super) fn record(conn: &Connection, address: Address, message: &Message) -> BackendResult<()> {
    let Some(usage) = Usage::of(message) else { return Ok(()) };
    let answer = Usage::answer_of(message);
    let at = message.created_at.timestamp_micros();
    add(conn, address.session(), Some(address), &usage, at, answer.as_deref())
}

/// Does the same for a message that was changed. The copy of an answer in a fork adds nothing while its usage is that of the
/// answer: it is counted where it was written.
pub(super) fn record_changed(
    conn: &Connection,
    address: Address,
    message: &Message,
) -> BackendResult<()> {
    let Some(usage) = Usage::of(message) else { return Ok(()) };
    let (tokens, cost, currency) = numbers(&usage);
    let is_same = conn.has(SAME_AS_ORIGIN, (address, tokens, cost, currency))?;
    if is_same { Ok(()) } else { record(conn, address, message) }
}

const SAME_AS_ORIGIN: &str = "SELECT 1
   FROM message
  CROSS JOIN usage
  WHERE message.address = ?1
    AND usage.session = message.origin >> 32
    AND usage.address = message.origin
    AND (input, output, cache_read, cache_write, reasoning) = (?2, ?3, ?4, ?5, ?6)
    AND cost IS NOT DISTINCT FROM ?7
    AND currency IS NOT DISTINCT FROM ?8";

/// Returns the tokens, the cost and its currency as they are stored.
fn numbers(usage: &Usage) -> ([u64; 5], Option<u64>, Option<&str>) {
    let tokens = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning];
    let cost = usage.cost.as_ref();
    (
        tokens.map(|number| number.min(MAX_NUMBER)),
        cost.map(|cost| cost.micros.min(MAX_NUMBER)),
        cost.map(|cost| cost.currency.as_str()),
    )
}

/// Adds usage of a session, of one of its messages or of none.
pub(super) fn add(
    conn: &Connection,
    session: i64,
    address: Option<Address>,
    usage: &Usage,
    used_at: i64,
    answer: Option<&str>,
) -> BackendResult<()> {
    let (tokens, cost, currency) = numbers(usage);
    if let Some(answer) = answer {
        let place = (session, address, &usage.model);
        let is_other = usage.model.is_some()
            && conn.run(REPLACE, (place, tokens, (cost, currency), answer))? > 0;
        let [input, output, .., reasoning] = tokens;
        if is_other || conn.run(RAISE, (session, address, answer, input, output, reasoning))? > 0 {
            return Ok(());
        }
    }
    let author = address.map_or(Ok(None), |address| author_above(conn, address))?;
    let place = (session, address, &usage.model);
    conn.run(ADD, (place, tokens, (cost, currency), used_at, answer, author))?;
    Ok(())
}

/// How far above an answer its author is looked for, in messages of the session.
const MAX_ABOVE: i64 = 256;

/// Returns the nearest author on the path above a message, among the messages that were appended up to [`MAX_ABOVE`] before
/// it. Most sessions have no authors: that costs one look into an empty part of the index.
fn author_above(conn: &Connection, address: Address) -> BackendResult<Option<String>> {
    let (start, _) = Address::range_of(address.session());
    let low = start.max(Address::from_raw(address.raw() - MAX_ABOVE));
    let nearest = |first: Address, last: Address| {
        conn.first::<String>(NEAREST_AUTHOR, (first.max(low), last))
    };
    let last = address.before();
    if nearest(low, last)?.is_none() {
        return Ok(None);
    }
    let mut tree = SessionTree::new(conn, address.session());
    let mut walk = Walk::raw(&mut tree, Some(address));
    while let Some(planned) = walk.next()? {
        let PlanPart::Messages { first, last: end } = planned else { continue };
        if let Some(author) = nearest(first, end.min(last))? {
            return Ok(Some(author));
        }
        if first <= low {
            break;
        }
    }
    Ok(None)
}

pub(super) const NEAREST_AUTHOR: &str = "SELECT author
   FROM message INDEXED BY message_author
  WHERE author IS NOT NULL
    AND address BETWEEN ?1 AND ?2
  ORDER BY address DESC
  LIMIT 1";

/// Another model went on with an answer: what it says counts, and not the greater of two numbers.
const REPLACE: &str = "UPDATE usage
    SET model = ?3, input = ?4, output = ?5, cache_read = ?6, cache_write = ?7, reasoning = ?8,
        cost = ?9, currency = ?10
  WHERE session = ?1
    AND answer = ?11 /*HASH*/
    AND answer IS NOT NULL
    AND model IS DISTINCT FROM ?3
    AND NOT EXISTS (SELECT 1 FROM usage AS own WHERE own.session = ?1 AND own.address = ?2)";

/// An answer that was stored in several messages has the usage of all of it in each, and the last one has the final number
/// of its tokens. A message that has a row of its own keeps it.
const RAISE: &str = "UPDATE usage
    SET input = CASE WHEN input < ?4 THEN ?4 ELSE input END,
        output = CASE WHEN output < ?5 THEN ?5 ELSE output END,
        reasoning = CASE WHEN reasoning < ?6 THEN ?6 ELSE reasoning END
  WHERE session = ?1
    AND answer = ?3 /*HASH*/
    AND answer IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM usage AS own WHERE own.session = ?1 AND own.address = ?2)";

const ADD: &str = "INSERT INTO usage (session, address, owner, source, model, input, output, cache_read, cache_write,
                   reasoning, cost, currency, used_at, answer, author)
 SELECT key, ?2, owner, source, coalesce(?3, model), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13
   FROM session
  WHERE key = ?1
     ON CONFLICT (session, address)
     DO UPDATE SET (model, input, output, cache_read, cache_write, reasoning, cost, currency)
                 = (excluded.model, excluded.input, excluded.output, excluded.cache_read,
                    excluded.cache_write, excluded.reasoning, excluded.cost, excluded.currency)";

/// Returns what the messages on a path took that were not deleted.
pub(crate) fn of_path(
    conn: &Connection,
    session: i64,
    leaf: Option<Address>,
) -> BackendResult<UsageTotal> {
    let mut total = UsageTotal::default();
    for planned in path::plan(conn, session, leaf, true)? {
        let PlanPart::Messages { first, last } = planned else { continue };
        for sql in [WRITTEN_HERE, COPIED] {
            conn.each(sql, (first, last), |row| {
                total.add(read(row)?);
                Ok(true)
            })?;
        }
    }
    Ok(total)
}

/// Returns what all answers of a session took.
pub(crate) fn of_session(conn: &Connection, session: i64) -> BackendResult<UsageTotal> {
    let mut total = UsageTotal::default();
    conn.each(OF_SESSION, session, |row| {
        total.add(read(row)?);
        Ok(true)
    })?;
    Ok(total)
}

/// The sum of a column, as two numbers: rows of other programs may add up to more than SQLite's integers hold.
macro_rules! sum {
    ($column:literal) => {
        concat!(
            ", CAST(sum(",
            $column,
            " >> 32) AS BIGINT), CAST(sum(",
            $column,
            " & 4294967295) AS BIGINT)"
        )
    };
}

/// The sums of the columns; one row a currency.
macro_rules! sums {
    () => {
        concat!(
            "usage.currency, count(*)",
            sum!("input"),
            sum!("output"),
            sum!("cache_read"),
            sum!("cache_write"),
            sum!("reasoning"),
            sum!("cost")
        )
    };
}

pub(super) const OF_SESSION: &str = concat!(
    "SELECT NULL, ",
    sums!(),
    "
   FROM usage
  WHERE session = ?1
  GROUP BY usage.currency"
);

pub(super) const WRITTEN_HERE: &str = concat!(
    "SELECT NULL, ",
    sums!(),
    "
   FROM usage
  CROSS JOIN message
  WHERE usage.session = CAST(?1 AS BIGINT) >> 32
    AND usage.address BETWEEN ?1 AND ?2
    AND message.address = usage.address
    AND message.id IS NOT NULL
  GROUP BY usage.currency"
);

pub(super) const COPIED: &str = concat!(
    "SELECT NULL, ",
    sums!(),
    "
   FROM message
  CROSS JOIN usage
  WHERE message.address BETWEEN ?1 AND ?2
    AND usage.session = message.origin >> 32
    AND usage.address = message.origin
    AND message.origin IS NOT NULL
    AND message.id IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM usage AS own WHERE own.session = message.session AND own.address = message.address)
  GROUP BY usage.currency"
);

fn read(row: &Row<'_>) -> BackendResult<UsageTotal> {
    // Rows of other programs may add up to less than 0 or to more than the greatest number.
    let number = |at: usize| -> BackendResult<u64> {
        let (upper, lower): (Option<i64>, Option<i64>) = Read::read(row, at)?;
        let sum =
            (i128::from(upper.unwrap_or_default()) << 32) + i128::from(lower.unwrap_or_default());
        Ok(u64::try_from(sum.max(0)).unwrap_or(u64::MAX))
    };
    let (currency, answers): (Option<String>, _) = Read::read(row, 1)?;
    let cost = match currency {
        Some(currency) => Some(Cost { micros: number(13)?, currency }),
        None => None,
    };
    Ok(UsageTotal {
        group: None,
        answers,
        input: number(3)?,
        output: number(5)?,
        cache_read: number(7)?,
        cache_write: number(9)?,
        reasoning: number(11)?,
        costs: cost.into_iter().collect(),
    })
}

/// Returns the name of a row in reports of damage.
pub(super) fn named(number: i64) -> String {
    format!("row {number} of the usage")
}

/// Reads a row of [`EVERY`]: an error unless talktree could have written its numbers and its time.
pub(super) fn check_row(row: &Row<'_>) -> BackendResult<()> {
    let (number, used_at): (i64, i64) = Read::read(row, 0)?;
    let check = || {
        time(used_at)?;
        for (at, what) in
            ["input", "output", "cache_read", "cache_write", "reasoning", "cost"].iter().enumerate()
        {
            let stored: i64 = Option::read(row, at + 2)?.unwrap_or_default();
            if !(0..=MAX_NUMBER as i64).contains(&stored) {
                return Err(corrupt(format!("{what} is {stored}, outside 0 to {MAX_NUMBER}")));
            }
        }
        Ok(())
    };
    check().map_err(damaged(named(number)))
}

/// For `verify`.
pub(super) const EVERY: &str =
    "SELECT number, used_at, input, output, cache_read, cache_write, reasoning, cost
   FROM usage";

impl Database {
    /// Returns the usage that a filter names, added up by group: the newest day first, otherwise the largest sum.
    pub(crate) fn usage(&self, filter: &UsageFilter, group: UsageGroup) -> Result<Vec<UsageTotal>> {
        filter.check()?;
        self.read(|conn| {
            let session = match &filter.session {
                None => None,
                Some(id) => match session_row::find(conn, id)? {
                    Some(session) => Some(session.key),
                    None => return Ok(Vec::new()),
                },
            };
            let UsageFilter { owner, author, model, source, .. } = filter;
            let time = |time: Option<DateTime<Utc>>, default: i64| {
                time.map_or(default, |time| time.timestamp_micros())
            };
            let (since, until) = (time(filter.since, i64::MIN), time(filter.until, i64::MAX));
            let place = (since, until, number_of(group), author, model, source);
            let mut totals: BTreeMap<Option<String>, UsageTotal> = BTreeMap::new();
            let add = |row: &Row<'_>| {
                let name: Option<String> = Read::read(row, 0)?;
                let name = match group {
                    UsageGroup::Day => name.and_then(day),
                    _ => name,
                };
                totals.entry(name).or_default().add(read(row)?);
                Ok(true)
            };
            match (session, owner) {
                (Some(session), _) => conn.each(TOTALS_OF_SESSION, (place, owner, session), add),
                (None, Some(owner)) => conn.each(TOTALS_OF_OWNER, (place, owner), add),
                (None, None) => conn.each(TOTALS, place, add),
            }?;
            let mut rows: Vec<_> =
                totals.into_iter().map(|(group, total)| UsageTotal { group, ..total }).collect();
            match group {
                UsageGroup::Day => rows.reverse(),
                _ => {
                    rows.sort_by_key(|row| std::cmp::Reverse(row.input.saturating_add(row.output)))
                }
            }
            Ok(rows)
        })
    }
}

/// Returns the name of a day, given by its number since 1970.
fn day(number: String) -> Option<String> {
    let seconds = number.parse::<i64>().ok()?.checked_mul(86_400)?;
    Some(DateTime::from_timestamp(seconds, 0)?.format("%Y-%m-%d").to_string())
}

/// Returns the number by which [`TOTALS`] know a group.
fn number_of(group: UsageGroup) -> i64 {
    match group {
        UsageGroup::All => 0,
        UsageGroup::Model => 1,
        UsageGroup::Day => 2,
        UsageGroup::Owner => 3,
        UsageGroup::Author => 4,
        UsageGroup::Session => 5,
        UsageGroup::Source => 6,
    }
}

/// The sums by the name of a group. The division of a time before 1970 would round up.
macro_rules! totals {
    ($condition:literal) => {
        concat!(
            "SELECT CASE CAST(?3 AS BIGINT)
        WHEN 1 THEN usage.model
        WHEN 2 THEN CAST((used_at - (used_at % 86400000000 + 86400000000) % 86400000000)
                         / 86400000000 AS TEXT)
        WHEN 3 THEN usage.owner
        WHEN 4 THEN usage.author
        WHEN 5 THEN (SELECT id FROM session WHERE session.key = usage.session)
        WHEN 6 THEN usage.source
        END AS name, ",
            sums!(),
            "
   FROM usage
  WHERE used_at >= ?1
    AND used_at < ?2
    AND (CAST(?4 AS TEXT) IS NULL OR usage.author = ?4)
    AND (CAST(?5 AS TEXT) IS NULL OR usage.model = ?5)
    AND (CAST(?6 AS TEXT) IS NULL OR usage.source = ?6)",
            $condition,
            "
  GROUP BY name, usage.currency"
        )
    };
}

const TOTALS: &str = totals!("");
pub(super) const TOTALS_OF_OWNER: &str = totals!("\n    AND usage.owner = ?7");
pub(super) const TOTALS_OF_SESSION: &str = totals!(
    "\n    AND (CAST(?7 AS TEXT) IS NULL OR usage.owner = ?7)
    AND usage.session = ?8"
);

/// Adds usage of a session, of one of its messages or of none.
pub(crate) fn add_to(
    conn: &Connection,
    session: i64,
    name: &crate::id::SessionId,
    id: Option<&MessageId>,
    usage: &Usage,
) -> BackendResult<()> {
    let address = match id {
        None => None,
        Some(id) => Some(message::require(conn, Some(session), name, id)?),
    };
    session_row::claim(conn, session)?;
    add(conn, session, address, usage, session_row::now(), None)
}

/// Brings the rows of a session in step with its details.
pub(super) fn follow(conn: &Connection, session: i64) -> BackendResult<()> {
    conn.run(FOLLOW, session)?;
    Ok(())
}

const FOLLOW: &str = "UPDATE usage
    SET owner = session.owner, source = session.source, model = coalesce(usage.model, session.model)
   FROM session
  WHERE session.key = ?1
    AND usage.session = ?1
    AND (usage.owner, usage.source, usage.model)
        IS DISTINCT FROM (session.owner, session.source, coalesce(usage.model, session.model))";
