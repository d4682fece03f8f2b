//! Finding and ranking matches, for messages and for the texts of context blocks.
//!
//! A text must have all words. If no text has them all, any of them is enough. Up to [`MAX_ALL`] matches are all ranked
//! here. Of more matches, only those that FTS5 ranks best are.

use std::collections::HashSet;

use super::super::error::BackendResult;
use crate::search::Matched;
use crate::search::analysis::Analysis;
use crate::search::pruning::prune;
use crate::search::rank::{Candidate, Corpus, Ranking, rank};
use crate::search::scanner::Scan;
use crate::tree::Address;

/// Up to this many matches are all ranked here; of more matches FTS5 chooses the best.
///
/// Does not depend on the limit of the search: all pages must have one order.
pub(in super::super) const MAX_ALL: usize = 1_000;
/// How many of the matches that FTS5 chose are ranked here. More was measured and is no better.
pub(in super::super) const RANKED: usize = 200;
/// How many bytes of a text are read for ranking.
pub(in super::super) const MAX_SCAN_BYTES: usize = 64 << 10;

/// Texts in an FTS5 index, as one search reads them.
pub(in super::super) trait Texts {
    fn reading(&self) -> &Analysis;

    /// Returns whether the search is for any word from the start, without a search for all words before.
    fn is_relaxed_at_once(&self) -> bool;

    /// Returns all matches of an expression, in ascending order; `None` if there are more than [`MAX_ALL`], or if FTS5
    /// must choose whatever their number.
    fn all_of(&self, expression: &str) -> BackendResult<Option<Vec<Address>>>;

    /// Returns the best matches of an expression by FTS5's own ranking.
    fn best_of(&self, expression: &str, wanted: usize) -> BackendResult<Gathered>;

    fn figures(&self) -> BackendResult<Figures>;

    /// Returns the texts to rank, with the counts of the units of the query in each.
    fn candidates(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)>;

    /// Returns the matches in FTS5's own order where that is good enough; `all` is what [`all_of`](Self::all_of)
    /// returned.
    fn ranked_by_index(
        &self,
        expression: &str,
        all: Option<&[Address]>,
        wanted: usize,
    ) -> BackendResult<Option<Ranked>> {
        let _ = (expression, all, wanted);
        Ok(None)
    }
}

/// How common each unit of a query is in an index, and the size of the index.
#[derive(Debug)]
pub(in super::super) struct Figures {
    /// The number of texts with each unit.
    pub(in super::super) frequencies: Vec<f64>,
    pub(in super::super) texts: f64,
    pub(in super::super) sessions: f64,
    /// `None` if the index does not have it; then that of the candidates is used.
    pub(in super::super) mean_length: Option<f64>,
}

/// The matches, best first.
#[derive(Debug)]
pub(in super::super) struct Ranked {
    pub(in super::super) messages: Vec<(Address, f64)>,
    pub(in super::super) sessions: Vec<(i64, f64)>,
    pub(in super::super) matched: Matched,
}

/// The matches before ranking.
#[derive(Debug, Default)]
pub(in super::super) struct Gathered {
    /// The matches to rank.
    pub(in super::super) best: Vec<Address>,
    /// The matches after those, in this order.
    pub(in super::super) rest: Vec<Address>,
}

impl Ranked {
    pub(in super::super) fn none(matched: Matched) -> Self {
        Self { messages: Vec::new(), sessions: Vec::new(), matched }
    }

    /// Returns the matches, best first; `all` is the expression for all words.
    pub(in super::super) fn find(
        texts: &impl Texts,
        all: &str,
        wanted: usize,
    ) -> BackendResult<Self> {
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
        let choice = prune(figures.frequencies, figures.texts);
        let any = reading.any(choice.lookups.into_iter());
        let found = any.map(|any| texts.best_of(&any, wanted)).transpose()?.unwrap_or_default();
        let figures = Figures { frequencies: choice.frequencies, ..figures };
        Self::of_best(texts, &found, Matched::Relaxed, figures)
    }

    /// Returns the matches of all words.
    fn strictly(texts: &impl Texts, expression: &str, wanted: usize) -> BackendResult<Self> {
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

    /// Ranks all matches; how common each unit is among them needs no index.
    fn of_all(texts: &impl Texts, all: &[Address], matched: Matched) -> BackendResult<Self> {
        let pairs = texts.reading().pairs(|_| true);
        let (found, candidates) = texts.candidates(all, &pairs)?;
        let (frequencies, corpus) = among(&candidates);
        let ranking = rank(texts.reading(), &pairs, &frequencies, corpus, &candidates);
        Ok(Self::of(&found, ranking, matched))
    }

    /// Ranks the best matches.
    fn of_best(
        texts: &impl Texts,
        gathered: &Gathered,
        matched: Matched,
        Figures { frequencies, texts: messages, sessions, mean_length }: Figures,
    ) -> BackendResult<Self> {
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

    /// Returns the ranked matches, best first; of equal ones the oldest first.
    fn of(found: &[Address], ranking: Ranking, matched: Matched) -> Self {
        let mut messages: Vec<_> = found.iter().copied().zip(ranking.messages).collect();
        messages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut sessions: Vec<_> = ranking.sessions.into_iter().collect();
        sessions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Self { messages, sessions, matched }
    }

    /// Adds messages in the given order, with scores that fall from `floor` on, and their sessions if those are new.
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

/// Returns how common each unit is, if the candidates are all matches.
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
