//! Deletes transcripts.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::super::catalog;
use super::super::error::BackendResult;
use super::{projection, range, read};
use crate::transcript::TranscriptKey;

/// Deletes a transcript; the main one with all others of its session. Returns how many were deleted.
pub(crate) fn delete(conn: &Connection, key: &TranscriptKey) -> BackendResult<u64> {
    delete_rows(conn, named(conn, key)?)
}

/// Returns the rows that a key names: of a main transcript also those of the others of its session.
pub(in super::super) fn named(
    conn: &Connection,
    key: &TranscriptKey,
) -> BackendResult<BTreeSet<i64>> {
    if !key.is_main() {
        return Ok(read::row_of(conn, key)?.into_iter().collect());
    }
    let mut statement = conn.prepare_cached(OF_SESSION)?;
    let keys = statement.query_map([&key.project, &key.session], |row| row.get(0))?;
    Ok(keys.collect::<rusqlite::Result<_>>()?)
}

pub(in super::super) const OF_SESSION: &str =
    "SELECT key FROM transcript WHERE project = ?1 AND session = ?2";

/// Deletes all transcripts of an owner, and the others of a session whose main one is the owner's. Returns how many
/// were deleted.
pub(crate) fn delete_of_owner(conn: &Connection, owner: &str) -> BackendResult<u64> {
    delete_rows(conn, of_owner(conn, owner)?)
}

/// Returns the rows of an owner's transcripts, and of the others of a session whose main one is the owner's.
pub(in super::super) fn of_owner(conn: &Connection, owner: &str) -> BackendResult<BTreeSet<i64>> {
    let mut keys = BTreeSet::new();
    for sql in [OF_OWNER, BELOW_OWNED] {
        let mut statement = conn.prepare_cached(sql)?;
        for key in statement.query_map([owner], |row| row.get(0))? {
            keys.insert(key?);
        }
    }
    Ok(keys)
}

pub(in super::super) const OF_OWNER: &str = "SELECT key FROM transcript WHERE owner = ?1";

pub(in super::super) const BELOW_OWNED: &str = "SELECT other.key
   FROM transcript AS main
  CROSS JOIN transcript AS other ON other.project = main.project AND other.session = main.session
  WHERE main.owner = ?1 AND main.subpath = ''";

fn delete_rows(conn: &Connection, keys: impl IntoIterator<Item = i64>) -> BackendResult<u64> {
    let mut count = 0;
    for key in keys {
        let session = projection::session_of(conn, key)?;
        delete_row(conn, key)?;
        if let Some((session, _)) = session {
            catalog::remove(conn, session)?;
        }
        count += 1;
    }
    Ok(count)
}

/// Deletes the transcript that a session shows, if it shows one.
pub(in super::super) fn delete_of_session(conn: &Connection, session: i64) -> BackendResult<()> {
    match projection::of_session(conn, session)? {
        Some(transcript) => delete_row(conn, transcript),
        None => Ok(()),
    }
}

/// Deletes a transcript; the session that shows it stays.
fn delete_row(conn: &Connection, key: i64) -> BackendResult<()> {
    projection::forget(conn, key)?;
    conn.prepare_cached(DELETE_ENTRIES)?.execute(range(key))?;
    conn.prepare_cached("DELETE FROM transcript WHERE key = ?1")?.execute([key])?;
    Ok(())
}

pub(in super::super) const DELETE_ENTRIES: &str =
    "DELETE FROM transcript_entry WHERE address BETWEEN ?1 AND ?2";
