//! Which of the messages found come first.
//!
//! Each unit of the query is worth the more the fewer messages hold it. A message has the worth of its units, with less
//! and less for each repetition and for length (BM25); more if neighbours of the query are neighbours in it, if a person
//! speaks in it, and if its time is the one the question speaks of. The whole conversation counts, too: what it holds of
//! the query is added to each of its messages.
//!
//! The constants were measured on LongMemEval, tuned on one half of its questions and checked on the other; see
//! `benches/longmemeval.rs`. That people ask about what they said themselves was learnt from these questions, too.

use std::collections::HashMap;

use crate::search::reading::Reading;
use crate::search::scan::Scan;

/// How soon repetitions stop counting, and how much length counts: the usual figures of BM25.
const SATURATION: f64 = 1.2;
const LENGTH_SHARE: f64 = 0.75;
/// Rare words are worth a little more than BM25 has it.
const RARITY_POWER: f64 = 1.25;
/// What a pair of neighbours adds: this share of the lesser of the two.
const NEAR_SHARE: f64 = 0.5;
/// What a person said counts so many times, for a question about the one who asks ..
const OWN_WORDS: f64 = 2.0;
/// .. and for any other question.
const USER_WORDS: f64 = 1.3;
/// What lies in the time that the question speaks of counts so many times.
const IN_TIME: f64 = 1.5;
/// How much of the whole conversation's worth is added to a message's, and to the conversation's.
const CONVERSATION_SHARE: f64 = 0.75;
/// How much the second-best message adds to a conversation.
const SECOND_SHARE: f64 = 0.5;

/// What is known of all that was searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Corpus {
    /// Messages.
    pub(crate) messages: f64,
    /// The mean length of a message, in words.
    pub(crate) mean_length: f64,
    /// Conversations.
    pub(crate) sessions: f64,
}

/// One message that may be an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    /// The conversation it is in.
    pub(crate) session: i64,
    /// Whether a person speaks.
    pub(crate) is_user: bool,
    /// Whether it is of the time the question speaks of.
    pub(crate) is_in_time: bool,
    pub(crate) scan: Scan,
}

/// What messages and conversations are worth; greater is better.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ranking {
    /// One for each candidate, in their order.
    pub(crate) messages: Vec<f64>,
    pub(crate) sessions: HashMap<i64, f64>,
}

/// Returns what each candidate is worth.
///
/// `frequencies` says in how many messages each unit stands, 0 for one that does not count; `pairs` which of them are
/// neighbours in the query.
pub(crate) fn rank(
    reading: &Reading,
    pairs: &[(usize, usize)],
    frequencies: &[f64],
    corpus: Corpus,
    candidates: &[Candidate],
) -> Ranking {
    let weights = Weights::of(frequencies, corpus);
    let user = match (reading.is_question, reading.is_about_me) {
        (_, true) => OWN_WORDS,
        (true, false) => USER_WORDS,
        (false, false) => 1.0,
    };
    let mut whole: HashMap<i64, (Vec<f64>, bool)> = HashMap::new();
    for candidate in candidates {
        let (counts, is_in_time) = whole
            .entry(candidate.session)
            .or_insert_with(|| (vec![0.0; weights.messages.len()], false));
        for (sum, count) in counts.iter_mut().zip(&candidate.scan.counts) {
            *sum += f64::from(*count);
        }
        *is_in_time |= candidate.is_in_time;
    }
    let whole: HashMap<i64, f64> = whole
        .into_iter()
        .map(|(session, (counts, is_in_time))| {
            let worth: f64 = counts
                .iter()
                .zip(&weights.sessions)
                .map(|(count, weight)| weight * saturated(*count, SATURATION))
                .sum();
            (session, CONVERSATION_SHARE * worth * if is_in_time { IN_TIME } else { 1.0 })
        })
        .collect();
    let mut ranking = Ranking::default();
    let mut best: HashMap<i64, [f64; 2]> = HashMap::new();
    for candidate in candidates {
        let mut worth = weights.of_message(&candidate.scan, pairs);
        if candidate.is_user {
            worth *= user;
        }
        if candidate.is_in_time {
            worth *= IN_TIME;
        }
        let [first, second] = best.entry(candidate.session).or_default();
        (*first, *second) =
            if worth > *first { (worth, *first) } else { (*first, second.max(worth)) };
        ranking.messages.push(worth + whole[&candidate.session]);
    }
    ranking.sessions = best
        .into_iter()
        .map(|(session, [first, second])| {
            (session, first + SECOND_SHARE * second + whole[&session])
        })
        .collect();
    ranking
}

/// What each unit is worth.
struct Weights {
    messages: Vec<f64>,
    sessions: Vec<f64>,
    mean_length: f64,
}

impl Weights {
    fn of(frequencies: &[f64], corpus: Corpus) -> Self {
        let plain: Vec<f64> =
            frequencies.iter().map(|found| rarity(*found, corpus.messages)).collect();
        let mut messages: Vec<f64> = plain.iter().map(|worth| worth.powf(RARITY_POWER)).collect();
        let scale = plain.iter().sum::<f64>() / messages.iter().sum::<f64>();
        messages.iter_mut().for_each(|worth| *worth *= if scale.is_finite() { scale } else { 1.0 });
        // In how many conversations a unit stands is not known; so many it would be by chance.
        let count = corpus.sessions.max(1.0);
        let sessions = frequencies
            .iter()
            .map(|found| rarity(count * (1.0 - (-found / count).exp()), count))
            .collect();
        Self { messages, sessions, mean_length: corpus.mean_length.max(1.0) }
    }

    fn of_message(&self, scan: &Scan, pairs: &[(usize, usize)]) -> f64 {
        let length = scan.length as f64 / self.mean_length;
        let slowness = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length);
        let words: f64 = scan
            .counts
            .iter()
            .zip(&self.messages)
            .map(|(count, weight)| weight * saturated(f64::from(*count), slowness))
            .sum();
        let near: f64 = pairs
            .iter()
            .zip(&scan.near)
            .filter(|(_, is_near)| **is_near)
            .map(|(&(a, b), _)| NEAR_SHARE * self.messages[a].min(self.messages[b]))
            .sum();
        words + near
    }
}

/// Returns what `count` repetitions are worth against one.
fn saturated(count: f64, slowness: f64) -> f64 {
    count * (SATURATION + 1.0) / (count + slowness)
}

/// Returns how much it tells that something stands in `found` of `total`.
fn rarity(found: f64, total: f64) -> f64 {
    if found == 0.0 {
        return 0.0;
    }
    (1.0 + ((total - found).max(0.0) + 0.5) / (found + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Query;
    use crate::search::scan::Scanner;

    /// Returns the order in which texts, drawn as `session speaker text`, answer the query.
    fn order(query: &str, texts: &[&str]) -> Vec<usize> {
        let ranking = ranked(query, texts, |_| false);
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by(|a, b| ranking.messages[*b].total_cmp(&ranking.messages[*a]));
        order
    }

    fn ranked(query: &str, texts: &[&str], is_in_time: impl Fn(usize) -> bool) -> Ranking {
        let reading = Reading::of(Query::parse(query), query);
        let pairs = reading.pairs(|_| true);
        let scanner = Scanner::new(&reading.units, &pairs);
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
        let frequencies: Vec<f64> = (0..reading.units.len()).map(frequency).collect();
        let corpus = Corpus { messages: 1000.0, mean_length: 3.0, sessions: 100.0 };
        rank(&reading, &pairs, &frequencies, corpus, &candidates)
    }

    #[test]
    fn rare_words_and_many_words_come_first() {
        assert_eq!(
            order("cat dog", &["1 a cat", "2 a cat", "3 a dog", "4 a dog cat"])[..2],
            [3, 2]
        );
    }

    #[test]
    fn short_messages_and_near_words_come_first() {
        assert_eq!(order("cat", &["1 a one two three four cat", "2 a cat"]), [1, 0]);
        assert_eq!(order("cat dog", &["1 a cat x y z dog", "2 a x y dog cat z"]), [1, 0]);
    }

    #[test]
    fn what_one_said_oneself_comes_first_if_asked_for() {
        let texts = ["1 a cat", "2 u cat x"];
        assert_eq!(order("cat", &texts), [0, 1]);
        assert_eq!(order("where is my cat?", &texts), [1, 0]);
    }

    #[test]
    fn the_whole_conversation_counts() {
        assert_eq!(order("cat dog", &["1 a cat", "2 a cat", "2 a dog"])[0..2], [2, 1]);
        let ranking = ranked("cat dog", &["1 a cat", "2 a cat", "2 a dog"], |_| false);
        assert!(ranking.sessions[&2] > ranking.sessions[&1]);
    }

    #[test]
    fn the_time_asked_for_counts() {
        let ranking = ranked("cat", &["1 a cat", "2 a cat"], |at| at == 1);
        assert!(ranking.messages[1] > ranking.messages[0]);
        assert!(ranking.sessions[&2] > ranking.sessions[&1]);
    }

    #[test]
    fn every_worth_is_a_number() {
        for (query, texts) in
            [("cat", vec!["1 a x"]), ("role:user", vec!["1 a x"]), ("cat", vec![])]
        {
            let ranking = ranked(query, &texts, |_| true);
            assert!(ranking.messages.iter().all(|worth| worth.is_finite()));
        }
        let corpus = Corpus { messages: 0.0, mean_length: 0.0, sessions: 0.0 };
        assert!(Weights::of(&[0.0, 9.0], corpus).messages.iter().all(|worth| worth.is_finite()));
    }
}
