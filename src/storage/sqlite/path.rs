//! Paths: planning a read, counting, testing whether a path contains a message.

use rusqlite::Connection;

use super::children;
use super::error::BackendResult;
use super::tree_source::SessionTree;
use crate::id::MessageId;
use crate::message::Role;
use crate::outcome::RowStat;
use crate::tree::{Address, Plan, Stretch, Walk};

/// Returns the plan of the path to a leaf: the stored messages, or what a model should see.
pub(super) fn plan(
    conn: &Connection,
    session: i64,
    leaf: Option<Address>,
    is_raw: bool,
) -> BackendResult<Plan> {
    let mut tree = SessionTree::new(conn, session);
    let walk = match is_raw {
        true => Walk::raw(&mut tree, leaf),
        false => Walk::visible(&mut tree, leaf),
    };
    walk.plan()
}

/// Returns whether an address is on the path to `leaf`.
pub(super) fn holds(
    conn: &Connection,
    leaf: Option<Address>,
    address: Address,
) -> BackendResult<bool> {
    let mut tree = SessionTree::new(conn, address.session());
    Walk::raw(&mut tree, leaf).reaches(address)
}

/// Returns how many messages and summaries a plan shows.
pub(super) fn count(conn: &Connection, plan: &Plan, omits_hidden: bool) -> BackendResult<u64> {
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
        // Most sessions have no such rows: one query for the whole plan saves one per range.
        let mut statement = conn.prepare_cached(condition)?;
        let mut within = |low: Address, high: Address| -> BackendResult<u64> {
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

/// Returns how many messages, not tombstones, are in `first ..= last` of the path to `last`.
pub(super) fn count_between(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<u64> {
    count(conn, &between(conn, first, last)?, false)
}

/// Returns the plan of the stored messages `first ..= last`, where `first` is on the path to `last`.
pub(super) fn between(conn: &Connection, first: Address, last: Address) -> BackendResult<Plan> {
    let mut tree = SessionTree::new(conn, last.session());
    let mut walk = Walk::raw(&mut tree, Some(last));
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

/// Returns the plan of every message of a session.
pub(super) fn everything(conn: &Connection, session: i64) -> BackendResult<Plan> {
    let (first, _) = Address::range_of(session);
    // One range of addresses, whatever the parents are: reading skips unused addresses.
    Ok(children::latest(conn, session)?
        .map(|last| Stretch::Messages { first, last })
        .into_iter()
        .collect())
}

/// Returns how many messages a session has on all branches.
pub(super) fn count_all(conn: &Connection, session: i64) -> BackendResult<u64> {
    let (first, last) = Address::range_of(session);
    let count = conn
        .prepare_cached(
            "SELECT count(*) FROM message WHERE id IS NOT NULL AND address BETWEEN ?1 AND ?2",
        )?
        .query_row([first, last], |row| row.get(0))?;
    Ok(count)
}

pub(super) const TOMBSTONES: &str =
    "SELECT count(*) FROM message WHERE id IS NULL AND address BETWEEN ?1 AND ?2";

pub(super) const HIDDEN: &str =
    "SELECT count(*) FROM message WHERE hidden = 1 AND address BETWEEN ?1 AND ?2";

/// Returns size and tokens of each message of a plan, oldest first.
pub(super) fn row_stats(conn: &Connection, plan: &Plan) -> BackendResult<Vec<RowStat>> {
    let mut statement = conn.prepare_cached(
        "SELECT id, role, tokens,
                octet_length(parts) + coalesce(octet_length(metadata), 0)
                + coalesce(octet_length(extra), 0)
           FROM message
          WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL
          ORDER BY address",
    )?;
    let mut stats = Vec::new();
    for stretch in plan.iter().rev() {
        let Stretch::Messages { first, last } = *stretch else { continue };
        let mut rows = statement.query([first, last])?;
        while let Some(row) = rows.next()? {
            stats.push(RowStat {
                id: MessageId::from(row.get_ref(0)?.as_str()?),
                role: Role::from(row.get_ref(1)?.as_str()?),
                tokens: row.get(2)?,
                bytes: row.get(3)?,
            });
        }
    }
    Ok(stats)
}
