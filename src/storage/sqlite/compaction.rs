//! Compactions: storing them, finding those that touch a message.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::catalog::SessionRow;
use super::context::prompt;
use super::fault::{Fault, Outcome, corrupt, damaged};
use super::message::{self, time};
use super::path;
use super::shape::{Below, Shape};
use super::visible;
use crate::compaction::{Compaction, CompactionStatus};
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Json, Message};
use crate::tree::{Address, Overlay, Plan, Stretch, Walk};

/// Returns the SQL that reads the columns of [`read`], of the rows that what is given names.
macro_rules! select {
    ($which:literal) => {
        concat!(
            "SELECT key, first, last, id, first_id, last_id, count, summary, details, created_at,
                    before, after, folds, model
               FROM compaction ",
            $which
        )
    };
}

/// Lays a summary over whole items of the view at its last message, and thaws the prompt.
///
/// `after` is what the summary takes as a message, if the compaction does not say.
pub(super) fn add(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    compaction: &Compaction,
    after: u64,
) -> Outcome<()> {
    if find(conn, session.key, &compaction.id)?.is_some() {
        return Ok(());
    }
    let first = end(conn, session, name, &compaction.first, End::First)?;
    let last = end(conn, session, name, &compaction.last, End::Last)?;
    let folded = folded(conn, (first.0, &first.1), (last.0, &last.1))?;
    let mut compaction = compaction.clone();
    let overlay = Overlay { key: 0, first: first.0, last: last.0 };
    (compaction.first, compaction.last) = (first.1, last.1);
    // One that was made elsewhere knows what it stood for then.
    if compaction.count == 0 {
        compaction.count = path::count_between(conn, overlay.first, overlay.last)?;
        compaction.folds = summaries_of(conn, &folded)?;
    }
    if compaction.tokens_before == 0 {
        compaction.tokens_before = tokens_of(conn, &folded)?;
    }
    if compaction.tokens_after == 0 {
        compaction.tokens_after = after;
    }
    insert(conn, session.key, overlay, &compaction)?;
    // What the model sees begins anew; the next prompt says what the blocks have come to hold.
    prompt::thaw(conn, session.key)
}

/// Returns how many tokens a model sees of a plan, by their stamps.
fn tokens_of(conn: &Connection, plan: &Plan) -> Outcome<u64> {
    let mut tokens = visible::stamped(conn, plan)?;
    for stretch in plan {
        if let Stretch::Summary(overlay) = stretch {
            let taken_in = by_key(conn, overlay.key)?;
            tokens =
                tokens.saturating_add(taken_in.map_or(0, |compaction| compaction.tokens_after));
        }
    }
    Ok(tokens)
}

/// Returns the summaries of a plan, oldest first.
fn summaries_of(conn: &Connection, plan: &Plan) -> Outcome<Vec<CompactionId>> {
    let overlays = plan.iter().rev().filter_map(|stretch| match stretch {
        Stretch::Summary(overlay) => Some(overlay.key),
        Stretch::Messages { .. } => None,
    });
    overlays.map(|key| id_of(conn, key)).collect()
}

/// Which end of a stretch.
#[derive(Clone, Copy)]
pub(super) enum End {
    First,
    Last,
}

/// Returns where an end lies and what it is called: a message, or that end of a summary, whose own
/// messages may be deleted.
pub(super) fn end(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    id: &MessageId,
    end: End,
) -> Outcome<(Address, MessageId)> {
    let Some(summary) = CompactionId::from_message(id) else {
        return Ok((message::require(conn, Some(session.key), name, id)?, id.clone()));
    };
    let overlay = require(conn, Some(session.key), name, &summary)?;
    let compaction = by_key(conn, overlay.key)?
        .ok_or_else(|| corrupt(format!("compaction {summary:?} has lost its row")))?;
    Ok(match end {
        End::First => (overlay.first, compaction.first),
        End::Last => (overlay.last, compaction.last),
    })
}

/// Returns what a stretch folds: whole items of the view at its last message, and one that shows.
fn folded(
    conn: &Connection,
    first: (Address, &MessageId),
    last: (Address, &MessageId),
) -> Outcome<Plan> {
    let inside = |id: &MessageId, overlay: Overlay| -> Outcome<Fault> {
        let compaction = id_of(conn, overlay.key)?;
        Ok(Fault::Own(Error::InsideSummary { id: id.clone(), compaction }))
    };
    let not_ancestor =
        || Fault::Own(Error::NotAncestor { first: first.1.clone(), last: last.1.clone() });
    if !path::holds(conn, Some(last.0), first.0)? {
        return Err(not_ancestor());
    }
    let mut shape = Shape::new(conn, last.0.session());
    let mut walk = Walk::visible(&mut shape, Some(last.0));
    let mut folded = Plan::new();
    while let Some(stretch) = walk.next()? {
        let start = match stretch {
            Stretch::Summary(overlay) if overlay.first < first.0 => {
                return Err(inside(first.1, overlay)?);
            }
            Stretch::Summary(overlay) => {
                folded.push(stretch);
                overlay.first
            }
            Stretch::Messages { first: start, last } => {
                folded.push(Stretch::Messages { first: start.max(first.0), last });
                start
            }
        };
        if start <= first.0 {
            // A summary in place of nothing would lengthen the history.
            return match path::count(conn, &folded, true)? {
                0 => Err(Fault::Own(Error::NothingToFold {
                    first: first.1.clone(),
                    last: last.1.clone(),
                })),
                _ => Ok(folded),
            };
        }
    }
    Err(not_ancestor())
}

/// Stores a compaction whose addresses are known to be right.
pub(super) fn insert(
    conn: &Connection,
    session: i64,
    overlay: Overlay,
    compaction: &Compaction,
) -> Outcome<()> {
    // Figures may come from a file; integers of SQLite's end sooner than those of Rust.
    let figure = |count: u64| count.min(i64::MAX as u64);
    conn.prepare_cached(
        "INSERT INTO compaction
                (session, id, first, last, first_id, last_id, count, summary, details, created_at,
                 before, after, folds, model)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        session,
        compaction.id.as_str(),
        overlay.first,
        overlay.last,
        compaction.first.as_str(),
        compaction.last.as_str(),
        figure(compaction.count),
        compaction.summary,
        compaction.details.as_ref().map(Json::as_str),
        compaction.created_at.timestamp_micros(),
        figure(compaction.tokens_before),
        figure(compaction.tokens_after),
        folds_to_text(&compaction.folds)?,
        compaction.model,
    ])?;
    Ok(())
}

/// Returns the ids of folded summaries as JSON; none for none.
fn folds_to_text(folds: &[CompactionId]) -> Outcome<Option<String>> {
    let text = (!folds.is_empty()).then(|| serde_json::to_string(folds)).transpose();
    text.map_err(|source| Fault::Own(Error::Json { what: "a list of summaries", source }))
}

/// Takes a compaction off.
pub(super) fn remove(conn: &Connection, key: i64) -> Outcome<()> {
    conn.prepare_cached("DELETE FROM compaction WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// Returns all compactions of a session, in the order they were made.
pub(super) fn all(conn: &Connection, session: i64) -> Outcome<Vec<(Overlay, Compaction)>> {
    let mut statement = conn.prepare_cached(select!("WHERE session = ?1 ORDER BY key"))?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((read_overlay(row)?, read(row)?));
    }
    Ok(found)
}

/// Returns the compaction of this key.
pub(super) fn by_key(conn: &Connection, key: i64) -> Outcome<Option<Compaction>> {
    let mut statement = conn.prepare_cached(select!("WHERE key = ?1"))?;
    let mut rows = statement.query([key])?;
    rows.next()?.map(read).transpose()
}

/// Returns the summary as it reads in a history, with what it follows.
pub(super) fn summary(conn: &Connection, overlay: Overlay) -> Outcome<Option<Message>> {
    let Some(compaction) = by_key(conn, overlay.key)? else { return Ok(None) };
    let parent = message::parent(conn, overlay.first)?;
    let parent = message::nearest_living(conn, parent)?.map(|(_, id)| id);
    Ok(Some(compaction.to_message(parent)))
}

/// Returns the plan of what shows in place of a summary once it is taken off: messages, and the
/// summaries it took in.
pub(super) fn below(conn: &Connection, overlay: Overlay) -> Outcome<Plan> {
    let mut below = Below::new(conn, overlay);
    let mut walk = Walk::visible(&mut below, Some(overlay.last));
    let mut plan = Plan::new();
    while let Some(stretch) = walk.next()? {
        let start = match stretch {
            Stretch::Summary(inner) => {
                plan.push(stretch);
                inner.first
            }
            Stretch::Messages { first, last } => {
                plan.push(Stretch::Messages { first: first.max(overlay.first), last });
                first
            }
        };
        if start <= overlay.first {
            break;
        }
    }
    Ok(plan)
}

/// Returns what has become of a compaction, as seen from the head.
pub(super) fn status(
    conn: &Connection,
    session: &SessionRow,
    overlay: Overlay,
) -> Outcome<CompactionStatus> {
    if !path::holds(conn, session.head, overlay.last)? {
        return Ok(CompactionStatus::OffPath);
    }
    let mut shape = Shape::new(conn, session.key);
    let mut walk = Walk::visible(&mut shape, session.head);
    while let Some(stretch) = walk.next()? {
        match stretch {
            Stretch::Summary(shown) if shown.key == overlay.key => break,
            Stretch::Summary(shown) if shown.first <= overlay.last => {
                return Ok(CompactionStatus::Under { id: id_of(conn, shown.key)? });
            }
            _ => {}
        }
    }
    Ok(CompactionStatus::Shown)
}

/// Returns the key of the newest compaction of the store; 0 if there is none.
pub(super) fn newest(conn: &Connection) -> Outcome<i64> {
    let key = conn
        .prepare_cached("SELECT coalesce(max(key), 0) FROM compaction")?
        .query_row([], |row| row.get(0))?;
    Ok(key)
}

/// Returns where the compaction of this id lies.
pub(super) fn find(conn: &Connection, session: i64, id: &CompactionId) -> Outcome<Option<Overlay>> {
    let overlay = conn
        .prepare_cached("SELECT key, first, last FROM compaction WHERE session = ?1 AND id = ?2")?
        .query_row((session, id.as_str()), read_overlay)
        .optional()?;
    Ok(overlay)
}

/// Returns where the compaction of this id lies, which must be in the session.
pub(super) fn require(
    conn: &Connection,
    session: Option<i64>,
    name: &SessionId,
    id: &CompactionId,
) -> Outcome<Overlay> {
    let found = session.map(|session| find(conn, session, id)).transpose()?.flatten();
    found.ok_or_else(|| {
        Fault::Own(Error::UnknownCompaction { session: name.clone(), id: id.clone() })
    })
}

/// Returns the compactions that cover a message.
pub(super) fn covering(conn: &Connection, address: Address) -> Outcome<Vec<Overlay>> {
    let (_, end) = Address::range_of(address.session());
    let mut statement = conn.prepare_cached(COVERING)?;
    let mut found = Vec::new();
    for overlay in statement.query_map([address, end], read_overlay)? {
        let overlay = overlay?;
        if path::holds(conn, Some(overlay.last), address)? {
            found.push(overlay);
        }
    }
    found.sort_unstable_by_key(|overlay| overlay.key);
    Ok(found)
}

pub(super) const COVERING: &str = "SELECT key, first, last
   FROM compaction
  WHERE last BETWEEN ?1 AND ?2
    AND first <= ?1";

/// Returns the id of a compaction.
pub(super) fn id_of(conn: &Connection, key: i64) -> Outcome<CompactionId> {
    let id: String = conn
        .prepare_cached("SELECT id FROM compaction WHERE key = ?1")?
        .query_row([key], |row| row.get(0))?;
    Ok(CompactionId::from(id))
}

fn read_overlay(row: &Row<'_>) -> rusqlite::Result<Overlay> {
    Ok(Overlay { key: row.get(0)?, first: row.get(1)?, last: row.get(2)? })
}

/// Every row, as [`read`] takes it.
pub(super) const EVERY: &str = select!("");

pub(super) fn read(row: &Row<'_>) -> Outcome<Compaction> {
    let id = CompactionId::from(row.get_ref(3)?.as_str()?);
    read_named(row, &id).map_err(damaged(format_args!("compaction {id:?}")))
}

fn read_named(row: &Row<'_>, id: &CompactionId) -> Outcome<Compaction> {
    Ok(Compaction {
        id: id.clone(),
        first: MessageId::from(row.get_ref(4)?.as_str()?),
        last: MessageId::from(row.get_ref(5)?.as_str()?),
        count: row.get(6)?,
        summary: row.get(7)?,
        details: row.get_ref(8)?.as_str_or_null()?.map(Json::parse).transpose()?,
        created_at: time(row.get(9)?)?,
        tokens_before: row.get(10)?,
        tokens_after: row.get(11)?,
        folds: match row.get_ref(12)?.as_str_or_null()? {
            Some(text) => serde_json::from_str(text)
                .map_err(|error| corrupt(format!("the summaries it took in: {error}")))?,
            None => Vec::new(),
        },
        model: row.get(13)?,
    })
}
