//! Finding matches: the statements that read the index.
//!
//! *All* matches in a range of addresses are returned as rows, at a cost that grows with the range. For the *best*
//! matches FTS5's own bm25 decides: it reads less of each message, but counts every word over the whole index. Of
//! very many matches only the newest are ranked.
//!
//! Message rows are read only if a filter needs them.
//!
//! Copies that forks made of a message count as one match if their content is the same: the statements return the
//! original or, if that was deleted, its newest copy.

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::range::Range;
use crate::search::Filters;
use crate::tree::Address;

/// How many matches FTS5 ranks, the newest ones; older ones follow, newest first. Without it a word that is
/// everywhere takes seconds.
pub(super) const MAX_RANKED: usize = 20_000;

/// The filters as parameters of the statements.
#[derive(Clone)]
pub(super) struct Bounds {
    pub(super) after: Option<i64>,
    pub(super) before: Option<i64>,
    /// Empty for any role.
    roles: Vec<String>,
    /// The keys of the sessions within which copies count as one, as a JSON array; `None` for all.
    pub(super) sessions: Option<String>,
    /// Whether the store has any copy.
    pub(super) has_copies: bool,
    /// Whether every match is a hit, so that no message row has to be read.
    pub(super) is_open: bool,
}

impl Bounds {
    pub(super) fn of(conn: &Connection, filters: &Filters, range: &Range) -> BackendResult<Self> {
        let sessions = match range {
            Range::Store { .. } => None,
            // No session contains a message twice.
            Range::Path(_) => Some(&[][..]),
            Range::Sessions(keys) => Some(if keys.len() > 1 { keys.as_slice() } else { &[] }),
        };
        let has_copies: bool = conn.prepare_cached(HAS_COPIES)?.query_row([], |row| row.get(0))?;
        let has_one_of_each = sessions.is_some_and(<[i64]>::is_empty) || !has_copies;
        Ok(Self {
            after: filters.after.map(|time| time.timestamp_micros()),
            before: filters.before.map(|time| time.timestamp_micros()),
            roles: filters.roles.clone(),
            sessions: sessions.map(|keys| serde_json::Value::from(keys).to_string()),
            has_copies,
            is_open: has_one_of_each
                && (filters.after, filters.before) == (None, None)
                && filters.roles.is_empty(),
        })
    }

    /// Returns whether this role passes the filter. Filters name few roles, and comparing them here is faster than in
    /// SQL.
    pub(super) fn holds_role(&self, role: &str) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|wanted| wanted == role)
    }
}

pub(super) const HAS_COPIES: &str =
    "SELECT EXISTS (SELECT 1 FROM message WHERE origin IS NOT NULL)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// The index of the store.
    Stored,
    /// The temporary index of pending messages.
    Pending,
}

/// The clauses for filters and copies. `?3` and `?4` are the times, `?5` the sessions.
macro_rules! passes {
    () => {
        "(?3 IS NULL OR message.created_at >= ?3)
    AND (?4 IS NULL OR message.created_at < ?4)
    AND (message.origin IS NULL
         OR NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.address = message.origin
                           AND other.id IS NOT NULL
                           AND (?5 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?5)))
                           AND other.address >> 32 NOT IN (SELECT key FROM session WHERE deleted_at IS NOT NULL)
                           AND other.role = message.role
                           AND other.parts = message.parts)
        AND NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.origin = message.origin
                           AND other.address > message.address
                           AND (?5 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?5)))
                           AND other.address >> 32 NOT IN (SELECT key FROM session WHERE deleted_at IS NOT NULL)
                           AND other.role = message.role
                           AND other.parts = message.parts))"
    };
}
pub(super) use passes;

/// Matches that pass the filters.
macro_rules! passing {
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

/// All matches. Sorting by the function instead of the column `rank` is a third faster: SQLite then keeps only as
/// many rows as the limit.
macro_rules! matching {
    ($table:literal, $order:literal) => {
        concat!(
            "SELECT rowid
   FROM ",
            $table,
            "
  WHERE ",
            $table,
            " MATCH ?1
    AND rowid BETWEEN ?6 AND ?7
  ORDER BY ",
            $order,
            "
  LIMIT ?2"
        )
    };
}

/// One query for either index, with filters and without.
pub(super) struct Statements {
    pub(super) passing: [&'static str; 2],
    pub(super) matching: [&'static str; 2],
}

pub(super) const NEWEST: Statements = Statements {
    passing: [passing!("search", ".rowid DESC"), passing!("pending_index", ".rowid DESC")],
    matching: [matching!("search", "rowid DESC"), matching!("pending_index", "rowid DESC")],
};
pub(super) const BEST: Statements = Statements {
    passing: [passing!("search", ".rank"), passing!("pending_index", ".rank")],
    matching: [
        matching!("search", "bm25(search), rowid"),
        matching!("pending_index", "bm25(pending_index), rowid"),
    ],
};

/// All matches in a range, from its start and from its end.
pub(super) const UPWARD: [&str; 2] =
    [matching!("search", "rowid"), matching!("pending_index", "rowid")];
pub(super) const DOWNWARD: [&str; 2] = NEWEST.matching;

/// FTS5 reaches a range by stepping through its lists, from the first message of the store or from the last. The
/// nearer end is used, assuming that all sessions have the same length.
pub(super) const IS_NEAR_END: &str = "SELECT ?1 * 2 > max(key) FROM session";

pub(super) struct Lookup<'c> {
    pub(super) conn: &'c Connection,
    pub(super) index: Index,
    pub(super) expression: &'c str,
    pub(super) bounds: &'c Bounds,
    pub(super) range: &'c Range,
    pub(super) watch: &'c Watch,
}

/// A match with the columns of its row.
pub(super) struct Matching<'r> {
    pub(super) address: Address,
    pub(super) role: &'r str,
    pub(super) parts: &'r str,
    pub(super) created_at: i64,
}

impl Lookup<'_> {
    /// Returns matches in a range without filtering: all, or `limit` of them.
    pub(super) fn some(
        &self,
        (low, high): (Address, Address),
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        let is_near_end: Option<bool> =
            self.conn.prepare_cached(IS_NEAR_END)?.query_row([low.session()], |row| row.get(0))?;
        let sqls = if is_near_end == Some(true) { DOWNWARD } else { UPWARD };
        let mut statement = self.conn.prepare_cached(sqls[self.index as usize])?;
        let is_counted = self.range.is_whole();
        let max = if is_counted { i64::try_from(limit).unwrap_or(-1) } else { -1 };
        let none = None::<i64>;
        let mut rows =
            statement.query(params![self.expression, max, none, none, none, low, high])?;
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(row) = rows.next()?
        {
            self.watch.check()?;
            let address = row.get(0)?;
            if self.range.holds(address) {
                found.push(address);
            }
        }
        Ok(found)
    }

    /// Returns how many matches a range contains, at most `limit`, without filtering.
    pub(super) fn count(
        &self,
        (low, high): (Address, Address),
        limit: usize,
    ) -> BackendResult<usize> {
        let count = self
            .conn
            .prepare_cached(COUNT[self.index as usize])?
            .query_row(params![self.expression, limit, low, high], |row| row.get(0))?;
        Ok(count)
    }

    /// Returns the best matches in a range with FTS5's scores, best first, at most `limit`.
    pub(super) fn worth(
        &self,
        (low, high): (Address, Address),
        limit: usize,
    ) -> BackendResult<Vec<(Address, f64)>> {
        let mut statement = self.conn.prepare_cached(WORTH[self.index as usize])?;
        let worth = statement.query_map(params![self.expression, limit, low, high], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        Ok(worth.collect::<Result<_, _>>()?)
    }

    /// Returns the best matches in a range, at most `limit`.
    pub(super) fn best(
        &self,
        (low, high): (Address, Address),
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        let mut found = Vec::new();
        let Some(start) = self.newest_start((low, high))? else {
            self.collect(&BEST, (low, high), limit, &mut found)?;
            return Ok(found);
        };
        self.collect(&BEST, (start, high), limit, &mut found)?;
        if found.len() < limit {
            self.collect(&NEWEST, (low, start.before()), limit, &mut found)?;
        }
        Ok(found)
    }

    /// Returns where the newest matches begin, if there are more than can be ranked.
    fn newest_start(&self, (low, high): (Address, Address)) -> BackendResult<Option<Address>> {
        if self.count((low, high), MAX_RANKED + 1)? <= MAX_RANKED {
            return Ok(None);
        }
        let mut statement = self.conn.prepare_cached(NTH_NEWEST[self.index as usize])?;
        let nth = params![self.expression, MAX_RANKED - 1, low, high];
        Ok(Some(statement.query_row(nth, |row| row.get(0))?))
    }

    /// Adds the newest matches in a range, until there are `limit`. After an error those found before are there.
    pub(super) fn newest(
        &self,
        range: (Address, Address),
        limit: usize,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        self.collect(&NEWEST, range, limit, found)
    }

    fn collect(
        &self,
        statements: &Statements,
        (low, high): (Address, Address),
        limit: usize,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        let Bounds { after, before, roles, sessions, is_open, .. } = self.bounds;
        // The role is compared outside the statement, so the statement cannot count by it.
        let is_counted = roles.is_empty() && self.range.is_whole();
        let left = limit.saturating_sub(found.len());
        let max = if is_counted { i64::try_from(left).unwrap_or(-1) } else { -1 };
        let sqls = if *is_open { statements.matching } else { statements.passing };
        let mut statement = self.conn.prepare_cached(sqls[self.index as usize])?;
        let mut rows =
            statement.query(params![self.expression, max, after, before, sessions, low, high])?;
        while found.len() < limit
            && let Some(row) = rows.next()?
        {
            self.watch.check()?;
            let address: Address = row.get(0)?;
            let has_role = *is_open || self.bounds.holds_role(row.get_ref(1)?.as_str()?);
            if has_role && self.range.holds(address) {
                found.push(address);
            }
        }
        Ok(())
    }
}

pub(super) const WORTH: [&str; 2] = [
    "SELECT rowid, -bm25(search) AS worth
   FROM search
  WHERE search MATCH ?1
    AND rowid BETWEEN ?3 AND ?4
  ORDER BY worth DESC, rowid
  LIMIT ?2",
    "SELECT rowid, -bm25(pending_index) AS worth
   FROM pending_index
  WHERE pending_index MATCH ?1
    AND rowid BETWEEN ?3 AND ?4
  ORDER BY worth DESC, rowid
  LIMIT ?2",
];

/// Calls `work` with the messages that pass the filters, in no particular order.
pub(super) fn each(
    conn: &Connection,
    found: &[Address],
    bounds: &Bounds,
    watch: &Watch,
    mut take: impl FnMut(Matching<'_>) -> BackendResult<()>,
) -> BackendResult<()> {
    let addresses: Vec<i64> = found.iter().map(|address| address.raw()).collect();
    let addresses = serde_json::Value::from(addresses).to_string();
    let Bounds { after, before, sessions, .. } = bounds;
    let mut statement = conn.prepare_cached(EACH)?;
    let mut rows = statement.query(params![addresses, None::<i64>, after, before, sessions])?;
    while let Some(row) = rows.next()? {
        watch.check()?;
        let role = row.get_ref(1)?.as_str()?;
        if bounds.holds_role(role) {
            let parts = row.get_ref(2)?.as_str().unwrap_or_default();
            take(Matching { address: row.get(0)?, role, parts, created_at: row.get(3)? })?;
        }
    }
    Ok(())
}

pub(super) const EACH: &str = concat!(
    "SELECT message.address, message.role, message.parts, message.created_at
   FROM json_each(?1) AS found CROSS JOIN message ON message.address = found.value
  WHERE ",
    passes!()
);

pub(super) const COUNT: [&str; 2] = [
    "SELECT count(*)
   FROM (SELECT 1 FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?3 AND ?4 LIMIT ?2)",
    "SELECT count(*)
   FROM (SELECT 1 FROM pending_index WHERE pending_index MATCH ?1 AND rowid BETWEEN ?3 AND ?4 LIMIT ?2)",
];

pub(super) const NTH_NEWEST: [&str; 2] = [
    "SELECT rowid
   FROM search
  WHERE search MATCH ?1
    AND rowid BETWEEN ?3 AND ?4
  ORDER BY rowid DESC
  LIMIT 1 OFFSET ?2",
    "SELECT rowid
   FROM pending_index
  WHERE pending_index MATCH ?1
    AND rowid BETWEEN ?3 AND ?4
  ORDER BY rowid DESC
  LIMIT 1 OFFSET ?2",
];

/// Adds the addresses in a range that match an expression.
pub(super) fn add_all(
    conn: &Connection,
    index: Index,
    expression: &str,
    (low, high): (Address, Address),
    found: &mut std::collections::HashSet<Address>,
) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(ALL[index as usize])?;
    for address in statement.query_map(params![expression, low, high], |row| row.get(0))? {
        found.insert(address?);
    }
    Ok(())
}

pub(super) const ALL: [&str; 2] = [
    "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3",
    "SELECT rowid FROM pending_index WHERE pending_index MATCH ?1 AND rowid BETWEEN ?2 AND ?3",
];
