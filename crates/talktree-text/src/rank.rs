//! Scores the candidates of a search.
//!
//! A unit of the query weighs more the fewer texts contain it. The score of a text is the sum of its units'
//! weights, with diminishing returns for repetition and a penalty for length (BM25). It is greater if neighbours of the
//! query are also near each other in the text, if a person wrote it, and if its time is the one that the query mentions.
//!
//! The constants were tuned on one half of the LongMemEval questions and checked on the other half; see
//! `benches/longmemeval.rs`. The same questions showed that people ask about things they said themselves.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::finder::{Finder, NEAR_WORDS};

/// BM25's k1 (saturation) and b (length normalization), at their usual values.
const SATURATION: f64 = 1.2;
const LENGTH_SHARE: f64 = 0.75;
/// Rare words weigh a little more than in BM25.
const RARITY_POWER: f64 = 1.25;
/// The bonus for a pair of neighbours, as a share of the lesser weight of the two. Above 1 pasted messages of tools are found better
/// (`benches/finding`, tools .93 to .97 of the first ten), from 1.5 on the turns of LongMemEval are found worse.
const NEAR_SHARE: f64 = 1.25;
/// What the occurrences of a unit in parts of identifiers and in other spellings count together, however many there are.
const PART_COUNT: f64 = 0.4;
/// What a word in reasoning and tools counts beside one in the text: agents read and write much that repeats the words of a topic. With
/// .2 fewer queries of developers have their answer first (`benches/finding`, .80 to .76).
const TOOLS_SHARE: f64 = 0.1;
/// The factor for a text by a person, if the query is about the asker.
const OWN_WORDS: f64 = 2.0;
/// The factor for a text by a person, if the query is any other question.
const USER_WORDS: f64 = 1.3;
/// The factor for a text of the time that the query mentions. With 2 one more question of the set `times` has no answer in the first
/// five, with 5 one more of `chats` none first.
const IN_TIME: f64 = 3.0;
/// The share of the second-best text in the score of a session.
const SECOND_SHARE: f64 = 0.5;

/// The size of everything that is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Corpus {
    /// The number of texts.
    pub texts: f64,
    /// The mean length of a text, in words.
    pub mean_length: f64,
}

/// A text to score.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candidate {
    /// The key of its session.
    pub session: i64,
    /// Whether a person wrote it.
    pub is_user: bool,
    /// Whether it is of the time that the query mentions.
    pub is_in_time: bool,
    /// How often it has each unit of the query; a unit in parts of identifiers and in other spellings counts less.
    counts: Vec<f64>,
    /// The pairs of neighbours of the query that are near each other in it.
    near: Vec<bool>,
    /// How many words it has.
    pub length: f64,
}

impl Candidate {
    /// Reads the first `max_bytes` of a text, and of its tools. `finder` has the units of a query, and `pairs` those that are neighbours in it.
    #[must_use]
    pub fn read(
        (text, tools): (&str, &str),
        finder: &Finder,
        units: usize,
        pairs: &[(usize, usize)],
        max_bytes: usize,
    ) -> Self {
        let mut all = Self::read_one(text, finder, units, pairs, max_bytes);
        if !tools.is_empty() {
            let tools = Self::read_one(tools, finder, units, pairs, max_bytes);
            all.length += tools.length;
            let counts = all.counts.iter_mut().zip(&tools.counts);
            counts.for_each(|(count, in_tools)| *count += TOOLS_SHARE * in_tools);
            let near = all.near.iter_mut().zip(&tools.near);
            near.for_each(|(near, in_tools)| *near |= in_tools);
        }
        all
    }

    fn read_one(
        text: &str,
        finder: &Finder,
        units: usize,
        pairs: &[(usize, usize)],
        max_bytes: usize,
    ) -> Self {
        let end = (0..=max_bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let read = &text[..end.unwrap_or(0)];
        let (matches, length) = finder.find(read);
        let (mut counts, mut others) = (vec![0.0; units], vec![false; units]);
        let mut places = vec![Vec::new(); units];
        for found in &matches {
            if found.is_whole {
                counts[found.target] += 1.0;
            } else {
                others[found.target] = true;
            }
            places[found.target].push(found.position);
        }
        for (count, is_other) in counts.iter_mut().zip(others) {
            *count += if is_other { PART_COUNT } else { 0.0 };
        }
        // The length is extrapolated from the part that was read.
        let length = length as f64 * text.len().max(1) as f64 / read.len().max(1) as f64;
        let near = pairs.iter().map(|&(a, b)| are_near(&places[a], &places[b])).collect();
        Self { counts, near, length, ..Self::default() }
    }

    /// Returns whether it has a unit.
    #[must_use]
    pub fn has(&self, unit: usize) -> bool {
        self.counts[unit] > 0.0
    }
}

/// Returns whether any two of the positions are near each other; both are ascending.
fn are_near(a: &[usize], b: &[usize]) -> bool {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(&x), Some(&y)) = (a.peek(), b.peek()) {
        if x.abs_diff(*y) <= NEAR_WORDS {
            return true;
        }
        if x < y {
            a.next()
        } else {
            b.next()
        };
    }
    false
}

/// The scores of texts and sessions; greater is better.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking {
    /// The score of each candidate, in their order.
    pub texts: Vec<f64>,
    /// The score of each session.
    pub sessions: HashMap<i64, f64>,
}

/// Scores the candidates.
///
/// `frequencies` holds the number of texts that contain each unit, 0 for one that is ignored; `pairs` holds the
/// units that are neighbours in the query, as when the candidates were read.
#[must_use]
pub fn rank(
    analysis: &Analysis,
    pairs: &[(usize, usize)],
    frequencies: &[f64],
    corpus: Corpus,
    candidates: &[Candidate],
) -> Ranking {
    let weights = weights(frequencies, corpus.texts);
    let user_factor = match (analysis.is_question, analysis.is_about_me) {
        (_, true) => OWN_WORDS,
        (true, false) => USER_WORDS,
        (false, false) => 1.0,
    };
    let mut ranking = Ranking::default();
    let mut best: HashMap<i64, [f64; 2]> = HashMap::new();
    for candidate in candidates {
        let length = candidate.length / corpus.mean_length.max(1.0);
        let norm = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length);
        let counts = candidate.counts.iter().zip(&weights);
        let words: f64 = counts.map(|(count, weight)| weight * saturated(*count, norm)).sum();
        let near = pairs.iter().zip(&candidate.near).filter(|(_, is_near)| **is_near);
        let near: f64 = near.map(|(&(a, b), _)| NEAR_SHARE * weights[a].min(weights[b])).sum();
        let mut score = words + near;
        score *= if candidate.is_user { user_factor } else { 1.0 };
        score *= if candidate.is_in_time { IN_TIME } else { 1.0 };
        let [first, second] = best.entry(candidate.session).or_default();
        (*first, *second) =
            if score > *first { (score, *first) } else { (*first, second.max(score)) };
        ranking.texts.push(score);
    }
    let of_session =
        |(session, [first, second]): (i64, [f64; 2])| (session, first + SECOND_SHARE * second);
    ranking.sessions = best.into_iter().map(of_session).collect();
    ranking
}

/// Returns the weight of each unit: rare ones weigh a little more than in BM25, all together as much.
fn weights(frequencies: &[f64], texts: f64) -> Vec<f64> {
    let plain: Vec<f64> =
        frequencies.iter().map(|found| inverse_frequency(*found, texts)).collect();
    let mut weights: Vec<f64> = plain.iter().map(|weight| weight.powf(RARITY_POWER)).collect();
    let scale = plain.iter().sum::<f64>() / weights.iter().sum::<f64>();
    weights.iter_mut().for_each(|weight| *weight *= if scale.is_finite() { scale } else { 1.0 });
    weights
}

/// Returns the saturated value of `count` occurrences; 1 for one occurrence in a text of mean length.
fn saturated(count: f64, length_norm: f64) -> f64 {
    if count == 0.0 { 0.0 } else { count * (SATURATION + 1.0) / (count + length_norm) }
}

/// Returns the inverse document frequency of a unit that `found` of `total` contain.
#[must_use]
pub fn inverse_frequency(found: f64, total: f64) -> f64 {
    if found == 0.0 {
        return 0.0;
    }
    (1.0 + ((total - found).max(0.0) + 0.5) / (found + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Query;

    /// Returns the order in which texts, drawn as `session speaker text`, answer the query.
    fn order(query: &str, texts: &[&str]) -> Vec<usize> {
        let ranking = ranked(query, texts, |_| false);
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by(|a, b| ranking.texts[*b].total_cmp(&ranking.texts[*a]));
        order
    }

    fn ranked(query: &str, texts: &[&str], is_in_time: impl Fn(usize) -> bool) -> Ranking {
        let analysis = Analysis::of(Query::parse(query), query);
        let pairs = analysis.pairs(|_| true);
        let (finder, units) = (analysis.finder(), analysis.units.len());
        let candidate = |(at, text): (usize, &&str)| {
            let mut fields = text.splitn(3, ' ');
            let session = fields.next().and_then(|key| key.parse().ok()).unwrap_or(0);
            let is_user = fields.next() == Some("u");
            let text = fields.next().unwrap_or_default();
            let read = Candidate::read((text, ""), &finder, units, &pairs, usize::MAX);
            Candidate { session, is_user, is_in_time: is_in_time(at), ..read }
        };
        let candidates: Vec<_> = texts.iter().enumerate().map(candidate).collect();
        let frequency =
            |unit| candidates.iter().filter(|candidate| candidate.has(unit)).count() as f64;
        let frequencies: Vec<f64> = (0..analysis.units.len()).map(frequency).collect();
        let corpus = Corpus { texts: 1000.0, mean_length: 3.0 };
        rank(&analysis, &pairs, &frequencies, corpus, &candidates)
    }

    #[test]
    fn messages_with_rare_or_many_words_rank_first() {
        assert_eq!(
            order("cat dog", &["1 a cat", "2 a cat", "3 a dog", "4 a dog cat"])[..2],
            [3, 2]
        );
    }

    #[test]
    fn a_word_ranks_before_parts_of_an_identifier() {
        let texts = ["1 a HttpRequest HttpRequest", "2 a x request in a text"];
        assert_eq!(order("request", &texts), [1, 0]);
        let texts = ["1 a http_request http_request", "2 a x HttpRequest in a text"];
        assert_eq!(order("HttpRequest", &texts), [1, 0]);
        let texts = ["1 a request HttpRequest HttpRequest HttpRequest", "2 a a request, a request"];
        assert_eq!(order("request", &texts), [1, 0]);
    }

    #[test]
    fn short_messages_and_near_words_rank_first() {
        assert_eq!(order("cat", &["1 a one two three four cat", "2 a cat"]), [1, 0]);
        assert_eq!(order("cat dog", &["1 a cat x y z dog", "2 a x y dog cat z"]), [1, 0]);
    }

    #[test]
    fn a_users_own_message_ranks_first_if_asked_about() {
        let texts = ["1 a cat", "2 u cat x"];
        assert_eq!(order("cat", &texts), [0, 1]);
        assert_eq!(order("where is my cat?", &texts), [1, 0]);
    }

    #[test]
    fn the_second_text_of_a_session_counts() {
        let ranking = ranked("cat dog", &["1 a cat", "2 a cat", "2 a dog"], |_| false);
        assert!(ranking.sessions[&2] > ranking.sessions[&1]);
    }

    #[test]
    fn a_message_in_the_date_range_ranks_first() {
        let ranking = ranked("cat", &["1 a cat", "2 a cat"], |at| at == 1);
        assert!(ranking.texts[1] > ranking.texts[0]);
        assert!(ranking.sessions[&2] > ranking.sessions[&1]);
    }

    #[test]
    fn every_score_is_finite() {
        for (query, texts) in
            [("cat", vec!["1 a x"]), ("role:user", vec!["1 a x"]), ("cat", vec![])]
        {
            let ranking = ranked(query, &texts, |_| true);
            assert!(ranking.texts.iter().all(|score| score.is_finite()));
        }
        assert!(weights(&[0.0, 9.0], 0.0).iter().all(|weight| weight.is_finite()));
    }
}
