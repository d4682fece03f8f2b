//! Paths: planning what to read, measuring, asking what lies on one.

use rusqlite::Connection;

use super::fault::Outcome;
use super::shape::Shape;
use crate::tree::{Address, Plan, Stretch, Walk};

/// Returns the plan of the path to a leaf: the stored messages, or what a model should see.
pub(super) fn plan(
    conn: &Connection,
    session: i64,
    leaf: Option<Address>,
    is_raw: bool,
) -> Outcome<Plan> {
    let mut shape = Shape::new(conn, session);
    let walk = match is_raw {
        true => Walk::raw(&mut shape, leaf),
        false => Walk::visible(&mut shape, leaf),
    };
    Ok(walk.plan()?)
}

/// Returns whether the path to `leaf` holds the address.
pub(super) fn holds(conn: &Connection, leaf: Option<Address>, address: Address) -> Outcome<bool> {
    let mut shape = Shape::new(conn, address.session());
    Ok(Walk::raw(&mut shape, leaf).reaches(address)?)
}

/// Returns how many messages and summaries a plan shows.
pub(super) fn count(conn: &Connection, plan: &Plan, omits_hidden: bool) -> Outcome<u64> {
    let (mut total, mut low, mut high) = (0, None, None);
    for stretch in plan {
        match *stretch {
            Stretch::Summary(_) => total += 1,
            Stretch::Messages { first, last } => {
                total += (last.raw() - first.raw() + 1) as u64;
                low = Some(first);
                high = high.or(Some(last));
            }
        }
    }
    let (Some(low), Some(high)) = (low, high) else { return Ok(total) };
    for (condition, is_counted) in [(TOMBSTONES, true), (HIDDEN, omits_hidden)] {
        // Most sessions have none at all: one look saves one for each stretch.
        let mut statement = conn.prepare_cached(condition)?;
        let mut within = |low: Address, high: Address| -> Outcome<u64> {
            Ok(statement.query_row([low, high], |row| row.get(0))?)
        };
        if !is_counted || within(low, high)? == 0 {
            continue;
        }
        for stretch in plan {
            if let Stretch::Messages { first, last } = *stretch {
                total -= within(first, last)?;
            }
        }
    }
    Ok(total)
}

/// Returns how many messages, not tombstones, lie in `first ..= last` of the path to `last`.
pub(super) fn count_between(conn: &Connection, first: Address, last: Address) -> Outcome<u64> {
    count(conn, &between(conn, first, last)?, false)
}

/// Returns the plan of the stored messages `first ..= last`, where `first` lies on the path to
/// `last`.
pub(super) fn between(conn: &Connection, first: Address, last: Address) -> Outcome<Plan> {
    let mut shape = Shape::new(conn, last.session());
    let mut walk = Walk::raw(&mut shape, Some(last));
    let mut plan = Plan::new();
    while let Some(stretch) = walk.next()? {
        let Stretch::Messages { first: start, last: end } = stretch else { continue };
        if end < first {
            break;
        }
        plan.push(Stretch::Messages { first: start.max(first), last: end });
        if start <= first {
            break;
        }
    }
    Ok(plan)
}

pub(super) const TOMBSTONES: &str =
    "SELECT count(*) FROM message WHERE id IS NULL AND address BETWEEN ?1 AND ?2";

pub(super) const HIDDEN: &str =
    "SELECT count(*) FROM message WHERE hidden = 1 AND address BETWEEN ?1 AND ?2";
