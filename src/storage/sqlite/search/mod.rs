//! Searching: parsing the query, finding matches, ranking them, building hits.
//!
//! A search first indexes the pending messages. It then reads one snapshot: the index and a temporary index of messages
//! that are still pending. FTS5 lists the matches, and [`rank`](crate::search::rank) ranks them: all, or if there are too many
//! a thousand of them ([`ranked`]). The others follow in the order in which they were found, so that pages do not overlap.
//!
//! A search that runs out of time for ranking lists the newest matches in the time that is left.

mod candidates;
mod estimate;
mod expansions;
pub(super) mod extent;
#[cfg(feature = "stemmers")]
mod forms;
mod hits;
mod ladder;
mod leaves;
mod listing;
mod meaning;
mod only;
pub(super) mod pending;
mod range;
pub(super) mod ranked;
mod size;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rusqlite::Connection;

use self::candidates::{Bounds, Index, List, Lookup, Matching};
use self::expansions::Expansions;
use self::extent::Extent;
use self::hits::HitMaker;
use self::ladder::{Reached, Rung};
use self::listing::Listing;
use self::meaning::Meaning;
use self::pending::Prepared;
use self::range::Range;
use self::ranked::{MAX_SCAN_BYTES, RANKED, Ranked, Size, Texts, most_ranked};
use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use super::row::time;
use super::time_budget::{Phase, TimeBudget};
use crate::error::Result;
use crate::search::analysis::{Analysis, Unit};
use crate::search::date_hint::DateHint;
use crate::search::ladder::names_columns;
use crate::search::rank::Candidate;
use crate::search::scanner::Scanner;
use crate::search::tokenizer::normalize;
use crate::search::{
    Columns, Found, HITS_PER_SESSION, Matched, Query, SearchRequest, SessionHit, SessionsFound,
    Taken,
};
use crate::tree::Address;

/// If there are too many matches to rank, about this many of one session are ranked, so that a search for sessions finds more
/// than one. By chance it can be twice as many.
const OF_A_SESSION: usize = 64;
/// If the newest matches are of this many sessions, they are ranked, however many are of one session.
const MANY_SESSIONS: usize = RANKED / OF_A_SESSION;
/// How many messages are listed per requested session if there is no time to rank them.
const MESSAGES_PER_SESSION: usize = 20;

impl Database {
    /// Returns the matching messages, best first.
    pub(crate) fn search(&self, request: &SearchRequest) -> Result<Found> {
        self.search_within(request, request.timeout.map(TimeBudget::of_time))
    }

    fn search_within(&self, request: &SearchRequest, budget: Option<TimeBudget>) -> Result<Found> {
        let (wanted, skipped) = page(request);
        let find = |search: &Search<'_>| search.messages(wanted);
        let answer = self.answer(request, budget, find, |search, reached| {
            let makers = search.hit_makers(reached);
            let places = reached.messages().skip(skipped).take(request.limit);
            let page: Vec<(usize, (Address, f64))> = places.collect();
            let mut hits = Vec::with_capacity(page.len());
            for of_rung in page.chunk_by(|a, b| a.0 == b.0) {
                let found: Vec<_> = of_rung.iter().map(|(_, found)| *found).collect();
                hits.extend(makers[of_rung[0].0].hits(&found)?);
            }
            Ok(hits)
        })?;
        let Answer { found, matched, steps, notices, is_partial } = answer;
        Ok(Found { hits: found, matched, steps, notices, is_partial })
    }

    /// Returns the matching sessions, best first.
    pub(crate) fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        let (wanted, skipped) = page(request);
        let budget = request.timeout.map(TimeBudget::of_time);
        let find = |search: &Search<'_>| search.sessions(wanted);
        let answer = self.answer(request, budget, find, |search, reached| {
            let makers = search.hit_makers(reached);
            // All of a session come from the first step that found it, and the others are not as good.
            let mut best: HashMap<i64, (usize, Vec<(Address, f64)>)> = HashMap::new();
            for (rung, found) in reached.messages() {
                let of_session =
                    best.entry(found.0.session()).or_insert_with(|| (rung, Vec::new()));
                if of_session.0 == rung && of_session.1.len() < HITS_PER_SESSION {
                    of_session.1.push(found);
                }
            }
            let mut sessions = Vec::new();
            for (key, score) in reached.sessions().skip(skipped).take(request.limit) {
                let Some(names) = range::names(search.conn, key)? else { continue };
                let hits = match best.get(&key) {
                    Some((rung, found)) => makers[*rung].hits(found)?,
                    None => Vec::new(),
                };
                sessions.push(SessionHit { session: names.id, name: names.name, score, hits });
            }
            Ok(sessions)
        })?;
        let Answer { found, matched, steps, notices, is_partial } = answer;
        Ok(SessionsFound { sessions: found, matched, steps, notices, is_partial })
    }

    /// Parses the query, brings the index up to date, and runs the search on one snapshot.
    ///
    /// A spent budget is no error: the answer is partial.
    fn answer<T>(
        &self,
        request: &SearchRequest,
        budget: Option<TimeBudget>,
        find: impl Fn(&Search<'_>) -> BackendResult<Ranked>,
        show: impl Fn(&Search<'_>, &Reached) -> BackendResult<Vec<T>>,
    ) -> Result<Answer<T>> {
        let watch = self.interrupt_signal().watch().within(budget);
        let query = request.query();
        if query.is_empty() {
            return Ok(Answer::nothing(query.notices, false));
        }
        watch.enter(Phase::Indexing);
        self.catch_up_for_search(&watch)?;
        // To begin and end the transaction is no part of what a budget stops: that would be an error.
        watch.enter(Phase::Finishing);
        self.read_watched(watch.clone(), |conn| {
            let answer = answer_on(conn, query.clone(), request, &watch, (find, show));
            watch.enter(Phase::Finishing);
            match answer {
                Err(error) if watch.is_end_of_budget(&error) => {
                    Ok(Answer::nothing(query.notices, true))
                }
                answer => answer,
            }
        })
    }
}

/// The result of a search, for messages or for sessions.
struct Answer<T> {
    found: Vec<T>,
    matched: Matched,
    steps: Vec<Taken>,
    notices: Vec<String>,
    is_partial: bool,
}

impl<T> Answer<T> {
    fn nothing(notices: Vec<String>, is_partial: bool) -> Self {
        let (found, steps) = (Vec::new(), Vec::new());
        Self { found, matched: Matched::All, steps, notices, is_partial }
    }
}

/// Runs the search on a snapshot.
fn answer_on<T>(
    conn: &Connection,
    mut query: Query,
    request: &SearchRequest,
    watch: &Watch,
    (find, show): (
        impl Fn(&Search<'_>) -> BackendResult<Ranked>,
        impl Fn(&Search<'_>, &Reached) -> BackendResult<Vec<T>>,
    ),
) -> BackendResult<Answer<T>> {
    watch.enter(Phase::Ranking);
    let mut notices = Vec::new();
    let range = Range::of(conn, (&request.scope, request.owner.as_deref()), &query, &mut notices)?;
    let ranges = range.ranges();
    let (Some(low), Some(high)) = (ranges.first(), ranges.last()) else {
        return Ok(Answer::nothing([query.notices, notices].concat(), false));
    };
    let pending = pending::prepare(conn, (low.0, high.1), watch)?;
    let indexes = match pending {
        Prepared::Nothing => vec![Index::Stored],
        Prepared::Some | Prepared::All => vec![Index::Stored, Index::Pending],
    };
    watch.enter(Phase::Ranking);
    #[cfg(feature = "stemmers")]
    forms::add(conn, &mut query, watch)?;
    let expansions = expansions::expand(conn, &mut query, watch)?;
    let bounds = Bounds::of(conn, (&query.filters, request.omits_hidden), &range)?;
    let meaning = Meaning::of(conn, request.meaning.as_ref(), &mut notices)?;
    let asked = Analysis::of(query, &request.text);
    let search = Search {
        conn,
        reading: &asked,
        range,
        bounds,
        date: request.date_hint(),
        meaning,
        indexes,
        expansions: Rc::new(expansions),
        watch,
        is_stopped: Cell::new(false),
    };
    // A question is relaxed at once, and a query without words is a list.
    let written = if asked.is_question { asked.clone() } else { asked.strictly() };
    let first = search.of(&written);
    let ranked = find(&first)?;
    search.is_stopped.set(first.is_stopped.get());
    let mut reached = Reached::new(written, ranked);
    if !asked.words.is_empty() {
        let is_text_only = asked.query.filters.columns == Columns::Text;
        let may_search_tools = is_text_only && !names_columns(request);
        ladder::climb(&search, &request.text, may_search_tools, &find, &mut reached)?;
    }
    let matched = reached.matched();
    let found = show(&search, &reached)?;
    let steps = reached.steps;
    let is_partial =
        search.expansions.is_capped || pending == Prepared::Some || search.is_stopped.get();
    let notices = [search.reading.query.notices.clone(), notices].concat();
    Ok(Answer { found, matched, steps, notices, is_partial })
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
    /// The time that the query mentions.
    date: Option<DateHint>,
    meaning: Option<Meaning<'c>>,
    indexes: Vec<Index>,
    expansions: Rc<Expansions>,
    watch: &'c Watch,
    /// Whether the budget was spent before the search was done.
    is_stopped: Cell<bool>,
}

impl<'c> Search<'c> {
    /// Returns a search for another query on the same snapshot.
    fn of<'a>(&self, reading: &'a Analysis) -> Search<'a>
    where
        'c: 'a,
    {
        Search {
            reading,
            range: self.range.clone(),
            date: self.date.clone(),
            bounds: self.bounds.with_signs(reading),
            indexes: self.indexes.clone(),
            expansions: Rc::clone(&self.expansions),
            is_stopped: Cell::new(false),
            ..*self
        }
    }

    fn messages(&self, wanted: usize) -> BackendResult<Ranked> {
        self.until_spent(wanted, || match self.reading.all() {
            Some(all) => self.filled(&all, |ranked| ranked.fill(self, wanted)),
            None => self.listed(|listing, found| listing.newest(wanted, found)),
        })
    }

    fn sessions(&self, wanted: usize) -> BackendResult<Ranked> {
        let messages = wanted.saturating_mul(MESSAGES_PER_SESSION);
        self.until_spent(messages, || match self.reading.all() {
            Some(all) => self.filled(&all, |ranked| self.fill_sessions(ranked, wanted)),
            None => self.listed(|listing, found| listing.newest_of_sessions(wanted, found)),
        })
    }

    /// Returns the best matches and what `fill` adds to them. A spent budget leaves what was found until then.
    fn filled(
        &self,
        all: &str,
        fill: impl FnOnce(&mut Ranked) -> BackendResult<()>,
    ) -> BackendResult<Ranked> {
        let mut ranked = self.with_meaning(Ranked::find(self, all)?)?;
        self.watch.enter(Phase::Listing);
        match fill(&mut ranked) {
            Err(error) if self.watch.is_end_of_budget(&error) => self.is_stopped.set(true),
            done => done?,
        }
        Ok(ranked)
    }

    /// Adds the sessions whose matches were not ranked, the newest first, until there are as many as wanted, and to each of
    /// them its newest matches, until it has [`HITS_PER_SESSION`].
    fn fill_sessions(&self, ranked: &mut Ranked, wanted: usize) -> BackendResult<()> {
        let Some(expression) = ranked.more.clone() else { return Ok(()) };
        let list = List::Passing(ranked.matched);
        let mut known: HashSet<i64> = ranked.sessions.iter().map(|session| session.0).collect();
        let mut found = Vec::new();
        for (low, mut high) in self.range.ranges().into_iter().rev() {
            while known.len() < wanted {
                let mut newest = Vec::new();
                self.collect_in(list, &expression, (low, high), OF_A_SESSION, &mut newest)?;
                found.extend(newest.iter().filter(|address| known.insert(address.session())));
                let Some(last) = newest.get(OF_A_SESSION - 1) else { break };
                high = Address::range_of(last.session()).0.before();
            }
        }
        ranked.follow_unknown(found);
        let mut found = Vec::new();
        for (session, _) in ranked.sessions.iter().take(wanted) {
            let of_session = ranked.messages.iter().filter(|found| found.0.session() == *session);
            if of_session.take(HITS_PER_SESSION).count() < HITS_PER_SESSION {
                let (range, limit) = (Address::range_of(*session), found.len() + HITS_PER_SESSION);
                self.collect_in(list, &expression, range, limit, &mut found)?;
            }
        }
        ranked.follow_unknown(found);
        Ok(())
    }

    /// Finds messages, or only lists the newest of them if the time for ranking is over.
    fn until_spent(
        &self,
        wanted: usize,
        find: impl FnOnce() -> BackendResult<Ranked>,
    ) -> BackendResult<Ranked> {
        self.watch.enter(Phase::Ranking);
        let found = match find() {
            Err(error) if self.watch.is_end_of_budget(&error) => self.newest(wanted),
            found => found,
        };
        self.watch.enter(Phase::Finishing);
        found
    }

    /// Returns the newest matches that the rest of the budget reaches, without ranking them.
    fn newest(&self, wanted: usize) -> BackendResult<Ranked> {
        self.is_stopped.set(true);
        self.watch.enter(Phase::Listing);
        let any = || self.reading.any(0..self.reading.units.len());
        let (expression, matched) = match self.is_relaxed_at_once() && !self.reading.is_fixed() {
            true => (any(), Matched::Relaxed),
            false => (self.reading.all(), Matched::All),
        };
        let mut ranked = Ranked::none(matched);
        let mut found = Vec::new();
        if let Some(expression) = &expression {
            match self.collect(List::Passing(matched), expression, wanted, &mut found) {
                Err(error) if self.watch.is_end_of_budget(&error) => {}
                done => done?,
            }
        }
        ranked.follow(&found, 1.0);
        Ok(ranked)
    }

    /// Returns what makes hits of the messages of each rung.
    fn hit_makers(&self, reached: &Reached) -> Vec<HitMaker<'_>> {
        let maker = |rung: &Rung| {
            let matched = (rung.ranked.matched, self.meaning.is_some());
            let readings = (self.reading, &rung.reading);
            let copies = (&self.range, self.bounds.has_copies);
            HitMaker::new(self.conn, readings, matched, copies, self.watch)
        };
        reached.rungs().iter().map(maker).collect()
    }

    /// Returns the messages that pass the filters, newest first.
    fn listed(
        &self,
        list: impl FnOnce(&Listing<'_>, &mut Vec<Address>) -> BackendResult<()>,
    ) -> BackendResult<Ranked> {
        let excluded = self.reading.query.to_fts_excluded();
        let listing = Listing {
            conn: self.conn,
            range: &self.range,
            bounds: &self.bounds,
            indexes: &self.indexes,
            excluded: excluded.as_deref(),
            watch: self.watch,
        };
        let mut found = Vec::new();
        self.watch.enter(Phase::Listing);
        match list(&listing, &mut found) {
            Err(error) if self.watch.is_end_of_budget(&error) => self.is_stopped.set(true),
            done => done?,
        }
        let mut ranked = Ranked::none(Matched::All);
        ranked.follow(&found, 1.0);
        Ok(ranked)
    }

    /// Adds the newest matches of all ranges, newest first, at most `limit`. After an error those found before are there.
    fn collect(
        &self,
        list: List,
        expression: &str,
        limit: usize,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        for range in self.range.ranges().into_iter().rev() {
            self.collect_in(list, expression, range, limit, found)?;
        }
        Ok(())
    }

    /// The same in one range; `found` holds the matches of later ranges.
    fn collect_in(
        &self,
        list: List,
        expression: &str,
        range: (Address, Address),
        limit: usize,
        found: &mut Vec<Address>,
    ) -> BackendResult<()> {
        let from = found.len();
        let left = limit.saturating_sub(from);
        if left == 0 {
            return Ok(());
        }
        for index in &self.indexes {
            // The temporary index is small, and its words are not those of the store.
            let expression = match index {
                Index::Stored => self.expansions.apply(expression),
                Index::Pending => Cow::Borrowed(expression),
            };
            self.lookup(*index, &expression).newest(list, range, left, found)?;
        }
        if self.indexes.len() > 1 {
            found[from..].sort_unstable_by(|a, b| b.cmp(a));
            found.truncate(limit);
        }
        Ok(())
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

    /// Reads a match; `dated` are the units that name the date of the query.
    ///
    /// A message that has only these is not one of the time that is asked about: of `my plans in fall 2023` it may have `fall`
    /// because it is about leaves.
    fn candidate(
        &self,
        scanner: &Scanner,
        row: &Matching<'_>,
        dated: &[usize],
    ) -> BackendResult<Candidate> {
        let text = hits::text(row.parts, self.reading.query.filters.columns);
        let scan = scanner.scan(&text, MAX_SCAN_BYTES);
        let mut has = scan.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let is_in_time = match &self.date {
            Some(date) => {
                has.any(|(unit, _)| !dated.contains(&unit)) && date.contains(time(row.created_at)?)
            }
            None => false,
        };
        let (session, is_user) = (row.address.session(), row.role == "user");
        Ok(Candidate { session, is_user, is_in_time, scan })
    }

    /// Returns the units that name the date of the query; none if it has no others.
    fn dated(&self) -> Vec<usize> {
        let Some(name) = self.date.as_ref().and_then(|date| date.name.as_ref()) else {
            return Vec::new();
        };
        let is_named = |unit: &Unit| match &unit.term.tokens[..] {
            [word] => name.iter().any(|named| *named == normalize(word)),
            _ => false,
        };
        let units = &self.reading.units;
        let dated: Vec<usize> = (0..units.len()).filter(|at| is_named(&units[*at])).collect();
        if dated.len() < units.len() { dated } else { Vec::new() }
    }
}

impl Texts for Search<'_> {
    fn reading(&self) -> &Analysis {
        self.reading
    }

    fn is_relaxed_at_once(&self) -> bool {
        self.reading.is_question
    }

    fn has_filters(&self) -> bool {
        self.bounds.wanted.is_some()
    }

    fn is_alone(&self) -> bool {
        !self.range.is_store() || self.bounds.only.is_some()
    }

    fn newest(
        &self,
        (expression, matched): (&str, Matched),
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        let mut found = Vec::new();
        self.collect(List::Passing(matched), expression, limit, &mut found)?;
        Ok(found)
    }

    fn listed(&self, expression: &str, limit: usize) -> BackendResult<Vec<Address>> {
        let mut found = Vec::new();
        self.collect(List::All, expression, limit, &mut found)?;
        Ok(found)
    }

    /// The newest, unless they are of few sessions.
    fn chosen(&self, expression: &str, listed: &[Address]) -> BackendResult<Vec<Address>> {
        let ranked = most_ranked(self);
        let newest = &listed[..ranked.min(listed.len())];
        let sessions = newest.chunk_by(|a, b| a.session() == b.session()).count();
        if sessions >= MANY_SESSIONS || self.range.is_one_session() {
            return Ok(newest.to_vec());
        }
        let mut chosen = Vec::new();
        for (low, mut high) in self.range.ranges().into_iter().rev() {
            for _ in 0..MANY_SESSIONS {
                let from = chosen.len();
                let limit = from + OF_A_SESSION;
                // To start a search for a prefix takes as long as to list a thousand matches.
                let at = listed.partition_point(|address| *address > high);
                match listed.get(at..at + OF_A_SESSION) {
                    Some(next) if next[OF_A_SESSION - 1] >= low => chosen.extend(next),
                    _ => {
                        let (found, list) = (&mut chosen, List::Passing(Matched::All));
                        self.collect_in(list, expression, (low, high), limit, found)?;
                    }
                }
                let Some(oldest) = chosen.last().filter(|_| chosen.len() == limit) else { break };
                high = match chosen[from].session() == oldest.session() {
                    true => Address::range_of(oldest.session()).0.before(),
                    false => oldest.before(),
                };
            }
        }
        let known: HashSet<Address> = chosen.iter().copied().collect();
        chosen.extend(newest.iter().filter(|address| !known.contains(address)));
        chosen.truncate(ranked);
        Ok(chosen)
    }

    fn passing(
        &self,
        found: impl Iterator<Item = Address>,
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        if self.bounds.is_open {
            return Ok(found.take(limit).collect());
        }
        let with_bounds = (&self.bounds, self.indexes.as_slice());
        let found = candidates::which_may_pass(self.conn, found.collect(), with_bounds)?;
        let mut passed = Vec::new();
        for chunk in found.chunks(RANKED) {
            if passed.len() >= limit {
                break;
            }
            passed.extend(candidates::passing(
                self.conn,
                (chunk, Matched::Relaxed),
                &self.bounds,
                self.watch,
            )?);
        }
        passed.truncate(limit);
        Ok(passed)
    }

    /// Of the whole store, because the index lists the occurrences of a word in all messages.
    fn has_estimates(&self) -> bool {
        self.range.is_store()
            && self.indexes == [Index::Stored]
            && !self.has_filters()
            && self.bounds.only.is_none()
            && self.date.is_none()
            && estimate::is_possible(self.reading)
    }

    fn estimates(&self, found: &[Address]) -> BackendResult<Vec<Candidate>> {
        estimate::candidates(self.conn, self.reading, found, self.watch)
    }

    fn size(&self) -> BackendResult<Size> {
        let columns = self.reading.query.filters.columns;
        let store = size::of_store(self.conn, &self.indexes, columns)?;
        let sessions = match &self.range {
            Range::Store { .. } => return Ok(store),
            Range::Sessions(keys) => keys.len() as f64,
            Range::Path(_) => 1.0,
        };
        Ok(Size { texts: self.extent()?.texts(), sessions, mean_length: None })
    }

    fn extent(&self) -> BackendResult<Extent> {
        let messages = match self.range.is_store() {
            true => self.size()?.texts,
            false => 0.0,
        };
        Extent::of(self.conn, &self.range, messages)
    }

    /// Those that pass the filters.
    fn candidates(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)> {
        let scanner = Scanner::new(&self.reading.units, pairs);
        let dated = self.dated();
        let (mut passed, mut candidates) = (Vec::new(), Vec::new());
        candidates::each(self.conn, found, &self.bounds, self.watch, |row| {
            passed.push(row.address);
            candidates.push(self.candidate(&scanner, &row, &dated)?);
            Ok(())
        })?;
        Ok((passed, candidates))
    }
}
