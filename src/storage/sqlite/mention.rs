//! What the row of a session tells of a message: a name that was made from it, as imports make them, and the fork point.
//!
//! Both go with the message, in its session and in those that continue it, which began with its name. A fork has copies of the
//! messages that its row tells of.
//!
//! Invariant: the message is in the session, or in the one that it continues. So an erasure of all copies of a message finds
//! what is told of it, also of a text that one copy alone had, and of a copy that was deleted before.

use rusqlite::{Connection, params};

use super::error::BackendResult;
use super::row::message::StoredMessage;
use crate::id::check_name;
use crate::message::Message;
use crate::records::Title;
use crate::tree::Address;

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
pub(super) fn of(
    conn: &Connection,
    session: i64,
    ranges: &[(Address, Address)],
) -> BackendResult<Vec<Mention>> {
    let rows = rows(conn, session)?;
    let is_within = |at: Address| ranges.iter().any(|(first, last)| (*first..=*last).contains(&at));
    let points = rows.iter().filter(|row| row.fork_point.is_some_and(is_within));
    let mut found: Vec<Mention> = points.map(|row| Mention::ForkPoint(row.key)).collect();
    found.extend(names(conn, session, ranges, Some(rows))?.into_iter().map(Mention::Name));
    Ok(found)
}

/// Forgets what is told of messages that are about to be deleted.
pub(super) fn forget(
    conn: &Connection,
    session: i64,
    ranges: &[(Address, Address)],
) -> BackendResult<()> {
    of(conn, session, ranges)?.into_iter().try_for_each(|mention| mention.remove(conn))
}

/// Gives the sessions that are named after a message the name that its new content makes, or none.
pub(super) fn rename(conn: &Connection, at: Address, new: &Message) -> BackendResult<()> {
    let name = title(new).filter(|name| check_name("session name", name).is_ok());
    for key in names(conn, at.session(), &[(at, at)], None)? {
        conn.prepare_cached("UPDATE session SET name = ?2 WHERE key = ?1")?
            .execute(params![key, name])?;
    }
    Ok(())
}

impl Mention {
    pub(super) fn remove(self, conn: &Connection) -> BackendResult<()> {
        let (sql, key) = match self {
            Self::Name(key) => ("UPDATE session SET name = NULL WHERE key = ?1", key),
            Self::ForkPoint(key) => ("UPDATE session SET fork_point = NULL WHERE key = ?1", key),
        };
        conn.prepare_cached(sql)?.execute([key])?;
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
    let mut statement = conn.prepare_cached(WRITTEN)?;
    for (first, last) in ranges {
        let mut written = statement.query([first, last])?;
        while let Some(row) = written.next()? {
            let rows = match &mut known {
                Some(rows) => rows,
                None => known.insert(self::rows(conn, session)?),
            };
            rows.retain(|row| row.name.is_some());
            if rows.is_empty() {
                return Ok(found);
            }
            // A damaged message has no text to compare.
            let message = StoredMessage::read(row).ok().and_then(|stored| stored.message);
            if let Some(title) = message.as_ref().and_then(title) {
                let named = rows.extract_if(.., |row| row.name.as_ref() == Some(&title));
                found.extend(named.map(|row| row.key));
            }
        }
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
    let mut statement = conn.prepare_cached(ROWS)?;
    let rows = statement.query_map([session], |row| {
        Ok(Row { key: row.get(0)?, name: row.get(1)?, fork_point: row.get(2)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

const WRITTEN: &str = concat!(
    "SELECT ",
    stored_columns!(),
    " FROM message WHERE address BETWEEN ?1 AND ?2 AND role = 'user' AND hidden = 0"
);

/// A fork begins with a copy of a message.
pub(super) const ROWS: &str = "WITH RECURSIVE continued (key, id, name, fork_point) AS (
     SELECT key, id, name, fork_point FROM session WHERE key = ?1
     UNION
     SELECT child.key, child.id, child.name, child.fork_point
       FROM continued
       CROSS JOIN session AS child ON child.parent_session = continued.id
      WHERE NOT EXISTS (
            SELECT 1 FROM message WHERE address = (child.key << 32) + 1 AND origin IS NOT NULL)
 )
 SELECT key, name, (SELECT address FROM message WHERE session = ?1 AND id = fork_point)
   FROM continued
  WHERE name IS NOT NULL OR fork_point IS NOT NULL";
