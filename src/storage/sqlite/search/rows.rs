//! The rows of matches: what the index cannot tell, and lists of what passes filters alone.
//!
//! The index does not know the exact time of a message, whether it is hidden, its exact characters, or whether it is a copy. Copies
//! that forks made of a message count as one match if their content is the same: the original or, if that was deleted, its newest copy.
//!
//! A query without words lists what passes its filters, newest first. Within a session the newest message is the one appended last;
//! sessions are merged by the time of their messages. Of most sessions only the time of the last message is read.

use std::collections::{BinaryHeap, HashSet, VecDeque};

use talktree_text::{Filters, holds_exactly};

use super::super::index::{self, Expression};
use super::super::interrupt::Phase;
use super::range::Kind;
use super::ranked::Ranked;
use super::{Search, Wanted, hits};
use crate::search::Matched;
use crate::sql::BackendResult;
use crate::tree::Address;

/// How many messages of one session are read ahead at most.
const MAX_BATCH: usize = 256;
/// So many addresses take half a megabyte.
const MAX_LABELLED: usize = 65_536;

/// A match with the columns of its row.
pub(in super::super) struct Matching<'r> {
    pub(super) role: &'r str,
    pub(in super::super) parts: &'r str,
    pub(super) created_at: i64,
    pub(super) author: Option<&'r str>,
    is_hidden: bool,
    /// The address of the message that it is a copy of.
    origin: Option<Address>,
}

pub(super) const ROW: &str = "SELECT role, parts, created_at, author, hidden, origin
   FROM message
  WHERE address = ?1";

/// The original and the newer copies of a copy.
pub(super) const OTHERS: &str = "SELECT address, author, hidden
   FROM message AS other
  WHERE (address = ?1 OR origin = ?1 AND address > ?2) AND role = ?3 AND parts = ?4";

pub(super) const HAS_COPIES: &str =
    "SELECT 1 FROM message WHERE origin IS NOT NULL ORDER BY origin LIMIT 1";

impl Search<'_> {
    /// Returns whether a match passes. Most searches have no filter but labels, and read no row for this.
    pub(super) fn is_hit(&self, address: Address) -> BackendResult<bool> {
        let Filters { after, before, exact, .. } = &self.analysis.query.filters;
        let passes_all = after.is_none_or(index::tell)
            && before.is_none_or(index::tell)
            && exact.is_empty()
            && !self.omits_hidden
            && !self.has_copies;
        Ok(passes_all || self.read_one(address, |_| Ok(()))?.is_some())
    }

    /// Asks for matches that will be read.
    pub(in super::super) fn ask_ahead(
        &self,
        mut matches: impl Iterator<Item = Address>,
    ) -> BackendResult<()> {
        matches.try_for_each(|address| self.conn.ask_ahead(ROW, address))
    }

    /// Returns what `read` makes of a match; `None` if it does not pass.
    pub(in super::super) fn read_one<T>(
        &self,
        address: Address,
        read: impl FnOnce(Matching<'_>) -> BackendResult<T>,
    ) -> BackendResult<Option<T>> {
        let found = self.conn.first_with(ROW, address, |row| {
            let found = Matching {
                role: row.value(0)?.as_str()?,
                parts: row.value(1)?.as_str().unwrap_or_default(),
                created_at: row.get(2)?,
                author: row.value(3)?.as_str_or_null()?,
                is_hidden: row.get(4)?,
                origin: row.get(5)?,
            };
            if self.passes(address, &found)? { read(found).map(Some) } else { Ok(None) }
        })?;
        Ok(found.flatten())
    }

    fn passes(&self, address: Address, found: &Matching<'_>) -> BackendResult<bool> {
        let Filters { after, before, exact, columns, .. } = &self.analysis.query.filters;
        let Matching { role, author, is_hidden, .. } = *found;
        Ok(after.is_none_or(|time| found.created_at >= time.timestamp_micros())
            && before.is_none_or(|time| found.created_at < time.timestamp_micros())
            && self.is_of_kind(address, role, author, is_hidden)?
            && (exact.is_empty() || holds_exactly(&hits::text(found.parts, *columns), exact))
            && !self.is_repeated(address, found)?)
    }

    /// Returns whether the filters pass a message, apart from those that all its copies pass or none.
    fn is_of_kind(
        &self,
        address: Address,
        role: &str,
        author: Option<&str>,
        is_hidden: bool,
    ) -> BackendResult<bool> {
        let Filters { roles, authors, tags, .. } = &self.analysis.query.filters;
        let has = |names: &[String], name: &str| names.iter().any(|it| it == name);
        let is_of_kind = (roles.is_empty() || has(roles, role))
            && (authors.is_empty() || author.is_some_and(|author| has(authors, author)))
            && !(self.omits_hidden && is_hidden);
        if !is_of_kind || tags.is_empty() {
            return Ok(is_of_kind);
        }
        let known: Vec<String> =
            self.conn.rows("SELECT tag FROM message_tag WHERE address = ?1", address)?;
        Ok(tags.iter().all(|tag| known.contains(tag)))
    }

    /// Returns whether a message is a copy of another one in scope that passes.
    fn is_repeated(&self, address: Address, copy: &Matching<'_>) -> BackendResult<bool> {
        let Some(origin) = copy.origin else { return Ok(false) };
        let mut is_repeated = false;
        self.conn.each(OTHERS, (origin, address, copy.role, copy.parts), |row| {
            let other: Address = row.get(0)?;
            let author = row.value(1)?.as_str_or_null()?;
            is_repeated = self.range.holds_session(other.session())
                && self.is_of_kind(other, copy.role, author, row.get(2)?)?;
            Ok(!is_repeated)
        })?;
        Ok(is_repeated)
    }
}

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
        self.each_of(Expression { labels: Some(labels), ..Expression::default() }, |address| {
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
        let mut excluded = HashSet::new();
        if let Some(expr) = self.analysis.excluded() {
            let words = Some((&expr, self.columns()));
            self.each_of(Expression { words, ..Expression::default() }, |address| {
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
        while found.len() < wanted.messages
            && let Some((_, address, number, is_next)) = heap.pop()
        {
            let stream = &mut streams[number];
            if stream.count == 0 && sessions == wanted.sessions {
                continue;
            }
            if is_next {
                sessions += usize::from(stream.count == 0);
                found.push(address);
                stream.count += 1;
                if stream.count == wanted.of_each {
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
        for (last, time) in self.conn.rows::<(Option<Address>, Option<i64>)>(LAST, ())? {
            let Some((last, time)) = last.zip(time) else { continue };
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
                stream.batch.extend(self.read_one(address, |row| Ok((address, row.created_at)))?);
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

/// The last message of each session, NULL if it has none. Not a join: a server would read all messages for it.
pub(super) const LAST: &str = "SELECT at, (SELECT created_at FROM message WHERE address = at)
   FROM (SELECT (SELECT max(address)
                   FROM message
                  WHERE address BETWEEN (session.key << 32) AND (session.key << 32) + 4294967295
                    AND id IS NOT NULL) AS at
           FROM session) AS newest";
