//! The sessions that must not be imported again: keyed hashes of their ids.

use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::super::connection::Database;
use super::super::error::{BackendError, BackendResult};
use crate::error::{Error, Result};
use crate::id::SessionId;

/// The setting with the key of the hashes: the hashes of two stores tell nothing of each other.
const KEY: &str = "SELECT value FROM setting WHERE name = 'erasure_key'";

/// Forbids imports of a session.
pub(super) fn add(conn: &Connection, id: &SessionId) -> BackendResult<()> {
    let key = match key(conn)? {
        Some(key) => key,
        None => {
            let key = crate::clock::uuid();
            conn.prepare_cached("INSERT INTO setting (name, value) VALUES ('erasure_key', ?1)")?
                .execute([key.to_string()])?;
            key
        }
    };
    conn.prepare_cached("INSERT OR IGNORE INTO erased_session (hash) VALUES (?1)")?
        .execute([hash(&key, id)])?;
    Ok(())
}

/// Returns an error if imports of a session are forbidden.
pub(in super::super) fn check(conn: &Connection, id: &SessionId) -> BackendResult<()> {
    match is_erased(conn, id)? {
        true => Err(BackendError::Own(Error::SessionErased { id: id.clone() })),
        false => Ok(()),
    }
}

fn is_erased(conn: &Connection, id: &SessionId) -> BackendResult<bool> {
    // Few stores have a key.
    let Some(key) = key(conn)? else { return Ok(false) };
    let found = conn
        .prepare_cached("SELECT 1 FROM erased_session WHERE hash = ?1")?
        .exists([hash(&key, id)])?;
    Ok(found)
}

fn key(conn: &Connection) -> BackendResult<Option<Uuid>> {
    let key: Option<String> =
        conn.prepare_cached(KEY)?.query_row([], |row| row.get(0)).optional()?;
    // With a damaged key no hash is found.
    Ok(key.map(|key| Uuid::try_parse(&key).unwrap_or_default()))
}

fn hash(key: &Uuid, id: &SessionId) -> String {
    Uuid::new_v5(key, id.as_str().as_bytes()).to_string()
}

impl Database {
    /// Returns whether a session was erased and must not be imported again.
    pub(crate) fn is_import_forbidden(&self, id: &SessionId) -> Result<bool> {
        self.read(|conn| is_erased(conn, id))
    }
}
