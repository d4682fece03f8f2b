//! Storing historical messages as they are.

use rusqlite::{Connection, params};

use super::append;
use super::error::BackendResult;
use super::handle::Named;
use super::row::session::{self as session_row, SessionRow};
use super::tokens::CountedMessages;
use super::{erase, message, search_index, usage};
use crate::id::MessageId;
use crate::message::Message;
use crate::outcome::{ImportRecord, Imported};
use crate::tree::Address;

/// Stores records; a parent comes before its children.
pub(super) fn import(
    conn: &Connection,
    name: &Named<'_>,
    records: &[ImportRecord],
    counted: &CountedMessages<'_>,
    max_bytes: usize,
) -> BackendResult<Vec<Imported>> {
    if records.is_empty() {
        return Ok(Vec::new());
    }
    erase::check_import(conn, name)?;
    let mut session = name.find_or_create(conn)?;
    let first_new = session.next;
    // Most transcripts are linear: the parent is usually the record before.
    let mut before: Option<(MessageId, Address)> = None;
    let mut imported = Vec::with_capacity(records.len());
    for (record, count) in records.iter().zip(counted.token_counts(conn)?) {
        if !remember(conn, &session, &record.record)? {
            imported.push(Imported::Known);
            continue;
        }
        let parent = match (&record.parent, &before) {
            (None, _) => None,
            (Some(id), Some((before, address))) if id == before => Some(*address),
            (Some(id), _) => Some(message::place(conn, Some(session.key), name, id)?),
        };
        let content = append::content(&record.message, max_bytes)?;
        let inserted =
            append::insert(conn, &mut session, name, parent, &record.message, &content, count)?;
        let Some(address) = inserted else {
            let (_, differs) = append::compare(conn, &session, &record.message)?;
            imported.push(if differs { Imported::Differs } else { Imported::Known });
            continue;
        };
        if session.head == parent {
            session.head = Some(address);
            session.invalidate_visible_tokens();
        }
        note(conn, &mut session, address, &record.message)?;
        before = Some((record.message.id.clone(), address));
        imported.push(Imported::Added);
    }
    if imported.contains(&Imported::Added) {
        search_index::make_pending(conn, &mut session, first_new)?;
        session_row::store(conn, &session)?;
        session_row::store_listed_at(conn, &mut session)?;
    }
    Ok(imported)
}

/// Notes the time of a message that was added, and its usage.
pub(super) fn note(
    conn: &Connection,
    session: &mut SessionRow,
    address: Address,
    message: &Message,
) -> BackendResult<()> {
    // Records may come in any order.
    let last = session.last_message_at;
    session.note_message_at(message.created_at);
    session.last_message_at = session.last_message_at.max(last);
    usage::record(conn, address, message)
}

/// Returns whether a record was imported.
pub(super) fn is_imported(
    conn: &Connection,
    session: &SessionRow,
    record: &str,
) -> BackendResult<bool> {
    let found = conn
        .prepare_cached(
            "SELECT 1
               FROM imported
              WHERE session = ?1 AND record = ?2",
        )?
        .exists(params![session.key, record])?;
    Ok(found)
}

/// Stores that a record was imported; `false` if it was imported before.
pub(super) fn remember(
    conn: &Connection,
    session: &SessionRow,
    record: &str,
) -> BackendResult<bool> {
    let count = conn
        .prepare_cached("INSERT OR IGNORE INTO imported (session, record) VALUES (?1, ?2)")?
        .execute(params![session.key, record])?;
    Ok(count > 0)
}
