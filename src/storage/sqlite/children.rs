//! Children, leaves, the newest message, and the outline of the whole tree.
//!
//! Breaks give the runs, and runs the segments. Only the messages that the outline shows are read, so it costs the
//! number of runs and not that of messages.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::row::session::SessionRow;
use super::{compaction, head, message};
use crate::id::MessageId;
use crate::message::{Message, Role, parts_from_text};
use crate::sql::{BackendResult, Connection, Read, Row, corrupt, damaged};
use crate::tree::{
    Address, BoundedRun, CompactionMark, Landmark, Run, Segment, SegmentMap, Tree, line, outermost,
    preview,
};

/// Returns the address of the newest message, which has no children.
pub(crate) fn latest(conn: &Connection, session: i64) -> BackendResult<Option<Address>> {
    let (first, last) = Address::range_of(session);
    conn.one("SELECT max(address) FROM message WHERE address BETWEEN ?1 AND ?2", (first, last))
}

/// Returns the children of a message, or the roots. A tombstone is replaced by its own children.
pub(crate) fn children(
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
pub(crate) fn page(
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

/// Returns the branches of a message, or the roots, after an address and up to another.
fn branches(
    conn: &Connection,
    parent: Option<Address>,
    (after, last): (Address, Address),
    limit: i64,
) -> BackendResult<Vec<Address>> {
    match parent {
        Some(parent) => conn.rows(BRANCHES, (after, last, limit, parent)),
        None => conn.rows(ROOTS, (after, last, limit)),
    }
}

macro_rules! branches {
    ($parent:literal) => {
        concat!(
            "SELECT address
   FROM message
  WHERE ",
            $parent,
            "
    AND parent IS DISTINCT FROM address - 1
    AND address > ?1
    AND address <= ?2
  ORDER BY parent, address
  LIMIT ?3"
        )
    };
}

pub(super) const BRANCHES: &str = branches!("parent = ?4");

/// Two statements, because no index of PostgreSQL's serves a comparison that takes NULL for equal.
pub(super) const ROOTS: &str = branches!("parent IS NULL");

/// Returns the first child of a place after an address.
fn next_child(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
    after: Address,
) -> BackendResult<Option<Address>> {
    // In its run the child follows its parent, before all branches.
    if let Some(parent) = parent.filter(|parent| *parent >= after) {
        let in_run: Option<Address> = conn.first(IN_RUN, parent)?;
        if in_run.is_some() {
            return Ok(in_run);
        }
    }
    let (_, last) = Address::range_of(session);
    Ok(branches(conn, parent, (after, last), 1)?.pop())
}

const IN_RUN: &str =
    "SELECT address FROM message WHERE address = CAST(?1 AS BIGINT) + 1 AND parent = ?1";

/// Returns the children of a place, up to an address, that are tombstones.
fn deleted_children(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
    until: Address,
) -> BackendResult<Vec<Address>> {
    let (first, _) = Address::range_of(session);
    conn.rows(DELETED_BRANCHES, (parent, first, until))
}

/// By the index of tombstones: a message may have a million branches and rarely has deleted ones.
pub(super) const DELETED_BRANCHES: &str = "SELECT address
   FROM message INDEXED BY unshown
  WHERE id IS NULL
    AND address BETWEEN ?2 AND ?3
    AND parent IS NOT DISTINCT FROM ?1";

/// Returns the children of a row: the next one in its run, and the branches.
pub(super) fn direct_children(
    conn: &Connection,
    session: i64,
    parent: Option<Address>,
) -> BackendResult<Vec<Address>> {
    let mut children = Vec::new();
    if let Some(parent) = parent {
        let next: Option<Address> = conn.first(IN_RUN, parent)?;
        children.extend(next);
    }
    let (first, last) = Address::range_of(session);
    children.extend(branches(conn, parent, (first.before(), last), i64::MAX)?);
    Ok(children)
}

/// Returns the messages without children, in order of creation.
pub(crate) fn leaves(conn: &Connection, session: i64) -> BackendResult<Vec<MessageId>> {
    let (first, last) = Address::range_of(session);
    let starts: Vec<Address> = conn.rows_with(BREAKS, (first, last), |row| row.get(0))?;
    let mut leaves = Vec::new();
    // A row before a break, or the last row, has no child in its run.
    for end in starts.into_iter().map(Address::before).chain([last]) {
        if let Some((address, Some(id))) =
            conn.first::<(Address, Option<String>)>(LAST_ROW, (first, end))?
            && !conn.has(HAS_BRANCHES, address)?
        {
            leaves.push(MessageId::from(id));
        }
    }
    Ok(leaves)
}

const LAST_ROW: &str = "SELECT address, id
   FROM message
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address DESC
  LIMIT 1";

const HAS_BRANCHES: &str = "SELECT 1
   FROM message
  WHERE parent = ?1
    AND parent IS DISTINCT FROM address - 1
  LIMIT 1";

/// Returns the outline of a session.
pub(crate) fn tree(conn: &Connection, session: &SessionRow) -> BackendResult<Tree> {
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
            let mut landmark = read(conn, &map, segment, at)?;
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
    let mut runs = conn.rows_with(BREAKS, (first, last), |row| {
        let run = Run::read(row, 0)?;
        Ok(BoundedRun { run, end: run.start })
    })?;
    for index in 0..runs.len() {
        let start = runs[index].run.start;
        let end = runs.get(index + 1).map_or(last, |next| next.run.start.before());
        // Removed leaves leave places empty before the next run.
        runs[index].end = match end == start {
            true => end,
            false => conn.one(LAST_BEFORE, (start, end))?,
        };
    }
    Ok(runs)
}

pub(super) const BREAKS: &str = "SELECT address, parent
   FROM message
  WHERE parent IS DISTINCT FROM address - 1
    AND address /*+ 0*/ BETWEEN ?1 AND ?2
  ORDER BY address /*+ 0*/";

const LAST_BEFORE: &str = "SELECT max(address) FROM message WHERE address BETWEEN ?1 AND ?2";

pub(super) const TOMBSTONES: &str =
    "SELECT address FROM message WHERE id IS NULL AND address BETWEEN ?1 AND ?2 ORDER BY address";

pub(super) const HIDDEN: &str =
    "SELECT address FROM message WHERE hidden = 1 AND address BETWEEN ?1 AND ?2 ORDER BY address";

const LANDMARK: &str = "SELECT id, role, parts, created_at, hidden FROM message WHERE address = ?1";

pub(super) fn addresses(
    conn: &Connection,
    sql: &'static str,
    session: i64,
) -> BackendResult<Vec<Address>> {
    let (first, last) = Address::range_of(session);
    conn.rows(sql, (first, last))
}

/// Returns the labels by segment and place in it.
fn labels(
    conn: &Connection,
    session: i64,
    map: &SegmentMap,
) -> BackendResult<HashMap<usize, HashMap<u64, Vec<String>>>> {
    let mut labels: HashMap<usize, HashMap<u64, Vec<String>>> = HashMap::new();
    for (label, address) in head::labels(conn, session)? {
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

fn read(conn: &Connection, map: &SegmentMap, segment: usize, at: u64) -> BackendResult<Landmark> {
    let missing = || corrupt(format!("place {at} of a run holds no message"));
    let address = map.address(segment, at).ok_or_else(missing)?;
    let found = conn.first_with(LANDMARK, address, |row| landmark(row, at));
    found
        .map_err(damaged(format_args!("message {} of session {}", address.n(), address.session())))?
        .ok_or_else(missing)
}

fn landmark(row: &Row<'_>, at: u64) -> BackendResult<Landmark> {
    let missing = || corrupt(format!("place {at} of a run is not a message"));
    let (id, role, parts, created_at, is_hidden): (
        Option<Cow<'_, str>>,
        Cow<'_, str>,
        Cow<'_, str>,
        _,
        _,
    ) = Read::read(row, 0)?;
    Ok(Landmark {
        at,
        id: MessageId::from(&*id.ok_or_else(missing)?),
        role: Role::from(&*role),
        preview: preview(&parts_from_text(&parts)?),
        created_at,
        is_hidden,
        is_head: false,
        labels: Vec::new(),
    })
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
            session.append(&Parent::Root, &any, &[Message::user("?").with_id("q")], None)?;
            let parent = Parent::Message("q".into());
            for n in 0..branches {
                let answer = Message::assistant("!").with_id(n.to_string());
                session.append(&parent, &any, &[answer], None)?;
            }
            let (question, last) = (Address::new(1, 1), Address::new(1, branches - 40));
            for after in [question, last] {
                let (steps, page) =
                    database.steps_of_write(|conn| page(conn, 1, Some(question), after, 20))?;
                assert_eq!(page.len(), 20);
                steps_of.push(steps);
            }
        }
        // Of 50 times as many. A plan may read a row twice, once a server has counted the rows.
        let (least, most) = (steps_of.iter().min(), steps_of.iter().max());
        assert!(most < least.map(|least| least * 4).as_ref(), "{steps_of:?}");
        Ok(())
    }
}
