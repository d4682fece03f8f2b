//! The records of compactions, with the places where they start and end.
//!
//! An end of a compaction may be a deleted message, whose place no id names. What is visible still depends on that place: of two
//! compactions that end there and at the message above, each has its own. So a copy of a session needs the place.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{children, compaction, message};
use crate::id::{CompactionId, MessageId};
use crate::outcome::Record;
use crate::sql::{BackendResult, Connection};
use crate::tree::{Address, Span};

/// The compactions of a session, and the tombstones at which they start or end. No view depends on other tombstones.
#[derive(Default)]
pub(crate) struct Placed {
    /// In order of their numbers, from 1; those above come first.
    pub(crate) tombstones: Vec<Record>,
    /// The oldest first.
    pub(crate) compactions: Vec<Record>,
    /// The number of the tombstone above a message.
    pub(crate) above: HashMap<MessageId, u64>,
}

pub(crate) fn compactions(conn: &Connection, session: i64) -> BackendResult<Placed> {
    let all = compaction::all(conn, session)?;
    // A parent has a smaller address than its child, and so a smaller number.
    let ends: BTreeSet<Address> =
        all.iter().flat_map(|(span, _)| [span.first, span.last]).collect();
    let mut numbers = BTreeMap::new();
    for end in ends {
        if message::id_at(conn, end)?.0.is_none() {
            numbers.insert(end, numbers.len() as u64 + 1);
        }
    }
    let mut placed = Placed::default();
    for (&at, &number) in &numbers {
        let ids = |end: fn(&Span) -> Address| -> Vec<CompactionId> {
            let there = all.iter().filter(|(span, _)| end(span) == at);
            there.map(|(_, compaction)| compaction.id.clone()).collect()
        };
        let (starts, ends) = (ids(|span| span.first), ids(|span| span.last));
        let (parent, below) = above(conn, at, &numbers)?;
        placed.tombstones.push(Record::Tombstone { number, parent, below, starts, ends });
        let mut places = vec![at];
        while let Some(place) = places.pop() {
            for child in children::direct_children(conn, session, Some(place))? {
                match message::id_at(conn, child)?.0 {
                    Some(id) => drop(placed.above.insert(id, number)),
                    None if numbers.contains_key(&child) => {}
                    None => places.push(child),
                }
            }
        }
    }
    let compactions = all.into_iter().map(|(span, compaction)| {
        let [first_tombstone, last_tombstone] =
            [span.first, span.last].map(|end| numbers.get(&end).copied());
        Record::Compaction { compaction, first_tombstone, last_tombstone }
    });
    placed.compactions = compactions.collect();
    Ok(placed)
}

/// Returns the nearest message above a tombstone, and the tombstone between them.
fn above(
    conn: &Connection,
    tombstone: Address,
    numbers: &BTreeMap<Address, u64>,
) -> BackendResult<(Option<MessageId>, Option<u64>)> {
    let mut below = None;
    let mut next = message::parent(conn, tombstone)?;
    while let Some(at) = next {
        let (id, parent) = message::id_at(conn, at)?;
        if id.is_some() {
            return Ok((id, below));
        }
        below = below.or(numbers.get(&at).copied());
        next = parent;
    }
    Ok((None, below))
}
