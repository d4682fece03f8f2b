//! Replacing the content of a message in place.

use rusqlite::{Connection, params};

use super::append::Content;
use super::catalog::{self, SessionRow};
use super::compaction;
use super::context::elision;
use super::fault::{Outcome, corrupt};
use super::stamp::{Counted, Stamp};
use super::{index, message};
use crate::id::SessionId;
use crate::message::{Json, Message};
use crate::outcome::Updated;
use crate::tree::Address;

/// Replaces role, parts, metadata and further fields; place, time and hidden flag stay.
pub(super) fn update(
    conn: &Connection,
    name: &SessionId,
    message: &Message,
    counted: &Counted<'_>,
    max_bytes: usize,
) -> Outcome<Updated> {
    let session = catalog::find(conn, name)?;
    let address = message::require(conn, session.map(|session| session.key), name, &message.id)?;
    let spans = compaction::covering(conn, address)?;
    let covered_by =
        spans.iter().map(|span| compaction::id_of(conn, span.key)).collect::<Outcome<_>>()?;
    let content = Content::of(message, max_bytes)?;
    if is_stored(conn, address, message, &content)? {
        return Ok(Updated { is_changed: false, covered_by });
    }
    index::refresh(conn, address)?;
    let had_elisions = elision::has_of(conn, address)?;
    elision::forget_changed(conn, address, message)?;
    let (Some(mut session), Some(stamp)) = (session, counted.stamps(conn)?.next()) else {
        return Err(corrupt(format!("message {:?} is in no session", message.id)));
    };
    let is_plain = covered_by.is_empty() && !had_elisions && session.head == Some(address);
    recount(conn, &mut session, address, stamp, is_plain)?;
    conn.prepare_cached(
        "UPDATE message
            SET role = ?2, parts = ?3, metadata = ?4, extra = ?5, tokens = ?6, counter = ?7
          WHERE address = ?1",
    )?
    .execute(params![
        address,
        message.role.as_str(),
        content.parts,
        message.metadata.as_ref().map(Json::as_str),
        content.extra,
        stamp.tokens,
        stamp.counter,
    ])?;
    catalog::store(conn, &session)?;
    Ok(Updated { is_changed: true, covered_by })
}

/// Keeps the count of what a model sees up to date, where the change alone tells it.
///
/// What is written as it comes grows at the head: it should not cost counting all of it each time.
fn recount(
    conn: &Connection,
    session: &mut SessionRow,
    address: Address,
    stamp: Stamp,
    is_plain: bool,
) -> Outcome<()> {
    let (before, is_hidden): (Stamp, bool) = conn
        .prepare_cached("SELECT tokens, counter, hidden FROM message WHERE address = ?1")?
        .query_row([address], |row| {
            Ok((Stamp { tokens: row.get(0)?, counter: row.get(1)? }, row.get(2)?))
        })?;
    let is_known =
        is_plain && before.counter == session.counter && stamp.counter == session.counter;
    let changed = |tokens: u64| match is_hidden {
        true => Some(tokens),
        false => tokens.checked_sub(before.tokens)?.checked_add(stamp.tokens),
    };
    // Whoever counts at this moment must not put an older figure in its place.
    session.changes = session.changes.wrapping_add(1);
    session.note_count(session.visible_tokens.filter(|_| is_known).and_then(changed));
    Ok(())
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
