//! Searching: parsing the query, finding matches, ranking them, building hits.
//!
//! A search first indexes the pending messages. It then reads one snapshot: the index and a temporary index of messages
//! that are still pending. In a session or on a path all matches are ranked by [`rank`](crate::search::rank). In a
//! whole store, or if a session has too many matches, only the few hundred that FTS5 ranks best are; the others follow
//! in FTS5's order, so that pages do not overlap. For one word in one session FTS5's order may be used unchanged.

mod candidates;
mod frequency;
mod hits;
mod listing;
pub(super) mod pending;
mod range;
pub(super) mod ranked;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use chrono::Utc;
use rusqlite::Connection;

use self::candidates::{Bounds, Index, Lookup, MAX_RANKED, Matching};
use self::hits::HitMaker;
use self::listing::Listing;
use self::range::Range;
use self::ranked::{Figures, Gathered, MAX_ALL, MAX_SCAN_BYTES, RANKED, Ranked, Texts};
use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use super::row::time;
use crate::error::Result;
use crate::search::analysis::Analysis;
use crate::search::date_hint::{DateRange, date_hint};
use crate::search::rank::Candidate;
use crate::search::scanner::Scanner;
use crate::search::{
    Found, HITS_PER_SESSION, Matched, Query, SearchRequest, SessionHit, SessionsFound,
};
use crate::tree::Address;

/// Up to this many matches are always ranked here: FTS5 would not be faster.
const MAX_FEW: usize = 20;
/// How many messages are searched for per requested session.
const MESSAGES_PER_SESSION: usize = 5;

impl Database {
    /// Returns the matching messages, best first.
    pub(crate) fn search(&self, request: &SearchRequest) -> Result<Found> {
        let (wanted, skipped) = page(request);
        let (hits, matched, notices) = self.answer(request, |search| {
            let ranked = search.messages(wanted)?;
            let page: Vec<_> =
                ranked.messages.into_iter().skip(skipped).take(request.limit).collect();
            Ok((search.hit_maker(ranked.matched).hits(&page)?, ranked.matched))
        })?;
        Ok(Found { hits, matched, notices })
    }

    /// Returns the matching sessions, best first.
    pub(crate) fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        let (wanted, skipped) = page(request);
        let (sessions, matched, notices) = self.answer(request, |search| {
            let ranked = search.sessions(wanted)?;
            let maker = search.hit_maker(ranked.matched);
            let mut best: HashMap<i64, Vec<(Address, f64)>> = HashMap::new();
            for &(address, score) in &ranked.messages {
                let of_session = best.entry(address.session()).or_default();
                if of_session.len() < HITS_PER_SESSION {
                    of_session.push((address, score));
                }
            }
            let mut sessions = Vec::new();
            for &(key, score) in ranked.sessions.iter().skip(skipped).take(request.limit) {
                let Some(names) = range::names(search.conn, key)? else { continue };
                let hits = maker.hits(best.get(&key).map_or(&[][..], Vec::as_slice))?;
                sessions.push(SessionHit { session: names.id, name: names.name, score, hits });
            }
            Ok((sessions, ranked.matched))
        })?;
        Ok(SessionsFound { sessions, matched, notices })
    }

    /// Parses the query, brings the index up to date, and runs the search on one snapshot.
    fn answer<T>(
        &self,
        request: &SearchRequest,
        run: impl FnOnce(&Search<'_>) -> BackendResult<(Vec<T>, Matched)>,
    ) -> Result<(Vec<T>, Matched, Vec<String>)> {
        let watch = self.interrupt_signal().watch();
        let reading = Analysis::of(Query::parse(&request.text), &request.text);
        let is_empty = reading.query.is_empty();
        if !is_empty {
            self.catch_up_for_search(&watch)?;
        }
        let window = date_hint(&request.text, request.now.unwrap_or_else(Utc::now));
        let mut notices = reading.query.notices.clone();
        let (found, matched) = self.read_long(|conn| {
            let range = Range::of(conn, &request.scope, &reading.query, &mut notices)?;
            let ranges = range.ranges();
            let (Some(low), Some(high)) = (ranges.first(), ranges.last()) else {
                return Ok((Vec::new(), Matched::All));
            };
            if is_empty {
                return Ok((Vec::new(), Matched::All));
            }
            let mut indexes = vec![Index::Stored];
            if pending::prepare(conn, low.0, high.1)? {
                indexes.push(Index::Pending);
            }
            let bounds = Bounds::of(conn, &reading.query.filters, &range)?;
            run(&Search { conn, reading: &reading, range, bounds, window, indexes, watch: &watch })
        })?;
        Ok((found, matched, notices))
    }
}

/// Returns how many results are needed, and how many of them are skipped.
fn page(request: &SearchRequest) -> (usize, usize) {
    let wanted = request.offset.saturating_add(request.limit);
    // SQLite's integers are signed; nobody reads that far.
    (wanted.min(u32::MAX as usize), request.offset)
}

/// A search on one snapshot.
struct Search<'c> {
    conn: &'c Connection,
    reading: &'c Analysis,
    range: Range,
    bounds: Bounds,
    /// The date range that the query mentions.
    window: Option<DateRange>,
    indexes: Vec<Index>,
    watch: &'c Watch,
}

impl Search<'_> {
    fn messages(&self, wanted: usize) -> BackendResult<Ranked> {
        match self.reading.all() {
            Some(all) => Ranked::find(self, &all, wanted),
            None => self.listed(wanted, usize::MAX),
        }
    }

    fn sessions(&self, wanted: usize) -> BackendResult<Ranked> {
        match self.reading.all() {
            Some(all) => Ranked::find(self, &all, wanted.saturating_mul(MESSAGES_PER_SESSION)),
            None => self.listed(wanted.saturating_mul(HITS_PER_SESSION), HITS_PER_SESSION),
        }
    }

    fn hit_maker(&self, matched: Matched) -> HitMaker<'_> {
        HitMaker::new(self.conn, self.reading, matched, self.bounds.has_copies, self.watch)
    }

    /// Returns the messages that pass the filters, newest first.
    fn listed(&self, wanted: usize, per_session: usize) -> BackendResult<Ranked> {
        let excluded = self.reading.query.to_fts_excluded();
        let listing = Listing {
            conn: self.conn,
            range: &self.range,
            bounds: &self.bounds,
            indexes: &self.indexes,
            excluded: excluded.as_deref(),
            watch: self.watch,
        };
        let found = listing.newest(wanted, per_session)?;
        let mut ranked = Ranked::none(Matched::All);
        ranked.follow(&found, 1.0);
        Ok(ranked)
    }

    /// Returns the session's range if FTS5's own ranking is good enough there. For one word and without a date range it
    /// differs from ours only in the length of the message and the mean length.
    ///
    /// FTS5 reads less of each message, but it reads the posting list of the whole store. So it ranks if there are too
    /// many matches to rank here, or if the session is a large part of the store.
    fn range_for_index(
        &self,
        all: Option<&[Address]>,
    ) -> BackendResult<Option<(Address, Address)>> {
        let is_same = self.reading.is_one_unit() && self.bounds.is_open && self.window.is_none();
        let (Range::Sessions(_), &[range], [Index::Stored], true) =
            (&self.range, &*self.range.ranges(), &*self.indexes, is_same)
        else {
            return Ok(None);
        };
        let is_cheap = match all {
            Some(all) if all.len() <= MAX_FEW => false,
            Some(_) => frequency::is_much_of_store(self.conn, range.0.session())?,
            None => true,
        };
        Ok(is_cheap.then_some(range))
    }

    /// Returns what to read: each range of addresses in each index.
    fn stretches(&self) -> Vec<(Index, (Address, Address))> {
        let ranges = self.range.ranges();
        let of = |index: &Index| ranges.iter().map(|range| (*index, *range)).collect::<Vec<_>>();
        self.indexes.iter().flat_map(of).collect()
    }

    fn lookup<'a>(&'a self, index: Index, expression: &'a str) -> Lookup<'a> {
        Lookup {
            conn: self.conn,
            index,
            expression,
            bounds: &self.bounds,
            range: &self.range,
            watch: self.watch,
        }
    }

    fn candidate(&self, scanner: &Scanner, row: &Matching<'_>) -> BackendResult<Candidate> {
        let text = hits::text(row.parts, self.reading.query.filters.columns);
        let is_in_time = match self.window {
            Some(window) => window.contains(time(row.created_at)?),
            None => false,
        };
        Ok(Candidate {
            session: row.address.session(),
            is_user: row.role == "user",
            is_in_time,
            scan: scanner.scan(&text, MAX_SCAN_BYTES),
        })
    }
}

impl Texts for Search<'_> {
    fn reading(&self) -> &Analysis {
        self.reading
    }

    fn is_relaxed_at_once(&self) -> bool {
        self.reading.is_question
    }

    /// Filters come later. In the whole store, FTS5 always chooses.
    fn all_of(&self, expression: &str) -> BackendResult<Option<Vec<Address>>> {
        if self.range == Range::Store {
            return Ok(None);
        }
        let mut found = Vec::new();
        for (index, range) in self.stretches() {
            found.extend(self.lookup(index, expression).some(range, MAX_ALL + 1)?);
            if found.len() > MAX_ALL {
                return Ok(None);
            }
        }
        found.sort_unstable();
        Ok(Some(found))
    }

    fn best_of(&self, expression: &str, wanted: usize) -> BackendResult<Gathered> {
        let mut gathered = Gathered::default();
        let mut rests = Vec::new();
        for (index, range) in self.stretches() {
            let mut found = self.lookup(index, expression).best(range, wanted.max(RANKED))?;
            rests.push(found.split_off(found.len().min(RANKED)));
            gathered.best.extend(found);
        }
        // The ranges take turns, so the matches of an earlier page are a prefix of those of a later one.
        let longest = rests.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..longest {
            gathered.rest.extend(rests.iter().filter_map(|rest| rest.get(at)));
        }
        Ok(gathered)
    }

    fn figures(&self) -> BackendResult<Figures> {
        frequency::of_store(self.conn, self.reading, &self.indexes)
    }

    /// Those that pass the filters.
    fn candidates(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)> {
        let scanner = Scanner::new(&self.reading.units, pairs);
        let (mut passed, mut candidates) = (Vec::new(), Vec::new());
        candidates::each(self.conn, found, &self.bounds, self.watch, |row| {
            passed.push(row.address);
            candidates.push(self.candidate(&scanner, &row)?);
            Ok(())
        })?;
        Ok((passed, candidates))
    }

    fn ranked_by_index(
        &self,
        expression: &str,
        all: Option<&[Address]>,
        wanted: usize,
    ) -> BackendResult<Option<Ranked>> {
        let Some(range) = self.range_for_index(all)? else { return Ok(None) };
        let lookup = self.lookup(Index::Stored, expression);
        if all.is_none() && lookup.count(range, MAX_RANKED + 1)? > MAX_RANKED {
            return Ok(None);
        }
        let messages = lookup.worth(range, wanted)?;
        let best = messages.first().map(|(address, worth)| (address.session(), *worth));
        let sessions = best.into_iter().collect();
        Ok(Some(Ranked { messages, sessions, matched: Matched::All }))
    }
}
