//! Words of a text, split and folded as the index does.
//!
//! The index splits inside SQLite; ranking, snippets and the query language need the same words outside it.
//!
//! Invariant: [`tokens`] yields what `unicode61 remove_diacritics 2 categories 'L* N* Co So'` makes of the
//! [cut](crate::search::script::cut) text, in the same order. Only folding may differ, for capitals that SQLite's older
//! tables do not know.

use std::borrow::Cow;
use std::ops::Range;

use crate::search::script::is_cut;
use crate::search::tables::{DIACRITICS, MARKS, SEPARATORS, contains};

/// A word of a text, or one character of a script written without spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    start: usize,
    text: &'a str,
}

impl<'a> Token<'a> {
    /// Returns the word as it is written.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Returns where the word stands, in bytes of the text.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Returns the word in lower case, without diacritics.
    pub(crate) fn folded(&self) -> Cow<'a, str> {
        fold(self.text)
    }

    /// Returns whether this is one character of a script written without spaces, or a symbol.
    pub(crate) fn is_cut(&self) -> bool {
        self.text.chars().next().is_some_and(is_cut)
    }
}

/// Returns the words of `text`, first to last.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + skip_separators(&text[at..])?;
        at = start + token_len(&text[start..]);
        Some(Token { start, text: &text[start..at] })
    })
}

/// Returns how many bytes stand before the first token, if there is one.
fn skip_separators(text: &str) -> Option<usize> {
    text.char_indices().find(|&(_, c)| is_token(c)).map(|(at, _)| at)
}

/// Returns how many bytes the token at the start of `text` has.
fn token_len(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, first)) = chars.next() else { return 0 };
    if is_cut(first) {
        return first.len_utf8();
    }
    let end = chars.find(|&(_, c)| is_cut(c) || !(is_token(c) || contains(MARKS, c)));
    end.map_or(text.len(), |(at, _)| at)
}

/// Returns whether `c` is part of words.
pub(crate) fn is_token(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric()
    } else {
        is_plain_letter(c) || !contains(SEPARATORS, c)
    }
}

/// Returns whether `c` divides words as a blank does: white space and control characters.
///
/// No control character is part of a word, and none may reach FTS5 or a terminal.
pub(crate) fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Returns whether `c` is surely a letter with neither case nor diacritics: Han, Yi and whole Hangul, most of what is cut.
fn is_plain_letter(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{A48C}' | '\u{AC00}'..='\u{D7A3}')
}

/// Returns `word` in lower case, without diacritics.
pub(crate) fn fold(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(word);
    }
    if word.is_ascii() {
        return Cow::Owned(word.to_ascii_lowercase());
    }
    if word.chars().all(is_plain_letter) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(
        word.chars().filter(|&c| c.is_ascii() || !contains(MARKS, c)).map(fold_char).collect(),
    )
}

/// Returns the lower case of one character, without its diacritics.
fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    // Of the few lower cases that are two characters, the second is a combining mark.
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
    let code = u32::from(lower);
    let at = DIACRITICS.partition_point(|&(_, last, _)| last < code);
    match DIACRITICS.get(at) {
        Some(&(first, _, base)) if first <= code => base,
        _ => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds that `text` has the folded words drawn with blanks between them.
    #[track_caller]
    fn drawn(text: &str, expected: &str) {
        let words: Vec<_> = tokens(text).map(|token| token.folded().into_owned()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn punctuation_divides_words() {
        drawn("foo-bar C++ foo_bar user@host 3.14 don't", "foo bar c foo bar user host 3 14 don t");
        drawn("\0 \u{200B}\u{FEFF}a\u{7}b", "a b");
        drawn("", "");
        drawn("?!…—", "");
    }

    #[test]
    fn case_and_latin_diacritics_are_folded() {
        drawn("Déjà VU Ångström ÑANDÚ e\u{301}te\u{301}", "deja vu angstrom nandu ete");
        drawn("ΣΟΦΌΣ Привет İstanbul", "σοφόσ привет istanbul");
    }

    #[test]
    fn a_combining_mark_alone_is_no_word() {
        drawn("\u{301} a", "a");
        drawn("北\u{301}京", "北 京");
    }

    #[test]
    fn each_cut_character_is_a_token() {
        drawn("Rust语言book", "rust 语 言 book");
        drawn("か\u{3099}👍🏽 20°C", "か 👍 🏽 20 ° c");
        drawn("กี่ มี", "ก ม");
    }

    #[test]
    fn ranges_are_those_of_the_original_text() {
        let text = "«Été» 北x";
        let words: Vec<_> = tokens(text).map(|token| &text[token.range()]).collect();
        assert_eq!(words, ["Été", "北", "x"]);
    }

    #[test]
    fn only_a_cut_character_says_so() {
        let flags: Vec<_> = tokens("a北é").map(|token| token.is_cut()).collect();
        assert_eq!(flags, [false, true, false]);
    }
}
