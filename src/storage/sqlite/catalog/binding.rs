//! Bindings: which session an outside key points to.
//!
//! A resume first reads: usually the session is there and may be resumed. Otherwise it decides again inside a
//! transaction, so that of several processes that resume one key at once the first creates the session and the others
//! find it. A unique index allows one open binding of a key.

use chrono::{DateTime, Utc};

use super::super::connection::Database;
use super::super::row::session as row;
use super::super::{message, path};
use super::{create, set_details, unknown};
use crate::catalog::{Binding, BindingEnd, BindingFilter, ResumeRequest, Resumed};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::sql::{BackendError, BackendResult, Connection, Read, Row, corrupt, damaged, time};

/// The most bindings of one answer.
const MAX_PAGE: usize = 1_000;

/// How many bindings are read at a time at least: a filter may leave out most of them.
const MIN_BATCH: usize = 64;

/// The open binding of a key.
struct Open {
    number: i64,
    session: i64,
    bound_at: i64,
}

/// What a key points to.
pub(super) enum Found {
    Nothing,
    /// A session that may be resumed; its owner is still to be set if `is_unowned`.
    Session {
        id: SessionId,
        is_unowned: bool,
    },
    /// A session that must not be resumed.
    Former {
        number: i64,
        id: Option<SessionId>,
        why: BindingEnd,
    },
}

impl Database {
    /// Returns the session that a key points to; creates one if there is none, or if it must not be resumed.
    pub(crate) fn resume(&self, request: &ResumeRequest) -> Result<Resumed> {
        request.check()?;
        let found = self.read(|conn| find(conn, request))?;
        if let Found::Session { id, is_unowned: false } = found {
            return Ok(Resumed { session: id, is_new: false, former: None });
        }
        if self.is_read_only() {
            // Says that the store is read-only.
            return self.write(|_| {
                Ok(Resumed { session: request.new_id.clone(), is_new: true, former: None })
            });
        }
        self.write_short(|conn| {
            let former = match find(conn, request)? {
                Found::Session { id, is_unowned } => {
                    if is_unowned {
                        let session = row::find(conn, &id)?.ok_or_else(|| unknown(&id))?;
                        let owner = request.owner.clone();
                        let details = SessionDetails { owner, ..SessionDetails::default() };
                        row::set_details(conn, session.key, &details)?;
                    }
                    return Ok(Resumed { session: id, is_new: false, former: None });
                }
                Found::Nothing => None,
                Found::Former { number, id, why } => {
                    end(conn, number, why)?;
                    id.map(|id| (id, why))
                }
            };
            if row::find(conn, &request.new_id)?.is_some() {
                return Err(BackendError::Own(Error::SessionExists { id: request.new_id.clone() }));
            }
            let session = create(conn, &request.new_id)?;
            let owner = request.owner.clone().or_else(|| request.details.owner.clone());
            let details = SessionDetails { owner, ..request.details.clone() };
            set_details(conn, session.key, &details, self.config.max_message_bytes)?;
            bind(conn, &request.key, session.key)?;
            Ok(Resumed { session: request.new_id.clone(), is_new: true, former })
        })
    }

    /// Ends the binding of a key; returns the session that it pointed to.
    pub(crate) fn unbind(&self, key: &str) -> Result<Option<SessionId>> {
        self.write_short(|conn| {
            let Some(open) = open(conn, key)? else { return Ok(None) };
            end(conn, open.number, BindingEnd::Unbound)?;
            Ok(info_of(conn, open.session)?.map(|info| info.id))
        })
    }

    /// Returns the bindings that a filter shows, the newest first.
    pub(crate) fn bindings(
        &self,
        filter: &BindingFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Binding>> {
        self.read(|conn| {
            let limit = limit.min(MAX_PAGE);
            let count = limit.max(MIN_BATCH);
            let mut before = before.and_then(|at| i64::try_from(at).ok()).unwrap_or(i64::MAX);
            let mut bindings = Vec::new();
            loop {
                let found = match filter {
                    BindingFilter { key: Some(key), .. } => {
                        conn.rows_with(OF_KEY, (before, count, key), read)
                    }
                    BindingFilter { session: Some(id), .. } => {
                        conn.rows_with(OF_SESSION, (before, count, id), read)
                    }
                    _ => conn.rows_with(ALL, (before, count), read),
                }?;
                let is_last = found.len() < count;
                before = found.last().map_or(0, |last| i64::try_from(last.number).unwrap_or(0));
                bindings.extend(found.into_iter().filter(|binding| filter.shows(binding)));
                if is_last || bindings.len() >= limit {
                    bindings.truncate(limit);
                    return Ok(bindings);
                }
            }
        })
    }
}

pub(super) fn find(conn: &Connection, request: &ResumeRequest) -> BackendResult<Found> {
    let Some(open) = open(conn, &request.key)? else { return Ok(Found::Nothing) };
    let former = |id: Option<SessionId>, why| Found::Former { number: open.number, id, why };
    conn.ask_ahead(row::INFO_BY_KEY, open.session)?;
    conn.ask_ahead(row::BY_KEY, open.session)?;
    let info = match info_of(conn, open.session) {
        Ok(info) => info,
        Err(error) if error.is_corrupt() => return Ok(former(None, BindingEnd::Unreadable)),
        Err(error) => return Err(error),
    };
    let Some(info) = info else { return Ok(former(None, BindingEnd::Deleted)) };
    let bound_at = time(open.bound_at).map_err(damaged(named(open.number)))?;
    let last = info.last_message_at.unwrap_or(info.created_at).max(bound_at);
    let why = if info.deleted_at.is_some() {
        Some(BindingEnd::Deleted)
    } else if info.ended_at.is_some() {
        Some(BindingEnd::Ended)
    } else if request.owner.is_some() && info.owner.is_some() && request.owner != info.owner {
        Some(BindingEnd::OtherOwner)
    } else if request.is_expired(last, now()?) {
        Some(BindingEnd::Expired)
    } else if !is_readable(conn, open.session, &info.id)? {
        Some(BindingEnd::Unreadable)
    } else {
        None
    };
    let is_unowned = request.owner.is_some() && info.owner.is_none();
    Ok(match why {
        Some(why) => former(Some(info.id), why),
        None => Found::Session { id: info.id, is_unowned },
    })
}

fn now() -> BackendResult<DateTime<Utc>> {
    time(row::now())
}

/// Returns whether the path to the head can be planned and its last message read.
fn is_readable(conn: &Connection, key: i64, id: &SessionId) -> BackendResult<bool> {
    let read = || -> BackendResult<()> {
        let session = row::find_by_key(conn, key, id)?;
        let session = session.ok_or_else(|| corrupt("the session is gone"))?;
        if let Some(head) = session.head {
            conn.ask_ahead(message::AT, head)?;
            conn.ask_ahead(message::ID_AND_PARENT, head.before())?;
        }
        path::plan(conn, session.key, session.head, false)?;
        session.head.map_or(Ok(None), |head| message::read(conn, head)).map(drop)
    };
    match read() {
        Err(error) if error.is_corrupt() => Ok(false),
        Err(error) => Err(error),
        Ok(()) => Ok(true),
    }
}

fn open(conn: &Connection, key: &str) -> BackendResult<Option<Open>> {
    let open = conn.first(OPEN, key)?;
    Ok(open.map(|(number, session, bound_at)| Open { number, session, bound_at }))
}

pub(in super::super) const OPEN: &str = "SELECT number, session, bound_at
   FROM binding
  WHERE key = ?1
    AND ended_at IS NULL /*LOCK binding*/";

fn end(conn: &Connection, number: i64, why: BindingEnd) -> BackendResult<()> {
    conn.run(
        "UPDATE binding SET ended_at = ?2, end_cause = ?3 WHERE number = ?1",
        (number, row::now(), why.as_str()),
    )?;
    Ok(())
}

/// Binds the keys of a session to the one that continues it.
pub(in super::super) fn continue_in(conn: &Connection, from: i64, to: i64) -> BackendResult<()> {
    for (number, key) in conn.rows::<(i64, String)>(OPEN_OF_SESSION, from)? {
        end(conn, number, BindingEnd::Continued)?;
        bind(conn, &key, to)?;
    }
    Ok(())
}

pub(in super::super) const OPEN_OF_SESSION: &str = "SELECT number, key
   FROM binding
  WHERE session = ?1
    AND ended_at IS NULL";

fn bind(conn: &Connection, key: &str, session: i64) -> BackendResult<()> {
    conn.run(
        "INSERT INTO binding (key, session, bound_at) VALUES (?1, ?2, ?3)",
        (key, session, row::now()),
    )?;
    Ok(())
}

fn info_of(conn: &Connection, key: i64) -> BackendResult<Option<SessionInfo>> {
    row::info_by_key(conn, key)
}

/// Reads a row of `bindings!`.
pub(in super::super) fn read(row: &Row<'_>) -> BackendResult<Binding> {
    let number = i64::read(row, 0)?;
    let read = || {
        let (key, session): (_, SessionId) = Read::read(row, 1)?;
        let (bound_at, ended_at, cause): (_, _, Option<String>) = Read::read(row, 3)?;
        let end = match cause {
            None => None,
            Some(name) => Some(
                BindingEnd::from_name(&name)
                    .ok_or_else(|| corrupt(format!("the end cause {name:?} is unknown")))?,
            ),
        };
        let number = u64::try_from(number).unwrap_or_default();
        Ok(Binding { key, session, bound_at, ended_at, end, number })
    };
    read().map_err(damaged(named(number)))
}

fn named(number: i64) -> String {
    format!("binding {number}")
}

/// Bindings to sessions that are in the store, the newest first. `?1` is the number before which they are, `?2` how
/// many, `?3` a value to look up.
macro_rules! bindings {
    ($condition:literal) => {
        concat!(
            "SELECT number, binding.key, session.id, bound_at, binding.ended_at, end_cause
   FROM binding
  CROSS JOIN session
  WHERE session.key = binding.session
    AND number < ?1",
            $condition,
            "
  ORDER BY number DESC
  LIMIT ?2"
        )
    };
}

pub(in super::super) const OF_KEY: &str = bindings!("\n    AND binding.key = ?3");

pub(in super::super) const OF_SESSION: &str =
    bindings!("\n    AND binding.session = (SELECT key FROM session WHERE id = ?3)");

pub(in super::super) const ALL: &str = bindings!("");
