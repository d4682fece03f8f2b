//! Committing a compaction plan: the compaction is added if what the plan saw is still visible.

use rusqlite::Connection;

use super::super::error::{BackendError, BackendResult};
use super::super::plan_reader::PlanReader;
use super::super::row::session::SessionRow;
use super::super::tree_source::SessionTree;
use super::super::{message, path};
use super::{End, add, end, id_of, require, status};
use crate::compaction::{Compaction, CompactionStatus, Seen, Stale};
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::tree::{Address, Plan, Span, Stretch, Walk};
use crate::view::Order;

/// Adds a compaction as [`add`] does if the view of its range is still what was seen; returns whether it is visible
/// at the head.
pub(in super::super) fn commit(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    compaction: &Compaction,
    leaf: &MessageId,
    seen: &Seen,
) -> BackendResult<bool> {
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
    // Looked up after the insert, where an unknown id can only be damage.
    let span = require(conn, Some(session.key), name, &compaction.id)?;
    Ok(status(conn, session, span)? == CompactionStatus::Shown)
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
    while let Some(stretch) = walk.next()? {
        match stretch {
            Stretch::Summary(span) if span.first > last => {}
            Stretch::Summary(span) if span.last > last || span.first < first => {
                return Ok(Shown::Across(span));
            }
            Stretch::Summary(_) => plan.push(stretch),
            Stretch::Messages { first: start, last: end } if start <= last => {
                let (start, end) = (start.max(first), end.min(last));
                if start <= end {
                    plan.push(Stretch::Messages { first: start, last: end });
                }
            }
            Stretch::Messages { .. } => {}
        }
        if walk.position().is_none_or(|at| at < first) {
            break;
        }
    }
    Ok(Shown::Plan(plan))
}
