//! What passes the filters of a query without words, newest first.
//!
//! Within a session the newest is the one appended last; sessions are merged by the time of their messages. Nothing is
//! read that is older than what is asked for, but where a filter lets little pass.

use std::collections::{BinaryHeap, HashSet, VecDeque};

use rusqlite::{Connection, params};

use super::super::fault::Outcome;
use super::super::interrupt::Watch;
use super::candidates::{self, Bounds, Index, is_no_mere_copy, within_bounds};
use super::place::Place;
use crate::tree::Address;

/// Most messages read ahead of one session.
const MAX_BATCH: usize = 256;

/// One session being read, newest first.
struct Stream {
    low: Address,
    high: Address,
    batch: VecDeque<(Address, i64)>,
    batch_size: usize,
}

/// Returns the messages that pass, newest first: `limit` at the most, and `per_session` of each session.
pub(super) fn newest(
    conn: &Connection,
    place: &Place,
    bounds: &Bounds,
    excluded: Option<(&str, &[Index])>,
    (limit, per_session): (usize, usize),
    watch: &Watch,
) -> Outcome<Vec<Address>> {
    let ranges = match place {
        Place::Store => sessions(conn)?,
        _ => place.ranges(),
    };
    let mut left_out = HashSet::new();
    if let Some((expression, indexes)) = excluded {
        for range in place.ranges() {
            for index in indexes {
                candidates::add_all(conn, *index, expression, range, &mut left_out)?;
            }
        }
    }
    let passes = |address: Address| place.holds(address) && !left_out.contains(&address);
    let mut streams = Vec::new();
    let mut heap = BinaryHeap::new();
    for (low, high) in ranges {
        let mut stream = Stream { low, high, batch: VecDeque::new(), batch_size: 1 };
        if let Some((address, time)) = stream.next(conn, bounds, &passes, watch)? {
            heap.push((time, address, streams.len()));
        }
        streams.push((stream, 0));
    }
    let mut found = Vec::new();
    while found.len() < limit
        && let Some((_, address, number)) = heap.pop()
    {
        found.push(address);
        let (stream, count) = &mut streams[number];
        *count += 1;
        if *count < per_session
            && let Some((address, time)) = stream.next(conn, bounds, &passes, watch)?
        {
            heap.push((time, address, number));
        }
    }
    Ok(found)
}

impl Stream {
    fn next(
        &mut self,
        conn: &Connection,
        bounds: &Bounds,
        passes: impl Fn(Address) -> bool,
        watch: &Watch,
    ) -> Outcome<Option<(Address, i64)>> {
        loop {
            while let Some((address, time)) = self.batch.pop_front() {
                if passes(address) {
                    return Ok(Some((address, time)));
                }
            }
            watch.check()?;
            if self.low > self.high {
                return Ok(None);
            }
            let Bounds { after, before, roles, sessions } = bounds;
            let (low, high, limit) = (self.low, self.high, self.batch_size);
            let mut statement = conn.prepare_cached(NEWEST)?;
            let mut rows =
                statement.query(params![low, high, after, before, roles, sessions, limit])?;
            while let Some(row) = rows.next()? {
                self.batch.push_back((row.get(0)?, row.get(1)?));
            }
            self.high = match self.batch.back() {
                Some((address, _)) if self.batch.len() == self.batch_size => address.before(),
                _ => self.low.before(),
            };
            self.batch_size = MAX_BATCH.min(self.batch_size * 4);
            if self.batch.is_empty() {
                return Ok(None);
            }
        }
    }
}

pub(super) const NEWEST: &str = concat!(
    "SELECT address, created_at
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
    AND ",
    within_bounds!(),
    "
    AND ",
    is_no_mere_copy!(),
    "
  ORDER BY address DESC
  LIMIT ?7"
);

fn sessions(conn: &Connection) -> Outcome<Vec<(Address, Address)>> {
    let mut statement = conn.prepare_cached("SELECT key FROM session")?;
    let keys = statement.query_map([], |row| row.get(0))?;
    keys.map(|key| Ok(Address::range_of(key?))).collect()
}
