//! Pointers to messages: the head with its log, labels, and tags.
//!
//! The log is a list of places, one of which is the current one. The current place is the session's head itself, and
//! its row is written when the head leaves it. So an append at the head does not touch the log.

use super::catalog::list::unknown_place;
use super::connection::Database;
use super::message::id_of_place;
use super::row::session as session_row;
use super::row::session::{SessionRow, read_id};
use super::session::Named;
use super::{append, catalog, index, message};
use crate::catalog::{ListedMessage, MessageFilter, MessagePage};
use crate::error::{Error, Result};
use crate::id::{MessageId, check_label, label_is_id};
use crate::outcome::{HeadEntry, Label, MAX_TAGS, MessageTag, too_many_tags};
use crate::sql::{BackendError, BackendResult, Connection, Read, Row};
use crate::tree::Address;
use crate::view::ExpectedHead;

/// How many places before the current one are kept.
const MAX_ENTRIES: i64 = 1_000;

/// Moves the head to a new place after the current one, and drops the places that could be redone.
pub(super) fn move_to(
    conn: &Connection,
    row: &mut SessionRow,
    head: Option<Address>,
) -> BackendResult<()> {
    if row.head == head {
        return Ok(());
    }
    conn.run(
        "DELETE FROM head_log WHERE session = ?1 AND position > ?2",
        (row.key, row.head_position),
    )?;
    leave(conn, row)?;
    row.head_position += 1;
    row.head = head;
    row.invalidate_visible_tokens();
    conn.run(
        "DELETE FROM head_log WHERE session = ?1 AND position < ?2",
        (row.key, row.head_position - MAX_ENTRIES),
    )?;
    Ok(())
}

/// Moves the head one place back (`-1`) or forward (`1`) in the log; `false` if there is none.
pub(crate) fn step(conn: &Connection, name: &Named<'_>, by: i64) -> BackendResult<bool> {
    let Some(mut row) = name.find(conn)? else { return Ok(false) };
    let row = &mut row;
    let target: Option<Option<Address>> = conn.first(
        "SELECT address FROM head_log WHERE session = ?1 AND position = ?2",
        (row.key, row.head_position + by),
    )?;
    let Some(target) = target else { return Ok(false) };
    leave(conn, row)?;
    row.head_position += by;
    row.head = target;
    row.invalidate_visible_tokens();
    session_row::store(conn, row)?;
    Ok(true)
}

/// Moves the head to a message or before the first one, if it is where it is expected.
pub(crate) fn checkout(
    conn: &Connection,
    name: &Named<'_>,
    expected: &ExpectedHead,
    id: Option<&MessageId>,
) -> BackendResult<()> {
    let session = name.find(conn)?;
    if let ExpectedHead::At(expected) = expected {
        let moved = match &session {
            Some(session) => append::head_moved(conn, session, name, expected.as_ref())?,
            None => expected
                .clone()
                .map(|expected| Error::HeadMoved { expected: Some(expected), found: None }),
        };
        if let Some(moved) = moved {
            return Err(BackendError::Own(moved));
        }
    }
    let key = session.as_ref().map(|session| session.key);
    let target = id.map(|id| message::place(conn, key, name, id)).transpose()?;
    let Some(mut session) = session else { return Ok(()) };
    move_to(conn, &mut session, target)?;
    session_row::store(conn, &session)
}

/// Writes the current place into the log.
fn leave(conn: &Connection, row: &SessionRow) -> BackendResult<()> {
    conn.run(
        "INSERT INTO head_log (session, position, address, moved_at)
         VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (session, position)
         DO UPDATE SET address = excluded.address, moved_at = excluded.moved_at",
        (row.key, row.head_position, row.head, crate::clock::now().timestamp_micros()),
    )?;
    Ok(())
}

/// Returns the log, oldest place first.
pub(crate) fn log(conn: &Connection, row: &SessionRow) -> BackendResult<Vec<HeadEntry>> {
    let places = places(conn, row)?;
    places
        .into_iter()
        .map(|(position, address)| {
            Ok(HeadEntry {
                id: id_of_place(conn, address)?,
                is_present: position == row.head_position,
            })
        })
        .collect()
}

/// Returns all places of the log, the current one included.
fn places(conn: &Connection, row: &SessionRow) -> BackendResult<Vec<(i64, Option<Address>)>> {
    let mut places: Vec<(i64, Option<Address>)> = conn.rows(
        "SELECT position, address
           FROM head_log
          WHERE session = ?1 AND position <> ?2
          ORDER BY position",
        (row.key, row.head_position),
    )?;
    let present = places.partition_point(|(position, _)| *position < row.head_position);
    places.insert(present, (row.head_position, row.head));
    Ok(places)
}

/// Moves places on removed rows, the head included, to the address that `survivor` returns, and merges neighbours
/// that become equal.
pub(super) fn relocate(
    conn: &Connection,
    row: &mut SessionRow,
    survivor: impl Fn(Option<Address>) -> Option<Address>,
) -> BackendResult<()> {
    let places = places(conn, row)?;
    if places.iter().all(|(_, address)| survivor(*address) == *address) {
        return Ok(());
    }
    let mut kept: Vec<Option<Address>> = Vec::new();
    let mut present = 0;
    for (position, address) in places {
        let address = survivor(address);
        if kept.last() != Some(&address) {
            kept.push(address);
        }
        if position == row.head_position {
            present = kept.len() - 1;
        }
    }
    conn.run("DELETE FROM head_log WHERE session = ?1", row.key)?;
    let now = crate::clock::now().timestamp_micros();
    for (position, address) in kept.iter().enumerate().filter(|(at, _)| *at != present) {
        conn.run(
            "INSERT INTO head_log (session, position, address, moved_at) VALUES (?1, ?2, ?3, ?4)",
            (row.key, position as i64, address, now),
        )?;
    }
    row.head_position = present as i64;
    row.head = kept[present];
    Ok(())
}

/// Sets a label on a message, moving it if it exists.
///
/// # Errors
/// [`Error::InvalidValue`] if the name means something else already: whoever types it would get that.
pub(crate) fn label(
    conn: &Connection,
    this: &Named<'_>,
    name: &str,
    id: Option<&MessageId>,
) -> BackendResult<()> {
    let session = this.find(conn)?;
    let key = session.map(|session| session.key);
    let target = id.map(|id| message::place(conn, key, this, id)).transpose()?;
    let Some(session) = session else { return Ok(()) };
    match message::nearest_living(conn, target)?.map(|(address, _)| address) {
        Some(address) => set_label(conn, session.key, name, address)?,
        None => remove_label(conn, session.key, name)?,
    }
    catalog::touch(conn, session.key)
}

/// Sets a label at an address.
pub(super) fn set_label(
    conn: &Connection,
    session: i64,
    name: &str,
    address: Address,
) -> BackendResult<()> {
    check_label(name)?;
    if message::find(conn, session, &MessageId::from(name))?.is_some() {
        return Err(BackendError::Own(label_is_id(name)));
    }
    copy_label(conn, session, name, address)
}

/// Sets a label that another session has, whatever it is called: a fork never fails for the label of an older build.
pub(super) fn copy_label(
    conn: &Connection,
    session: i64,
    name: &str,
    address: Address,
) -> BackendResult<()> {
    conn.run(
        "INSERT INTO label (session, name, address) VALUES (?1, ?2, ?3)
         ON CONFLICT (session, name) DO UPDATE SET address = excluded.address",
        (session, name, address),
    )?;
    Ok(())
}

fn remove_label(conn: &Connection, session: i64, name: &str) -> BackendResult<()> {
    conn.run("DELETE FROM label WHERE session = ?1 AND name = ?2", (session, name))?;
    Ok(())
}

/// Removes the labels of a range of messages.
pub(super) fn remove_labels(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    conn.run(
        "DELETE FROM label WHERE session = CAST(?1 AS BIGINT) >> 32 AND address BETWEEN ?1 AND ?2",
        (first, last),
    )?;
    Ok(())
}

/// Returns the message that a label names.
pub(crate) fn labelled(
    conn: &Connection,
    session: i64,
    name: &str,
) -> BackendResult<Option<MessageId>> {
    let id: Option<String> = conn.first(LABELLED, (session, name))?;
    Ok(id.map(MessageId::from))
}

pub(super) const LABELLED: &str = "SELECT message.id
   FROM label
   JOIN message ON message.address = label.address
  WHERE label.session = ?1 AND label.name = ?2 AND message.id IS NOT NULL";

/// Returns the labels of a session, sorted by name.
pub(crate) fn labels(conn: &Connection, session: i64) -> BackendResult<Vec<(Label, Address)>> {
    let found: Vec<(String, String, Address)> = conn.rows(LABELS, session)?;
    let label = |(name, id, address)| (Label { name, id: MessageId::from(id) }, address);
    Ok(found.into_iter().map(label).collect())
}

const LABELS: &str = "SELECT label.name, message.id, label.address
   FROM label
   JOIN message ON message.address = label.address
  WHERE label.session = ?1
    AND message.id IS NOT NULL
  ORDER BY label.name";

/// The most messages of one page.
const MAX_PAGE: usize = 1_000;

/// Adds a tag to a message; one that it has is a no-op.
pub(crate) fn tag(
    conn: &Connection,
    name: &Named<'_>,
    id: &MessageId,
    tag: &str,
) -> BackendResult<()> {
    let session = name.find(conn)?.map(|session| session.key);
    let address = message::require(conn, session, name, id)?;
    conn.run(
        "INSERT INTO message_tag (address, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        (address, tag),
    )?;
    index::refresh(conn, address)?;
    match tagged_of(conn, address)?.len() <= MAX_TAGS {
        true => catalog::touch(conn, address.session()),
        false => Err(BackendError::Own(too_many_tags("message", tag))),
    }
}

pub(crate) fn untag(
    conn: &Connection,
    name: &Named<'_>,
    id: &MessageId,
    tag: &str,
) -> BackendResult<()> {
    let session = name.find(conn)?.map(|session| session.key);
    let address = message::require(conn, session, name, id)?;
    conn.run("DELETE FROM message_tag WHERE address = ?1 AND tag = ?2", (address, tag))?;
    index::refresh(conn, address)?;
    catalog::touch(conn, address.session())
}

/// Removes the tags of a range of messages.
pub(super) fn remove_tags(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    conn.run("DELETE FROM message_tag WHERE address BETWEEN ?1 AND ?2", (first, last))?;
    Ok(())
}

/// Copies the tags of a range of messages, for a fork.
pub(super) fn copy_tags(
    conn: &Connection,
    first: Address,
    last: Address,
    shift: i64,
) -> BackendResult<()> {
    conn.run(COPY_TAGS, (first, last, shift))?;
    Ok(())
}

const COPY_TAGS: &str = "INSERT INTO message_tag (address, tag)
 SELECT address + ?3, tag FROM message_tag WHERE address BETWEEN ?1 AND ?2";

/// Returns the tags of a message, sorted.
fn tagged_of(conn: &Connection, address: Address) -> BackendResult<Vec<String>> {
    conn.rows("SELECT tag FROM message_tag WHERE address = ?1 ORDER BY tag", address)
}

/// Returns the tags of a range of messages, in the order of the messages, each sorted.
pub(crate) fn tags_of(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<Vec<MessageTag>> {
    let found: Vec<(String, String)> = conn.rows(TAGS_OF, (first, last))?;
    let tag = |(id, tag)| MessageTag { message: MessageId::from(id), tag };
    Ok(found.into_iter().map(tag).collect())
}

const TAGS_OF: &str = "SELECT message.id, message_tag.tag
   FROM message_tag
  CROSS JOIN message NOT INDEXED
  WHERE message.address = message_tag.address
    AND message_tag.address BETWEEN ?1 AND ?2
    AND message.id IS NOT NULL
  ORDER BY message_tag.address, message_tag.tag";

impl Database {
    /// Returns at most `limit` messages that a filter shows, in the order of their addresses.
    pub(crate) fn list_messages(
        &self,
        filter: &MessageFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<MessagePage> {
        filter.check()?;
        self.read(|conn| list(conn, filter, after, limit.min(MAX_PAGE)))
    }
}

fn list(
    conn: &Connection,
    filter: &MessageFilter,
    after: Option<&str>,
    limit: usize,
) -> BackendResult<MessagePage> {
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    if let Some(id) = &filter.session {
        let Some(session) = session_row::find(conn, id)? else {
            return Ok(MessagePage::default());
        };
        (low, high) =
            (Address::range_of(session.key).0.raw(), Address::range_of(session.key).1.raw());
    }
    if let Some(after) = after {
        let after: i64 =
            after.parse().map_err(|_| unknown_place("place in a list of messages", after))?;
        low = low.max(after.saturating_add(1));
    }
    // One more than asked for, which says whether there is another page.
    let place = (low, high, filter.includes_trash, limit.saturating_add(1));
    let read = |row: &Row<'_>| {
        let address = Address::read(row, 0)?;
        Ok((address, read_id(row, 1, address.session())?))
    };
    let found = match (&filter.tag, &filter.author) {
        (Some(tag), author) => conn.rows_with(TAGGED, (place, tag, author), read),
        (None, Some(author)) => conn.rows_with(BY_AUTHOR, (place, author), read),
        (None, None) => conn.rows_with(LISTED, place, read),
    }?;
    let mut page = MessagePage::default();
    let mut last = None;
    for (address, session) in found {
        if page.messages.len() == limit {
            page.after = last;
            break;
        }
        let Some(message) = message::read(conn, address)? else { continue };
        last = Some(address.raw().to_string());
        page.messages.push(ListedMessage::new(session, message, tagged_of(conn, address)?));
    }
    Ok(page)
}

/// The messages under a condition. `?1` and `?2` are the first and the last address, `?3` is 1 if sessions in the trash
/// count, `?4` how many are read, `?5` a tag or an author, and `?6` beside a tag an author.
macro_rules! messages {
    ($address:literal, $from:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            $address,
            ", session.id
   FROM ",
            $from,
            "
  CROSS JOIN session
  WHERE session.key = message.address >> 32
    AND ",
            $condition,
            "
    AND message.id IS NOT NULL
    AND (session.deleted_at IS NULL OR CAST(?3 AS BIGINT) = 1)
  ORDER BY 1
  LIMIT ?4"
        )
    };
}

pub(super) const TAGGED: &str = messages!(
    "message_tag.address",
    "message_tag CROSS JOIN message NOT INDEXED",
    "message.address = message_tag.address
    AND message_tag.tag = ?5
    AND message_tag.address BETWEEN ?1 AND ?2
    AND (CAST(?6 AS TEXT) IS NULL OR message.author = ?6)"
);

pub(super) const BY_AUTHOR: &str = messages!(
    "message.address",
    "message INDEXED BY message_author",
    "message.author = ?5
    AND message.author IS NOT NULL
    AND message.address BETWEEN ?1 AND ?2"
);

pub(super) const LISTED: &str =
    messages!("message.address", "message", "message.address BETWEEN ?1 AND ?2");
