//! The stems and prefixes of a query, each with an id, and a fast lookup of the words of a text.
//!
//! A filter of the first two letters, which stemming does not change, rejects most words of a text: few are normalized
//! and stemmed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use crate::search::identifiers::{self, Special};
use crate::search::stemmer::stem;
use crate::search::tokenizer::{Token, ascii_starts, normalize, token_at, tokens};

/// How many words of texts are remembered with their ids.
const MAX_SEEN: usize = 4_096;

/// The stems and prefixes to find.
#[derive(Default)]
pub(crate) struct Dictionary {
    /// The id of each stem; `prefixes` holds those of the prefixes.
    stems: HashMap<String, usize>,
    prefixes: Vec<(String, usize)>,
    /// The ids of stems that match only with their vowel signs, by [`spelled`].
    spelled: HashMap<String, usize>,
    first_letters: FirstLetters,
    /// The ids of words of texts, as written: the words of one text are in others, too, and need not be stemmed again.
    seen: RefCell<HashMap<Box<str>, Vec<usize>>>,
}

impl Dictionary {
    /// Adds a stem or prefix if it is new; returns its id.
    pub(crate) fn add(&mut self, word: &str, is_prefix: bool) -> usize {
        self.first_letters.add(word);
        self.seen.get_mut().clear();
        let next = self.len();
        if !is_prefix {
            return *self.stems.entry(word.to_owned()).or_insert(next);
        }
        let known = self.prefixes.iter().find(|(known, _)| known == word).map(|known| known.1);
        known.unwrap_or_else(|| {
            self.prefixes.push((word.to_owned(), next));
            next
        })
    }

    /// Adds a stem that matches only words with the same vowel signs, if it is new; returns its id.
    pub(crate) fn add_spelled(&mut self, stem: &str, signs: &str) -> usize {
        self.first_letters.add(stem);
        self.seen.get_mut().clear();
        let next = self.len();
        *self.spelled.entry(spelled(stem, signs)).or_insert(next)
    }

    /// Returns the number of ids.
    pub(crate) fn len(&self) -> usize {
        self.stems.len() + self.prefixes.len() + self.spelled.len()
    }

    /// Calls `found` with the position, token and id of each word of `text` that matches a stem or prefix. Returns the
    /// number of words visited; `Break` ends the visit.
    ///
    /// A prefix must match the word itself. The index can only compare stems, so it matches more words.
    pub(crate) fn for_each_match<'t>(
        &self,
        text: &'t str,
        mut found: impl FnMut(usize, Token<'t>, usize) -> ControlFlow<()>,
    ) -> usize {
        let mut position = 0;
        let mut seen = self.seen.borrow_mut();
        let mut compare = |position: usize, token: Token<'t>| {
            // Only if they matter: most texts have none.
            let signs = if self.spelled.is_empty() { "" } else { token.signs() };
            let written = if signs.is_empty() { token.text() } else { token.with_signs() };
            if let Some(ids) = seen.get(written) {
                return ids.iter().try_for_each(|id| found(position, token, *id));
            }
            let ids: Vec<usize> = self.ids(&token.normalized(), signs).collect();
            ids.iter().try_for_each(|id| found(position, token, *id))?;
            if seen.len() < MAX_SEEN {
                seen.insert(written.into(), ids);
            }
            ControlFlow::Continue(())
        };
        if text.is_ascii() {
            ascii_starts(text.as_bytes(), |start| {
                let is_over = self.first_letters.may_contain(&text.as_bytes()[start..])
                    && compare(position, token_at(text, start)).is_break();
                position += 1;
                is_over
            });
            return position;
        }
        for token in tokens(text) {
            if self.first_letters.may_contain(token.letters().as_bytes())
                && compare(position, token).is_break()
            {
                break;
            }
            position += 1;
        }
        position
    }

    /// Returns the ids of the stem of a normalized word, with its signs and without, and of the prefixes that it begins with.
    fn ids(&self, normalized: &str, signs: &str) -> impl Iterator<Item = usize> {
        let stem = stem(normalized);
        let spelled = match self.spelled.is_empty() {
            true => None,
            false => self.spelled.get(&spelled(&stem, signs)).copied(),
        };
        let stem = self.stems.get(stem.as_ref()).copied();
        let is_start = |(prefix, _): &&(String, usize)| normalized.starts_with(prefix);
        stem.into_iter()
            .chain(spelled)
            .chain(self.prefixes.iter().filter(is_start).map(|(_, id)| *id))
    }

    /// Calls `found` with each part of an identifier of `text` that matches, in the order of the index.
    pub(crate) fn for_each_part(&self, text: &str, mut found: impl FnMut(PartMatch)) {
        let mut run = 0;
        let wants = |bytes: &[u8]| self.first_letters.may_contain(bytes);
        identifiers::each_wanted(text, wants, |special| {
            let Special::Run(parts) = special else { return };
            for (number, range) in parts.into_iter().enumerate() {
                let part = &text[range.clone()];
                if !self.first_letters.may_contain(part.as_bytes()) {
                    continue;
                }
                // Signs are no part of identifiers.
                for word in self.ids(&normalize(part), "") {
                    found(PartMatch { place: (run, number), range: range.clone(), word });
                }
            }
            run += 1;
        });
    }
}

/// Returns a stem with its vowel signs, in any order: `กี่` may be typed with its tone mark first.
fn spelled(stem: &str, signs: &str) -> String {
    let mut signs: Vec<char> = signs.chars().collect();
    signs.sort_unstable();
    stem.chars().chain(signs).collect()
}

/// A part of an identifier that matches.
pub(crate) struct PartMatch {
    /// The number of the run of parts, and of the part in it.
    pub(crate) place: (usize, usize),
    /// The byte range in the text.
    pub(crate) range: Range<usize>,
    /// The id of the stem or prefix.
    pub(crate) word: usize,
}

/// The first two letters of all words, as a filter.
struct FirstLetters {
    /// For each first byte, a set of second bytes; the full set for a word of one letter.
    seconds: [u128; 128],
}

impl Default for FirstLetters {
    fn default() -> Self {
        Self { seconds: [0; 128] }
    }
}

impl FirstLetters {
    fn add(&mut self, word: &str) {
        match *word.as_bytes() {
            [first, second, _, ..] if first < 128 && second < 128 => {
                self.seconds[usize::from(first)] |= 1 << second;
            }
            // The stem of two letters may have another second letter than the word: `eyed` gives `ei`.
            [first, ..] if first < 128 => self.seconds[usize::from(first)] = u128::MAX,
            // Words that start outside ASCII are never rejected.
            _ => {}
        }
    }

    /// Returns false if no added word starts with these bytes.
    #[inline]
    fn may_contain(&self, bytes: &[u8]) -> bool {
        let lower = |byte: u8| usize::from(byte.to_ascii_lowercase());
        match *bytes {
            [first, second, ..] if first < 128 && second.is_ascii_alphanumeric() => {
                self.seconds[lower(first)] >> lower(second) & 1 == 1
            }
            // Lower case or removed diacritics may change the first two bytes of a non-ASCII word. One letter is its
            // own stem.
            [first, second, ..] if second < 128 => first >= 128 || self.seconds[lower(first)] != 0,
            [first] if first < 128 => self.seconds[lower(first)] != 0,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts which words of `text` match the query, where a star marks a prefix.
    #[track_caller]
    fn matches_in(query: &[&str], text: &str, expected: &[&str]) {
        let mut dictionary = Dictionary::default();
        for word in query {
            let start = word.strip_suffix('*');
            dictionary.add(start.unwrap_or(word), start.is_some());
        }
        let mut found = Vec::new();
        dictionary.for_each_match(text, |_, token, _| {
            found.push(token.text());
            ControlFlow::Continue(())
        });
        assert_eq!(found, expected, "{query:?}");
    }

    #[test]
    fn words_match_by_stem_and_prefixes_by_spelling() {
        matches_in(&["run"], "Runs ran rün running runner", &["Runs", "rün", "running"]);
        matches_in(&["ei", "c"], "eyed eye C cc", &["eyed", "C"]);
        matches_in(&["ru*", "e*"], "run rye Étage", &["run", "Étage"]);
        let net = normalize(".NET");
        matches_in(&[&net], "a .NET net", &[".NET"]);
        matches_in(&[&net], "é .NET net", &[".NET"]);
    }

    #[test]
    fn some_stems_match_only_with_their_signs() {
        let mut dictionary = Dictionary::default();
        let (any, bare) = (dictionary.add("ก", false), dictionary.add_spelled("ก", ""));
        let kii = dictionary.add_spelled("ก", "ี่");
        let mut found = Vec::new();
        dictionary.for_each_match("กี่ ก่ี กี ก", |position, _, word| {
            found.push((position, word));
            ControlFlow::Continue(())
        });
        let expected = [(0, any), (0, kii), (1, any), (1, kii), (2, any), (3, any), (3, bare)];
        assert_eq!(found, expected);
    }

    #[test]
    fn positions_count_all_words() {
        let mut dictionary = Dictionary::default();
        dictionary.add("fox", false);
        for text in
            ["a fox, 3.14 fo FOX", "a fox, 3.14 fo FOX é", &format!("{}fox", "a-b ".repeat(99))]
        {
            let mut positions = Vec::new();
            let count = dictionary.for_each_match(text, |position, _, _| {
                positions.push(position);
                ControlFlow::Continue(())
            });
            let is_fox = |(position, token): (usize, Token<'_>)| {
                (token.normalized() == "fox").then_some(position)
            };
            let expected: Vec<_> = tokens(text).enumerate().filter_map(is_fox).collect();
            assert_eq!((positions, count), (expected, tokens(text).count()), "{text}");
        }
    }
}
