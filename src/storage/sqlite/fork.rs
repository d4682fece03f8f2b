//! Forking: a session of its own from a copy of a path.

use rusqlite::{Connection, params};

use super::catalog::{self, SessionRow};
use super::fault::{Fault, Outcome};
use super::{compaction, index, label, message, path};
use crate::error::Error;
use crate::id::{MessageId, SessionId};
use crate::outcome::SessionDetails;
use crate::tree::{Address, Overlay, Stretch};

/// A stretch of living messages of the path, and where its copy begins.
struct Copy {
    first: Address,
    last: Address,
    start: u32,
}

/// Copies the path to a message into a new session: messages, compactions, labels.
pub(super) fn fork(
    conn: &Connection,
    from: &SessionId,
    at: &MessageId,
    id: &SessionId,
    details: &SessionDetails,
) -> Outcome<()> {
    let source = catalog::find(conn, from)?;
    let leaf = message::require(conn, source.map(|source| source.key), from, at)?;
    if catalog::find(conn, id)?.is_some() {
        return Err(Fault::Own(Error::SessionExists { id: id.clone() }));
    }
    let mut target = catalog::make(conn, id)?;
    inherit(conn, leaf.session(), &target, from, at)?;
    catalog::set_details(conn, target.key, details)?;

    let copies = plan_copies(conn, leaf)?;
    copy_messages(conn, &target, &copies)?;
    let count = copies.last().map_or(0, |copy| copy.start + copy.width() - 1);
    target.next = u64::from(count) + 1;
    target.head = Some(Address::new(target.key, count));
    catalog::store(conn, &target)?;
    copy_compactions(conn, leaf, &target, &copies)?;
    copy_labels(conn, leaf.session(), &target, &copies)
}

/// Takes over what is known of the source, and records where it was forked.
fn inherit(
    conn: &Connection,
    source: i64,
    target: &SessionRow,
    from: &SessionId,
    at: &MessageId,
) -> Outcome<()> {
    conn.prepare_cached(
        "UPDATE session
            SET (model, source, metadata) =
                (SELECT model, source, metadata FROM session WHERE key = ?2),
                parent_session = ?3, fork_point = ?4
          WHERE key = ?1",
    )?
    .execute(params![target.key, source, from.as_str(), at.as_str()])?;
    Ok(())
}

/// Returns what to copy, oldest first: the stretches of the path without its tombstones.
fn plan_copies(conn: &Connection, leaf: Address) -> Outcome<Vec<Copy>> {
    let mut copies: Vec<Copy> = Vec::new();
    let mut start = 1;
    let mut add = |first: Address, last: Address| {
        if first <= last {
            copies.push(Copy { first, last, start });
            start += (last.raw() - first.raw()) as u32 + 1;
        }
    };
    let mut tombstones = conn.prepare_cached(
        "SELECT address FROM message WHERE id IS NULL AND address BETWEEN ?1 AND ?2 ORDER BY address",
    )?;
    for stretch in path::plan(conn, leaf.session(), Some(leaf), true)?.iter().rev() {
        let Stretch::Messages { first, last } = *stretch else { continue };
        let mut from = first;
        for tombstone in tombstones.query_map([first, last], |row| row.get(0))? {
            let tombstone: Address = tombstone?;
            add(from, tombstone.before());
            from = tombstone.after();
        }
        add(from, last);
    }
    Ok(copies)
}

fn copy_messages(conn: &Connection, target: &SessionRow, copies: &[Copy]) -> Outcome<()> {
    let mut statement = conn.prepare_cached(COPY)?;
    for copy in copies {
        let start = Address::new(target.key, copy.start);
        statement.execute(params![
            copy.first,
            copy.last,
            start.raw() - copy.first.raw(),
            Address::new(target.key, 1)
        ])?;
    }
    let (first, last) = Address::range_of(target.key);
    index::note_range(conn, first, last)
}

pub(super) const COPY: &str = "INSERT INTO message
        (address, parent, id, role, parts, metadata, extra, tokens, aside, origin, created_at)
 SELECT address + ?3, CASE WHEN address + ?3 = ?4 THEN NULL ELSE address + ?3 - 1 END,
        id, role, parts, metadata, extra, tokens, aside, coalesce(origin, address), created_at
   FROM message
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address";

/// Copies the compactions whose end lies on the path; their first then does, too.
fn copy_compactions(
    conn: &Connection,
    leaf: Address,
    target: &SessionRow,
    copies: &[Copy],
) -> Outcome<()> {
    for (overlay, compaction) in compaction::all(conn, leaf.session())? {
        if !path::holds(conn, Some(leaf), overlay.last)? {
            continue;
        }
        // A tombstone at an end has no copy: the stretch begins and ends at what lives.
        let first = number_at_or_after(copies, overlay.first);
        let last = number_at_or_before(copies, overlay.last);
        if let (Some(first), Some(last)) = (first, last) {
            let copy = Overlay {
                key: 0,
                first: Address::new(target.key, first),
                last: Address::new(target.key, last),
            };
            compaction::insert(conn, target.key, copy, &compaction)?;
        }
    }
    Ok(())
}

fn copy_labels(
    conn: &Connection,
    source: i64,
    target: &SessionRow,
    copies: &[Copy],
) -> Outcome<()> {
    for (found, address) in label::all(conn, source)? {
        if let Some(number) = number_at_or_after(copies, address)
            && number_at_or_before(copies, address) == Some(number)
        {
            label::set(conn, target.key, &found.name, Address::new(target.key, number))?;
        }
    }
    Ok(())
}

/// Returns the number of the copy of the first message at or after an address of the path.
fn number_at_or_after(copies: &[Copy], address: Address) -> Option<u32> {
    let copy = copies.get(copies.partition_point(|copy| copy.last < address))?;
    Some(copy.number(address.max(copy.first)))
}

/// Returns the number of the copy of the last message at or before an address of the path.
fn number_at_or_before(copies: &[Copy], address: Address) -> Option<u32> {
    let place = copies.partition_point(|copy| copy.first <= address).checked_sub(1)?;
    let copy = &copies[place];
    Some(copy.number(address.min(copy.last)))
}

impl Copy {
    fn width(&self) -> u32 {
        (self.last.raw() - self.first.raw()) as u32 + 1
    }

    fn number(&self, address: Address) -> u32 {
        self.start + (address.raw() - self.first.raw()) as u32
    }
}
