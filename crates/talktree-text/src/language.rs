//! The language of a text. Its script and its stop words tell it.
//!
//! A script that only one of these languages uses tells it at once: Greek, Hebrew, Hangul. Others share Latin,
//! Cyrillic or Arabic letters. There each stop word counts for the languages that have it, and so does a letter that
//! few of them have. No evidence, or the same for two languages, gives none.
//!
//! Stop words are compared by spelling, not by stem: `being` and `be` are stop words of English, `beings` is not. Each
//! list is that of one language, because one language's stop word is another one's noun: German `die`, Dutch `hoe`,
//! English `die` and `hoe`.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::token::{normal_form, tokens};

/// How many bytes of a text are read: the start of a longer one tells its language. So the cost has a limit.
const MAX_BYTES: usize = 4096;

/// If a language has this many votes more than any other, the rest of the text is not read.
const CLEAR_LEAD: u32 = 6;
/// After how many words the votes are compared.
const WORDS_PER_LOOK: usize = 16;

/// A language needs a vote from one of so many words: in prose every third word is a stop word, in code and in lists of
/// names few are.
const WORDS_PER_VOTE: usize = 10;

/// Japanese has kana for at least one of so many Han characters; a Chinese text may quote a few.
const HAN_PER_KANA: u32 = 10;

/// A language whose texts can be told from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "a name says it")]
pub enum Language {
    English,
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
    Swedish,
    Danish,
    Norwegian,
    Finnish,
    Polish,
    Czech,
    Hungarian,
    Romanian,
    Turkish,
    Indonesian,
    Vietnamese,
    Russian,
    Ukrainian,
    Arabic,
    Persian,
    Greek,
    Hebrew,
    Hindi,
    Tamil,
    Thai,
    Korean,
    Japanese,
    Chinese,
}

use Language::*;

/// Letters that only some languages have: lines of these languages and their letters. Each vowel with two marks is Vietnamese.
const LETTERS: &str = include_str!("letters.txt");

static LETTER_VOTES: LazyLock<HashMap<char, u32>> = LazyLock::new(|| {
    let lines = LETTERS.lines().filter_map(|line| line.split_once(": "));
    let votes = |(names, letters): (&str, &'static str)| {
        let languages = names.split(' ').filter_map(Language::named);
        let bits = languages.fold(0, |bits, language| bits | language.bit());
        letters.chars().map(move |letter| (letter, bits))
    };
    lines.flat_map(votes).collect()
});

impl Language {
    /// The languages that are written in Latin letters; all of them have stop words.
    const LATIN: u32 = (1 << (Vietnamese as u32 + 1)) - 1;

    /// The languages that join words to one without end.
    pub const COMPOUNDING: u32 = 1 << German as u32
        | 1 << Dutch as u32
        | 1 << Swedish as u32
        | 1 << Danish as u32
        | 1 << Norwegian as u32
        | 1 << Finnish as u32
        | 1 << Hungarian as u32;

    const ALL: [Language; 30] = [
        English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Danish, Norwegian,
        Finnish, Polish, Czech, Hungarian, Romanian, Turkish, Indonesian, Vietnamese, Russian,
        Ukrainian, Arabic, Persian, Greek, Hebrew, Hindi, Tamil, Thai, Korean, Japanese, Chinese,
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| format!("{language:?}") == name)
    }

    /// Returns the bit of the language in a set.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Returns the languages of a set.
    pub fn of_set(set: u32) -> impl Iterator<Item = Language> {
        Self::ALL.into_iter().filter(move |language| set & language.bit() != 0)
    }
}

/// Returns the languages that a text may be in, one [bit](Language::bit) each: those that most of its words point to. Code points to
/// none.
///
/// Reads the first four kilobytes at most.
///
/// ```
/// use talktree_text::{Language, languages};
///
/// assert_eq!(languages("Was hast du gestern gemacht?"), Language::German.bit());
/// assert_eq!(languages("Un libro"), languages("un"));
/// assert_eq!(languages("cargo build --release"), 0);
/// ```
#[must_use]
pub fn languages(text: &str) -> u32 {
    votes(tokens(text).map(|token| token.text())).winners()
}

/// Returns the language of a text, if its words tell only one.
pub(crate) fn language(text: &str) -> Option<Language> {
    let mut found = Language::of_set(languages(text));
    found.next().filter(|_| found.next().is_none())
}

fn votes<'a>(words: impl Iterator<Item = &'a str>) -> Votes {
    let mut votes = Votes::default();
    let mut bytes = 0;
    for (number, word) in words.enumerate() {
        bytes += word.len() + 1;
        if bytes > MAX_BYTES {
            break;
        }
        votes.count(word);
        if number % WORDS_PER_LOOK == WORDS_PER_LOOK - 1 && votes.lead() >= CLEAR_LEAD {
            break;
        }
    }
    votes
}

/// What the words of a text say about its language.
#[derive(Default)]
struct Votes {
    words: usize,
    of: [u32; Language::ALL.len()],
    han: u32,
    kana: u32,
}

impl Votes {
    fn count(&mut self, word: &str) {
        self.words += 1;
        if word.is_ascii() {
            // A single letter is more often a name or a part of code than a word.
            // Vietnamese is always written with its marks, without which its words look like those of others.
            if word.len() > 1 {
                self.add(stop_votes(word) & !Vietnamese.bit());
            }
            return;
        }
        let Some(first) = word.chars().find(|c| c.is_alphabetic()) else { return };
        match first {
            '\u{3040}'..='\u{30FF}' | '\u{FF66}'..='\u{FF9F}' => self.kana += 1,
            '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}' => {
                self.han += 1
            }
            '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7FF}' => {
                self.add(Korean.bit())
            }
            '\u{0E00}'..='\u{0E7F}' => self.add(Thai.bit()),
            '\u{0B80}'..='\u{0BFF}' => self.add(Tamil.bit()),
            '\u{0900}'..='\u{097F}' => self.add(Hindi.bit()),
            '\u{0590}'..='\u{05FF}' => self.add(Hebrew.bit()),
            '\u{0370}'..='\u{03FF}' | '\u{1F00}'..='\u{1FFF}' => self.add(Greek.bit()),
            // Most texts in these scripts are in the first of the two; the stop words and letters of the other decide.
            '\u{0400}'..='\u{052F}' => self.add_either(word, Russian, Ukrainian),
            '\u{0600}'..='\u{06FF}' => self.add_either(word, Arabic, Persian),
            _ => {
                self.add(letter_votes(word));
                self.add(stop_votes(word));
            }
        }
    }

    /// Counts a word of a script that two of the languages share.
    fn add_either(&mut self, word: &str, usual: Language, other: Language) {
        self.add(usual.bit() | other.bit());
        self.add(letter_votes(word));
        self.add(stop_votes(word));
    }

    fn add(&mut self, languages: u32) {
        let mut left = languages;
        while left != 0 {
            self.of[left.trailing_zeros() as usize] += 1;
            left &= left - 1;
        }
    }

    /// Returns how many votes the first has before the second.
    fn lead(&self) -> u32 {
        let mut best = [0; 2];
        for &votes in &self.of {
            if votes > best[0] {
                best = [votes, best[0]];
            } else if votes > best[1] {
                best[1] = votes;
            }
        }
        best[0] - best[1]
    }

    fn winners(mut self) -> u32 {
        let cjk = if self.kana * HAN_PER_KANA >= self.han.max(1) { Japanese } else { Chinese };
        self.of[cjk as usize] = self.han + self.kana;
        let most = self.of.into_iter().max().unwrap_or_default();
        if most == 0 || (most as usize * WORDS_PER_VOTE) < self.words {
            return 0;
        }
        let first = Language::ALL.into_iter().filter(|it| self.of[*it as usize] == most);
        let winners = first.fold(0, |bits, language| bits | language.bit());
        // If two languages with mostly the same words have the same count, the first one is taken.
        let alike = [(Russian, Ukrainian), (Arabic, Persian), (Danish, Norwegian)];
        let usual = alike.into_iter().find(|(a, b)| winners == a.bit() | b.bit());
        usual.map_or(winners, |(usual, _)| usual.bit())
    }
}

/// Returns the languages that have the most telling letter of the word.
fn letter_votes(word: &str) -> u32 {
    let telling =
        word.chars().filter(|c| !c.is_ascii()).flat_map(char::to_lowercase).map(|letter| {
            match letter {
                '\u{1EA0}'..='\u{1EF9}' => Vietnamese.bit(),
                letter => LETTER_VOTES.get(&letter).copied().unwrap_or_default(),
            }
        });
    telling.filter(|votes| *votes != 0).min_by_key(|votes| votes.count_ones()).unwrap_or_default()
}

/// The longest stop word, in bytes.
const MAX_WORD_BYTES: usize = 24;

/// The stop words of each language that they tell, a line each.
///
/// English was tuned on real questions, and has the parts of `don't` and `we'll` after the apostrophe.
const STOP_WORDS: &str = include_str!("stop_words.txt");

/// Returns each language that has stop words, with these.
fn lists() -> impl Iterator<Item = (Language, &'static str)> {
    STOP_WORDS.lines().filter_map(|line| {
        let (name, words) = line.split_once(": ")?;
        Some((Language::named(name)?, words))
    })
}

/// The stop words of all languages by their normalized spelling, with the languages that have each.
static STOPS: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    let mut stops = HashMap::new();
    for (language, words) in lists() {
        for token in tokens(words) {
            *stops.entry(token.form().into_owned()).or_default() |= language.bit();
        }
    }
    stops
});

/// Returns the languages that have the word as a stop word.
fn stop_votes(word: &str) -> u32 {
    if word.len() > MAX_WORD_BYTES {
        return 0;
    }
    STOPS.get(normal_form(word).as_ref()).copied().unwrap_or_default()
}

/// The stop words of one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopWords(u32);

impl StopWords {
    /// Returns the stop words of the language in which `text` is written; those of English if it tells none.
    ///
    /// A text in another script may have English words in it, which are no words of its own language.
    #[must_use]
    pub fn of(text: &str) -> Self {
        // One word is too little to take it for a stop word of another language: `todo` is not Spanish in most queries.
        let is_clear = |own: &Language| {
            own.bit() & Language::LATIN == 0
                || votes(tokens(text).map(|token| token.text())).of[*own as usize] > 1
        };
        let own = language(text).filter(is_clear).map_or(English.bit(), Language::bit);
        Self(if own & Language::LATIN == 0 { own | English.bit() } else { own })
    }

    /// Returns whether a normalized word is one of them.
    #[must_use]
    pub fn contains(self, word: &str) -> bool {
        STOPS.get(word).is_some_and(|languages| languages & self.0 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_tells_its_language() {
        for (text, expected) in [
            ("The deployment is on Friday.", English),
            ("Die Häuser am Hafen sind alt.", German),
            ("Was hast du gestern gemacht?", German),
            ("Je ne sais pas où est la gare.", French),
            ("¿Dónde está el coche de mi hermano?", Spanish),
            ("Non so dove sono le chiavi della macchina.", Italian),
            ("Onde fica a casa do meu irmão?", Portuguese),
            ("Waar heb ik de sleutels gelaten?", Dutch),
            ("Var har du lagt nycklarna till huset?", Swedish),
            ("Hvor har du lagt nøglerne til huset af?", Danish),
            ("Hva har du gjort med nøklene mine?", Norwegian),
            ("Missä minun avaimet ovat?", Finnish),
            ("Gdzie są moje klucze do domu?", Polish),
            ("Kde jsou moje klíče od domu, když je nemám?", Czech),
            ("Hol van a ház kulcsa?", Hungarian),
            ("Unde sunt cheile de la casă?", Romanian),
            ("Evin anahtarları nerede, çok aradım ama yok.", Turkish),
            ("Di mana kunci rumah saya?", Indonesian),
            ("Chìa khóa nhà của tôi ở đâu?", Vietnamese),
            ("Где мои ключи от дома?", Russian),
            ("Привет", Russian),
            ("Де мої ключі від дому?", Ukrainian),
            ("أين مفاتيح البيت؟", Arabic),
            ("کلید خانه من کجاست؟", Persian),
            ("Πού είναι τα κλειδιά μου;", Greek),
            ("איפה המפתחות שלי?", Hebrew),
            ("मेरी चाबी कहाँ है?", Hindi),
            ("என் சாவி எங்கே?", Tamil),
            ("กุญแจบ้านอยู่ที่ไหน", Thai),
            ("집 열쇠가 어디에 있어요?", Korean),
            ("家の鍵はどこですか。", Japanese),
            ("我家的钥匙在哪里？", Chinese),
            ("这个 SQLite 数据库 is broken 怎么办", Chinese),
        ] {
            assert_eq!(language(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_text_without_evidence_has_no_language() {
        for text in
            ["", "42", "cargo build --release", "Kubernetes Postgres Redis", "in", "la", "c d"]
        {
            assert_eq!(language(text), None, "{text}");
        }
        let code = "x = parse(y); assert_eq!(x.len(), y.len()); ".repeat(20) + "das der";
        assert_eq!(language(&code), None);
    }

    /// Every message is asked for its language when it is indexed.
    #[test]
    fn a_long_text_without_stop_words_is_read_in_part() {
        for word in ["xyzzy ", "ключ "] {
            let text = word.repeat(1_000_000);
            let mut read = 0;
            let words = tokens(&text).inspect(|_| read += 1);
            assert_ne!(votes(words.map(|token| token.text())).winners(), English.bit());
            assert_eq!(read, MAX_BYTES / word.len() + 1);
        }
    }

    #[test]
    fn stop_words_are_those_of_the_language_of_the_text() {
        let is_stop = |text: &str, word: &str| StopWords::of(text).contains(word);
        for (text, word, expected) in [
            ("what did they die of", "they", true),
            ("what did they die of", "die", false),
            ("wo ist die Katze", "die", true),
            ("wo ist die Katze", "of", false),
            ("waar is de hoe", "hoe", true),
            ("a hoe and an axe", "hoe", false),
            ("где the ключи", "the", true),
            ("Sicherheitsprüfung Todo hinzufügen", "todo", false),
            ("todo hinzu", "todo", false),
            ("being", "being", true),
            ("beings", "beings", false),
            ("", "the", true),
        ] {
            assert_eq!(is_stop(text, word), expected, "{text}: {word}");
        }
    }

    #[test]
    fn every_list_has_enough_words_and_every_language_its_place() {
        assert_eq!(lists().count(), 25);
        assert!(lists().all(|(_, words)| words.split_whitespace().count() >= 40));
        assert!(Language::ALL.iter().enumerate().all(|(at, language)| *language as usize == at));
        assert!(STOPS.keys().all(|word| word.len() <= MAX_WORD_BYTES));
        assert_eq!(Language::LATIN.count_ones(), 18);
    }
}
