//! Compactions: adding, committing plans, finding and reading them.

use std::collections::BTreeSet;

use super::context;
use super::path::{Ancestry, SessionTree, WithoutCompaction};
use super::plan_reader::PlanReader;
use super::row::message as row;
use super::row::session::SessionRow;
use super::tokens;
use super::{append, message, path};
use crate::compaction::{Compaction, CompactionStatus, Seen, Stale};
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::sql::{BackendError, BackendResult, Connection, Read, corrupt};
use crate::tree::{Address, Plan, PlanPart, Span, Walk};
use crate::view::Order;

/// Adds a summary that replaces whole items of the view at its last message, and thaws the prompt.
///
/// `after` is the tokens of the summary as a message, for a compaction that does not say.
pub(crate) fn add(
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
pub(crate) fn restore(
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
pub(crate) fn check_size(compaction: &Compaction, max_bytes: usize) -> BackendResult<()> {
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
    row::insert_compaction(conn, session.key, span, &compaction)?;
    // The beginning of the prompt changes anyway, so the next one may use the current blocks.
    context::thaw(conn, session.key)
}

/// Returns how many tokens a model sees of a plan, by the counts in its rows.
fn tokens_of(conn: &Connection, plan: &Plan) -> BackendResult<u64> {
    let mut tokens = tokens::of_rows(conn, plan)?;
    for planned in plan {
        if let PlanPart::Summary(span) = planned {
            let taken_in = by_key(conn, span.key)?;
            tokens =
                tokens.saturating_add(taken_in.map_or(0, |compaction| compaction.tokens_after));
        }
    }
    Ok(tokens)
}

/// Returns the ids of the summaries of a plan, oldest first.
fn summaries_of(conn: &Connection, plan: &Plan) -> BackendResult<Vec<CompactionId>> {
    let spans = plan.iter().rev().filter_map(|planned| match planned {
        PlanPart::Summary(span) => Some(span.key),
        PlanPart::Messages { .. } => None,
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
    while let Some(planned) = walk.next()? {
        let start = match planned {
            PlanPart::Summary(span) if span.first < first.0 => {
                return Err(inside(first.1, span)?);
            }
            PlanPart::Summary(span) => {
                compacted.push(planned);
                span.first
            }
            PlanPart::Messages { first: start, last } => {
                compacted.push(PlanPart::Messages { first: start.max(first.0), last });
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

pub(crate) fn remove(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.run("DELETE FROM compaction WHERE key = ?1", key)?;
    Ok(())
}

/// Returns all compactions of a session, oldest first.
pub(crate) fn all(conn: &Connection, session: i64) -> BackendResult<Vec<(Span, Compaction)>> {
    conn.rows_with(select_compactions!("WHERE session = ?1 ORDER BY key"), session, |row| {
        Ok((Span::read(row, 0)?, row::read_compaction(row)?))
    })
}

pub(crate) fn by_key(conn: &Connection, key: i64) -> BackendResult<Option<Compaction>> {
    conn.first_with(BY_KEY, key, row::read_compaction)
}

pub(super) const BY_KEY: &str = select_compactions!("WHERE key = ?1");

/// Returns the summary as it reads in a history, with its parent.
pub(crate) fn summary(conn: &Connection, span: Span) -> BackendResult<Option<Message>> {
    let Some(compaction) = by_key(conn, span.key)? else { return Ok(None) };
    let parent = message::parent(conn, span.first)?;
    let parent = message::nearest_living(conn, parent)?.map(|(_, id)| id);
    Ok(Some(compaction.to_message(parent)))
}

/// Returns the plan of the items that a summary replaces: messages and nested summaries.
pub(crate) fn below(conn: &Connection, span: Span) -> BackendResult<Plan> {
    let mut below = WithoutCompaction::new(conn, span);
    let mut walk = Walk::visible(&mut below, Some(span.last));
    let mut plan = Plan::new();
    while let Some(planned) = walk.next()? {
        let start = match planned {
            PlanPart::Summary(inner) => {
                plan.push(planned);
                inner.first
            }
            PlanPart::Messages { first, last } => {
                plan.push(PlanPart::Messages { first: first.max(span.first), last });
                first
            }
        };
        if start <= span.first {
            break;
        }
    }
    Ok(plan)
}

/// Returns a compaction that was just added, as it is stored, and whether the history at the head shows it.
pub(crate) fn stored(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    id: &CompactionId,
) -> BackendResult<(Compaction, CompactionStatus)> {
    // After the insert, an unknown id can only be damage.
    let span = require(conn, Some(session.key), name, id)?;
    let compaction = by_key(conn, span.key)?;
    let compaction =
        compaction.ok_or_else(|| corrupt(format!("compaction {id:?} is not there")))?;
    Ok((compaction, status(conn, session, span)?))
}

/// Returns the status of a compaction as seen from the head.
pub(crate) fn status(
    conn: &Connection,
    session: &SessionRow,
    span: Span,
) -> BackendResult<CompactionStatus> {
    if !path::holds(conn, session.head, span.last)? {
        return Ok(CompactionStatus::OffPath);
    }
    let mut tree = SessionTree::new(conn, session.key);
    let mut walk = Walk::visible(&mut tree, session.head);
    while let Some(planned) = walk.next()? {
        match planned {
            PlanPart::Summary(shown) if shown.key == span.key => break,
            PlanPart::Summary(shown) if shown.first <= span.last => {
                return Ok(CompactionStatus::Under { id: id_of(conn, shown.key)? });
            }
            _ => {}
        }
    }
    Ok(CompactionStatus::Shown)
}

/// Returns the key of the newest compaction of the store; 0 if there is none.
pub(super) fn newest(conn: &Connection) -> BackendResult<i64> {
    conn.one("SELECT coalesce(max(key), 0) FROM compaction", ())
}

/// Returns the span of the compaction with this id.
pub(crate) fn find(
    conn: &Connection,
    session: i64,
    id: &CompactionId,
) -> BackendResult<Option<Span>> {
    conn.first(
        "SELECT key, first, last FROM compaction WHERE session = ?1 AND id = ?2",
        (session, id),
    )
}

/// Returns the span of the compaction with this id, or an error if it is unknown.
pub(crate) fn require(
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
    let mut found = Vec::new();
    for span in conn.rows::<Span>(COVERING, (oldest, end, newest))? {
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
    let (span, id): (Span, String) =
        conn.one("SELECT key, first, last, id FROM compaction WHERE key = ?1", key)?;
    Ok((span, CompactionId::from(id)))
}

pub(super) fn id_of(conn: &Connection, key: i64) -> BackendResult<CompactionId> {
    let id: String = conn.one("SELECT id FROM compaction WHERE key = ?1", key)?;
    Ok(CompactionId::from(id))
}

/// For `verify`.
pub(super) const EVERY: &str = select_compactions!("");

/// Adds a compaction as [`add`] does if the view of its range is still what was seen; returns whether it is visible
/// at the head.
pub(crate) fn commit(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    compaction: &Compaction,
    leaf: &MessageId,
    seen: &Seen,
) -> BackendResult<(Compaction, CompactionStatus)> {
    let stale = |why: Stale| BackendError::Own(Error::Stale { why });
    let first = end(conn, session, name, &compaction.first, End::First).map_err(as_stale)?.0;
    let last = end(conn, session, name, &compaction.last, End::Last).map_err(as_stale)?.0;
    // Checked first: the items inside a removed summary would say less about the reason.
    for id in seen.ids().filter_map(CompactionId::from_message) {
        require(conn, Some(session.key), name, &id).map_err(as_stale)?;
    }
    let holds = |leaf, at| path::holds(conn, leaf, at);
    // If the conversation has continued past `leaf`, a newer compaction may cover the range and end after it, so the
    // view at the head counts.
    let planned = match message::place(conn, Some(session.key), name, leaf) {
        Ok(planned) => Some(planned),
        Err(BackendError::Own(Error::UnknownMessage { .. })) => None,
        Err(error) => return Err(error),
    };
    // `leaf` may be deleted; its id may also belong to an ancestor of the range's end.
    let planned = planned.filter(|leaf| *leaf >= last);
    let leaf = match planned {
        Some(leaf) if !holds(session.head, leaf)? => leaf,
        None if !holds(session.head, last)? => last,
        _ => session.head.unwrap_or(last),
    };
    let shown = match shown_between(conn, first, last, leaf)? {
        Shown::Plan(plan) => plan,
        Shown::Across(span) => {
            return Err(stale(Stale::Compacted { by: id_of(conn, span.key)? }));
        }
    };
    let now = PlanReader::new(shown, Order::OldestFirst, true).rest(conn)?;
    seen.check(&now).map_err(stale)?;
    add(conn, session, name, compaction, compaction.tokens_after)?;
    stored(conn, session, name, &compaction.id)
}

/// Returns the error for a plan one of whose ends was deleted.
fn as_stale(error: BackendError) -> BackendError {
    let why = match error {
        BackendError::Own(Error::UnknownMessage { id, .. }) => Stale::Deleted { id },
        BackendError::Own(Error::UnknownCompaction { id, .. }) => Stale::CompactionRemoved { id },
        other => return other,
    };
    BackendError::Own(Error::Stale { why })
}

/// The view of a range on the path to a leaf.
enum Shown {
    Plan(Plan),
    /// A summary that covers more than the range.
    Across(Span),
}

fn shown_between(
    conn: &Connection,
    first: Address,
    last: Address,
    leaf: Address,
) -> BackendResult<Shown> {
    let mut tree = SessionTree::new(conn, leaf.session());
    let mut walk = Walk::visible(&mut tree, Some(leaf));
    let mut plan = Plan::new();
    while let Some(planned) = walk.next()? {
        match planned {
            PlanPart::Summary(span) if span.first > last => {}
            PlanPart::Summary(span) if span.last > last || span.first < first => {
                return Ok(Shown::Across(span));
            }
            PlanPart::Summary(_) => plan.push(planned),
            PlanPart::Messages { first: start, last: end } if start <= last => {
                let (start, end) = (start.max(first), end.min(last));
                if start <= end {
                    plan.push(PlanPart::Messages { first: start, last: end });
                }
            }
            PlanPart::Messages { .. } => {}
        }
        if walk.position().is_none_or(|at| at < first) {
            break;
        }
    }
    Ok(Shown::Plan(plan))
}
