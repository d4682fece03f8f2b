//! Storing historical messages as they are.
//!
//! An export has the messages of a fork and those of the session that was forked. A message that is in both becomes a copy
//! again, as the fork had made it: its usage counts once, a search finds it once, and an erasure finds every copy.

use rusqlite::{Connection, OptionalExtension, params};

use super::append;
use super::error::BackendResult;
use super::handle::Named;
use super::row::message::Content;
use super::row::session::{self as session_row, SessionRow};
use super::tokens::CountedMessages;
use super::{erase, index, message, usage};
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
    let forked = forked_session(conn, session.key)?;
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
        let is_copy = make_copy(conn, address, &record.message.id, &content, forked)?;
        note(conn, &mut session, address, &record.message, is_copy)?;
        before = Some((record.message.id.clone(), address));
        imported.push(Imported::Added);
    }
    if imported.contains(&Imported::Added) {
        index::make_pending(conn, &mut session, first_new)?;
        session_row::store(conn, &session)?;
        session_row::store_listed_at(conn, &mut session)?;
    }
    Ok(imported)
}

/// Returns the key of the session that a session was forked from, if the store has it.
fn forked_session(conn: &Connection, session: i64) -> BackendResult<Option<i64>> {
    let key = conn.prepare_cached(FORKED)?.query_row([session], |row| row.get(0)).optional()?;
    Ok(key)
}

const FORKED: &str = "SELECT forked.key
   FROM session
  CROSS JOIN session AS forked ON forked.id = session.parent_session
  WHERE session.key = ?1";

/// Notes the time of a message that was added, and its usage; that of a copy is noted with the original.
pub(super) fn note(
    conn: &Connection,
    session: &mut SessionRow,
    address: Address,
    message: &Message,
    is_copy: bool,
) -> BackendResult<()> {
    // Records may come in any order.
    let last = session.last_message_at;
    session.note_message_at(message.created_at.timestamp_micros());
    session.last_message_at = session.last_message_at.max(last);
    if is_copy { Ok(()) } else { usage::record(conn, address, message) }
}

/// Makes a message that was added a copy if the forked session has it with the same content; returns whether it is one.
pub(super) fn make_copy(
    conn: &Connection,
    address: Address,
    id: &MessageId,
    content: &Content<'_>,
    forked: Option<i64>,
) -> BackendResult<bool> {
    let Some(forked) = forked else { return Ok(false) };
    let Some(original) = message::find(conn, forked, id)? else { return Ok(false) };
    let origin: Option<Address> = conn
        .prepare_cached(ORIGIN)?
        .query_row(params![original, content.role, content.parts], |row| row.get(0))
        .optional()?;
    if let Some(origin) = origin {
        conn.prepare_cached("UPDATE message SET origin = ?2 WHERE address = ?1")?
            .execute(params![address, origin])?;
    }
    Ok(origin.is_some())
}

const ORIGIN: &str = "SELECT coalesce(origin, address)
   FROM message
  WHERE address = ?1 AND role = ?2 AND parts = ?3";

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
