//! Finding and ranking matches, for messages and for the texts of context blocks.
//!
//! A text must have all words. If no text has them all, any of them is enough. Up to [`most_ranked`] matches are
//! all ranked here. Of more matches of all words the newest are; of more matches of any word those with the rarest words are.
//! The other matches follow, the newest first.
//!
//! Invariant: which texts are ranked, and so the order of all, does not depend on how many are wanted. So pages have no gaps.
//!
//! FTS5 only lists the matches, newest first, because it can stop early then. Its own ranking counts each word, phrase and
//! prefix in the whole index before it returns the first match.

use std::collections::{BinaryHeap, HashMap, HashSet};

use super::super::error::BackendResult;
use super::extent::Extent;
use crate::search::Matched;
use crate::search::analysis::{Analysis, Unit};
use crate::search::pruning::prune;
use crate::search::rank::{Candidate, Corpus, Ranking, inverse_frequency, rank};
use crate::search::scanner::Scan;
use crate::tree::Address;

/// How many matches are ranked at most. To read and scan a message takes about 10 µs.
pub(in super::super) const RANKED: usize = 1_000;
/// The same for a single word without filters, for which a match costs least.
///
/// With 1 000 one query in ten over 10 000 messages had other first hits than if all matches were ranked; nearly all were a
/// common word.
const RANKED_OF_ONE: usize = 3_000;
/// How many matches of all words are listed at least, to choose from those of several sessions.
const CHOSEN_FROM: usize = 2_000;
/// Up to this many matches of all words are ranked by estimates, if their words are not too common.
const ESTIMATED: usize = 12_000;
/// The words are too common if more messages than this have them, counted once for each word: to read the occurrences of a
/// word in a message takes about 0.5 µs.
const MAX_OCCURRENCES: f64 = 30_000.0;
/// How many of the best by estimate are read. Many more than are shown: an estimate does not tell words from parts of
/// identifiers.
const READ_OF_ESTIMATED: usize = 500;
/// How many bytes of a text are read for ranking.
pub(in super::super) const MAX_SCAN_BYTES: usize = 64 << 10;
/// How many matches of each unit are listed to estimate how common it is.
const SAMPLE: usize = 4_000;
/// How many matches of all units together are listed at most if any unit is enough: each takes about 0.2 µs.
const LISTED: usize = 48_000;
/// How many of these are of one unit at most.
const MAX_LISTED_OF_EACH: usize = 16_000;

/// Returns how many matches of all words are ranked at most.
pub(in super::super) fn most_ranked(texts: &impl Texts) -> usize {
    let reading = texts.reading();
    let is_word = |unit: &Unit| unit.stems.len() == 1 && !unit.term.is_prefix;
    let is_one_word = reading.is_one_unit() && reading.units.iter().all(is_word);
    if is_one_word && !texts.has_filters() { RANKED_OF_ONE } else { RANKED }
}

/// Texts in an FTS5 index, as one search reads them.
pub(in super::super) trait Texts {
    fn reading(&self) -> &Analysis;

    /// Returns whether the search is for any word from the start, without a search for all words before.
    fn is_relaxed_at_once(&self) -> bool;

    /// Returns whether a role or a time is wanted.
    fn has_filters(&self) -> bool {
        false
    }

    /// Returns whether these texts are ranked as if there were no others.
    fn is_alone(&self) -> bool;

    /// Returns the newest matches of an expression for all words or for any, newest first: at most `limit`, and only those
    /// that pass the filters and have the vowel signs of the words.
    fn newest(&self, expression: (&str, Matched), limit: usize) -> BackendResult<Vec<Address>>;

    /// Returns the newest matches of an expression, newest first: at most `limit`, whether they pass the filters or not, but
    /// none out of scope.
    fn listed(&self, expression: &str, limit: usize) -> BackendResult<Vec<Address>>;

    /// Returns which matches of all words are ranked if there are more than [`most_ranked`]; `listed` has the newest of them.
    fn chosen(&self, expression: &str, listed: &[Address]) -> BackendResult<Vec<Address>>;

    /// Returns the first `limit` of the texts, found for any word, that pass the filters and have the vowel signs of a word.
    fn passing(
        &self,
        found: impl Iterator<Item = Address>,
        limit: usize,
    ) -> BackendResult<Vec<Address>>;

    /// Returns whether the index tells enough of all matches to estimate their scores.
    fn has_estimates(&self) -> bool {
        false
    }

    /// Returns candidates as the index tells of them, without their texts.
    fn estimates(&self, _found: &[Address]) -> BackendResult<Vec<Candidate>> {
        Ok(Vec::new())
    }

    fn size(&self) -> BackendResult<Size>;

    /// Returns where the texts are.
    fn extent(&self) -> BackendResult<Extent>;

    /// Returns the texts to rank, with the counts of the units of the query in each.
    fn candidates(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)>;
}

/// The size of everything that is searched.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Size {
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
    /// The expression of all matches, if there may be more than these.
    pub(in super::super) more: Option<String>,
}

impl Ranked {
    pub(in super::super) fn none(matched: Matched) -> Self {
        Self { messages: Vec::new(), sessions: Vec::new(), matched, more: None }
    }

    /// Returns the best matches, best first; `all` is the expression for all words.
    pub(in super::super) fn find(texts: &impl Texts, all: &str) -> BackendResult<Self> {
        let reading = texts.reading();
        if reading.is_fixed() || !texts.is_relaxed_at_once() {
            let found = Self::strictly(texts, all)?;
            if !found.messages.is_empty() || reading.is_fixed() {
                return Ok(found);
            }
        }
        Self::relaxed(texts)
    }

    /// Adds other matches, the newest first, until there are as many as wanted.
    pub(in super::super) fn fill(
        &mut self,
        texts: &impl Texts,
        wanted: usize,
    ) -> BackendResult<()> {
        let Some(expression) = self.more.as_ref().filter(|_| self.messages.len() < wanted) else {
            return Ok(());
        };
        let newest = texts.newest((expression, self.matched), wanted)?;
        self.follow_unknown(newest);
        Ok(())
    }

    /// Adds those of the matches at the end that are not among these.
    pub(in super::super) fn follow_unknown(&mut self, mut found: Vec<Address>) {
        let known: HashSet<Address> = self.messages.iter().map(|known| known.0).collect();
        found.retain(|address| !known.contains(address));
        let floor = self.messages.last().map_or(1.0, |last| last.1);
        self.follow(&found, floor);
    }

    /// Returns the matches of all words.
    fn strictly(texts: &impl Texts, expression: &str) -> BackendResult<Self> {
        let reading = texts.reading();
        let ranked = most_ranked(texts);
        // With filters the rows of what is listed are read.
        let listed = if texts.has_filters() { 0 } else { CHOSEN_FROM };
        let mut limit = listed.max(ranked + 1);
        let mut found = texts.newest((expression, Matched::All), limit)?;
        if found.is_empty() {
            return Ok(Self::none(Matched::All));
        }
        if found.len() <= ranked && texts.is_alone() {
            return Self::of_all(texts, &found, Matched::All);
        }
        let frequencies_of = |found: &Vec<Address>, limit: usize| match reading.is_one_unit() {
            true => frequencies(texts, std::slice::from_ref(found), limit),
            false => frequencies(texts, &lists(texts, SAMPLE)?, SAMPLE),
        };
        let mut frequencies = frequencies_of(&found, limit)?;
        if found.len() <= ranked {
            return Self::of_best(texts, &found, &[], Matched::All, &frequencies);
        }
        if texts.has_estimates() && frequencies.iter().sum::<f64>() <= MAX_OCCURRENCES {
            let fewest = frequencies.iter().copied().fold(f64::MAX, f64::min);
            if found.len() >= limit && fewest <= ESTIMATED as f64 {
                limit = ESTIMATED + 1;
                found = texts.newest((expression, Matched::All), limit)?;
                frequencies = frequencies_of(&found, limit)?;
            }
            if found.len() < limit {
                return Self::of_estimates(texts, &found, &frequencies);
            }
        }
        let best = texts.chosen(expression, &found)?;
        let chosen: HashSet<Address> = best.iter().copied().collect();
        let is_all = found.len() < limit;
        let rest: Vec<Address> =
            found.into_iter().filter(|address| !chosen.contains(address)).collect();
        let found = Self::of_best(texts, &best, &rest, Matched::All, &frequencies)?;
        Ok(Self { more: (!is_all).then(|| expression.to_owned()), ..found })
    }

    /// Returns the matches of any word.
    ///
    /// Of too many the best are chosen by which of the words they have, a rare word weighing more.
    fn relaxed(texts: &impl Texts) -> BackendResult<Self> {
        let reading = texts.reading();
        if texts.is_alone()
            && let Some(any) = reading.any(0..reading.units.len())
        {
            let found = texts.newest((&any, Matched::Relaxed), RANKED + 1)?;
            if found.len() <= RANKED {
                return Self::of_all(texts, &found, Matched::Relaxed);
            }
        }
        let limit = (LISTED / reading.units.len().max(1)).min(MAX_LISTED_OF_EACH);
        let lists = lists(texts, limit)?;
        let size = texts.size()?;
        let frequencies = prune(frequencies(texts, &lists, limit)?, size.texts);
        let mut weights: Vec<(Address, f64)> = Vec::new();
        for (list, frequency) in lists.iter().zip(&frequencies) {
            let weight = inverse_frequency(*frequency, size.texts);
            if weight > 0.0 {
                weights.extend(list.iter().map(|address| (*address, weight)));
            }
        }
        // A text needs none of the words if it has what is required.
        if let Some(required) = reading.with(None) {
            weights
                .extend(texts.listed(&required, limit)?.into_iter().map(|address| (address, 0.0)));
        }
        let mut heap = heaviest(weights);
        let order = std::iter::from_fn(|| heap.pop().map(|(_, address)| address));
        let mut found = texts.passing(order, RANKED)?;
        let is_cut = found.len() == RANKED || lists.iter().any(|list| list.len() >= limit);
        let any = reading.any((0..lists.len()).filter(|unit| frequencies[*unit] > 0.0));
        let more = any.filter(|_| is_cut);
        // The newest with each word may all be of another time or role.
        if let (true, Some(any)) = (found.len() < RANKED, &more) {
            let known: HashSet<Address> = found.iter().copied().collect();
            let newest = texts.newest((any, Matched::Relaxed), RANKED)?;
            found.extend(newest.into_iter().filter(|address| !known.contains(address)));
            found.truncate(RANKED);
        }
        let ranked = Self::of_best(texts, &found, &[], Matched::Relaxed, &frequencies)?;
        Ok(Self { more, ..ranked })
    }

    /// Ranks all matches; how common each unit is among them needs no index.
    fn of_all(texts: &impl Texts, all: &[Address], matched: Matched) -> BackendResult<Self> {
        let pairs = texts.reading().pairs(|_| true);
        let (found, candidates) = texts.candidates(all, &pairs)?;
        let (frequencies, corpus) = among(&candidates);
        let ranking = rank(texts.reading(), &pairs, &frequencies, corpus, &candidates);
        Ok(Self::of(&found, ranking, matched))
    }

    /// Ranks all matches of all words by estimates, and the best of them by their texts.
    fn of_estimates(
        texts: &impl Texts,
        found: &[Address],
        frequencies: &[f64],
    ) -> BackendResult<Self> {
        let mut all = texts.estimates(found)?;
        let Size { texts: messages, sessions, mean_length } = texts.size()?;
        let pairs = texts.reading().pairs(|_| true);
        let mean_length = mean_length.unwrap_or_else(|| mean_length_of(&all));
        let corpus = Corpus { messages, mean_length, sessions };
        let estimated = rank(texts.reading(), &pairs, frequencies, corpus, &all).messages;
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by(|a, b| estimated[*b].total_cmp(&estimated[*a]).then(a.cmp(b)));
        let place: HashMap<Address, usize> =
            order.iter().take(READ_OF_ESTIMATED).map(|at| (found[*at], *at)).collect();
        let best: Vec<Address> = place.keys().copied().collect();
        let (read, candidates) = texts.candidates(&best, &pairs)?;
        for (address, candidate) in read.iter().zip(candidates) {
            all[place[address]] = candidate;
        }
        let ranking = rank(texts.reading(), &pairs, frequencies, corpus, &all);
        Ok(Self::of(found, ranking, Matched::All))
    }

    /// Ranks the best matches; the rest follows.
    fn of_best(
        texts: &impl Texts,
        best: &[Address],
        rest: &[Address],
        matched: Matched,
        frequencies: &[f64],
    ) -> BackendResult<Self> {
        let Size { texts: messages, sessions, mean_length } = texts.size()?;
        let pairs = texts.reading().pairs(|unit| frequencies[unit] > 0.0);
        let (found, candidates) = texts.candidates(best, &pairs)?;
        let mean_length = mean_length.unwrap_or_else(|| mean_length_of(&candidates));
        let corpus = Corpus { messages, mean_length, sessions };
        let ranking = rank(texts.reading(), &pairs, frequencies, corpus, &candidates);
        let mut ranked = Self::of(&found, ranking, matched);
        let floor = ranked.messages.last().map_or(0.0, |last| last.1);
        ranked.follow(rest, floor);
        Ok(ranked)
    }

    /// Returns the ranked matches, best first; of equal ones the oldest first.
    fn of(found: &[Address], ranking: Ranking, matched: Matched) -> Self {
        let mut messages: Vec<_> = found.iter().copied().zip(ranking.messages).collect();
        messages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut sessions: Vec<_> = ranking.sessions.into_iter().collect();
        sessions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Self { messages, sessions, matched, more: None }
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

/// Adds up the weights of each message; the heaviest is on top, of equal ones the newest.
fn heaviest(mut weights: Vec<(Address, f64)>) -> BinaryHeap<(u64, Address)> {
    // The lists are sorted: to merge them is faster than a hash table.
    weights.sort_by_key(|(address, _)| *address);
    let of_one = weights.chunk_by(|a, b| a.0 == b.0);
    // The weights are not negative, so their bits are in their order.
    let sum =
        |all: &[(Address, f64)]| (all.iter().fold(0.0, |sum, one| sum + one.1).to_bits(), all[0].0);
    of_one.map(sum).collect()
}

/// Returns the newest matches of each unit, at most `limit`, whether they pass the filters or not.
fn lists(texts: &impl Texts, limit: usize) -> BackendResult<Vec<Vec<Address>>> {
    let reading = texts.reading();
    let list = |unit: usize| match reading.with(Some(unit)) {
        Some(expression) => texts.listed(&expression, limit),
        None => Ok(Vec::new()),
    };
    (0..reading.units.len()).map(list).collect()
}

/// Returns how many texts have each unit, where these are its newest matches, at most `limit`.
///
/// Of a longer list this is an estimate: as many in the older texts as in those that the list covers.
fn frequencies(
    texts: &impl Texts,
    lists: &[Vec<Address>],
    limit: usize,
) -> BackendResult<Vec<f64>> {
    let mut extent = None;
    let mut frequencies = Vec::with_capacity(lists.len());
    for list in lists {
        let count = list.len() as f64;
        let oldest = list.last().filter(|_| list.len() >= limit);
        frequencies.push(match oldest {
            None => count,
            Some(oldest) => {
                let extent = match &extent {
                    Some(extent) => extent,
                    None => extent.insert(texts.extent()?),
                };
                let share = extent.share_from(*oldest);
                (count / share).min(texts.size()?.texts).max(count)
            }
        });
    }
    Ok(frequencies)
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
