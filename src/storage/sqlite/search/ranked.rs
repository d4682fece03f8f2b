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

use super::super::error::BackendResult;
use crate::search::Matched;
use crate::tree::Address;

/// How many matches are ranked at most. To read one takes about 10 µs.
pub(super) const RANKED: usize = 1_000;
/// How many bytes of a text are read for ranking.
pub(in super::super) const MAX_READ_BYTES: usize = 64 << 10;
/// How many matches of one unit are listed at most, and of all together: each takes about 0.2 µs.
const LISTED_OF_EACH: usize = 16_000;
const LISTED: usize = 32_000;
/// Up to so many matches of all words the engine ranks, and only if it reads as few of each word: each takes about 1 µs.
const ALL_RANKED: usize = 8_000;
/// How many matches of a unit are counted, if all units are needed: the order depends on little more than the magnitude.
const COUNTED: usize = 1_000;
/// Of a common unit among so many those matches are listed that also have a rare one; among more the newest.
const FEW: usize = 8;
/// From how many spans of time some matches are taken, if there are more than are listed.
const SPANS: usize = 4;
/// A unit is ignored if more than this share of many texts have it and two others are left.
const COMMON_SHARE: f64 = 0.3;
const MANY_TEXTS: f64 = 1_000.0;

/// Texts in an index, as one search reads them.
pub(in super::super) trait Texts {
    fn analysis(&self) -> &Analysis;

    /// Returns the newest matches in scope, newest first: at most `limit`, from one of some spans of time or from all.
    fn list(
        &self,
        expr: &Expr,
        span: Option<(usize, usize)>,
        limit: usize,
    ) -> BackendResult<Vec<Address>>;

    /// Returns the best matches by the engine's own ranking, which reads all of them; `None` if they are in several ranges, or filtered.
    fn best(&self, expr: &Expr, limit: usize) -> BackendResult<Option<Vec<Address>>>;

    /// Returns the share of the texts that are not older than this one, never 0.
    fn share_from(&self, oldest: Address) -> BackendResult<f64>;

    /// Returns how many texts there are.
    fn count(&self) -> BackendResult<f64>;

    /// Returns those of the matches that pass the filters, with the counts of the units of the query in each.
    fn read(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)>;

    /// Returns the newest matches that pass the filters, newest first: at most `limit`.
    fn newest(&self, all: &All, limit: usize) -> BackendResult<Vec<Address>>;
}

/// All matches.
#[derive(Debug, Clone)]
pub(in super::super) struct All {
    pub(in super::super) expr: Expr,
    /// Those that were listed, newest first.
    pub(in super::super) listed: Vec<Address>,
    /// Whether these are all.
    pub(in super::super) is_whole: bool,
}

/// The matches, best first.
#[derive(Debug)]
pub(in super::super) struct Ranked {
    pub(in super::super) messages: Vec<(Address, f64)>,
    pub(in super::super) sessions: Vec<(i64, f64)>,
    pub(in super::super) matched: Matched,
    /// All matches, if there may be more than these.
    pub(in super::super) more: Option<All>,
}

impl Ranked {
    pub(in super::super) fn none(matched: Matched) -> Self {
        Self { messages: Vec::new(), sessions: Vec::new(), matched, more: None }
    }

    /// Returns the matches, best first: of all words, or if there are none or the query is relaxed at once, of any.
    pub(in super::super) fn find(
        texts: &impl Texts,
        is_relaxed_at_once: bool,
    ) -> BackendResult<Self> {
        let analysis = texts.analysis();
        if analysis.is_fixed() || !is_relaxed_at_once {
            let found = Self::of_all_words(texts)?;
            if !found.messages.is_empty() || analysis.is_fixed() {
                return Ok(found);
            }
        }
        Self::of_any_word(texts)
    }

    fn of_all_words(texts: &impl Texts) -> BackendResult<Self> {
        let analysis = texts.analysis();
        let Some(all) = analysis.all() else { return Ok(Self::none(Matched::All)) };
        let found = texts.list(&all, None, LISTED_OF_EACH)?;
        if found.is_empty() {
            return Ok(Self::none(Matched::All));
        }
        let total = texts.count()?;
        let frequencies = match analysis.is_one_unit() {
            true => vec![frequency(texts, &found, LISTED_OF_EACH, total)?],
            false => lists(texts, COUNTED, total)?.into_iter().map(|list| list.1).collect(),
        };
        let is_whole = found.len() < LISTED_OF_EACH;
        let is_plain = analysis.units.iter().all(|unit| unit.phrases[0].words.len() == 1);
        // The engine also reads every posting of each word.
        let may_rank = is_plain && frequencies.iter().all(|found| *found <= ALL_RANKED as f64);
        let best = match found.len() {
            0..=RANKED => found.clone(),
            _ if has_prefix(analysis) => evenly(&found, RANKED),
            _ if !is_whole => spread(texts, &all, RANKED)?,
            _ if may_rank && let Some(best) = texts.best(&all, RANKED)? => best,
            _ => evenly(&found, RANKED),
        };
        let more = (found.len() > RANKED).then_some(All { expr: all, listed: found, is_whole });
        Ok(Self { more, ..Self::of(texts, &best, Matched::All, &frequencies, total)? })
    }

    fn of_any_word(texts: &impl Texts) -> BackendResult<Self> {
        let analysis = texts.analysis();
        let total = texts.count()?;
        let limit = (LISTED / analysis.units.len().max(1)).min(LISTED_OF_EACH);
        let lists = lists(texts, limit, total)?;
        let frequencies = without_common(lists.iter().map(|list| list.1).collect(), total);
        let is_whole = |unit: &usize| lists[*unit].0.len() < limit;
        let used = || (0..lists.len()).filter(|unit| frequencies[*unit] > 0.0);
        let rare: Vec<usize> = used().filter(is_whole).collect();
        let mut weights: Vec<(Address, f64)> = Vec::new();
        for unit in used() {
            let weight = inverse_frequency(frequencies[unit], total);
            let add = |address: &Address| (*address, weight);
            let own = analysis.any([unit]);
            let Some(own) = own.filter(|_| !is_whole(&unit) && lists.len() <= FEW) else {
                weights.extend(lists[unit].0.iter().map(add));
                continue;
            };
            let found = match analysis.any(rare.iter().copied()).filter(|_| !rare.is_empty()) {
                // Of a common word those that also have a rare one; alone it tells too little.
                Some(rare) => texts.list(&Expr::All(vec![rare, own]), None, limit)?,
                None if has_prefix(analysis) => lists[unit].0.clone(),
                None => spread(texts, &own, limit)?,
            };
            weights.extend(found.iter().map(add));
        }
        // A text needs none of the words if it has what is required.
        let required = match analysis.any([]) {
            Some(required) => texts.list(&required, None, limit)?,
            None => Vec::new(),
        };
        let is_whole = required.len() < limit && used().all(|unit| lists[unit].0.len() < limit);
        weights.extend(required.into_iter().map(|address| (address, 0.0)));
        let mut sums = sums(weights);
        let listed = sums.iter().rev().map(|(address, _)| *address).collect();
        let is_more = !is_whole || sums.len() > RANKED;
        let more =
            analysis.any(used()).filter(|_| is_more).map(|expr| All { expr, listed, is_whole });
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

    /// Adds other matches, the newest first, until there are as many as wanted.
    pub(in super::super) fn fill(
        &mut self,
        texts: &impl Texts,
        wanted: usize,
    ) -> BackendResult<()> {
        if let Some(all) = self.more.as_ref().filter(|_| self.messages.len() < wanted) {
            let newest = texts.newest(all, wanted)?;
            self.follow_unknown(newest);
        }
        Ok(())
    }

    /// Adds those of the matches at the end that are not among these.
    pub(in super::super) fn follow_unknown(&mut self, mut found: Vec<Address>) {
        let known: HashSet<Address> = self.messages.iter().map(|known| known.0).collect();
        found.retain(|address| !known.contains(address));
        let floor = self.messages.last().map_or(1.0, |last| last.1);
        self.follow(&found, floor);
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

/// Returns whether a unit is a prefix: FTS5 merges the lists of all its words at each lookup.
fn has_prefix(analysis: &Analysis) -> bool {
    analysis.units.iter().any(|unit| unit.term.is_prefix)
}

/// Returns the newest matches of each unit, at most `limit`, and how many texts have it.
fn lists(texts: &impl Texts, limit: usize, total: f64) -> BackendResult<Vec<(Vec<Address>, f64)>> {
    let analysis = texts.analysis();
    let mut lists = Vec::with_capacity(analysis.units.len());
    for unit in 0..analysis.units.len() {
        let list = match analysis.any([unit]) {
            Some(expr) => texts.list(&expr, None, limit)?,
            None => Vec::new(),
        };
        let frequency = frequency(texts, &list, limit, total)?;
        lists.push((list, frequency));
    }
    Ok(lists)
}

/// Returns how many texts match, where these are the newest, at most `limit`.
///
/// Of a longer list this is an estimate: as many in the older texts as in those that the list covers.
fn frequency(texts: &impl Texts, list: &[Address], limit: usize, total: f64) -> BackendResult<f64> {
    let count = list.len() as f64;
    match list.last().filter(|_| list.len() >= limit) {
        None => Ok(count),
        Some(oldest) => Ok((count / texts.share_from(*oldest)?).min(total).max(count)),
    }
}

/// Returns frequencies, 0 for each unit that is so common that it hardly changes the order.
fn without_common(mut frequencies: Vec<f64>, total: f64) -> Vec<f64> {
    let is_common = |found: f64| found > COMMON_SHARE * total;
    let rare = frequencies.iter().filter(|found| **found > 0.0 && !is_common(**found)).count();
    if total > MANY_TEXTS && rare >= 2 {
        frequencies.iter_mut().filter(|found| is_common(**found)).for_each(|found| *found = 0.0);
    }
    frequencies
}

/// Returns matches of all ages: the newest of each of some spans of time.
fn spread(texts: &impl Texts, expr: &Expr, limit: usize) -> BackendResult<Vec<Address>> {
    let mut found = Vec::new();
    for span in (0..SPANS).rev() {
        found.extend(texts.list(expr, Some((span, SPANS)), limit / SPANS)?);
    }
    Ok(found)
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
    fn common_units_are_ignored_in_a_large_store_where_others_remain() {
        for (found, total, kept) in [
            (vec![900.0, 10.0, 20.0], 2_000.0, vec![0.0, 10.0, 20.0]),
            (vec![900.0, 10.0, 0.0], 2_000.0, vec![900.0, 10.0, 0.0]),
            (vec![90.0, 10.0, 20.0], 100.0, vec![90.0, 10.0, 20.0]),
            (vec![], 0.0, vec![]),
        ] {
            assert_eq!(without_common(found, total), kept);
        }
    }

    #[test]
    fn equal_texts_are_taken_evenly() {
        let all: Vec<Address> = (0..10).map(Address::from_raw).collect();
        let taken: Vec<i64> = evenly(&all, 5).into_iter().map(|it| it.raw()).collect();
        assert_eq!(taken, [0, 2, 4, 6, 8]);
    }
}
