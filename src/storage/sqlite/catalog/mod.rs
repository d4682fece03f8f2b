//! The sessions of a store: creating, listing, naming, removing them.

pub(super) mod binding;
pub(super) mod list;
pub(super) mod removal;
#[cfg(test)]
mod tests;

use super::connection::Database;
use super::context::{self, elision};
use super::index::Index;
use super::row::session as row;
use super::row::session::SessionRow;
use super::{append, head, usage};
use crate::catalog::{OwnerInfo, SessionChange};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::sql::{BackendError, BackendResult, Connection, Read};
use crate::tree::{Address, MAX_SESSIONS};

/// Creates a session; its id must be free.
pub(super) fn create(conn: &Connection, id: &SessionId) -> BackendResult<SessionRow> {
    let now = row::now();
    let key = conn.one(
        "INSERT INTO session (id, visible_tokens, created_at, updated_at, listed_at)
             VALUES (?1, 0, ?2, ?2, ?2)
             RETURNING key",
        (id.as_str(), now),
    )?;
    if key > MAX_SESSIONS {
        return Err(BackendError::Own(Error::StoreFull { max: MAX_SESSIONS }));
    }
    Ok(SessionRow::new(key, now))
}

/// Sets the details that are given.
pub(crate) fn set_details(
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
pub(crate) fn touch_view(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.send(
        "UPDATE session
            SET visible_tokens = NULL, changes = changes + 1,
                updated_at = CASE WHEN updated_at < ?2 THEN ?2 ELSE updated_at END
          WHERE key = ?1",
        (key, row::now()),
    )
}

/// Records a write.
pub(crate) fn touch(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.send(
        "UPDATE session
            SET updated_at = CASE WHEN updated_at < ?2 THEN ?2 ELSE updated_at END
          WHERE key = ?1",
        (key, row::now()),
    )
}

/// Deletes all messages of a session, and the labels, compactions, head log and frozen prompt that belong to them.
/// The session and the texts of its blocks stay.
pub(super) fn clear(conn: &Connection, key: i64) -> BackendResult<()> {
    let (first, last) = Address::range_of(key);
    Index::Messages.remove(conn, first, last)?;
    elision::remove_range(conn, first, last)?;
    head::remove_tags(conn, first, last)?;
    context::thaw(conn, key)?;
    conn.run("DELETE FROM message WHERE address BETWEEN ?1 AND ?2", (first, last))?;
    for sql in [
        "DELETE FROM compaction WHERE session = ?1",
        "DELETE FROM label WHERE session = ?1",
        "DELETE FROM head_log WHERE session = ?1",
        "UPDATE session
            SET head = NULL, head_position = 0, visible_tokens = 0, changes = changes + 1,
                unindexed = NULL, messages = 0
          WHERE key = ?1",
    ] {
        conn.run(sql, key)?;
    }
    touch(conn, key)
}

impl Database {
    /// Returns the details of a session, also of one in the trash.
    pub(crate) fn session_info(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        self.read(|conn| row::info(conn, id))
    }

    /// Returns every session, the one written to last first.
    pub(crate) fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.read(|conn| conn.rows_with(row::ALL, (), |row| Ok(row::read_info(row, 0)?.0)))
    }

    /// Returns the ids of all sessions, oldest first, without reading their other columns. An id that talktree would refuse
    /// comes with the error, in a form that can be shown.
    pub(crate) fn session_ids(&self) -> Result<Vec<(SessionId, Result<()>)>> {
        self.read(|conn| {
            conn.rows_with("SELECT id, key FROM session ORDER BY key", (), |found| {
                Ok(match row::read_id(found, 0, i64::read(found, 1)?) {
                    Ok(id) => (id, Ok(())),
                    Err(error) => {
                        let text = String::from_utf8_lossy(found.value(0)?.as_bytes()?);
                        (SessionId::from(&*text), Err(error.into_error(0)))
                    }
                })
            })
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
}

fn unknown(id: &SessionId) -> BackendError {
    BackendError::Own(Error::UnknownSession { id: id.clone() })
}

impl Database {
    /// Changes a session.
    pub(crate) fn change_session(&self, id: &SessionId, to: &SessionChange) -> Result<()> {
        to.check()?;
        self.write_short(|conn| {
            let session = row::find(conn, id)?.ok_or_else(|| unknown(id))?;
            if session.deleted_at.is_some() && !to.is_allowed_in_trash() {
                return Err(BackendError::Own(Error::SessionInTrash { id: id.clone() }));
            }
            change(conn, session.key, to, self.config.max_message_bytes)?;
            touch(conn, session.key)
        })
    }
}

fn change(conn: &Connection, key: i64, to: &SessionChange, max_bytes: usize) -> BackendResult<()> {
    let run = |sql: &'static str| -> BackendResult<()> {
        conn.run(sql, key)?;
        Ok(())
    };
    let text = |sql: &'static str, text: Option<&str>| -> BackendResult<()> {
        conn.run(sql, (key, text))?;
        Ok(())
    };
    match to {
        SessionChange::Name(name) => {
            text("UPDATE session SET name = ?2 WHERE key = ?1", name.as_deref())
        }
        SessionChange::Owner(owner) => {
            context::thaw_for_owner(conn, key, owner.as_deref())?;
            text("UPDATE session SET owner = ?2 WHERE key = ?1", owner.as_deref())?;
            usage::follow(conn, key)
        }
        SessionChange::Metadata(metadata) => {
            let metadata = metadata.as_ref().map(|json| json.as_str());
            append::check_size("session metadata", metadata.map_or(0, str::len), max_bytes)?;
            text("UPDATE session SET metadata = ?2 WHERE key = ?1", metadata)
        }
        SessionChange::Tag(tag) => row::add_tag(conn, key, tag),
        SessionChange::Untag(tag) => {
            text("DELETE FROM session_tag WHERE session = ?1 AND tag = ?2", Some(tag))
        }
        SessionChange::Pin(true) => run("UPDATE session SET pinned = 1 WHERE key = ?1"),
        SessionChange::Pin(false) => run("UPDATE session SET pinned = 0 WHERE key = ?1"),
        SessionChange::End(reason) => {
            let end_reason = Some(reason.clone());
            row::set_details(conn, key, &SessionDetails { end_reason, ..SessionDetails::default() })
        }
        SessionChange::Reopen => {
            run("UPDATE session SET ended_at = NULL, end_reason = NULL WHERE key = ?1")
        }
        SessionChange::Delete => put_into_trash(conn, key),
        SessionChange::Restore => run("UPDATE session SET deleted_at = NULL WHERE key = ?1"),
    }
}

/// Puts a session into the trash; one that is there stays as it is.
pub(super) fn put_into_trash(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.run(
        "UPDATE session SET deleted_at = ?2 WHERE key = ?1 AND deleted_at IS NULL",
        (key, row::now()),
    )?;
    Ok(())
}

/// The most owners that one call returns.
const MAX_PAGE: usize = 1_000;

impl Database {
    /// Returns the owners after a name, by name.
    pub(crate) fn owners(&self, after: Option<&str>, limit: usize) -> Result<Vec<OwnerInfo>> {
        self.read(|conn| {
            // No owner is empty.
            let (after, limit) = (after.unwrap_or_default(), limit.min(MAX_PAGE));
            let number = |number: i64| u64::try_from(number).unwrap_or_default();
            let mut owners = conn.rows_with(OWNERS, (after, limit), |row| {
                let (owner, sessions, messages, last_message_at) = Read::read(row, 0)?;
                let (sessions, messages) = (number(sessions), number(messages));
                Ok(OwnerInfo { sessions, messages, last_message_at, ..OwnerInfo::new(owner) })
            })?;
            for (name, count) in conn.rows::<(String, i64)>(OF_TRANSCRIPTS, (after, limit))? {
                let place =
                    owners.binary_search_by(|of| of.owner.cmp(&name)).unwrap_or_else(|place| {
                        owners.insert(place, OwnerInfo::new(name));
                        place
                    });
                owners[place].transcripts = number(count);
            }
            // Both lists have all owners up to the last one that is kept.
            owners.truncate(limit);
            Ok(owners)
        })
    }
}

pub(super) const OWNERS: &str =
    "SELECT owner, count(*), CAST(sum(messages) AS BIGINT), max(last_message_at)
   FROM session
  WHERE owner > ?1
    AND deleted_at IS NULL
  GROUP BY owner
  ORDER BY owner
  LIMIT ?2";

pub(super) const OF_TRANSCRIPTS: &str = "SELECT owner, count(*)
   FROM transcript
  WHERE owner > ?1
  GROUP BY owner
  ORDER BY owner
  LIMIT ?2";
