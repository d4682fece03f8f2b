//! Finding children, leaves and the newest message.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

/// Returns some of the children of a message, or of the roots, in order of creation: the first ones after an address.
///
/// Costs what is returned, and the tombstones of the session. The children of a tombstone are merged with those of its
/// parent, so of each place only the next child is looked up.
pub(super) fn page(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
    after: Address,
    limit: usize,
) -> BackendResult<Vec<Message>> {
    let mut next = BinaryHeap::new();
    let mut places = vec![parent];
    while let Some(place) = places.pop() {
        if let Some(child) = next_child(conn, session, place, after)? {
            next.push(Reverse((child, place)));
        }
        // A child of a tombstone may come after `after` although the tombstone does not.
        places.extend(deleted_children(conn, session, place, after)?.into_iter().map(Some));
    }
    let name = message::nearest_living(conn, parent)?.map(|(_, id)| id);
    let mut page = Vec::new();
    while page.len() < limit
        && let Some(Reverse((child, place))) = next.pop()
    {
        if let Some(sibling) = next_child(conn, session, place, child)? {
            next.push(Reverse((sibling, place)));
        }
        match message::stored(conn, child)?.message {
            Some(message) => page.push(Message { parent: name.clone(), ..message }),
            None => {
                let below = next_child(conn, session, Some(child), child)?;
                next.extend(below.map(|below| Reverse((below, Some(child)))));
            }
        }
    }
    Ok(page)
}

/// Returns the first child of a place after an address.
fn next_child(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
    after: Address,
) -> BackendResult<Option<Address>> {
    // In its run the child follows its parent, before all branches.
    if let Some(parent) = parent.filter(|parent| *parent >= after) {
        let in_run: Option<Address> =
            conn.prepare_cached(IN_RUN)?.query_row([parent], |row| row.get(0)).optional()?;
        if in_run.is_some() {
            return Ok(in_run);
        }
    }
    let (_, last) = Address::range_of(session);
    let branch = conn
        .prepare_cached(NEXT_BRANCH)?
        .query_row((parent, after, last), |row| row.get(0))
        .optional()?;
    Ok(branch)
}

const IN_RUN: &str = "SELECT address FROM message WHERE address = ?1 + 1 AND parent = ?1";

pub(super) const NEXT_BRANCH: &str = "SELECT address
   FROM message
  WHERE parent IS ?1
    AND parent IS NOT address - 1
    AND address > ?2
    AND address <= ?3
  ORDER BY address
  LIMIT 1";

/// Returns the children of a place, up to an address, that are tombstones.
fn deleted_children(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
    until: Address,
) -> BackendResult<Vec<Address>> {
    let (first, _) = Address::range_of(session);
    let mut statement = conn.prepare_cached(DELETED_BRANCHES)?;
    let found = statement.query_map((parent, first, until), |row| row.get(0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// By the index of tombstones: a message may have a million branches and rarely has deleted ones.
pub(super) const DELETED_BRANCHES: &str = "SELECT address
   FROM message INDEXED BY unshown
  WHERE id IS NULL
    AND address BETWEEN ?2 AND ?3
    AND parent IS ?1";

/// Returns the children of a row: the next one in its run, and the branches.
pub(super) fn direct_children(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
) -> BackendResult<Vec<Address>> {
    let mut children = Vec::new();
    if let Some(parent) = parent {
        let next: Option<Address> =
            conn.prepare_cached(IN_RUN)?.query_row([parent], |row| row.get(0)).optional()?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::connection::{Config, Database};
    use super::super::session::SqliteSession;
    use super::*;
    use crate::error::Result;
    use crate::view::{ExpectedHead, Parent};

    /// Listing 20 of a million answers read all of them.
    #[test]
    fn a_page_of_branches_costs_the_page() -> Result<()> {
        let mut steps_of = Vec::new();
        for branches in [100, 5_000] {
            let database = Arc::new(Database::open_in_memory(Config::default())?);
            let session = SqliteSession::new(Arc::clone(&database), "s".into());
            let any = ExpectedHead::Any;
            session.append(&Parent::Root, &any, &[Message::user("?").with_id("q")])?;
            let parent = Parent::Message("q".into());
            for n in 0..branches {
                let answer = Message::assistant("!").with_id(n.to_string());
                session.append(&parent, &any, &[answer])?;
            }
            let (question, last) = (Address::new(1, 1), Address::new(1, branches - 40));
            for after in [question, last] {
                let (steps, page) =
                    database.steps_of_write(|conn| page(conn, 1, Some(question), after, 20))?;
                assert_eq!(page.len(), 20);
                steps_of.push(steps);
            }
        }
        let (least, most) = (steps_of.iter().min(), steps_of.iter().max());
        assert!(most < least.map(|least| least * 2).as_ref(), "{steps_of:?}");
        Ok(())
    }
}
