//! Discards sessions that nobody changed meanwhile.

use rusqlite::Connection;

use super::super::connection::Database;
use super::super::error::BackendResult;
use super::super::row::session as row;
use super::{change, removal, touch};
use crate::error::Result;
use crate::id::SessionId;
use crate::outcome::SessionInfo;
use crate::retention::RetentionAction;
use crate::tree::Address;

impl Database {
    /// Removes sessions that have not changed, or puts them into the trash; returns for each whether it was done.
    ///
    /// One transaction, and some more for long sessions that are removed.
    pub(crate) fn discard(
        &self,
        sessions: &[SessionInfo],
        action: RetentionAction,
    ) -> Result<Vec<bool>> {
        let discard = |conn: &Connection| -> BackendResult<Vec<bool>> {
            sessions.iter().map(|known| discard(conn, known, action)).collect()
        };
        let done = self.write(discard)?;
        if action == RetentionAction::Remove {
            self.finish_removals()?;
        }
        Ok(done)
    }

    /// Returns the size of all messages of a session.
    pub(crate) fn bytes(&self, id: &SessionId) -> Result<u64> {
        self.read(|conn| {
            let Some(session) = row::find(conn, id)? else { return Ok(0) };
            let (first, last) = Address::range_of(session.key);
            let bytes: i64 =
                conn.prepare_cached(BYTES)?.query_row([first, last], |row| row.get(0))?;
            Ok(u64::try_from(bytes).unwrap_or_default())
        })
    }
}

fn discard(conn: &Connection, known: &SessionInfo, action: RetentionAction) -> BackendResult<bool> {
    if row::info(conn, &known.id)?.as_ref() != Some(known) {
        return Ok(false);
    }
    let Some(session) = row::find(conn, &known.id)? else { return Ok(false) };
    match action {
        RetentionAction::Remove => _ = removal::begin(conn, &session)?,
        RetentionAction::Trash | RetentionAction::Erase => {
            change::put_into_trash(conn, session.key)?;
            touch(conn, session.key)?;
        }
    }
    Ok(true)
}

/// The lengths are in the headers of the rows, so no content is read.
pub(in super::super) const BYTES: &str =
    "SELECT coalesce(sum(octet_length(parts) + coalesce(octet_length(metadata), 0)
                + coalesce(octet_length(extra), 0)), 0)
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL";
