//! The rows of matches: what the index cannot tell, and lists of what passes filters alone.
//!
//! The index does not know the exact time of a message, whether it is hidden, its exact characters, or whether it is a copy. Copies
//! that forks made of a message count as one match if their content is the same: the original or, if that was deleted, its newest copy.
//!
//! A query without words lists what passes its filters, newest first. Within a session the newest message is the one appended last;
//! sessions are merged by the time of their messages. Of most sessions only the time of the last message is read.

use std::collections::{BinaryHeap, HashSet, VecDeque};

use talktree_text::{Columns, Filters, holds_exactly};

use super::super::index::{self, Expression};
use super::super::interrupt::Phase;
use super::range::{Kind, Range};
use super::ranked::Ranked;
use super::{Search, Wanted, hits};
use crate::search::{HITS_PER_SESSION, Matched};
use crate::sql::{BackendResult, Connection, Sql};
use crate::tree::Address;

/// How many messages of one session are read ahead at most.
const MAX_BATCH: usize = 256;
/// So many addresses take half a megabyte.
const MAX_LABELLED: usize = 65_536;

/// What a match must pass besides the expression.
#[derive(Debug, Clone)]
pub(in super::super) struct Checks {
    after: Option<i64>,
    before: Option<i64>,
    /// The roles, authors and tags, and the keys of the sessions within which copies count as one, as JSON arrays; `None` for any.
    roles: Option<String>,
    authors: Option<String>,
    tags: Option<String>,
    sessions: Option<String>,
    /// What the texts of these columns must contain.
    exact: Vec<String>,
    columns: Columns,
    omits_hidden: bool,
    /// Whether copies of one message may be in the range.
    pub(super) has_copies: bool,
    /// Whether every match is a hit, so that no message row has to be read.
    is_open: bool,
}

/// A match with the columns of its row.
pub(in super::super) struct Matching<'r> {
    pub(super) role: &'r str,
    pub(in super::super) parts: &'r str,
    pub(super) created_at: i64,
    /// Whether it says who wrote it.
    pub(super) has_author: bool,
}

impl Checks {
    pub(super) fn of(
        conn: &Connection,
        (filters, omits_hidden): (&Filters, bool),
        range: &Range,
    ) -> BackendResult<Self> {
        // No session contains a message twice.
        let has_copies = !range.is_one_session() && conn.has(HAS_COPIES, ())?;
        let array = |names: &[String]| {
            (!names.is_empty()).then(|| serde_json::Value::from(names).to_string())
        };
        let is_open = filters.after.is_none_or(index::tell)
            && filters.before.is_none_or(index::tell)
            && filters.exact.is_empty()
            && !omits_hidden
            && !has_copies;
        Ok(Self {
            after: filters.after.map(|time| time.timestamp_micros()),
            before: filters.before.map(|time| time.timestamp_micros()),
            roles: array(&filters.roles),
            authors: array(&filters.authors),
            tags: array(&filters.tags),
            sessions: range.keys().map(|keys| serde_json::Value::from(keys).to_string()),
            exact: filters.exact.clone(),
            columns: filters.columns,
            omits_hidden,
            has_copies,
            is_open,
        })
    }

    /// Returns what `read` makes of a message; `None` if it does not pass.
    pub(in super::super) fn read<T>(
        &self,
        conn: &Connection,
        address: Address,
        read: impl FnOnce(Matching<'_>) -> BackendResult<T>,
    ) -> BackendResult<Option<T>> {
        let Checks { after, before, roles, authors, tags, sessions, omits_hidden, exact, .. } =
            self;
        let values = (address, after, before, roles, authors, tags, omits_hidden, sessions);
        let sql = match conn {
            Connection::Sqlite(_) => ROW,
            #[cfg(feature = "postgres")]
            Connection::Postgres(_) => ROW_THERE,
        };
        let found = conn.first_with(sql, values, |row| {
            let parts = row.value(1)?.as_str().unwrap_or_default();
            if !exact.is_empty() && !holds_exactly(&hits::text(parts, self.columns), exact) {
                return Ok(None);
            }
            let role = row.value(0)?.as_str()?;
            let (created_at, has_author) = (row.get(2)?, row.get(3)?);
            read(Matching { role, parts, created_at, has_author }).map(Some)
        })?;
        Ok(found.flatten())
    }

    /// Returns whether a match passes.
    pub(super) fn passes(&self, conn: &Connection, address: Address) -> BackendResult<bool> {
        Ok(self.is_open || self.read(conn, address, |_| Ok(()))?.is_some())
    }
}

pub(super) const HAS_COPIES: &str = "SELECT 1 FROM message WHERE origin IS NOT NULL";

/// What a message, and the one that it is a copy of, must be to pass. The values of an array are what stands before and after it.
#[rustfmt::skip]
macro_rules! passes {
    ($message:literal, $each:literal, $of:literal) => {
        concat!(
            "    AND (?4 IS NULL OR ", $message, ".role IN (SELECT value FROM ", $each, "?4", $of, "))
    AND (?5 IS NULL OR ", $message, ".author IN (SELECT value FROM ", $each, "?5", $of, "))
    AND NOT EXISTS (SELECT 1 FROM ", $each, "?6", $of, " AS wanted
                     WHERE NOT EXISTS (SELECT 1 FROM message_tag
                                        WHERE message_tag.address = ", $message, ".address
                                          AND message_tag.tag = wanted.value))
    AND (?7 = 0 OR ", $message, ".hidden = 0)
"
        )
    };
}

/// A message that passes and is no copy of another one in scope that does.
#[rustfmt::skip]
macro_rules! row {
    ($each:literal, $of:literal) => {
        concat!(
    "SELECT role, parts, created_at, author IS NOT NULL
   FROM message
  WHERE address = ?1
    AND (?2 IS NULL OR created_at >= ?2)
    AND (?3 IS NULL OR created_at < ?3)
", passes!("message", $each, $of),
"    AND (origin IS NULL OR NOT EXISTS (
 SELECT 1
   FROM message AS other
  WHERE (other.address = message.origin
         OR other.origin = message.origin AND other.address > message.address)
    AND other.role = message.role
    AND other.parts = message.parts
    AND (?8 IS NULL OR other.address >> 32 IN (SELECT CAST(value AS BIGINT) FROM ", $each, "?8", $of, "))
    AND other.address >> 32 NOT IN (SELECT key FROM session WHERE deleted_at IS NOT NULL)
    AND other.address >> 32 NOT IN (SELECT session FROM leftover)
", passes!("other", $each, $of), "))"
        )
    };
}

pub(super) const ROW: &str = row!("json_each(", ")");
#[cfg(feature = "postgres")]
const ROW_THERE: &str = row!("json_array_elements_text(CAST(", " AS JSON))");

/// One session that is read newest first.
struct Stream {
    low: Address,
    high: Address,
    batch: VecDeque<(Address, i64)>,
    batch_size: usize,
    /// How many of its messages were listed.
    count: usize,
}

impl Search<'_> {
    /// Returns the messages that pass the filters, newest first. A spent budget leaves what was found until then.
    pub(super) fn listed(&self, wanted: Wanted) -> BackendResult<Ranked> {
        self.watch.enter(Phase::Ranking);
        let labelled = match self.labelled() {
            // Then all are read as far as the time reaches.
            Err(error) if self.watch.is_end_of_budget(&error) => None,
            labelled => labelled?,
        };
        self.watch.enter(Phase::Listing);
        let mut found = Vec::new();
        match self.list_newest(labelled.as_deref(), wanted, &mut found) {
            Err(error) if self.watch.is_end_of_budget(&error) => self.is_stopped.set(true),
            done => done?,
        }
        let mut ranked = Ranked::none(Matched::All);
        ranked.follow(&found);
        Ok(ranked)
    }

    /// Returns the messages whose labels pass the filters, oldest first, if they are few.
    fn labelled(&self) -> BackendResult<Option<Vec<Address>>> {
        let Some(labels) = &self.labels else { return Ok(None) };
        let mut found = Vec::new();
        self.each_of(&Expression { words: None, labels: Some(labels) }, |address| {
            found.push(address);
            Ok(found.len() <= MAX_LABELLED)
        })?;
        found.sort_unstable();
        Ok(Some(found).filter(|found| found.len() <= MAX_LABELLED))
    }

    /// Adds the messages that pass, newest first. After an error those that were found before are there.
    fn list_newest(
        &self,
        labelled: Option<&[Address]>,
        wanted: Wanted,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        let (max_messages, max_sessions, max_of_each) = match wanted {
            Wanted::Messages(count) => (count, usize::MAX, usize::MAX),
            Wanted::Sessions(count) => (usize::MAX, count, HITS_PER_SESSION),
        };
        let mut excluded = HashSet::new();
        if let Some(expr) = self.analysis.excluded() {
            let words = Some((&expr, self.columns()));
            self.each_of(&Expression { words, labels: None }, |address| {
                excluded.insert(address);
                Ok(true)
            })?;
        }
        let mut streams: Vec<Stream> = Vec::new();
        // For each stream, the time and address of its next message, or of one that is not older.
        let mut heap = BinaryHeap::new();
        for (low, high, last, time) in self.streams(labelled)? {
            heap.push((time, last, streams.len(), false));
            streams.push(Stream { low, high, batch: VecDeque::new(), batch_size: 1, count: 0 });
        }
        let mut sessions = 0;
        while found.len() < max_messages
            && let Some((_, address, number, is_next)) = heap.pop()
        {
            let stream = &mut streams[number];
            if stream.count == 0 && sessions == max_sessions {
                continue;
            }
            if is_next {
                sessions += usize::from(stream.count == 0);
                found.push(address);
                stream.count += 1;
                if stream.count == max_of_each {
                    continue;
                }
            }
            while stream.batch.is_empty() && stream.low <= stream.high {
                self.read_batch(stream, labelled, &excluded)?;
            }
            if let Some((address, time)) = stream.batch.pop_front() {
                heap.push((time, address, number, true));
            }
        }
        Ok(())
    }

    /// Returns the range of each session or path, with the address and time of its last message, or of one that is not older.
    fn streams(
        &self,
        labelled: Option<&[Address]>,
    ) -> BackendResult<Vec<(Address, Address, Address, i64)>> {
        let unread = |(low, high): (Address, Address)| (low, high, high, i64::MAX);
        if let Some(labelled) = labelled {
            let of_sessions = labelled.chunk_by(|a, b| a.session() == b.session());
            return Ok(of_sessions.map(|of| unread((of[0], of[of.len() - 1]))).collect());
        }
        if self.range.kind != Kind::Store {
            return Ok(self.range.of_sessions().into_iter().map(unread).collect());
        }
        let mut streams = Vec::new();
        for (last, time) in self.conn.rows::<(Address, i64)>(LAST, ())? {
            let (low, high) = Address::range_of(last.session());
            if self.range.holds(low) {
                streams.push((low, high, last, time));
            }
        }
        Ok(streams)
    }

    /// Reads the next messages of a stream, newest first: more each time.
    fn read_batch(
        &self,
        stream: &mut Stream,
        labelled: Option<&[Address]>,
        excluded: &HashSet<Address>,
    ) -> BackendResult<()> {
        let newest: Vec<Address> = match labelled {
            Some(labelled) => {
                let from = labelled.partition_point(|address| *address < stream.low);
                let to = labelled.partition_point(|address| *address <= stream.high);
                labelled[from..to].iter().rev().take(stream.batch_size).copied().collect()
            }
            None => self.conn.rows(NEWEST, (stream.low, stream.high, stream.batch_size))?,
        };
        for &address in &newest {
            self.watch.check()?;
            if self.range.holds(address) && !excluded.contains(&address) {
                let read =
                    self.checks.read(self.conn, address, |row| Ok((address, row.created_at)))?;
                stream.batch.extend(read);
            }
        }
        stream.high = match newest.last() {
            Some(last) if newest.len() == stream.batch_size => last.before(),
            _ => stream.low.before(),
        };
        stream.batch_size = MAX_BATCH.min(stream.batch_size * 4);
        Ok(())
    }
}

pub(super) const NEWEST: &str = "SELECT address
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
  ORDER BY address DESC
  LIMIT ?3";

pub(super) const LAST: &str = "SELECT message.address, message.created_at
   FROM session CROSS JOIN message
  WHERE message.address = (SELECT max(last.address)
                             FROM message AS last
                            WHERE last.address BETWEEN (session.key << 32)
                                                   AND (session.key << 32) + 4294967295
                              AND last.id IS NOT NULL)";
