//! Cutting: making one-character words of scripts that are written without spaces.
//!
//! FTS5's `unicode61` takes a whole Chinese clause for one word, so nothing inside it is found. Before a text is indexed,
//! and before a query reaches the index, each character of such a script, and each symbol, gets a U+200B ZERO WIDTH
//! SPACE on both sides. `unicode61` takes that for a separator, so the character becomes a token by itself, and a run of
//! them in a query becomes a phrase. Between them alone is not enough: in `gen重跑` the `gen` would stick to `重`.
//!
//! Hangul is cut too, though Korean has spaces: its particles are written onto the noun, and people search the noun.
//! Conjoining jamo (Korean in NFD) are cut one by one.
//!
//! Vowel signs and tone marks (Mn and Mc: Thai, Khmer, Myanmar; the dakuten U+3099) are separators to `unicode61`: they
//! are in neither the index nor the query, as accents are not. A query with or without them finds the same texts.
//! So do the variation selector and the joiner of emoji.
//!
//! Invariant: a character is cut or not by itself, whatever stands beside it. So the tokens of any stretch of a text are
//! a stretch of the tokens of the text, and a query made of cut characters finds every text that contains it.

use std::borrow::Cow;

use crate::search::tables::{CUT, contains};

/// What is put around a cut character: U+200B ZERO WIDTH SPACE.
const CUT_MARK: char = '\u{200B}';

/// Returns whether `c` is a token by itself: of a script written without spaces, or a symbol.
#[must_use]
pub(crate) fn is_cut(c: char) -> bool {
    // Most text is below the first range; most Chinese lies in one that needs no search.
    let code = u32::from(c);
    code >= 0xA6 && ((0x4E00..=0x9FFF).contains(&code) || contains(CUT, c))
}

/// Returns `text` with a U+200B on both sides of each cut character, one between two of them.
///
/// Borrowed where there is nothing to cut; ASCII is told by its bytes alone.
#[must_use]
pub(crate) fn cut(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let Some((start, _)) = text.char_indices().find(|&(_, c)| is_cut(c)) else {
        return Cow::Borrowed(text);
    };
    let (plain, rest) = text.split_at(start);
    // A cut character is mostly 3 bytes long and gets 3 more.
    let mut out = String::with_capacity(text.len() + rest.len() + 2 * CUT_MARK.len_utf8());
    out.push_str(plain);
    let mut is_marked = plain.ends_with(CUT_MARK);
    for c in rest.chars() {
        if is_cut(c) {
            if !is_marked {
                out.push(CUT_MARK);
            }
            out.push(c);
            out.push(CUT_MARK);
            is_marked = true;
        } else {
            out.push(c);
            is_marked = c == CUT_MARK;
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds that `text` is cut as drawn, `|` standing for U+200B.
    #[track_caller]
    fn drawn(text: &str, expected: &str) {
        assert_eq!(cut(text).replace(CUT_MARK, "|"), expected);
    }

    #[test]
    fn text_with_nothing_to_cut_is_borrowed() {
        for text in ["", "plain ascii", "déjà vu", "Привет", "नमस्ते", "a\u{200B}b"]
        {
            assert!(matches!(cut(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn each_cut_character_has_a_mark_on_both_sides() {
        drawn("北京", "|北|京|");
        drawn("gen重跑", "gen|重|跑|");
        drawn("Rust语言book", "Rust|语|言|book");
        drawn("é重", "é|重|");
    }

    #[test]
    fn a_mark_that_was_there_is_not_doubled() {
        drawn("a\u{200B}重", "a|重|");
        drawn("重\u{200B}跑", "|重||跑|");
    }

    #[test]
    fn scripts_without_spaces_are_cut() {
        for c in
            "漢々〇〆ひカーｶﾞ한ㄱㄅꀀกກཀကក\u{A984}\u{1100}\u{1161}\u{11A8}豈\u{2F800}𠮷\u{30000}"
                .chars()
        {
            assert!(is_cut(c), "{c:?}");
        }
    }

    #[test]
    fn symbols_are_cut() {
        for c in "😀🥰🫠❤©°🇩🏽♥⌘\u{FFFD}".chars() {
            assert!(is_cut(c), "{c:?}");
        }
    }

    #[test]
    fn letters_digits_and_punctuation_are_not_cut() {
        for c in "aZ09_éßЖωאعअ１Ａ.-+\u{200B}\u{200D}\u{FE0F}\u{301}、".chars() {
            // The ideographic comma lies between two ranges that are joined: a mark around it divides nothing new.
            assert!(c == '、' || !is_cut(c), "{c:?}");
        }
    }

    #[test]
    fn an_emoji_of_several_is_cut_at_each() {
        drawn("👩\u{200D}🔬", "|👩|\u{200D}|🔬|");
        drawn("👍🏽ok", "|👍|🏽|ok");
        drawn("🇩🇪", "|🇩|🇪|");
    }
}
