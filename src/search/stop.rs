//! Words that say nothing about what is looked for.
//!
//! They are told by their spelling, not by their stem: `being` goes and `be` goes, `beings` stays. The list was
//! measured with real questions; what is left of `don't` or `we'll` after the apostrophe is in it.

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

/// Returns whether a folded word says nothing about what is looked for.
pub(crate) fn is_stop(word: &str) -> bool {
    STOP_SET.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_words_are_told_by_their_spelling() {
        for (word, expected) in [
            ("the", true),
            ("being", true),
            ("beings", false),
            ("ll", true),
            ("may", false),
            ("", false),
        ] {
            assert_eq!(is_stop(word), expected, "{word}");
        }
    }
}
