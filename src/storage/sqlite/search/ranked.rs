//! Finding and ranking matches, for messages and for the texts of context blocks.
//!
//! A text must have all words. If no text has them all, any of them is enough. Up to [`RANKED`] matches are all ranked. Of more, those
//! with the rarest words are, and of equal ones some evenly of all ages. The others follow, the newest first.
//!
//! Invariant: which texts are ranked, and so the order of all, does not depend on how many are wanted. So pages have no gaps.
//!
//! The engine only lists matches, newest first, because it can stop early then. Its own ranking reads every posting of each word.
//! A lookup takes about 0.1 ms for each form of each word at a million messages, whatever it finds, so there are few of them.

use std::collections::HashSet;

use talktree_text::{Analysis, Candidate, Corpus, Expr, inverse_frequency, rank};

use crate::search::Matched;
use crate::sql::BackendResult;
use crate::tree::Address;

/// How many matches are ranked at most. To read one takes about 10 µs.
pub(super) const RANKED: usize = 1_000;
/// How many bytes of a text are read for ranking.
pub(in super::super) const MAX_READ_BYTES: usize = 64 << 10;
/// If any word is enough: how many matches of one unit are listed at most, and of all together. Each takes about 0.2 µs in a file.
const LISTED_OF_EACH: usize = 16_000;
const LISTED: usize = 32_000;
/// If all words are needed, no more matches of a unit are counted: more common is common. With 100 fewer queries of developers have their
/// answer first (`benches/finding`, .80 to .78).
const COUNTED: usize = 1_000;
/// How many matches of all words are listed at most, but as many as of each for sessions, which are found by them alone. Fewer the engine
/// ranks, and only if it reads as few of each word: each takes about 1 µs. With 16 000 no more messages were found (`benches/finding`),
/// and a server needs three times as long for a common word.
const LISTED_OF_ALL: usize = 4_000;
/// Among so many units those matches of a common one are listed that also have a rare one; among more none.
const FEW: usize = 12;

/// Texts in an index, as one search reads them.
pub(in super::super) trait Texts {
    fn analysis(&self) -> &Analysis;

    /// Returns the newest matches in scope, newest first: at most `limit`.
    fn list(&self, expr: &Expr, limit: usize) -> BackendResult<Vec<Address>>;

    /// Returns the best matches by the engine's own ranking, which reads all of them; `None` if they are in several ranges, or filtered.
    fn best(&self, expr: &Expr, limit: usize) -> BackendResult<Option<Vec<Address>>>;

    /// Returns how many texts there are.
    fn count(&self) -> BackendResult<f64>;

    /// Returns those of the matches that pass the filters, with the counts of the units of the query in each.
    fn read(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)>;
}

/// The matches, best first.
#[derive(Debug)]
pub(in super::super) struct Ranked {
    pub(in super::super) messages: Vec<(Address, f64)>,
    pub(in super::super) sessions: Vec<(i64, f64)>,
    pub(in super::super) matched: Matched,
    /// All matches, if there may be more than these.
    pub(in super::super) more: Option<More>,
}

/// What matches, and the newest that were listed of it.
#[derive(Debug)]
pub(in super::super) struct More {
    pub(in super::super) expr: Expr,
    pub(in super::super) listed: Vec<Address>,
    pub(in super::super) is_whole: bool,
}

impl Ranked {
    pub(in super::super) fn none(matched: Matched) -> Self {
        Self { messages: Vec::new(), sessions: Vec::new(), matched, more: None }
    }

    /// Returns the matches, best first: of all words, or if there are none or the query is relaxed at once, of any.
    pub(in super::super) fn find(
        texts: &impl Texts,
        is_relaxed_at_once: bool,
        is_by_session: bool,
    ) -> BackendResult<Self> {
        let analysis = texts.analysis();
        if analysis.is_fixed() || !is_relaxed_at_once {
            let most = if is_by_session { LISTED_OF_EACH } else { LISTED_OF_ALL };
            let found = Self::of_all_words(texts, most)?;
            if !found.messages.is_empty() || analysis.is_fixed() {
                return Ok(found);
            }
        }
        Self::of_any_word(texts)
    }

    fn of_all_words(texts: &impl Texts, most: usize) -> BackendResult<Self> {
        let analysis = texts.analysis();
        let Some(all) = analysis.all() else { return Ok(Self::none(Matched::All)) };
        let found = texts.list(&all, most)?;
        if found.is_empty() {
            return Ok(Self::none(Matched::All));
        }
        let total = texts.count()?;
        let frequencies: Vec<f64> = match analysis.is_one_unit() {
            true => vec![found.len() as f64],
            false => {
                let limit = if found.len() > RANKED { LISTED_OF_ALL } else { COUNTED };
                lists(texts, limit)?.iter().map(|list| list.len() as f64).collect()
            }
        };
        let is_plain = analysis.units.iter().all(|unit| unit.phrases[0].words.len() == 1);
        // The engine also reads every posting of each word, and merges the lists of all words of a prefix at each lookup.
        let may_rank = is_plain
            && !analysis.units.iter().any(|unit| unit.term.is_prefix)
            && frequencies.iter().all(|found| *found < LISTED_OF_ALL as f64);
        let best = match found.len() {
            0..=RANKED => found.clone(),
            _ if may_rank && let Some(best) = texts.best(&all, RANKED)? => best,
            _ => evenly(&found, RANKED),
        };
        let is_whole = found.len() < most;
        let more = (found.len() > RANKED).then_some(More { expr: all, listed: found, is_whole });
        Ok(Self { more, ..Self::of(texts, &best, Matched::All, &frequencies, total)? })
    }

    fn of_any_word(texts: &impl Texts) -> BackendResult<Self> {
        let analysis = texts.analysis();
        let total = texts.count()?;
        let limit = (LISTED / analysis.units.len().max(1)).min(LISTED_OF_EACH);
        let lists = lists(texts, limit)?;
        let frequencies: Vec<f64> = lists.iter().map(|list| list.len() as f64).collect();
        let is_whole = |unit: &usize| lists[*unit].len() < limit;
        let used = || (0..lists.len()).filter(|unit| !lists[*unit].is_empty());
        let rare: Vec<usize> = used().filter(is_whole).collect();
        let rare = if rare.is_empty() { None } else { analysis.any(rare) };
        let mut weights: Vec<(Address, f64)> = Vec::new();
        for unit in used() {
            let found = match (&rare, analysis.any([unit])) {
                // Of a common word those that also have a rare one; alone it tells too little.
                (Some(_), _) if !is_whole(&unit) && lists.len() > FEW => continue,
                (Some(rare), Some(own)) if !is_whole(&unit) => {
                    texts.list(&Expr::All(vec![rare.clone(), own]), limit)?
                }
                _ => lists[unit].clone(),
            };
            let weight = inverse_frequency(frequencies[unit], total);
            weights.extend(found.into_iter().map(|address| (address, weight)));
        }
        // A text needs none of the words if it has what is required.
        let required = match analysis.any([]) {
            Some(required) => texts.list(&required, limit)?,
            None => Vec::new(),
        };
        let is_whole = required.len() < limit && used().all(|unit| is_whole(&unit));
        weights.extend(required.into_iter().map(|address| (address, 0.0)));
        let mut sums = sums(weights);
        let is_more = !is_whole || sums.len() > RANKED;
        let listed = sums.iter().rev().map(|(address, _)| *address).collect();
        let more = analysis.any(used()).filter(|_| is_more);
        let more = more.map(|expr| More { expr, listed, is_whole });
        let best = heaviest(&mut sums);
        Ok(Self { more, ..Self::of(texts, &best, Matched::Relaxed, &frequencies, total)? })
    }

    /// Ranks the best matches.
    fn of(
        texts: &impl Texts,
        best: &[Address],
        matched: Matched,
        frequencies: &[f64],
        total: f64,
    ) -> BackendResult<Self> {
        let pairs = texts.analysis().pairs(|unit| frequencies[unit] > 0.0);
        let (found, candidates) = texts.read(best, &pairs)?;
        let length: f64 = candidates.iter().map(|candidate| candidate.length).sum();
        let corpus =
            Corpus { texts: total, mean_length: length / (candidates.len() as f64).max(1.0) };
        let ranking = rank(texts.analysis(), &pairs, frequencies, corpus, &candidates);
        let mut messages: Vec<_> = found.iter().copied().zip(ranking.texts).collect();
        messages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut sessions: Vec<_> = ranking.sessions.into_iter().collect();
        sessions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(Self { messages, sessions, matched, more: None })
    }

    /// Adds other messages at the end in the given order, with scores that fall, and their sessions if those are new.
    pub(in super::super) fn follow(&mut self, rest: &[Address]) {
        let known = self.messages.len();
        let floor = self.messages.last().map_or(1.0, |last| last.1);
        let floor_of_sessions = self.sessions.last().map_or(floor, |last| last.1.min(floor));
        let mut seen: HashSet<i64> = self.sessions.iter().map(|session| session.0).collect();
        for (at, address) in rest.iter().enumerate() {
            let fall = (known + 1) as f64 / (known + at + 2) as f64;
            self.messages.push((*address, floor * fall));
            if seen.insert(address.session()) {
                self.sessions.push((address.session(), floor_of_sessions * fall));
            }
        }
    }
}

/// Returns the newest matches of each unit, at most `limit`.
fn lists(texts: &impl Texts, limit: usize) -> BackendResult<Vec<Vec<Address>>> {
    let analysis = texts.analysis();
    let list = |unit| match analysis.any([unit]) {
        Some(expr) => texts.list(&expr, limit),
        None => Ok(Vec::new()),
    };
    (0..analysis.units.len()).map(list).collect()
}

/// Returns at most `limit` of some matches, evenly.
fn evenly(found: &[Address], limit: usize) -> Vec<Address> {
    if found.len() <= limit {
        return found.to_vec();
    }
    (0..limit).map(|at| found[at * found.len() / limit]).collect()
}

/// Adds up the weights of each text, in order of address.
fn sums(mut weights: Vec<(Address, f64)>) -> Vec<(Address, f64)> {
    // The lists are sorted: to merge them is faster than a hash table.
    weights.sort_by_key(|(address, _)| *address);
    let of_one = weights.chunk_by(|a, b| a.0 == b.0);
    of_one.map(|all| (all[0].0, all.iter().map(|one| one.1).sum())).collect()
}

/// Returns the texts to rank: the heaviest, and of those that are equal where the limit is, some evenly of all ages.
fn heaviest(sums: &mut [(Address, f64)]) -> Vec<Address> {
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    let addresses = |sums: &[(Address, f64)]| sums.iter().map(|(address, _)| *address).collect();
    let Some((_, last)) = sums.get(RANKED) else { return addresses(sums) };
    let from = sums.partition_point(|(_, weight)| weight > last);
    let to = sums.partition_point(|(_, weight)| weight >= last);
    let mut best: Vec<Address> = addresses(&sums[..from]);
    best.extend(evenly(&addresses(&sums[from..to]), RANKED - from));
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_taken_evenly() {
        let all: Vec<Address> = (0..10).map(Address::from_raw).collect();
        let taken: Vec<i64> = evenly(&all, 5).into_iter().map(|it| it.raw()).collect();
        assert_eq!(taken, [0, 2, 4, 6, 8]);
    }
}
