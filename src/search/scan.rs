//! Counting in a text what a query is looking for.
//!
//! The work is one pass over the words of the text, of which few are stemmed.

use std::ops::ControlFlow;

use crate::search::reading::Unit;
use crate::search::words::Words;

/// How far apart, in words, two neighbours of the query may stand to count as near.
const NEAR_WORDS: usize = 2;

/// What was found in one text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Scan {
    /// How often each unit stands in it.
    pub(crate) counts: Vec<u32>,
    /// Which of the pairs stand near each other.
    pub(crate) near: Vec<bool>,
    /// How many words the text has.
    pub(crate) length: usize,
}

/// What is looked for, prepared for many texts.
pub(crate) struct Scanner {
    /// The units as numbers of words.
    units: Vec<Vec<usize>>,
    pairs: Vec<(usize, usize)>,
    words: Words,
}

impl Scanner {
    pub(crate) fn new(units: &[Unit], pairs: &[(usize, usize)]) -> Self {
        let mut words = Words::default();
        let mut numbered = |unit: &Unit| {
            let last = unit.stems.len() - 1;
            let number = |(at, stem): (usize, &String)| {
                words.number(stem, unit.term.is_prefix && at == last)
            };
            unit.stems.iter().enumerate().map(number).collect()
        };
        let units = units.iter().map(&mut numbered).collect();
        Self { units, pairs: pairs.to_vec(), words }
    }

    /// Counts what is looked for in the first `max_bytes` of a text.
    pub(crate) fn scan(&self, text: &str, max_bytes: usize) -> Scan {
        let end = (0..=max_bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        let end = end.unwrap_or(0);
        // Where each word of the query stands, by place.
        let mut spotted: Vec<(usize, usize)> = Vec::new();
        let mut length = self.words.tell(&text[..end], |place, _, word| {
            spotted.push((place, word));
            ControlFlow::Continue(())
        });
        if end < text.len() && end > 0 {
            // What was not read is taken to be like what was.
            length = (length as f64 * (text.len() as f64 / end as f64)) as usize;
        }
        let of = |unit: usize| places(&self.units[unit], &spotted);
        let counts: Vec<u32> = (0..self.units.len()).map(|unit| of(unit).count() as u32).collect();
        let near = self.pairs.iter().map(|&(a, b)| are_near(of(a), of(b))).collect();
        Scan { counts, near, length }
    }
}

/// Returns where a unit begins, in ascending order.
fn places(unit: &[usize], spotted: &[(usize, usize)]) -> impl Iterator<Item = usize> {
    let begins = |(at, &(place, word)): (usize, &(usize, usize))| {
        let mut rest = &spotted[at..];
        let is_here = word == unit[0]
            && unit.iter().enumerate().skip(1).all(|(offset, word)| {
                let before = rest.iter().take_while(|next| next.0 < place + offset).count();
                rest = &rest[before..];
                rest.iter().take_while(|next| next.0 == place + offset).any(|next| next.1 == *word)
            });
        is_here.then_some(place)
    };
    spotted.iter().enumerate().filter_map(begins)
}

/// Returns whether any two of the places are near each other; both ascend.
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
    use crate::search::reading::Reading;

    /// Holds how often each unit of the query stands in the text, and which pairs stand near.
    #[track_caller]
    fn found(query: &str, text: &str, counts: &[u32], near: &[bool]) {
        let reading = Reading::of(Query::parse(query), query);
        let scanner = Scanner::new(&reading.units, &reading.pairs(|_| true));
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
    fn phrases_are_counted_where_they_stand_whole() {
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
    fn a_long_text_is_read_in_part() {
        let scanner = Scanner::new(&Reading::of(Query::parse("a"), "a").units, &[]);
        for max_bytes in [401, 3_001] {
            let scan = scanner.scan(&"é a ".repeat(1000), max_bytes);
            let is_like_the_rest = (1_900..2_100).contains(&scan.length);
            assert!(scan.counts[0] > 70 && is_like_the_rest, "{max_bytes}: {}", scan.length);
        }
    }
}
