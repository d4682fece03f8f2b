//! The statistics of a store, from its runs and branches.

use std::collections::HashMap;

use super::connection::Database;
use super::file;
use crate::error::Result;
use crate::report::StoreStats;
use crate::sql::{BackendResult, Connection};
use crate::tree::Address;

/// A break: where a run starts, and how many messages precede it on its path.
struct Break {
    start: Address,
    depth: u64,
}

/// Leftovers do not count.
const HIDDEN: &str = "SELECT count(*)
   FROM message
  WHERE hidden = 1 AND address >> 32 NOT IN (SELECT session FROM leftover)";
const ELISIONS: &str = "SELECT count(*)
   FROM elision
  WHERE address >> 32 NOT IN (SELECT session FROM leftover)";
const ENTRIES: &str = "SELECT count(*)
   FROM transcript_entry
  WHERE transcript NOT IN (SELECT transcript FROM leftover)";

const OF_MEMORY: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
const OF_SCHEMA: &str = "SELECT CAST(sum(pg_total_relation_size(oid)) AS BIGINT)
   FROM pg_class
  WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r'";

impl Database {
    pub(crate) fn stats(&self) -> Result<StoreStats> {
        let bytes = self.path().map(|path| {
            let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |m| m.len());
            size(path) + size(&file::beside(path, "-wal"))
        });
        self.read_long(|conn| {
            let count = |sql| conn.one::<u64>(sql, ());
            let hidden = count(HIDDEN)?;
            let living = count("SELECT CAST(coalesce(sum(messages), 0) AS BIGINT) FROM session")?;
            let (branching_messages, max_children) = branching(conn, living)?;
            Ok(StoreStats {
                sessions: count("SELECT count(*) FROM session")?,
                messages: living.saturating_sub(hidden),
                hidden,
                branching_messages,
                max_children,
                max_depth: max_depth(conn)?,
                compactions: count("SELECT count(*) FROM compaction")?,
                context_entries: count("SELECT count(*) FROM context_entry WHERE present = 1")?,
                context_versions: count("SELECT count(*) FROM context_version")?,
                elisions: count(ELISIONS)?,
                transcripts: count("SELECT count(*) FROM transcript")?,
                transcript_entries: count(ENTRIES)?,
                inbox_items: count("SELECT count(*) FROM inbox_item WHERE key IS NOT NULL")?,
                bytes: match bytes {
                    Some(bytes) => bytes,
                    None => count(conn.by_engine(OF_MEMORY, OF_SCHEMA))?,
                },
            })
        })
    }
}

/// Returns how many messages have more than one child, and the most children of one; `living` is the number of
/// messages.
fn branching(conn: &Connection, living: u64) -> BackendResult<(u64, u64)> {
    // Counts the branches of a message and its child in the run.
    let branches = conn.rows(
        "SELECT parent, count(*) + CASE WHEN EXISTS (SELECT 1
                                                       FROM message AS next
                                                      WHERE next.address = message.parent + 1
                                                        AND next.parent = message.parent)
                                        THEN 1 ELSE 0 END
           FROM message
          WHERE parent IS DISTINCT FROM address - 1 AND parent IS NOT NULL
            AND address >> 32 NOT IN (SELECT session FROM leftover)
          GROUP BY parent",
        (),
    )?;
    let mut children: HashMap<Address, u64> = branches.into_iter().collect();
    let mut roots: u64 = conn.one(
        "SELECT count(*)
           FROM message
          WHERE parent IS NULL AND parent IS DISTINCT FROM address - 1
            AND address >> 32 NOT IN (SELECT session FROM leftover)",
        (),
    )?;
    // The children of a tombstone count as its parent's. Newest first, because tombstones nest.
    for (tombstone, parent) in tombstones(conn)?.into_iter().rev() {
        let count = children.remove(&tombstone).unwrap_or(1);
        match parent {
            Some(parent) => *children.entry(parent).or_insert(1) += count - 1,
            None => roots += count - 1,
        }
    }
    let branching = children.values().filter(|count| **count > 1).count() as u64;
    // The map has only parents of branches. Unless every message is a root, some message has one child.
    let widest = children.values().copied().max().unwrap_or(0);
    Ok((branching, widest.max(u64::from(living > roots))))
}

/// Returns the tombstones with their parents, in order.
fn tombstones(conn: &Connection) -> BackendResult<Vec<(Address, Option<Address>)>> {
    conn.rows(
        "SELECT address, parent
           FROM message
          WHERE id IS NULL AND address >> 32 NOT IN (SELECT session FROM leftover)
          ORDER BY address",
        (),
    )
}

fn max_depth(conn: &Connection) -> BackendResult<u64> {
    let tombstones: Vec<Address> =
        tombstones(conn)?.into_iter().map(|(address, _)| address).collect();
    let living = |first: Address, last: Address| {
        let dead = tombstones.partition_point(|address| *address <= last)
            - tombstones.partition_point(|address| *address < first);
        (last.raw() - first.raw() + 1) as u64 - dead as u64
    };
    let starts: Vec<(Address, Option<Address>)> = conn.rows(
        "SELECT address, parent
           FROM message
          WHERE parent IS DISTINCT FROM address - 1
            AND address >> 32 NOT IN (SELECT session FROM leftover)
          ORDER BY address",
        (),
    )?;
    let mut breaks: Vec<Break> = Vec::with_capacity(starts.len());
    for (start, parent) in starts {
        let depth = parent.map_or(0, |parent| {
            let place = breaks.partition_point(|run| run.start <= parent);
            place.checked_sub(1).map_or(0, |place| {
                let run = &breaks[place];
                run.depth + living(run.start, parent)
            })
        });
        breaks.push(Break { start, depth });
    }
    let mut deepest = 0;
    let last_before = "SELECT max(address) FROM message WHERE address >= ?1 AND address < ?2";
    for (place, run) in breaks.iter().enumerate() {
        let end = Address::range_of(run.start.session()).1;
        let next = breaks.get(place + 1).map_or(end, |next| next.start.min(end));
        let end: Option<Address> = conn.one(last_before, [run.start, next])?;
        // Only an address that no talktree gives is not before the next one.
        deepest = deepest.max(run.depth + living(run.start, end.unwrap_or(run.start)));
    }
    Ok(deepest)
}
