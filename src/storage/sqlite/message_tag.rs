//! The tags of messages, and the messages of an author or with a tag.

use rusqlite::{Connection, params};

use super::catalog::list::unknown_place;
use super::connection::Database;
use super::error::{BackendError, BackendResult};
use super::row::session::{self as session_row, read_id};
use super::{index, message};
use crate::catalog::{ListedMessage, MessageFilter, MessagePage};
use crate::error::Result;
use crate::id::MessageId;
use crate::outcome::{MAX_TAGS, MessageTag, too_many_tags};
use crate::tree::Address;

/// The most messages of one page.
const MAX_PAGE: usize = 1_000;

/// Adds a tag to a message; one that it has is a no-op.
pub(super) fn add(conn: &Connection, address: Address, tag: &str) -> BackendResult<()> {
    conn.prepare_cached("INSERT OR IGNORE INTO message_tag (address, tag) VALUES (?1, ?2)")?
        .execute(params![address, tag])?;
    index::refresh(conn, address)?;
    match of(conn, address)?.len() <= MAX_TAGS {
        true => Ok(()),
        false => Err(BackendError::Own(too_many_tags("message", tag))),
    }
}

pub(super) fn remove(conn: &Connection, address: Address, tag: &str) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM message_tag WHERE address = ?1 AND tag = ?2")?
        .execute(params![address, tag])?;
    index::refresh(conn, address)
}

/// Removes the tags of a range of messages.
pub(super) fn remove_range(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM message_tag WHERE address BETWEEN ?1 AND ?2")?
        .execute([first, last])?;
    Ok(())
}

/// Copies the tags of a range of messages, for a fork.
pub(super) fn copy(
    conn: &Connection,
    first: Address,
    last: Address,
    shift: i64,
) -> BackendResult<()> {
    conn.prepare_cached(COPY)?.execute(params![first, last, shift])?;
    Ok(())
}

const COPY: &str = "INSERT INTO message_tag (address, tag)
 SELECT address + ?3, tag FROM message_tag WHERE address BETWEEN ?1 AND ?2";

/// Returns the tags of a message, sorted.
fn of(conn: &Connection, address: Address) -> BackendResult<Vec<String>> {
    let mut statement =
        conn.prepare_cached("SELECT tag FROM message_tag WHERE address = ?1 ORDER BY tag")?;
    let tags = statement.query_map([address], |row| row.get(0))?;
    Ok(tags.collect::<rusqlite::Result<_>>()?)
}

/// Returns the tags of a range of messages, in the order of the messages, each sorted.
pub(super) fn of_range(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<Vec<MessageTag>> {
    let mut statement = conn.prepare_cached(OF_RANGE)?;
    let found = statement.query_map([first, last], |row| {
        Ok(MessageTag { message: MessageId::from(row.get::<_, String>(0)?), tag: row.get(1)? })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

const OF_RANGE: &str = "SELECT message.id, message_tag.tag
   FROM message_tag
   CROSS JOIN message NOT INDEXED ON message.address = message_tag.address
  WHERE message_tag.address BETWEEN ?1 AND ?2 AND message.id IS NOT NULL
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
    let sql = match (&filter.tag, &filter.author) {
        (Some(_), _) => TAGGED,
        (None, Some(_)) => WRITTEN,
        (None, None) => ALL,
    };
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params![
        filter.tag,
        filter.author,
        low,
        high,
        filter.includes_trash,
        // One more than asked for, which says whether there is another page.
        limit.saturating_add(1)
    ])?;
    let mut page = MessagePage::default();
    let mut last = None;
    while let Some(row) = rows.next()? {
        let address: Address = row.get(0)?;
        if page.messages.len() == limit {
            page.after = last;
            break;
        }
        let Some(message) = message::read(conn, address)? else { continue };
        let session = read_id(row, 1, address.session())?;
        last = Some(address.raw().to_string());
        page.messages.push(ListedMessage::new(session, message, of(conn, address)?));
    }
    Ok(page)
}

/// The messages under a condition. `?1` is a tag, `?2` an author, `?3` and `?4` are the first and the last address, `?5` is
/// true if sessions in the trash count.
macro_rules! messages {
    ($address:literal, $from:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            $address,
            ", session.id
   FROM ",
            $from,
            "
  CROSS JOIN session ON session.key = message.address >> 32
  WHERE ",
            $condition,
            "
    AND message.id IS NOT NULL
    AND (?5 OR session.deleted_at IS NULL)
  ORDER BY 1
  LIMIT ?6"
        )
    };
}

pub(super) const TAGGED: &str = messages!(
    "message_tag.address",
    "message_tag CROSS JOIN message NOT INDEXED ON message.address = message_tag.address",
    "message_tag.tag = ?1
    AND message_tag.address BETWEEN ?3 AND ?4
    AND (?2 IS NULL OR message.author = ?2)"
);

pub(super) const WRITTEN: &str = messages!(
    "message.address",
    "message INDEXED BY message_author",
    "message.author = ?2
    AND message.author IS NOT NULL
    AND message.address BETWEEN ?3 AND ?4
    AND ?1 IS NULL"
);

pub(super) const ALL: &str = messages!(
    "message.address",
    "message",
    "message.address BETWEEN ?3 AND ?4
    AND ?1 IS NULL
    AND ?2 IS NULL"
);
