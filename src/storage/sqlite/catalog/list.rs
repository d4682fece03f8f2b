//! Lists of sessions: the newest first, from an index, without reading their messages.
//!
//! The indexes are ordered by `listed_at`, which may be a little older than `last_message_at`, the order of the list. So a
//! list reads on until no later row of the index can belong before those that it has.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::super::connection::Database;
use super::super::message;
use super::super::row::session::{LISTED_LATE, read_info};
use crate::catalog::{ListedSession, SessionFilter, SessionPage, SessionState};
use crate::error::{Error, Result};
use crate::id::shorten;
use crate::outcome::SessionInfo;
use crate::sql::{BackendError, BackendResult, Connection, Read, Row};
use crate::tree::Address;

/// The most sessions of one page.
const MAX_PAGE: usize = 1_000;

/// How many more rows than asked for are read first: the list may be in another order than the index.
const AHEAD: usize = 8;

/// How many rows are read at a time after that at most: twice as many each time.
const MAX_BATCH: usize = 256;

/// Among how many of a session's first numbers the first message of a user is looked for.
const MAX_BEFORE_PREVIEW: u32 = 64;

impl Database {
    /// Returns at most `limit` sessions that the filter shows, the one with the newest message first.
    pub(crate) fn list_sessions(
        &self,
        filter: &SessionFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<SessionPage> {
        filter.check()?;
        if limit == 0 {
            return Ok(SessionPage::default());
        }
        self.read(|conn| list(conn, filter, after, limit.min(MAX_PAGE)))
    }
}

/// A place in a list: the time of a session, and its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: i64,
    key: i64,
}

impl Place {
    /// Reads a place from the text that a page returned.
    fn of_text(text: &str) -> BackendResult<Self> {
        let place = text
            .split_once('.')
            .and_then(|(at, key)| Some(Self { at: at.parse().ok()?, key: key.parse().ok()? }));
        place.ok_or_else(|| unknown_place("place in a list of sessions", text))
    }
}

/// Returns the error of a place that no list returned.
pub(in super::super) fn unknown_place(what: &'static str, given: &str) -> BackendError {
    let (given, why) =
        (shorten(given).into_owned(), "it is not one that a list returned".to_owned());
    BackendError::Own(Error::InvalidValue { what, given, why })
}

/// Returns a page of `limit` sessions, at least one.
pub(super) fn list(
    conn: &Connection,
    filter: &SessionFilter,
    after: Option<&str>,
    limit: usize,
) -> BackendResult<SessionPage> {
    let after = after.map(Place::of_text).transpose()?;
    let until = filter.until.map(|until| until.timestamp_micros());
    let newest = after.map(|after| after.at).into_iter().chain(until).min();
    let since = filter.since.map_or(i64::MIN, |since| since.timestamp_micros());
    let (sql, value) = source(filter);
    // One more than asked for, which says whether there is another page.
    let mut found: BTreeMap<Reverse<Place>, (i64, SessionInfo)> = BTreeMap::new();
    let (mut from, mut count) = (newest.unwrap_or(i64::MAX), limit + AHEAD);
    'read: loop {
        let rows = rows(conn, sql, from, count, value.as_deref())?;
        let next = rows.last().filter(|_| rows.len() == count).map(|row| row.listed_at);
        for Listed { place, listed_at, info } in rows {
            // The greatest time that it or a later row can have.
            let newest = listed_at.saturating_add(LISTED_LATE);
            let last = found.last_key_value().filter(|_| found.len() > limit);
            if newest < since || last.is_some_and(|(last, _)| newest < last.0.at) {
                break 'read;
            }
            let is_outside = after.is_some_and(|after| place >= after)
                || last.is_some_and(|(last, _)| place < last.0);
            if is_outside || !filter.shows(&info) {
                continue;
            }
            if is_written_in(conn, place.key, filter.author.as_deref())? {
                found.insert(Reverse(place), (place.key, info));
                if found.len() > limit + 1 {
                    found.pop_last();
                }
            }
        }
        let Some(next) = next else { break };
        // Those of the same time come again, which changes nothing. If all are of one time, more are asked for.
        count = if next == from { count * 4 } else { (count * 2).min(MAX_BATCH) };
        from = next;
    }
    let is_last = found.len() <= limit;
    let mut page = SessionPage::default();
    let end = found.keys().nth(limit - 1).filter(|_| !is_last).map(|end| end.0);
    page.after = end.map(|end| format!("{}.{}", end.at, end.key));
    let shown: Vec<_> = found.into_values().take(limit).collect();
    let numbers = |key| (Address::new(key, 1), Address::new(key, MAX_BEFORE_PREVIEW));
    shown.iter().try_for_each(|(key, _)| conn.ask_ahead(FIRST_OF_USER, numbers(*key)))?;
    let firsts = shown.iter().map(|(key, _)| conn.first(FIRST_OF_USER, numbers(*key)));
    let firsts = firsts.collect::<BackendResult<Vec<Option<Address>>>>()?;
    firsts.iter().flatten().try_for_each(|address| conn.ask_ahead(message::AT, *address))?;
    for ((_, info), first) in shown.into_iter().zip(firsts) {
        let first = first.map(|address| message::stored(conn, address)).transpose()?;
        let first = first.and_then(|stored| stored.message);
        page.sessions.push(ListedSession::new(info, first.as_ref()));
    }
    Ok(page)
}

/// A row of `sessions!`.
struct Listed {
    place: Place,
    /// Where the index has it.
    listed_at: i64,
    info: SessionInfo,
}

/// Returns the newest rows up to a time.
fn rows(
    conn: &Connection,
    sql: &'static str,
    from: i64,
    count: usize,
    value: Option<&str>,
) -> BackendResult<Vec<Listed>> {
    let read = |row: &Row<'_>| {
        let (at, listed_at) = Read::read(row, 0)?;
        let info = read_info(row, 2)?;
        Ok(Listed { place: Place { at, key: info.1 }, listed_at, info: info.0 })
    };
    match value {
        Some(value) => conn.rows_with(sql, (from, count, value), read),
        None => conn.rows_with(sql, (from, count), read),
    }
}

/// Returns the statement that reads the fewest rows for a filter, and the value that it looks up.
fn source(filter: &SessionFilter) -> (&'static str, Option<Cow<'_, str>>) {
    if filter.state == SessionState::Trash {
        return (IN_TRASH, None);
    }
    if let Some(created_at) = filter.created_at {
        return (CREATED, Some(created_at.timestamp_micros().to_string().into()));
    }
    let (sql, value) = match filter {
        SessionFilter { parent_session: Some(parent), .. } => (FORKED, Some(parent.as_str())),
        SessionFilter { author: Some(author), .. } => (WRITTEN_IN, Some(author.as_str())),
        SessionFilter { tag: Some(tag), .. } => (TAGGED, Some(tag.as_str())),
        SessionFilter { owner: Some(owner), .. } => (OWNED, Some(owner.as_str())),
        SessionFilter { is_pinned: Some(true), .. } => (PINNED, None),
        SessionFilter { source: Some(source), .. } => (OF_SOURCE, Some(source.as_str())),
        SessionFilter { model: Some(model), .. } => (OF_MODEL, Some(model.as_str())),
        _ => (ALL, None),
    };
    (sql, value.map(Cow::Borrowed))
}

/// The sessions under a condition, newest first. `?1` is the greatest time, `?2` how many are read, `?3` a value to look up.
macro_rules! sessions {
    ($condition:literal) => {
        sessions!("session", $condition)
    };
    ($from:literal, $condition:literal) => {
        concat!(
            "SELECT coalesce(last_message_at, created_at), listed_at, ",
            info_columns!(),
            "
   FROM ",
            $from,
            "
  WHERE ",
            $condition,
            "
    AND listed_at <= ?1
  ORDER BY listed_at DESC
  LIMIT ?2"
        )
    };
}

pub(in super::super) const ALL: &str = sessions!("deleted_at IS NULL");

pub(in super::super) const OWNED: &str = sessions!("owner = ?3 AND deleted_at IS NULL");

pub(in super::super) const OF_SOURCE: &str = sessions!("source = ?3 AND deleted_at IS NULL");

pub(in super::super) const OF_MODEL: &str = sessions!("model = ?3 AND deleted_at IS NULL");

pub(in super::super) const FORKED: &str = sessions!("parent_session = ?3 AND deleted_at IS NULL");

pub(in super::super) const CREATED: &str =
    sessions!("created_at = CAST(?3 AS BIGINT) AND deleted_at IS NULL");

pub(in super::super) const PINNED: &str = sessions!("pinned = 1 AND deleted_at IS NULL");

pub(in super::super) const IN_TRASH: &str = sessions!("deleted_at IS NOT NULL");

pub(in super::super) const TAGGED: &str = sessions!(
    "session_tag CROSS JOIN session",
    "tag = ?3 AND session.key = session_tag.session AND deleted_at IS NULL"
);

pub(in super::super) const WRITTEN_IN: &str = sessions!(
    "(SELECT DISTINCT address >> 32 AS written_in
        FROM message INDEXED BY message_author
       WHERE author = ?3 AND author IS NOT NULL) AS written
  CROSS JOIN session",
    "session.key = written_in AND deleted_at IS NULL"
);

/// Returns whether a person wrote in a session; also if none is named.
fn is_written_in(conn: &Connection, key: i64, author: Option<&str>) -> BackendResult<bool> {
    let Some(author) = author else { return Ok(true) };
    let (first, last) = Address::range_of(key);
    conn.has(IS_WRITTEN_IN, (author, first, last))
}

pub(in super::super) const IS_WRITTEN_IN: &str = "SELECT 1
   FROM message INDEXED BY message_author
  WHERE author = ?1 AND author IS NOT NULL AND address BETWEEN ?2 AND ?3
  LIMIT 1";

/// The first message of a user, if it is among the first of the session.
pub(in super::super) const FIRST_OF_USER: &str = "SELECT address
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND role = 'user'
    AND id IS NOT NULL
  ORDER BY address
  LIMIT 1";
