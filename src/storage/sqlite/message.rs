//! Finding and reading one message, and what the rows of sessions quote of it: a name that was made from it, as imports make
//! them, and the fork point.
//!
//! Both go with the message, in its session and in those that continue it, which began with its name. A fork has copies of the
//! messages that its row tells of.
//!
//! Invariant: the message is in the session, or in the one that it continues. So an erasure of all copies of a message finds
//! what is told of it, also of a text that one copy alone had, and of a copy that was deleted before.

use super::compaction;
use super::path::SessionTree;
use super::row::message::StoredMessage;
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId, check_name};
use crate::message::Message;
use crate::records::Title;
use crate::sql::{BackendError, BackendResult, Connection, Read, corrupt};
use crate::tree::{Address, PlanPart, Walk};

/// Returns the address of a message, if the session has it.
pub(crate) fn find(
    conn: &Connection,
    session: i64,
    id: &MessageId,
) -> BackendResult<Option<Address>> {
    conn.first(BY_ID, (session, id.as_str()))
}

pub(super) const BY_ID: &str = "SELECT address FROM message WHERE session = ?1 AND id = ?2";

/// Returns the address of a message, or an error if the session does not have it.
pub(crate) fn require(
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
pub(crate) fn place(
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
    while let Some(planned) = walk.next()? {
        let reaches = |address: &Address| match planned {
            PlanPart::Messages { first, .. } => first <= *address,
            PlanPart::Summary(span) => span.last <= *address,
        };
        if living.as_ref().is_some_and(|(address, _)| reaches(address)) {
            break;
        }
        if let PlanPart::Summary(span) = planned {
            return Ok(Some(compaction::id_of(conn, span.key)?.as_message()));
        }
    }
    Ok(living.map(|(_, id)| id))
}

pub(super) fn stored(conn: &Connection, address: Address) -> BackendResult<StoredMessage> {
    conn.first_with(AT, address, StoredMessage::read)?.ok_or_else(|| missing(address))
}

pub(super) const AT: &str =
    concat!("SELECT ", stored_columns!(), " FROM message WHERE address = ?1");

/// Returns the message at an address with its parent's id, or `None` for a tombstone.
pub(crate) fn read(conn: &Connection, address: Address) -> BackendResult<Option<Message>> {
    let stored = stored(conn, address)?;
    let Some(mut message) = stored.message else { return Ok(None) };
    message.parent = nearest_living(conn, stored.parent)?.map(|(_, id)| id);
    Ok(Some(message))
}

/// Returns whether an address is a message or a tombstone.
pub(super) fn is_there(conn: &Connection, address: Address) -> BackendResult<bool> {
    conn.one("SELECT EXISTS (SELECT 1 FROM message WHERE address = ?1)", address)
}

/// Returns the id of a row, `None` for a tombstone, and the address of its parent.
///
/// # Errors
/// If the parent is not older: a walk over parents would not end.
pub(super) fn id_at(
    conn: &Connection,
    address: Address,
) -> BackendResult<(Option<MessageId>, Option<Address>)> {
    let found: Option<(Option<String>, Option<Address>)> = conn.first(ID_AND_PARENT, address)?;
    let (id, parent) = found.ok_or_else(|| missing(address))?;
    if parent.is_some_and(|parent| parent >= address) {
        let what = format!("the parent of message {} is a newer message", address.n());
        return Err(corrupt(what));
    }
    Ok((id.map(MessageId::from), parent))
}

pub(super) fn parent(conn: &Connection, address: Address) -> BackendResult<Option<Address>> {
    let parent = conn.first(PARENT, address)?;
    parent.ok_or_else(|| missing(address))
}

pub(super) const PARENT: &str = "SELECT parent FROM message WHERE address = ?1";

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

/// A column of a session's row that tells of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mention {
    Name(i64),
    ForkPoint(i64),
}

struct Row {
    key: i64,
    name: Option<String>,
    fork_point: Option<Address>,
}

/// Returns what is told of the messages in some ranges of a session.
pub(super) fn mentions_of(
    conn: &Connection,
    session: i64,
    ranges: &[(Address, Address)],
) -> BackendResult<Vec<Mention>> {
    let rows = rows(conn, session)?;
    let is_within = |at: Address| ranges.iter().any(|(first, last)| (*first..=*last).contains(&at));
    let points = rows.iter().filter(|row| row.fork_point.is_some_and(is_within));
    let mut found: Vec<Mention> = points.map(|row| Mention::ForkPoint(row.key)).collect();
    if rows.iter().any(|row| row.name.is_some()) {
        found.extend(names(conn, session, ranges, Some(rows))?.into_iter().map(Mention::Name));
    }
    Ok(found)
}

/// Forgets what is told of messages that are about to be deleted.
pub(super) fn forget_mentions(
    conn: &Connection,
    session: i64,
    ranges: &[(Address, Address)],
) -> BackendResult<()> {
    mentions_of(conn, session, ranges)?.into_iter().try_for_each(|mention| mention.remove(conn))
}

/// Gives the sessions that are named after a message the name that its new content makes, or none.
pub(super) fn rename_mentions(conn: &Connection, at: Address, new: &Message) -> BackendResult<()> {
    let name = title(new).filter(|name| check_name("session name", name).is_ok());
    for key in names(conn, at.session(), &[(at, at)], None)? {
        conn.run("UPDATE session SET name = ?2 WHERE key = ?1", (key, &name))?;
    }
    Ok(())
}

impl Mention {
    pub(super) fn remove(self, conn: &Connection) -> BackendResult<()> {
        let (sql, key) = match self {
            Self::Name(key) => ("UPDATE session SET name = NULL WHERE key = ?1", key),
            Self::ForkPoint(key) => ("UPDATE session SET fork_point = NULL WHERE key = ?1", key),
        };
        conn.run(sql, key)?;
        Ok(())
    }
}

/// Returns the sessions that are named after a message in some ranges. The rows are read if a user wrote one.
fn names(
    conn: &Connection,
    session: i64,
    ranges: &[(Address, Address)],
    mut known: Option<Vec<Row>>,
) -> BackendResult<Vec<i64>> {
    let mut found = Vec::new();
    for (first, last) in ranges {
        conn.each(WRITTEN, (first, last), |row| {
            let rows = match &mut known {
                Some(rows) => rows,
                None => known.insert(self::rows(conn, session)?),
            };
            rows.retain(|row| row.name.is_some());
            // A damaged message has no text to compare.
            let message = StoredMessage::read(row).ok().and_then(|stored| stored.message);
            if let Some(title) = message.as_ref().and_then(title) {
                let named = rows.extract_if(.., |row| row.name.as_ref() == Some(&title));
                found.extend(named.map(|row| row.key));
            }
            Ok(!rows.is_empty())
        })?;
    }
    Ok(found)
}

fn title(message: &Message) -> Option<String> {
    let mut title = Title::default();
    title.add(message);
    title.line().map(str::to_owned)
}

/// Returns the rows of a session and of those that continue it.
fn rows(conn: &Connection, session: i64) -> BackendResult<Vec<Row>> {
    conn.rows_with(MENTIONS, session, |row| {
        let (key, name, fork_point) = Read::read(row, 0)?;
        Ok(Row { key, name, fork_point })
    })
}

const WRITTEN: &str = concat!(
    "SELECT ",
    stored_columns!(),
    " FROM message WHERE address BETWEEN ?1 AND ?2 AND role = 'user' AND hidden = 0"
);

/// A fork begins with a copy of a message.
pub(super) const MENTIONS: &str = "WITH RECURSIVE continued (key, id, name, fork_point) AS (
     SELECT key, id, name, fork_point FROM session WHERE key = ?1
     UNION
     SELECT child.key, child.id, child.name, child.fork_point
       FROM continued
       CROSS JOIN session AS child
      WHERE child.parent_session = continued.id
        AND NOT EXISTS (
            SELECT 1 FROM message WHERE address = (child.key << 32) + 1 AND origin IS NOT NULL)
 )
 SELECT key, name, (SELECT address FROM message WHERE session = ?1 AND id = fork_point)
   FROM continued
  WHERE name IS NOT NULL OR fork_point IS NOT NULL";
