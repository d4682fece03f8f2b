//! English stop words.
//!
//! Words are compared by spelling, not by stem: `being` and `be` are stop words, `beings` is not. The list was tuned
//! on real questions. It has the parts of `don't` and `we'll` after the apostrophe.

use std::collections::HashSet;
use std::sync::LazyLock;

const STOP_WORDS: &str = "\
a about after again against all am an and any are as at be because been before being below between both but by can could \
did do does doing don down during each few for from further had has have having he her here hers herself him himself his \
how i if in into is it its itself just let me more most my myself no nor not now of off on once only or other our ours \
ourselves out over own please same shall she should so some such than that the their theirs them themselves then there \
these they this those through to too under until up us very was we were what when where which while who whom whose why \
will with would you your yours yourself yourselves s t d ll m re ve ago last past many much long often";

static STOP_SET: LazyLock<HashSet<&str>> =
    LazyLock::new(|| STOP_WORDS.split_ascii_whitespace().collect());

/// Returns whether a normalized word is a stop word.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_SET.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_compared_by_spelling() {
        for (word, expected) in [
            ("the", true),
            ("being", true),
            ("beings", false),
            ("ll", true),
            ("may", false),
            ("", false),
        ] {
            assert_eq!(is_stop_word(word), expected, "{word}");
        }
    }
}
