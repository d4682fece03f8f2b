//! Counts the units of a query in a text, for ranking.
//!
//! One pass over the words of the text. The dictionary rejects most words by their first two letters, so few are
//! stemmed.

use std::ops::ControlFlow;

use crate::search::analysis::Unit;
use crate::search::dictionary::{Dictionary, PartMatch};
use crate::search::identifiers::MAX_PARTS;

/// The maximum distance in words between two neighbours of the query that are near each other.
pub(crate) const NEAR_WORDS: usize = 2;

/// The counts of one text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Scan {
    /// The number of occurrences of each unit, including those in parts of identifiers and in other spellings.
    pub(crate) counts: Vec<u32>,
    /// The number of occurrences of each unit as whole words in the spelling of the query.
    pub(crate) whole: Vec<u32>,
    /// Whether the units of each pair are near each other.
    pub(crate) near: Vec<bool>,
    /// The number of words of the text.
    pub(crate) length: usize,
}

/// The ids of a unit's words.
struct Target {
    /// The words as they are written, and each form of an only word.
    whole: Vec<Vec<usize>>,
    /// Other spellings of it as several words.
    spelled: Vec<Vec<usize>>,
    /// The words with any vowel signs, if these need not be the same.
    other_signs: Option<Vec<usize>>,
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
            let signs = unit.term.signs();
            let mut ids = |signs: &[&str]| -> Vec<usize> {
                let id = |(at, stem): (usize, &String)| match signs.get(at) {
                    Some(signs) if !(unit.term.is_prefix && at == last) => {
                        dictionary.add_spelled(stem, signs)
                    }
                    _ => dictionary.add(stem, unit.term.is_prefix && at == last),
                };
                unit.stems.iter().enumerate().map(id).collect()
            };
            let words = ids(&signs);
            let other_signs = unit.term.has_other_signs().then(|| ids(&[]));
            let forms = unit.forms.iter().map(|form| -> Vec<usize> {
                form.iter().map(|stem| dictionary.add(stem, false)).collect()
            });
            let (mut whole, spelled): (Vec<_>, Vec<_>) = forms.partition(|form| form.len() == 1);
            whole.push(words);
            Target { whole, spelled, other_signs }
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
        // The parts of identifiers follow the text, as in the index, and no run is near another.
        let mut parts: Vec<(usize, usize)> = Vec::new();
        self.dictionary.for_each_part(
            &text[..end],
            |PartMatch { place: (run, number), word, .. }| {
                parts.push((run * (MAX_PARTS + NEAR_WORDS) + number, word));
            },
        );
        let mut scan = Scan { length, ..Scan::default() };
        let mut places = Vec::with_capacity(self.units.len());
        let written = Present::of(&occurrences, self.dictionary.len());
        let in_parts = Present::of(&parts, self.dictionary.len());
        for unit in &self.units {
            let whole = written.positions(&unit.whole);
            let spelled = written.positions(&unit.spelled);
            let with_any_signs = match &unit.other_signs {
                Some(words) => written.positions(std::slice::from_ref(words)).len(),
                None => 0,
            };
            let inside = in_parts.positions(&unit.whole);
            let as_words = whole.len().max(with_any_signs);
            scan.counts.push((as_words + spelled.len() + inside.len()) as u32);
            scan.whole.push(whole.len() as u32);
            places.push([[whole, spelled].concat(), inside]);
        }
        places.iter_mut().for_each(|[written, _]| written.sort_unstable());
        scan.near = (self.pairs.iter())
            .map(|&(a, b)| {
                let both = places[a].iter().zip(&places[b]);
                both.into_iter().any(|(a, b)| are_near(a.iter().copied(), b.iter().copied()))
            })
            .collect();
        scan
    }
}

/// The words of the query that a text has: of a long query a text has few.
struct Present<'o> {
    occurrences: &'o [(usize, usize)],
    words: Vec<bool>,
}

impl<'o> Present<'o> {
    fn of(occurrences: &'o [(usize, usize)], words: usize) -> Self {
        let mut present = vec![false; words];
        occurrences.iter().for_each(|(_, word)| present[*word] = true);
        Self { occurrences, words: present }
    }

    /// Returns the positions where any of several sequences of words starts, ascending.
    fn positions(&self, sequences: &[Vec<usize>]) -> Vec<usize> {
        let may_start = |words: &Vec<usize>| words.first().is_some_and(|word| self.words[*word]);
        match sequences.iter().any(may_start) {
            true => positions(sequences, self.occurrences),
            false => Vec::new(),
        }
    }
}

fn positions(sequences: &[Vec<usize>], occurrences: &[(usize, usize)]) -> Vec<usize> {
    let begins = |(at, &(position, word)): (usize, &(usize, usize))| {
        let is_here = |words: &Vec<usize>| {
            let mut rest = &occurrences[at..];
            words.first() == Some(&word)
                && words.iter().enumerate().skip(1).all(|(offset, word)| {
                    let before = rest.iter().take_while(|next| next.0 < position + offset).count();
                    rest = &rest[before..];
                    rest.iter()
                        .take_while(|next| next.0 == position + offset)
                        .any(|next| next.1 == *word)
                })
        };
        sequences.iter().any(is_here).then_some(position)
    };
    occurrences.iter().enumerate().filter_map(begins).collect()
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
        found("c", "C c++ cc", &[1], &[]);
        found("eyed", "eyed eyes", &[1], &[]);
        found("runn*", "run runner running", &[2], &[]);
        found("éta*", "Étage etat", &[2], &[]);
    }

    #[test]
    fn words_with_other_vowel_signs_are_other_words_or_other_spellings() {
        found("ดี", "ดี ดู ด อากาศดีมาก", &[2], &[]);
        found("\"กิน\"", "กิน กัน กน กินี", &[1], &[]);
        found("กน", "กิน กัน กน", &[3], &[]);
        found("\"के\"", "के का क", &[1], &[]);
        let analysis = Analysis::of(Query::parse("के"), "के");
        let scan = Scanner::new(&analysis.units, &[]).scan("के का", usize::MAX);
        assert_eq!((scan.counts, scan.whole), (vec![2], vec![1]));
    }

    #[test]
    fn only_whole_phrases_are_counted() {
        found("\"red fox\"", "red fox, red big fox, red\nfox", &[2], &[]);
        found("\"a b a\"", "a b a b a", &[2], &[]);
        found("北京", "北京在北边，东北京", &[2], &[]);
        found("\"red fo\"*", "red fox red food fo", &[2], &[]);
    }

    #[test]
    fn parts_of_identifiers_are_counted() {
        found("request", "HttpRequest request", &[2], &[]);
        found("HttpRequest", "httprequest, http_request, HTTPRequest", &[3], &[]);
        found("auto check", "checkAutoCompaction", &[1, 1], &[true]);
        found("auto check", "AutoIt checkIt", &[1, 1], &[false]);
        let analysis = Analysis::of(Query::parse("request"), "request");
        let scanner = Scanner::new(&analysis.units, &[]);
        let whole = |text: &str| scanner.scan(text, usize::MAX).whole[0];
        assert_eq!([whole("HttpRequest"), whole("HttpRequest request")], [0, 1]);
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
