//! Copying a session's context into a fork, and removing it with the session.

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::{Whose, block, entry};
use crate::tree::Address;

/// Copies the current texts of a session's own blocks into another session, and indexes them.
///
/// Earlier versions and removed texts are not copied.
pub(in super::super) fn copy(conn: &Connection, source: i64, target: i64) -> BackendResult<()> {
    for (from, label) in block::all(conn, source)? {
        let to = block::create(conn, &Whose::session(target), &label)?;
        let (first, last) = Address::range_of(from);
        conn.prepare_cached(COPY)?.execute(params![first, last, (to - from) << 32])?;
        conn.prepare_cached(
            "UPDATE context_block
                SET next = (SELECT next FROM context_block WHERE key = ?1)
              WHERE key = ?2",
        )?
        .execute([from, to])?;
        let (first, last) = Address::range_of(to);
        entry::add_to_index(conn, first, last)?;
    }
    Ok(())
}

pub(in super::super) const COPY: &str = "INSERT INTO context_entry
        (address, block, key, present, version, searchable, changed_at, title, description, content)
 SELECT address + ?3, (address + ?3) >> 32, key, 1, version, searchable, changed_at, title,
        description, content
   FROM context_entry
  WHERE address BETWEEN ?1 AND ?2 AND present = 1
  ORDER BY address";

/// Removes the texts of a session's own blocks and all their versions.
pub(in super::super) fn remove(conn: &Connection, session: i64) -> BackendResult<()> {
    for (block, _) in block::all(conn, session)? {
        let (first, last) = Address::range_of(block);
        entry::remove_from_index(conn, first, last)?;
        for sql in [REMOVE_VERSIONS, REMOVE_ENTRIES] {
            conn.prepare_cached(sql)?.execute([first, last])?;
        }
    }
    conn.prepare_cached("DELETE FROM context_block WHERE session = ?1")?.execute([session])?;
    Ok(())
}

pub(in super::super) const REMOVE_VERSIONS: &str =
    "DELETE FROM context_version WHERE entry BETWEEN ?1 AND ?2";
pub(in super::super) const REMOVE_ENTRIES: &str =
    "DELETE FROM context_entry WHERE address BETWEEN ?1 AND ?2";
