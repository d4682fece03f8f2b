//! Searching: reading the query, finding what matches, ranking it, making hits.
//!
//! A search first indexes what is pending. It then reads at one moment: the index, and beside it an index of what is
//! pending still. A session or a path offers all it has; a whole store, or a session in which too much matches, the few
//! hundred messages that FTS5 ranks best. These are ranked by [`rank`](crate::search::rank); what FTS5 found beyond
//! follows as it came, so that pages do not overlap. One word in one session FTS5 may rank alone.

mod candidates;
mod frequency;
pub(super) mod fresh;
mod hits;
mod listing;
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
use super::fault::Outcome;
use super::interrupt::Watch;
use super::message::time;
use crate::error::Result;
use crate::search::rank::Candidate;
use crate::search::reading::Reading;
use crate::search::scan::Scanner;
use crate::search::when::{Window, window};
use crate::search::{
    Found, HITS_PER_SESSION, Matched, Query, SearchRequest, SessionHit, SessionsFound,
};
use crate::tree::Address;

/// Up to so many are always ranked here: it takes no longer.
const MAX_FEW: usize = 20;
/// How many messages are looked for, for each conversation that is wanted.
const MESSAGES_PER_SESSION: usize = 5;

impl Database {
    /// Returns the messages found, best first.
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

    /// Returns the conversations found, best first.
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

    /// Reads the query, brings the index up to date, and runs the search at one moment.
    fn answer<T>(
        &self,
        request: &SearchRequest,
        run: impl FnOnce(&Search<'_>) -> Outcome<(Vec<T>, Matched)>,
    ) -> Result<(Vec<T>, Matched, Vec<String>)> {
        let watch = self.interrupt_signal().watch();
        let reading = Reading::of(Query::parse(&request.text), &request.text);
        let is_empty = reading.query.is_empty();
        if !is_empty {
            self.catch_up_for_search(&watch)?;
        }
        let window = window(&request.text, request.now.unwrap_or_else(Utc::now));
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
            if fresh::prepare(conn, low.0, high.1)? {
                indexes.push(Index::Fresh);
            }
            let bounds = Bounds::of(conn, &reading.query.filters, &range)?;
            run(&Search { conn, reading: &reading, range, bounds, window, indexes, watch: &watch })
        })?;
        Ok((found, matched, notices))
    }
}

/// Returns how many results are wanted, and how many of them are skipped.
fn page(request: &SearchRequest) -> (usize, usize) {
    let wanted = request.offset.saturating_add(request.limit);
    // SQLite counts in signed numbers; nobody reads that far.
    (wanted.min(u32::MAX as usize), request.offset)
}

/// A search at one moment.
struct Search<'c> {
    conn: &'c Connection,
    reading: &'c Reading,
    range: Range,
    bounds: Bounds,
    /// The time the question speaks of.
    window: Option<Window>,
    indexes: Vec<Index>,
    watch: &'c Watch,
}

impl Search<'_> {
    fn messages(&self, wanted: usize) -> Outcome<Ranked> {
        match self.reading.all() {
            Some(all) => Ranked::find(self, &all, wanted),
            None => self.listed(wanted, usize::MAX),
        }
    }

    fn sessions(&self, wanted: usize) -> Outcome<Ranked> {
        match self.reading.all() {
            Some(all) => Ranked::find(self, &all, wanted.saturating_mul(MESSAGES_PER_SESSION)),
            None => self.listed(wanted.saturating_mul(HITS_PER_SESSION), HITS_PER_SESSION),
        }
    }

    fn hit_maker(&self, matched: Matched) -> HitMaker<'_> {
        HitMaker::new(self.conn, self.reading, matched, self.bounds.has_copies, self.watch)
    }

    /// Returns what passes the filters, newest first.
    fn listed(&self, wanted: usize, per_session: usize) -> Outcome<Ranked> {
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

    /// Returns the session's stretch if FTS5's order of what was found in it will do: by one word, at any time, ours
    /// differs only in how long a message is and how long messages are in the mean.
    ///
    /// FTS5 reads less of each message, but of the whole store where the word stands: it is asked where too much was
    /// found for us, and where the session is much of the store.
    fn range_for_index(&self, all: Option<&[Address]>) -> Outcome<Option<(Address, Address)>> {
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

    /// Returns what to read: each stretch of the place in each index.
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

    fn candidate(&self, scanner: &Scanner, row: &Matching<'_>) -> Outcome<Candidate> {
        let text = hits::text(row.parts, self.reading.query.filters.columns);
        let is_in_time = match self.window {
            Some(window) => window.holds(time(row.created_at)?),
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
    fn reading(&self) -> &Reading {
        self.reading
    }

    fn is_relaxed_at_once(&self) -> bool {
        self.reading.is_question
    }

    /// Filters come later. In the whole store, FTS5 always chooses.
    fn all_of(&self, expression: &str) -> Outcome<Option<Vec<Address>>> {
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

    fn best_of(&self, expression: &str, wanted: usize) -> Outcome<Gathered> {
        let mut gathered = Gathered::default();
        let mut rests = Vec::new();
        for (index, range) in self.stretches() {
            let mut found = self.lookup(index, expression).best(range, wanted.max(RANKED))?;
            rests.push(found.split_off(found.len().min(RANKED)));
            gathered.best.extend(found);
        }
        // One of each in turn: so what is found for an earlier page begins what is found for a later one.
        let longest = rests.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..longest {
            gathered.rest.extend(rests.iter().filter_map(|rest| rest.get(at)));
        }
        Ok(gathered)
    }

    fn figures(&self) -> Outcome<Figures> {
        frequency::of_store(self.conn, self.reading, &self.indexes)
    }

    /// Those that pass the filters.
    fn candidates(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> Outcome<(Vec<Address>, Vec<Candidate>)> {
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
    ) -> Outcome<Option<Ranked>> {
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
