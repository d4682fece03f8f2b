//! Reading compactions with the places where they start and end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::Connection;

use super::error::BackendResult;
use super::{children, compaction, message};
use crate::compaction::{Place, PlacedCompaction, PlacedCompactions, Tombstone};
use crate::id::MessageId;
use crate::tree::Address;

/// Returns the compactions of a session and the tombstones at which they start or end.
///
/// Other tombstones are passed over: no view depends on them.
pub(super) fn compactions(conn: &Connection, session: i64) -> BackendResult<PlacedCompactions> {
    let all = compaction::all(conn, session)?;
    let mut ends: BTreeMap<Address, Option<MessageId>> = BTreeMap::new();
    for (span, _) in &all {
        for end in [span.first, span.last] {
            if let Entry::Vacant(entry) = ends.entry(end) {
                entry.insert(message::id_at(conn, end)?.0);
            }
        }
    }
    // A parent has a smaller address than its child, so it comes before it.
    let tombstones: BTreeMap<Address, usize> =
        ends.iter().filter(|(_, id)| id.is_none()).map(|(at, _)| *at).zip(0..).collect();
    let place = |end: Address| match (&ends[&end], tombstones.get(&end)) {
        (Some(id), _) => Some(Place::Message(id.clone())),
        (None, at) => at.copied().map(Place::Tombstone),
    };
    let placed = all.iter().filter_map(|(span, compaction)| {
        let (first, last) = (place(span.first)?, place(span.last)?);
        Some(PlacedCompaction { compaction: compaction.clone(), first, last })
    });
    Ok(PlacedCompactions {
        compactions: placed.collect(),
        tombstones: tombstones
            .keys()
            .map(|at| tombstone(conn, *at, &tombstones))
            .collect::<BackendResult<_>>()?,
    })
}

fn tombstone(
    conn: &Connection,
    address: Address,
    kept: &BTreeMap<Address, usize>,
) -> BackendResult<Tombstone> {
    let mut parent = None;
    let mut above = message::id_at(conn, address)?.1;
    while let Some(at) = above {
        if let Some(tombstone) = kept.get(&at) {
            parent = Some(Place::Tombstone(*tombstone));
            break;
        }
        let (id, next) = message::id_at(conn, at)?;
        if let Some(id) = id {
            parent = Some(Place::Message(id));
            break;
        }
        above = next;
    }
    let (mut below, mut living) = (vec![address], Vec::new());
    while let Some(at) = below.pop() {
        for child in children::direct_children(conn, address.session(), Some(at))? {
            match message::id_at(conn, child)?.0 {
                Some(id) => living.push((child, id)),
                None if kept.contains_key(&child) => {}
                None => below.push(child),
            }
        }
    }
    living.sort_unstable();
    Ok(Tombstone { parent, children: living.into_iter().map(|(_, id)| id).collect() })
}
