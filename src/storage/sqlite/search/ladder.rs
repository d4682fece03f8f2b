//! What is tried for a query that finds nothing as it is written.
//!
//! First the same words in reasoning and tools, too. Then the words that no text in scope has are replaced: by the words
//! that begin so, by one word with a neighbour, by two words, by the nearest spelling. If that finds nothing either,
//! any word is enough.
//!
//! Invariant: a replacement is taken only if a text in scope has it, so nobody learns what others wrote.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::super::error::BackendResult;
use super::super::vocabulary;
use super::Search;
use super::candidates::{Index, List};
use super::expansions;
use super::range::Range;
use super::ranked::{Ranked, Texts};
use crate::search::analysis::Analysis;
use crate::search::ladder::{
    self, MIN_BEGINNING, MIN_JOINED, Misspelled, Repaired, Step, beginning, term, word_of,
};
use crate::search::{Columns, Query, Term};
use crate::tree::Address;

/// How many of the nearest words are looked up in scope.
const MAX_NEAREST: usize = 8;
/// Up to this many messages with a word are counted, to choose between words that are equally near.
const MAX_COUNTED: usize = 100;

/// What one of the steps has found.
pub(super) struct Reached {
    pub(super) reading: Analysis,
    pub(super) ranked: Ranked,
    pub(super) steps: Vec<Step>,
}

/// Takes steps until one finds something; `None` if none does.
pub(super) fn climb(
    search: &Search<'_>,
    text: &str,
    may_search_tools: bool,
    find: impl Fn(&Search<'_>) -> BackendResult<Ranked>,
) -> BackendResult<Option<Reached>> {
    let asked = search.reading;
    let attempt = |reading: Analysis, steps: Vec<Step>| -> BackendResult<Option<Reached>> {
        if search.is_stopped.get() {
            return Ok(None);
        }
        search.watch.check()?;
        let mut other = search.of(&reading);
        other.expansions =
            Rc::new(expansions::expand(search.conn, &mut reading.query.clone(), search.watch)?);
        let ranked = find(&other)?;
        search.is_stopped.set(search.is_stopped.get() || other.is_stopped.get());
        Ok((!ranked.messages.is_empty()).then_some(Reached { reading, ranked, steps }))
    };
    // In the text, then in all columns.
    let attempts = |reading: Analysis, steps: &[Step]| -> BackendResult<Option<Reached>> {
        if let Some(reached) = attempt(reading.clone(), steps.to_vec())? {
            return Ok(Some(reached));
        }
        if !may_search_tools {
            return Ok(None);
        }
        attempt(reading.in_all_columns(), [steps, &[Step::Tools]].concat())
    };
    let strictly = |reading: &Analysis| match asked.is_question {
        true => reading.clone(),
        false => reading.strictly(),
    };
    if may_search_tools
        && let Some(reached) = attempt(strictly(asked).in_all_columns(), vec![Step::Tools])?
    {
        return Ok(Some(reached));
    }
    let repaired = repair(search)?;
    let (loose, steps) = match repaired {
        Some(Repaired { query, beginnings, steps }) => {
            let reading = Analysis::of_repaired(query, text, &beginnings);
            let reached = attempts(strictly(&reading), &steps)?;
            if reached.is_some() || asked.is_question {
                return Ok(reached);
            }
            (reading, steps)
        }
        None => (asked.clone(), Vec::new()),
    };
    if asked.is_question || loose.is_fixed() { Ok(None) } else { attempts(loose, &steps) }
}

/// Returns the query with other words for those that no text in scope has.
fn repair(search: &Search<'_>) -> BackendResult<Option<Repaired>> {
    let query = &search.reading.query;
    // Stop words are no units, and are not replaced.
    let is_unit = |word: &str| {
        search.reading.units.iter().any(|unit| unit.term.tokens.iter().eq([word].iter()))
    };
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
    for (a, b) in ladder::splits(word) {
        if !vocabulary::has(search.conn, a)? || !vocabulary::has(search.conn, b)? {
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
