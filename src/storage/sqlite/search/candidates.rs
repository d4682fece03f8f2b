//! Which messages match: the statements that read the index.
//!
//! Two ways. *Ranked*: the best by FTS5's own bm25, which counts every word over the whole index; that is how a whole
//! store is searched. *Newest*: those of a stretch of addresses, newest first, which costs what the stretch holds; a
//! session or a path is searched so, and ranked outside.
//!
//! Of the copies that forks made of a message, those with the same content are one: the statements yield the message
//! itself or, where it is gone, its newest copy.

use rusqlite::{Connection, params};

use super::super::fault::Outcome;
use super::super::interrupt::Watch;
use super::place::Place;
use crate::search::Filters;
use crate::tree::Address;

/// How many messages of one stretch are ranked outside the index; of more FTS5 chooses the best.
pub(super) const MAX_SCOPED: usize = 1_000;

/// The filters as the statements take them.
pub(super) struct Bounds {
    pub(super) after: Option<i64>,
    pub(super) before: Option<i64>,
    /// A JSON array; `None` for any role.
    pub(super) roles: Option<String>,
    /// The keys of the sessions within which copies are one, as a JSON array; `None` for all.
    pub(super) sessions: Option<String>,
}

impl Bounds {
    pub(super) fn of(filters: &Filters, place: &Place) -> Self {
        let sessions = match place {
            Place::Store => None,
            // No session holds a message twice.
            Place::Path(_) => Some(&[][..]),
            Place::Sessions(keys) => Some(if keys.len() > 1 { keys.as_slice() } else { &[] }),
        };
        let roles = serde_json::Value::from(filters.roles.as_slice());
        Self {
            after: filters.after.map(|time| time.timestamp_micros()),
            before: filters.before.map(|time| time.timestamp_micros()),
            roles: (!filters.roles.is_empty()).then(|| roles.to_string()),
            sessions: sessions.map(|keys| serde_json::Value::from(keys).to_string()),
        }
    }
}

/// One of the two indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// That of the store.
    Stored,
    /// That of what is pending.
    Fresh,
}

/// The clauses that hold a message to the filters, as `?3` .. `?5`.
macro_rules! within_bounds {
    () => {
        "(?3 IS NULL OR message.created_at >= ?3)
    AND (?4 IS NULL OR message.created_at < ?4)
    AND (?5 IS NULL OR message.role IN (SELECT value FROM json_each(?5)))"
    };
}

/// The clause that leaves out a copy of what is found elsewhere, with the sessions as `?6`.
macro_rules! is_no_mere_copy {
    () => {
        "(message.origin IS NULL
         OR NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.address = message.origin
                           AND other.id IS NOT NULL
                           AND (?6 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?6)))
                           AND other.role = message.role
                           AND other.parts = message.parts)
        AND NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.origin = message.origin
                           AND other.address > message.address
                           AND (?6 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?6)))
                           AND other.role = message.role
                           AND other.parts = message.parts))"
    };
}
pub(super) use {is_no_mere_copy, within_bounds};

macro_rules! ranked {
    ($table:literal) => {
        concat!(
            "SELECT ",
            $table,
            ".rowid
   FROM ",
            $table,
            " CROSS JOIN message ON message.address = ",
            $table,
            ".rowid
  WHERE ",
            $table,
            " MATCH ?1
    AND ",
            within_bounds!(),
            "
    AND ",
            is_no_mere_copy!(),
            "
  ORDER BY ",
            $table,
            ".rank
  LIMIT ?2"
        )
    };
}

macro_rules! ranked_within {
    ($table:literal) => {
        concat!(
            "SELECT ",
            $table,
            ".rowid
   FROM ",
            $table,
            " CROSS JOIN message ON message.address = ",
            $table,
            ".rowid
  WHERE ",
            $table,
            " MATCH ?1
    AND ",
            $table,
            ".rowid BETWEEN ?7 AND ?8
    AND ",
            within_bounds!(),
            "
    AND ",
            is_no_mere_copy!(),
            "
  ORDER BY ",
            $table,
            ".rank
  LIMIT ?2"
        )
    };
}

macro_rules! newest {
    ($table:literal) => {
        concat!(
            "SELECT ",
            $table,
            ".rowid
   FROM ",
            $table,
            " CROSS JOIN message ON message.address = ",
            $table,
            ".rowid
  WHERE ",
            $table,
            " MATCH ?1
    AND ",
            $table,
            ".rowid BETWEEN ?7 AND ?8
    AND ",
            within_bounds!(),
            "
    AND ",
            is_no_mere_copy!(),
            "
  ORDER BY ",
            $table,
            ".rowid DESC
  LIMIT ?2"
        )
    };
}

pub(super) const RANKED: [&str; 2] = [ranked!("search"), ranked!("search_fresh")];
pub(super) const RANKED_WITHIN: [&str; 2] =
    [ranked_within!("search"), ranked_within!("search_fresh")];
pub(super) const NEWEST: [&str; 2] = [newest!("search"), newest!("search_fresh")];

/// What matches an expression.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// The messages, best or newest first.
    pub(super) addresses: Vec<Address>,
    /// Whether these are all there are, and in no order of worth.
    pub(super) is_all: bool,
}

/// Returns the messages of the whole store that match, best first, `limit` at the most.
pub(super) fn in_store(
    conn: &Connection,
    index: Index,
    expression: &str,
    bounds: &Bounds,
    limit: usize,
) -> Outcome<Vec<Address>> {
    let Bounds { after, before, roles, sessions } = bounds;
    let mut statement = conn.prepare_cached(RANKED[index as usize])?;
    let found = statement
        .query_map(params![expression, limit, after, before, roles, sessions], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Returns the messages of a stretch of the place that match: all, or the best if there are too many.
pub(super) fn in_stretch(
    conn: &Connection,
    index: Index,
    expression: &str,
    bounds: &Bounds,
    place: &Place,
    (low, high): (Address, Address),
    limit: usize,
    watch: &Watch,
) -> Outcome<Matches> {
    let Bounds { after, before, roles, sessions } = bounds;
    let collect = |sql: &str, limit: usize| -> Outcome<Vec<Address>> {
        // Off a path there is more than is counted.
        let max_rows =
            if matches!(place, Place::Path(_)) { -1 } else { i64::try_from(limit).unwrap_or(-1) };
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement
            .query(params![expression, max_rows, after, before, roles, sessions, low, high])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let address: Address = row.get(0)?;
            if place.holds(address) {
                found.push(address);
            }
            if found.len() >= limit {
                break;
            }
            watch.check()?;
        }
        Ok(found)
    };
    let max_scoped = MAX_SCOPED.max(limit);
    let newest = collect(NEWEST[index as usize], max_scoped + 1)?;
    if newest.len() <= max_scoped {
        return Ok(Matches { addresses: newest, is_all: true });
    }
    Ok(Matches { addresses: collect(RANKED_WITHIN[index as usize], limit)?, is_all: false })
}

/// Adds the addresses in a stretch that match an expression.
pub(super) fn add_all(
    conn: &Connection,
    index: Index,
    expression: &str,
    (low, high): (Address, Address),
    found: &mut std::collections::HashSet<Address>,
) -> Outcome<()> {
    let mut statement = conn.prepare_cached(ALL[index as usize])?;
    for address in statement.query_map(params![expression, low, high], |row| row.get(0))? {
        found.insert(address?);
    }
    Ok(())
}

pub(super) const ALL: [&str; 2] = [
    "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3",
    "SELECT rowid FROM search_fresh WHERE search_fresh MATCH ?1 AND rowid BETWEEN ?2 AND ?3",
];
