//! Writes the session that shows a transcript.
//!
//! The row of the transcript says how many of its entries the session shows, and the `version` of the session after the last
//! write: the sum of its counts of appends and of changes. Another sum means that others have changed it.
//!
//! Invariant: nothing that a session refuses fails the append of an entry.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::super::connection::Config;
use super::super::error::{BackendError, BackendResult};
use super::super::row::session::{self as session_row, SessionRow};
use super::super::tokens::CountedMessages;
use super::super::{append, catalog, compaction, erase, head, import, index, message, path};
use crate::error::Error;
use crate::id::{MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{Record, SessionDetails};
use crate::records::ids::{derive, session_id};
use crate::tokens::Counter;
use crate::transcript::{StoredTranscript, TranscriptKey};
use crate::tree::Address;

/// What is written to the session that shows a transcript.
pub(super) struct Write<'a> {
    pub(super) conn: &'a Connection,
    pub(super) config: &'a Config,
    /// The key of the transcript.
    pub(super) row: i64,
    /// The record of the session, and those of what is added to it.
    pub(super) records: &'a [Record],
}

impl Write<'_> {
    /// Writes the session, which shows this many entries then; returns how many messages were added.
    pub(super) fn run(
        &self,
        before: &StoredTranscript,
        entries: u64,
        replaces: bool,
        counted: &CountedMessages<'_>,
    ) -> BackendResult<u64> {
        let Self { conn, records, .. } = *self;
        let Some(Record::Session { id: own, details }) = records.first() else { return Ok(0) };
        let Some((id, mut session)) = self.session(own, before)? else { return Ok(0) };
        if session.deleted_at.is_some() {
            if erase::is_being_erased(conn, session.key)? {
                return Ok(0);
            }
            // It goes on, so it is wanted.
            conn.prepare_cached("UPDATE session SET deleted_at = NULL WHERE key = ?1")?
                .execute([session.key])?;
        }
        let mut labels = Vec::new();
        if replaces {
            labels = head::labels(conn, session.key)?;
            session = clear(conn, &id, session)?;
        }
        let first = session.next;
        let added = self.add_messages(&id, &mut session, counted)?;
        index::make_pending(conn, &mut session, first)?;
        let counter = Counter::default();
        for record in records {
            let Record::Compaction { compaction: summary, .. } = record else { continue };
            left_out(compaction::check_size(summary, self.config.max_message_bytes).and_then(
                |()| {
                    let tokens = counter.message(&summary.to_message(None));
                    compaction::add(conn, &session, &id, summary, tokens)
                },
            ))?;
        }
        for (label, _) in labels {
            if let Some(address) = message::find(conn, session.key, &label.id)? {
                head::copy_label(conn, session.key, &label.name, address)?;
            }
        }
        let head = records.iter().find_map(|record| match record {
            Record::Head { id } => id.as_ref(),
            _ => None,
        });
        if let Some(to) = head
            && let Some(to) = message::find(conn, session.key, to)?
        {
            let goes_on = match session.head {
                None => true,
                Some(at) => path::holds(conn, Some(to), at)?,
            };
            // Going on with the conversation cannot be undone.
            match goes_on {
                true => session.head = Some(to),
                false => head::move_to(conn, &mut session, Some(to))?,
            }
        }
        session.invalidate_visible_tokens();
        session_row::store(conn, &session)?;
        session_row::store_listed_at(conn, &mut session)?;
        if *details != SessionDetails::default() {
            let max = self.config.max_message_bytes;
            left_out(
                details
                    .check()
                    .map_err(BackendError::Own)
                    .and_then(|()| catalog::set_details(conn, session.key, details, max)),
            )?;
        }
        let version = session.next as i64 + session.changes;
        let version = Some(version).filter(|_| !before.is_session_changed);
        conn.prepare_cached(
            "UPDATE transcript SET shown_by = ?2, shown = ?3, version = ?4 WHERE key = ?1",
        )?
        .execute(params![self.row, session.key, entries, version])?;
        Ok(added)
    }

    /// Returns the session, which is created the first time; `None` if there can be none.
    fn session(
        &self,
        own: &SessionId,
        before: &StoredTranscript,
    ) -> BackendResult<Option<(SessionId, SessionRow)>> {
        let conn = self.conn;
        if let Some(id) = &before.session {
            return Ok(session_row::find(conn, id)?.map(|row| (id.clone(), row)));
        }
        let is_lost = before.shown > 0;
        if is_lost || left_out(erase::check_import(conn, own))?.is_none() {
            return Ok(None);
        }
        // That of another session stays its own.
        let TranscriptKey { project, session, subpath } = &before.key;
        let derived = derive(&["transcript", project, session, subpath]).to_string();
        for id in [own.clone(), session_id(format!("{project}/{own}")), derived.into()] {
            if session_row::find(conn, &id)?.is_none() {
                let row = catalog::create(conn, &id)?;
                return Ok(Some((id, row)));
            }
        }
        Ok(None)
    }

    /// Adds the messages, each below its parent: below the parent of one that is left out, and at the head if it was deleted.
    fn add_messages(
        &self,
        id: &SessionId,
        session: &mut SessionRow,
        counted: &CountedMessages<'_>,
    ) -> BackendResult<u64> {
        let (conn, mut added) = (self.conn, 0);
        let mut places: HashMap<&MessageId, Option<Address>> = HashMap::new();
        let messages = self.records.iter().filter_map(message_of);
        for (message, count) in messages.zip(counted.token_counts(conn)?) {
            let parent = match &message.parent {
                None => None,
                Some(parent) => match places.get(parent) {
                    Some(place) => *place,
                    None => message::find(conn, session.key, parent)?.or(session.head),
                },
            };
            let inserted =
                append::content(message, self.config.max_message_bytes).and_then(|content| {
                    append::insert(conn, session, id, parent, message, &content, count)
                });
            let address = left_out(inserted)?.flatten();
            if let Some(address) = address {
                import::note(conn, session, address, message, false)?;
                added += 1;
            }
            places.insert(&message.id, address.or(parent));
        }
        Ok(added)
    }
}

/// Returns the message of a record.
pub(super) fn message_of(record: &Record) -> Option<&Message> {
    match record {
        Record::Message { message, .. } => Some(message),
        _ => None,
    }
}

/// Returns `None` for what the session refuses; damage and errors of the system stay errors.
fn left_out<T>(done: BackendResult<T>) -> BackendResult<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(BackendError::Own(error)) if !matches!(error, Error::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes the messages of a session that are to be written again.
fn clear(conn: &Connection, id: &SessionId, session: SessionRow) -> BackendResult<SessionRow> {
    // The messages get new addresses, and their usage is recorded again.
    conn.prepare_cached("DELETE FROM usage WHERE session = ?1 AND address IS NOT NULL")?
        .execute([session.key])?;
    catalog::clear(conn, session.key)?;
    Ok(session_row::find(conn, id)?.unwrap_or(session))
}
