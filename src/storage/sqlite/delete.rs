//! Deleting messages while the tree keeps its shape.
//!
//! A message with children becomes a tombstone. A row without children is removed, and so is a tombstone that loses
//! its last child that way. What pointed at a removed row moves to the row above it or is removed too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::context::elision;
use super::index::Index;
use super::path::Ancestry;
use super::path::SessionTree;
use super::row::session::{self as session_row, SessionRow};
use super::session::Named;
use super::{catalog, compaction, head, message};
use crate::id::MessageId;
use crate::outcome::Deleted;
use crate::sql::{BackendResult, Connection, corrupt};
use crate::tree::{Address, PlanPart, Span, Walk};

pub(crate) fn delete(
    conn: &Connection,
    name: &Named<'_>,
    ids: &[MessageId],
) -> BackendResult<Deleted> {
    let session = name.find(conn)?;
    let key = session.map(|session| session.key);
    let mut messages = Vec::new();
    let mut addresses = BTreeSet::new();
    for id in ids {
        let address = message::require(conn, key, name, id)?;
        if addresses.insert(address) {
            messages.push(id.clone());
        }
    }
    let Some(mut session) = session.filter(|_| !addresses.is_empty()) else {
        return Ok(Deleted::default());
    };
    let places: Vec<_> = addresses.iter().map(|address| (*address, *address)).collect();
    message::forget_mentions(conn, session.key, &places)?;
    let deleted = delete_at(conn, &mut session, &addresses)?;
    Ok(Deleted { messages, ..deleted })
}

/// Deletes the messages at these addresses of a session; the result does not list them.
pub(super) fn delete_at(
    conn: &Connection,
    session: &mut SessionRow,
    addresses: &BTreeSet<Address>,
) -> BackendResult<Deleted> {
    let covering = compaction::covering(conn, addresses)?;
    let mut touched: BTreeSet<i64> = covering.iter().map(|span| span.key).collect();
    for address in addresses {
        make_tombstone(conn, *address)?;
    }
    // Children before parents, so that one call can remove a whole branch.
    let mut removed = HashMap::new();
    for address in addresses.iter().rev() {
        prune(conn, Some(*address), &mut removed)?;
    }
    touched.extend(ending_at(conn, removed.keys())?);
    let survivor = |mut at: Option<Address>| {
        while let Some(parent) = at.and_then(|address| removed.get(&address)) {
            at = *parent;
        }
        at
    };
    let compactions = settle_compactions(conn, session, &touched, survivor)?;
    session.messages -= addresses.len() as i64;
    finish(conn, session, survivor)?;
    Ok(compactions)
}

/// Deletes every message of a session, with what belongs to it.
pub(crate) fn clear(conn: &Connection, name: &Named<'_>) -> BackendResult<()> {
    let Some(session) = name.find(conn)? else { return Ok(()) };
    message::forget_mentions(conn, session.key, &[Address::range_of(session.key)])?;
    catalog::clear(conn, session.key)
}

/// Deletes a message and all its descendants.
pub(crate) fn delete_branch(
    conn: &Connection,
    name: &Named<'_>,
    id: &MessageId,
) -> BackendResult<Deleted> {
    let session = name.find(conn)?;
    let top = message::require(conn, session.map(|session| session.key), name, id)?;
    let Some(mut session) = session else { return Ok(Deleted::default()) };
    let mut ranges = below(conn, top)?;
    ranges.sort_unstable();
    message::forget_mentions(conn, session.key, &ranges)?;
    let mut messages = Vec::new();
    let mut touched = BTreeSet::new();
    for &(first, last) in &ranges {
        ids_between(conn, first, last, &mut messages)?;
        touched.extend(ending_in(conn, first, last)?);
    }
    // A compaction that covers `top` and ends outside the branch would have to end below `top`; so every affected one
    // ends in the branch.
    let parent = message::parent(conn, top)?;
    for &(first, last) in &ranges {
        Index::Messages.remove(conn, first, last)?;
        head::remove_labels(conn, first, last)?;
        elision::remove_range(conn, first, last)?;
        head::remove_tags(conn, first, last)?;
        conn.run("DELETE FROM message WHERE address BETWEEN ?1 AND ?2", (first, last))?;
    }
    let mut removed = HashMap::new();
    prune(conn, parent, &mut removed)?;
    touched.extend(ending_at(conn, removed.keys())?);
    let survivor = |mut at: Option<Address>| {
        while let Some(address) = at {
            let place = ranges.partition_point(|(first, _)| *first <= address);
            let is_below = place > 0 && address <= ranges[place - 1].1;
            match (is_below, removed.get(&address)) {
                (true, _) => at = parent,
                (false, Some(parent)) => at = *parent,
                (false, None) => break,
            }
        }
        at
    };
    let compactions = settle_compactions(conn, &session, &touched, survivor)?;
    session.messages -= messages.len() as i64;
    finish(conn, &mut session, survivor)?;
    Ok(Deleted { messages, ..compactions })
}

/// Moves what pointed at removed rows.
fn finish(
    conn: &Connection,
    session: &mut SessionRow,
    survivor: impl Fn(Option<Address>) -> Option<Address>,
) -> BackendResult<()> {
    head::relocate(conn, session, survivor)?;
    session.invalidate_visible_tokens();
    session_row::store(conn, session)
}

/// Turns a message into a tombstone. It keeps its origin: by that an erasure of another copy finds the summaries that cover it.
fn make_tombstone(conn: &Connection, address: Address) -> BackendResult<()> {
    Index::Messages.remove(conn, address, address)?;
    head::remove_labels(conn, address, address)?;
    elision::remove_range(conn, address, address)?;
    head::remove_tags(conn, address, address)?;
    conn.run(
        "UPDATE message
            SET id = NULL, role = '', parts = '[]', metadata = NULL, extra = NULL, tokens = 0,
                counter = 0, hidden = 0
          WHERE address = ?1",
        address,
    )?;
    Ok(())
}

/// Removes a tombstone without children, then its parent if that is now a tombstone without children, and so on.
pub(super) fn prune(
    conn: &Connection,
    mut at: Option<Address>,
    removed: &mut HashMap<Address, Option<Address>>,
) -> BackendResult<()> {
    while let Some(address) = at {
        let stored: Option<(Option<String>, Option<Address>)> =
            conn.first(message::ID_AND_PARENT, address)?;
        let Some((None, parent)) = stored else { break };
        if has_children(conn, address)? {
            break;
        }
        conn.run("DELETE FROM message WHERE address = ?1", address)?;
        removed.insert(address, parent);
        at = parent;
    }
    Ok(())
}

/// Returns whether a row has children: the next one in its run, or a branch.
fn has_children(conn: &Connection, address: Address) -> BackendResult<bool> {
    conn.one(HAS_CHILDREN, address)
}

pub(super) const HAS_CHILDREN: &str =
    "SELECT EXISTS (SELECT 1 FROM message WHERE address = CAST(?1 AS BIGINT) + 1 AND parent = ?1)
     OR EXISTS (SELECT 1 FROM message WHERE parent = ?1 AND parent IS DISTINCT FROM address - 1)";

/// Keeps or removes the compactions that covered deleted messages.
fn settle_compactions(
    conn: &Connection,
    session: &SessionRow,
    touched: &BTreeSet<i64>,
    survivor: impl Fn(Option<Address>) -> Option<Address>,
) -> BackendResult<Deleted> {
    let mut deleted = Deleted::default();
    if touched.is_empty() {
        return Ok(deleted);
    }
    let mut visible = Ancestry::of_visible(conn, session.key);
    // Where a removed one ended, the history now ends at another place: by that place, the earliest start.
    let mut gone: BTreeMap<Address, Span> = BTreeMap::new();
    for key in touched {
        let (span, id) = compaction::named_span(conn, *key)?;
        let now = survivor(Some(span.last));
        // One that covers only hidden messages would lengthen the history.
        if now == Some(span.last) && visible.nearest(span.last)?.is_some_and(|at| at >= span.first)
        {
            deleted.covered_by.push(id);
            continue;
        }
        compaction::remove(conn, span.key)?;
        deleted.compactions_gone.push(id);
        if let Some(now) = now {
            let longest = gone.entry(now).or_insert(span);
            longest.first = longest.first.min(span.first);
        }
    }
    let mut back = BTreeSet::new();
    for (now, span) in gone {
        back.extend(shown_within(conn, Some(now), span)?);
    }
    for key in back {
        deleted.compactions_back.push(compaction::id_of(conn, key)?);
    }
    Ok(deleted)
}

/// Returns the compactions that are visible in the range of a removed one.
fn shown_within(conn: &Connection, leaf: Option<Address>, gone: Span) -> BackendResult<Vec<i64>> {
    let mut tree = SessionTree::new(conn, gone.last.session());
    let mut walk = Walk::visible(&mut tree, leaf);
    let mut shown = Vec::new();
    while let Some(planned) = walk.next()? {
        match planned {
            PlanPart::Summary(span) if span.first >= gone.first => shown.push(span.key),
            PlanPart::Messages { first, .. } if first > gone.first => {}
            _ => break,
        }
    }
    Ok(shown)
}

/// Returns the ranges of addresses of a message and all its descendants.
pub(super) fn below(conn: &Connection, top: Address) -> BackendResult<Vec<(Address, Address)>> {
    let (_, end) = Address::range_of(top.session());
    let mut ranges = Vec::new();
    let mut starts = vec![top];
    while let Some(start) = starts.pop() {
        let next_break: Option<Address> = conn.one(
            "SELECT min(address /*+ 0*/)
                   FROM message
                  WHERE parent IS DISTINCT FROM address - 1
                    AND address /*+ 0*/ > ?1
                    AND address /*+ 0*/ <= ?2",
            (start, end),
        )?;
        // Up to the next break each row is the child of the one before.
        let last: Option<Address> = conn.one(
            "SELECT max(address) FROM message WHERE address BETWEEN ?1 AND ?2",
            (start, next_break.map_or(end, Address::before)),
        )?;
        let last = last.ok_or_else(|| {
            let (n, session) = (start.n(), start.session());
            corrupt(format!("message {n} of session {session} is outside of its session"))
        })?;
        ranges.push((start, last));
        starts.extend(conn.rows::<Address>(BRANCHES, (start, last))?);
    }
    Ok(ranges)
}

const BRANCHES: &str = "SELECT address
   FROM message
  WHERE parent BETWEEN ?1 AND ?2
    AND parent IS DISTINCT FROM address - 1";

fn ids_between(
    conn: &Connection,
    first: Address,
    last: Address,
    ids: &mut Vec<MessageId>,
) -> BackendResult<()> {
    let found: Vec<String> = conn.rows(IDS, (first, last))?;
    ids.extend(found.into_iter().map(MessageId::from));
    Ok(())
}

const IDS: &str = "SELECT id
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
  ORDER BY address";

/// Returns the compactions that end at removed rows. Tombstones above the deleted messages may be among these rows,
/// and a compaction that ends there need not cover a deleted message.
fn ending_at<'a>(
    conn: &Connection,
    places: impl Iterator<Item = &'a Address>,
) -> BackendResult<Vec<i64>> {
    let mut keys = Vec::new();
    for place in places {
        keys.extend(ending_in(conn, *place, *place)?);
    }
    Ok(keys)
}

pub(super) fn ending_in(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<Vec<i64>> {
    conn.rows("SELECT key FROM compaction WHERE last BETWEEN ?1 AND ?2", (first, last))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::connection::{Config, Database};
    use super::super::session::SqliteSession;
    use super::*;
    use crate::compaction::Compaction;
    use crate::error::Result;
    use crate::message::Message;
    use crate::storage::sqlite::session::Named;
    use crate::view::{ExpectedHead, Parent};

    fn id(n: usize) -> MessageId {
        n.to_string().into()
    }

    /// A path under as many nested summaries, each over the one before and one message more.
    fn nested(summaries: usize) -> Result<(Arc<Database>, SqliteSession)> {
        let database = Arc::new(Database::open_in_memory(Config::default())?);
        let session = SqliteSession::new(Arc::clone(&database), "s".into());
        let messages: Vec<Message> =
            (0..summaries + 100).map(|n| Message::user("text").with_id(id(n))).collect();
        session.append(&Parent::Head, &ExpectedHead::Any, &messages, None)?;
        for n in 0..summaries {
            session.add_compaction(&Compaction::new("summary", id(0), id(n + 50)))?;
        }
        Ok((database, session))
    }

    /// Every deleted message was looked for on the path to the end of every summary, and each summary read its range: 50
    /// messages under 9 850 summaries held the write lock for three seconds.
    #[test]
    fn a_delete_under_nested_summaries_visits_each_of_them_once() -> Result<()> {
        for summaries in [200, 400] {
            let (database, _session) = nested(summaries)?;
            let ids: Vec<MessageId> = (0..50).map(id).collect();
            let name = "s".into();
            let (steps, deleted) =
                database.steps_of_write(|conn| delete(conn, &Named::unbound(&name), &ids))?;
            assert_eq!((deleted.covered_by.len(), deleted.messages.len()), (summaries, 50));
            let of_messages = 50 * 300;
            let of_summaries = steps.saturating_sub(of_messages) / summaries as u64;
            // A server reads some rows twice once it has counted them. To visit each for each other takes 400 at least.
            let most = database.read(|conn| Ok(conn.by_engine(100, 200)))?;
            assert!(of_summaries < most, "{steps} steps, {of_summaries} for a summary");
        }
        Ok(())
    }
}
