//! Searching: reading the query, finding what matches, ranking it, making hits.
//!
//! A search first indexes what is pending. It then reads at one moment: the index, and beside it an index of what is
//! pending still. A whole store is searched with FTS5's rank, which offers the best few hundred messages; a session or a
//! path offers all it has. These are ranked by [`rank`](crate::search::rank); what FTS5 found beyond follows as it came,
//! so that pages do not overlap.

mod candidates;
mod frequency;
pub(super) mod fresh;
mod hits;
mod listing;
mod place;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use rusqlite::Connection;

use self::candidates::{Bounds, Index, Lookup};
use self::hits::HitMaker;
use self::listing::Listing;
use self::place::Place;
use super::connection::Database;
use super::fault::Outcome;
use super::interrupt::Watch;
use super::message::time;
use crate::error::Result;
use crate::search::choose::choose;
use crate::search::rank::{Candidate, Corpus, rank};
use crate::search::reading::Reading;
use crate::search::scan::{Scan, Scanner};
use crate::search::when::{Window, window};
use crate::search::{Found, Matched, Query, SearchRequest, SessionHit, SessionsFound};
use crate::tree::Address;

/// How many messages of the store are ranked outside the index. More was measured and is no better.
const RANKED: usize = 200;
/// How much of a message is looked at for ranking.
const MAX_SCAN_BYTES: usize = 64 << 10;
/// How many messages a conversation is shown with.
const HITS_PER_SESSION: usize = 3;
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
            let mut sessions = Vec::new();
            for &(key, score) in ranked.sessions.iter().skip(skipped).take(request.limit) {
                let best: Vec<_> = ranked
                    .messages
                    .iter()
                    .filter(|(address, _)| address.session() == key)
                    .take(HITS_PER_SESSION)
                    .copied()
                    .collect();
                let Some(names) = place::names(search.conn, key)? else { continue };
                let hits = maker.hits(&best)?;
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
            let place = Place::of(conn, &request.scope, &reading.query, &mut notices)?;
            let ranges = place.ranges();
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
            let bounds = Bounds::of(&reading.query.filters, &place);
            run(&Search { conn, reading: &reading, place, bounds, window, indexes, watch: &watch })
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
    place: Place,
    bounds: Bounds,
    /// The time the question speaks of.
    window: Option<Window>,
    indexes: Vec<Index>,
    watch: &'c Watch,
}

/// What was found, best first.
struct Ranked {
    messages: Vec<(Address, f64)>,
    sessions: Vec<(i64, f64)>,
    matched: Matched,
}

/// What matches, before it is ranked.
#[derive(Debug, Default)]
struct Gathered {
    /// What is to be ranked.
    best: Vec<Address>,
    /// What comes after, in this order.
    rest: Vec<Address>,
    /// Whether these are all there are.
    is_all: bool,
}

impl Search<'_> {
    fn messages(&self, wanted: usize) -> Outcome<Ranked> {
        match self.reading.all() {
            Some(all) => self.matching(&all, wanted),
            None => self.listed(wanted, usize::MAX),
        }
    }

    fn sessions(&self, wanted: usize) -> Outcome<Ranked> {
        match self.reading.all() {
            Some(all) => self.matching(&all, wanted.saturating_mul(MESSAGES_PER_SESSION)),
            None => self.listed(wanted.saturating_mul(HITS_PER_SESSION), HITS_PER_SESSION),
        }
    }

    fn hit_maker(&self, matched: Matched) -> HitMaker<'_> {
        HitMaker::new(self.conn, self.reading, matched, self.watch)
    }

    /// Returns what passes the filters, newest first.
    fn listed(&self, wanted: usize, per_session: usize) -> Outcome<Ranked> {
        let excluded = self.reading.query.to_fts_excluded();
        let listing = Listing {
            conn: self.conn,
            place: &self.place,
            bounds: &self.bounds,
            indexes: &self.indexes,
            excluded: excluded.as_deref(),
            watch: self.watch,
        };
        let found = listing.newest(wanted, per_session)?;
        let mut ranked =
            Ranked { messages: Vec::new(), sessions: Vec::new(), matched: Matched::All };
        ranked.follow(&found, 1.0);
        Ok(ranked)
    }

    /// Returns what matches, best first: all words where that finds anything, else any of them.
    fn matching(&self, all: &str, wanted: usize) -> Outcome<Ranked> {
        if !self.reading.is_question || self.reading.is_fixed() {
            let found = self.gather(all, wanted)?;
            if !found.best.is_empty() || self.reading.is_fixed() {
                return self.rank(&found, Matched::All, None);
            }
        }
        let any = self.reading.any(0..self.reading.units.len());
        if let Some(any) = &any
            && let Some(best) = self.all_of(any)?
        {
            let found = Gathered { best, rest: Vec::new(), is_all: true };
            return self.rank(&found, Matched::Relaxed, None);
        }
        let (frequencies, corpus) = frequency::of_store(self.conn, self.reading, &self.indexes)?;
        let choice = choose(frequencies, corpus.messages);
        let any = self.reading.any(choice.looked_for.into_iter());
        let found = any.map(|any| self.gather(&any, wanted)).transpose()?.unwrap_or_default();
        self.rank(&found, Matched::Relaxed, Some((choice.frequencies, corpus)))
    }

    /// Returns what matches in the place, best first as far as FTS5 tells.
    fn gather(&self, expression: &str, wanted: usize) -> Outcome<Gathered> {
        if let Some(best) = self.all_of(expression)? {
            return Ok(Gathered { best, rest: Vec::new(), is_all: true });
        }
        let mut gathered = Gathered::default();
        for (index, range) in self.stretches() {
            let mut found = self.lookup(index, expression).best(range, wanted.max(RANKED))?;
            gathered.rest.extend(found.split_off(found.len().min(RANKED)));
            gathered.best.extend(found);
        }
        Ok(gathered)
    }

    /// Returns all that matches in sessions or on a path, if that is little enough to be ranked here.
    fn all_of(&self, expression: &str) -> Outcome<Option<Vec<Address>>> {
        if self.place == Place::Store {
            return Ok(None);
        }
        let mut found = Vec::new();
        for (index, range) in self.stretches() {
            match self.lookup(index, expression).all(range)? {
                Some(all) => found.extend(all),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// Returns what to read: each stretch of the place in each index.
    fn stretches(&self) -> Vec<(Index, (Address, Address))> {
        let ranges = self.place.ranges();
        let of = |index: &Index| ranges.iter().map(|range| (*index, *range)).collect::<Vec<_>>();
        self.indexes.iter().flat_map(of).collect()
    }

    fn lookup<'a>(&'a self, index: Index, expression: &'a str) -> Lookup<'a> {
        Lookup {
            conn: self.conn,
            index,
            expression,
            bounds: &self.bounds,
            place: &self.place,
            watch: self.watch,
        }
    }

    /// Ranks what was gathered; `known` says how common each unit is, if that was asked already.
    fn rank(
        &self,
        gathered: &Gathered,
        matched: Matched,
        known: Option<(Vec<f64>, Corpus)>,
    ) -> Outcome<Ranked> {
        let mut ranked = Ranked { messages: Vec::new(), sessions: Vec::new(), matched };
        if gathered.best.is_empty() {
            return Ok(ranked);
        }
        let known = match known {
            None if !gathered.is_all => {
                Some(frequency::of_store(self.conn, self.reading, &self.indexes)?)
            }
            known => known,
        };
        let counts = |unit: usize| known.as_ref().is_none_or(|known| known.0[unit] > 0.0);
        let pairs = self.reading.pairs(counts);
        let scanner = Scanner::new(&self.reading.units, &pairs);
        let mut found = Vec::with_capacity(gathered.best.len());
        for &address in &gathered.best {
            self.watch.check()?;
            found.push(self.candidate(&scanner, address)?);
        }
        let (frequencies, corpus) = known.unwrap_or_else(|| among(&found));
        let ranking = rank(self.reading, &pairs, &frequencies, corpus, &found);
        ranked.messages = gathered.best.iter().copied().zip(ranking.messages).collect();
        ranked.messages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.sessions = ranking.sessions.into_iter().collect();
        ranked.sessions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let floor = ranked.messages.last().map_or(0.0, |last| last.1);
        ranked.follow(&gathered.rest, floor);
        Ok(ranked)
    }

    fn candidate(&self, scanner: &Scanner, address: Address) -> Outcome<Candidate> {
        let row = hits::row(self.conn, address)?;
        let text = row.text(self.reading.query.filters.columns);
        let time: DateTime<Utc> = time(row.created_at)?;
        Ok(Candidate {
            session: address.session(),
            is_user: row.role == "user",
            is_in_time: self.window.is_some_and(|window| window.holds(time)),
            scan: scanner.scan(&text, MAX_SCAN_BYTES),
        })
    }
}

impl Ranked {
    /// Adds messages in their order, with scores that fall from `floor` on, and the sessions that are new with them.
    fn follow(&mut self, rest: &[Address], floor: f64) {
        let known = self.messages.len();
        let mut seen: std::collections::HashSet<i64> =
            self.sessions.iter().map(|session| session.0).collect();
        let floor_of_sessions = self.sessions.last().map_or(floor, |last| last.1.min(floor));
        for (at, address) in rest.iter().enumerate() {
            let fall = (known + 1) as f64 / (known + at + 2) as f64;
            self.messages.push((*address, floor * fall));
            if seen.insert(address.session()) {
                self.sessions.push((address.session(), floor_of_sessions * fall));
            }
        }
    }
}

/// Returns how common each unit is among messages that are all there are.
fn among(found: &[Candidate]) -> (Vec<f64>, Corpus) {
    let scans = || found.iter().map(|candidate| &candidate.scan);
    let units = scans().next().map_or(0, |scan| scan.counts.len());
    let holding = |unit: usize| scans().filter(|scan: &&Scan| scan.counts[unit] > 0).count() as f64;
    let messages = found.len() as f64;
    let length: usize = scans().map(|scan| scan.length).sum();
    let sessions: std::collections::HashSet<i64> =
        found.iter().map(|found| found.session).collect();
    let corpus = Corpus {
        messages,
        mean_length: length as f64 / messages.max(1.0),
        sessions: sessions.len() as f64,
    };
    ((0..units).map(holding).collect(), corpus)
}
