//! The words of a query, numbered, and which of them a word of a text is.
//!
//! Most words of a text are told by their first two letters, which stemming leaves alone: few are folded and stemmed.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::search::stem::stem;
use crate::search::token::{Token, ascii_starts, token_at, tokens};

/// The words that are looked for.
#[derive(Default)]
pub(crate) struct Words {
    /// The number of each stem, and of each start of words.
    stems: HashMap<String, usize>,
    prefixes: Vec<(String, usize)>,
    starts: Starts,
}

impl Words {
    /// Returns the number of a stem, or of the start of words.
    pub(crate) fn number(&mut self, word: &str, is_prefix: bool) -> usize {
        self.starts.add(word);
        let next = self.stems.len() + self.prefixes.len();
        if !is_prefix {
            return *self.stems.entry(word.to_owned()).or_insert(next);
        }
        let known = self.prefixes.iter().find(|(known, _)| known == word).map(|known| known.1);
        known.unwrap_or_else(|| {
            self.prefixes.push((word.to_owned(), next));
            next
        })
    }

    /// Tells each word of a text that is one of these: its place among the words of the text, itself, and the number.
    /// Returns how many words the text has, up to where it broke off.
    ///
    /// A word is one of these by its stem, and by each start that it really has: the index can only compare stems, and
    /// finds more.
    pub(crate) fn tell<'t>(
        &self,
        text: &'t str,
        mut found: impl FnMut(usize, Token<'t>, usize) -> ControlFlow<()>,
    ) -> usize {
        let mut place = 0;
        let mut compare = |place: usize, token: Token<'t>| {
            let folded = token.folded();
            if let Some(&number) = self.stems.get(stem(&folded).as_ref()) {
                found(place, token, number)?;
            }
            for (prefix, number) in &self.prefixes {
                if folded.starts_with(prefix.as_str()) {
                    found(place, token, *number)?;
                }
            }
            ControlFlow::Continue(())
        };
        if text.is_ascii() {
            ascii_starts(text.as_bytes(), |start| {
                let is_over = self.starts.may_be(&text.as_bytes()[start..])
                    && compare(place, token_at(text, start)).is_break();
                place += 1;
                is_over
            });
            return place;
        }
        for token in tokens(text) {
            if self.starts.may_be(token.text().as_bytes()) && compare(place, token).is_break() {
                break;
            }
            place += 1;
        }
        place
    }
}

/// How the words begin.
struct Starts {
    /// By the first byte of a word, a bit for each second byte that it may have; any for a word of one letter.
    seconds: [u128; 128],
}

impl Default for Starts {
    fn default() -> Self {
        Self { seconds: [0; 128] }
    }
}

impl Starts {
    fn add(&mut self, word: &str) {
        match *word.as_bytes() {
            [first, second, _, ..] if first < 128 && second < 128 => {
                self.seconds[usize::from(first)] |= 1 << second;
            }
            // A stem of two letters may come of a word whose second letter was another: `eyed` gives `ei`.
            [first, ..] if first < 128 => self.seconds[usize::from(first)] = u128::MAX,
            // Beyond ASCII every word is looked at.
            _ => {}
        }
    }

    /// Returns whether the word that begins so may be one of them.
    #[inline]
    fn may_be(&self, bytes: &[u8]) -> bool {
        let lower = |byte: u8| usize::from(byte.to_ascii_lowercase());
        match *bytes {
            [first, second, ..] if first < 128 && second.is_ascii_alphanumeric() => {
                self.seconds[lower(first)] >> lower(second) & 1 == 1
            }
            // Beyond ASCII compaction may change the first two bytes. One letter stands for itself.
            [first, second, ..] if second < 128 => first >= 128 || self.seconds[lower(first)] != 0,
            [first] if first < 128 => self.seconds[lower(first)] != 0,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds which words of `text` are a word of the query, a star behind a start.
    #[track_caller]
    fn told(query: &[&str], text: &str, expected: &[&str]) {
        let mut words = Words::default();
        for word in query {
            let start = word.strip_suffix('*');
            words.number(start.unwrap_or(word), start.is_some());
        }
        let mut found = Vec::new();
        words.tell(text, |_, token, _| {
            found.push(token.text());
            ControlFlow::Continue(())
        });
        assert_eq!(found, expected, "{query:?}");
    }

    #[test]
    fn a_word_is_told_by_its_stem_and_a_start_by_its_letters() {
        told(&["run"], "Runs ran rün running runner", &["Runs", "rün", "running"]);
        told(&["ei", "c"], "eyed eye C cc", &["eyed", "C"]);
        told(&["ru*", "e*"], "run rye Étage", &["run", "Étage"]);
    }

    #[test]
    fn a_word_has_its_place_in_any_text() {
        let mut words = Words::default();
        words.number("fox", false);
        for text in
            ["a fox, 3.14 fo FOX", "a fox, 3.14 fo FOX é", &format!("{}fox", "a-b ".repeat(99))]
        {
            let mut places = Vec::new();
            let count = words.tell(text, |place, _, _| {
                places.push(place);
                ControlFlow::Continue(())
            });
            let is_fox =
                |(place, token): (usize, Token<'_>)| (token.folded() == "fox").then_some(place);
            let expected: Vec<_> = tokens(text).enumerate().filter_map(is_fox).collect();
            assert_eq!((places, count), (expected, tokens(text).count()), "{text}");
        }
    }
}
