//! Finding children, leaves and the newest message.

use rusqlite::{Connection, OptionalExtension};

use super::error::BackendResult;
use super::message;
use crate::id::MessageId;
use crate::message::Message;
use crate::tree::Address;

/// Returns the address of the newest message, which has no children.
pub(super) fn latest(conn: &Connection, session: i64) -> BackendResult<Option<Address>> {
    let (first, last) = Address::range_of(session);
    let found = conn
        .prepare_cached("SELECT max(address) FROM message WHERE address BETWEEN ?1 AND ?2")?
        .query_row([first, last], |row| row.get(0))?;
    Ok(found)
}

/// Returns the children of a message, or the roots. A tombstone is replaced by its own children.
pub(super) fn children(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
) -> BackendResult<Vec<Message>> {
    let mut living = Vec::new();
    let mut parents = vec![parent];
    while let Some(parent) = parents.pop() {
        for address in direct_children(conn, session, parent)? {
            match message::stored(conn, address)?.message {
                Some(message) => living.push((address, message)),
                None => parents.push(Some(address)),
            }
        }
    }
    living.sort_unstable_by_key(|(address, _)| *address);
    // Each of them is a child of the message or of a tombstone below it.
    let name = message::nearest_living(conn, parent)?.map(|(_, id)| id);
    let named = |(_, message): (Address, Message)| Message { parent: name.clone(), ..message };
    Ok(living.into_iter().map(named).collect())
}

/// Returns the children of a row: the next one in its run, and the branches.
pub(super) fn direct_children(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
) -> BackendResult<Vec<Address>> {
    let mut children = Vec::new();
    if let Some(parent) = parent {
        let next: Option<Address> = conn
            .prepare_cached("SELECT address FROM message WHERE address = ?1 + 1 AND parent = ?1")?
            .query_row([parent], |row| row.get(0))
            .optional()?;
        children.extend(next);
    }
    let (first, last) = Address::range_of(session);
    let mut statement = conn.prepare_cached(BRANCHES)?;
    for address in statement.query_map((parent, first, last), |row| row.get(0))? {
        children.push(address?);
    }
    Ok(children)
}

pub(super) const BRANCHES: &str = "SELECT address
   FROM message
  WHERE parent IS ?1
    AND parent IS NOT address - 1
    AND address BETWEEN ?2 AND ?3";

/// Returns the messages without children, in order of creation.
pub(super) fn leaves(conn: &Connection, session: i64) -> BackendResult<Vec<MessageId>> {
    let (first, last) = Address::range_of(session);
    let mut breaks = conn.prepare_cached(
        "SELECT address
           FROM message
          WHERE parent IS NOT address - 1 AND address BETWEEN ?1 AND ?2",
    )?;
    // A row before a break, or the last row, has no child in its run.
    let mut before = conn.prepare_cached(
        "SELECT address, id
           FROM message
          WHERE address BETWEEN ?1 AND ?2
          ORDER BY address DESC
          LIMIT 1",
    )?;
    let mut has_branches = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM message WHERE parent = ?1 AND parent IS NOT address - 1)",
    )?;
    let ends = breaks.query_map([first, last], |row| row.get::<_, Address>(0))?;
    let mut leaves = Vec::new();
    for end in ends.map(|start| start.map(Address::before)).chain([Ok(last)]) {
        let found: Option<(Address, Option<String>)> =
            before.query_row([first, end?], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        if let Some((address, Some(id))) = found
            && !has_branches.query_row([address], |row| row.get(0))?
        {
            leaves.push(MessageId::from(id));
        }
    }
    Ok(leaves)
}
