//! Scores the candidates of a search.
//!
//! A unit of the query weighs more the fewer messages contain it. The score of a message is the sum of its units'
//! weights, with diminishing returns for repetition and a penalty for length (BM25). It is greater if neighbours of the
//! query are also near each other in the message, if a person wrote the message, and if its time is the one that the
//! query mentions. The score of the whole session is added to each of its messages.
//!
//! The constants were tuned on one half of the LongMemEval questions and checked on the other half; see
//! `benches/longmemeval.rs`. The same questions showed that people ask about things they said themselves.

use std::collections::HashMap;

use crate::search::analysis::Analysis;
use crate::search::scanner::Scan;

/// BM25's k1 (saturation) and b (length normalization), at their usual values.
const SATURATION: f64 = 1.2;
const LENGTH_SHARE: f64 = 0.75;
/// Rare words weigh a little more than in BM25.
const RARITY_POWER: f64 = 1.25;
/// The bonus for a pair of neighbours, as a share of the lesser weight of the two.
const NEAR_SHARE: f64 = 0.5;
/// What the occurrences of a unit in parts of identifiers and in other spellings count together, however many there are.
const PART_COUNT: f64 = 0.5;
/// The same for its occurrences with other vowel signs, where that may be another form of the word: a short message with one
/// ranks below a long message with the word.
const OTHER_SIGNS_COUNT: f64 = 0.1;
/// The factor for a message by a person, if the query is about the asker.
const OWN_WORDS: f64 = 2.0;
/// The factor for a message by a person, if the query is any other question.
const USER_WORDS: f64 = 1.3;
/// The factor for a message of the time that the query mentions.
const IN_TIME: f64 = 1.5;
/// The share of a session's own score that is added to the score of each message and of the session.
const SESSION_SHARE: f64 = 0.75;
/// The share of the second-best message in the score of a session.
const SECOND_SHARE: f64 = 0.5;

/// The size of everything that is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Corpus {
    /// The number of messages.
    pub(crate) messages: f64,
    /// The mean length of a message, in words.
    pub(crate) mean_length: f64,
    /// The number of sessions.
    pub(crate) sessions: f64,
}

/// A message to score.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    /// The key of its session.
    pub(crate) session: i64,
    /// Whether a person wrote it.
    pub(crate) is_user: bool,
    /// Whether it is of the time that the query mentions.
    pub(crate) is_in_time: bool,
    pub(crate) scan: Scan,
}

/// The scores of messages and sessions; greater is better.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ranking {
    /// The score of each candidate, in their order.
    pub(crate) messages: Vec<f64>,
    pub(crate) sessions: HashMap<i64, f64>,
}

/// Scores the candidates.
///
/// `frequencies` holds the number of messages that contain each unit, 0 for one that is ignored; `pairs` holds the
/// units that are neighbours in the query.
pub(crate) fn rank(
    analysis: &Analysis,
    pairs: &[(usize, usize)],
    frequencies: &[f64],
    corpus: Corpus,
    candidates: &[Candidate],
) -> Ranking {
    let weights = Weights::of(analysis, frequencies, corpus);
    let user_factor = match (analysis.is_question, analysis.is_about_me) {
        (_, true) => OWN_WORDS,
        (true, false) => USER_WORDS,
        (false, false) => 1.0,
    };
    let mut session_counts: HashMap<i64, (Vec<f64>, bool)> = HashMap::new();
    for candidate in candidates {
        let (counts, is_in_time) = session_counts
            .entry(candidate.session)
            .or_insert_with(|| (vec![0.0; weights.messages.len()], false));
        for (sum, count) in counts.iter_mut().zip(weights.occurrences(&candidate.scan)) {
            *sum += count;
        }
        *is_in_time |= candidate.is_in_time;
    }
    let session_scores: HashMap<i64, f64> = session_counts
        .into_iter()
        .map(|(session, (counts, is_in_time))| {
            let score: f64 = counts
                .iter()
                .zip(&weights.sessions)
                .map(|(count, weight)| weight * saturated(*count, SATURATION))
                .sum();
            (session, SESSION_SHARE * score * if is_in_time { IN_TIME } else { 1.0 })
        })
        .collect();
    let mut ranking = Ranking::default();
    let mut best: HashMap<i64, [f64; 2]> = HashMap::new();
    for candidate in candidates {
        let mut score = weights.of_message(&candidate.scan, pairs);
        if candidate.is_user {
            score *= user_factor;
        }
        if candidate.is_in_time {
            score *= IN_TIME;
        }
        let [first, second] = best.entry(candidate.session).or_default();
        (*first, *second) =
            if score > *first { (score, *first) } else { (*first, second.max(score)) };
        ranking.messages.push(score + session_scores[&candidate.session]);
    }
    ranking.sessions = best
        .into_iter()
        .map(|(session, [first, second])| {
            (session, first + SECOND_SHARE * second + session_scores[&session])
        })
        .collect();
    ranking
}

/// The weight of each unit.
struct Weights {
    messages: Vec<f64>,
    sessions: Vec<f64>,
    /// What its occurrences in other spellings count together.
    others: Vec<f64>,
    mean_length: f64,
}

impl Weights {
    fn of(analysis: &Analysis, frequencies: &[f64], corpus: Corpus) -> Self {
        let plain: Vec<f64> =
            frequencies.iter().map(|found| inverse_frequency(*found, corpus.messages)).collect();
        let mut messages: Vec<f64> = plain.iter().map(|score| score.powf(RARITY_POWER)).collect();
        let scale = plain.iter().sum::<f64>() / messages.iter().sum::<f64>();
        messages.iter_mut().for_each(|score| *score *= if scale.is_finite() { scale } else { 1.0 });
        // The number of sessions that contain a unit is not known; this is the expectation if its messages were spread
        // at random.
        let count = corpus.sessions.max(1.0);
        let sessions = frequencies
            .iter()
            .map(|found| inverse_frequency(count * (1.0 - (-found / count).exp()), count))
            .collect();
        let others = analysis.units.iter().map(|unit| match unit.term.has_other_signs() {
            true => OTHER_SIGNS_COUNT,
            false => PART_COUNT,
        });
        let (others, mean_length) = (others.collect(), corpus.mean_length.max(1.0));
        Self { messages, sessions, others, mean_length }
    }

    fn of_message(&self, scan: &Scan, pairs: &[(usize, usize)]) -> f64 {
        let length = scan.length as f64 / self.mean_length;
        let length_norm = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length);
        let words: f64 = self
            .occurrences(scan)
            .zip(&self.messages)
            .map(|(count, weight)| weight * saturated(count, length_norm))
            .sum();
        let near: f64 = pairs
            .iter()
            .zip(&scan.near)
            .filter(|(_, is_near)| **is_near)
            .map(|(&(a, b), _)| NEAR_SHARE * self.messages[a].min(self.messages[b]))
            .sum();
        words + near
    }

    /// Returns how much the occurrences of each unit count.
    fn occurrences(&self, scan: &Scan) -> impl Iterator<Item = f64> {
        let counts = scan.counts.iter().zip(&scan.whole);
        counts.zip(&self.others).map(|((count, whole), others)| {
            f64::from(*whole) + if count > whole { *others } else { 0.0 }
        })
    }
}

/// Returns the saturated value of `count` occurrences; 1 for one occurrence in a message of mean length.
fn saturated(count: f64, length_norm: f64) -> f64 {
    count * (SATURATION + 1.0) / (count + length_norm)
}

/// Returns the inverse document frequency of a unit that `found` of `total` contain.
pub(crate) fn inverse_frequency(found: f64, total: f64) -> f64 {
    if found == 0.0 {
        return 0.0;
    }
    (1.0 + ((total - found).max(0.0) + 0.5) / (found + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Query;
    use crate::search::scanner::Scanner;

    /// Returns the order in which texts, drawn as `session speaker text`, answer the query.
    fn order(query: &str, texts: &[&str]) -> Vec<usize> {
        let ranking = ranked(query, texts, |_| false);
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by(|a, b| ranking.messages[*b].total_cmp(&ranking.messages[*a]));
        order
    }

    fn ranked(query: &str, texts: &[&str], is_in_time: impl Fn(usize) -> bool) -> Ranking {
        let analysis = Analysis::of(Query::parse(query), query);
        let pairs = analysis.pairs(|_| true);
        let scanner = Scanner::new(&analysis.units, &pairs);
        let candidate = |(at, text): (usize, &&str)| {
            let mut fields = text.splitn(3, ' ');
            let session = fields.next().and_then(|key| key.parse().ok()).unwrap_or(0);
            let is_user = fields.next() == Some("u");
            let scan = scanner.scan(fields.next().unwrap_or_default(), usize::MAX);
            Candidate { session, is_user, is_in_time: is_in_time(at), scan }
        };
        let candidates: Vec<_> = texts.iter().enumerate().map(candidate).collect();
        let frequency = |unit| {
            candidates.iter().filter(|candidate| candidate.scan.counts[unit] > 0).count() as f64
        };
        let frequencies: Vec<f64> = (0..analysis.units.len()).map(frequency).collect();
        let corpus = Corpus { messages: 1000.0, mean_length: 3.0, sessions: 100.0 };
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
    fn a_word_with_its_signs_ranks_before_other_signs() {
        assert_eq!(order("के", &["1 a का", "2 a x y z one two three four के"]), [1, 0]);
        assert_eq!(order("मेल", &["1 a मैल मैल", "2 a x y z one two three four मेल"]), [1, 0]);
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
    fn the_session_score_is_added() {
        assert_eq!(order("cat dog", &["1 a cat", "2 a cat", "2 a dog"])[0..2], [2, 1]);
        let ranking = ranked("cat dog", &["1 a cat", "2 a cat", "2 a dog"], |_| false);
        assert!(ranking.sessions[&2] > ranking.sessions[&1]);
    }

    #[test]
    fn a_message_in_the_date_range_ranks_first() {
        let ranking = ranked("cat", &["1 a cat", "2 a cat"], |at| at == 1);
        assert!(ranking.messages[1] > ranking.messages[0]);
        assert!(ranking.sessions[&2] > ranking.sessions[&1]);
    }

    #[test]
    fn every_score_is_finite() {
        for (query, texts) in
            [("cat", vec!["1 a x"]), ("role:user", vec!["1 a x"]), ("cat", vec![])]
        {
            let ranking = ranked(query, &texts, |_| true);
            assert!(ranking.messages.iter().all(|score| score.is_finite()));
        }
        let corpus = Corpus { messages: 0.0, mean_length: 0.0, sessions: 0.0 };
        let analysis = Analysis::of(Query::parse("cat dog"), "");
        assert!(
            Weights::of(&analysis, &[0.0, 9.0], corpus)
                .messages
                .iter()
                .all(|score| score.is_finite())
        );
    }
}
