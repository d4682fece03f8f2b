//! Looking at the tree as a whole: children, leaves, figures.

use rusqlite::{Connection, OptionalExtension};

use super::fault::Outcome;
use super::message;
use crate::id::MessageId;
use crate::message::{Message, Role};
use crate::outcome::RowStat;
use crate::tree::{Address, Plan, Stretch};

/// Returns the address of the newest message: it has no children.
pub(super) fn latest(conn: &Connection, session: i64) -> Outcome<Option<Address>> {
    let (first, last) = Address::range_of(session);
    let found = conn
        .prepare_cached("SELECT max(address) FROM message WHERE address BETWEEN ?1 AND ?2")?
        .query_row([first, last], |row| row.get(0))?;
    Ok(found)
}

/// Returns the living children of a message, or the roots; those of a tombstone stand in its place.
pub(super) fn children(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
) -> Outcome<Vec<Message>> {
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
    // All of them hang from the message asked for, or from tombstones below it.
    let name = message::nearest_living(conn, parent)?.map(|(_, id)| id);
    let named = |(_, message): (Address, Message)| Message { parent: name.clone(), ..message };
    Ok(living.into_iter().map(named).collect())
}

/// Returns the rows that hang from a row: the next in its run, and the branches.
pub(super) fn direct_children(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
) -> Outcome<Vec<Address>> {
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
pub(super) fn leaves(conn: &Connection, session: i64) -> Outcome<Vec<MessageId>> {
    let (first, last) = Address::range_of(session);
    let mut breaks = conn.prepare_cached(
        "SELECT address
           FROM message
          WHERE parent IS NOT address - 1 AND address BETWEEN ?1 AND ?2",
    )?;
    // A row that is followed by a break, or by nothing, has no child next to it.
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

/// Returns how many messages a session holds, all branches.
pub(super) fn count(conn: &Connection, session: i64) -> Outcome<u64> {
    let (first, last) = Address::range_of(session);
    let count = conn
        .prepare_cached(
            "SELECT count(*) FROM message WHERE id IS NOT NULL AND address BETWEEN ?1 AND ?2",
        )?
        .query_row([first, last], |row| row.get(0))?;
    Ok(count)
}

/// Returns the plan of every message of a session, newest first.
pub(super) fn everything(conn: &Connection, session: i64) -> Outcome<Plan> {
    let (first, _) = Address::range_of(session);
    // A stretch of addresses, whatever hangs where: reading steps over places that are empty.
    Ok(latest(conn, session)?.map(|last| Stretch::Messages { first, last }).into_iter().collect())
}

/// Returns the figures of each message of a plan, oldest first.
pub(super) fn row_stats(conn: &Connection, plan: &Plan) -> Outcome<Vec<RowStat>> {
    let mut statement = conn.prepare_cached(
        "SELECT id, role, tokens,
                octet_length(parts) + coalesce(octet_length(metadata), 0)
                + coalesce(octet_length(extra), 0)
           FROM message
          WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL
          ORDER BY address",
    )?;
    let mut stats = Vec::new();
    for stretch in plan.iter().rev() {
        let Stretch::Messages { first, last } = *stretch else { continue };
        let mut rows = statement.query([first, last])?;
        while let Some(row) = rows.next()? {
            stats.push(RowStat {
                id: MessageId::from(row.get_ref(0)?.as_str()?),
                role: Role::from(row.get_ref(1)?.as_str()?),
                tokens: row.get(2)?,
                bytes: row.get(3)?,
            });
        }
    }
    Ok(stats)
}
