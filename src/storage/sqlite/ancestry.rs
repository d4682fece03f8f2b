//! Which of some messages is nearest above a place, asked for many places of one session.
//!
//! Addresses increase along a path, so a range `first ..= last` of it holds one of the messages if the nearest one at or
//! above `last` is not before `first`. Answers for runs and for what was scanned are kept: asking for the ends of all
//! summaries of a path reads each run once, not once for each summary.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension};

use super::error::{BackendResult, corrupt};
use super::tree_source::SessionTree;
use crate::tree::{Address, TreeSource};

/// The messages that are looked for.
enum Wanted<'a> {
    These(&'a BTreeSet<Address>),
    /// Those that a model sees unless a summary covers them.
    Visible(Scanned<'a>),
}

pub(super) struct Ancestry<'a> {
    tree: SessionTree<'a>,
    wanted: Wanted<'a>,
    /// By the start of a run: the nearest one above the run.
    above: HashMap<Address, Option<Address>>,
}

impl<'a> Ancestry<'a> {
    /// Looks for these addresses.
    pub(super) fn of(conn: &'a Connection, session: i64, these: &'a BTreeSet<Address>) -> Self {
        Self::new(conn, session, Wanted::These(these))
    }

    /// Looks for messages that are neither deleted nor hidden.
    pub(super) fn of_visible(conn: &'a Connection, session: i64) -> Self {
        Self::new(conn, session, Wanted::Visible(Scanned { conn, found: BTreeMap::new() }))
    }

    fn new(conn: &'a Connection, session: i64, wanted: Wanted<'a>) -> Self {
        Self { tree: SessionTree::new(conn, session), wanted, above: HashMap::new() }
    }

    /// Returns the nearest one at a place or above it.
    pub(super) fn nearest(&mut self, place: Address) -> BackendResult<Option<Address>> {
        let (mut at, mut passed) = (Some(place), Vec::new());
        let mut nearest = None;
        while let Some(address) = at {
            let run = self.tree.run_of(address)?;
            if run.start > address || run.parent.is_some_and(|parent| parent >= run.start) {
                let what = format!("message {} has a newer parent", run.start.n());
                return Err(corrupt(what));
            }
            nearest = match &mut self.wanted {
                Wanted::These(these) => these.range(run.start..=address).next_back().copied(),
                Wanted::Visible(scanned) => scanned.last_between(run.start, address)?,
            };
            if nearest.is_some() {
                break;
            }
            if let Some(known) = self.above.get(&run.start) {
                nearest = *known;
                break;
            }
            passed.push(run.start);
            at = run.parent;
        }
        self.above.extend(passed.into_iter().map(|start| (start, nearest)));
        Ok(nearest)
    }
}

/// Visible messages, as far as they were scanned.
struct Scanned<'a> {
    conn: &'a Connection,
    /// By the end of a scan: where it stopped, and whether a message is there.
    found: BTreeMap<Address, (Address, bool)>,
}

impl Scanned<'_> {
    /// Returns the last visible message of a part of a run.
    fn last_between(&mut self, first: Address, last: Address) -> BackendResult<Option<Address>> {
        if let Some((_, (stop, is_visible))) = self.found.range(last..).next()
            && *stop <= last
            && *stop >= first
        {
            return Ok(is_visible.then_some(*stop));
        }
        let found: Option<Address> = self
            .conn
            .prepare_cached(LAST_VISIBLE)?
            .query_row([first, last], |row| row.get(0))
            .optional()?;
        self.found.insert(last, (found.unwrap_or(first), found.is_some()));
        Ok(found)
    }
}

/// A row is asked for in the index of hidden ones: in the row itself the flag lies behind the content.
pub(super) const LAST_VISIBLE: &str = "SELECT address
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
    AND NOT EXISTS (SELECT 1
                      FROM message AS other INDEXED BY unshown
                     WHERE other.hidden = 1 AND other.address = message.address)
  ORDER BY address DESC
  LIMIT 1";
