//! Replacing the content of a message in place.

use rusqlite::{Connection, params};

use super::append::Content;
use super::catalog;
use super::compaction;
use super::fault::{Outcome, corrupt};
use super::{index, message};
use crate::id::SessionId;
use crate::message::{Json, Message};
use crate::outcome::Updated;

/// Replaces role, parts, metadata and further fields; place, time and aside flag stay.
pub(super) fn update(
    conn: &Connection,
    name: &SessionId,
    message: &Message,
    max_bytes: usize,
) -> Outcome<Updated> {
    let session = catalog::find(conn, name)?.map(|session| session.key);
    let address = message::require(conn, session, name, &message.id)?;
    let stored = message::stored(conn, address)?.message;
    let mut stored =
        stored.ok_or_else(|| corrupt(format!("message {:?} has lost its row", message.id)))?;
    let overlays = compaction::covering(conn, address)?;
    let covered_by = overlays
        .iter()
        .map(|overlay| compaction::id_of(conn, overlay.key))
        .collect::<Outcome<_>>()?;
    stored.is_aside = message.is_aside;
    if stored.says_the_same(message) {
        return Ok(Updated { is_changed: false, covered_by });
    }
    let content = Content::of(message, max_bytes)?;
    index::refresh(conn, address)?;
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
