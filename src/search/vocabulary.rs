//! Which words of a text are in the vocabulary of a store.
//!
//! The vocabulary has words as people write them, normalized but not stemmed: it serves other spellings and other forms
//! of a word. So it has neither single characters of scripts written without spaces, nor numbers, hashes and ids.

use std::borrow::Cow;

use super::identifiers::{self, Special};
use super::language::{Language, language_of};
use super::script::is_unigram;
use super::tokenizer::{ascii_words, normalize, tokens};
use super::word::Word;

/// The lengths, in characters, of words in the vocabulary: longer ones are no words of a language.
const CHARS: std::ops::RangeInclusive<usize> = 2..=40;
/// A word with more digits is an id or a hash. Names such as `parseargs2` and `sha256` have fewer.
const MAX_DIGITS: usize = 4;

/// The words of a text, as written.
pub(crate) struct Words<'a> {
    /// Unigrams are among them.
    words: Vec<Word<'a>>,
    /// The parts of its identifiers.
    parts: Vec<Word<'a>>,
}

impl<'a> Words<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let (mut parts, mut has_marked) = (Vec::new(), false);
        identifiers::each(text, |special| match special {
            Special::Run(ranges) => {
                parts.extend(ranges.into_iter().map(|range| Word::at(text, range)))
            }
            Special::Marked(_) => has_marked = true,
        });
        let mut words = Vec::with_capacity(text.len() / 6);
        if text.is_ascii() && !has_marked {
            ascii_words(text.as_bytes(), |range| words.push(Word::at(text, range)));
        } else {
            words.extend(tokens(text).map(|token| Word::at(text, token.range())));
        }
        Self { words, parts }
    }

    pub(crate) fn language(&self) -> Option<Language> {
        language_of(&self.words)
    }

    /// Calls `take` with the words that may be in the vocabulary: [`entry`] decides. A word of one byte is never in it.
    pub(crate) fn each_candidate(&self, mut take: impl FnMut(Word<'a>)) {
        for word in self.words.iter().chain(&self.parts) {
            let is_unigram = || word.text.chars().next().is_some_and(is_unigram);
            if word.text.len() > 1 && (word.short.is_some() || !is_unigram()) {
                take(*word);
            }
        }
    }
}

/// Returns a word as the vocabulary has it; `None` if it has no such words.
pub(crate) fn entry(word: &str) -> Option<Cow<'_, str>> {
    let normalized = normalize(word);
    is_word(&normalized).then_some(normalized)
}

/// Returns whether the vocabulary may have this normalized word.
fn is_word(normalized: &str) -> bool {
    let digits = normalized.chars().filter(|c| c.is_numeric()).count();
    let chars = normalized.chars().count();
    CHARS.contains(&chars)
        && digits <= MAX_DIGITS
        && digits < chars
        && !normalized.chars().next().is_some_and(is_unigram)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the words of `text`, joined with blanks.
    #[track_caller]
    fn drawn(text: &str, expected: &str) {
        let mut words = Vec::new();
        Words::of(text).each_candidate(|word| words.extend(entry(word.text)));
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn words_are_normalized_and_not_stemmed() {
        drawn("Running Déjà-vu, user_by_id", "running deja vu user by id");
        drawn("HttpRequest Straße", "httprequest strasse http request");
    }

    #[test]
    fn numbers_hashes_and_unigrams_are_no_words() {
        drawn("a 42 sha256 0e96b15f43 北京 Rust语言 😀", "sha256 rust");
        drawn(&format!("{} {}", "x".repeat(40), "y".repeat(41)), &"x".repeat(40));
    }
}
