//! Counts the units of a query in a text, for ranking.
//!
//! One pass over the words of the text. The dictionary rejects most words by their first two letters, so few are
//! stemmed.

use std::ops::ControlFlow;

use crate::search::analysis::Unit;
use crate::search::dictionary::Dictionary;

/// The maximum distance in words between two neighbours of the query that are near each other.
const NEAR_WORDS: usize = 2;

/// The counts of one text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Scan {
    /// The number of occurrences of each unit.
    pub(crate) counts: Vec<u32>,
    /// Whether the units of each pair are near each other.
    pub(crate) near: Vec<bool>,
    /// The number of words of the text.
    pub(crate) length: usize,
}

/// The ids of a unit's words, and of the forms of its only word.
struct Target {
    words: Vec<usize>,
    forms: Vec<usize>,
}

/// Scans texts for the units of one query.
pub(crate) struct Scanner {
    units: Vec<Target>,
    pairs: Vec<(usize, usize)>,
    dictionary: Dictionary,
}

impl Scanner {
    pub(crate) fn new(units: &[Unit], pairs: &[(usize, usize)]) -> Self {
        let mut dictionary = Dictionary::default();
        let mut ids_of = |unit: &Unit| {
            let last = unit.stems.len() - 1;
            let id = |(at, stem): (usize, &String)| {
                dictionary.add(stem, unit.term.is_prefix && at == last)
            };
            let words = unit.stems.iter().enumerate().map(id).collect();
            let forms = unit.forms.iter().map(|form| dictionary.add(form, false)).collect();
            Target { words, forms }
        };
        let units = units.iter().map(&mut ids_of).collect();
        Self { units, pairs: pairs.to_vec(), dictionary }
    }

    /// Scans the first `max_bytes` of a text.
    pub(crate) fn scan(&self, text: &str, max_bytes: usize) -> Scan {
        let end = (0..=max_bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        let end = end.unwrap_or(0);
        // The position and id of each word of the query.
        let mut occurrences: Vec<(usize, usize)> = Vec::new();
        let mut length = self.dictionary.for_each_match(&text[..end], |position, _, word| {
            occurrences.push((position, word));
            ControlFlow::Continue(())
        });
        if end < text.len() && end > 0 {
            // The length is extrapolated from the part that was scanned.
            length = (length as f64 * (text.len() as f64 / end as f64)) as usize;
        }
        let of = |unit: usize| positions(&self.units[unit], &occurrences);
        let counts: Vec<u32> = (0..self.units.len()).map(|unit| of(unit).count() as u32).collect();
        let near = self.pairs.iter().map(|&(a, b)| are_near(of(a), of(b))).collect();
        Scan { counts, near, length }
    }
}

/// Returns the positions where a unit starts, ascending.
fn positions(unit: &Target, occurrences: &[(usize, usize)]) -> impl Iterator<Item = usize> {
    let begins = |(at, &(position, word)): (usize, &(usize, usize))| {
        let mut rest = &occurrences[at..];
        let is_match = word == unit.words[0]
            && unit.words.iter().enumerate().skip(1).all(|(offset, word)| {
                let before = rest.iter().take_while(|next| next.0 < position + offset).count();
                rest = &rest[before..];
                rest.iter()
                    .take_while(|next| next.0 == position + offset)
                    .any(|next| next.1 == *word)
            });
        (is_match || unit.forms.contains(&word)).then_some(position)
    };
    occurrences.iter().enumerate().filter_map(begins)
}

/// Returns whether any two of the positions are near each other; both are ascending.
fn are_near(mut a: impl Iterator<Item = usize>, mut b: impl Iterator<Item = usize>) -> bool {
    let (mut at_a, mut at_b) = (a.next(), b.next());
    while let (Some(x), Some(y)) = (at_a, at_b) {
        if x.abs_diff(y) <= NEAR_WORDS {
            return true;
        }
        if x < y { at_a = a.next() } else { at_b = b.next() }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Query;
    use crate::search::analysis::Analysis;

    /// Asserts the counts of each unit of the query in the text, and which pairs are near each other.
    #[track_caller]
    fn found(query: &str, text: &str, counts: &[u32], near: &[bool]) {
        let analysis = Analysis::of(Query::parse(query), query);
        let scanner = Scanner::new(&analysis.units, &analysis.pairs(|_| true));
        let scan = scanner.scan(text, usize::MAX);
        assert_eq!((scan.counts.as_slice(), scan.near.as_slice()), (counts, near), "{query}");
    }

    #[test]
    fn words_are_counted_by_their_stems() {
        found("running", "Run, he RUNS; runner", &[2], &[]);
        found("café", "CAFE cafe\u{301} cafeteria", &[2], &[]);
        found("c", "C c++ cc", &[2], &[]);
        found("eyed", "eyed eyes", &[1], &[]);
        found("runn*", "run runner running", &[2], &[]);
        found("éta*", "Étage etat", &[2], &[]);
    }

    #[test]
    fn only_whole_phrases_are_counted() {
        found("\"red fox\"", "red fox, red big fox, red\nfox", &[2], &[]);
        found("\"a b a\"", "a b a b a", &[2], &[]);
        found("北京", "北京在北边，东北京", &[2], &[]);
        found("\"red fo\"*", "red fox red food fo", &[2], &[]);
    }

    #[test]
    fn neighbours_are_near_within_two_words_in_either_order() {
        found("red fox", "red big fox", &[1, 1], &[true]);
        found("red fox", "fox red", &[1, 1], &[true]);
        found("red fox", "red one two fox", &[1, 1], &[false]);
    }

    #[test]
    fn a_long_text_is_scanned_in_part() {
        let scanner = Scanner::new(&Analysis::of(Query::parse("a"), "a").units, &[]);
        for max_bytes in [401, 3_001] {
            let scan = scanner.scan(&"é a ".repeat(1000), max_bytes);
            let is_like_the_rest = (1_900..2_100).contains(&scan.length);
            assert!(scan.counts[0] > 70 && is_like_the_rest, "{max_bytes}: {}", scan.length);
        }
    }
}
