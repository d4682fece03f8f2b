//! The sessions of a store: finding, making, listing, naming, removing them.

use chrono::Utc;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::connection::Database;
use super::context::{elision, frozen_prompt, lifecycle};
use super::fault::{Fault, Outcome, damaged};
use super::index;
use super::message::time;
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::message::Json;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::tree::{Address, MAX_SESSIONS};

/// What the verbs need of a session's row.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionRow {
    pub(super) key: i64,
    /// The number the next message gets.
    pub(super) next: u64,
    pub(super) head: Option<Address>,
    pub(super) head_position: i64,
    /// The tokens that a model sees on the path to the head, if they are counted ..
    pub(super) visible_tokens: Option<u64>,
    /// .. and the key of what counted them.
    pub(super) counter: i64,
    /// How often anything but an append at the head changed them.
    pub(super) changes: i64,
}

impl SessionRow {
    /// Notes how many tokens a model sees at the head now, if that is known.
    pub(super) fn note_count(&mut self, tokens: Option<u64>) {
        // What was damaged may be more than a row can hold.
        match tokens.filter(|tokens| i64::try_from(*tokens).is_ok()) {
            Some(tokens) => self.visible_tokens = Some(tokens),
            None => self.lose_count(),
        }
    }

    /// Notes that what a model sees at the head is no longer what was counted.
    pub(super) fn lose_count(&mut self) {
        self.visible_tokens = None;
        self.changes = self.changes.wrapping_add(1);
    }
}

/// Returns the session of this id, if it is there.
pub(super) fn find(conn: &Connection, id: &SessionId) -> Outcome<Option<SessionRow>> {
    let row = conn
        .prepare_cached(BY_ID)?
        .query_row([id.as_str()], |row| {
            Ok(SessionRow {
                key: row.get(0)?,
                next: row.get(1)?,
                head: row.get(2)?,
                head_position: row.get(3)?,
                // Only a figure: one that is damaged is counted anew.
                visible_tokens: row.get::<_, Option<i64>>(4)?.and_then(|it| u64::try_from(it).ok()),
                counter: row.get(5)?,
                changes: row.get(6)?,
            })
        })
        .optional();
    row.map_err(|error| damaged(format_args!("session {id:?}"))(error.into()))
}

pub(super) const BY_ID: &str =
    "SELECT key, next, head, head_position, visible_tokens, counter, changes
   FROM session
  WHERE id = ?1";

/// Returns the session of this id, which comes into being if it is not there.
pub(super) fn find_or_make(conn: &Connection, id: &SessionId) -> Outcome<SessionRow> {
    if let Some(row) = find(conn, id)? {
        return Ok(row);
    }
    make(conn, id)
}

/// Makes a session; its id must be free.
pub(super) fn make(conn: &Connection, id: &SessionId) -> Outcome<SessionRow> {
    conn.prepare_cached(
        "INSERT INTO session (id, visible_tokens, created_at, updated_at) VALUES (?1, 0, ?2, ?2)",
    )?
    .execute(params![id.as_str(), now()])?;
    let key = conn.last_insert_rowid();
    if key > MAX_SESSIONS {
        return Err(Fault::Own(Error::StoreFull { max: MAX_SESSIONS }));
    }
    Ok(SessionRow {
        key,
        next: 1,
        head: None,
        head_position: 0,
        visible_tokens: Some(0),
        counter: 0,
        changes: 0,
    })
}

/// Stores what the verbs changed of a session's row, and that it was written to.
pub(super) fn store(conn: &Connection, row: &SessionRow) -> Outcome<()> {
    conn.prepare_cached(
        "UPDATE session
            SET next = ?2, head = ?3, head_position = ?4, visible_tokens = ?5, counter = ?6,
                changes = ?7, updated_at = max(updated_at, ?8)
          WHERE key = ?1",
    )?
    .execute(params![
        row.key,
        row.next,
        row.head,
        row.head_position,
        row.visible_tokens,
        row.counter,
        row.changes,
        now()
    ])?;
    Ok(())
}

/// Notes that a session was written to in a way that changes what a model sees.
pub(super) fn touch_view(conn: &Connection, key: i64) -> Outcome<()> {
    conn.prepare_cached(
        "UPDATE session
            SET visible_tokens = NULL, changes = changes + 1, updated_at = max(updated_at, ?2)
          WHERE key = ?1",
    )?
    .execute(params![key, now()])?;
    Ok(())
}

/// Notes that a session was written to.
pub(super) fn touch(conn: &Connection, key: i64) -> Outcome<()> {
    conn.prepare_cached("UPDATE session SET updated_at = max(updated_at, ?2) WHERE key = ?1")?
        .execute(params![key, now()])?;
    Ok(())
}

/// Sets the details that are given.
pub(super) fn set_details(conn: &Connection, key: i64, details: &SessionDetails) -> Outcome<()> {
    conn.prepare_cached(
        "UPDATE session
            SET name = coalesce(?2, name),
                parent_session = coalesce(?3, parent_session),
                fork_point = coalesce(?4, fork_point),
                model = coalesce(?5, model),
                source = coalesce(?6, source),
                metadata = coalesce(?7, metadata),
                end_reason = coalesce(?8, end_reason),
                created_at = coalesce(?9, created_at),
                updated_at = max(updated_at, ?10)
          WHERE key = ?1",
    )?
    .execute(params![
        key,
        details.name,
        details.parent_session.as_ref().map(SessionId::as_str),
        details.fork_point.as_ref().map(MessageId::as_str),
        details.model,
        details.source,
        details.metadata.as_ref().map(Json::as_str),
        details.end_reason,
        details.created_at.map(|time| time.timestamp_micros()),
        now(),
    ])?;
    Ok(())
}

/// Returns what is known of a session.
pub(super) fn info(conn: &Connection, id: &SessionId) -> Outcome<Option<SessionInfo>> {
    let mut statement = conn.prepare_cached(
        "SELECT id, name, parent_session, fork_point, model, source, metadata, end_reason,
                created_at, updated_at
           FROM session
          WHERE id = ?1",
    )?;
    let mut rows = statement.query([id.as_str()])?;
    rows.next()?.map(read_info).transpose()
}

pub(super) fn read_info(row: &Row<'_>) -> Outcome<SessionInfo> {
    let id = SessionId::from(row.get_ref(0)?.as_str()?);
    read_named(row, &id).map_err(damaged(format_args!("session {id:?}")))
}

fn read_named(row: &Row<'_>, id: &SessionId) -> Outcome<SessionInfo> {
    let parent: Option<String> = row.get(2)?;
    let fork_point: Option<String> = row.get(3)?;
    Ok(SessionInfo {
        id: id.clone(),
        name: row.get(1)?,
        parent_session: parent.map(SessionId::from),
        fork_point: fork_point.map(MessageId::from),
        model: row.get(4)?,
        source: row.get(5)?,
        metadata: row.get_ref(6)?.as_str_or_null()?.map(Json::parse).transpose()?,
        end_reason: row.get(7)?,
        created_at: time(row.get(8)?)?,
        updated_at: time(row.get(9)?)?,
    })
}

pub(super) const SESSIONS: &str =
    "SELECT id, name, parent_session, fork_point, model, source, metadata, end_reason,
        created_at, updated_at
   FROM session
  ORDER BY updated_at DESC, key DESC";

/// Deletes all messages of a session and what points at them; the session stays, and the texts of
/// its blocks. What was frozen of them was the beginning of another conversation.
pub(super) fn empty(conn: &Connection, key: i64) -> Outcome<()> {
    let (first, last) = Address::range_of(key);
    index::forget(conn, first, last)?;
    elision::forget(conn, first, last)?;
    frozen_prompt::thaw(conn, key)?;
    conn.prepare_cached("DELETE FROM message WHERE address BETWEEN ?1 AND ?2")?
        .execute([first, last])?;
    for sql in [
        "DELETE FROM compaction WHERE session = ?1",
        "DELETE FROM label WHERE session = ?1",
        "DELETE FROM head_log WHERE session = ?1",
        "UPDATE session
            SET head = NULL, head_position = 0, visible_tokens = 0, changes = changes + 1
          WHERE key = ?1",
    ] {
        conn.prepare_cached(sql)?.execute([key])?;
    }
    touch(conn, key)
}

fn now() -> i64 {
    Utc::now().timestamp_micros()
}

impl Database {
    /// Returns what is known of every session, the one written to last first.
    pub(crate) fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(SESSIONS)?;
            let mut rows = statement.query([])?;
            let mut sessions = Vec::new();
            while let Some(row) = rows.next()? {
                sessions.push(read_info(row)?);
            }
            Ok(sessions)
        })
    }

    /// Returns the id of every session, the oldest first; what else is known of them is not read.
    pub(crate) fn session_ids(&self) -> Result<Vec<SessionId>> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached("SELECT id FROM session ORDER BY key")?;
            let ids =
                statement.query_map([], |row| row.get::<_, String>(0).map(SessionId::from))?;
            Ok(ids.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Gives a session a name for people.
    pub(crate) fn rename(&self, id: &SessionId, name: &str) -> Result<()> {
        self.write(|conn| {
            let row = find(conn, id)?.ok_or_else(|| unknown(id))?;
            let details =
                SessionDetails { name: Some(name.to_owned()), ..SessionDetails::default() };
            set_details(conn, row.key, &details)
        })
    }

    /// Removes a session with everything of it.
    pub(crate) fn remove(&self, id: &SessionId) -> Result<()> {
        self.write(|conn| {
            let row = find(conn, id)?.ok_or_else(|| unknown(id))?;
            empty(conn, row.key)?;
            lifecycle::remove(conn, row.key)?;
            for sql in
                ["DELETE FROM imported WHERE session = ?1", "DELETE FROM session WHERE key = ?1"]
            {
                conn.prepare_cached(sql)?.execute([row.key])?;
            }
            Ok(())
        })
    }
}

fn unknown(id: &SessionId) -> Fault {
    Fault::Own(Error::UnknownSession { id: id.clone() })
}
