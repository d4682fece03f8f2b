//! What is tried for a query that finds little or nothing as it is written.
//!
//! First the same words in reasoning and tools, too. Then the words that no text in scope has are replaced: by the words
//! that begin so, by one word with a neighbour, by two words, by the nearest spelling. What a step finds follows below what
//! was found before, and is counted. If nothing is found at all, any word is enough.
//!
//! Of 160 judged queries of developers, 41 find one or two messages. Other words add four hits to one of them, and all four
//! are answers. Of the hits in tools among the first ten, 19 of 70 are answers, and 1 of 30 in the held-out half, so they are
//! only counted if the text has something. Of messages with some of the words, 4 of 59 are. Steps below five hits instead of
//! three add 66 hits, of which 10 are answers, and below ten 81 more, of which 6 are. If words that one or two messages have
//! are replaced, too, none of these queries changes.
//!
//! Invariant: a replacement is taken only if a text in scope has it, so nobody learns what others wrote.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::super::error::{BackendError, BackendResult};
use super::super::time_budget::Phase;
use super::super::vocabulary;
use super::Search;
use super::candidates::{Index, List};
use super::expansions;
use super::range::Range;
use super::ranked::{RANKED, Ranked, Texts};
use crate::search::analysis::Analysis;
use crate::search::ladder::{
    self, MIN_BEGINNING, MIN_JOINED, Misspelled, Repaired, Step, Taken, beginning, term, word_of,
};
use crate::search::{Columns, Matched, Query, Term};
use crate::tree::Address;

/// A query that finds this many hits takes no step.
const ENOUGH: usize = 3;
/// How many of the nearest words are looked up in scope.
const MAX_NEAREST: usize = 8;
/// The score of the best hit that a step adds is this share of the score above it.
const BELOW: f64 = 0.9;
/// Up to this many messages with a word are counted, to choose between words that are equally near.
const MAX_COUNTED: usize = 100;

/// What the query finds as it is written, or after one of the steps.
pub(super) struct Rung {
    pub(super) reading: Analysis,
    pub(super) ranked: Ranked,
}

/// Everything that is found: first what the query finds as it is written, then what each step adds.
pub(super) struct Reached {
    rungs: Vec<Rung>,
    pub(super) steps: Vec<Taken>,
}

impl Reached {
    pub(super) fn new(reading: Analysis, ranked: Ranked) -> Self {
        Self { rungs: vec![Rung { reading, ranked }], steps: Vec::new() }
    }

    pub(super) fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// Returns the messages in order, best first, each with the number of its rung.
    pub(super) fn messages(&self) -> impl Iterator<Item = (usize, (Address, f64))> {
        self.rungs
            .iter()
            .enumerate()
            .flat_map(|(at, rung)| rung.ranked.messages.iter().map(move |found| (at, *found)))
    }

    /// Returns the sessions in order, best first.
    pub(super) fn sessions(&self) -> impl Iterator<Item = (i64, f64)> {
        self.rungs.iter().flat_map(|rung| rung.ranked.sessions.iter().copied())
    }

    /// Returns whether all words were needed where something was found first.
    pub(super) fn matched(&self) -> Matched {
        let first = self.rungs.iter().find(|rung| !rung.ranked.messages.is_empty());
        first.unwrap_or(&self.rungs[0]).ranked.matched
    }

    fn is_empty(&self) -> bool {
        self.messages().next().is_none()
    }

    fn known(&self) -> HashSet<Address> {
        self.messages().map(|(_, found)| found.0).collect()
    }

    fn has_enough(&self) -> bool {
        self.messages().nth(ENOUGH - 1).is_some()
    }

    /// Adds at the end what some steps find together and no earlier step found.
    fn add(&mut self, reading: Analysis, mut ranked: Ranked, steps: &[Step]) {
        let known = self.known();
        ranked.messages.retain(|found| !known.contains(&found.0));
        if ranked.messages.is_empty() {
            return;
        }
        let known: HashSet<i64> = self.sessions().map(|session| session.0).collect();
        ranked.sessions.retain(|session| !known.contains(&session.0));
        let floor = self.messages().last().map(|(_, found)| found.1);
        lower(ranked.messages.iter_mut().map(|found| &mut found.1), floor);
        let floor = self.sessions().last().map(|session| session.1);
        lower(ranked.sessions.iter_mut().map(|session| &mut session.1), floor);
        let hits = ranked.messages.len().min(RANKED) as u64;
        for step in steps {
            match self.steps.iter_mut().find(|taken| taken.step == *step) {
                Some(taken) => taken.hits += hits,
                None => self.steps.push(Taken { step: step.clone(), hits }),
            }
        }
        self.rungs.push(Rung { reading, ranked });
    }
}

/// Lowers scores in proportion, so that the first is below the floor.
fn lower<'s>(scores: impl Iterator<Item = &'s mut f64>, floor: Option<f64>) {
    let Some(floor) = floor else { return };
    let mut factor = None;
    for score in scores {
        let factor = *factor.get_or_insert(if *score > 0.0 {
            (BELOW * floor / *score).min(1.0)
        } else {
            0.0
        });
        *score *= factor;
    }
}

/// Takes steps until enough is found.
///
/// A spent budget ends this: what was found until then is kept.
pub(super) fn climb(
    search: &Search<'_>,
    text: &str,
    may_search_tools: bool,
    find: impl Fn(&Search<'_>) -> BackendResult<Ranked>,
    reached: &mut Reached,
) -> BackendResult<()> {
    let mut climb = Climb { search, find, may_search_tools, reached };
    match climb.take_steps(text) {
        Err(error) if search.watch.is_end_of_budget(&error) => search.is_stopped.set(true),
        done => done?,
    }
    search.watch.enter(Phase::Finishing);
    Ok(())
}

struct Climb<'a, 'c, F> {
    search: &'a Search<'c>,
    find: F,
    may_search_tools: bool,
    reached: &'a mut Reached,
}

impl<F: Fn(&Search<'_>) -> BackendResult<Ranked>> Climb<'_, '_, F> {
    fn take_steps(&mut self, text: &str) -> BackendResult<()> {
        let asked = self.search.reading;
        let strictly = |reading: &Analysis| match asked.is_question {
            true => reading.clone(),
            false => reading.strictly(),
        };
        match self.reached.is_empty() {
            true => self.attempt_tools(&strictly(asked), &[])?,
            false => self.count_tools()?,
        }
        if self.is_over() {
            return Ok(());
        }
        self.search.watch.enter(Phase::Ranking);
        let (loose, steps) = match repair(self.search)? {
            Some(Repaired { query, beginnings, steps }) => {
                let reading = Analysis::of_repaired(query, text, &beginnings);
                self.attempt_all(&strictly(&reading), &steps)?;
                (reading, steps)
            }
            None => (asked.clone(), Vec::new()),
        };
        if self.reached.is_empty() && !asked.is_question && !loose.is_fixed() {
            self.attempt_all(&loose, &[&*steps, &[Step::AnyWord]].concat())?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.search.is_stopped.get() || self.reached.has_enough()
    }

    /// Searches the text; if nothing is found at all, all columns.
    fn attempt_all(&mut self, reading: &Analysis, steps: &[Step]) -> BackendResult<()> {
        self.attempt(reading.clone(), steps)?;
        if self.reached.is_empty() { self.attempt_tools(reading, steps) } else { Ok(()) }
    }

    fn attempt_tools(&mut self, reading: &Analysis, steps: &[Step]) -> BackendResult<()> {
        if !self.may_search_tools {
            return Ok(());
        }
        self.attempt(reading.in_all_columns(), &[steps, &[Step::Tools]].concat())
    }

    fn attempt(&mut self, reading: Analysis, steps: &[Step]) -> BackendResult<()> {
        if self.is_over() {
            return Ok(());
        }
        let ranked = self.on_index(&reading, |other| (self.find)(other))?;
        self.reached.add(reading, ranked, steps);
        Ok(())
    }

    /// Counts the messages that the query as it is written finds in reasoning and tools only.
    fn count_tools(&mut self) -> BackendResult<()> {
        if !self.may_search_tools || self.is_over() {
            return Ok(());
        }
        let reading = self.search.reading.in_all_columns();
        let (expression, matched) = match reading.is_question && !reading.is_fixed() {
            true => (reading.any(0..reading.units.len()), Matched::Relaxed),
            false => (reading.all(), Matched::All),
        };
        let Some(expression) = expression else { return Ok(()) };
        let known = self.reached.known();
        let found = self.on_index(&reading, |other| {
            Texts::newest(other, (&expression, matched), RANKED + known.len())
        })?;
        let hits = found.iter().filter(|found| !known.contains(found)).count();
        if hits > 0 {
            let hits = hits.min(RANKED) as u64;
            self.reached.steps.push(Taken { step: Step::MoreInTools, hits });
        }
        Ok(())
    }

    /// Does a part of a search for another query.
    fn on_index<T>(
        &self,
        reading: &Analysis,
        find: impl FnOnce(&Search<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        self.search.watch.enter(Phase::Ranking);
        self.search.watch.check()?;
        let mut other = self.search.of(reading);
        let mut query = reading.query.clone();
        other.expansions =
            Rc::new(expansions::expand(self.search.conn, &mut query, self.search.watch)?);
        let found = find(&other)?;
        self.search.is_stopped.set(other.is_stopped.get());
        Ok(found)
    }
}

/// Returns the query with other words for those that no text in scope has.
fn repair(search: &Search<'_>) -> BackendResult<Option<Repaired>> {
    let query = &search.reading.query;
    // Stop words are no units, and are not replaced.
    let is_unit = |word: &str| search.reading.units.iter().any(|unit| unit.term.words().eq([word]));
    let words: Vec<Option<&str>> =
        query.clauses.iter().map(|clause| word_of(clause).filter(|word| is_unit(word))).collect();
    let mut absent = vec![false; words.len()];
    for (at, is_absent) in absent.iter_mut().enumerate() {
        *is_absent = match words[at] {
            // With its forms.
            Some(_) => count(search, query.clauses[at][0].clone(), 1)? == 0,
            None => false,
        };
    }
    let is_none_absent = !absent.contains(&true);
    let (mut clauses, mut beginnings, mut steps) = (Vec::new(), HashSet::new(), Vec::new());
    let mut at = 0;
    while at < words.len() {
        let clause = query.clauses[at].clone();
        let next = words.get(at + 1).copied().flatten();
        if let (Some(word), true) = (words[at], absent[at])
            && word.chars().count() >= MIN_BEGINNING
            && count(search, beginning(word), 1)? > 0
        {
            steps.push(Step::Beginning { written: word.to_owned(), searched: format!("{word}*") });
            beginnings.insert(clauses.len());
            clauses.push(vec![beginning(word)]);
            at += 1;
        } else if let (Some(word), Some(next)) = (words[at], next)
            && (is_none_absent || absent[at] || absent[at + 1])
            && word.chars().count() + next.chars().count() >= MIN_JOINED
            && count(search, beginning(&format!("{word}{next}")), 1)? > 0
        {
            let joined = format!("{word}{next}");
            let (written, searched) = (format!("{word} {next}"), format!("{joined}*"));
            steps.push(Step::Joined { written, searched });
            beginnings.insert(clauses.len());
            clauses.push(vec![beginning(&joined)]);
            at += 2;
        } else if let (Some(word), true) = (words[at], absent[at]) {
            let (other, step) = match (split(search, word)?, nearest(search, word)?) {
                (Some([a, b]), _) => {
                    let searched = format!("{a} {b}");
                    let term = Term { tokens: vec![a, b], ..Term::default() };
                    (vec![term], Some(Step::Split { written: word.to_owned(), searched }))
                }
                (None, Some(near)) => {
                    let step = Step::Spelling { written: word.to_owned(), searched: near.clone() };
                    (vec![term(&near)], Some(step))
                }
                (None, None) => (clause, None),
            };
            clauses.push(other);
            steps.extend(step);
            at += 1;
        } else {
            clauses.push(clause);
            at += 1;
        }
    }
    let query = Query { clauses, ..query.clone() };
    Ok((!steps.is_empty()).then_some(Repaired { query, beginnings, steps }))
}

/// Returns how many messages in scope have a term in any column, at most `limit`.
fn count(search: &Search<'_>, term: Term, limit: usize) -> BackendResult<usize> {
    if let (true, [word]) = (term.is_prefix, term.tokens.as_slice())
        && !search.indexes.contains(&Index::Pending)
        && !vocabulary::has_beginning(search.conn, word)?
    {
        return Ok(0);
    }
    let mut query = Query { clauses: vec![vec![term]], ..Query::default() };
    query.filters.columns = Columns::All;
    let Some(expression) = query.to_fts_all() else { return Ok(0) };
    let expansions = expansions::expand(search.conn, &mut query, search.watch)?;
    let mut all = search.of(search.reading);
    all.expansions = Rc::new(expansions);
    // Most words that are looked up are nowhere: then no session has to be read.
    let everywhere = (Address::from_raw(i64::MIN), Address::from_raw(i64::MAX));
    if matches!(search.range, Range::Sessions(_)) {
        let mut anywhere = Vec::new();
        all.collect_in(List::All, &expression, everywhere, 1, &mut anywhere)?;
        if anywhere.is_empty() {
            return Ok(0);
        }
    }
    Ok(Texts::listed(&all, &expression, limit)?.len())
}

/// Returns the two words in a row that most messages in scope have.
fn split(search: &Search<'_>, word: &str) -> BackendResult<Option<[String; 2]>> {
    let mut best: Option<(usize, [String; 2])> = None;
    // The vocabulary has no words of pending messages.
    let has_pending = search.indexes.contains(&Index::Pending);
    let may_have =
        |part: &str| Ok::<_, BackendError>(has_pending || vocabulary::has(search.conn, part)?);
    for (a, b) in ladder::splits(word) {
        if !may_have(a)? || !may_have(b)? {
            continue;
        }
        let parts = [a, b].map(str::to_owned);
        let phrase = Term { tokens: parts.to_vec(), ..Term::default() };
        let found = count(search, phrase, MAX_COUNTED)?;
        if found > best.as_ref().map_or(0, |best| best.0) {
            best = Some((found, parts));
        }
    }
    Ok(best.map(|best| best.1))
}

/// Returns the nearest word in scope; of equally near ones that which most messages have.
fn nearest(search: &Search<'_>, word: &str) -> BackendResult<Option<String>> {
    let Some(misspelled) = Misspelled::of(word) else { return Ok(None) };
    let mut near: BTreeSet<(usize, String)> = BTreeSet::new();
    let mut look = |other: &str| {
        if let Some(edits) = misspelled.distance(other) {
            near.insert((edits, other.to_owned()));
        }
    };
    vocabulary::each_with_first(search.conn, misspelled.first(), search.watch, &mut look)?;
    if search.indexes.contains(&Index::Pending) {
        vocabulary::each_pending(search.conn, &mut look)?;
    }
    let mut best: Option<(usize, usize, String)> = None;
    for (edits, other) in near.into_iter().take(MAX_NEAREST) {
        if best.as_ref().is_some_and(|best| best.0 < edits) {
            break;
        }
        let found = count(search, term(&other), MAX_COUNTED)?;
        if found > best.as_ref().map_or(0, |best| best.1) {
            best = Some((edits, found, other));
        }
    }
    Ok(best.map(|best| best.2))
}
