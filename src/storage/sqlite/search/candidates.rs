//! Which messages match: the statements that read the index.
//!
//! Two ways. *All* of a stretch of addresses, which costs what the stretch holds: a session or a path is searched so, and
//! ranked outside. The *best*, by FTS5's own bm25, which counts every word over the whole index: so a whole store is
//! searched, or a session in which too much matches. Of very many matches only the newest are ranked.
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
const MAX_UNRANKED: usize = 1_000;
/// How many matches FTS5 ranks, the newest; older ones follow, newest first. A word that is everywhere finds nothing.
const MAX_RANKED: usize = 20_000;

/// The filters as the statements take them.
pub(super) struct Bounds {
    pub(super) after: Option<i64>,
    pub(super) before: Option<i64>,
    /// Empty for any role.
    roles: Vec<String>,
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
        Self {
            after: filters.after.map(|time| time.timestamp_micros()),
            before: filters.before.map(|time| time.timestamp_micros()),
            roles: filters.roles.clone(),
            sessions: sessions.map(|keys| serde_json::Value::from(keys).to_string()),
        }
    }
}

impl Bounds {
    /// Returns whether a role is asked for. Few are, and here they are told faster than in SQL.
    pub(super) fn hold_role(&self, role: &str) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|wanted| wanted == role)
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

/// The clauses that hold a message to the filters and leave out a mere copy of what is found elsewhere: with the times
/// as `?3` and `?4`, and the sessions as `?5`.
macro_rules! passes {
    () => {
        "(?3 IS NULL OR message.created_at >= ?3)
    AND (?4 IS NULL OR message.created_at < ?4)
    AND (message.origin IS NULL
         OR NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.address = message.origin
                           AND other.id IS NOT NULL
                           AND (?5 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?5)))
                           AND other.role = message.role
                           AND other.parts = message.parts)
        AND NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.origin = message.origin
                           AND other.address > message.address
                           AND (?5 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?5)))
                           AND other.role = message.role
                           AND other.parts = message.parts))"
    };
}
pub(super) use passes;

macro_rules! matching {
    ($table:literal, $order:literal) => {
        concat!(
            "SELECT ",
            $table,
            ".rowid, message.role
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
            ".rowid BETWEEN ?6 AND ?7
    AND ",
            passes!(),
            "
  ORDER BY ",
            $table,
            $order,
            "
  LIMIT ?2"
        )
    };
}

/// In order of address: FTS5 reads its lists several times slower from the end.
pub(super) const OLDEST: [&str; 2] =
    [matching!("search", ".rowid"), matching!("search_fresh", ".rowid")];
pub(super) const NEWEST: [&str; 2] =
    [matching!("search", ".rowid DESC"), matching!("search_fresh", ".rowid DESC")];
pub(super) const BEST: [&str; 2] =
    [matching!("search", ".rank"), matching!("search_fresh", ".rank")];

/// What is looked for, and where.
pub(super) struct Lookup<'c> {
    pub(super) conn: &'c Connection,
    pub(super) index: Index,
    pub(super) expression: &'c str,
    pub(super) bounds: &'c Bounds,
    pub(super) place: &'c Place,
    pub(super) watch: &'c Watch,
}

impl Lookup<'_> {
    /// Returns the messages of a stretch that match, if they are few enough to be ranked outside.
    ///
    /// However many are wanted: pages of one answer must come from one order.
    pub(super) fn all(&self, range: (Address, Address)) -> Outcome<Option<Vec<Address>>> {
        let found = self.collect(OLDEST[self.index as usize], range, MAX_UNRANKED + 1)?;
        Ok((found.len() <= MAX_UNRANKED).then_some(found))
    }

    /// Returns the best messages of a stretch that match, `limit` at the most.
    pub(super) fn best(
        &self,
        (low, high): (Address, Address),
        limit: usize,
    ) -> Outcome<Vec<Address>> {
        let best = BEST[self.index as usize];
        let Some(start) = self.newest_start((low, high))? else {
            return self.collect(best, (low, high), limit);
        };
        let mut found = self.collect(best, (start, high), limit)?;
        if found.len() < limit {
            let older = (low, start.before());
            found.extend(self.collect(NEWEST[self.index as usize], older, limit - found.len())?);
        }
        Ok(found)
    }

    /// Returns where the newest matches begin, if there are more than can be ranked.
    fn newest_start(&self, (low, high): (Address, Address)) -> Outcome<Option<Address>> {
        let count: usize = self
            .conn
            .prepare_cached(COUNT[self.index as usize])?
            .query_row(params![self.expression, MAX_RANKED + 1, low, high], |row| row.get(0))?;
        if count <= MAX_RANKED {
            return Ok(None);
        }
        let mut statement = self.conn.prepare_cached(NTH_NEWEST[self.index as usize])?;
        let nth = params![self.expression, MAX_RANKED - 1, low, high];
        Ok(Some(statement.query_row(nth, |row| row.get(0))?))
    }

    fn collect(
        &self,
        sql: &str,
        (low, high): (Address, Address),
        limit: usize,
    ) -> Outcome<Vec<Address>> {
        let Bounds { after, before, roles, sessions } = self.bounds;
        // What is told outside the statement cannot be counted in it.
        let is_counted = roles.is_empty() && !matches!(self.place, Place::Path(_));
        let max = if is_counted { i64::try_from(limit).unwrap_or(-1) } else { -1 };
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows =
            statement.query(params![self.expression, max, after, before, sessions, low, high])?;
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(row) = rows.next()?
        {
            self.watch.check()?;
            let address: Address = row.get(0)?;
            if self.place.holds(address) && self.bounds.hold_role(row.get_ref(1)?.as_str()?) {
                found.push(address);
            }
        }
        Ok(found)
    }
}

pub(super) const COUNT: [&str; 2] = [
    "SELECT count(*)
   FROM (SELECT 1 FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?3 AND ?4 LIMIT ?2)",
    "SELECT count(*)
   FROM (SELECT 1 FROM search_fresh WHERE search_fresh MATCH ?1 AND rowid BETWEEN ?3 AND ?4 LIMIT ?2)",
];

pub(super) const NTH_NEWEST: [&str; 2] = [
    "SELECT rowid
   FROM search
  WHERE search MATCH ?1
    AND rowid BETWEEN ?3 AND ?4
  ORDER BY rowid DESC
  LIMIT 1 OFFSET ?2",
    "SELECT rowid
   FROM search_fresh
  WHERE search_fresh MATCH ?1
    AND rowid BETWEEN ?3 AND ?4
  ORDER BY rowid DESC
  LIMIT 1 OFFSET ?2",
];

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
