//! Compactions: adding, finding and reading them.

pub(super) mod commit;

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension};

use super::ancestry::Ancestry;
use super::context;
use super::error::{BackendError, BackendResult, corrupt};
use super::row::compaction as row;
use super::row::session::SessionRow;
use super::tokens;
use super::tree_source::{SessionTree, WithoutCompaction};
use super::{append, message, path};
use crate::compaction::{Compaction, CompactionStatus};
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::tree::{Address, Plan, Span, Stretch, Walk};

/// Adds a summary that replaces whole items of the view at its last message, and thaws the prompt.
///
/// `after` is the tokens of the summary as a message, for a compaction that does not say.
pub(super) fn add(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    compaction: &Compaction,
    after: u64,
) -> BackendResult<()> {
    if find(conn, session.key, &compaction.id)?.is_some() {
        return Ok(());
    }
    let first = end(conn, session, name, &compaction.first, End::First)?;
    let last = end(conn, session, name, &compaction.last, End::Last)?;
    let compacted = compacted(conn, (first.0, &first.1), (last.0, &last.1))?;
    let span = Span { key: 0, first: first.0, last: last.0 };
    let compaction = Compaction { first: first.1, last: last.1, ..compaction.clone() };
    insert(conn, session, span, compaction, &compacted, after)
}

/// Adds a compaction as it was in another storage. A shown summary may cover an end of it.
pub(super) fn restore(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    compaction: &Compaction,
    places: (&MessageId, &MessageId),
    after: u64,
) -> BackendResult<()> {
    if find(conn, session.key, &compaction.id)?.is_some() {
        return Ok(());
    }
    let first = end(conn, session, name, places.0, End::First)?;
    let last = end(conn, session, name, places.1, End::Last)?;
    let ends = || (first.1.clone(), last.1.clone());
    if !path::holds(conn, Some(last.0), first.0)? {
        let (first, last) = ends();
        return Err(BackendError::Own(Error::NotAncestor { first, last }));
    }
    let covered = path::between(conn, first.0, last.0)?;
    if path::count(conn, &covered, true)? == 0 {
        let (first, last) = ends();
        return Err(BackendError::Own(Error::NothingVisible { first, last }));
    }
    let span = Span { key: 0, first: first.0, last: last.0 };
    insert(conn, session, span, compaction.clone(), &covered, after)
}

/// Checks that the summary and its details are within the limit.
pub(super) fn check_size(compaction: &Compaction, max_bytes: usize) -> BackendResult<()> {
    let details = compaction.details.as_ref().map_or(0, |json| json.as_str().len());
    let model = compaction.model.as_ref().map_or(0, String::len);
    append::check_size("a summary", compaction.summary.len() + details + model, max_bytes)
}

/// Stores a compaction, computes the figures that it does not have, and thaws the prompt.
fn insert(
    conn: &Connection,
    session: &SessionRow,
    span: Span,
    mut compaction: Compaction,
    compacted: &Plan,
    after: u64,
) -> BackendResult<()> {
    // An imported compaction keeps its own figures.
    if compaction.count == 0 {
        compaction.count = path::count_between(conn, span.first, span.last)?;
        compaction.nested = summaries_of(conn, compacted)?;
    }
    if compaction.tokens_before == 0 {
        compaction.tokens_before = tokens_of(conn, compacted)?;
    }
    if compaction.tokens_after == 0 {
        compaction.tokens_after = after;
    }
    // The counts may come from a file, and SQLite's integers are smaller than `u64`.
    for count in
        [&mut compaction.count, &mut compaction.tokens_before, &mut compaction.tokens_after]
    {
        *count = (*count).min(i64::MAX as u64);
    }
    row::insert(conn, session.key, span, &compaction)?;
    // The beginning of the prompt changes anyway, so the next one may use the current blocks.
    context::thaw(conn, session.key)
}

/// Returns how many tokens a model sees of a plan, by the counts in its rows.
fn tokens_of(conn: &Connection, plan: &Plan) -> BackendResult<u64> {
    let mut tokens = tokens::of_rows(conn, plan)?;
    for stretch in plan {
        if let Stretch::Summary(span) = stretch {
            let taken_in = by_key(conn, span.key)?;
            tokens =
                tokens.saturating_add(taken_in.map_or(0, |compaction| compaction.tokens_after));
        }
    }
    Ok(tokens)
}

/// Returns the ids of the summaries of a plan, oldest first.
fn summaries_of(conn: &Connection, plan: &Plan) -> BackendResult<Vec<CompactionId>> {
    let spans = plan.iter().rev().filter_map(|stretch| match stretch {
        Stretch::Summary(span) => Some(span.key),
        Stretch::Messages { .. } => None,
    });
    spans.map(|key| id_of(conn, key)).collect()
}

/// One end of a range.
#[derive(Clone, Copy)]
pub(super) enum End {
    First,
    Last,
}

/// Returns the address and id of an end: a message, or that end of a summary, whose own messages may be deleted.
pub(super) fn end(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    id: &MessageId,
    end: End,
) -> BackendResult<(Address, MessageId)> {
    let Some(summary) = CompactionId::from_message(id) else {
        return Ok((message::require(conn, Some(session.key), name, id)?, id.clone()));
    };
    let span = require(conn, Some(session.key), name, &summary)?;
    let compaction = by_key(conn, span.key)?
        .ok_or_else(|| corrupt(format!("the row of compaction {summary:?} is missing")))?;
    Ok(match end {
        End::First => (span.first, compaction.first),
        End::Last => (span.last, compaction.last),
    })
}

/// Returns the plan of a range to compact. It must be whole items of the view at its last message, and at least one
/// must be visible.
fn compacted(
    conn: &Connection,
    first: (Address, &MessageId),
    last: (Address, &MessageId),
) -> BackendResult<Plan> {
    let inside = |id: &MessageId, span: Span| -> BackendResult<BackendError> {
        let compaction = id_of(conn, span.key)?;
        Ok(BackendError::Own(Error::InsideSummary { id: id.clone(), compaction }))
    };
    let not_ancestor =
        || BackendError::Own(Error::NotAncestor { first: first.1.clone(), last: last.1.clone() });
    if !path::holds(conn, Some(last.0), first.0)? {
        return Err(not_ancestor());
    }
    let mut tree = SessionTree::new(conn, last.0.session());
    let mut walk = Walk::visible(&mut tree, Some(last.0));
    let mut compacted = Plan::new();
    while let Some(stretch) = walk.next()? {
        let start = match stretch {
            Stretch::Summary(span) if span.first < first.0 => {
                return Err(inside(first.1, span)?);
            }
            Stretch::Summary(span) => {
                compacted.push(stretch);
                span.first
            }
            Stretch::Messages { first: start, last } => {
                compacted.push(Stretch::Messages { first: start.max(first.0), last });
                start
            }
        };
        if start <= first.0 {
            // A summary of nothing would lengthen the history.
            return match path::count(conn, &compacted, true)? {
                0 => Err(BackendError::Own(Error::NothingVisible {
                    first: first.1.clone(),
                    last: last.1.clone(),
                })),
                _ => Ok(compacted),
            };
        }
    }
    Err(not_ancestor())
}

pub(super) fn remove(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM compaction WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// Returns all compactions of a session, oldest first.
pub(super) fn all(conn: &Connection, session: i64) -> BackendResult<Vec<(Span, Compaction)>> {
    let mut statement =
        conn.prepare_cached(select_compactions!("WHERE session = ?1 ORDER BY key"))?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row::read_span(row)?, row::read(row)?));
    }
    Ok(found)
}

pub(super) fn by_key(conn: &Connection, key: i64) -> BackendResult<Option<Compaction>> {
    let mut statement = conn.prepare_cached(select_compactions!("WHERE key = ?1"))?;
    let mut rows = statement.query([key])?;
    rows.next()?.map(row::read).transpose()
}

/// Returns the summary as it reads in a history, with its parent.
pub(super) fn summary(conn: &Connection, span: Span) -> BackendResult<Option<Message>> {
    let Some(compaction) = by_key(conn, span.key)? else { return Ok(None) };
    let parent = message::parent(conn, span.first)?;
    let parent = message::nearest_living(conn, parent)?.map(|(_, id)| id);
    Ok(Some(compaction.to_message(parent)))
}

/// Returns the plan of the items that a summary replaces: messages and nested summaries.
pub(super) fn below(conn: &Connection, span: Span) -> BackendResult<Plan> {
    let mut below = WithoutCompaction::new(conn, span);
    let mut walk = Walk::visible(&mut below, Some(span.last));
    let mut plan = Plan::new();
    while let Some(stretch) = walk.next()? {
        let start = match stretch {
            Stretch::Summary(inner) => {
                plan.push(stretch);
                inner.first
            }
            Stretch::Messages { first, last } => {
                plan.push(Stretch::Messages { first: first.max(span.first), last });
                first
            }
        };
        if start <= span.first {
            break;
        }
    }
    Ok(plan)
}

/// Returns the status of a compaction as seen from the head.
pub(super) fn status(
    conn: &Connection,
    session: &SessionRow,
    span: Span,
) -> BackendResult<CompactionStatus> {
    if !path::holds(conn, session.head, span.last)? {
        return Ok(CompactionStatus::OffPath);
    }
    let mut tree = SessionTree::new(conn, session.key);
    let mut walk = Walk::visible(&mut tree, session.head);
    while let Some(stretch) = walk.next()? {
        match stretch {
            Stretch::Summary(shown) if shown.key == span.key => break,
            Stretch::Summary(shown) if shown.first <= span.last => {
                return Ok(CompactionStatus::Under { id: id_of(conn, shown.key)? });
            }
            _ => {}
        }
    }
    Ok(CompactionStatus::Shown)
}

/// Returns the key of the newest compaction of the store; 0 if there is none.
pub(super) fn newest(conn: &Connection) -> BackendResult<i64> {
    let key = conn
        .prepare_cached("SELECT coalesce(max(key), 0) FROM compaction")?
        .query_row([], |row| row.get(0))?;
    Ok(key)
}

/// Returns the span of the compaction with this id.
pub(super) fn find(
    conn: &Connection,
    session: i64,
    id: &CompactionId,
) -> BackendResult<Option<Span>> {
    let span = conn
        .prepare_cached("SELECT key, first, last FROM compaction WHERE session = ?1 AND id = ?2")?
        .query_row((session, id.as_str()), row::read_span)
        .optional()?;
    Ok(span)
}

/// Returns the span of the compaction with this id, or an error if it is unknown.
pub(super) fn require(
    conn: &Connection,
    session: Option<i64>,
    name: &SessionId,
    id: &CompactionId,
) -> BackendResult<Span> {
    let found = session.map(|session| find(conn, session, id)).transpose()?.flatten();
    found.ok_or_else(|| {
        BackendError::Own(Error::UnknownCompaction { session: name.clone(), id: id.clone() })
    })
}

/// Returns the compactions that cover one of some messages of a session, oldest first.
pub(super) fn covering(
    conn: &Connection,
    addresses: &BTreeSet<Address>,
) -> BackendResult<Vec<Span>> {
    let (Some(oldest), Some(newest)) = (addresses.first(), addresses.last()) else {
        return Ok(Vec::new());
    };
    let (_, end) = Address::range_of(oldest.session());
    let mut nearest = Ancestry::of(conn, oldest.session(), addresses);
    let mut statement = conn.prepare_cached(COVERING)?;
    let mut found = Vec::new();
    for span in statement.query_map([oldest, &end, newest], row::read_span)? {
        let span = span?;
        if nearest.nearest(span.last)?.is_some_and(|address| address >= span.first) {
            found.push(span);
        }
    }
    found.sort_unstable_by_key(|span| span.key);
    Ok(found)
}

pub(super) const COVERING: &str = "SELECT key, first, last
   FROM compaction
  WHERE last BETWEEN ?1 AND ?2
    AND first <= ?3";

/// Returns the span of a compaction and its id.
pub(super) fn named_span(conn: &Connection, key: i64) -> BackendResult<(Span, CompactionId)> {
    let found = conn
        .prepare_cached("SELECT key, first, last, id FROM compaction WHERE key = ?1")?
        .query_row([key], |row| {
            Ok((row::read_span(row)?, CompactionId::from(row.get::<_, String>(3)?)))
        })?;
    Ok(found)
}

pub(super) fn id_of(conn: &Connection, key: i64) -> BackendResult<CompactionId> {
    let id: String = conn
        .prepare_cached("SELECT id FROM compaction WHERE key = ?1")?
        .query_row([key], |row| row.get(0))?;
    Ok(CompactionId::from(id))
}

/// For `verify`.
pub(super) const EVERY: &str = select_compactions!("");
