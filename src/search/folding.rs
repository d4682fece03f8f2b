//! Folding: different spellings become one word. `Straße` is also found as `strasse`, `ёлка` as `елка`, `電腦` as `电脑`.
//!
//! FTS5 itself ignores case and the marks of Latin letters. All other differences are removed here: from a text before FTS5
//! indexes it ([`script`](super::script)), and from each word of a query. Ranking and snippets read the original text and
//! fold each of its words ([`tokenizer`](super::tokenizer)), so the offsets of a match are those of the original.
//!
//! Invariant: a character becomes the same in every text; only a voicing mark of kana depends on the character before it.
//! Folding divides no word and joins no two: each letter of a word becomes one or more letters of it, or is left out. A
//! character that is indexed by itself (a unigram) stays one.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::search::identifiers::marked;
use crate::search::unicode_tables::{
    GREEK, SEPARATORS, SIMPLIFIED, TRADITIONAL, ZEROS, base_letter, contains,
};

/// What takes the place of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folded {
    Itself,
    One(char),
    Two(char, char),
    Three(char, char, char),
    /// It is left out, and does not end a word.
    Nothing,
}

use Folded::{Itself, Nothing, One, Three, Two};

/// The first Han character of the main block, and how many there are.
const HAN: u32 = 0x4E00;
const HAN_COUNT: usize = 0x5200;

/// Full-width kana in the order of the half-width ones from U+FF66 on.
const KANA: [char; 56] = [
    'ヲ', 'ァ', 'ィ', 'ゥ', 'ェ', 'ォ', 'ャ', 'ュ', 'ョ', 'ッ', 'ー', 'ア', 'イ', 'ウ', 'エ', 'オ',
    'カ', 'キ', 'ク', 'ケ', 'コ', 'サ', 'シ', 'ス', 'セ', 'ソ', 'タ', 'チ', 'ツ', 'テ', 'ト', 'ナ',
    'ニ', 'ヌ', 'ネ', 'ノ', 'ハ', 'ヒ', 'フ', 'ヘ', 'ホ', 'マ', 'ミ', 'ム', 'メ', 'モ', 'ヤ', 'ユ',
    'ヨ', 'ラ', 'リ', 'ル', 'レ', 'ロ', 'ワ', 'ン',
];

/// The simplified variant of each Han character of the main block; 0 for most.
static SIMPLE: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut simple = vec![0; HAN_COUNT];
    for (traditional, simplified) in TRADITIONAL.chars().zip(SIMPLIFIED.chars()) {
        simple[(u32::from(traditional) - HAN) as usize] = u32::from(simplified) as u16;
    }
    simple
});

/// Returns what takes the place of a character.
#[inline]
pub(crate) fn fold(c: char) -> Folded {
    match c {
        '\0'..='\u{AC}' => Itself,
        '\u{4E00}'..='\u{9FFF}' => match SIMPLE[(u32::from(c) - HAN) as usize] {
            0 => Itself,
            simple => char::from_u32(u32::from(simple)).map_or(Itself, One),
        },
        // Kana, symbols of Chinese, and Hangul.
        '\u{3000}'..='\u{4DFF}' | '\u{AC00}'..='\u{D7FF}' => Itself,
        _ => fold_other(c),
    }
}

fn fold_other(c: char) -> Folded {
    match c {
        // A soft hyphen and joiners. A non-joiner separates: Persian writes it where others write a blank.
        '\u{AD}' | '\u{200D}' | '\u{2060}' | '\u{FEFF}' => Nothing,
        'ß' | 'ẞ' => Two('s', 's'),
        'æ' | 'Æ' | 'ǽ' | 'Ǽ' => Two('a', 'e'),
        'œ' | 'Œ' => Two('o', 'e'),
        'ø' | 'Ø' | 'ǿ' | 'Ǿ' => One('o'),
        'ł' | 'Ł' => One('l'),
        'đ' | 'Đ' => One('d'),
        'ı' | 'İ' => One('i'),
        '\u{80}'..='\u{36F}' => Itself,
        'ё' | 'Ё' => One('е'),
        // The points of Hebrew.
        '\u{591}'..='\u{5BD}'
        | '\u{5BF}'
        | '\u{5C1}'
        | '\u{5C2}'
        | '\u{5C4}'
        | '\u{5C5}'
        | '\u{5C7}' => Nothing,
        // Arabic: the marks of vowels, and the line that stretches a word.
        '\u{610}'..='\u{61A}' | '\u{640}' | '\u{64B}'..='\u{65F}' | '\u{670}' => Nothing,
        '\u{6D6}'..='\u{6DC}' | '\u{6DF}'..='\u{6E8}' | '\u{6EA}'..='\u{6ED}' => keep_symbol(c),
        // With a carrier of hamza, and letters that Persian writes in another form.
        'آ' | 'أ' | 'إ' | 'ٱ' => One('ا'),
        'ؤ' => One('و'),
        'ئ' | 'ى' | 'ی' => One('ي'),
        'ة' | 'ۀ' => One('ه'),
        'ک' => One('ك'),
        // Forms as wide as a Han character, or half as wide.
        '\u{FF01}'..='\u{FF5E}' => moved(c, 0xFF01, 0x21),
        '\u{FF66}'..='\u{FF9D}' => One(KANA[(u32::from(c) - 0xFF66) as usize]),
        '\u{FFA1}'..='\u{FFBE}' => moved(c, 0xFFA1, 0x3131),
        '\u{FFC2}'..='\u{FFC7}' => moved(c, 0xFFC2, 0x314F),
        '\u{FFCA}'..='\u{FFCF}' => moved(c, 0xFFCA, 0x3155),
        '\u{FFD2}'..='\u{FFD7}' => moved(c, 0xFFD2, 0x315B),
        '\u{FFDA}'..='\u{FFDC}' => moved(c, 0xFFDA, 0x3161),
        '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' => {
            base_letter(GREEK, c).map_or(Itself, One)
        }
        // Letters that PDF files join.
        '\u{FB00}' => Two('f', 'f'),
        '\u{FB01}' => Two('f', 'i'),
        '\u{FB02}' => Two('f', 'l'),
        '\u{FB03}' => Three('f', 'f', 'i'),
        '\u{FB04}' => Three('f', 'f', 'l'),
        '\u{FB05}' | '\u{FB06}' => Two('s', 't'),
        // Bold, italic and other alphabets, which posts use for headings.
        '\u{1D400}'..='\u{1D6A3}' if !contains(SEPARATORS, c) => {
            char::from_u32(u32::from(b'a') + (u32::from(c) - 0x1D400) % 26).map_or(Itself, One)
        }
        _ => fold_digit(c),
    }
}

/// Among the marks of the Quran are symbols and letters.
fn keep_symbol(c: char) -> Folded {
    match c {
        '\u{6DE}' | '\u{6E5}' | '\u{6E6}' => Itself,
        _ => Nothing,
    }
}

fn fold_digit(c: char) -> Folded {
    let code = u32::from(c);
    let before = ZEROS.partition_point(|zero| *zero <= code);
    match before.checked_sub(1).map(|at| code - ZEROS[at]) {
        Some(digit @ 0..=9) => char::from_digit(digit, 10).map_or(Itself, One),
        _ => Itself,
    }
}

/// Returns the character at the same distance from another start.
fn moved(c: char, from: u32, to: u32) -> Folded {
    char::from_u32(u32::from(c) - from + to).map_or(Itself, One)
}

/// Returns whether a character is left out of the word that it is in.
pub(crate) fn is_left_out(c: char) -> bool {
    !c.is_ascii() && fold(c) == Nothing
}

/// Returns the kana with the voicing mark that follows it, if it has one: `か` and U+3099 are `が`.
pub(crate) fn voiced(kana: char, mark: char) -> Option<char> {
    let step = match mark {
        '\u{3099}' | '\u{FF9E}' => 1,
        '\u{309A}' | '\u{FF9F}' => 2,
        _ => return None,
    };
    let code = u32::from(kana);
    // Katakana follow hiragana in the same order.
    let hiragana = if code >= 0x30A1 { code - 0x60 } else { code };
    match (hiragana, step) {
        (0x3046, 1) => char::from_u32(code + 0x4E),
        (0x304B..=0x3062, 1) if hiragana % 2 == 1 => char::from_u32(code + 1),
        (0x3064 | 0x3066 | 0x3068, 1) => char::from_u32(code + 1),
        (0x306F | 0x3072 | 0x3075 | 0x3078 | 0x307B, _) => char::from_u32(code + step),
        _ => None,
    }
}

/// Returns the kana that two characters stand for, if the second is a voicing mark.
pub(crate) fn voiced_pair(first: char, second: char) -> Option<char> {
    // Half-width kana are folded first.
    match fold(first) {
        One(kana) => voiced(kana, second),
        _ => voiced(first, second),
    }
}

/// Adds a character to a folded text.
pub(crate) fn push(out: &mut String, c: char) {
    match fold(c) {
        Itself => out.push(c),
        One(other) => out.push(other),
        Two(first, second) => out.extend([first, second]),
        Three(first, second, third) => out.extend([first, second, third]),
        Nothing => {}
    }
}

/// Returns a word of a query in the spelling of the index; FTS5 does the rest. Borrowed if it is the same.
pub(crate) fn folded(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return marked(word).map_or(Cow::Borrowed(word), Cow::Owned);
    }
    if word.chars().all(|c| fold(c) == Itself && voiced('は', c).is_none()) {
        return Cow::Borrowed(word);
    }
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        match out.chars().next_back().and_then(|last| voiced(last, c)) {
            Some(kana) => {
                out.pop();
                out.push(kana);
            }
            None => push(&mut out, c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::script::{is_unigram, segment};
    use crate::search::tokenizer::{is_token, tokens};

    /// Asserts that each of `spellings` is folded to `expected`.
    #[track_caller]
    fn folds(spellings: &[&str], expected: &str) {
        for spelling in spellings {
            assert_eq!(folded(spelling), expected, "{spelling}");
        }
    }

    #[test]
    fn spellings_of_a_word_are_the_same() {
        folds(&["strasse", "straße", "stra\u{AD}ße"], "strasse");
        folds(&["łodz", "Łodz"], "lodz");
        folds(&["oﬃce", "office"], "office");
        folds(&["ﬁnd", "𝐟𝐢𝐧𝐝", "𝗳𝗶𝗻𝗱", "𝘍𝘐𝘕𝘋"], "find");
        folds(&["bøf", "bof"], "bof");
        folds(&["œuf", "oeuf"], "oeuf");
        folds(&["æble", "aeble"], "aeble");
        folds(&["ёлка", "елка"], "елка");
        folds(&["βιβλίο", "βιβλιο"], "βιβλιο");
        folds(&["أحمد", "احمد", "آحمد", "ا\u{654}حمد"], "احمد");
        folds(&["مدرسة", "مدرسه"], "مدرسه");
        folds(&["عَرَبِيّ", "عربى", "عربی"], "عربي");
        folds(&["ســـلام"], "سلام");
        folds(&["שָׁלוֹם"], "שלום");
        folds(&["ＡＰＩ"], "API");
        folds(&["ｶﾞﾗｽ", "ガラス", "カ\u{3099}ラス"], "ガラス");
        folds(&["ﾊﾟﾝ", "ハ\u{309A}ン"], "パン");
        folds(&["٢٠٢٤", "२०२४", "๒๐๒๔", "２０２４"], "2024");
        folds(&["電腦", "电脑"], "电脑");
        folds(&["臺灣", "台灣", "台湾"], "台湾");
    }

    #[test]
    fn each_traditional_character_has_one_simplified_one() {
        assert_eq!(TRADITIONAL.chars().count(), SIMPLIFIED.chars().count());
        for c in SIMPLIFIED.chars() {
            assert_eq!(fold(c), Itself, "{c}");
        }
    }

    /// FTS5 reads the segmented text; ranking and snippets read the words of the original.
    #[test]
    fn index_and_query_fold_every_character_alike() {
        let words = |text: &str| -> Vec<String> {
            tokens(text).map(|token| token.normalized().into_owned()).collect()
        };
        for c in '\u{80}'..'\u{20000}' {
            let text = format!("a{c}b {c}y か{c}");
            assert_eq!(words(&segment(&text)), words(&text), "{c:?}");
            if let One(other) = fold(c) {
                assert_eq!(is_unigram(c), is_unigram(other), "{c:?} {other:?}");
                assert_eq!(is_token(c), is_token(other), "{c:?} {other:?}");
                assert_eq!(fold(other), Itself, "{c:?} {other:?}");
            }
        }
    }
}
