//! Cuts a text into words, each in its normal form.
//!
//! The one tokenizer: index, query, ranking and snippets all use it. A *token* is a word, or one character of a script that is written
//! without spaces. Its *normal form* is what the index holds: without case, without marks that a language reads as the same letter,
//! in one spelling of those that mean the same. Ranges are those of the original text.
//!
//! Invariant: whether a character is a unigram does not depend on the text around it. So the unigrams of a part of a text are a
//! part of those of the text, and a query of unigrams finds every text that contains it.
//!
//! Invariant: a normal form has no ASCII character but letters and digits, and is its own normal form.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::chars::{digit, is_attached, is_letter, is_unigram, simplified};

/// A word of a text, or a unigram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    start: usize,
    text: &'a str,
}

impl<'a> Token<'a> {
    /// Returns the word as written.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the byte range of the word in the text.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Returns the normal form of the word.
    #[must_use]
    pub fn form(&self) -> Cow<'a, str> {
        normal_form(self.text)
    }

    /// Returns whether this is one character of a script written without spaces, or a symbol.
    #[must_use]
    pub fn is_unigram(&self) -> bool {
        self.text.chars().next().is_some_and(is_unigram)
    }
}

/// Returns the words of `text` in order.
///
/// ```
/// let forms: Vec<_> = talktree_text::tokens("Das Café in 北京").map(|token| token.form()).collect();
/// assert_eq!(forms, ["das", "cafe", "in", "北", "京"]);
/// ```
pub fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + skip_separators(&text[at..])?;
        let token = token_at(text, start);
        at = token.range().end;
        Some(token)
    })
}

/// Returns the number of bytes before the first token, if there is one.
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
            if is_letter(c) || is_unigram(c) && !is_attached(c) {
                return Some(at);
            }
            c.len_utf8()
        };
    }
}

/// Returns the token whose letters start at `start`. The sign of `C++`, `C#` and `.NET` is part of it.
fn token_at(text: &str, start: usize) -> Token<'_> {
    let rest = &text[start..];
    let len = match rest.chars().next() {
        Some(c) if !c.is_ascii() && is_unigram(c) => end_of_marks(rest, c.len_utf8()),
        _ => end_of_word(rest),
    };
    let range = match len {
        1 | 3 => signed(text, start).unwrap_or(start..start + len),
        _ => start..start + len,
    };
    Token { start: range.start, text: &text[range] }
}

fn end_of_marks(text: &str, from: usize) -> usize {
    text[from..].find(|c| !is_attached(c)).map_or(text.len(), |at| from + at)
}

fn end_of_word(text: &str) -> usize {
    let mut at = 0;
    loop {
        let is_alnum = u8::is_ascii_alphanumeric;
        at += text.as_bytes()[at..].iter().take_while(|byte| is_alnum(byte)).count();
        match text[at..].chars().next() {
            Some(c) if !c.is_ascii() && (is_letter(c) || is_attached(c)) => at += c.len_utf8(),
            _ => return at,
        }
    }
}

/// Returns the range of `C++`, `C#` or `.NET`, whose letters start at `start`.
fn signed(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    match (byte(start + 1), byte(start + 2)) {
        (b'#', next) if !next.is_ascii_alphanumeric() && next != b'#' => {
            return byte(start).is_ascii_alphabetic().then_some(start..start + 2);
        }
        (b'+', b'+') if byte(start).is_ascii_alphabetic() => {
            let next = byte(start + 3);
            return (!next.is_ascii_alphabetic() && next != b'+').then_some(start..start + 3);
        }
        _ => {}
    }
    let is_net = bytes.get(start..start + 3).is_some_and(|word| word.eq_ignore_ascii_case(b"net"));
    let dot = start.checked_sub(1).filter(|&at| is_net && byte(at) == b'.')?;
    let is_free = |c: Option<char>, others: &str| {
        !c.is_some_and(|c| is_letter(c) || is_unigram(c) || others.contains(c))
    };
    (is_free(text[..dot].chars().next_back(), "./*")
        && is_free(text[start + 3..].chars().next(), "*"))
    .then_some(dot..start + 3)
}

/// The sign of a word with one in its normal form: the wide form of `+`, `#` and `.`, which no engine takes for a separator.
const SIGNS: [(&str, char); 3] = [("++", '＋'), ("#", '＃'), (".", '．')];

/// Returns the normal form of a word.
///
/// ```
/// use talktree_text::normal_form;
///
/// assert_eq!(normal_form("Straße"), "strasse");
/// assert_eq!(normal_form("電"), "电");
/// assert_eq!(normal_form("カ\u{3099}"), "が");
/// ```
#[must_use]
pub fn normal_form(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return ascii_form(word);
    }
    if word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    let mut form = String::with_capacity(word.len());
    for c in word.nfkd().flat_map(char::to_lowercase) {
        fold(c, &mut form);
    }
    // Kana and their marks, and the parts of Hangul syllables, become one character again.
    let mut form: String = form.nfc().collect();
    if form.is_empty() {
        return Cow::Borrowed(word);
    }
    if form.contains('्') {
        form = nasals_as_anusvara(&form);
    }
    match without_article(&form) {
        Some(noun) => Cow::Owned(noun.to_owned()),
        None => Cow::Owned(form),
    }
}

fn ascii_form(word: &str) -> Cow<'_, str> {
    for (written, sign) in SIGNS {
        let letters = word.strip_suffix(written).or_else(|| word.strip_prefix(written));
        if let Some(letters) = letters {
            return Cow::Owned(format!("{}{sign}", letters.to_ascii_lowercase()));
        }
    }
    match word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(word.to_ascii_lowercase()),
        false => Cow::Borrowed(word),
    }
}

/// Returns whether `c` is its own normal form, for the characters that most texts are made of.
fn is_plain(c: char) -> bool {
    match c {
        '0'..='9' | 'a'..='z' => true,
        '\u{3041}'..='\u{3096}' | '\u{AC00}'..='\u{D7A3}' => true,
        '\u{4E00}'..='\u{9FFF}' => simplified(c) == c,
        'а'..='я' => c != 'й',
        '\u{FF0B}' | '\u{FF03}' | '\u{FF0E}' => true,
        _ => false,
    }
}

/// Adds a decomposed character in lower case to a normal form.
fn fold(c: char, form: &mut String) {
    match c {
        'ß' => form.push_str("ss"),
        'æ' => form.push_str("ae"),
        'œ' => form.push_str("oe"),
        'ø' => form.push('o'),
        'ł' => form.push('l'),
        'đ' => form.push('d'),
        'ı' => form.push('i'),
        'ς' => form.push('σ'),
        // Letters that Persian writes in another form than Arabic, and the line that stretches a word.
        'ٱ' => form.push('ا'),
        'ى' | 'ی' => form.push('ي'),
        'ة' | 'ە' | 'ہ' => form.push('ه'),
        'ک' => form.push('ك'),
        'ـ' => {}
        'ँ' => form.push('ं'),
        'ァ'..='ヶ' => form.extend(char::from_u32(u32::from(c) - 0x60)),
        '\u{3099}' | '\u{309A}' => form.push(c),
        '\u{4E00}'..='\u{9FFF}' => form.push(simplified(c)),
        _ if c.is_ascii() => form.extend(Some(c).filter(char::is_ascii_alphanumeric)),
        _ if is_combining_mark(c) => form.extend(Some(c).filter(|c| is_vowel(*c))),
        // Conjoining Hangul is attached, and part of its syllable.
        _ if is_attached(c) && !matches!(c, '\u{1160}'..='\u{11FF}') => {}
        _ => form.push(digit(c).unwrap_or(c)),
    }
}

/// Returns whether a mark makes another word of it: a vowel or tone of a script of India or Southeast Asia. A nukta does not.
fn is_vowel(c: char) -> bool {
    const NUKTAS: [char; 6] = ['\u{93C}', '\u{9BC}', '\u{A3C}', '\u{ABC}', '\u{B3C}', '\u{CBC}'];
    matches!(c, '\u{900}'..='\u{109F}' | '\u{1780}'..='\u{17DD}' | '\u{1A00}'..='\u{1BFF}' | '\u{A800}'..='\u{AAFF}')
        && !NUKTAS.contains(&c)
}

/// Writes a nasal consonant before another consonant of Hindi as the dot that most people write.
fn nasals_as_anusvara(form: &str) -> String {
    let chars: Vec<char> = form.chars().collect();
    let mut out = String::with_capacity(form.len());
    let mut at = 0;
    while at < chars.len() {
        let is_nasal = matches!(chars[at], 'ङ' | 'ञ' | 'ण' | 'न' | 'म')
            && chars.get(at + 1) == Some(&'्')
            && chars.get(at + 2).is_some_and(|next| matches!(next, 'क'..='ह'));
        out.push(if is_nasal && at > 0 { 'ं' } else { chars[at] });
        at += if is_nasal && at > 0 { 2 } else { 1 };
    }
    out
}

/// Returns an Arabic word without its article, if it has one and enough letters after it.
fn without_article(form: &str) -> Option<&str> {
    const ARTICLES: [&str; 6] = ["ال", "وال", "بال", "كال", "فال", "لل"];
    const MIN_LETTERS: usize = 3;
    if !form.starts_with(['ا', 'و', 'ب', 'ك', 'ف', 'ل']) {
        return None;
    }
    let rest = ARTICLES.iter().find_map(|article| form.strip_prefix(article));
    rest.filter(|noun| noun.chars().count() >= MIN_LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the normal forms of `text`, joined with blanks.
    #[track_caller]
    fn drawn(text: &str, expected: &str) {
        let forms: Vec<_> = tokens(text).map(|token| token.form().into_owned()).collect();
        assert_eq!(forms.join(" "), expected);
    }

    /// Asserts that each of `spellings` has the normal form `expected`.
    #[track_caller]
    fn folds(spellings: &[&str], expected: &str) {
        for spelling in spellings {
            assert_eq!(normal_form(spelling), expected, "{spelling}");
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
    fn case_and_diacritics_are_removed() {
        drawn("Déjà VU Ångström ÑANDÚ e\u{301}te\u{301}", "deja vu angstrom nandu ete");
        drawn("ΣΟΦΌΣ Привет İstanbul ты Ёж", "σοφοσ привет istanbul ты еж");
    }

    #[test]
    fn some_words_have_a_sign() {
        drawn("C++17, C#; .NET c d#e", "c＋ 17 c＃ net． c d e");
        let text = "(C++) .NET";
        let words: Vec<_> = tokens(text).map(|token| &text[token.range()]).collect();
        assert_eq!(words, ["C++", ".NET"]);
    }

    #[test]
    fn spellings_of_a_word_have_one_normal_form() {
        folds(&["strasse", "straße", "stra\u{AD}ße", "STRASSE"], "strasse");
        folds(&["łodz", "Łódź"], "lodz");
        folds(&["oﬃce", "office"], "office");
        folds(&["ﬁnd", "𝐟𝐢𝐧𝐝", "𝗳𝗶𝗻𝗱", "𝘍𝘐𝘕𝘋"], "find");
        folds(&["bøf", "bof"], "bof");
        folds(&["œuf", "oeuf"], "oeuf");
        folds(&["æble", "aeble"], "aeble");
        folds(&["ёлка", "елка"], "елка");
        folds(&["βιβλίο", "βιβλιο"], "βιβλιο");
        folds(&["أحمد", "احمد", "آحمد", "ا\u{654}حمد"], "احمد");
        folds(&["مدرسة", "مدرسه", "المدرسة", "والمدرسة"], "مدرسه");
        folds(&["عَرَبِيّ", "عربى", "عربی"], "عربي");
        folds(&["ســـلام"], "سلام");
        folds(&["שָׁלוֹם"], "שלום");
        folds(&["ＡＰＩ"], "api");
        folds(&["٢٠٢٤", "२०२४", "๒๐๒๔", "２０２４"], "2024");
        folds(&["हिन्दी", "हिंदी"], "हिंदी");
        folds(&["क़लम", "क\u{93C}लम", "कलम"], "कलम");
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_characters() {
        drawn("Rust语言book", "rust 语 言 book");
        drawn("か\u{3099}👍🏽 20°C", "が 👍 🏽 20 ° c");
        drawn("電腦 电脑 臺灣", "电 脑 电 脑 台 湾");
        drawn("ｶﾞﾗｽ ガラス がらす カ\u{3099}ラス", "が ら す が ら す が ら す が ら す");
        drawn("กี่ มี", "กี่ มี");
        drawn("한국 \u{1112}\u{1161}\u{11AB}국", "한 국 한 국");
        drawn("北\u{301}京", "北 京");
        drawn("नमस्ते दुनिया", "नमस्ते दुनिया");
        drawn("\u{301} a", "a");
    }

    #[test]
    fn a_normal_form_is_its_own_and_has_no_separator() {
        for c in '\u{80}'..'\u{20000}' {
            for text in [format!("a{c}b {c}y か{c}"), c.to_string()] {
                for token in tokens(&text) {
                    let form = token.form();
                    assert_eq!(normal_form(&form), form, "{c:?}");
                    assert!(
                        form.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric()),
                        "{c:?}"
                    );
                    assert!(!form.is_empty());
                }
            }
        }
    }

    #[test]
    fn ranges_are_those_of_the_original_text() {
        let text = "«Été» 北x ｶﾞ عَرَب";
        let words: Vec<_> = tokens(text).map(|token| &text[token.range()]).collect();
        assert_eq!(words, ["Été", "北", "x", "ｶﾞ", "عَرَب"]);
    }
}
