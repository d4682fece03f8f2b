//! Searching: parsing the query, finding matches, ranking them, building hits.
//!
//! A search first indexes the pending messages. It then reads one snapshot: the index, and a temporary index of messages
//! that are still pending. The index lists the matches ([`ranked`]), whose [rows] are read, checked and ranked by
//! `talktree-text`. If a query finds little as it is written, [`steps`] tries what else it may mean. [`hits`] shows what was found.
//!
//! A search that runs out of time for ranking lists the newest matches in the time that is left.

pub(super) mod hits;
mod range;
pub(super) mod ranked;
mod rows;
mod steps;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use talktree_text::{Analysis, Candidate, Columns, DateHint, Expr, Query, Unit};

use self::hits::HitMaker;
use self::range::Range;
use self::ranked::{MAX_READ_BYTES, More, Ranked, Texts};
use self::steps::Results;
use super::connection::Database;
use super::embedding::Meaning;
use super::index::{self, Expression, Index, Prepared};
use super::interrupt::{Phase, TimeBudget, Watch};
use crate::error::Result;
use crate::search::{
    HITS_PER_SESSION, Hit, Matched, SearchRequest, SearchResults, SearchTarget, SessionHit,
};
use crate::sql::{BackendResult, Connection, time};
use crate::tree::Address;

impl SearchTarget for Database {
    fn search(&self, request: &SearchRequest) -> Result<SearchResults> {
        self.search_within(request, request.timeout.map(TimeBudget::of_time))
    }

    fn search_sessions(&self, request: &SearchRequest) -> Result<SearchResults<SessionHit>> {
        let wanted =
            Wanted { messages: usize::MAX, sessions: page_end(request), of_each: HITS_PER_SESSION };
        let budget = request.timeout.map(TimeBudget::of_time);
        self.answer(request, wanted, budget, |search, results| {
            let maker = HitMaker::new(search, results);
            let mut best: HashMap<i64, Vec<_>> = HashMap::new();
            for found in results.messages() {
                let of_session = best.entry(found.1.session()).or_default();
                if of_session.len() < HITS_PER_SESSION {
                    of_session.push(found);
                }
            }
            let mut sessions = Vec::new();
            for (key, score) in results.sessions().skip(request.offset).take(request.limit) {
                let Some(names) = range::names(search.conn, key)? else { continue };
                let hits = maker.hits(best.get(&key).map_or(&[], Vec::as_slice))?;
                sessions.push(SessionHit { session: names.id, name: names.name, score, hits });
            }
            Ok(sessions)
        })
    }
}

impl Database {
    fn search_within(
        &self,
        request: &SearchRequest,
        budget: Option<TimeBudget>,
    ) -> Result<SearchResults> {
        let wanted =
            Wanted { messages: page_end(request), sessions: usize::MAX, of_each: usize::MAX };
        self.answer(request, wanted, budget, |search, results| -> BackendResult<Vec<Hit>> {
            let page = results.messages().skip(request.offset).take(request.limit);
            HitMaker::new(search, results).hits(&page.collect::<Vec<_>>())
        })
    }

    /// Parses the query, brings the index up to date, and runs the search on one snapshot.
    ///
    /// A spent budget is no error: the answer is partial.
    fn answer<T>(
        &self,
        request: &SearchRequest,
        wanted: Wanted,
        budget: Option<TimeBudget>,
        show: impl Fn(&Search<'_>, &Results) -> BackendResult<Vec<T>>,
    ) -> Result<SearchResults<T>> {
        let watch = self.watch().within(budget);
        let query = request.query();
        if query.is_empty() {
            return Ok(SearchResults::nothing(query.notices));
        }
        watch.enter(Phase::Indexing);
        self.catch_up_for_search(&watch)?;
        // To begin and end the transaction is no part of what a budget stops: that would be an error.
        watch.enter(Phase::Finishing);
        self.read_watched(watch.clone(), |conn| {
            let answer = answer_on(conn, query.clone(), (request, wanted), &watch, show);
            watch.enter(Phase::Finishing);
            match answer {
                Err(error) if watch.is_end_of_budget(&error) => {
                    Ok(SearchResults { is_partial: true, ..SearchResults::nothing(query.notices) })
                }
                answer => answer,
            }
        })
    }
}

/// How many results of a search are needed at most: messages, or sessions with some messages of each.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    messages: usize,
    sessions: usize,
    of_each: usize,
}

/// Returns how many results are needed.
fn page_end(request: &SearchRequest) -> usize {
    // SQLite's integers are signed; nobody reads that far.
    request.offset.saturating_add(request.limit).min(u32::MAX as usize)
}

/// Runs the search on a snapshot.
fn answer_on<T>(
    conn: &Connection,
    mut query: Query,
    (request, wanted): (&SearchRequest, Wanted),
    watch: &Watch,
    show: impl Fn(&Search<'_>, &Results) -> BackendResult<Vec<T>>,
) -> BackendResult<SearchResults<T>> {
    watch.enter(Phase::Ranking);
    let mut notices = Vec::new();
    conn.ask_ahead(rows::HAS_COPIES, ())?;
    let mut range =
        Range::of(conn, (&request.scope, request.owner.as_deref()), &query, &mut notices)?;
    if let Some(message) = &request.omits {
        range = range.without(conn, message)?;
    }
    let ranges = range.ranges();
    let (Some(low), Some(high)) = (ranges.first(), ranges.last()) else {
        return Ok(SearchResults::nothing([query.notices, notices].concat()));
    };
    let pending = index::prepare(conn, (low.0, high.1), watch)?;
    watch.enter(Phase::Ranking);
    let date = request.date_hint();
    date.iter().for_each(|date| query.set_time(date));
    let is_capped = index::add_forms(conn, &mut query, watch)?;
    // No session contains a message twice.
    let has_copies = !range.is_one_session() && conn.has(rows::HAS_COPIES, ())?;
    let meaning = Meaning::of(conn, request.meaning.as_ref(), &mut notices)?;
    let asked = Analysis::of(query, &request.text);
    let search = Search {
        conn,
        labels: index::wanted(&asked.query.filters),
        analysis: &asked,
        range: &range,
        omits_hidden: request.omits_hidden,
        has_copies,
        date,
        meaning,
        reads_parts: conn.is_far()
            && range.parts().len() > 1
            && range.count(conn)? < FEW_MESSAGES as f64,
        has_pending: pending != Prepared::Nothing,
        watch,
        is_stopped: Cell::new(false),
    };
    // A question is relaxed at once, and a query without words is a list.
    let written = if asked.is_question { asked.clone() } else { asked.strictly() };
    let first = search.of(&written);
    let ranked = first.find(wanted)?;
    search.is_stopped.set(first.is_stopped.get());
    let mut results = Results::new(written, ranked);
    if !asked.words.is_empty() {
        steps::take(&search, (&request.text, wanted), &mut results)?;
    }
    if results.matched() == Matched::Relaxed {
        notices.extend(steps::missing(&search, &request.text)?);
    }
    let hits = show(&search, &results)?;
    let is_partial = is_capped || pending == Prepared::Some || search.is_stopped.get();
    let notices = [asked.query.notices.clone(), notices].concat();
    let matched = results.matched();
    Ok(SearchResults { hits, matched, steps: results.steps, notices, is_partial })
}

/// A server reads so many messages in a few 10 ms.
const FEW_MESSAGES: usize = 50_000;

/// Of how many rows a server is asked at once.
const AT_ONCE: usize = 256;

/// A search on one snapshot.
#[derive(Clone)]
pub(super) struct Search<'c> {
    pub(super) conn: &'c Connection<'c>,
    pub(super) analysis: &'c Analysis,
    pub(super) range: &'c Range,
    omits_hidden: bool,
    /// Whether copies of one message may be in the range.
    has_copies: bool,
    /// What the labels of a match must be.
    labels: Option<Expr>,
    /// The time that the query mentions.
    date: Option<DateHint>,
    pub(super) meaning: Option<Meaning<'c>>,
    /// Whether a server reads all messages in the range: less than to find a common word everywhere, if they are few.
    reads_parts: bool,
    /// Whether there is a temporary index of pending messages.
    has_pending: bool,
    pub(super) watch: &'c Watch,
    /// Whether the budget was spent before the search was done.
    pub(super) is_stopped: Cell<bool>,
}

impl<'c> Search<'c> {
    /// Returns a search for another query on the same snapshot.
    fn of<'a>(&'a self, analysis: &'a Analysis) -> Search<'a> {
        Search { analysis, is_stopped: Cell::new(false), ..self.clone() }
    }

    pub(super) fn columns(&self) -> Columns {
        self.analysis.query.filters.columns
    }

    /// Finds messages, or only lists the newest of them if the time for ranking is over.
    fn find(&self, wanted: Wanted) -> BackendResult<Ranked> {
        self.watch.enter(Phase::Ranking);
        let found = match self.analysis.query.has_terms() {
            true => self.best_first(wanted),
            false => self.listed(wanted),
        };
        let found = match found {
            Err(error) if self.watch.is_end_of_budget(&error) => self.newest_in_time(wanted),
            found => found,
        };
        self.watch.enter(Phase::Finishing);
        found
    }

    /// Returns the best matches and, if more are wanted, the newest of the others.
    fn best_first(&self, wanted: Wanted) -> BackendResult<Ranked> {
        let is_by_session = wanted.messages == usize::MAX;
        let ranked = Ranked::find(self, self.analysis.is_question, is_by_session)?;
        let mut ranked = self.with_meaning(ranked)?;
        self.fill(&mut ranked, wanted)?;
        Ok(ranked)
    }

    /// Returns the newest matches that the rest of the budget reaches, without ranking them.
    fn newest_in_time(&self, wanted: Wanted) -> BackendResult<Ranked> {
        self.is_stopped.set(true);
        let (expr, matched) = match self.analysis.is_question && !self.analysis.is_fixed() {
            true => (self.analysis.any(0..self.analysis.units.len()), Matched::Relaxed),
            false => (self.analysis.all(), Matched::All),
        };
        let more = expr.map(|expr| More { expr, listed: Vec::new(), is_whole: true });
        let mut ranked = Ranked { more, ..Ranked::none(matched) };
        self.fill(&mut ranked, wanted)?;
        Ok(ranked)
    }

    /// Adds the newest of the matches that were not ranked, until there are as many messages or sessions as wanted. A spent budget
    /// leaves what was found until then.
    fn fill(&self, ranked: &mut Ranked, wanted: Wanted) -> BackendResult<()> {
        let is_full = ranked.messages.len() >= wanted.messages;
        let Some(more) = ranked.more.take().filter(|_| !is_full) else { return Ok(()) };
        let known: HashSet<Address> = ranked.messages.iter().map(|found| found.0).collect();
        // How many messages the sessions that are wanted have.
        let first = ranked.sessions.iter().take(wanted.sessions);
        let mut of_each: HashMap<i64, usize> = first.map(|session| (session.0, 0)).collect();
        for (address, _) in &ranked.messages {
            of_each.entry(address.session()).and_modify(|of_one| *of_one += 1);
        }
        let mut found = Vec::new();
        self.watch.enter(Phase::Listing);
        let mut take = |address: Address| {
            if known.len() + found.len() >= wanted.messages {
                return Ok(false);
            }
            let of_one = of_each.get(&address.session()).copied();
            let is_wanted =
                of_one.map_or(of_each.len() < wanted.sessions, |of_one| of_one < wanted.of_each);
            if is_wanted && !known.contains(&address) && self.is_hit(address)? {
                of_each.insert(address.session(), of_one.unwrap_or(0) + 1);
                found.push(address);
            }
            Ok(true)
        };
        // Another look for a few sessions could read their matches for long.
        let reads_listed = wanted.messages == usize::MAX && !more.listed.is_empty();
        let listed = match reads_listed {
            true => more.listed.iter().try_for_each(|address| take(*address).map(drop)),
            false => self.each(&more.expr, None, &mut take),
        };
        ranked.follow(&found);
        if reads_listed && !more.is_whole && of_each.len() < wanted.sessions {
            self.is_stopped.set(true);
        }
        match listed {
            Err(error) if self.watch.is_end_of_budget(&error) => self.is_stopped.set(true),
            done => done?,
        }
        Ok(())
    }

    /// Calls `take` with the matches, newest first, until it returns false.
    fn each(
        &self,
        expr: &Expr,
        wanted: Option<usize>,
        take: impl FnMut(Address) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        let (words, labels) = (Some((expr, self.columns())), self.labels.as_ref());
        self.each_of(Expression { words, labels, wanted, ..Expression::default() }, take)
    }

    fn each_of(
        &self,
        expression: Expression<'_>,
        mut take: impl FnMut(Address) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        let mut ranges = self.range.ranges();
        let parts = if self.reads_parts { self.range.parts() } else { &[] };
        if let ([first, ..], [.., last]) = (parts, parts) {
            ranges = vec![(first.0, last.1)];
        }
        let expression = Expression { parts, ..expression };
        for range in ranges.into_iter().rev() {
            // Few messages are pending, and they are of several sessions.
            let mut pending = Vec::new();
            if self.has_pending {
                Index::Pending.each(self.conn, &expression, range, self.watch, |address| {
                    pending.push(address);
                    Ok(true)
                })?;
            }
            let mut pending = pending.into_iter().filter(|it| self.range.holds(*it)).peekable();
            let mut goes_on = true;
            self.each_indexed(&expression, range, |address| {
                while let Some(newer) = pending.next_if(|newer| *newer > address) {
                    goes_on = goes_on && take(newer)?;
                }
                goes_on = goes_on && take(address)?;
                Ok(goes_on)
            })?;
            while goes_on && let Some(older) = pending.next() {
                goes_on = take(older)?;
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// The same for the messages that are indexed: those out of scope are skipped if they are many.
    fn each_indexed(
        &self,
        expression: &Expression<'_>,
        (low, mut high): (Address, Address),
        mut take: impl FnMut(Address) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        /// After so many matches out of scope a new lookup, which takes about 50 µs, begins below them. A server has sent more by then.
        const MANY: usize = 256;
        let many = MANY * self.conn.read_ahead();
        loop {
            let (mut misses, mut next) = (0, None);
            Index::Messages.each(self.conn, expression, (low, high), self.watch, |address| {
                if self.range.holds(address) {
                    return take(address);
                }
                misses += 1;
                if misses == many {
                    next = self.range.below(address);
                    return Ok(false);
                }
                Ok(true)
            })?;
            match next.filter(|next| *next >= low) {
                Some(next) => high = next,
                None => return Ok(()),
            }
        }
    }

    /// Returns the units that name the date of the query; none if it has no others.
    ///
    /// A message that has only these is not one of the time that is asked about: of `my plans in fall 2023` it may have `fall`
    /// because it is about leaves.
    fn dated(&self) -> Vec<usize> {
        let Some(date) = &self.date else { return Vec::new() };
        let is_named = |unit: &Unit| unit.phrases[0].words.iter().all(|it| date.words.contains(it));
        let units = &self.analysis.units;
        let dated: Vec<usize> = (0..units.len()).filter(|at| is_named(&units[*at])).collect();
        if dated.len() < units.len() { dated } else { Vec::new() }
    }
}

impl Texts for Search<'_> {
    fn analysis(&self) -> &Analysis {
        self.analysis
    }

    fn list(&self, expr: &Expr, limit: usize) -> BackendResult<Vec<Address>> {
        let mut found = Vec::new();
        self.each(expr, Some(limit), |address| {
            found.push(address);
            Ok(found.len() < limit)
        })?;
        Ok(found)
    }

    fn best(&self, expr: &Expr, limit: usize) -> BackendResult<Option<Vec<Address>>> {
        let [range] = self.range.ranges()[..] else { return Ok(None) };
        let is_filtered = self.labels.is_some() || !self.range.is_whole();
        if is_filtered || self.has_pending {
            return Ok(None);
        }
        let words = Some((expr, self.columns()));
        let expression = Expression { words, ..Expression::default() };
        self.watch.check()?;
        Index::Messages.best(self.conn, &expression, range, limit).map(Some)
    }

    fn count(&self) -> BackendResult<f64> {
        self.range.count(self.conn)
    }

    fn read(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)> {
        let (finder, units) = (self.analysis.finder(), self.analysis.units.len());
        let dated = self.dated();
        let (mut passed, mut candidates) = (Vec::new(), Vec::new());
        for (at, &address) in found.iter().enumerate() {
            self.watch.check()?;
            if at % AT_ONCE == 0 {
                self.ask_ahead(found[at..].iter().take(AT_ONCE).copied())?;
            }
            let candidate = self.read_one(address, |row| {
                let (text, tools) = match self.columns() {
                    Columns::All => hits::texts(row.parts),
                    one => (hits::text(row.parts, one), Cow::default()),
                };
                let texts = (&*text, &*tools);
                let mut read = Candidate::read(texts, &finder, units, pairs, MAX_READ_BYTES);
                let is_about = || (0..units).any(|unit| read.has(unit) && !dated.contains(&unit));
                read.is_in_time = match &self.date {
                    Some(date) => date.contains(time(row.created_at)?) && is_about(),
                    None => false,
                };
                read.session = address.session();
                // Whose role is `assistant` may be a person, too, in a chat of two people.
                read.is_user = row.role == "user" || row.author.is_some();
                Ok(read)
            })?;
            if let Some(candidate) = candidate {
                passed.push(address);
                candidates.push(candidate);
            }
        }
        Ok((passed, candidates))
    }
}
