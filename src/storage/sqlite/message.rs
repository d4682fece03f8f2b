//! Finding and reading one message.

use rusqlite::{Connection, OptionalExtension};

use super::compaction;
use super::error::{BackendError, BackendResult, corrupt};
use super::row::message::StoredMessage;
use super::tree_source::SessionTree;
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::tree::{Address, Stretch, Walk};

/// Returns the address of a message, if the session has it.
pub(super) fn find(
    conn: &Connection,
    session: i64,
    id: &MessageId,
) -> BackendResult<Option<Address>> {
    let address = conn
        .prepare_cached(BY_ID)?
        .query_row((session, id.as_str()), |row| row.get(0))
        .optional()?;
    Ok(address)
}

pub(super) const BY_ID: &str = "SELECT address FROM message WHERE session = ?1 AND id = ?2";

/// Returns the address of a message, or an error if the session does not have it.
pub(super) fn require(
    conn: &Connection,
    session: Option<i64>,
    name: &SessionId,
    id: &MessageId,
) -> BackendResult<Address> {
    let found = session.map(|session| find(conn, session, id)).transpose()?.flatten();
    found.ok_or_else(|| {
        BackendError::Own(Error::UnknownMessage { session: name.clone(), id: id.clone() })
    })
}

/// Returns the address of the place that an id names: of the message, or of the last message of a summary, which may be
/// a tombstone.
pub(super) fn place(
    conn: &Connection,
    session: Option<i64>,
    name: &SessionId,
    id: &MessageId,
) -> BackendResult<Address> {
    let Some(summary) = CompactionId::from_message(id) else {
        return require(conn, session, name, id);
    };
    let span = session.map(|session| compaction::find(conn, session, &summary)).transpose()?;
    span.flatten().map(|span| span.last).ok_or_else(|| {
        BackendError::Own(Error::UnknownMessage { session: name.clone(), id: id.clone() })
    })
}

/// Returns an id for a place: that of the message. For a tombstone it is that of the item that a history ends with
/// there: the nearest living ancestor, or the summary that covers it.
///
/// So the place that the id names has the same history as the tombstone.
pub(super) fn id_of_place(
    conn: &Connection,
    at: Option<Address>,
) -> BackendResult<Option<MessageId>> {
    let living = nearest_living(conn, at)?;
    let Some(at) = at.filter(|at| living.as_ref().is_none_or(|(address, _)| address != at)) else {
        return Ok(living.map(|(_, id)| id));
    };
    let mut tree = SessionTree::new(conn, at.session());
    let mut walk = Walk::visible(&mut tree, Some(at));
    while let Some(stretch) = walk.next()? {
        let reaches = |address: &Address| match stretch {
            Stretch::Messages { first, .. } => first <= *address,
            Stretch::Summary(span) => span.last <= *address,
        };
        if living.as_ref().is_some_and(|(address, _)| reaches(address)) {
            break;
        }
        if let Stretch::Summary(span) = stretch {
            return Ok(Some(compaction::id_of(conn, span.key)?.as_message()));
        }
    }
    Ok(living.map(|(_, id)| id))
}

pub(super) fn stored(conn: &Connection, address: Address) -> BackendResult<StoredMessage> {
    let mut statement = conn.prepare_cached(AT)?;
    let mut rows = statement.query([address])?;
    match rows.next()? {
        Some(row) => StoredMessage::read(row),
        None => Err(missing(address)),
    }
}

pub(super) const AT: &str =
    concat!("SELECT ", stored_columns!(), " FROM message WHERE address = ?1");

/// Returns the message at an address with its parent's id, or `None` for a tombstone.
pub(super) fn read(conn: &Connection, address: Address) -> BackendResult<Option<Message>> {
    let stored = stored(conn, address)?;
    let Some(mut message) = stored.message else { return Ok(None) };
    message.parent = nearest_living(conn, stored.parent)?.map(|(_, id)| id);
    Ok(Some(message))
}

/// Returns whether an address is a message or a tombstone.
pub(super) fn is_there(conn: &Connection, address: Address) -> BackendResult<bool> {
    let found = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM message WHERE address = ?1)")?
        .query_row([address], |row| row.get(0))?;
    Ok(found)
}

/// Returns the id of a row, `None` for a tombstone, and the address of its parent.
///
/// # Errors
/// If the parent is not older: a walk over parents would not end.
pub(super) fn id_at(
    conn: &Connection,
    address: Address,
) -> BackendResult<(Option<MessageId>, Option<Address>)> {
    let found = conn
        .prepare_cached(ID_AND_PARENT)?
        .query_row([address], |row| {
            Ok((row.get_ref(0)?.as_str_or_null()?.map(MessageId::from), row.get(1)?))
        })
        .optional()?;
    let (id, parent): (Option<MessageId>, Option<Address>) =
        found.ok_or_else(|| missing(address))?;
    if parent.is_some_and(|parent| parent >= address) {
        let what = format!("the parent of message {} is a newer message", address.n());
        return Err(corrupt(what));
    }
    Ok((id, parent))
}

pub(super) fn parent(conn: &Connection, address: Address) -> BackendResult<Option<Address>> {
    let parent = conn
        .prepare_cached("SELECT parent FROM message WHERE address = ?1")?
        .query_row([address], |row| row.get(0))
        .optional()?;
    parent.ok_or_else(|| missing(address))
}

/// Returns the message at this address, or its nearest ancestor that is not a tombstone.
pub(super) fn nearest_living(
    conn: &Connection,
    mut at: Option<Address>,
) -> BackendResult<Option<(Address, MessageId)>> {
    while let Some(address) = at {
        let (id, parent) = id_at(conn, address)?;
        if let Some(id) = id {
            return Ok(Some((address, id)));
        }
        at = parent;
    }
    Ok(None)
}

pub(super) const ID_AND_PARENT: &str = "SELECT id, parent FROM message WHERE address = ?1";

fn missing(address: Address) -> BackendError {
    corrupt(format!("message {} of session {} is missing", address.n(), address.session()))
}
