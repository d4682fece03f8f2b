//! One message: finding it, reading its row.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Row};

use super::fault::{Fault, Outcome, corrupt, damaged};
use crate::error::Error;
use crate::id::{MessageId, SessionId};
use crate::message::{Json, Message, Role, extra_from_text, parts_from_text};
use crate::tree::Address;

/// A row of the message table. A tombstone has no message.
pub(super) struct StoredMessage {
    pub(super) address: Address,
    pub(super) parent: Option<Address>,
    pub(super) message: Option<Message>,
}

impl StoredMessage {
    /// Reads a row of `address, parent, id, role, parts, metadata, extra, hidden, created_at`; the
    /// message's `parent` is not set.
    pub(super) fn read(row: &Row<'_>) -> Outcome<Self> {
        let address: Address = row.get(0)?;
        Self::read_at(row, address).map_err(damaged(format_args!(
            "message {} of session {}",
            address.n(),
            address.session()
        )))
    }

    fn read_at(row: &Row<'_>, address: Address) -> Outcome<Self> {
        let parent = row.get(1)?;
        let Some(id) = row.get_ref(2)?.as_str_or_null()? else {
            return Ok(Self { address, parent, message: None });
        };
        let message = Message {
            id: MessageId::from(id),
            parent: None,
            role: Role::from(row.get_ref(3)?.as_str()?),
            parts: parts_from_text(row.get_ref(4)?.as_str()?)?,
            metadata: row.get_ref(5)?.as_str_or_null()?.map(Json::parse).transpose()?,
            created_at: time(row.get(8)?)?,
            is_hidden: row.get(7)?,
            extra: extra_from_text(row.get_ref(6)?.as_str_or_null()?)?,
        };
        Ok(Self { address, parent, message: Some(message) })
    }
}

/// Returns the time of a column.
pub(super) fn time(micros: i64) -> Outcome<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| corrupt(format!("{micros} is no time in microseconds")))
}

/// Returns the address of a message, if it is in the session.
pub(super) fn find(conn: &Connection, session: i64, id: &MessageId) -> Outcome<Option<Address>> {
    let address = conn
        .prepare_cached(BY_ID)?
        .query_row((session, id.as_str()), |row| row.get(0))
        .optional()?;
    Ok(address)
}

pub(super) const BY_ID: &str = "SELECT address FROM message WHERE session = ?1 AND id = ?2";

/// Returns the address of a message that must be in the session.
pub(super) fn require(
    conn: &Connection,
    session: Option<i64>,
    name: &SessionId,
    id: &MessageId,
) -> Outcome<Address> {
    let found = session.map(|session| find(conn, session, id)).transpose()?.flatten();
    found.ok_or_else(|| Fault::Own(Error::UnknownMessage { session: name.clone(), id: id.clone() }))
}

/// Returns the row at an address.
pub(super) fn stored(conn: &Connection, address: Address) -> Outcome<StoredMessage> {
    let mut statement = conn.prepare_cached(AT)?;
    let mut rows = statement.query([address])?;
    match rows.next()? {
        Some(row) => StoredMessage::read(row),
        None => Err(missing(address)),
    }
}

pub(super) const AT: &str =
    "SELECT address, parent, id, role, parts, metadata, extra, hidden, created_at
   FROM message
  WHERE address = ?1";

/// Returns the message at an address with its parent's id, or `None` for a tombstone.
pub(super) fn read(conn: &Connection, address: Address) -> Outcome<Option<Message>> {
    let stored = stored(conn, address)?;
    let Some(mut message) = stored.message else { return Ok(None) };
    message.parent = nearest_living(conn, stored.parent)?.map(|(_, id)| id);
    Ok(Some(message))
}

/// Returns whether a place holds a message or a tombstone.
pub(super) fn is_there(conn: &Connection, address: Address) -> Outcome<bool> {
    let found = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM message WHERE address = ?1)")?
        .query_row([address], |row| row.get(0))?;
    Ok(found)
}

/// Returns what a message hangs from.
pub(super) fn parent(conn: &Connection, address: Address) -> Outcome<Option<Address>> {
    let parent = conn
        .prepare_cached("SELECT parent FROM message WHERE address = ?1")?
        .query_row([address], |row| row.get(0))
        .optional()?;
    parent.ok_or_else(|| missing(address))
}

/// Returns the message at this address or, above tombstones, the nearest one.
pub(super) fn nearest_living(
    conn: &Connection,
    mut at: Option<Address>,
) -> Outcome<Option<(Address, MessageId)>> {
    let mut statement = conn.prepare_cached(ID_AND_PARENT)?;
    while let Some(address) = at {
        let found = statement
            .query_row([address], |row| {
                Ok((row.get_ref(0)?.as_str_or_null()?.map(MessageId::from), row.get(1)?))
            })
            .optional()?;
        let (id, parent): (Option<MessageId>, Option<Address>) =
            found.ok_or_else(|| missing(address))?;
        if let Some(id) = id {
            return Ok(Some((address, id)));
        }
        if parent.is_some_and(|parent| parent >= address) {
            return Err(corrupt(format!("message {} hangs from a newer one", address.n())));
        }
        at = parent;
    }
    Ok(None)
}

pub(super) const ID_AND_PARENT: &str = "SELECT id, parent FROM message WHERE address = ?1";

fn missing(address: Address) -> Fault {
    corrupt(format!("message {} of session {} is missing", address.n(), address.session()))
}
