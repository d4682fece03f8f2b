//! The stop words of each language.
//!
//! Stop words are compared by spelling, not by stem: `being` and `be` are stop words of English, `beings` is not. Each
//! list is that of one language, because one language's stop word is another one's noun: German `die`, Dutch `hoe`,
//! English `die` and `hoe`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Language::{self, *};
use super::{language, votes};
use crate::token::{normal_form, tokens};

/// The longest stop word, in bytes.
const MAX_WORD_BYTES: usize = 24;

/// The stop words of each language that they tell, a line each.
///
/// English was tuned on real questions, and has the parts of `don't` and `we'll` after the apostrophe.
const STOP_WORDS: &str = include_str!("stop_words.txt");

/// Returns each language that has stop words, with these.
fn lists() -> impl Iterator<Item = (Language, &'static str)> {
    STOP_WORDS.lines().filter_map(|line| {
        let (name, words) = line.split_once(": ")?;
        let language = Language::ALL.iter().find(|language| format!("{language:?}") == name)?;
        Some((*language, words))
    })
}

/// The stop words of all languages by their normalized spelling, with the languages that have each.
static STOPS: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    let mut stops = HashMap::new();
    for (language, words) in lists() {
        for token in tokens(words) {
            *stops.entry(token.form().into_owned()).or_default() |= language.bit();
        }
    }
    stops
});

/// Returns the languages that have the word as a stop word.
pub(super) fn stop_votes(word: &str) -> u32 {
    if word.len() > MAX_WORD_BYTES {
        return 0;
    }
    STOPS.get(normal_form(word).as_ref()).copied().unwrap_or_default()
}

/// The stop words of one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopWords(u32);

impl StopWords {
    /// Returns the stop words of the language in which `text` is written; those of English if it tells none.
    ///
    /// A text in another script may have English words in it, which are no words of its own language.
    #[must_use]
    pub fn of(text: &str) -> Self {
        // One word is too little to take it for a stop word of another language: `todo` is not Spanish in most queries.
        let is_clear = |own: &Language| {
            own.bit() & Language::LATIN == 0
                || votes(tokens(text).map(|token| token.text())).of[*own as usize] > 1
        };
        let own = language(text).filter(is_clear).map_or(English.bit(), Language::bit);
        Self(if own & Language::LATIN == 0 { own | English.bit() } else { own })
    }

    /// Returns whether a normalized word is one of them.
    #[must_use]
    pub fn contains(self, word: &str) -> bool {
        STOPS.get(word).is_some_and(|languages| languages & self.0 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_those_of_the_language_of_the_text() {
        let is_stop = |text: &str, word: &str| StopWords::of(text).contains(word);
        for (text, word, expected) in [
            ("what did they die of", "they", true),
            ("what did they die of", "die", false),
            ("wo ist die Katze", "die", true),
            ("wo ist die Katze", "of", false),
            ("waar is de hoe", "hoe", true),
            ("a hoe and an axe", "hoe", false),
            ("где the ключи", "the", true),
            ("Sicherheitsprüfung Todo hinzufügen", "todo", false),
            ("todo hinzu", "todo", false),
            ("being", "being", true),
            ("beings", "beings", false),
            ("", "the", true),
        ] {
            assert_eq!(is_stop(text, word), expected, "{text}: {word}");
        }
    }

    #[test]
    fn every_list_has_enough_words_and_every_language_its_place() {
        assert_eq!(lists().count(), 25);
        assert!(lists().all(|(_, words)| words.split_whitespace().count() >= 40));
        assert!(Language::ALL.iter().enumerate().all(|(at, language)| *language as usize == at));
        assert!(STOPS.keys().all(|word| word.len() <= MAX_WORD_BYTES));
        assert_eq!(Language::LATIN.count_ones(), 18);
    }
}
