//! Reading the outline of a tree.
//!
//! Breaks give the runs, and runs the segments. Only the messages that the outline shows are read, so it costs the
//! number of runs and not that of messages.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, Row};

use super::error::{BackendResult, corrupt, damaged};
use super::row::session::SessionRow;
use super::row::time;
use super::{compaction, label};
use crate::id::MessageId;
use crate::message::{Role, parts_from_text};
use crate::tree::{
    Address, BoundedRun, CompactionMark, Landmark, Run, Segment, SegmentMap, Tree, line, outermost,
    preview,
};

/// Returns the outline of a session.
pub(super) fn tree(conn: &Connection, session: &SessionRow) -> BackendResult<Tree> {
    let runs = runs(conn, session.key)?;
    let map = SegmentMap::new(&runs, addresses(conn, TOMBSTONES, session.key)?)?;
    let head = session.head.and_then(|head| map.locate(head));
    let labels = labels(conn, session.key, &map)?;
    let mut compactions = compactions(conn, session.key, &map)?;
    let mut hidden: HashMap<usize, u64> = HashMap::new();
    for address in addresses(conn, HIDDEN, session.key)? {
        if let Some((segment, _)) = map.locate(address) {
            *hidden.entry(segment).or_default() += 1;
        }
    }

    let mut reader = conn.prepare_cached(LANDMARK)?;
    let mut tree = Tree { roots: map.roots().to_vec(), ..Tree::default() };
    for segment in 0..map.len() {
        let compactions = compactions.remove(&segment).unwrap_or_default();
        let labels = labels.get(&segment);
        let shown = outermost(&compactions).into_iter();
        let mut noted: Vec<u64> = shown
            .flat_map(|compaction| compaction.starts_at.into_iter().chain([compaction.ends_at]))
            .collect();
        noted.extend(head.filter(|(of, _)| *of == segment).map(|(_, at)| at));
        noted.extend(labels.into_iter().flat_map(HashMap::keys));
        let places = map.landmarks(segment, noted);
        // A wide tree has as many of these as messages.
        let mut landmarks = Vec::with_capacity(places.len());
        for at in places {
            let mut landmark = read(&mut reader, &map, segment, at)?;
            landmark.is_head = head == Some((segment, at));
            landmark.labels =
                labels.and_then(|labels| labels.get(&at)).cloned().unwrap_or_default();
            if landmark.is_head {
                tree.head = Some(landmark.id.clone());
            }
            landmarks.push(landmark);
        }
        let (Some(first), Some(last)) = (landmarks.first(), landmarks.last()) else { continue };
        tree.messages += map.count(segment);
        tree.segments.push(Segment {
            first: first.id.clone(),
            last: last.id.clone(),
            count: map.count(segment),
            hidden: hidden.get(&segment).copied().unwrap_or(0),
            landmarks,
            compactions,
            parent: map.parent(segment),
            children: map.children(segment).to_vec(),
        });
    }
    Ok(tree)
}

/// Returns the runs of a session with their ends, in ascending order.
fn runs(conn: &Connection, session: i64) -> BackendResult<Vec<BoundedRun>> {
    let (first, last) = Address::range_of(session);
    let mut breaks = conn.prepare_cached(BREAKS)?;
    let mut before = conn.prepare_cached(LAST_BEFORE)?;
    let mut rows = breaks.query([first, last])?;
    let mut runs: Vec<BoundedRun> = Vec::new();
    while let Some(row) = rows.next()? {
        let run = Run { start: row.get(0)?, parent: row.get(1)? };
        runs.push(BoundedRun { run, end: run.start });
    }
    for index in 0..runs.len() {
        let start = runs[index].run.start;
        let end = runs.get(index + 1).map_or(last, |next| next.run.start.before());
        // Removed leaves leave places empty before the next run.
        runs[index].end = match end == start {
            true => end,
            false => before.query_row([start, end], |row| row.get(0))?,
        };
    }
    Ok(runs)
}

pub(super) const BREAKS: &str = "SELECT address, parent
   FROM message
  WHERE parent IS NOT address - 1
    AND address BETWEEN ?1 AND ?2
  ORDER BY address";

const LAST_BEFORE: &str = "SELECT max(address) FROM message WHERE address BETWEEN ?1 AND ?2";

pub(super) const TOMBSTONES: &str =
    "SELECT address FROM message WHERE id IS NULL AND address BETWEEN ?1 AND ?2 ORDER BY address";

pub(super) const HIDDEN: &str =
    "SELECT address FROM message WHERE hidden = 1 AND address BETWEEN ?1 AND ?2 ORDER BY address";

const LANDMARK: &str = "SELECT id, role, parts, created_at, hidden FROM message WHERE address = ?1";

pub(super) fn addresses(conn: &Connection, sql: &str, session: i64) -> BackendResult<Vec<Address>> {
    let (first, last) = Address::range_of(session);
    let mut statement = conn.prepare_cached(sql)?;
    let addresses = statement.query_map([first, last], |row| row.get(0))?;
    Ok(addresses.collect::<rusqlite::Result<_>>()?)
}

/// Returns the labels by segment and place in it.
fn labels(
    conn: &Connection,
    session: i64,
    map: &SegmentMap,
) -> BackendResult<HashMap<usize, HashMap<u64, Vec<String>>>> {
    let mut labels: HashMap<usize, HashMap<u64, Vec<String>>> = HashMap::new();
    for (label, address) in label::all(conn, session)? {
        if let Some((segment, at)) = map.locate(address) {
            labels.entry(segment).or_default().entry(at).or_default().push(label.name);
        }
    }
    Ok(labels)
}

/// Returns the compactions by the segment they end in.
fn compactions(
    conn: &Connection,
    session: i64,
    map: &SegmentMap,
) -> BackendResult<HashMap<usize, Vec<CompactionMark>>> {
    let mut compactions: HashMap<usize, Vec<CompactionMark>> = HashMap::new();
    for (span, compaction) in compaction::all(conn, session)? {
        let Some((segment, ends_at)) = map.locate(span.last) else { continue };
        let first = map.locate(span.first);
        compactions.entry(segment).or_default().push(CompactionMark {
            id: compaction.id,
            first: compaction.first,
            last: compaction.last,
            count: compaction.count,
            starts_at: first.filter(|(of, _)| *of == segment).map(|(_, at)| at),
            ends_at,
            preview: line(&compaction.summary),
        });
    }
    Ok(compactions)
}

fn read(
    reader: &mut CachedStatement<'_>,
    map: &SegmentMap,
    segment: usize,
    at: u64,
) -> BackendResult<Landmark> {
    let missing = || corrupt(format!("place {at} of a run holds no message"));
    let address = map.address(segment, at).ok_or_else(missing)?;
    let mut rows = reader.query([address])?;
    let row = rows.next()?.ok_or_else(missing)?;
    landmark(row, at).map_err(damaged(format_args!(
        "message {} of session {}",
        address.n(),
        address.session()
    )))
}

fn landmark(row: &Row<'_>, at: u64) -> BackendResult<Landmark> {
    let missing = || corrupt(format!("place {at} of a run is not a message"));
    let id = row.get_ref(0)?.as_str_or_null()?.ok_or_else(missing)?;
    Ok(Landmark {
        at,
        id: MessageId::from(id),
        role: Role::from(row.get_ref(1)?.as_str()?),
        preview: preview(&parts_from_text(row.get_ref(2)?.as_str()?)?),
        created_at: time(row.get(3)?)?,
        is_hidden: row.get(4)?,
        is_head: false,
        labels: Vec::new(),
    })
}
