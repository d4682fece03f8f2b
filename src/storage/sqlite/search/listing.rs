//! Answering a query without words: what passes its filters, newest first.
//!
//! Within a session the newest message is the one appended last; sessions are merged by the time of their messages.
//! Of most sessions only the time of the last message is read.

use std::collections::{BinaryHeap, HashSet, VecDeque};

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::super::index::Index;
use super::super::interrupt::Watch;
use super::checks::{Checks, Reader};
use super::range::Range;
use crate::search::HITS_PER_SESSION;
use crate::tree::Address;

/// How many messages of one session are read ahead at most.
const MAX_BATCH: usize = 256;

pub(super) struct Listing<'c> {
    pub(super) conn: &'c Connection,
    pub(super) range: &'c Range,
    /// The messages to list, oldest first, if they are few; all of the range otherwise.
    pub(super) few: Option<Vec<Address>>,
    pub(super) checks: &'c Checks,
    pub(super) indexes: &'c [Index],
    /// The expression for the words to exclude.
    pub(super) excluded: Option<&'c str>,
    pub(super) watch: &'c Watch,
}

/// How much is listed at most.
struct Most {
    messages: usize,
    sessions: usize,
    /// Messages of each session.
    of_each: usize,
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

impl Listing<'_> {
    /// Adds the messages that pass, newest first: at most `limit`.
    ///
    /// After an error those that were found before are there.
    pub(super) fn newest(&self, limit: usize, found: &mut Vec<Address>) -> BackendResult<()> {
        let most = Most { messages: limit, sessions: usize::MAX, of_each: usize::MAX };
        self.merge(most, found)
    }

    /// Adds the newest messages that pass of each session that has any, at most [`HITS_PER_SESSION`]; of the sessions with the
    /// newest messages, at most `sessions`.
    pub(super) fn newest_of_sessions(
        &self,
        sessions: usize,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        let most = Most { messages: usize::MAX, sessions, of_each: HITS_PER_SESSION };
        self.merge(most, found)
    }

    fn merge(&self, most: Most, found: &mut Vec<Address>) -> BackendResult<()> {
        let mut sessions = 0;
        let left_out = self.left_out()?;
        let mut reader = self.checks.reader(self.conn)?;
        let mut streams: Vec<Stream> = Vec::new();
        // For each stream, the time and address of its next message, or of one that is not older.
        let mut heap = BinaryHeap::new();
        for (low, high, last, time) in self.ranges()? {
            heap.push((time, last, streams.len(), false));
            streams.push(Stream { low, high, batch: VecDeque::new(), batch_size: 1, count: 0 });
        }
        while found.len() < most.messages
            && let Some((_, address, number, is_next)) = heap.pop()
        {
            let stream = &mut streams[number];
            if stream.count == 0 && sessions == most.sessions {
                continue;
            }
            if is_next {
                sessions += usize::from(stream.count == 0);
                found.push(address);
                stream.count += 1;
                if stream.count == most.of_each {
                    continue;
                }
            }
            if let Some((address, time)) = self.next(stream, &left_out, &mut reader)? {
                heap.push((time, address, number, true));
            }
        }
        Ok(())
    }

    /// Returns the range of each session or path, with the address and time of its last message.
    fn ranges(&self) -> BackendResult<Vec<(Address, Address, Address, i64)>> {
        if let Some(few) = &self.few {
            let of_sessions = few.chunk_by(|a, b| a.session() == b.session());
            let range = |of: &[Address]| (of[0], of[of.len() - 1], of[of.len() - 1], i64::MAX);
            return Ok(of_sessions.map(range).collect());
        }
        let unread = |(low, high): (Address, Address)| (low, high, high, i64::MAX);
        match self.range {
            Range::Store { .. } => {}
            // However many there are: each is a stream of its own.
            Range::Sessions(keys) => {
                return Ok(keys.iter().map(|&key| unread(Address::range_of(key))).collect());
            }
            Range::Path(_) => return Ok(self.range.ranges().into_iter().map(unread).collect()),
        }
        let mut statement = self.conn.prepare_cached(LAST)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let range = |last: Address| Address::range_of(last.session());
        let mut ranges = Vec::new();
        for row in rows {
            let (last, time) = row?;
            if !self.range.is_in_trash(last) {
                ranges.push((range(last).0, range(last).1, last, time));
            }
        }
        Ok(ranges)
    }

    fn left_out(&self) -> BackendResult<HashSet<Address>> {
        let mut found = HashSet::new();
        let Some(expression) = self.excluded else {
            return Ok(found);
        };
        for range in self.range.ranges() {
            for index in self.indexes {
                index.each(self.conn, expression, range, self.watch, |address| {
                    found.insert(address);
                    Ok(true)
                })?;
            }
        }
        Ok(found)
    }

    fn next(
        &self,
        stream: &mut Stream,
        left_out: &HashSet<Address>,
        reader: &mut Reader<'_, '_>,
    ) -> BackendResult<Option<(Address, i64)>> {
        loop {
            self.watch.check()?;
            if let Some(next) = stream.batch.pop_front() {
                return Ok(Some(next));
            }
            if stream.low > stream.high {
                return Ok(None);
            }
            let newest = self.newest_of(stream)?;
            for &address in &newest {
                self.watch.check()?;
                if self.range.holds(address) && !left_out.contains(&address) {
                    stream.batch.extend(reader.read(address, |row| Ok((address, row.created_at)))?);
                }
            }
            stream.high = match newest.last() {
                Some(last) if newest.len() == stream.batch_size => last.before(),
                _ => stream.low.before(),
            };
            stream.batch_size = MAX_BATCH.min(stream.batch_size * 4);
        }
    }

    /// Returns the next messages of a stream, newest first.
    fn newest_of(&self, stream: &Stream) -> BackendResult<Vec<Address>> {
        if let Some(few) = &self.few {
            let from = few.partition_point(|address| *address < stream.low);
            let to = few.partition_point(|address| *address <= stream.high);
            return Ok(few[from..to].iter().rev().take(stream.batch_size).copied().collect());
        }
        let mut statement = self.conn.prepare_cached(NEWEST)?;
        let rows = statement
            .query_map(params![stream.low, stream.high, stream.batch_size], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
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
