//! Counting in a text what a query is looking for.
//!
//! The work is one pass over the words of the text. Most words are told by their first two letters, which stemming
//! leaves alone, so few are stemmed.

use std::collections::HashMap;

use crate::search::reading::Unit;
use crate::search::stem::stem;
use crate::search::token::{Token, tokens};

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
    /// The number of each stem, and of each start of words.
    stems: HashMap<String, usize>,
    prefixes: Vec<(String, usize)>,
    /// Whether a word may be one of the query, by its first byte and its second; of words of one letter by the first.
    starts: Box<[[bool; 128]; 128]>,
}

impl Scanner {
    pub(crate) fn new(units: &[Unit], pairs: &[(usize, usize)]) -> Self {
        let mut scanner = Self {
            units: Vec::new(),
            pairs: pairs.to_vec(),
            stems: HashMap::new(),
            prefixes: Vec::new(),
            starts: Box::new([[false; 128]; 128]),
        };
        for unit in units {
            let last = unit.stems.len() - 1;
            let word = |(at, stem): (usize, &String)| {
                scanner.word(stem, unit.term.is_prefix && at == last)
            };
            let words = unit.stems.iter().enumerate().map(word).collect();
            scanner.units.push(words);
        }
        scanner
    }

    fn word(&mut self, stem: &str, is_prefix: bool) -> usize {
        match *stem.as_bytes() {
            // A stem of two letters may come of a word whose second letter was another: `eyed` gives `ei`.
            [first] | [first, _] if first < 128 => self.starts[usize::from(first)] = [true; 128],
            [first, second, ..] if first < 128 && second < 128 => {
                self.starts[usize::from(first)][usize::from(second)] = true;
            }
            [first, ..] if first < 128 => self.starts[usize::from(first)] = [true; 128],
            _ => {}
        }
        let next = self.stems.len() + self.prefixes.len();
        if !is_prefix {
            return *self.stems.entry(stem.to_owned()).or_insert(next);
        }
        let known = self.prefixes.iter().find(|(known, _)| known == stem).map(|known| known.1);
        known.unwrap_or_else(|| {
            self.prefixes.push((stem.to_owned(), next));
            next
        })
    }

    /// Counts what is looked for in the first `max_bytes` of a text.
    pub(crate) fn scan(&self, text: &str, max_bytes: usize) -> Scan {
        let end = (0..=max_bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        let end = end.unwrap_or(0);
        // Where each word of the query stands, by place.
        let mut spotted: Vec<(usize, usize)> = Vec::new();
        let mut length = 0;
        for token in tokens(&text[..end]) {
            if self.may_be(token) {
                self.spot(token, length, &mut spotted);
            }
            length += 1;
        }
        if end < text.len() && end > 0 {
            // What was not read is taken to be like what was.
            length = length.saturating_mul(text.len() / end);
        }
        let places: Vec<Vec<usize>> =
            self.units.iter().map(|unit| places(unit, &spotted)).collect();
        Scan {
            counts: places.iter().map(|places| places.len() as u32).collect(),
            near: self.pairs.iter().map(|&(a, b)| are_near(&places[a], &places[b])).collect(),
            length,
        }
    }

    fn may_be(&self, token: Token<'_>) -> bool {
        match *token.text().as_bytes() {
            [first, second, ..] if first < 128 && second < 128 => {
                let lower = |byte: u8| usize::from(byte.to_ascii_lowercase());
                self.starts[lower(first)][lower(second)]
            }
            // One letter stands for itself; beyond ASCII folding may change the first byte.
            [first] => self.starts[usize::from(first.to_ascii_lowercase())].contains(&true),
            _ => true,
        }
    }

    fn spot(&self, token: Token<'_>, place: usize, spotted: &mut Vec<(usize, usize)>) {
        let folded = token.folded();
        if let Some(&word) = self.stems.get(stem(&folded).as_ref()) {
            spotted.push((place, word));
        }
        for (prefix, word) in &self.prefixes {
            if folded.starts_with(prefix.as_str()) {
                spotted.push((place, *word));
            }
        }
    }
}

/// Returns where a unit begins, in ascending order.
fn places(unit: &[usize], spotted: &[(usize, usize)]) -> Vec<usize> {
    let begins = |(at, &(place, word)): (usize, &(usize, usize))| {
        let is_here = word == unit[0]
            && unit.iter().enumerate().skip(1).all(|(offset, word)| {
                let rest = spotted[at..].iter().take_while(|next| next.0 <= place + offset);
                rest.into_iter().any(|next| *next == (place + offset, *word))
            });
        is_here.then_some(place)
    };
    spotted.iter().enumerate().filter_map(begins).collect()
}

/// Returns whether any two of the places are near each other; both lists ascend.
fn are_near(a: &[usize], b: &[usize]) -> bool {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.abs_diff(*y) <= NEAR_WORDS {
            return true;
        }
        if x < y { i += 1 } else { j += 1 }
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
        let scan = scanner.scan(&"é a ".repeat(1000), 401);
        assert_eq!((scan.counts[0] > 70, scan.length > 1500), (true, true));
    }
}
