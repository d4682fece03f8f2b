//! Labels: named pointers to messages.

use rusqlite::{Connection, OptionalExtension, params};

use super::error::{BackendError, BackendResult};
use super::message;
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::id::{MessageId, check_label, label_is_id};
use crate::outcome::Label;
use crate::tree::Address;

/// Sets a label on a message, moving it if it exists.
///
/// # Errors
/// [`Error::InvalidValue`] if the name means something else already: whoever types it would get that.
pub(super) fn set(
    conn: &Connection,
    session: i64,
    name: &str,
    address: Address,
) -> BackendResult<()> {
    check_label(name)?;
    if message::find(conn, session, &MessageId::from(name))?.is_some() {
        return Err(BackendError::Own(label_is_id(name)));
    }
    copy(conn, session, name, address)
}

/// Sets a label that another session has, whatever it is called: a fork never fails for the label of an older build.
pub(super) fn copy(
    conn: &Connection,
    session: i64,
    name: &str,
    address: Address,
) -> BackendResult<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO label (session, name, address) VALUES (?1, ?2, ?3)",
    )?
    .execute(params![session, name, address])?;
    Ok(())
}

pub(super) fn remove(conn: &Connection, session: i64, name: &str) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM label WHERE session = ?1 AND name = ?2")?
        .execute(params![session, name])?;
    Ok(())
}

/// Removes the labels of a range of messages.
pub(super) fn remove_range(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    conn.prepare_cached(
        "DELETE FROM label WHERE session = ?1 >> 32 AND address BETWEEN ?1 AND ?2",
    )?
    .execute([first, last])?;
    Ok(())
}

/// Returns the message that a label names.
pub(super) fn find(
    conn: &Connection,
    session: i64,
    name: &str,
) -> BackendResult<Option<MessageId>> {
    let mut statement = conn.prepare_cached(NAMED)?;
    let id = statement.query_row(params![session, name], |row| row.get::<_, String>(0));
    Ok(id.optional()?.map(MessageId::from))
}

pub(super) const NAMED: &str = "SELECT message.id
   FROM label
   JOIN message ON message.address = label.address
  WHERE label.session = ?1 AND label.name = ?2 AND message.id IS NOT NULL";

/// Returns the labels of a session, sorted by name.
pub(super) fn all(conn: &Connection, session: i64) -> BackendResult<Vec<(Label, Address)>> {
    let mut statement = conn.prepare_cached(
        "SELECT label.name, message.id, label.address
           FROM label
           JOIN message ON message.address = label.address
          WHERE label.session = ?1 AND message.id IS NOT NULL
          ORDER BY label.name",
    )?;
    let labels = statement.query_map([session], |row| {
        let id = MessageId::from(row.get::<_, String>(1)?);
        Ok((Label { name: row.get(0)?, id }, row.get(2)?))
    })?;
    Ok(labels.collect::<rusqlite::Result<_>>()?)
}
