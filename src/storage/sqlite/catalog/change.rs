//! Changes of a session that are no changes of its conversation: names, owners, tags, pins, the end, the trash.

use rusqlite::{Connection, params};

use super::super::append;
use super::super::connection::Database;
use super::super::context;
use super::super::erase;
use super::super::error::{BackendError, BackendResult};
use super::super::row::session as row;
use super::super::usage;
use super::{touch, unknown};
use crate::catalog::SessionChange;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::SessionDetails;

impl Database {
    /// Changes a session.
    pub(crate) fn change_session(&self, id: &SessionId, to: &SessionChange) -> Result<()> {
        to.check()?;
        self.write_short(|conn| {
            let session = row::find(conn, id)?.ok_or_else(|| unknown(id))?;
            if session.deleted_at.is_some() && !to.is_allowed_in_trash() {
                return Err(BackendError::Own(Error::SessionInTrash { id: id.clone() }));
            }
            if *to == SessionChange::Restore && erase::is_being_erased(conn, session.key)? {
                return Err(BackendError::Own(Error::InvalidValue {
                    what: "session",
                    given: id.to_string(),
                    why:
                        "it is being erased; if that was interrupted, `finish_erasure` finishes it"
                            .to_owned(),
                }));
            }
            change(conn, session.key, to, self.config.max_message_bytes)?;
            touch(conn, session.key)
        })
    }
}

fn change(conn: &Connection, key: i64, to: &SessionChange, max_bytes: usize) -> BackendResult<()> {
    let run = |sql: &str| -> BackendResult<()> {
        conn.prepare_cached(sql)?.execute([key])?;
        Ok(())
    };
    let text = |sql: &str, text: Option<&str>| -> BackendResult<()> {
        conn.prepare_cached(sql)?.execute(params![key, text])?;
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
pub(in super::super) fn put_into_trash(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.prepare_cached(
        "UPDATE session SET deleted_at = ?2 WHERE key = ?1 AND deleted_at IS NULL",
    )?
    .execute(params![key, row::now()])?;
    Ok(())
}
