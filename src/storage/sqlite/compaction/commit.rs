//! Plans that are committed: a summary is laid if what was planned on still shows.

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

/// Lays a summary as [`add`] does, if the stretch is still what was seen of it; returns whether it
/// shows at the head.
pub(in super::super) fn commit(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    compaction: &Compaction,
    leaf: &MessageId,
    seen: &Seen,
) -> BackendResult<bool> {
    let stale = |why: Stale| BackendError::Own(Error::Stale { why });
    let first = end(conn, session, name, &compaction.first, End::First).map_err(went)?.0;
    let last = end(conn, session, name, &compaction.last, End::Last).map_err(went)?.0;
    // What shows in the place of a summary that was taken off would tell less.
    for id in seen.ids().filter_map(CompactionId::from_message) {
        require(conn, Some(session.key), name, &id).map_err(went)?;
    }
    let holds = |leaf, at| path::holds(conn, leaf, at);
    // Where the conversation has gone on from there: what was laid over the stretch since may end further on.
    let planned = message::find(conn, session.key, leaf)?;
    // It may have been planned on a deleted message, which a leaf above it stands for.
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
    // Asked afterwards, a failure of the question would read as one of the compaction.
    let span = require(conn, Some(session.key), name, &compaction.id)?;
    Ok(status(conn, session, span)? == CompactionStatus::Shown)
}

/// Returns the error of a plan one of whose ends is gone.
fn went(error: BackendError) -> BackendError {
    let why = match error {
        BackendError::Own(Error::UnknownMessage { id, .. }) => Stale::Deleted { id },
        BackendError::Own(Error::UnknownCompaction { id, .. }) => Stale::CompactionRemoved { id },
        other => return other,
    };
    BackendError::Own(Error::Stale { why })
}

/// What shows of a stretch on the path to a leaf.
enum Shown {
    Plan(Plan),
    /// A summary that reaches beyond the stretch.
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
