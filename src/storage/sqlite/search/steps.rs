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

use super::super::index::{self, each_from, languages};
use super::super::interrupt::Phase;
use super::ranked::{RANKED, Ranked, Texts};
use super::{Search, Wanted};
use crate::search::{Matched, Step};
use crate::sql::BackendResult;
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

/// What the query finds as it is written, or after a step.
pub(super) struct Attempt {
    pub(super) analysis: Analysis,
    pub(super) ranked: Ranked,
}

/// Everything that is found: first what the query finds as it is written, then what each step adds.
pub(super) struct Results {
    pub(super) attempts: Vec<Attempt>,
    pub(super) steps: Vec<Step>,
}

impl Results {
    pub(super) fn new(analysis: Analysis, ranked: Ranked) -> Self {
        Self { attempts: vec![Attempt { analysis, ranked }], steps: Vec::new() }
    }

    /// Returns the messages in order, best first, each with the number of its attempt and its score.
    pub(super) fn messages(&self) -> impl Iterator<Item = (usize, Address, f64)> {
        self.attempts.iter().enumerate().flat_map(|(at, attempt)| {
            attempt.ranked.messages.iter().map(move |(address, score)| (at, *address, *score))
        })
    }

    /// Returns the sessions in order, best first.
    pub(super) fn sessions(&self) -> impl Iterator<Item = (i64, f64)> {
        self.attempts.iter().flat_map(|attempt| attempt.ranked.sessions.iter().copied())
    }

    /// Returns whether all words were needed where something was found first.
    pub(super) fn matched(&self) -> Matched {
        let first = self.attempts.iter().find(|attempt| !attempt.ranked.messages.is_empty());
        first.unwrap_or(&self.attempts[0]).ranked.matched
    }

    fn has(&self, count: usize) -> bool {
        self.messages().nth(count - 1).is_some()
    }

    /// Adds at the end what other words find and no earlier attempt found.
    fn add(&mut self, analysis: Analysis, mut ranked: Ranked, words: &[Words]) {
        let known: HashSet<Address> = self.messages().map(|found| found.1).collect();
        ranked.messages.retain(|found| !known.contains(&found.0));
        if ranked.messages.is_empty() {
            return;
        }
        let known: HashSet<i64> = self.sessions().map(|session| session.0).collect();
        ranked.sessions.retain(|session| !known.contains(&session.0));
        let floor = self.messages().last().map(|found| found.2);
        lower(&mut ranked.messages, floor);
        lower(&mut ranked.sessions, self.sessions().last().map(|session| session.1));
        let hits = ranked.messages.len().min(RANKED) as u64;
        for (written, searched) in words {
            match self.steps.iter_mut().find(|step| step.written == *written) {
                Some(step) => step.hits += hits,
                None => {
                    let (written, searched) = (written.clone(), searched.clone());
                    self.steps.push(Step { written, searched, hits });
                }
            }
        }
        self.attempts.push(Attempt { analysis, ranked });
    }
}

/// Words of the query, and what was searched instead of them.
type Words = (String, String);

/// Lowers scores in proportion, so that the first is below the floor.
fn lower<K>(found: &mut [(K, f64)], floor: Option<f64>) {
    let (Some(floor), Some(first)) = (floor, found.first().map(|first| first.1)) else { return };
    let factor = if first > 0.0 { (BELOW * floor / first).min(1.0) } else { 0.0 };
    found.iter_mut().for_each(|found| found.1 *= factor);
}

/// Searches for other words until enough is found, and for any of the words if nothing is.
///
/// A spent budget ends this: what was found until then is kept.
pub(super) fn take(
    search: &Search<'_>,
    (text, wanted): (&str, Wanted),
    results: &mut Results,
) -> BackendResult<()> {
    match take_all(search, (text, wanted), results) {
        Err(error) if search.watch.is_end_of_budget(&error) => search.is_stopped.set(true),
        done => done?,
    }
    search.watch.enter(Phase::Finishing);
    Ok(())
}

fn take_all(
    search: &Search<'_>,
    (text, wanted): (&str, Wanted),
    results: &mut Results,
) -> BackendResult<()> {
    if search.is_stopped.get() || results.has(ENOUGH) {
        return Ok(());
    }
    let asked = search.analysis;
    let attempt = |analysis: Analysis, words: &[Words], results: &mut Results| {
        search.watch.check()?;
        let other = search.of(&analysis);
        let ranked = other.find(wanted)?;
        search.is_stopped.set(other.is_stopped.get());
        results.add(analysis, ranked, words);
        BackendResult::Ok(())
    };
    search.watch.enter(Phase::Ranking);
    let (loose, words) = match repair(search)? {
        Some(Repaired { query, beginnings, words }) => {
            let analysis = Analysis::of_repaired(query, text, &beginnings);
            let strict = if asked.is_question { analysis.clone() } else { analysis.strictly() };
            attempt(strict, &words, results)?;
            (analysis, words)
        }
        None => (asked.clone(), Vec::new()),
    };
    let is_over = search.is_stopped.get() || results.has(1) || asked.is_question;
    if !is_over && !loose.is_fixed() {
        attempt(loose, &words, results)?;
    }
    Ok(())
}

/// A query in which words were replaced.
struct Repaired {
    query: Query,
    /// The beginnings among the clauses. They have no operator in the query as it was written, so they may be relaxed.
    beginnings: HashSet<usize>,
    words: Vec<Words>,
}

/// Returns the query with other words for those that no text in scope has.
fn repair(search: &Search<'_>) -> BackendResult<Option<Repaired>> {
    let query = &search.analysis.query;
    // Stop words are no units, and are not replaced.
    let is_unit = |word: &&str| {
        let form = normal_form(word);
        search.analysis.units.iter().any(|unit| unit.phrases.iter().any(|it| it.words == [&*form]))
    };
    let words: Vec<Option<&str>> =
        query.clauses.iter().map(|clause| word_of(clause).filter(is_unit)).collect();
    let mut absent = Vec::with_capacity(words.len());
    for (word, clause) in words.iter().zip(&query.clauses) {
        // With its forms.
        absent.push(word.is_some() && count(search, &clause[0], 1)? == 0);
    }
    let is_none_absent = !absent.contains(&true);
    let (mut clauses, mut beginnings, mut replaced) = (Vec::new(), HashSet::new(), Vec::new());
    let mut at = 0;
    while at < words.len() {
        let next = words.get(at + 1).copied().flatten();
        let joined = words[at].zip(next).filter(|(word, next)| {
            (is_none_absent || absent[at] || absent[at + 1])
                && word.chars().count() + next.chars().count() >= MIN_JOINED
        });
        let word = words[at].filter(|_| absent[at]);
        let start = word.filter(|word| word.chars().count() >= MIN_BEGINNING);
        if let Some(word) = start
            && begins(search, word)?
        {
            beginnings.insert(clauses.len());
            clauses.push(vec![beginning(word)]);
            replaced.push((word.to_owned(), format!("{word}*")));
        } else if let Some((word, next)) = joined
            && begins(search, &format!("{word}{next}"))?
        {
            beginnings.insert(clauses.len());
            clauses.push(vec![beginning(&format!("{word}{next}"))]);
            replaced.push((format!("{word} {next}"), format!("{word}{next}*")));
            at += 1;
        } else if let Some(word) = word
            && let Some(other) = other_spelling(search, word)?
        {
            replaced.push((word.to_owned(), other.tokens.join(" ")));
            clauses.push(vec![other]);
        } else {
            clauses.push(query.clauses[at].clone());
        }
        at += 1;
    }
    let query = Query { clauses, ..query.clone() };
    Ok((!replaced.is_empty()).then_some(Repaired { query, beginnings, words: replaced }))
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
    Ok(count(search, &beginning(word), 1)? > 0)
}

/// Returns how many messages in scope have a term, at most `limit`.
fn count(search: &Search<'_>, term: &Term, limit: usize) -> BackendResult<usize> {
    let Some(expr) = Expr::any([term]) else { return Ok(0) };
    let mut other = search.clone();
    // Whether they pass the filters or not.
    other.labels = None;
    Ok(other.list(&expr, limit)?.len())
}

/// Returns what to search instead of a word: two words in a row, or the nearest spelling; of equally near ones what most messages in
/// scope have.
fn other_spelling(search: &Search<'_>, word: &str) -> BackendResult<Option<Term>> {
    // The table of terms has none of pending messages.
    let may_have = |part: &str| -> BackendResult<bool> {
        Ok(search.has_pending || languages(search.conn, &normal_form(part))?.is_some())
    };
    let mut others = Vec::new();
    let halves: Vec<(&str, &str)> = splits(word).collect();
    let forms: Vec<_> = halves.iter().flat_map(|(a, b)| [a, b]).map(|it| normal_form(it)).collect();
    index::ask_ahead(search.conn, forms.iter().map(|form| &**form))?;
    for (a, b) in halves {
        if may_have(a)? && may_have(b)? {
            others.push((0, term(&[a, b])));
        }
    }
    let mut near: BTreeSet<(usize, String)> = BTreeSet::new();
    if let Some(misspelled) = Misspelled::of(word) {
        each_from(search.conn, &misspelled.first().to_string(), search.watch, |other, _| {
            near.extend(misspelled.distance(other).map(|edits| (edits, other.to_owned())));
            true
        })?;
    }
    let near = near.into_iter().take(MAX_NEAREST);
    others.extend(near.map(|(edits, other)| (edits, term(&[&other]))));
    let mut best: Option<(usize, usize, Term)> = None;
    for (edits, other) in others {
        if best.as_ref().is_some_and(|best| best.0 < edits) {
            break;
        }
        let found = count(search, &other, MAX_COUNTED)?;
        if found > best.as_ref().map_or(0, |best| best.1) {
            best = Some((edits, found, other));
        }
    }
    Ok(best.map(|best| best.2))
}
