//! The head and its log.
//!
//! The log is a list of places, one of which is the current one. The current place is the session's head itself, and
//! its row is written when the head leaves it. So an append at the head does not touch the log.

use rusqlite::{Connection, OptionalExtension, params};

use super::error::BackendResult;
use super::message::id_of_place;
use super::row::session::{self as session_row, SessionRow};
use crate::outcome::HeadEntry;
use crate::tree::Address;

/// How many places before the current one are kept.
const MAX_ENTRIES: i64 = 1_000;

/// Moves the head to a new place after the current one, and drops the places that could be redone.
pub(super) fn move_to(
    conn: &Connection,
    row: &mut SessionRow,
    head: Option<Address>,
) -> BackendResult<()> {
    if row.head == head {
        return Ok(());
    }
    conn.prepare_cached("DELETE FROM head_log WHERE session = ?1 AND position > ?2")?
        .execute(params![row.key, row.head_position])?;
    leave(conn, row)?;
    row.head_position += 1;
    row.head = head;
    row.invalidate_visible_tokens();
    conn.prepare_cached("DELETE FROM head_log WHERE session = ?1 AND position < ?2")?
        .execute(params![row.key, row.head_position - MAX_ENTRIES])?;
    Ok(())
}

/// Moves the head one place back (`-1`) or forward (`1`) in the log; `false` if there is none.
pub(super) fn step(conn: &Connection, row: &mut SessionRow, by: i64) -> BackendResult<bool> {
    let target: Option<Option<Address>> = conn
        .prepare_cached("SELECT address FROM head_log WHERE session = ?1 AND position = ?2")?
        .query_row(params![row.key, row.head_position + by], |row| row.get(0))
        .optional()?;
    let Some(target) = target else { return Ok(false) };
    leave(conn, row)?;
    row.head_position += by;
    row.head = target;
    row.invalidate_visible_tokens();
    session_row::store(conn, row)?;
    Ok(true)
}

/// Writes the current place into the log.
fn leave(conn: &Connection, row: &SessionRow) -> BackendResult<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO head_log (session, position, address, moved_at)
         VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        row.key,
        row.head_position,
        row.head,
        crate::clock::now().timestamp_micros()
    ])?;
    Ok(())
}

/// Returns the log, oldest place first.
pub(super) fn log(conn: &Connection, row: &SessionRow) -> BackendResult<Vec<HeadEntry>> {
    let places = places(conn, row)?;
    places
        .into_iter()
        .map(|(position, address)| {
            Ok(HeadEntry {
                id: id_of_place(conn, address)?,
                is_present: position == row.head_position,
            })
        })
        .collect()
}

/// Returns all places of the log, the current one included.
fn places(conn: &Connection, row: &SessionRow) -> BackendResult<Vec<(i64, Option<Address>)>> {
    let mut statement = conn.prepare_cached(
        "SELECT position, address
           FROM head_log
          WHERE session = ?1 AND position <> ?2
          ORDER BY position",
    )?;
    let stored = statement
        .query_map(params![row.key, row.head_position], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut places: Vec<(i64, Option<Address>)> = stored.collect::<rusqlite::Result<_>>()?;
    let present = places.partition_point(|(position, _)| *position < row.head_position);
    places.insert(present, (row.head_position, row.head));
    Ok(places)
}

/// Moves places on removed rows, the head included, to the address that `survivor` returns, and merges neighbours
/// that become equal.
pub(super) fn relocate(
    conn: &Connection,
    row: &mut SessionRow,
    survivor: impl Fn(Option<Address>) -> Option<Address>,
) -> BackendResult<()> {
    let places = places(conn, row)?;
    if places.iter().all(|(_, address)| survivor(*address) == *address) {
        return Ok(());
    }
    let mut kept: Vec<Option<Address>> = Vec::new();
    let mut present = 0;
    for (position, address) in places {
        let address = survivor(address);
        if kept.last() != Some(&address) {
            kept.push(address);
        }
        if position == row.head_position {
            present = kept.len() - 1;
        }
    }
    conn.prepare_cached("DELETE FROM head_log WHERE session = ?1")?.execute([row.key])?;
    let mut insert = conn.prepare_cached(
        "INSERT INTO head_log (session, position, address, moved_at) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let now = crate::clock::now().timestamp_micros();
    for (position, address) in kept.iter().enumerate().filter(|(at, _)| *at != present) {
        insert.execute(params![row.key, position as i64, address, now])?;
    }
    row.head_position = present as i64;
    row.head = kept[present];
    Ok(())
}
