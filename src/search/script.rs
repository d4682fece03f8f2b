//! Segments scripts that are written without spaces into tokens of one character (unigrams).
//!
//! FTS5's `unicode61` makes a whole Chinese clause one token, so no word inside it would be found. Before a text is
//! indexed, each character of such a script, and each symbol, gets a U+200B ZERO WIDTH SPACE on both sides. `unicode61`
//! treats U+200B as a separator, so the character becomes a token. A query is split into the same tokens by
//! [`tokenizer`](super::tokenizer); several of them become a phrase. A separator between two unigrams alone is not enough: in `gen重跑` the `gen` would
//! be joined to `重`.
//!
//! Hangul is segmented too, although Korean has spaces: particles are attached to the noun, and people search for the
//! noun. Conjoining jamo (Korean in NFD) are unigrams.
//!
//! Vowel signs and tone marks (Mn and Mc: Thai, Khmer, Myanmar) are separators for `unicode61`, as are the variation
//! selector and the joiner of emoji. They are not in the index: the texts that it finds for a word with signs are compared with
//! the word by [`spelling`](super::spelling). A voicing mark of kana is joined to its kana, as in `が`.
//!
//! In the same pass the text is [folded](super::folding), and the [parts of its identifiers](super::identifiers) are added.
//!
//! Invariant: whether a character is a unigram does not depend on the text around it. So the tokens of a substring are
//! a substring of the tokens, and a query of unigrams finds every text that contains it.

use std::borrow::Cow;

use crate::search::folding::{Folded, fold, push, voiced_pair};
use crate::search::identifiers::with_parts;
use crate::search::unicode_tables::{UNIGRAMS, contains};

/// The separator around a unigram: U+200B ZERO WIDTH SPACE.
const SEPARATOR: char = '\u{200B}';

/// Returns whether `c` is a token by itself: a character of a script written without spaces, or a symbol.
#[must_use]
pub(crate) fn is_unigram(c: char) -> bool {
    // Most text is below the first range, and most Chinese text in a range that needs no table.
    let code = u32::from(c);
    code >= 0xA6 && ((0x4E00..=0x9FFF).contains(&code) || contains(UNIGRAMS, c))
}

/// Returns `text` as it is indexed: folded, with a U+200B on both sides of each unigram, and one between two of them, and with
/// the parts of its identifiers after it.
///
/// Borrowed if nothing changes. Most ASCII text is recognized by its bytes alone.
#[must_use]
pub(crate) fn segment(text: &str) -> Cow<'_, str> {
    match with_parts(text) {
        Cow::Borrowed(text) => cut(text),
        Cow::Owned(text) => match cut(&text) {
            Cow::Borrowed(_) => Cow::Owned(text),
            Cow::Owned(cut) => Cow::Owned(cut),
        },
    }
}

fn cut(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let changes = |c: char| !c.is_ascii() && (is_unigram(c) || fold(c) != Folded::Itself);
    let Some((start, _)) = text.char_indices().find(|&(_, c)| changes(c)) else {
        return Cow::Borrowed(text);
    };
    let (plain, rest) = text.split_at(start);
    // Most unigrams have 3 bytes and get 3 more.
    let mut out = String::with_capacity(text.len() + rest.len() + 2 * SEPARATOR.len_utf8());
    out.push_str(plain);
    let mut is_separated = plain.ends_with(SEPARATOR);
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_ascii() {
            out.push(c);
            is_separated = false;
        } else if is_unigram(c) {
            if !is_separated {
                out.push(SEPARATOR);
            }
            match chars.peek().and_then(|&next| voiced_pair(c, next)) {
                Some(kana) => {
                    out.push(kana);
                    chars.next();
                }
                None => push(&mut out, c),
            }
            out.push(SEPARATOR);
            is_separated = true;
        } else {
            let before = out.len();
            push(&mut out, c);
            is_separated = c == SEPARATOR || is_separated && out.len() == before;
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the segments of `text`, where `|` is U+200B.
    #[track_caller]
    fn segments(text: &str, expected: &str) {
        assert_eq!(segment(text).replace(SEPARATOR, "|"), expected);
    }

    #[test]
    fn text_without_unigrams_is_borrowed() {
        for text in ["", "plain ascii", "déjà vu", "Привет", "नमस्ते", "a\u{200B}b"]
        {
            assert!(matches!(segment(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn each_unigram_has_a_separator_on_both_sides() {
        segments("北京", "|北|京|");
        segments("gen重跑", "gen|重|跑|");
        segments("Rust语言book", "Rust|语|言|book");
        segments("é重", "é|重|");
    }

    #[test]
    fn words_are_folded() {
        segments("Straße Ёж", "Strasse еж");
        segments("電腦ＡＰＩ", "|电|脑|API");
        segments("ปี๒๕๖๗", "|ป|ี|2567");
        segments("ｶﾞﾗｽ", "|ガ|ラ|ス|");
    }

    #[test]
    fn an_existing_separator_is_not_doubled() {
        segments("a\u{200B}重", "a|重|");
        segments("重\u{200B}跑", "|重||跑|");
    }

    #[test]
    fn characters_of_scripts_without_spaces_are_unigrams() {
        for c in
            "漢々〇〆ひカーｶﾞ한ㄱㄅꀀกກཀကក\u{A984}\u{1100}\u{1161}\u{11A8}豈\u{2F800}𠮷\u{30000}"
                .chars()
        {
            assert!(is_unigram(c), "{c:?}");
        }
    }

    #[test]
    fn symbols_are_unigrams() {
        for c in "😀🥰🫠❤©°🇩🏽♥⌘\u{FFFD}".chars() {
            assert!(is_unigram(c), "{c:?}");
        }
    }

    #[test]
    fn letters_digits_and_punctuation_are_not_unigrams() {
        for c in "aZ09_éßЖωאعअ１Ａ๒๙.-+\u{200B}\u{200D}\u{FE0F}\u{301}、".chars() {
            // The table joins two ranges across the ideographic comma: a separator next to punctuation has no effect.
            assert!(c == '、' || !is_unigram(c), "{c:?}");
        }
    }

    #[test]
    fn each_part_of_a_joined_emoji_is_a_unigram() {
        segments("👩\u{200D}🔬", "|👩|🔬|");
        segments("👍🏽ok", "|👍|🏽|ok");
        segments("🇩🇪", "|🇩|🇪|");
    }
}
