//! Searching: parsing the query, finding matches, ranking them, building hits.
//!
//! A search first indexes the pending messages. It then reads one snapshot: the index and a temporary index of messages
//! that are still pending. In a session or on a path all matches are ranked by [`rank`](crate::search::rank). In a
//! whole store, or if a session has too many matches, only the few hundred that FTS5 ranks best are; the others follow
//! in FTS5's order, so that pages do not overlap. For one word in one session FTS5's order may be used unchanged.
//!
//! A search that runs out of time for ranking lists the newest matches in the time that is left.

mod candidates;
mod expansions;
mod frequency;
mod hits;
mod ladder;
mod listing;
pub(super) mod pending;
mod range;
pub(super) mod ranked;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::HashMap;

use rusqlite::Connection;

use self::candidates::{Bounds, Index, Lookup, MAX_RANKED, Matching};
use self::hits::HitMaker;
use self::listing::Listing;
use self::pending::Prepared;
use self::range::Range;
use self::ranked::{Figures, Gathered, MAX_ALL, MAX_SCAN_BYTES, RANKED, Ranked, Texts};
use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use super::row::time;
use super::time_budget::{Phase, TimeBudget};
use crate::error::Result;
use crate::search::analysis::Analysis;
use crate::search::date_hint::DateRange;
use crate::search::ladder::names_columns;
use crate::search::rank::Candidate;
use crate::search::scanner::Scanner;
use crate::search::{
    Columns, Found, HITS_PER_SESSION, Matched, Query, SearchRequest, SessionHit, SessionsFound,
    Step,
};
use crate::tree::Address;

/// Up to this many matches are always ranked here: FTS5 would not be faster.
const MAX_FEW: usize = 20;
/// How many messages are searched for per requested session.
const MESSAGES_PER_SESSION: usize = 5;

impl Database {
    /// Returns the matching messages, best first.
    pub(crate) fn search(&self, request: &SearchRequest) -> Result<Found> {
        self.search_within(request, request.timeout.map(TimeBudget::of_time))
    }

    fn search_within(&self, request: &SearchRequest, budget: Option<TimeBudget>) -> Result<Found> {
        let (wanted, skipped) = page(request);
        let find = |search: &Search<'_>| search.messages(wanted);
        let answer = self.answer(request, budget, find, |search, ranked| {
            let page: Vec<_> =
                ranked.messages.iter().copied().skip(skipped).take(request.limit).collect();
            search.hit_maker(ranked.matched).hits(&page)
        })?;
        let Answer { found, matched, steps, notices, is_partial } = answer;
        Ok(Found { hits: found, matched, steps, notices, is_partial })
    }

    /// Returns the matching sessions, best first.
    pub(crate) fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        let (wanted, skipped) = page(request);
        let budget = request.timeout.map(TimeBudget::of_time);
        let find = |search: &Search<'_>| search.sessions(wanted);
        let answer = self.answer(request, budget, find, |search, ranked| {
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
        show: impl Fn(&Search<'_>, &Ranked) -> BackendResult<Vec<T>>,
    ) -> Result<Answer<T>> {
        let watch = self.interrupt_signal().watch().within(budget);
        let query = request.query();
        if query.is_empty() {
            return Ok(Answer::nothing(query.notices, false));
        }
        watch.enter(Phase::Indexing);
        self.catch_up_for_search(&watch)?;
        self.read_watched(watch.clone(), |conn| {
            let answer = answer_on(conn, query.clone(), request, &watch, (find, show));
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
    steps: Vec<Step>,
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
        impl Fn(&Search<'_>, &Ranked) -> BackendResult<Vec<T>>,
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
    let is_capped = expansions::cap(conn, &mut query, watch)?;
    let bounds = Bounds::of(conn, &query.filters, &range)?;
    let asked = Analysis::of(query, &request.text);
    let search = Search {
        conn,
        reading: &asked,
        range,
        bounds,
        window: request.date_hint(),
        indexes,
        watch,
        is_stopped: Cell::new(false),
    };
    // A question is relaxed at once, and a query without words is a list.
    let written = if asked.is_question { asked.clone() } else { asked.strictly() };
    let first = search.of(&written);
    let mut ranked = find(&first)?;
    search.is_stopped.set(first.is_stopped.get());
    let (mut reading, mut steps) = (written, Vec::new());
    if ranked.messages.is_empty() && !asked.words.is_empty() && !search.is_stopped.get() {
        let is_text_only = search.reading.query.filters.columns == Columns::Text;
        let may_search_tools = is_text_only && !names_columns(request);
        let reached = ladder::climb(&search, &request.text, may_search_tools, &find)?;
        if let Some(reached) = reached {
            (reading, ranked, steps) = (reached.reading, reached.ranked, reached.steps);
        }
    }
    let matched = ranked.matched;
    let found = show(&search.of(&reading), &ranked)?;
    let is_partial = is_capped || pending == Prepared::Some || search.is_stopped.get();
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
    /// The date range that the query mentions.
    window: Option<DateRange>,
    indexes: Vec<Index>,
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
            bounds: self.bounds.clone(),
            indexes: self.indexes.clone(),
            is_stopped: Cell::new(false),
            ..*self
        }
    }

    fn messages(&self, wanted: usize) -> BackendResult<Ranked> {
        self.until_spent(wanted, || match self.reading.all() {
            Some(all) => Ranked::find(self, &all, wanted),
            None => self.listed(wanted, usize::MAX),
        })
    }

    fn sessions(&self, wanted: usize) -> BackendResult<Ranked> {
        let messages = wanted.saturating_mul(MESSAGES_PER_SESSION);
        self.until_spent(messages, || match self.reading.all() {
            Some(all) => Ranked::find(self, &all, messages),
            None => self.listed(wanted.saturating_mul(HITS_PER_SESSION), HITS_PER_SESSION),
        })
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
        for (index, range) in self.stretches().into_iter().rev() {
            let Some(expression) = &expression else { break };
            match self.lookup(index, expression).newest(range, wanted, &mut found) {
                Err(error) if self.watch.is_end_of_budget(&error) => break,
                done => done?,
            }
        }
        ranked.follow(&found, 1.0);
        Ok(ranked)
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
        let mut found = Vec::new();
        self.watch.enter(Phase::Listing);
        match listing.newest(wanted, per_session, &mut found) {
            Err(error) if self.watch.is_end_of_budget(&error) => self.is_stopped.set(true),
            done => done?,
        }
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
        if self.range.is_store() {
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
