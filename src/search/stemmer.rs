//! The Porter stemmer, as FTS5's `porter` tokenizer applies it.
//!
//! Ranking and snippets compare words outside the index, so they need the stems of the index. The steps and their names
//! are those of M. F. Porter, "An algorithm for suffix stripping", Program 14 (1980), with the two changes that all
//! implementations share (`bli` for `abli`, and `logi`) and the deviations of FTS5.

use std::borrow::Cow;

/// The shortest and the longest word, in bytes, that FTS5 stems.
const STEMMED_BYTES: std::ops::RangeInclusive<usize> = 3..=64;

/// A suffix and its replacement.
type Rule = (&'static str, &'static str);

#[rustfmt::skip]
const STEP_2: &[Rule] = &[
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("logi", "log"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
];

#[rustfmt::skip]
const STEP_3: &[Rule] = &[
    ("ical", "ic"), ("ness", ""), ("icate", "ic"), ("iciti", "ic"), ("ful", ""), ("ative", ""), ("alize", "al"),
];

#[rustfmt::skip]
const STEP_4: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
];

/// Returns the stem of a normalized word: `"running"` gives `"run"`.
///
/// Words under 3 and over 64 bytes are their own stem. Only ASCII suffixes are stripped.
#[must_use]
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if !STEMMED_BYTES.contains(&word.len()) {
        return Cow::Borrowed(word);
    }
    let mut word = Cow::Borrowed(word);
    plural(&mut word);
    past(&mut word);
    if word.ends_with('y') && has_vowel(&word[..word.len() - 1]) {
        replace(&mut word, 1, "i");
    }
    longest_rule(&mut word, STEP_2);
    longest_rule(&mut word, STEP_3);
    residue(&mut word);
    final_letters(&mut word);
    word
}

/// Step 1a: plurals.
fn plural(word: &mut Cow<'_, str>) {
    let length = word.len();
    if (word.ends_with("sses") && length > 4) || (word.ends_with("ies") && length > 3) {
        replace(word, 2, "");
    } else if word.ends_with('s') && !word.ends_with("ss") {
        replace(word, 1, "");
    }
}

/// Step 1b: `-eed`, `-ed` and `-ing`, and repairs of the stem.
fn past(word: &mut Cow<'_, str>) {
    let cut = if let Some(stem) = before(word, "eed") {
        if measure(stem) > 0 {
            replace(word, 1, "");
        }
        return;
    } else if before(word, "ed").is_some_and(has_vowel) {
        2
    } else if before(word, "ing").is_some_and(has_vowel) {
        3
    } else {
        return;
    };
    replace(word, cut, "");
    let is_cut_short = ["at", "bl", "iz"].iter().any(|end| before(word, end).is_some());
    if is_cut_short {
        replace(word, 0, "e");
        return;
    }
    let bytes = word.as_bytes();
    let double = match bytes {
        [.., a, b] if a == b => {
            !matches!(b, b'a' | b'e' | b'i' | b'o' | b'u' | b'l' | b's' | b'z') && b.is_ascii()
        }
        _ => false,
    };
    if double {
        replace(word, 1, "");
    } else if measure(word) == 1 && ends_short(bytes) {
        replace(word, 0, "e");
    }
}

/// Steps 2 and 3: replaces the longest matching suffix if the rest has a syllable.
fn longest_rule(word: &mut Cow<'_, str>, rules: &[Rule]) {
    let fitting = rules.iter().filter(|(suffix, _)| before(word, suffix).is_some());
    let Some((suffix, replacement)) = fitting.max_by_key(|(suffix, _)| suffix.len()) else {
        return;
    };
    if measure(&word[..word.len() - suffix.len()]) > 0 {
        replace(word, suffix.len(), replacement);
    }
}

/// Step 4: strips the longest matching suffix if the rest has two syllables.
fn residue(word: &mut Cow<'_, str>) {
    let fitting = STEP_4.iter().filter(|suffix| before(word, suffix).is_some());
    let Some(suffix) = fitting.max_by_key(|suffix| suffix.len()) else { return };
    let rest = &word[..word.len() - suffix.len()];
    if measure(rest) > 1 && (*suffix != "ion" || rest.ends_with(['s', 't'])) {
        replace(word, suffix.len(), "");
    }
}

/// Step 5: strips a final `e`, and one `l` of two.
fn final_letters(word: &mut Cow<'_, str>) {
    if let Some(rest) = word.strip_suffix('e') {
        let syllables = measure(rest);
        if syllables > 1 || (syllables == 1 && !ends_short(rest.as_bytes())) {
            replace(word, 1, "");
        }
    }
    if word.ends_with("ll") && measure(&word[..word.len() - 1]) > 1 {
        replace(word, 1, "");
    }
}

/// Replaces the last `count` bytes, all ASCII, with `ending`.
fn replace(word: &mut Cow<'_, str>, count: usize, ending: &str) {
    let kept = word.len() - count;
    match word {
        Cow::Borrowed(text) if ending.is_empty() => *text = &text[..kept],
        _ => {
            let owned = word.to_mut();
            owned.truncate(kept);
            owned.push_str(ending);
        }
    }
}

/// Returns the text before `suffix`, if it is not empty.
fn before<'a>(word: &'a str, suffix: &str) -> Option<&'a str> {
    word.strip_suffix(suffix).filter(|rest| !rest.is_empty())
}

/// Returns for each byte whether it is a vowel. A `y` after a consonant is one; non-ASCII bytes are consonants.
fn vowels(bytes: &[u8]) -> impl Iterator<Item = bool> + '_ {
    let mut after_consonant = false;
    bytes.iter().map(move |byte| {
        let is_vowel =
            matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u') || (*byte == b'y' && after_consonant);
        after_consonant = !is_vowel;
        is_vowel
    })
}

/// Returns the number of vowel-consonant sequences: Porter's `m`.
fn measure(text: &str) -> usize {
    let mut count = 0;
    let mut after_vowel = false;
    for is_vowel in vowels(text.as_bytes()) {
        count += usize::from(after_vowel && !is_vowel);
        after_vowel = is_vowel;
    }
    count
}

/// Porter's `*v*`. Unlike Porter, FTS5 treats every `y` except a leading one as a vowel here.
fn has_vowel(text: &str) -> bool {
    let is_vowel = |(at, byte): (usize, u8)| {
        matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u') || (at > 0 && byte == b'y')
    };
    text.bytes().enumerate().any(is_vowel)
}

/// Porter's `*o`: ends in consonant, vowel, consonant, and the last is not `w`, `x` or `y`.
fn ends_short(bytes: &[u8]) -> bool {
    if matches!(bytes.last(), None | Some(b'w' | b'x' | b'y')) {
        return false;
    }
    let last_three = vowels(bytes).fold([true; 3], |[_, a, b], is_vowel| [a, b, is_vowel]);
    last_three == [false, true, false]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn endings_are_stripped_as_in_porters_paper() {
        for (word, expected) in [
            ("caresses", "caress"), ("ponies", "poni"), ("ties", "ti"), ("cats", "cat"), ("feed", "feed"),
            ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor"), ("sing", "sing"),
            ("conflated", "conflat"), ("troubled", "troubl"), ("sized", "size"), ("hopping", "hop"), ("falling", "fall"),
            ("hissing", "hiss"), ("failing", "fail"), ("filing", "file"), ("happy", "happi"), ("sky", "sky"),
            ("relational", "relat"), ("conditional", "condit"), ("vietnamization", "vietnam"), ("hopefulness", "hope"),
            ("triplicate", "triplic"), ("electrical", "electr"), ("goodness", "good"), ("revival", "reviv"),
            ("replacement", "replac"), ("adoption", "adopt"), ("probate", "probat"), ("rate", "rate"), ("cease", "ceas"),
            ("controll", "control"), ("roll", "roll"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn short_long_and_foreign_words_are_their_own_stem() {
        let long = "s".repeat(65);
        for word in ["", "a", "as", &long, "привет", "北", "😀"] {
            assert!(matches!(stem(word), Cow::Borrowed(same) if same == word));
        }
    }

    #[test]
    fn words_of_mixed_letters_never_panic() {
        for word in
            ["éed", "жing", "ééing", "ßs", "яed", "sses", "ies", "ing", "eed", "yyy", "sss", "éées"]
        {
            let _ = stem(word);
        }
    }
}
