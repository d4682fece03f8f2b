//! Paths: planning a read, counting, testing whether a path contains a message.
//!
//! [`SessionTree`] is the tree as the walk reads it. Runs come from the partial index of breaks. Short runs come in series, so breaks are read a buffer at a time, and
//! the buffer grows while the walk uses its content.
//!
//! [`Ancestry`] tells which of some messages is nearest above a place. Addresses increase along a path, so a range `first ..= last` of it holds one of the messages if the nearest one at or
//! above `last` is not before `first`. Answers for runs and for what was scanned are kept: asking for the ends of all
//! summaries of a path reads each run once, not once for each summary.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::children;
use crate::id::MessageId;
use crate::message::Role;
use crate::outcome::RowStat;
use crate::sql::{BackendError, BackendResult, Connection, Read, Row, corrupt};
use crate::tree::{Address, Plan, PlanPart, Run, Span, TreeSource, Walk};

/// Returns the plan of the path to a leaf: the stored messages, or what a model should see.
pub(crate) fn plan(
    conn: &Connection,
    session: i64,
    leaf: Option<Address>,
    is_raw: bool,
) -> BackendResult<Plan> {
    let mut tree = SessionTree::new(conn, session);
    match (is_raw, leaf) {
        (false, Some(leaf)) => {
            ask_ahead(conn, std::iter::once(leaf), 1)?;
            Walk::visible(&mut tree, Some(leaf)).plan()
        }
        _ => Walk::raw(&mut tree, leaf).plan(),
    }
}

/// Asks a server what so many walks from each of some leaves will ask, one of them over what a model sees.
pub(crate) fn ask_ahead(
    conn: &Connection,
    leaves: impl Iterator<Item = Address> + Clone,
    walks: usize,
) -> BackendResult<()> {
    let ahead = conn.read_ahead();
    let floor = |leaf: &Address| Address::range_of(leaf.session()).0;
    for leaf in leaves.clone() {
        conn.ask_ahead(SPANS_BEFORE, (leaf, floor(&leaf), i64::MAX, ahead))?;
    }
    for leaf in (0..walks).flat_map(|_| leaves.clone()) {
        conn.ask_ahead(BREAKS_BEFORE, (leaf, floor(&leaf), ahead))?;
    }
    Ok(())
}

/// Returns whether an address is on the path to `leaf`.
pub(crate) fn holds(
    conn: &Connection,
    leaf: Option<Address>,
    address: Address,
) -> BackendResult<bool> {
    let mut tree = SessionTree::new(conn, address.session());
    Walk::raw(&mut tree, leaf).reaches(address)
}

/// Returns how many messages and summaries a plan shows.
pub(crate) fn count(conn: &Connection, plan: &Plan, omits_hidden: bool) -> BackendResult<u64> {
    let (mut total, mut low, mut high) = (0, None, None);
    for planned in plan {
        match *planned {
            PlanPart::Summary(_) => total += 1,
            PlanPart::Messages { first, last } => {
                total += (last.raw() - first.raw() + 1) as u64;
                low = Some(first);
                high = high.or(Some(last));
            }
        }
    }
    let (Some(low), Some(high)) = (low, high) else { return Ok(total) };
    for (condition, is_counted) in [(TOMBSTONES, true), (HIDDEN, omits_hidden)] {
        // Most sessions have no such rows: one query for the whole plan saves one per range.
        let within = |low: Address, high: Address| conn.one::<u64>(condition, (low, high));
        if !is_counted || within(low, high)? == 0 {
            continue;
        }
        for planned in plan {
            if let PlanPart::Messages { first, last } = *planned {
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
pub(crate) fn between(conn: &Connection, first: Address, last: Address) -> BackendResult<Plan> {
    let mut tree = SessionTree::new(conn, last.session());
    let mut walk = Walk::raw(&mut tree, Some(last));
    let mut plan = Plan::new();
    while let Some(planned) = walk.next()? {
        let PlanPart::Messages { first: start, last: end } = planned else { continue };
        if end < first {
            break;
        }
        plan.push(PlanPart::Messages { first: start.max(first), last: end });
        if start <= first {
            break;
        }
    }
    Ok(plan)
}

/// Returns the plan of every message of a session.
pub(crate) fn everything(conn: &Connection, session: i64) -> BackendResult<Plan> {
    let (first, _) = Address::range_of(session);
    // One range of addresses, whatever the parents are: reading skips unused addresses.
    Ok(children::latest(conn, session)?
        .map(|last| PlanPart::Messages { first, last })
        .into_iter()
        .collect())
}

pub(super) const TOMBSTONES: &str =
    "SELECT count(*) FROM message WHERE id IS NULL AND address BETWEEN ?1 AND ?2";

pub(super) const HIDDEN: &str =
    "SELECT count(*) FROM message WHERE hidden = 1 AND address BETWEEN ?1 AND ?2";

/// Returns size and tokens of each message of a plan, oldest first.
pub(crate) fn row_stats(conn: &Connection, plan: &Plan) -> BackendResult<Vec<RowStat>> {
    let mut stats = Vec::new();
    for planned in plan.iter().rev() {
        let PlanPart::Messages { first, last } = *planned else { continue };
        stats.extend(conn.rows_with(STATS, (first, last), |row| {
            let (id, role, tokens, bytes): (Cow<'_, str>, Cow<'_, str>, _, _) = Read::read(row, 0)?;
            Ok(RowStat { id: MessageId::from(&*id), role: Role::from(&*role), tokens, bytes })
        })?);
    }
    Ok(stats)
}

const STATS: &str = "SELECT id, role, tokens,
        octet_length(parts) + coalesce(octet_length(metadata), 0)
        + coalesce(octet_length(extra), 0)
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
  ORDER BY address";

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
    pub(super) fn of(conn: &'a Connection<'a>, session: i64, these: &'a BTreeSet<Address>) -> Self {
        Self::new(conn, session, Wanted::These(these))
    }

    /// Looks for messages that are neither deleted nor hidden.
    pub(super) fn of_visible(conn: &'a Connection<'a>, session: i64) -> Self {
        Self::new(conn, session, Wanted::Visible(Scanned { conn, found: BTreeMap::new() }))
    }

    fn new(conn: &'a Connection<'a>, session: i64, wanted: Wanted<'a>) -> Self {
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
    conn: &'a Connection<'a>,
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
        let found: Option<Address> = self.conn.first(LAST_VISIBLE, (first, last))?;
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

/// How many breaks are read at a time at most.
const MAX_BUFFER: usize = 256;

/// A session's tree, as the walk reads it.
pub(super) struct SessionTree<'c> {
    conn: &'c Connection<'c>,
    /// The first address of the session.
    floor: Address,
    /// Consecutive breaks in descending order, complete up to `ceiling`.
    runs: Vec<Run>,
    ceiling: Address,
    buffer: usize,
    /// How many lookups the current buffer has answered.
    answers: usize,
    /// The last compactions that end at an address or before it, in descending order.
    spans: Option<(Address, Vec<Span>)>,
    /// Newer compactions are ignored.
    newest_compaction: i64,
}

impl<'c> SessionTree<'c> {
    pub(super) fn new(conn: &'c Connection<'c>, session: i64) -> Self {
        let (floor, _) = Address::range_of(session);
        Self {
            conn,
            floor,
            runs: Vec::new(),
            ceiling: floor,
            buffer: conn.read_ahead(),
            answers: 0,
            spans: None,
            newest_compaction: i64::MAX,
        }
    }

    /// Returns the tree without the compactions that are newer than this one.
    pub(super) fn before_compaction(
        conn: &'c Connection<'c>,
        session: i64,
        newest_compaction: i64,
    ) -> Self {
        Self { newest_compaction, ..Self::new(conn, session) }
    }

    /// Returns the run of an address, if the buffer has it.
    fn buffered(&self, at: Address) -> Option<Run> {
        let place = self.runs.partition_point(|run| run.start > at);
        self.runs.get(place).filter(|_| at <= self.ceiling).copied()
    }

    fn fill(&mut self, at: Address) -> BackendResult<()> {
        // If most of the buffer was not used, a seek is cheaper.
        let is_used = self.answers * 4 >= self.buffer;
        self.buffer = match is_used {
            true => MAX_BUFFER.min(self.buffer * 2),
            false => self.conn.read_ahead(),
        };
        self.answers = 0;
        self.ceiling = at;
        self.runs = self.conn.rows(BREAKS_BEFORE, (at, self.floor, self.buffer))?;
        Ok(())
    }

    fn find_run(&mut self, at: Address) -> BackendResult<Run> {
        if self.buffered(at).is_none() {
            self.fill(at)?;
        }
        self.answers += 1;
        self.buffered(at).ok_or_else(|| {
            corrupt(format!("message {} of session {} is in no run", at.n(), at.session()))
        })
    }

    fn find_span(&mut self, at: Address) -> BackendResult<Option<Span>> {
        if let Some((ceiling, spans)) = &self.spans
            && at <= *ceiling
            && let Some(span) = spans.iter().find(|span| span.last <= at)
        {
            return Ok(Some(*span));
        }
        let values = (at, self.floor, self.newest_compaction, self.conn.read_ahead());
        let spans: Vec<Span> = self.conn.rows(SPANS_BEFORE, values)?;
        let first = spans.first().copied();
        self.spans = Some((at, spans));
        Ok(first)
    }
}

impl Read<'_> for Run {
    const WIDTH: usize = 2;

    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        let (start, parent) = Read::read(row, at)?;
        Ok(Self { start, parent })
    }
}

pub(super) const BREAKS_BEFORE: &str = "SELECT address, parent
   FROM message
  WHERE parent IS DISTINCT FROM address - 1
    AND address /*+ 0*/ <= ?1
    AND address /*+ 0*/ >= ?2
  ORDER BY address /*+ 0*/ DESC
  LIMIT ?3";

pub(super) const SPANS_BEFORE: &str = "SELECT key, first, last
   FROM compaction
  WHERE last <= ?1
    AND last >= ?2
    AND key <= ?3
  ORDER BY last DESC, first, key DESC
  LIMIT ?4";

impl TreeSource for SessionTree<'_> {
    type Error = BackendError;

    fn run_of(&mut self, at: Address) -> BackendResult<Run> {
        self.find_run(at)
    }

    fn span_ending_at_or_before(&mut self, at: Address) -> BackendResult<Option<Span>> {
        self.find_span(at)
    }
}

/// A session's tree with only the summaries that become visible if one compaction is removed.
///
/// Invariant: they are within its range, and of those over exactly that range only older ones count. So descending
/// from summary to summary ends.
pub(super) struct WithoutCompaction<'c> {
    shape: SessionTree<'c>,
    over: Span,
}

impl<'c> WithoutCompaction<'c> {
    pub(super) fn new(conn: &'c Connection<'c>, over: Span) -> Self {
        Self { shape: SessionTree::new(conn, over.last.session()), over }
    }

    fn find_span(&self, at: Address) -> BackendResult<Option<Span>> {
        let Span { key, first, last } = self.over;
        self.shape.conn.first(SPAN_BELOW, (at, first, last, key))
    }
}

pub(super) const SPAN_BELOW: &str = "SELECT key, first, last
   FROM compaction
  WHERE last <= ?1
    AND last >= ?2
    AND first >= ?2
    AND (last < ?3 OR first > ?2 OR key < ?4)
  ORDER BY last DESC, first, key DESC
  LIMIT 1";

impl TreeSource for WithoutCompaction<'_> {
    type Error = BackendError;

    fn run_of(&mut self, at: Address) -> BackendResult<Run> {
        self.shape.run_of(at)
    }

    fn span_ending_at_or_before(&mut self, at: Address) -> BackendResult<Option<Span>> {
        self.find_span(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// A walk converted the error of the storage to the public one and back. So nobody saw that a system call had
    /// failed, and a busy database was reported as one that nobody had waited for.
    #[test]
    fn an_error_inside_a_walk_stays_the_one_of_the_storage() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old.db");
        let [conn, other] = [&file; 2].map(|file| rusqlite::Connection::open(file).unwrap());
        conn.execute_batch(
            include_str!("../../../schema.sql").split("CREATE VIEW").next().unwrap(),
        )
        .unwrap();
        conn.busy_timeout(std::time::Duration::ZERO).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let leaf = Some(Address::new(1, 1));
        for is_raw in [true, false] {
            let error = plan(&(&conn).into(), 1, leaf, is_raw).unwrap_err();
            assert!(error.is_busy(), "{error:?}");
            assert!(matches!(error.into_error(1_234), Error::Busy { waited_ms: 1_234 }));
        }
    }
}
