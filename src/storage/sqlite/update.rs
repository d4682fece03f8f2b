//! Replacing the content of a message in place.

use rusqlite::{Connection, params};

use super::append::Content;
use super::catalog;
use super::compaction;
use super::context::elision;
use super::fault::Outcome;
use super::{index, message};
use crate::id::SessionId;
use crate::message::{Json, Message};
use crate::outcome::Updated;
use crate::tree::Address;

/// Replaces role, parts, metadata and further fields; place, time and aside flag stay.
pub(super) fn update(
    conn: &Connection,
    name: &SessionId,
    message: &Message,
    max_bytes: usize,
) -> Outcome<Updated> {
    let session = catalog::find(conn, name)?.map(|session| session.key);
    let address = message::require(conn, session, name, &message.id)?;
    let overlays = compaction::covering(conn, address)?;
    let covered_by = overlays
        .iter()
        .map(|overlay| compaction::id_of(conn, overlay.key))
        .collect::<Outcome<_>>()?;
    let content = Content::of(message, max_bytes)?;
    if is_stored(conn, address, message, &content)? {
        return Ok(Updated { is_changed: false, covered_by });
    }
    index::refresh(conn, address)?;
    elision::forget_changed(conn, address, message)?;
    conn.prepare_cached(
        "UPDATE message
            SET role = ?2, parts = ?3, metadata = ?4, extra = ?5, tokens = ?6
          WHERE address = ?1",
    )?
    .execute(params![
        address,
        message.role.as_str(),
        content.parts,
        message.metadata.as_ref().map(Json::as_str),
        content.extra,
        message.tokens(),
    ])?;
    catalog::touch(conn, address.session())?;
    Ok(Updated { is_changed: true, covered_by })
}

/// Returns whether the row holds this very content.
///
/// Text by text: JSON that means the same to a reader of `f64` may still be another number.
fn is_stored(
    conn: &Connection,
    address: Address,
    message: &Message,
    content: &Content,
) -> Outcome<bool> {
    let is_stored = conn
        .prepare_cached(
            "SELECT role = ?2 AND parts = ?3 AND metadata IS ?4 AND extra IS ?5
               FROM message
              WHERE address = ?1",
        )?
        .query_row(
            params![
                address,
                message.role.as_str(),
                content.parts,
                message.metadata.as_ref().map(Json::as_str),
                content.extra,
            ],
            |row| row.get(0),
        )?;
    Ok(is_stored)
}
