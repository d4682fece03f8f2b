//! What each character is: part of a word, a word by itself, a mark of the character before it, or between words.
//!
//! The standard library and `unicode-normalization` know letters, cases and marks. Here is what they do not know: which scripts are
//! written without spaces, the digits of each script, and the simplified variant of a Han character.
//!
//! Invariant: each table is sorted, and its ranges do not overlap.

use std::sync::LazyLock;

use unicode_normalization::char::is_combining_mark;

/// Returns whether `c` is a word by itself: a character of a script that is written without spaces, or a symbol.
pub fn is_unigram(c: char) -> bool {
    // Most text is below the first range, and most Chinese text in a range that needs no table.
    let code = u32::from(c);
    code >= 0xA6 && ((0x4E00..=0x9FFF).contains(&code) || is_in_table(code))
}

fn is_in_table(code: u32) -> bool {
    let at = UNIGRAMS.partition_point(|&(_, last)| last < code);
    UNIGRAMS.get(at).is_some_and(|&(first, _)| first <= code)
}

/// Returns whether `c` is white space or a control character.
///
/// No control character is part of a word, and none may reach an engine or a terminal.
pub fn is_space_or_control(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Returns whether `c` belongs to the character before it: a mark, or a sign that is not seen.
pub(crate) fn is_attached(c: char) -> bool {
    !c.is_ascii()
        && (matches!(c, '\u{AD}' | '\u{200D}' | '\u{2060}' | '\u{FEFF}' | '\u{FF9E}' | '\u{FF9F}')
            // Conjoining vowels and final consonants of Hangul.
            || matches!(c, '\u{1160}'..='\u{11FF}')
            || is_combining_mark(c))
}

/// Returns whether `c` is a letter or digit of a word. Marks follow one.
pub(crate) fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric()
    } else {
        c.is_alphanumeric() && !is_unigram(c) && !is_attached(c)
    }
}

/// Returns the digit that a character of any script is.
pub(crate) fn digit(c: char) -> Option<char> {
    let code = u32::from(c);
    let before = ZEROS.partition_point(|zero| *zero <= code).checked_sub(1)?;
    char::from_digit(code - ZEROS[before], 10)
}

/// The first Han character of the main block, and how many there are.
const HAN: u32 = 0x4E00;
const HAN_COUNT: usize = 0x5200;

/// The simplified variant of each Han character of the main block; 0 for most.
static SIMPLE: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut simple = vec![0; HAN_COUNT];
    let mut lines = VARIANTS.lines();
    while let (Some(traditional), Some(simplified)) = (lines.next(), lines.next()) {
        for (traditional, simplified) in traditional.chars().zip(simplified.chars()) {
            simple[(u32::from(traditional) - HAN) as usize] = u32::from(simplified) as u16;
        }
    }
    simple
});

/// Returns the simplified variant of a Han character; most are their own.
pub(crate) fn simplified(c: char) -> char {
    let place = u32::from(c).checked_sub(HAN).and_then(|place| SIMPLE.get(place as usize));
    match place {
        Some(&simple) if simple != 0 => char::from_u32(u32::from(simple)).unwrap_or(c),
        _ => c,
    }
}

/// The unigrams: characters of scripts written without spaces, and symbols.
///
/// Scripts: Thai, Lao, Tibetan, Myanmar (0E00..), Hangul jamo (1100..), Khmer (1780..), Tai Le, New Tai Lue, Khmer
/// symbols, Buginese, Tai Tham (1950..), Balinese (1B00..), CJK radicals, kana, Bopomofo, Han, Yi (2E50..A4CF, with
/// the marks 々 〆 〇 ー), Hangul jamo A, Javanese, Myanmar A and B, Tai Viet (A960..AADF), Hangul syllables and jamo B
/// (AC00..), compatibility ideographs (F900..), halfwidth kana and jamo (FF66..), Ahom (11700..), Tangut, Khitan,
/// Nushu, supplementary kana (16FE0..1B2FF), the two supplementary ideographic planes (20000..). Bopomofo's tone marks
/// (02C7, 02CA, 02CB) go with it.
///
/// Symbols: the category So, and all of 1F000..1FBEF (emoji with skin tones and regional indicators). Two ranges are
/// joined where no character between them is part of a word.
#[rustfmt::skip]
const UNIGRAMS: &[(u32, u32)] = &[
    (0x00A6, 0x00A9), (0x00AE, 0x00B0), (0x02C7, 0x02C7), (0x02CA, 0x02CB), (0x0482, 0x0482), (0x058D, 0x058E),
    (0x060E, 0x060F), (0x06DE, 0x06DE), (0x06E9, 0x06E9), (0x06FD, 0x06FE), (0x07F6, 0x07F6), (0x09FA, 0x09FA),
    (0x0B70, 0x0B70), (0x0BF3, 0x0BFA), (0x0C7F, 0x0C7F), (0x0D4F, 0x0D4F), (0x0D79, 0x0D79), (0x0E00, 0x0E4F),
    (0x0E5A, 0x0ECF), (0x0EDA, 0x0F1F), (0x0F2A, 0x103F), (0x104A, 0x108F), (0x109A, 0x109F), (0x1100, 0x11FF),
    (0x1390, 0x1399), (0x166D, 0x166D), (0x1780, 0x17DF), (0x17EA, 0x17FF), (0x1940, 0x1940), (0x1950, 0x19CF),
    (0x19DA, 0x1A7F), (0x1A8A, 0x1A8F), (0x1A9A, 0x1AAF), (0x1B00, 0x1B4F), (0x1B5A, 0x1B7F), (0x2100, 0x2101),
    (0x2103, 0x2106), (0x2108, 0x2109), (0x2114, 0x2114), (0x2116, 0x2117), (0x211E, 0x2123), (0x2125, 0x2125),
    (0x2127, 0x2127), (0x2129, 0x2129), (0x212E, 0x212E), (0x213A, 0x213B), (0x214A, 0x214D), (0x214F, 0x214F),
    (0x218A, 0x244A), (0x249C, 0x24E9), (0x2500, 0x2767), (0x2794, 0x28FF), (0x2B00, 0x2BFF), (0x2CE5, 0x2CEA),
    (0x2E50, 0xA4CF), (0xA828, 0xA82B), (0xA836, 0xA839), (0xA960, 0xA9CF), (0xA9DA, 0xA9EF), (0xA9FA, 0xA9FF),
    (0xAA60, 0xAADF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFD40, 0xFD4F), (0xFDCF, 0xFDCF), (0xFDFD, 0xFDFF),
    (0xFF66, 0xFFFD), (0x10137, 0x1013F), (0x10179, 0x10189), (0x1018C, 0x101FC), (0x10877, 0x10878),
    (0x10AC8, 0x10AC8), (0x11700, 0x1172F), (0x1173A, 0x1174F), (0x11FD5, 0x11FF1), (0x16B3C, 0x16B3F),
    (0x16B45, 0x16B45), (0x16FE0, 0x18DFF), (0x1AFF0, 0x1B2FF), (0x1BC9C, 0x1BC9C), (0x1CF50, 0x1D164),
    (0x1D16A, 0x1D16C), (0x1D183, 0x1D184), (0x1D18C, 0x1D1A9), (0x1D1AE, 0x1D241), (0x1D245, 0x1D245),
    (0x1D300, 0x1D356), (0x1D800, 0x1D9FF), (0x1DA37, 0x1DA3A), (0x1DA6D, 0x1DA74), (0x1DA76, 0x1DA83),
    (0x1DA85, 0x1DA86), (0x1E14F, 0x1E14F), (0x1ECAC, 0x1ECAC), (0x1ED2E, 0x1ED2E), (0x1F000, 0x1FBEF),
    (0x20000, 0x3FFFD),
];

/// The digit zero of each script but ASCII; nine more digits follow it.
#[rustfmt::skip]
const ZEROS: &[u32] = &[
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6, 0x0E50,
    0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50,
    0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136,
    0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0,
    0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

/// The 1747 commonest traditional characters (level 1 of Big5) whose simplified variant is in GB 2312: lines of traditional
/// characters, each above the line of their variants.
///
/// From the field `kSimplifiedVariant` of Unihan 10; of a character with several variants, the one of the standard list.
/// No character is in both.
const VARIANTS: &str = include_str!("simplified.txt");
