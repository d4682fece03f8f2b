//! Prefix search in an index of stems.
//!
//! The index holds the stem `run` for `running`, and FTS5 stems a prefix like a word: `runn*` would not match
//! `running`, and `play*` would be looked up as `plai*` and miss `player`. Two measures correct this. A prefix is
//! *spelled* with a suffix that the stemmer strips (`playe*` is looked up as `play*`). And its *completions* are
//! searched too: words that start with the prefix but whose stems do not. Such a stem has other words as well, so
//! `runn*` also finds `run`.

use crate::search::folding::folded;
use crate::search::stemmer::stem;
use crate::search::tokenizer::normalize;

/// Suffixes that the stemmer strips or changes.
#[rustfmt::skip]
const ENDINGS: &[&str] = &[
    "s", "es", "ed", "ing", "er", "ers", "ly", "y", "ies", "ied", "al", "ally", "ance", "ence", "ation", "ations", "able",
    "ible", "ant", "ent", "ement", "ment", "ments", "ion", "ions", "ism", "ate", "ated", "ating", "ator", "ity", "ities",
    "ous", "ously", "ive", "ively", "iveness", "ize", "ized", "izing", "izer", "ization", "ic", "ical", "ically", "ful",
    "fulness", "ness", "ability", "ibility", "alism", "ality", "alize", "ogy", "icate", "icity", "ousness", "ational",
    "ative", "bly", "led", "ling", "e", "ably", "ibly", "ently", "antly", "ancy", "ency", "ist", "ists", "ualization",
];

/// Suffixes to try for a spelling whose stem is the prefix itself.
const PROTECTIONS: &[&str] = &["", "e", "s", "ed", "ing", "ness"];

/// The maximum number of completions of a prefix.
const MAX_COMPLETIONS: usize = 8;

/// The lengths, in bytes, of prefixes that the stemmer can change: shorter ones are their own stem, longer ones are not
/// words.
const STEMMED_BYTES: std::ops::RangeInclusive<usize> = 3..=40;

/// Returns the spelling of `prefix` that FTS5 looks up as the prefix itself.
pub(crate) fn spelling(prefix: &str) -> String {
    let normalized = normalize(prefix);
    if !normalized.is_ascii() || !STEMMED_BYTES.contains(&normalized.len()) {
        return folded(prefix).into_owned();
    }
    let spellings = PROTECTIONS.iter().map(|ending| format!("{normalized}{ending}"));
    let stemmed = spellings.into_iter().find(|word| stem(word) == normalized);
    stemmed.unwrap_or_else(|| folded(prefix).into_owned())
}

/// Returns words that start with `prefix` but whose stems do not.
pub(crate) fn completions(prefix: &str) -> Vec<String> {
    let prefix = normalize(prefix);
    if !prefix.is_ascii() || !STEMMED_BYTES.contains(&prefix.len()) {
        return Vec::new();
    }
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |word: String| {
        let stem = stem(&word).into_owned();
        // The stemmer takes a digit for a consonant, which it does not double: `k77ed` has the stem `k7`. Nobody writes that,
        // but `k77*` would find `k7`.
        let is_undoubled_digit =
            word != prefix && stem.ends_with(|last: char| last.is_ascii_digit());
        if is_undoubled_digit {
            return;
        }
        if !stem.starts_with(prefix.as_ref()) && found.iter().all(|(_, known)| *known != stem) {
            found.push((word, stem));
        }
    };
    add(prefix.clone().into_owned());
    for ending in ENDINGS {
        // The prefix may end inside the suffix: `runni` + `ng`.
        for typed in (0..ending.len())
            .filter(|&typed| prefix.len() > typed && prefix.ends_with(&ending[..typed]))
        {
            add(format!("{prefix}{}", &ending[typed..]));
        }
    }
    // A longer stem is more specific.
    found.sort_by_key(|(_, stem)| std::cmp::Reverse(stem.len()));
    found.truncate(MAX_COMPLETIONS);
    found.into_iter().map(|(word, _)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a search for `prefix` finds the stem of `word`.
    #[track_caller]
    fn reaches(prefix: &str, word: &str) {
        let word = stem(word);
        let is_reached = word.starts_with(stem(&spelling(prefix)).as_ref())
            || completions(prefix).iter().any(|found| stem(found) == word);
        assert!(is_reached, "{prefix} {word} {} {:?}", spelling(prefix), completions(prefix));
    }

    #[test]
    fn a_spelling_stems_to_the_prefix() {
        for prefix in
            ["play", "runn", "running", "happy", "keys", "try", "deploy", "comp", "cos", "stas"]
        {
            assert_eq!(stem(&spelling(prefix)), prefix);
        }
        assert_eq!(spelling("É北"), "É北");
    }

    #[test]
    fn a_prefix_finds_words_whose_stem_is_shorter_or_different() {
        reaches("runn", "running");
        reaches("runni", "running");
        reaches("running", "running");
        reaches("play", "player");
        reaches("play", "playground");
        reaches("play", "play");
        reaches("deploy", "deployment");
        reaches("generaliz", "generalization");
        reaches("generaliza", "generalization");
        reaches("happine", "happiness");
        reaches("comp", "compaction");
        reaches("compani", "companies");
    }

    #[test]
    fn words_that_the_prefix_itself_finds_are_not_completions() {
        for prefix in ["comp", "he", "北京", "é", "", "x"] {
            assert_eq!(completions(prefix), [""; 0], "{prefix}");
        }
    }

    /// `k77*` found `k7`, with a score of 0.
    #[test]
    fn no_completion_has_fewer_digits_than_the_prefix() {
        for prefix in ["w0o3m77", "k77", "2024-11", "a00", "x1y22"] {
            assert_eq!(completions(prefix), [""; 0], "{prefix}");
        }
        reaches("mp3s", "mp3s");
        reaches("k77", "k77");
    }

    #[test]
    fn completions_are_limited() {
        for prefix in ["nationali", "organizat", "aaa", "yyy", "sss", "ion"] {
            assert!(completions(prefix).len() <= MAX_COMPLETIONS);
        }
    }
}
