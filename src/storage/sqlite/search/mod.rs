//! Searching: parsing the query, finding matches, ranking them, building hits.
//!
//! A search first indexes the pending messages. It then reads one snapshot: the index, and a temporary index of messages
//! that are still pending. The index lists the matches ([`ranked`]), whose rows are read, checked ([`checks`]) and ranked by
//! `talktree-text`. If a query finds little as it is written, [`steps`] tries what else it may mean.
//!
//! A search that runs out of time for ranking lists the newest matches in the time that is left.

mod checks;
pub(super) mod forms;
mod hits;
mod listing;
mod meaning;
mod range;
pub(super) mod ranked;
mod steps;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use rusqlite::Connection;
use talktree_text::{Analysis, Candidate, Columns, DateHint, Expr, Query, Unit};

use self::checks::Checks;
use self::hits::HitMaker;
use self::listing::Listing;
use self::meaning::Meaning;
use self::range::Range;
use self::ranked::{All, MAX_READ_BYTES, Ranked, Texts};
use self::steps::{Results, Step};
use super::connection::Database;
use super::error::BackendResult;
use super::index::{self, Index, Prepared};
use super::interrupt::Watch;
use super::interrupt::{Phase, TimeBudget};
use super::row::time;
use crate::error::Result;
use crate::search::{
    Found, HITS_PER_SESSION, Matched, SearchRequest, SessionHit, SessionsFound, Taken,
};
use crate::tree::Address;

/// How many of the newest matches are looked at for sessions at a time.
const OF_A_SESSION: usize = 64;
/// How many messages are listed per requested session if there is no time to rank them.
const MESSAGES_PER_SESSION: usize = 20;

impl Database {
    /// Returns the matching messages, best first.
    pub(crate) fn search(&self, request: &SearchRequest) -> Result<Found> {
        self.search_within(request, request.timeout.map(TimeBudget::of_time))
    }

    fn search_within(&self, request: &SearchRequest, budget: Option<TimeBudget>) -> Result<Found> {
        let wanted = Wanted::Messages(page_end(request));
        let answer = self.answer(request, wanted, budget, |search, results| {
            let makers = search.hit_makers(results);
            let places = results.messages().skip(request.offset).take(request.limit);
            let page: Vec<(usize, (Address, f64))> = places.collect();
            let mut hits = Vec::with_capacity(page.len());
            for of_step in page.chunk_by(|a, b| a.0 == b.0) {
                let found: Vec<_> = of_step.iter().map(|(_, found)| *found).collect();
                hits.extend(makers[of_step[0].0].hits(&found)?);
            }
            Ok(hits)
        })?;
        let Answer { found, matched, steps, notices, is_partial } = answer;
        Ok(Found { hits: found, matched, steps, notices, is_partial })
    }

    /// Returns the matching sessions, best first.
    pub(crate) fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        let budget = request.timeout.map(TimeBudget::of_time);
        let answer = self.answer(
            request,
            Wanted::Sessions(page_end(request)),
            budget,
            |search, results| {
                let makers = search.hit_makers(results);
                // All of a session come from the first step that found it, and the others are not as good.
                let mut best: HashMap<i64, (usize, Vec<(Address, f64)>)> = HashMap::new();
                for (step, found) in results.messages() {
                    let of_session =
                        best.entry(found.0.session()).or_insert_with(|| (step, Vec::new()));
                    if of_session.0 == step && of_session.1.len() < HITS_PER_SESSION {
                        of_session.1.push(found);
                    }
                }
                let mut sessions = Vec::new();
                for (key, score) in results.sessions().skip(request.offset).take(request.limit) {
                    let Some(names) = range::names(search.conn, key)? else { continue };
                    let hits = match best.get(&key) {
                        Some((step, found)) => makers[*step].hits(found)?,
                        None => Vec::new(),
                    };
                    sessions.push(SessionHit { session: names.id, name: names.name, score, hits });
                }
                Ok(sessions)
            },
        )?;
        let Answer { found, matched, steps, notices, is_partial } = answer;
        Ok(SessionsFound { sessions: found, matched, steps, notices, is_partial })
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
    ) -> Result<Answer<T>> {
        let watch = self.watch().within(budget);
        let query = request.query();
        if query.is_empty() {
            return Ok(Answer::nothing(query.notices, false));
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
                    Ok(Answer::nothing(query.notices, true))
                }
                answer => answer,
            }
        })
    }
}

/// How many results of a search are needed.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Messages(usize),
    Sessions(usize),
}

/// Returns how many results are needed.
fn page_end(request: &SearchRequest) -> usize {
    // SQLite's integers are signed; nobody reads that far.
    request.offset.saturating_add(request.limit).min(u32::MAX as usize)
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
    (request, wanted): (&SearchRequest, Wanted),
    watch: &Watch,
    show: impl Fn(&Search<'_>, &Results) -> BackendResult<Vec<T>>,
) -> BackendResult<Answer<T>> {
    watch.enter(Phase::Ranking);
    let mut notices = Vec::new();
    let range = Range::of(conn, (&request.scope, request.owner.as_deref()), &query, &mut notices)?;
    let ranges = range.ranges();
    let (Some(low), Some(high)) = (ranges.first(), ranges.last()) else {
        return Ok(Answer::nothing([query.notices, notices].concat(), false));
    };
    let pending = index::prepare(conn, (low.0, high.1), watch)?;
    let indexes: &[Index] = match pending {
        Prepared::Nothing => &[Index::Messages],
        Prepared::Some | Prepared::All => &[Index::Messages, Index::Pending],
    };
    watch.enter(Phase::Ranking);
    let date = request.date_hint();
    date.iter().for_each(|date| query.set_time(date));
    let is_capped = forms::add(conn, &mut query, watch)?;
    let checks = Checks::of(conn, (&query.filters, request.omits_hidden), &range)?;
    let meaning = Meaning::of(conn, request.meaning.as_ref(), &mut notices)?;
    let asked = Analysis::of(query, &request.text);
    let search = Search {
        conn,
        labels: index::wanted(&asked.query.filters),
        analysis: &asked,
        range: &range,
        checks: &checks,
        date,
        meaning,
        indexes,
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
    let found = show(&search, &results)?;
    let is_partial = is_capped || pending == Prepared::Some || search.is_stopped.get();
    let notices = [asked.query.notices.clone(), notices].concat();
    Ok(Answer { found, matched: results.matched(), steps: results.taken, notices, is_partial })
}

/// A search on one snapshot.
#[derive(Clone)]
struct Search<'c> {
    conn: &'c Connection,
    analysis: &'c Analysis,
    range: &'c Range,
    checks: &'c Checks,
    /// What the labels of a match must be.
    labels: Option<Expr>,
    /// The time that the query mentions.
    date: Option<DateHint>,
    meaning: Option<Meaning<'c>>,
    indexes: &'c [Index],
    watch: &'c Watch,
    /// Whether the budget was spent before the search was done.
    is_stopped: Cell<bool>,
}

impl<'c> Search<'c> {
    /// Returns a search for another query on the same snapshot.
    fn of<'a>(&'a self, analysis: &'a Analysis) -> Search<'a> {
        Search { analysis, is_stopped: Cell::new(false), ..self.clone() }
    }

    /// Finds messages, or only lists the newest of them if the time for ranking is over.
    fn find(&self, wanted: Wanted) -> BackendResult<Ranked> {
        self.watch.enter(Phase::Ranking);
        let found = match self.analysis.query.has_terms() {
            true => self.filled(wanted),
            false => self.listed(wanted),
        };
        let found = match found {
            Err(error) if self.watch.is_end_of_budget(&error) => self.newest_in_time(wanted),
            found => found,
        };
        self.watch.enter(Phase::Finishing);
        found
    }

    /// Returns the best matches and, if more are wanted, the newest of the others. A spent budget leaves what was found until then.
    fn filled(&self, wanted: Wanted) -> BackendResult<Ranked> {
        let ranked = Ranked::find(self, self.analysis.is_question)?;
        let mut ranked = self.with_meaning(ranked)?;
        self.watch.enter(Phase::Listing);
        let filled = match wanted {
            Wanted::Messages(count) => ranked.fill(self, count),
            Wanted::Sessions(count) => self.fill_sessions(&mut ranked, count),
        };
        match filled {
            Err(error) if self.watch.is_end_of_budget(&error) => self.is_stopped.set(true),
            done => done?,
        }
        Ok(ranked)
    }

    /// Adds the sessions whose matches were not ranked, the newest first, until there are as many as wanted, and to each of
    /// them the newest of the matches that were listed, until it has [`HITS_PER_SESSION`].
    fn fill_sessions(&self, ranked: &mut Ranked, wanted: usize) -> BackendResult<()> {
        let Some(all) = ranked.more.clone() else { return Ok(()) };
        let listed = All { is_whole: true, ..all.clone() };
        let mut known: HashSet<i64> = ranked.sessions.iter().map(|session| session.0).collect();
        let mut found = Vec::new();
        for (low, mut high) in self.range.ranges().into_iter().rev() {
            while known.len() < wanted {
                let newest = self.newest_in((low, high), &all, OF_A_SESSION)?;
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
                found.extend(self.newest_in(
                    Address::range_of(*session),
                    &listed,
                    HITS_PER_SESSION,
                )?);
            }
        }
        ranked.follow_unknown(found);
        Ok(())
    }

    /// Returns the newest matches in a range that pass the filters, newest first.
    fn newest_in(
        &self,
        (low, high): (Address, Address),
        all: &All,
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        let mut reader = self.checks.reader(self.conn)?;
        let mut found = Vec::new();
        let mut take = |address| {
            if found.len() < limit && reader.passes(address)? {
                found.push(address);
            }
            Ok(found.len() < limit)
        };
        if !all.is_whole {
            self.each(&all.expr, &[(low, high)], take)?;
            return Ok(found);
        }
        let newest = all.listed.partition_point(|address| *address > high);
        for address in all.listed[newest..].iter().take_while(|address| **address >= low) {
            if !take(*address)? {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the newest matches that the rest of the budget reaches, without ranking them.
    fn newest_in_time(&self, wanted: Wanted) -> BackendResult<Ranked> {
        self.is_stopped.set(true);
        self.watch.enter(Phase::Listing);
        let is_relaxed = self.analysis.is_question && !self.analysis.is_fixed();
        let (expr, matched) = match is_relaxed {
            true => (self.analysis.any(0..self.analysis.units.len()), Matched::Relaxed),
            false => (self.analysis.all(), Matched::All),
        };
        let limit = match wanted {
            Wanted::Messages(count) => count,
            Wanted::Sessions(count) => count.saturating_mul(MESSAGES_PER_SESSION),
        };
        let mut ranked = Ranked::none(matched);
        let mut reader = self.checks.reader(self.conn)?;
        let mut found = Vec::new();
        if let Some(expr) = &expr {
            let listed = self.each(expr, &self.range.ranges(), |address| {
                if reader.passes(address)? {
                    found.push(address);
                }
                Ok(found.len() < limit)
            });
            match listed {
                Err(error) if self.watch.is_end_of_budget(&error) => {}
                listed => listed?,
            }
        }
        ranked.follow(&found, 1.0);
        Ok(ranked)
    }

    /// Returns the messages that pass the filters, newest first.
    fn listed(&self, wanted: Wanted) -> BackendResult<Ranked> {
        let expr = self.analysis.excluded();
        let columns = self.analysis.query.filters.columns;
        let excluded = expr.map(|expr| index::fts(&expr, columns, None));
        self.watch.enter(Phase::Ranking);
        let few = match self.few() {
            // Then all are read as far as the time reaches.
            Err(error) if self.watch.is_end_of_budget(&error) => None,
            few => few?,
        };
        let listing = Listing {
            few,
            conn: self.conn,
            range: self.range,
            checks: self.checks,
            indexes: self.indexes,
            excluded: excluded.as_deref(),
            watch: self.watch,
        };
        let mut found = Vec::new();
        self.watch.enter(Phase::Listing);
        let listed = match wanted {
            Wanted::Messages(count) => listing.newest(count, &mut found),
            Wanted::Sessions(count) => listing.newest_of_sessions(count, &mut found),
        };
        match listed {
            Err(error) if self.watch.is_end_of_budget(&error) => self.is_stopped.set(true),
            done => done?,
        }
        let mut ranked = Ranked::none(Matched::All);
        ranked.follow(&found, 1.0);
        Ok(ranked)
    }

    /// Returns the messages whose labels pass the filters, oldest first, if they are few.
    fn few(&self) -> BackendResult<Option<Vec<Address>>> {
        /// So many take half a megabyte.
        const MAX: usize = 65_536;
        let Some(labels) = &self.labels else { return Ok(None) };
        let mut found = Vec::new();
        self.each_of(&index::fts_labels(labels), &self.range.ranges(), |address| {
            found.push(address);
            Ok(found.len() <= MAX)
        })?;
        found.sort_unstable();
        Ok(Some(found).filter(|found| found.len() <= MAX))
    }

    /// Returns what makes hits of the messages of each step.
    fn hit_makers(&self, results: &Results) -> Vec<HitMaker<'_>> {
        let maker = |step: &Step| {
            let matched = (step.ranked.matched, self.meaning.is_some());
            let readings = (self.analysis, &step.analysis);
            HitMaker::new(
                self.conn,
                readings,
                matched,
                (self.range, self.checks.has_copies),
                self.watch,
            )
        };
        results.steps().iter().map(maker).collect()
    }

    /// Calls `take` with the matches in some ranges, newest first, until it returns false.
    fn each(
        &self,
        expr: &Expr,
        ranges: &[(Address, Address)],
        take: impl FnMut(Address) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        let expression =
            index::fts(expr, self.analysis.query.filters.columns, self.labels.as_ref());
        self.each_of(&expression, ranges, take)
    }

    fn each_of(
        &self,
        expression: &str,
        ranges: &[(Address, Address)],
        mut take: impl FnMut(Address) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        for &range in ranges.iter().rev() {
            // Few messages are pending, and they are of several sessions.
            let mut pending = Vec::new();
            if self.indexes.contains(&Index::Pending) {
                Index::Pending.each(self.conn, expression, range, self.watch, |address| {
                    pending.push(address);
                    Ok(true)
                })?;
            }
            let mut pending = pending.into_iter().filter(|it| self.range.holds(*it)).peekable();
            let mut goes_on = true;
            self.each_indexed(expression, range, |address| {
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
        expression: &str,
        (low, mut high): (Address, Address),
        mut take: impl FnMut(Address) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        /// After so many matches out of scope a new lookup, which takes about 50 µs, begins below them.
        const MANY: usize = 256;
        loop {
            let (mut misses, mut next) = (0, None);
            Index::Messages.each(self.conn, expression, (low, high), self.watch, |address| {
                if self.range.holds(address) {
                    return take(address);
                }
                misses += 1;
                if misses == MANY {
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

    fn list(
        &self,
        expr: &Expr,
        span: Option<(usize, usize)>,
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        let ranges = match span {
            Some(span) => self.range.span(self.conn, span)?,
            None => self.range.ranges(),
        };
        let mut found = Vec::new();
        if limit > 0 {
            self.each(expr, &ranges, |address| {
                found.push(address);
                Ok(found.len() < limit)
            })?;
        }
        Ok(found)
    }

    fn best(&self, expr: &Expr, limit: usize) -> BackendResult<Option<Vec<Address>>> {
        let [range] = self.range.ranges()[..] else { return Ok(None) };
        let is_filtered = self.labels.is_some() || !self.range.is_whole();
        if is_filtered || self.indexes.contains(&Index::Pending) {
            return Ok(None);
        }
        let expression = index::fts(expr, self.analysis.query.filters.columns, None);
        self.watch.check()?;
        Index::Messages.best(self.conn, &expression, range, limit).map(Some)
    }

    fn share_from(&self, oldest: Address) -> BackendResult<f64> {
        let (at, first, last) = self.range.place(self.conn, oldest)?;
        Ok(((last - at) / (last - first)).clamp(f64::MIN_POSITIVE, 1.0))
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
        let columns = self.analysis.query.filters.columns;
        let dated = self.dated();
        let names = self.analysis.names();
        let mut reader = self.checks.reader(self.conn)?;
        let (mut passed, mut candidates) = (Vec::new(), Vec::new());
        for &address in found {
            self.watch.check()?;
            let candidate = reader.read(address, |row| {
                let (text, tools) = match columns {
                    Columns::All => (Columns::Text, hits::text(row.parts, Columns::Tools)),
                    one => (one, Cow::default()),
                };
                let text = (&*hits::text(row.parts, text), &*tools);
                let mut read = Candidate::read(text, &finder, units, pairs, MAX_READ_BYTES);
                let is_about = || (0..units).any(|unit| read.has(unit) && !dated.contains(&unit));
                let is_in_time = match &self.date {
                    Some(date) => date.contains(time(row.created_at)?) && is_about(),
                    None => false,
                };
                read.session = row.address.session();
                // Whose role is `assistant` may be a person, too, in a chat of two people.
                read.is_user = row.role == "user" || row.has_author;
                read.as_written =
                    names.iter().filter(|name| text.0.contains(**name)).count() as i32;
                read.is_in_time = is_in_time;
                Ok(read)
            })?;
            if let Some(candidate) = candidate {
                passed.push(address);
                candidates.push(candidate);
            }
        }
        Ok((passed, candidates))
    }

    fn newest(&self, all: &All, limit: usize) -> BackendResult<Vec<Address>> {
        let mut found = Vec::new();
        for range in self.range.ranges().into_iter().rev() {
            found.extend(self.newest_in(range, all, limit - found.len())?);
        }
        Ok(found)
    }
}
