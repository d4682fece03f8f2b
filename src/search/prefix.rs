//! Prefixes in an index of stems.
//!
//! The index holds `run` for `running`, and FTS5 stems a prefix as it does a word: `runn*` would find nothing, and `play*`,
//! looked up as `plai*`, no `player`. So a prefix is *spelled* with an ending that the stemmer takes off again
//! (`playe*` is looked up as `play*`), and it is looked for together with the words it may be the start of whose stems
//! do not start with it. Such a stem stands for other words too: `runn*` also finds `run`.

use crate::search::stem::stem;
use crate::search::token::fold;

/// Endings a word may have that its stem has not.
#[rustfmt::skip]
const ENDINGS: &[&str] = &[
    "s", "es", "ed", "ing", "er", "ers", "ly", "y", "ies", "ied", "al", "ally", "ance", "ence", "ation", "ations", "able",
    "ible", "ant", "ent", "ement", "ment", "ments", "ion", "ions", "ism", "ate", "ated", "ating", "ator", "ity", "ities",
    "ous", "ously", "ive", "ively", "iveness", "ize", "ized", "izing", "izer", "ization", "ic", "ical", "ically", "ful",
    "fulness", "ness", "ability", "ibility", "alism", "ality", "alize", "ogy", "icate", "icity", "ousness", "ational",
    "ative", "bly", "led", "ling", "e", "ably", "ibly", "ently", "antly", "ancy", "ency", "ist", "ists", "ualization",
];

/// Endings the stemmer takes off, to be tried for a spelling that stems to the prefix itself.
const PROTECTIONS: &[&str] = &["", "e", "s", "ed", "ing", "ness"];

/// Most words looked for beside a prefix.
const MAX_COMPLETIONS: usize = 8;

/// Lengths, in bytes, of prefixes that stemming can get in the way of: shorter ones stem to themselves, longer ones are
/// no words.
const STEMMED_BYTES: std::ops::RangeInclusive<usize> = 3..=40;

/// Returns how `prefix` is to be written for FTS5 so that it is looked up as it stands.
pub(crate) fn spelling(prefix: &str) -> String {
    let folded = fold(prefix);
    if !folded.is_ascii() || !STEMMED_BYTES.contains(&folded.len()) {
        return prefix.to_owned();
    }
    let spellings = PROTECTIONS.iter().map(|ending| format!("{folded}{ending}"));
    spellings.into_iter().find(|word| stem(word) == folded).unwrap_or_else(|| prefix.to_owned())
}

/// Returns words that `prefix` may be the start of, and whose stems do not start with it.
pub(crate) fn completions(prefix: &str) -> Vec<String> {
    let prefix = fold(prefix);
    if !prefix.is_ascii() || !STEMMED_BYTES.contains(&prefix.len()) {
        return Vec::new();
    }
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |word: String| {
        let stem = stem(&word).into_owned();
        if !stem.starts_with(prefix.as_ref()) && found.iter().all(|(_, known)| *known != stem) {
            found.push((word, stem));
        }
    };
    add(prefix.clone().into_owned());
    for ending in ENDINGS {
        // The prefix may end inside the ending: `runni` + `ng`.
        for typed in (0..ending.len())
            .filter(|&typed| prefix.len() > typed && prefix.ends_with(&ending[..typed]))
        {
            add(format!("{prefix}{}", &ending[typed..]));
        }
    }
    // The longest stems say most about the word that was meant.
    found.sort_by_key(|(_, stem)| std::cmp::Reverse(stem.len()));
    found.truncate(MAX_COMPLETIONS);
    found.into_iter().map(|(word, _)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds that looking for `prefix` reaches the stem of `word`.
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
    fn a_prefix_reaches_words_whose_stem_is_shorter_or_other() {
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
    fn what_the_prefix_finds_itself_is_not_added() {
        for prefix in ["comp", "he", "北京", "é", "", "x"] {
            assert_eq!(completions(prefix), [""; 0], "{prefix}");
        }
    }

    #[test]
    fn completions_are_few() {
        for prefix in ["nationali", "organizat", "aaa", "yyy", "sss", "ion"] {
            assert!(completions(prefix).len() <= MAX_COMPLETIONS);
        }
    }
}
