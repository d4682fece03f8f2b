//! Which words of a text are in the vocabulary of a store.
//!
//! The vocabulary has words as people write them, normalized but not stemmed: it serves other spellings and other forms
//! of a word. So it has neither single characters of scripts written without spaces, nor numbers, hashes and ids.

use std::borrow::Cow;

use super::identifiers::{self, Special};
use super::script::is_unigram;
use super::tokenizer::{normalize, tokens};

/// The lengths, in characters, of words in the vocabulary: longer ones are no words of a language.
const CHARS: std::ops::RangeInclusive<usize> = 2..=40;
/// A word with more digits is an id or a hash. Names such as `parseargs2` and `sha256` have fewer.
const MAX_DIGITS: usize = 4;

/// Returns the words of `text` that may be in the vocabulary, as written, and the parts of its identifiers: [`entry`]
/// decides. A word of one byte is never in it.
pub(crate) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let mut parts = Vec::new();
    identifiers::each(text, |special| {
        if let Special::Run(ranges) = special {
            parts.extend(ranges.into_iter().map(|range| &text[range]));
        }
    });
    let words = tokens(text).filter(|token| !token.is_unigram()).map(|token| token.text());
    words.chain(parts).filter(|word| word.len() > 1)
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
        let words: Vec<_> = candidates(text).filter_map(entry).collect();
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
