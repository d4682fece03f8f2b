//! Finding matches: the statements that read the index.
//!
//! FTS5 lists matches in the order of their addresses and stops at a limit. It reaches a range by skipping in its lists, so
//! the newest matches of a range cost little however many there are.
//!
//! Message rows are read only if a filter needs them, and only of matches that the
//! [`search_filter`](super::super::search_filter) lets pass.
//!
//! Copies that forks made of a message count as one match if their content is the same: the statements return the
//! original or, if that was deleted, its newest copy.

use std::rc::Rc;

use rusqlite::{CachedStatement, Connection, params};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::super::search_filter::{Reader, Said, Wanted};
use super::hits;
use super::only::{self, Only};
use super::range::Range;
use crate::search::analysis::Analysis;
use crate::search::spelling::Spelling;
use crate::search::{Columns, Filters, Matched, exact};
use crate::tree::Address;

/// The filters as parameters of the statements.
#[derive(Clone)]
pub(super) struct Bounds {
    pub(super) after: Option<i64>,
    pub(super) before: Option<i64>,
    /// Empty for any role.
    roles: Vec<String>,
    /// What the filters want of a message; `None` for any role and time.
    pub(super) wanted: Option<Wanted>,
    /// The keys of the sessions within which copies count as one, as a JSON array; `None` for all.
    pub(super) sessions: Option<String>,
    /// What the texts of these columns must contain.
    exact: Vec<String>,
    columns: Columns,
    /// Whether hidden messages are left out, and the range has any.
    omits_hidden: bool,
    /// The messages of an author or with a tag, if only these are searched.
    pub(super) only: Option<Rc<Only>>,
    /// The signs that the words must have.
    spelling: Option<Rc<Spelling>>,
    /// Whether the store has any copy.
    pub(super) has_copies: bool,
    /// Whether every match is a hit, so that no message row has to be read.
    pub(super) is_open: bool,
}

impl Bounds {
    pub(super) fn of(
        conn: &Connection,
        (filters, omits_hidden): (&Filters, bool),
        range: &Range,
    ) -> BackendResult<Self> {
        let sessions = match range {
            Range::Store { .. } => None,
            // No session contains a message twice.
            Range::Path(_) => Some(&[][..]),
            Range::Sessions(keys) => Some(if keys.len() > 1 { keys.as_slice() } else { &[] }),
        };
        let has_copies: bool = conn.prepare_cached(HAS_COPIES)?.query_row([], |row| row.get(0))?;
        let has_one_of_each = sessions.is_some_and(<[i64]>::is_empty) || !has_copies;
        let after = filters.after.map(|time| time.timestamp_micros());
        let before = filters.before.map(|time| time.timestamp_micros());
        let wanted = Wanted::of((after, before), &filters.roles);
        Ok(Self {
            after,
            before,
            roles: filters.roles.clone(),
            exact: filters.exact.clone(),
            columns: filters.columns,
            spelling: None,
            sessions: sessions.map(|keys| serde_json::Value::from(keys).to_string()),
            omits_hidden: omits_hidden && has_hidden(conn, range)?,
            only: Only::of(conn, filters, range)?.map(Rc::new),
            has_copies,
            is_open: has_one_of_each && wanted.is_none() && filters.exact.is_empty(),
            wanted,
        })
    }

    /// Returns the same, with the signs that the words of a query must have.
    pub(super) fn with_signs(&self, reading: &Analysis) -> Self {
        let spelling = Spelling::of(reading).map(Rc::new);
        Self { is_open: self.is_open && spelling.is_none(), spelling, ..self.clone() }
    }

    /// Returns whether the texts of matches are read.
    fn reads_texts(&self) -> bool {
        !self.exact.is_empty() || self.spelling.is_some()
    }

    /// Returns whether this role passes the filter. Filters name few roles, and comparing them here is faster than in
    /// SQL.
    pub(super) fn holds_role(&self, role: &str) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|wanted| wanted == role)
    }

    /// Returns what tells hidden messages from those that the search may find.
    pub(super) fn shown<'c>(&self, conn: &'c Connection) -> BackendResult<Shown<'c>> {
        let is_hidden = if self.omits_hidden { Some(conn.prepare_cached(HIDDEN)?) } else { None };
        let only = self.only.as_ref().map(|only| only.reader(conn)).transpose()?;
        Ok(Shown { is_hidden, only })
    }

    /// Returns the authors and the tags of the filters, as the statements take them.
    pub(super) fn authors_and_tags(&self) -> (Option<&str>, Option<&str>) {
        self.only
            .as_ref()
            .map_or((None, None), |only| (only.authors.as_deref(), only.tags.as_deref()))
    }

    /// Returns whether the text of a message that has all words, or any, has the exact runs of characters and the signs.
    pub(super) fn holds_text(
        &self,
        conn: &Connection,
        address: Address,
        matched: Matched,
    ) -> BackendResult<bool> {
        if !self.reads_texts() {
            return Ok(true);
        }
        let mut statement = conn.prepare_cached(PARTS)?;
        let held = |row: &rusqlite::Row<'_>| -> rusqlite::Result<bool> {
            let parts = row.get_ref(0)?.as_str().unwrap_or_default();
            Ok(self.holds_runs(parts) && self.holds_signs(parts, matched))
        };
        Ok(statement.query_row([address], held)?)
    }

    fn holds_runs(&self, parts: &str) -> bool {
        self.exact.is_empty() || exact::holds(&hits::text(parts, self.columns), &self.exact)
    }

    fn holds_signs(&self, parts: &str, matched: Matched) -> bool {
        let holds =
            |spelling: &Rc<Spelling>| spelling.holds(&hits::text(parts, spelling.columns), matched);
        self.spelling.as_ref().is_none_or(holds)
    }
}

/// Which messages a search may find: all, or those that are not hidden, or of an author, or with a tag.
///
/// The others count as out of scope, even where filters do not apply: a search must not learn a word from a hidden message,
/// and the few messages of an author must not be cut off behind those of others.
pub(super) struct Shown<'c> {
    /// `None` if all are shown.
    is_hidden: Option<CachedStatement<'c>>,
    only: Option<only::Reader<'c>>,
}

impl Shown<'_> {
    pub(super) fn holds(&mut self, address: Address) -> BackendResult<bool> {
        if let Some(only) = &mut self.only
            && !only.holds(address)?
        {
            return Ok(false);
        }
        match &mut self.is_hidden {
            Some(is_hidden) => Ok(!is_hidden.exists([address])?),
            None => Ok(true),
        }
    }
}

fn has_hidden(conn: &Connection, range: &Range) -> BackendResult<bool> {
    let mut statement = conn.prepare_cached(HAS_HIDDEN)?;
    for (low, high) in range.ranges() {
        if statement.exists([low, high])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// In the index alone: in the row the flag lies behind the content.
pub(super) const HIDDEN: &str =
    "SELECT 1 FROM message INDEXED BY hidden WHERE hidden = 1 AND address = ?1";

pub(super) const HAS_HIDDEN: &str =
    "SELECT 1 FROM message INDEXED BY hidden WHERE hidden = 1 AND address BETWEEN ?1 AND ?2";

pub(super) const PARTS: &str = "SELECT parts FROM message WHERE address = ?1";

pub(super) const HAS_COPIES: &str =
    "SELECT EXISTS (SELECT 1 FROM message WHERE origin IS NOT NULL)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// The index of the store.
    Stored,
    /// The temporary index of pending messages.
    Pending,
}

/// The clauses for filters and copies. `?3` and `?4` are the times, `?5` the sessions, `?8` the authors, `?9` the tags.
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
                           AND (?8 IS NULL OR other.author IN (SELECT value FROM json_each(?8)))
                           AND (?9 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?9) AS wanted
                                                           WHERE NOT EXISTS (SELECT 1 FROM message_tag
                                                                              WHERE address = other.address
                                                                                AND tag = wanted.value)))
                           AND other.role = message.role
                           AND other.parts = message.parts)
        AND NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.origin = message.origin
                           AND other.address > message.address
                           AND (?5 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?5)))
                           AND other.address >> 32 NOT IN (SELECT key FROM session WHERE deleted_at IS NOT NULL)
                           AND (?8 IS NULL OR other.author IN (SELECT value FROM json_each(?8)))
                           AND (?9 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?9) AS wanted
                                                           WHERE NOT EXISTS (SELECT 1 FROM message_tag
                                                                              WHERE address = other.address
                                                                                AND tag = wanted.value)))
                           AND other.role = message.role
                           AND other.parts = message.parts))"
    };
}
pub(super) use passes;

/// The newest matches that pass the filters.
macro_rules! passing {
    ($table:literal) => {
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
            ".rowid DESC
  LIMIT ?2"
        )
    };
}

/// The newest matches.
macro_rules! matching {
    ($table:literal) => {
        concat!(
            "SELECT rowid
   FROM ",
            $table,
            "
  WHERE ",
            $table,
            " MATCH ?1
    AND rowid BETWEEN ?3 AND ?4
  ORDER BY rowid DESC
  LIMIT ?2"
        )
    };
}

/// For either index.
pub(super) const PASSING: [&str; 2] = [passing!("search"), passing!("pending_index")];
pub(super) const MATCHING: [&str; 2] = [matching!("search"), matching!("pending_index")];

/// What a lookup lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// The matches of all words, or of any, that pass the filters.
    Passing(Matched),
    All,
}

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
    /// Adds the newest matches in a range, newest first, at most `limit`. After an error those found before are there.
    pub(super) fn newest(
        &self,
        list: List,
        range: (Address, Address),
        limit: usize,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        let Some(only) = &self.bounds.only else {
            return self.newest_in(list, range, limit, found);
        };
        let until = found.len().saturating_add(limit);
        for range in only.ranges(range) {
            if found.len() >= until {
                break;
            }
            self.newest_in(list, range, until - found.len(), found)?;
        }
        Ok(())
    }

    fn newest_in(
        &self,
        list: List,
        (low, high): (Address, Address),
        limit: usize,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        let Bounds { after, before, roles, wanted, sessions, is_open, .. } = self.bounds;
        let passing = match list {
            List::Passing(matched) if !is_open => Some(matched),
            _ => None,
        };
        let is_filtered = passing.is_some();
        // The temporary index is small.
        if let (Some(matched), Index::Stored, Some(wanted)) = (passing, self.index, wanted) {
            return self.newest_wanted((wanted, matched), (low, high), limit, found);
        }
        let has_roles = is_filtered && !roles.is_empty();
        let of_texts = passing.filter(|_| self.bounds.reads_texts());
        // These are compared outside the statement, so the statement cannot count by them.
        let is_compared = has_roles
            || of_texts.is_some()
            || self.bounds.omits_hidden
            || self.bounds.only.is_some();
        let is_counted = !is_compared && self.range.is_whole();
        let max = if is_counted { i64::try_from(limit).unwrap_or(-1) } else { -1 };
        let sql = if is_filtered { PASSING } else { MATCHING }[self.index as usize];
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = match is_filtered {
            true => {
                let (authors, tags) = self.bounds.authors_and_tags();
                let values = params![
                    self.expression,
                    max,
                    after,
                    before,
                    sessions,
                    low,
                    high,
                    authors,
                    tags
                ];
                statement.query(values)?
            }
            false => statement.query(params![self.expression, max, low, high])?,
        };
        let mut shown = self.bounds.shown(self.conn)?;
        let until = found.len().saturating_add(limit);
        while found.len() < until
            && let Some(row) = rows.next()?
        {
            self.watch.check()?;
            let address: Address = row.get(0)?;
            let has_role = !has_roles || self.bounds.holds_role(row.get_ref(1)?.as_str()?);
            if !has_role || !self.range.holds(address) || !shown.holds(address)? {
                continue;
            }
            let holds_text = match of_texts {
                Some(matched) => self.bounds.holds_text(self.conn, address, matched)?,
                None => true,
            };
            if holds_text {
                found.push(address);
            }
        }
        Ok(())
    }
}

impl Lookup<'_> {
    /// Does the same as [`newest`](Self::newest) for filters of role and time: reads the rows of those matches only that may
    /// pass.
    fn newest_wanted(
        &self,
        (wanted, matched): (&Wanted, Matched),
        (low, mut high): (Address, Address),
        limit: usize,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        let mut reader = Reader::new(self.conn, wanted);
        let mut statement = self.conn.prepare_cached(MATCHING[Index::Stored as usize])?;
        let until = found.len().saturating_add(limit);
        let (mut may_pass, mut batch) = (Vec::new(), MIN_BATCH);
        while let Some(from) = reader.last_of(low, high)? {
            let mut rows = statement.query(params![self.expression, -1, low, from])?;
            let mut in_vain = 0;
            let reached = loop {
                let Some(row) = rows.next()? else { break None };
                self.watch.check()?;
                let address: Address = row.get(0)?;
                match reader.says(address)? {
                    Said::May if self.range.holds(address) => may_pass.push(address),
                    Said::WholeStretchMayNot => in_vain += 1,
                    _ => {}
                }
                if may_pass.len() >= batch.min(until - found.len()) {
                    self.check_rows(&mut may_pass, matched, found)?;
                    batch = MAX_BATCH.min(batch * 2);
                    if found.len() >= until {
                        return Ok(());
                    }
                }
                if in_vain >= MAX_IN_VAIN {
                    in_vain = 0;
                    // A new start costs as much as reading on for a while.
                    match reader.last_of(low, address)? {
                        Some(next) if address.raw() - next.raw() < MIN_GAP => {}
                        _ => break Some(address),
                    }
                }
            };
            let Some(reached) = reached else { break };
            high = reached.before();
        }
        self.check_rows(&mut may_pass, matched, found)
    }

    /// Moves the messages that pass the filters.
    fn check_rows(
        &self,
        may_pass: &mut Vec<Address>,
        matched: Matched,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        found.extend(passing(self.conn, (may_pass, matched), self.bounds, self.watch)?);
        may_pass.clear();
        Ok(())
    }
}

/// How many messages that may pass are looked up at a time, first and later.
const MIN_BATCH: usize = 32;
const MAX_BATCH: usize = 1_024;
/// After so many matches in stretches of other times, about 0.1 ms, the next stretch of a wanted time is looked up.
const MAX_IN_VAIN: usize = 512;
/// If it is nearer than this, its matches are reached without a new start: sixteen stretches.
const MIN_GAP: i64 = 4_096;

/// Returns which of the messages may pass the filters, without reading their rows.
pub(super) fn which_may_pass(
    conn: &Connection,
    found: Vec<Address>,
    (bounds, indexes): (&Bounds, &[Index]),
) -> BackendResult<Vec<Address>> {
    match &bounds.wanted {
        // Those in the temporary index have no entries.
        Some(wanted) if indexes == [Index::Stored] => {
            let may = Reader::new(conn, wanted).filter(&found)?;
            Ok(found.into_iter().filter(|address| may.contains(address)).collect())
        }
        _ => Ok(found),
    }
}

/// Returns which of the messages, found for all words or for any, pass the filters, in their order.
pub(super) fn passing(
    conn: &Connection,
    (found, matched): (&[Address], Matched),
    bounds: &Bounds,
    watch: &Watch,
) -> BackendResult<Vec<Address>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let addresses: Vec<i64> = found.iter().map(|address| address.raw()).collect();
    let addresses = serde_json::Value::from(addresses).to_string();
    let Bounds { after, before, sessions, .. } = bounds;
    let mut statement = conn.prepare_cached(WHICH)?;
    let (authors, tags) = bounds.authors_and_tags();
    let none = None::<i64>;
    let values = params![addresses, none, after, before, sessions, none, none, authors, tags];
    let mut rows = statement.query(values)?;
    let mut shown = bounds.shown(conn)?;
    let mut passed = Vec::new();
    while let Some(row) = rows.next()? {
        watch.check()?;
        let address = row.get(0)?;
        if bounds.holds_role(row.get_ref(1)?.as_str()?)
            && shown.holds(address)?
            && bounds.holds_text(conn, address, matched)?
        {
            passed.push(address);
        }
    }
    Ok(passed)
}

/// The cross join keeps the order of the list.
pub(super) const WHICH: &str = concat!(
    "SELECT message.address, message.role
   FROM json_each(?1) AS found CROSS JOIN message ON message.address = found.value
  WHERE ",
    passes!()
);

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
    let (authors, tags) = bounds.authors_and_tags();
    let none = None::<i64>;
    let values = params![addresses, none, after, before, sessions, none, none, authors, tags];
    let mut rows = statement.query(values)?;
    let mut shown = bounds.shown(conn)?;
    while let Some(row) = rows.next()? {
        watch.check()?;
        let address = row.get(0)?;
        let role = row.get_ref(1)?.as_str()?;
        let parts = row.get_ref(2)?.as_str().unwrap_or_default();
        if bounds.holds_role(role) && shown.holds(address)? && bounds.holds_runs(parts) {
            take(Matching { address, role, parts, created_at: row.get(3)? })?;
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
