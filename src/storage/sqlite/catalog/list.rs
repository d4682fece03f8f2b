//! Lists of sessions: the newest first, from an index, without reading their messages.
//!
//! The indexes are ordered by `listed_at`, which may be a little older than `last_message_at`, the order of the list. So a
//! list reads on until no later row of the index can belong before those that it has.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};

use super::super::connection::Database;
use super::super::error::{BackendError, BackendResult};
use super::super::message;
use super::super::row::session::{LISTED_LATE, read_info};
use crate::catalog::{ListedSession, SessionFilter, SessionPage, SessionState};
use crate::error::{Error, Result};
use crate::id::shorten;
use crate::outcome::SessionInfo;
use crate::tree::Address;

/// The most sessions of one page.
const MAX_PAGE: usize = 1_000;

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
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params![newest.unwrap_or(i64::MAX), value])?;
    // One more than asked for, which says whether there is another page.
    let mut found: BTreeMap<Reverse<Place>, (i64, SessionInfo)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (key, at, newest_possible) = place(row)?;
        let last = found.last_key_value().filter(|_| found.len() > limit);
        if newest_possible < since || last.is_some_and(|(last, _)| newest_possible < last.0.at) {
            break;
        }
        let cursor = Place { at, key };
        // Its details need not be read if it is on an earlier page or after this one.
        if after.is_some_and(|after| cursor >= after) || last.is_some_and(|last| cursor < last.0.0)
        {
            continue;
        }
        let info = read_info(row)?;
        if filter.shows(&info) && is_written_in(conn, key, filter.author.as_deref())? {
            found.insert(Reverse(cursor), (key, info));
            if found.len() > limit + 1 {
                found.pop_last();
            }
        }
    }
    let is_last = found.len() <= limit;
    let mut page = SessionPage::default();
    let end = found.keys().nth(limit - 1).filter(|_| !is_last).map(|end| end.0);
    page.after = end.map(|end| format!("{}.{}", end.at, end.key));
    for (key, info) in found.into_values().take(limit) {
        let first = first_of_user(conn, key)?;
        page.sessions.push(ListedSession::new(info, first.as_ref()));
    }
    Ok(page)
}

/// Returns the key of a row, its time in the list, and the greatest time that it or a later row can have.
fn place(row: &Row<'_>) -> BackendResult<(i64, i64, i64)> {
    let listed_at: Option<i64> = row.get("ordered_by")?;
    let newest = listed_at.map_or(i64::MAX, |at| at.saturating_add(LISTED_LATE));
    Ok((row.get(1)?, row.get("listed_as")?, newest))
}

/// Returns the statement that reads the fewest rows for a filter, and the value that it looks up.
fn source(filter: &SessionFilter) -> (&'static str, Option<&str>) {
    if filter.state == SessionState::Trash {
        return (IN_TRASH, None);
    }
    match filter {
        SessionFilter { parent_session: Some(parent), .. } => (FORKED, Some(parent.as_str())),
        SessionFilter { author: Some(author), .. } => (WRITTEN_IN, Some(author)),
        SessionFilter { tag: Some(tag), .. } => (TAGGED, Some(tag)),
        SessionFilter { owner: Some(owner), .. } => (OWNED, Some(owner)),
        SessionFilter { is_pinned: Some(true), .. } => (PINNED, None),
        SessionFilter { source: Some(source), .. } => (OF_SOURCE, Some(source)),
        SessionFilter { model: Some(model), .. } => (OF_MODEL, Some(model)),
        _ => (ALL, None),
    }
}

/// The sessions under a condition, newest first if an index serves that order. `?1` is the greatest time, `?2` a value to
/// look up; the statements that need none compare it with itself, so that all take two.
macro_rules! sessions {
    ($condition:literal) => {
        sessions!("session", $condition, "listed_at", "\n  ORDER BY listed_at DESC")
    };
    ($from:literal, $condition:literal, $ordered_by:literal, $order:literal) => {
        concat!(
            "SELECT ",
            info_columns!(),
            ", coalesce(last_message_at, created_at) AS listed_as, ",
            $ordered_by,
            " AS ordered_by
   FROM ",
            $from,
            "
  WHERE ",
            $condition,
            "
    AND listed_at <= ?1
    AND ?2 IS ?2",
            $order
        )
    };
}

pub(in super::super) const ALL: &str = sessions!("deleted_at IS NULL");

pub(in super::super) const OWNED: &str = sessions!("owner = ?2 AND deleted_at IS NULL");

pub(in super::super) const OF_SOURCE: &str = sessions!("source = ?2 AND deleted_at IS NULL");

pub(in super::super) const OF_MODEL: &str = sessions!("model = ?2 AND deleted_at IS NULL");

pub(in super::super) const FORKED: &str = sessions!("parent_session = ?2 AND deleted_at IS NULL");

pub(in super::super) const PINNED: &str = sessions!("pinned = 1 AND deleted_at IS NULL");

pub(in super::super) const IN_TRASH: &str = sessions!("deleted_at IS NOT NULL");

pub(in super::super) const TAGGED: &str = sessions!(
    "session_tag CROSS JOIN session ON session.key = session_tag.session",
    "tag = ?2 AND deleted_at IS NULL",
    "NULL",
    ""
);

pub(in super::super) const WRITTEN_IN: &str = sessions!(
    "(SELECT DISTINCT address >> 32 AS written_in
        FROM message INDEXED BY message_author
       WHERE author = ?2 AND author IS NOT NULL)
    CROSS JOIN session ON session.key = written_in",
    "deleted_at IS NULL",
    "NULL",
    ""
);

/// Returns whether a person wrote in a session; also if none is named.
fn is_written_in(conn: &Connection, key: i64, author: Option<&str>) -> BackendResult<bool> {
    let Some(author) = author else { return Ok(true) };
    let (first, last) = Address::range_of(key);
    Ok(conn.prepare_cached(IS_WRITTEN_IN)?.exists(params![author, first, last])?)
}

pub(in super::super) const IS_WRITTEN_IN: &str = "SELECT 1
   FROM message INDEXED BY message_author
  WHERE author = ?1 AND author IS NOT NULL AND address BETWEEN ?2 AND ?3";

/// Returns the first message of a user, if it is among the first of the session.
fn first_of_user(conn: &Connection, key: i64) -> BackendResult<Option<crate::message::Message>> {
    let (first, last) = (Address::new(key, 1), Address::new(key, MAX_BEFORE_PREVIEW));
    let mut statement = conn.prepare_cached(FIRST_OF_USER)?;
    let mut rows = statement.query([first, last])?;
    match rows.next()? {
        Some(row) => message::read(conn, row.get(0)?),
        None => Ok(None),
    }
}

pub(in super::super) const FIRST_OF_USER: &str = "SELECT address
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND role = 'user'
    AND id IS NOT NULL
  ORDER BY address
  LIMIT 1";
