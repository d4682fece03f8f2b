//! The rows that say which session shows which transcript, and the details of these sessions.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, params};

use super::super::super::connection::Config;
use super::super::super::error::BackendResult;
use super::super::super::row::session::{self as session_row, SessionRow};
use super::super::super::usage;
use crate::id::SessionId;
use crate::outcome::SessionDetails;

/// How a transcript is projected.
#[derive(Debug)]
pub(super) struct Row {
    transcript: i64,
    session: i64,
    /// How many of its entries are projected.
    pub(super) entries: u64,
    /// The number of the next message of the session after the last projection, and the number of its changes: other ones
    /// mean that others have changed it.
    pub(super) next: u64,
    pub(super) changes: i64,
    pub(super) needs_repair: bool,
    pub(super) is_changed: bool,
    /// Whether its session is being erased.
    pub(super) is_closed: bool,
}

impl Row {
    pub(super) fn new(transcript: i64, session: i64) -> Self {
        Self {
            transcript,
            session,
            entries: 0,
            next: 1,
            changes: 0,
            needs_repair: false,
            is_changed: false,
            is_closed: false,
        }
    }

    pub(super) fn find(conn: &Connection, transcript: i64) -> BackendResult<Option<Self>> {
        let row = conn
            .prepare_cached(FIND)?
            .query_row([transcript], |row| {
                Ok(Self {
                    transcript,
                    session: row.get(0)?,
                    entries: row.get(1)?,
                    next: row.get(2)?,
                    changes: row.get(3)?,
                    needs_repair: row.get(4)?,
                    is_changed: row.get(5)?,
                    is_closed: row.get(6)?,
                })
            })
            .optional()?;
        Ok(row)
    }

    pub(super) fn store(&self, conn: &Connection) -> BackendResult<()> {
        conn.prepare_cached(STORE)?.execute(params![
            self.transcript,
            self.session,
            self.entries,
            self.next,
            self.changes,
            self.needs_repair,
            self.is_changed,
        ])?;
        Ok(())
    }

    /// Returns the session; `None` if it was erased.
    pub(super) fn session(
        &self,
        conn: &Connection,
    ) -> BackendResult<Option<(SessionId, SessionRow)>> {
        let Some(id) = id_of(conn, self.session)? else { return Ok(None) };
        Ok(session_row::find(conn, &id)?.map(|session| (id, session)))
    }

    /// Returns whether others have changed the session.
    pub(super) fn is_changed_in(&self, session: &SessionRow) -> bool {
        self.is_changed || (self.next, self.changes) != (session.next, session.changes)
    }
}

pub(in super::super::super) const FIND: &str =
    "SELECT session, entries, next, changes, needs_repair, is_changed, is_closed
   FROM projection
  WHERE transcript = ?1";

const STORE: &str = "INSERT OR REPLACE INTO projection
        (transcript, session, entries, next, changes, needs_repair, is_changed)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

fn id_of(conn: &Connection, session: i64) -> BackendResult<Option<SessionId>> {
    let id: Option<String> = conn
        .prepare_cached("SELECT id FROM session WHERE key = ?1")?
        .query_row([session], |row| row.get(0))
        .optional()?;
    Ok(id.map(SessionId::from))
}

/// Returns the session that shows a transcript.
pub(in super::super::super) fn session_of(
    conn: &Connection,
    transcript: i64,
) -> BackendResult<Option<(i64, SessionId)>> {
    let Some(row) = Row::find(conn, transcript)? else { return Ok(None) };
    Ok(id_of(conn, row.session)?.map(|id| (row.session, id)))
}

/// Returns the transcript that a session shows.
pub(in super::super::super) fn of_session(
    conn: &Connection,
    session: i64,
) -> BackendResult<Option<i64>> {
    let transcript =
        conn.prepare_cached(OF_SESSION)?.query_row([session], |row| row.get(0)).optional()?;
    Ok(transcript)
}

pub(in super::super::super) const OF_SESSION: &str =
    "SELECT transcript FROM projection WHERE session = ?1";

/// Ends the projection of a transcript that is being erased.
pub(in super::super::super) fn close(conn: &Connection, transcript: i64) -> BackendResult<()> {
    conn.prepare_cached("UPDATE projection SET is_closed = 1 WHERE transcript = ?1")?
        .execute([transcript])?;
    Ok(())
}

/// The same, by the session.
pub(in super::super::super) fn close_of_session(
    conn: &Connection,
    session: i64,
) -> BackendResult<()> {
    conn.prepare_cached("UPDATE projection SET is_closed = 1 WHERE session = ?1")?
        .execute([session])?;
    Ok(())
}

/// Deletes the row of a transcript.
pub(in super::super::super) fn forget(conn: &Connection, transcript: i64) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM projection WHERE transcript = ?1")?.execute([transcript])?;
    Ok(())
}

/// Replaces the details that the entries before said by those that they say now. What a program has set stays.
pub(super) fn set_details(
    conn: &Connection,
    session: i64,
    before: &SessionDetails,
    now: &SessionDetails,
    config: &Config,
) -> BackendResult<()> {
    let (before, now) = (storable(before, config), storable(now, config));
    if before == now {
        return Ok(());
    }
    let json =
        |details: &SessionDetails| details.metadata.as_ref().map(|json| json.as_str().to_owned());
    let time = |details: &SessionDetails| details.created_at.map(|time| time.timestamp_micros());
    conn.prepare_cached(SET_DETAILS)?.execute(params![
        session,
        before.name,
        now.name,
        before.model,
        now.model,
        json(&before),
        json(&now),
        time(&before),
        time(&now),
    ])?;
    usage::follow(conn, session)
}

const SET_DETAILS: &str = "UPDATE session
    SET name = iif(name IS ?2, ?3, name),
        model = iif(model IS ?4, ?5, model),
        metadata = iif(metadata IS ?6, ?7, metadata),
        created_at = iif(?8 IS NULL OR created_at IS ?8, coalesce(?9, created_at), created_at)
  WHERE key = ?1";

/// Returns the details without those that a session cannot have.
fn storable(details: &SessionDetails, config: &Config) -> SessionDetails {
    let name = |name: &String| {
        SessionDetails { name: Some(name.clone()), ..SessionDetails::default() }.check().is_ok()
    };
    let model = |model: &String| {
        SessionDetails { model: Some(model.clone()), ..SessionDetails::default() }.check().is_ok()
    };
    SessionDetails {
        name: details.name.clone().filter(name),
        model: details.model.clone().filter(model),
        metadata: details
            .metadata
            .clone()
            .filter(|json| json.as_str().len() <= config.max_message_bytes),
        created_at: details.created_at,
        ..SessionDetails::default()
    }
}

/// Sets the time of the last write to that of the newest message, if that is old: the entries were written then.
pub(super) fn set_updated_at(
    conn: &Connection,
    session: i64,
    newest: DateTime<Utc>,
) -> BackendResult<()> {
    if newest.timestamp_micros() < session_row::now() - JUST_NOW {
        conn.prepare_cached("UPDATE session SET updated_at = ?2 WHERE key = ?1")?
            .execute([session, newest.timestamp_micros()])?;
    }
    Ok(())
}

/// An agent appends its entries within this time, in microseconds.
const JUST_NOW: i64 = 60_000_000;

/// Takes a session out of the trash.
pub(super) fn restore(conn: &Connection, session: i64) -> BackendResult<()> {
    conn.prepare_cached("UPDATE session SET deleted_at = NULL WHERE key = ?1")?
        .execute([session])?;
    Ok(())
}

/// Gives a session the owner of its transcript, if it has none.
pub(super) fn set_owner(conn: &Connection, session: i64, owner: Option<&str>) -> BackendResult<()> {
    let Some(owner) = owner else { return Ok(()) };
    let changed = conn
        .prepare_cached("UPDATE session SET owner = ?2 WHERE key = ?1 AND owner IS NULL")?
        .execute(params![session, owner])?;
    if changed > 0 {
        usage::follow(conn, session)?;
    }
    Ok(())
}
