//! The sessions of a store: creating, listing, naming, removing them.

pub(super) mod binding;
pub(super) mod change;
pub(super) mod discard;
pub(super) mod list;
pub(super) mod owners;
pub(super) mod removal;
#[cfg(test)]
mod tests;

use rusqlite::{Connection, params};

use super::connection::Database;
use super::context::{self, elision, entry};
use super::error::{BackendError, BackendResult};
use super::index::Index;
use super::row::session::{self as row, SessionRow};
use super::{append, message_tag, transcript};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::tree::{Address, MAX_SESSIONS};

/// Creates a session; its id must be free.
pub(super) fn create(conn: &Connection, id: &SessionId) -> BackendResult<SessionRow> {
    let now = row::now();
    conn.prepare_cached(
        "INSERT INTO session (id, visible_tokens, created_at, updated_at, listed_at)
         VALUES (?1, 0, ?2, ?2, ?2)",
    )?
    .execute(params![id.as_str(), now])?;
    let key = conn.last_insert_rowid();
    if key > MAX_SESSIONS {
        return Err(BackendError::Own(Error::StoreFull { max: MAX_SESSIONS }));
    }
    Ok(SessionRow::new(key, now))
}

/// Sets the details that are given.
pub(super) fn set_details(
    conn: &Connection,
    key: i64,
    details: &SessionDetails,
    max_bytes: usize,
) -> BackendResult<()> {
    let metadata = details.metadata.as_ref().map_or(0, |json| json.as_str().len());
    append::check_size("session metadata", metadata, max_bytes)?;
    row::set_details(conn, key, details)
}

/// Records a write that changes what a model sees.
pub(super) fn touch_view(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.prepare_cached(
        "UPDATE session
            SET visible_tokens = NULL, changes = changes + 1, updated_at = max(updated_at, ?2)
          WHERE key = ?1",
    )?
    .execute(params![key, row::now()])?;
    Ok(())
}

/// Records a write.
pub(super) fn touch(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.prepare_cached("UPDATE session SET updated_at = max(updated_at, ?2) WHERE key = ?1")?
        .execute(params![key, row::now()])?;
    Ok(())
}

/// Deletes all messages of a session, and the labels, compactions, head log and frozen prompt that belong to them.
/// The session and the texts of its blocks stay.
pub(super) fn clear(conn: &Connection, key: i64) -> BackendResult<()> {
    let (first, last) = Address::range_of(key);
    Index::Messages.remove(conn, first, last)?;
    elision::remove_range(conn, first, last)?;
    message_tag::remove_range(conn, first, last)?;
    context::thaw(conn, key)?;
    conn.prepare_cached("DELETE FROM message WHERE address BETWEEN ?1 AND ?2")?
        .execute([first, last])?;
    for sql in [
        "DELETE FROM compaction WHERE session = ?1",
        "DELETE FROM label WHERE session = ?1",
        "DELETE FROM head_log WHERE session = ?1",
        "UPDATE session
            SET head = NULL, head_position = 0, visible_tokens = 0, changes = changes + 1,
                unindexed = NULL, messages = 0
          WHERE key = ?1",
    ] {
        conn.prepare_cached(sql)?.execute([key])?;
    }
    touch(conn, key)
}

/// Removes a session and everything that belongs to it, with the transcript that it shows.
pub(super) fn remove(conn: &Connection, key: i64) -> BackendResult<()> {
    transcript::delete_of_session(conn, key)?;
    clear(conn, key)?;
    entry::remove_blocks(conn, key)?;
    for sql in [
        "DELETE FROM imported WHERE session = ?1",
        "DELETE FROM session_tag WHERE session = ?1",
        "DELETE FROM binding WHERE session = ?1",
        // What was paid for stays in the totals.
        "UPDATE usage SET session = NULL, address = NULL WHERE session = ?1",
        "DELETE FROM session WHERE key = ?1",
    ] {
        conn.prepare_cached(sql)?.execute([key])?;
    }
    Ok(())
}

impl Database {
    /// Returns the details of a session, also of one in the trash.
    pub(crate) fn session_info(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        self.read(|conn| row::info(conn, id))
    }

    /// Returns every session, the one written to last first.
    pub(crate) fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(row::ALL)?;
            let mut rows = statement.query([])?;
            let mut sessions = Vec::new();
            while let Some(row) = rows.next()? {
                sessions.push(row::read_info(row)?);
            }
            Ok(sessions)
        })
    }

    /// Returns the ids of all sessions, oldest first, without reading their other columns. An id that talktree would refuse
    /// comes with the error, in a form that can be shown.
    pub(crate) fn session_ids(&self) -> Result<Vec<(SessionId, Result<()>)>> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached("SELECT id, key FROM session ORDER BY key")?;
            let mut rows = statement.query([])?;
            let mut ids = Vec::new();
            while let Some(found) = rows.next()? {
                ids.push(match row::read_id(found, 0, found.get(1)?) {
                    Ok(id) => (id, Ok(())),
                    Err(error) => {
                        let text = String::from_utf8_lossy(found.get_ref(0)?.as_bytes()?);
                        (SessionId::from(&*text), Err(error.into_error(0)))
                    }
                });
            }
            Ok(ids)
        })
    }

    /// Creates a session with these details; its id must be free.
    pub(crate) fn create_session(&self, id: &SessionId, details: &SessionDetails) -> Result<()> {
        id.check()?;
        details.check()?;
        self.write(|conn| {
            if row::find(conn, id)?.is_some() {
                return Err(BackendError::Own(Error::SessionExists { id: id.clone() }));
            }
            let session = create(conn, id)?;
            set_details(conn, session.key, details, self.config.max_message_bytes)
        })
    }

    /// Removes a session and everything that belongs to it.
    pub(crate) fn remove(&self, id: &SessionId) -> Result<()> {
        let is_removed = self.write(|conn| {
            let session = row::find(conn, id)?.ok_or_else(|| unknown(id))?;
            removal::begin(conn, &session)
        })?;
        if is_removed { Ok(()) } else { self.finish_removals() }
    }
}

fn unknown(id: &SessionId) -> BackendError {
    BackendError::Own(Error::UnknownSession { id: id.clone() })
}
