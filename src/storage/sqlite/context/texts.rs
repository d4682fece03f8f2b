//! All texts of a session or an owner, removed ones included.

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::{Whose, block, entry};
use crate::storage::context::EntryVersion;

/// Returns the label and the key of each text; the key of a block's own text is empty.
pub(in super::super) fn names(
    conn: &Connection,
    session: i64,
    owner: &str,
) -> BackendResult<Vec<(String, String)>> {
    let mut statement = conn.prepare_cached(NAMES)?;
    let names =
        statement.query_map(params![session, owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

pub(in super::super) const NAMES: &str = "SELECT label, context_entry.key
   FROM context_block
  CROSS JOIN context_entry ON context_entry.block = context_block.key
  WHERE session = ?1 AND owner = ?2
  ORDER BY label, context_entry.key";

/// Returns the versions of a text, oldest first.
pub(in super::super) fn versions(
    conn: &Connection,
    session: i64,
    owner: &str,
    label: &str,
    key: &str,
) -> BackendResult<Vec<EntryVersion>> {
    let whose = Whose { session, owner: owner.to_owned() };
    match block::find(conn, &whose, label)? {
        Some(block) => entry::versions(conn, block, key),
        None => Ok(Vec::new()),
    }
}
