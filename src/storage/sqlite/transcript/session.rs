//! Writes the session that shows a transcript, with the engine of imports.
//!
//! The row of the transcript says how many of its entries the session shows, and the `version` of the session after the last
//! write: the sum of its counts of appends and of changes. Another sum means that others have changed it.
//!
//! Invariant: nothing that a session refuses fails the append of an entry.

use super::super::connection::Config;
use super::super::import::Import;
use super::super::row::session as session_row;
use super::super::{catalog, erase, fork, head, message};
use crate::id::SessionId;
use crate::outcome::Record;
use crate::records::ids::{derive, session_id};
use crate::sql::{BackendResult, Connection};
use crate::tokens::Counter;
use crate::transcript::{StoredTranscript, TranscriptKey};

/// Writes what is derived of a transcript, all of whose entries the session shows then; returns how many messages were added.
/// `replaces` deletes the messages before, which are written again.
pub(super) fn write(
    conn: &Connection,
    config: &Config,
    before: &StoredTranscript,
    after: &StoredTranscript,
    (records, replaces): (Vec<Record>, bool),
) -> BackendResult<u64> {
    let mut records = records.into_iter();
    let Some(Record::Session { id: own, details }) = records.next() else { return Ok(0) };
    let Some(id) = session(conn, &own, before)? else { return Ok(0) };
    let mut labels = Vec::new();
    if let Some(session) = session_row::find(conn, &id)? {
        if session.deleted_at.is_some() {
            // It goes on, so it is wanted.
            conn.run("UPDATE session SET deleted_at = NULL WHERE key = ?1", session.key)?;
        }
        if replaces {
            labels = head::labels(conn, session.key)?;
            // The messages get new addresses, and their usage is recorded again.
            conn.run("DELETE FROM usage WHERE session = ?1 AND address IS NOT NULL", session.key)?;
            catalog::clear(conn, session.key)?;
        }
    }
    let counter = Counter::default();
    let Some(mut import) = left_out(Import::derived(conn, config, &counter, &id))? else {
        return Ok(0);
    };
    for record in std::iter::once(Record::Session { id: id.clone(), details }).chain(records) {
        left_out(import.take(record))?;
    }
    let added = import.close()?.map_or(0, |(_, added)| added);
    let Some(session) = session_row::find(conn, &id)? else { return Ok(0) };
    if replaces {
        fork::follow(conn, session.key)?;
    }
    for (label, _) in labels {
        if let Some(address) = message::find(conn, session.key, &label.id)? {
            head::copy_label(conn, session.key, &label.name, address)?;
        }
    }
    let version = session.next as i64 + session.changes;
    let version = Some(version).filter(|_| !before.is_session_changed);
    conn.run(
        "UPDATE transcript SET shown_by = ?2, shown = ?3, version = ?4 WHERE key = ?1",
        (after.number, session.key, after.entries, version),
    )?;
    Ok(added)
}

/// Returns the id of the session; that of another one stays its own. `None` if there can be none.
fn session(
    conn: &Connection,
    own: &SessionId,
    before: &StoredTranscript,
) -> BackendResult<Option<SessionId>> {
    if before.session.is_some() {
        return Ok(before.session.clone());
    }
    let is_lost = before.shown > 0;
    if is_lost || left_out(erase::check_import(conn, own))?.is_none() {
        return Ok(None);
    }
    let TranscriptKey { project, session, subpath } = &before.key;
    let derived = derive(&["transcript", project, session, subpath]).to_string();
    for id in [own.clone(), session_id(format!("{project}/{own}")), derived.into()] {
        if session_row::find(conn, &id)?.is_none() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Returns `None` for what the session refuses; damage and errors of the system stay errors.
fn left_out<T>(done: BackendResult<T>) -> BackendResult<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.is_refusal() => Ok(None),
        Err(error) => Err(error),
    }
}
