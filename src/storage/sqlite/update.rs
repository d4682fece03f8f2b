//! Replacing the content of a message in place.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rusqlite::Connection;

use super::append;
use super::compaction;
use super::context::elision;
use super::error::{BackendResult, corrupt};
use super::handle::Named;
use super::row::message::Content;
use super::row::session::{self as session_row, SessionRow};
use super::row::{self, Read};
use super::tokens::{CountedMessages, TokenCount};
use super::{index, mention, message, unfinished, usage};
use crate::message::Message;
use crate::outcome::Updated;
use crate::tree::Address;

/// Replaces role, parts, metadata and extra fields; parent, time and hidden flag do not change, nor does the mark of an unfinished
/// message, which only [`settle`](super::unfinished::settle) removes.
pub(super) fn update(
    conn: &Connection,
    name: &Named<'_>,
    message: &Message,
    counted: &CountedMessages<'_>,
    max_bytes: usize,
) -> BackendResult<Updated> {
    let session = name.find(conn)?;
    let address = message::require(conn, session.map(|session| session.key), name, &message.id)?;
    let message = match unfinished::is_unfinished(conn, address)? {
        true => Cow::Owned(message.clone().unfinished()),
        false => Cow::Borrowed(message),
    };
    let spans = compaction::covering(conn, &BTreeSet::from([address]))?;
    let covered_by =
        spans.iter().map(|span| compaction::id_of(conn, span.key)).collect::<BackendResult<_>>()?;
    let content = append::content(&message, max_bytes)?;
    if is_stored(conn, address, &content)? {
        return Ok(Updated { is_changed: false, covered_by });
    }
    let (Some(mut session), Some(count)) = (session, counted.token_counts(conn)?.next()) else {
        return Err(corrupt(format!("message {:?} belongs to no session", message.id)));
    };
    let is_indexed = index::remove_to_update(conn, &mut session, address)?;
    let had_elisions = elision::has_of(conn, address)?;
    elision::remove_changed(conn, address, &message)?;
    let is_plain = covered_by.is_empty() && !had_elisions && session.head == Some(address);
    recount(conn, &mut session, address, count, is_plain)?;
    mention::rename(conn, address, &message)?;
    row::execute(conn, REPLACE, &[&content, &count, &address])?;
    usage::record_changed(conn, address, &message)?;
    session_row::store(conn, &session)?;
    if is_indexed {
        index::add(conn, address)?;
    }
    Ok(Updated { is_changed: true, covered_by })
}

const REPLACE: &str = concat!(
    "UPDATE message SET ",
    content_columns!(assign),
    ", ",
    token_columns!(assign),
    " WHERE address = ?"
);

/// Keeps the session's count up to date, if the change alone determines it.
///
/// A message that is streamed grows at the head; counting the whole path on each update would be too slow.
fn recount(
    conn: &Connection,
    session: &mut SessionRow,
    address: Address,
    after: TokenCount,
    is_plain: bool,
) -> BackendResult<()> {
    let found = row::first_row(conn, COUNT_BEFORE, &[&address], |row| {
        Ok((row.get(0)?, TokenCount::read(row, 1)?))
    })?;
    let (is_hidden, before): (bool, TokenCount) =
        found.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let is_known =
        is_plain && before.counter == session.counter && after.counter == session.counter;
    let changed = |tokens: u64| match is_hidden {
        true => Some(tokens),
        false => tokens.checked_sub(before.tokens)?.checked_add(after.tokens),
    };
    // A concurrent count must not store an older total.
    session.changes = session.changes.wrapping_add(1);
    session.set_visible_tokens(session.visible_tokens.0.filter(|_| is_known).and_then(changed));
    Ok(())
}

const COUNT_BEFORE: &str =
    concat!("SELECT hidden", token_columns!(names), " FROM message WHERE address = ?1");

/// Returns whether the row holds exactly this content.
///
/// Text is compared, not values: two JSON texts that are equal as `f64` may hold different numbers.
fn is_stored(conn: &Connection, address: Address, content: &Content<'_>) -> BackendResult<bool> {
    let is_stored =
        row::first_row(conn, IS_STORED, &[&address, content, &address], |row| Ok(row.get(0)?))?;
    Ok(is_stored.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}

const IS_STORED: &str = concat!(
    "SELECT (address",
    content_columns!(names),
    ") IS (?",
    content_columns!(values),
    ") FROM message WHERE address = ?"
);
