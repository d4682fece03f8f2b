//! Finding what matches and ranking it: one way for messages and for the texts of context blocks.
//!
//! All words are looked for first; where nothing has them all, any of them. Up to [`MAX_ALL`] matches are all ranked
//! here; of more, those that FTS5 ranks best.

use std::collections::HashSet;

use super::super::fault::Outcome;
use crate::search::Matched;
use crate::search::choose::choose;
use crate::search::rank::{Candidate, Corpus, Ranking, rank};
use crate::search::reading::Reading;
use crate::search::scan::Scan;
use crate::tree::Address;

/// Up to so many matches are all ranked here; of more FTS5 chooses the best.
///
/// However many are wanted: pages of one answer must come from one order.
pub(in super::super) const MAX_ALL: usize = 1_000;
/// How many of those that FTS5 chose are ranked here. More was measured and is no better.
pub(in super::super) const RANKED: usize = 200;
/// How much of a text is read for ranking, in bytes.
pub(in super::super) const MAX_SCAN_BYTES: usize = 64 << 10;

/// Texts in an index of FTS5, as one search reads them.
pub(in super::super) trait Texts {
    fn reading(&self) -> &Reading;

    /// Returns whether any word is looked for at once, without looking for all words first.
    fn is_relaxed_at_once(&self) -> bool;

    /// Returns all that match an expression, in ascending order; `None` if they are more than [`MAX_ALL`], or if FTS5 is
    /// to choose however many there are.
    fn all_of(&self, expression: &str) -> Outcome<Option<Vec<Address>>>;

    /// Returns the best that match an expression by FTS5's own ranking.
    fn best_of(&self, expression: &str, wanted: usize) -> Outcome<Gathered>;

    fn figures(&self) -> Outcome<Figures>;

    /// Returns those of the texts that are to be ranked, and what of the query each of them has.
    fn candidates(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> Outcome<(Vec<Address>, Vec<Candidate>)>;

    /// Returns what FTS5 alone ranks, where its order will do; `all` is what [`all_of`](Self::all_of) returned.
    fn ranked_by_index(
        &self,
        expression: &str,
        all: Option<&[Address]>,
        wanted: usize,
    ) -> Outcome<Option<Ranked>> {
        let _ = (expression, all, wanted);
        Ok(None)
    }
}

/// How common each unit of a query is in an index, and how much the index holds.
#[derive(Debug)]
pub(in super::super) struct Figures {
    /// In how many texts each unit is.
    pub(in super::super) frequencies: Vec<f64>,
    pub(in super::super) texts: f64,
    pub(in super::super) sessions: f64,
    /// `None` where the index does not tell it: that of the candidates is used.
    pub(in super::super) mean_length: Option<f64>,
}

/// What was found, best first.
#[derive(Debug)]
pub(in super::super) struct Ranked {
    pub(in super::super) messages: Vec<(Address, f64)>,
    pub(in super::super) sessions: Vec<(i64, f64)>,
    pub(in super::super) matched: Matched,
}

/// What matches, before it is ranked.
#[derive(Debug, Default)]
pub(in super::super) struct Gathered {
    /// What is to be ranked.
    pub(in super::super) best: Vec<Address>,
    /// What comes after, in this order.
    pub(in super::super) rest: Vec<Address>,
}

impl Ranked {
    pub(in super::super) fn none(matched: Matched) -> Self {
        Self { messages: Vec::new(), sessions: Vec::new(), matched }
    }

    /// Returns what matches, best first; `all` is the expression for all words.
    pub(in super::super) fn find(texts: &impl Texts, all: &str, wanted: usize) -> Outcome<Self> {
        let reading = texts.reading();
        if reading.is_fixed() || !texts.is_relaxed_at_once() {
            let found = Self::strictly(texts, all, wanted)?;
            if !found.messages.is_empty() || reading.is_fixed() {
                return Ok(found);
            }
        }
        let any = reading.any(0..reading.units.len());
        if let Some(any) = &any
            && let Some(all) = texts.all_of(any)?
        {
            return Self::of_all(texts, &all, Matched::Relaxed);
        }
        let figures = texts.figures()?;
        let choice = choose(figures.frequencies, figures.texts);
        let any = reading.any(choice.looked_for.into_iter());
        let found = any.map(|any| texts.best_of(&any, wanted)).transpose()?.unwrap_or_default();
        let figures = Figures { frequencies: choice.frequencies, ..figures };
        Self::of_best(texts, &found, Matched::Relaxed, figures)
    }

    /// Returns what has all words.
    fn strictly(texts: &impl Texts, expression: &str, wanted: usize) -> Outcome<Self> {
        let all = texts.all_of(expression)?;
        if let Some(ranked) = texts.ranked_by_index(expression, all.as_deref(), wanted)? {
            return Ok(ranked);
        }
        if let Some(all) = all {
            return Self::of_all(texts, &all, Matched::All);
        }
        let best = texts.best_of(expression, wanted)?;
        if best.best.is_empty() {
            return Ok(Self::none(Matched::All));
        }
        Self::of_best(texts, &best, Matched::All, texts.figures()?)
    }

    /// Ranks all that matches; how common each unit is among these needs no index.
    fn of_all(texts: &impl Texts, all: &[Address], matched: Matched) -> Outcome<Self> {
        let pairs = texts.reading().pairs(|_| true);
        let (found, candidates) = texts.candidates(all, &pairs)?;
        let (frequencies, corpus) = among(&candidates);
        let ranking = rank(texts.reading(), &pairs, &frequencies, corpus, &candidates);
        Ok(Self::of(&found, ranking, matched))
    }

    /// Ranks the best of what matches.
    fn of_best(
        texts: &impl Texts,
        gathered: &Gathered,
        matched: Matched,
        Figures { frequencies, texts: messages, sessions, mean_length }: Figures,
    ) -> Outcome<Self> {
        let pairs = texts.reading().pairs(|unit| frequencies[unit] > 0.0);
        let (found, candidates) = texts.candidates(&gathered.best, &pairs)?;
        let mean_length = mean_length.unwrap_or_else(|| mean_length_of(&candidates));
        let corpus = Corpus { messages, mean_length, sessions };
        let ranking = rank(texts.reading(), &pairs, &frequencies, corpus, &candidates);
        let mut ranked = Self::of(&found, ranking, matched);
        let floor = ranked.messages.last().map_or(0.0, |last| last.1);
        ranked.follow(&gathered.rest, floor);
        Ok(ranked)
    }

    /// Returns what was ranked, best first; of equals the oldest.
    fn of(found: &[Address], ranking: Ranking, matched: Matched) -> Self {
        let mut messages: Vec<_> = found.iter().copied().zip(ranking.messages).collect();
        messages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut sessions: Vec<_> = ranking.sessions.into_iter().collect();
        sessions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Self { messages, sessions, matched }
    }

    /// Adds messages in their order, with scores that fall from `floor` on, and the sessions that are new with them.
    pub(in super::super) fn follow(&mut self, rest: &[Address], floor: f64) {
        let known = self.messages.len();
        let mut seen: HashSet<i64> = self.sessions.iter().map(|session| session.0).collect();
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

/// Returns how common each unit is among candidates that are all there are.
fn among(found: &[Candidate]) -> (Vec<f64>, Corpus) {
    let scans = || found.iter().map(|candidate| &candidate.scan);
    let units = scans().next().map_or(0, |scan| scan.counts.len());
    let holding = |unit: usize| scans().filter(|scan: &&Scan| scan.counts[unit] > 0).count() as f64;
    let sessions: HashSet<i64> = found.iter().map(|found| found.session).collect();
    let corpus = Corpus {
        messages: found.len() as f64,
        mean_length: mean_length_of(found),
        sessions: sessions.len() as f64,
    };
    ((0..units).map(holding).collect(), corpus)
}

fn mean_length_of(candidates: &[Candidate]) -> f64 {
    let length: usize = candidates.iter().map(|candidate| candidate.scan.length).sum();
    length as f64 / (candidates.len() as f64).max(1.0)
}
