//! Splits a text into normalized words as the index does.
//!
//! SQLite tokenizes what it indexes; ranking, snippets and the query language need the same words in Rust.
//!
//! Invariant: [`tokens`] yields what `unicode61 remove_diacritics 2 categories 'L* N* Co So'` makes of the
//! [segmented](crate::search::script::segment) text, in the same order. Only the lower case of capitals that SQLite's
//! older tables do not know may differ. The index also has the parts of identifiers after the text, which
//! [`identifiers`](crate::search::identifiers) finds. Ranges are those of the original text.

use std::borrow::Cow;
use std::ops::Range;

use crate::search::folding::{folded, is_left_out, voiced_pair};
use crate::search::identifiers::marked_at;
use crate::search::script::is_unigram;
use crate::search::unicode_tables::{DIACRITICS, MARKS, SEPARATORS, SIGNS, base_letter, contains};

/// A word of a text, or a unigram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    start: usize,
    text: &'a str,
    /// The word and everything after it.
    rest: &'a str,
}

impl<'a> Token<'a> {
    /// Returns the word as written.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the word from its letters on: without the dot of `.NET`.
    pub(crate) fn letters(&self) -> &'a str {
        self.text.strip_prefix('.').unwrap_or(self.text)
    }

    /// Returns the byte range of the word in the text.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Returns the vowel signs and other marks that follow the word. The index does not have them.
    pub(crate) fn signs(&self) -> &'a str {
        let after = &self.rest[self.text.len()..];
        &after[..after.find(|c| !is_sign(c)).unwrap_or(after.len())]
    }

    /// Returns the word as written, with its signs.
    pub(crate) fn with_signs(&self) -> &'a str {
        &self.rest[..self.text.len() + self.signs().len()]
    }

    /// Returns the word in the spelling of the index.
    pub(crate) fn normalized(&self) -> Cow<'a, str> {
        normalize(self.text)
    }

    /// Returns whether this is a unigram: one character of a script written without spaces, or a symbol.
    pub(crate) fn is_unigram(&self) -> bool {
        self.text.chars().next().is_some_and(is_unigram)
    }
}

/// Returns the words of `text` in order.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let token = token_at(text, at + skip_separators(&text[at..])?);
        at = token.range().end;
        Some(token)
    })
}

/// Returns the word whose letters start at `start`. The dot of `.NET` is part of it.
pub(crate) fn token_at(text: &str, start: usize) -> Token<'_> {
    let len = token_len(&text[start..]);
    if matches!(len, 1 | 3)
        && let Some(range) = marked_at(text, start)
    {
        let rest = &text[range.start..];
        return Token { start: range.start, text: &text[range], rest };
    }
    let rest = &text[start..];
    Token { start, text: &rest[..len], rest }
}

/// Calls `take` with the start of each word of an ASCII text until it returns true.
///
/// Several times as fast as [`tokens`], because no branch depends on the text.
pub(crate) fn ascii_starts(text: &[u8], mut take: impl FnMut(usize) -> bool) {
    let mut before = 0;
    for (number, block) in text.chunks(64).enumerate() {
        let mut flags = [0; 64];
        for (flag, byte) in flags.iter_mut().zip(block) {
            *flag = u8::from(byte.is_ascii_alphanumeric());
        }
        let letters = bits(&flags);
        let mut starts = letters & !(letters << 1 | before);
        before = letters >> 63;
        while starts != 0 {
            if take(number * 64 + starts.trailing_zeros() as usize) {
                return;
            }
            starts &= starts - 1;
        }
    }
}

/// Calls `take` with the range of each run of ASCII letters and digits.
///
/// Several times as fast as [`tokens`], because no branch depends on the letters.
pub(crate) fn ascii_words(text: &[u8], mut take: impl FnMut(Range<usize>)) {
    let (mut before, mut start) = (0, None);
    for (number, block) in text.chunks(64).enumerate() {
        let mut flags = [0; 64];
        for (flag, byte) in flags.iter_mut().zip(block) {
            *flag = u8::from(byte.is_ascii_alphanumeric());
        }
        let letters = bits(&flags);
        let mut edges = letters ^ (letters << 1 | before);
        before = letters >> 63;
        while edges != 0 {
            let at = number * 64 + edges.trailing_zeros() as usize;
            start = match start {
                Some(start) => {
                    take(start..at);
                    None
                }
                None => Some(at),
            };
            edges &= edges - 1;
        }
    }
    if let Some(start) = start {
        take(start..text.len());
    }
}

/// Packs 64 flags, each 0 or 1, into the bits of an integer.
pub(crate) fn bits(flags: &[u8; 64]) -> u64 {
    // The multiplication collects the lowest bits of eight bytes in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = flags.as_chunks();
    let byte = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
    eights.iter().enumerate().fold(0, |bits, (at, eight)| bits | byte(eight) << (8 * at))
}

/// Returns the number of bytes before the first token, if there is one.
#[inline]
fn skip_separators(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        // Most characters are ASCII and need no table.
        let byte = *text.as_bytes().get(at)?;
        if byte.is_ascii_alphanumeric() {
            return Some(at);
        }
        at += if byte.is_ascii() {
            1
        } else {
            let c = text[at..].chars().next()?;
            if is_token(c) {
                return Some(at);
            }
            c.len_utf8()
        };
    }
}

/// Returns the length in bytes of the token at the start of `text`.
#[inline]
fn token_len(text: &str) -> usize {
    let mut at = 0;
    loop {
        let is_letter = u8::is_ascii_alphanumeric;
        at += text.as_bytes()[at..].iter().take_while(|byte| is_letter(byte)).count();
        let Some(c) = text[at..].chars().next().filter(|c| !c.is_ascii()) else { return at };
        if is_unigram(c) {
            return if at == 0 { unigram_len(text, c) } else { at };
        }
        if !is_token(c) && !contains(MARKS, c) && !is_left_out(c) {
            return at;
        }
        at += c.len_utf8();
    }
}

/// Returns the length of a unigram at the start of `text`, with its voicing mark.
fn unigram_len(text: &str, c: char) -> usize {
    let len = c.len_utf8();
    let mark = text[len..].chars().next().filter(|&mark| voiced_pair(c, mark).is_some());
    len + mark.map_or(0, char::len_utf8)
}

/// Returns whether `c` is part of a word.
pub(crate) fn is_token(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric()
    } else {
        is_plain_letter(c) || !contains(SEPARATORS, c) && !is_left_out(c)
    }
}

/// Returns whether `c` is a vowel sign or another mark of a letter: of Thai, Lao, Khmer, Myanmar, Tibetan and the scripts of
/// India. To the index it is a separator.
pub(crate) fn is_sign(c: char) -> bool {
    matches!(c, '\u{900}'..='\u{17DD}') && contains(SIGNS, c)
}

/// Returns whether `c` is white space or a control character.
///
/// No control character is part of a word, and none may reach FTS5 or a terminal.
pub(crate) fn is_space_or_control(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Returns whether `c` is a letter without case and diacritics that needs no table: Han, Yi and Hangul, which are most
/// unigrams.
fn is_plain_letter(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{A48C}' | '\u{AC00}'..='\u{D7A3}')
}

/// Returns `word` as the index spells it: in lower case, without diacritics, vowel signs and tone marks.
pub(crate) fn normalize(word: &str) -> Cow<'_, str> {
    let folded = folded(word);
    if folded.is_ascii() {
        return match folded.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(folded.to_ascii_lowercase()),
            false => folded,
        };
    }
    if folded.chars().all(is_plain_letter) {
        return folded;
    }
    let is_kept = |c: &char| c.is_ascii() || !contains(MARKS, *c) && !is_sign(*c);
    Cow::Owned(folded.chars().filter(is_kept).map(normalize_char).collect())
}

fn normalize_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    // If the lower case has two characters, the second is a combining mark.
    let lower = match c {
        'ς' => 'σ',
        'µ' => 'μ',
        'ϐ' => 'β',
        'ϑ' => 'θ',
        'ϕ' => 'φ',
        'ϖ' => 'π',
        'ϰ' => 'κ',
        'ϱ' => 'ρ',
        'ϵ' => 'ε',
        '\u{1FBE}' => 'ι',
        _ => c.to_lowercase().next().unwrap_or(c),
    };
    base_letter(DIACRITICS, lower).unwrap_or(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the normalized words of `text`, joined with blanks.
    #[track_caller]
    fn drawn(text: &str, expected: &str) {
        let words: Vec<_> = tokens(text).map(|token| token.normalized().into_owned()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn ascii_starts_are_the_starts_of_the_tokens() {
        let long = "ab c, -d\n".repeat(50);
        for text in [
            "",
            "a",
            " ",
            "a b",
            "  ab--cd 9",
            &long,
            &long[3..],
            &"x".repeat(128),
            &"x".repeat(130),
        ] {
            let mut starts = Vec::new();
            ascii_starts(text.as_bytes(), |start| {
                starts.push(start);
                false
            });
            let expected: Vec<_> = tokens(text).map(|token| token.range().start).collect();
            assert_eq!(starts, expected, "{text:?}");
            let mut words = Vec::new();
            ascii_words(text.as_bytes(), |range| words.push(range));
            let expected: Vec<_> = tokens(text).map(|token| token.range()).collect();
            assert_eq!(words, expected, "{text:?}");
        }
    }

    #[test]
    fn punctuation_separates_words() {
        drawn("foo-bar foo_bar user@host 3.14 don't", "foo bar foo bar user host 3 14 don t");
        drawn("\0 \u{200B}\u{FEFF}a\u{7}b", "a b");
        drawn("", "");
        drawn("?!…—", "");
    }

    #[test]
    fn case_and_latin_diacritics_are_removed() {
        drawn("Déjà VU Ångström ÑANDÚ e\u{301}te\u{301}", "deja vu angstrom nandu ete");
        drawn("ΣΟΦΌΣ Привет İstanbul", "σοφοσ привет istanbul");
    }

    #[test]
    fn some_words_have_a_sign() {
        let signs = ['\u{FDD01}', '\u{FDD02}', '\u{FDD03}'];
        let [plus, sharp, dot] = signs;
        drawn("C++17, C#; .NET c d#e", &format!("c{plus} 17 c{sharp} net{dot} c d e"));
        let text = "(C++) .NET";
        let words: Vec<_> = tokens(text).map(|token| &text[token.range()]).collect();
        assert_eq!(words, ["C++", ".NET"]);
    }

    #[test]
    fn spellings_are_folded() {
        drawn("Straße Łódź ЁЛКА ＡＰＩ v２", "strasse lodz елка api v2");
        drawn("עָלֶיךָ ســـلام sha\u{AD}re", "עליך سلام share");
        drawn("電腦ｶﾞﾗｽ ๒๕๖๗ปี", "电 脑 ガ ラ ス 2567 ป");
    }

    #[test]
    fn a_combining_mark_alone_is_not_a_word() {
        drawn("\u{301} a", "a");
        drawn("北\u{301}京", "北 京");
    }

    #[test]
    fn each_unigram_is_a_token() {
        drawn("Rust语言book", "rust 语 言 book");
        drawn("か\u{3099}👍🏽 20°C", "が 👍 🏽 20 ° c");
        drawn("กี่ มี", "ก ม");
    }

    #[test]
    fn signs_follow_a_word() {
        let signs: Vec<_> = tokens("กี่ ดีx मेल e\u{301}").map(|token| token.signs()).collect();
        assert_eq!(signs, ["ี่", "ี", "", "े", "", ""]);
        let words: Vec<_> = tokens("กี่ नमस्ते").map(|token| token.with_signs()).collect();
        assert_eq!(words, ["กี่", "नमस्", "ते"]);
    }

    /// So a word with its signs is of one kind: all of its characters are unigrams, or none is.
    #[test]
    fn signs_are_no_tokens_and_those_of_unigrams_are_in_their_table() {
        for c in '\u{900}'..'\u{1800}' {
            assert!(!is_sign(c) || !is_token(c) && is_unigram(c) == (c >= '\u{E00}'), "{c:?}");
        }
    }

    #[test]
    fn ranges_are_those_of_the_original_text() {
        let text = "«Été» 北x ｶﾞ عَرَب";
        let words: Vec<_> = tokens(text).map(|token| &text[token.range()]).collect();
        assert_eq!(words, ["Été", "北", "x", "ｶﾞ", "عَرَب"]);
    }

    #[test]
    fn unigrams_are_recognized() {
        let flags: Vec<_> = tokens("a北é").map(|token| token.is_unigram()).collect();
        assert_eq!(flags, [false, true, false]);
    }
}
