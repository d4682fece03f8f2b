//! The sessions that were erased and must not be imported again: keyed hashes of their ids. The hashes of two stores tell
//! nothing of each other.

use crate::sql::Connection;
use rusqlite::OptionalExtension;
use uuid::Uuid;

use super::super::connection::Database;
use super::super::error::{BackendError, BackendResult};
use crate::error::{Error, Result};
use crate::id::SessionId;

/// Forbids imports of a session.
pub(super) fn add(conn: &Connection, id: &SessionId) -> BackendResult<()> {
    conn.sqlite()?
        .prepare_cached("INSERT OR IGNORE INTO setting (name, value) VALUES ('erasure_key', ?1)")?
        .execute([crate::clock::uuid().to_string()])?;
    conn.sqlite()?
        .prepare_cached("INSERT OR IGNORE INTO erased_session (hash) VALUES (?1)")?
        .execute([hash(conn, id)?])?;
    Ok(())
}

/// Returns an error if imports of a session are forbidden.
pub(in super::super) fn check(conn: &Connection, id: &SessionId) -> BackendResult<()> {
    match is_forbidden(conn, id)? {
        true => Err(BackendError::Own(Error::SessionErased { id: id.clone() })),
        false => Ok(()),
    }
}

fn is_forbidden(conn: &Connection, id: &SessionId) -> BackendResult<bool> {
    // Few stores have a key.
    let Some(hash) = hash(conn, id)? else { return Ok(false) };
    Ok(conn
        .sqlite()?
        .prepare_cached("SELECT 1 FROM erased_session WHERE hash = ?1")?
        .exists([hash])?)
}

/// Returns the hash of an id; `None` in a store without a key. With a damaged key no hash is found.
fn hash(conn: &Connection, id: &SessionId) -> BackendResult<Option<String>> {
    let key: Option<String> = conn
        .sqlite()?
        .prepare_cached("SELECT value FROM setting WHERE name = 'erasure_key'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let key = key.map(|key| Uuid::try_parse(&key).unwrap_or_default());
    Ok(key.map(|key| Uuid::new_v5(&key, id.as_str().as_bytes()).to_string()))
}

impl Database {
    /// Returns whether a session was erased and must not be imported again.
    pub(crate) fn is_import_forbidden(&self, id: &SessionId) -> Result<bool> {
        self.read(|conn| is_forbidden(conn, id))
    }
}
