//! Storing historical messages as they are.

use rusqlite::{Connection, params};

use super::append::{self, Content};
use super::catalog::{self, SessionRow};
use super::fault::Outcome;
use super::message;
use super::stamp::Counted;
use crate::id::{MessageId, SessionId};
use crate::outcome::{ImportRecord, Imported};
use crate::tree::Address;

/// Stores records whose parents come before them.
pub(super) fn import(
    conn: &Connection,
    name: &SessionId,
    records: &[ImportRecord],
    counted: &Counted<'_>,
    max_bytes: usize,
) -> Outcome<Vec<Imported>> {
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let mut session = catalog::find_or_make(conn, name)?;
    // Transcripts are mostly linear: the parent is mostly the record before.
    let mut before: Option<(MessageId, Address)> = None;
    let mut imported = Vec::with_capacity(records.len());
    for (record, stamp) in records.iter().zip(counted.stamps(conn)?) {
        if !is_first_time(conn, &session, &record.record)? {
            imported.push(Imported::Known);
            continue;
        }
        let parent = match (&record.parent, &before) {
            (None, _) => None,
            (Some(id), Some((before, address))) if id == before => Some(*address),
            (Some(id), _) => Some(message::require(conn, Some(session.key), name, id)?),
        };
        let content = Content::of(&record.message, max_bytes)?;
        let inserted =
            append::insert(conn, &mut session, name, parent, &record.message, &content, stamp)?;
        let Some(address) = inserted else {
            let (_, differs) = append::compare(conn, &session, &record.message)?;
            imported.push(if differs { Imported::Differs } else { Imported::Known });
            continue;
        };
        if session.head == parent {
            session.head = Some(address);
            session.lose_count();
        }
        before = Some((record.message.id.clone(), address));
        imported.push(Imported::Added);
    }
    if imported.contains(&Imported::Added) {
        catalog::store(conn, &session)?;
    }
    Ok(imported)
}

/// Returns whether a record of this name was imported.
pub(super) fn is_imported(conn: &Connection, session: &SessionRow, record: &str) -> Outcome<bool> {
    let found = conn
        .prepare_cached(
            "SELECT 1
               FROM imported
              WHERE session = ?1 AND record = ?2",
        )?
        .exists(params![session.key, record])?;
    Ok(found)
}

/// Notes a record as imported; `false` if it was before.
fn is_first_time(conn: &Connection, session: &SessionRow, record: &str) -> Outcome<bool> {
    let count = conn
        .prepare_cached("INSERT OR IGNORE INTO imported (session, record) VALUES (?1, ?2)")?
        .execute(params![session.key, record])?;
    Ok(count > 0)
}
