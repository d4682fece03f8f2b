//! What is tried for a query that finds little or nothing as it is written.
//!
//! The words that no text in scope has are replaced: by the words that begin so, by one word with a neighbour, by two words, by the
//! nearest spelling. What a step finds follows below what was found before, and is counted. If nothing is found at all, any word is
//! enough.
//!
//! Of 160 judged queries of developers, 41 find one or two messages. Other words add four hits to one of them, and all four
//! are answers. Of messages with some of the words, 4 of 59 are. Steps below five hits instead of
//! three add 66 hits, of which 10 are answers, and below ten 81 more, of which 6 are. If words that one or two messages have
//! are replaced, too, none of these queries changes.
//!
//! Invariant: a replacement is taken only if a text in scope has it, so nobody learns what others wrote.

use std::collections::{BTreeSet, HashSet};

use talktree_text::{
    Analysis, Clause, Expr, LexemeKind, Misspelled, Query, Term, is_unigram, lex, normal_form,
    splits,
};

use super::super::error::BackendResult;
use super::super::index::{Index, each_from, languages};
use super::super::interrupt::Phase;
use super::Search;
use super::Wanted;
use super::ranked::{RANKED, Ranked, Texts};
use crate::search::{Matched, Step as Tried, Taken};
use crate::tree::Address;

/// A query that finds this many hits takes no step.
const ENOUGH: usize = 3;
/// How many of the nearest words are looked up in scope.
const MAX_NEAREST: usize = 8;
/// The score of the best hit that a step adds is this share of the score above it.
const BELOW: f64 = 0.9;
/// Up to this many messages with a word are counted, to choose between words that are equally near.
const MAX_COUNTED: usize = 100;
/// A word of a query that has at least so many letters is also searched as the beginning of a word.
const MIN_BEGINNING: usize = 3;
/// Two neighbours are also searched as one word that has at least so many letters.
const MIN_JOINED: usize = 4;

/// What the query finds as it is written, or after one of the steps.
pub(super) struct Step {
    pub(super) analysis: Analysis,
    pub(super) ranked: Ranked,
}

/// Everything that is found: first what the query finds as it is written, then what each step adds.
pub(super) struct Results {
    steps: Vec<Step>,
    pub(super) taken: Vec<Taken>,
}

impl Results {
    pub(super) fn new(analysis: Analysis, ranked: Ranked) -> Self {
        Self { steps: vec![Step { analysis, ranked }], taken: Vec::new() }
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the messages in order, best first, each with the number of its step.
    pub(super) fn messages(&self) -> impl Iterator<Item = (usize, (Address, f64))> {
        self.steps
            .iter()
            .enumerate()
            .flat_map(|(at, step)| step.ranked.messages.iter().map(move |found| (at, *found)))
    }

    /// Returns the sessions in order, best first.
    pub(super) fn sessions(&self) -> impl Iterator<Item = (i64, f64)> {
        self.steps.iter().flat_map(|step| step.ranked.sessions.iter().copied())
    }

    /// Returns whether all words were needed where something was found first.
    pub(super) fn matched(&self) -> Matched {
        let first = self.steps.iter().find(|step| !step.ranked.messages.is_empty());
        first.unwrap_or(&self.steps[0]).ranked.matched
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
    fn add(&mut self, analysis: Analysis, mut ranked: Ranked, tried: &[Tried]) {
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
        for step in tried {
            match self.taken.iter_mut().find(|taken| taken.step == *step) {
                Some(taken) => taken.hits += hits,
                None => self.taken.push(Taken { step: step.clone(), hits }),
            }
        }
        self.steps.push(Step { analysis, ranked });
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
pub(super) fn take(
    search: &Search<'_>,
    (text, wanted): (&str, Wanted),
    results: &mut Results,
) -> BackendResult<()> {
    let mut steps = Steps { search, wanted, results };
    match steps.take(text) {
        Err(error) if search.watch.is_end_of_budget(&error) => search.is_stopped.set(true),
        done => done?,
    }
    search.watch.enter(Phase::Finishing);
    Ok(())
}

struct Steps<'a, 'c> {
    search: &'a Search<'c>,
    wanted: Wanted,
    results: &'a mut Results,
}

impl Steps<'_, '_> {
    fn take(&mut self, text: &str) -> BackendResult<()> {
        let asked = self.search.analysis;
        let strictly = |analysis: &Analysis| match asked.is_question {
            true => analysis.clone(),
            false => analysis.strictly(),
        };
        if self.is_over() {
            return Ok(());
        }
        self.search.watch.enter(Phase::Ranking);
        let (loose, tried) = match repair(self.search)? {
            Some(Repaired { query, beginnings, tried }) => {
                let analysis = Analysis::of_repaired(query, text, &beginnings);
                self.attempt(strictly(&analysis), &tried)?;
                (analysis, tried)
            }
            None => (asked.clone(), Vec::new()),
        };
        if self.results.is_empty() && !asked.is_question && !loose.is_fixed() {
            self.attempt(loose, &[&*tried, &[Tried::AnyWord]].concat())?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.search.is_stopped.get() || self.results.has_enough()
    }

    fn attempt(&mut self, analysis: Analysis, tried: &[Tried]) -> BackendResult<()> {
        if self.is_over() {
            return Ok(());
        }
        self.search.watch.check()?;
        let other = self.search.of(&analysis);
        let ranked = other.find(self.wanted)?;
        self.search.is_stopped.set(other.is_stopped.get());
        self.results.add(analysis, ranked, tried);
        Ok(())
    }
}

/// A query in which words were replaced.
struct Repaired {
    query: Query,
    /// The beginnings among the clauses. They have no operator in the query as it was written, so they may be relaxed.
    beginnings: HashSet<usize>,
    tried: Vec<Tried>,
}

/// Returns the query with other words for those that no text in scope has.
fn repair(search: &Search<'_>) -> BackendResult<Option<Repaired>> {
    let query = &search.analysis.query;
    // Stop words are no units, and are not replaced.
    let is_unit = |word: &str| {
        let form = normal_form(word);
        search.analysis.units.iter().any(|unit| unit.phrases.iter().any(|it| it.words == [&*form]))
    };
    let words: Vec<Option<&str>> =
        query.clauses.iter().map(|clause| word_of(clause).filter(|word| is_unit(word))).collect();
    let mut absent = vec![false; words.len()];
    for (at, is_absent) in absent.iter_mut().enumerate() {
        // With its forms.
        *is_absent = words[at].is_some() && count(search, &query.clauses[at][0], 1)? == 0;
    }
    let is_none_absent = !absent.contains(&true);
    let (mut clauses, mut beginnings, mut tried) = (Vec::new(), HashSet::new(), Vec::new());
    let mut at = 0;
    while at < words.len() {
        let clause = query.clauses[at].clone();
        let next = words.get(at + 1).copied().flatten();
        if let (Some(word), true) = (words[at], absent[at])
            && word.chars().count() >= MIN_BEGINNING
            && begins(search, word)?
        {
            tried.push(Tried::Beginning { written: word.to_owned(), searched: format!("{word}*") });
            beginnings.insert(clauses.len());
            clauses.push(vec![beginning(word)]);
            at += 1;
        } else if let (Some(word), Some(next)) = (words[at], next)
            && (is_none_absent || absent[at] || absent[at + 1])
            && word.chars().count() + next.chars().count() >= MIN_JOINED
            && begins(search, &format!("{word}{next}"))?
        {
            let joined = format!("{word}{next}");
            let (written, searched) = (format!("{word} {next}"), format!("{joined}*"));
            tried.push(Tried::Joined { written, searched });
            beginnings.insert(clauses.len());
            clauses.push(vec![beginning(&joined)]);
            at += 2;
        } else if let (Some(word), true) = (words[at], absent[at]) {
            let (other, step) = replaced(search, word)?.unwrap_or((clause[0].clone(), None));
            clauses.push(vec![other]);
            tried.extend(step);
            at += 1;
        } else {
            clauses.push(clause);
            at += 1;
        }
    }
    let query = Query { clauses, ..query.clone() };
    Ok((!tried.is_empty()).then_some(Repaired { query, beginnings, tried }))
}

/// Returns a notice for each version and identifier of a query that no message in scope has: who types one wants no other.
pub(super) fn missing(search: &Search<'_>, text: &str) -> BackendResult<Vec<String>> {
    let mut notices = Vec::new();
    for lexeme in lex(text).filter(|lexeme| !lexeme.is_excluded) {
        let LexemeKind::Word(word) = lexeme.kind else { continue };
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        if notices.len() < MAX_MISSING
            && is_name(word)
            && let [clause] = &Query::plain(word).clauses[..]
            && count(search, &clause[0], 1)? == 0
        {
            notices.push(format!("no message in scope has {word:?}"));
        }
    }
    Ok(notices)
}

/// How many names are looked up.
const MAX_MISSING: usize = 8;

/// Returns whether a word is a version or an identifier: it has digits and other characters, an underscore or an inner capital.
fn is_name(word: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    word.contains(is_digit) && !word.chars().all(is_digit)
        || word.contains('_')
        || word.contains(char::is_lowercase) && word.chars().skip(1).any(char::is_uppercase)
}

/// Returns the single word of a clause without an operator; `None` for phrases and unigrams.
fn word_of(clause: &Clause) -> Option<&str> {
    let [term] = clause.as_slice() else { return None };
    let [token] = term.tokens.as_slice() else { return None };
    let is_word =
        !term.is_quoted && !term.is_prefix && !term.is_optional && !token.chars().any(is_unigram);
    is_word.then_some(token)
}

fn term(words: &[&str]) -> Term {
    Term { tokens: words.iter().map(|word| (*word).to_owned()).collect(), ..Term::default() }
}

fn beginning(word: &str) -> Term {
    Term { is_prefix: true, ..term(&[word]) }
}

/// Returns whether a text in scope has a word that begins so.
fn begins(search: &Search<'_>, word: &str) -> BackendResult<bool> {
    let mut is_known = search.indexes.contains(&Index::Pending);
    let form = normal_form(word);
    // Words with digits and long ones are in the index alone.
    if !is_known && form.chars().all(char::is_alphabetic) && form.chars().count() < MAX_LETTERS {
        each_from(search.conn, &form, search.watch, |_, _| {
            is_known = true;
            false
        })?;
        if !is_known {
            return Ok(false);
        }
    }
    Ok(count(search, &beginning(word), 1)? > 0)
}

/// Of a beginning of so many letters the index is asked.
const MAX_LETTERS: usize = 10;

/// Returns how many messages in scope have a term, at most `limit`.
fn count(search: &Search<'_>, term: &Term, limit: usize) -> BackendResult<usize> {
    let Some(expr) = Expr::any([term]) else { return Ok(0) };
    let mut other = search.clone();
    // Whether they pass the filters or not.
    other.labels = None;
    Ok(other.list(&expr, None, limit)?.len())
}

/// Returns what to search instead of a word, and the step that this is.
fn replaced(search: &Search<'_>, word: &str) -> BackendResult<Option<(Term, Option<Tried>)>> {
    let written = word.to_owned();
    if let Some([a, b]) = split(search, word)? {
        let searched = format!("{a} {b}");
        return Ok(Some((term(&[&a, &b]), Some(Tried::Split { written, searched }))));
    }
    if let Some(near) = nearest(search, word)? {
        let other = term(&[&near]);
        return Ok(Some((other, Some(Tried::Spelling { written, searched: near }))));
    }
    Ok(None)
}

/// Returns the two words in a row that most messages in scope have.
fn split(search: &Search<'_>, word: &str) -> BackendResult<Option<[String; 2]>> {
    let mut best: Option<(usize, [String; 2])> = None;
    // The table of terms has none of pending messages.
    let has_pending = search.indexes.contains(&Index::Pending);
    let may_have = |part: &str| -> BackendResult<bool> {
        Ok(has_pending || languages(search.conn, &normal_form(part))?.is_some())
    };
    for (a, b) in splits(word) {
        if !may_have(a)? || !may_have(b)? {
            continue;
        }
        let found = count(search, &term(&[a, b]), MAX_COUNTED)?;
        if found > best.as_ref().map_or(0, |best| best.0) {
            best = Some((found, [a, b].map(str::to_owned)));
        }
    }
    Ok(best.map(|best| best.1))
}

/// Returns the nearest word in scope; of equally near ones that which most messages have.
fn nearest(search: &Search<'_>, word: &str) -> BackendResult<Option<String>> {
    let Some(misspelled) = Misspelled::of(word) else { return Ok(None) };
    let mut near: BTreeSet<(usize, String)> = BTreeSet::new();
    each_from(search.conn, &misspelled.first().to_string(), search.watch, |other, _| {
        near.extend(misspelled.distance(other).map(|edits| (edits, other.to_owned())));
        true
    })?;
    let mut best: Option<(usize, usize, String)> = None;
    for (edits, other) in near.into_iter().take(MAX_NEAREST) {
        if best.as_ref().is_some_and(|best| best.0 < edits) {
            break;
        }
        let found = count(search, &term(&[&other]), MAX_COUNTED)?;
        if found > best.as_ref().map_or(0, |best| best.1) {
            best = Some((edits, found, other));
        }
    }
    Ok(best.map(|best| best.2))
}
