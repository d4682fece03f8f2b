//! Which words are forms of one word, which may be misspelled, and which may be two.
//!
//! The index has words as they are. The words of a query are compared with those of the index when a search needs them, so a
//! language can be added without indexing again. Two words are forms of each other if Snowball gives them one stem. The other
//! rule is for languages with many endings, some of which have no stemmer, and for normal forms, which lack the diacritics that
//! the stemmers need: the words begin alike, and the rest of each is empty or begins with a vowel.

use rust_stemmers::{Algorithm, Stemmer};

use crate::language::Language::{self, *};
use crate::token::normal_form;

/// A shorter word has too few letters for a stem.
const MIN_CHARS: usize = 3;
/// A longer word is no word of a language.
const MAX_CHARS: usize = 40;
/// The forms of a word share at least so many letters.
const SHARED_CHARS: usize = 3;
/// Words that differ in endings share at least this part of the longer one, in fifths. With half of it, eight words of the set
/// `languages` in ten languages are taken for forms of others, instead of three.
const SHARED_FIFTHS: usize = 3;

/// Particles that Arabic joins to the beginning of a word.
const PARTICLES: [&str; 5] = ["و", "ف", "ب", "ل", "ك"];

/// Vowels with a diaeresis, and how they are written without one.
const UMLAUTS: [(char, &str); 3] = [('ä', "ae"), ('ö', "oe"), ('ü', "ue")];

/// The languages of the second rule.
const RICH: u32 = Spanish.bit()
    | Italian.bit()
    | Portuguese.bit()
    | Romanian.bit()
    | Swedish.bit()
    | Danish.bit()
    | Norwegian.bit()
    | Finnish.bit()
    | Polish.bit()
    | Czech.bit()
    | Russian.bit()
    | Ukrainian.bit()
    | Greek.bit()
    | Hindi.bit();

/// The stems of a word in some languages, to compare others with.
#[derive(Debug)]
pub struct Stems<'w> {
    word: &'w str,
    start: &'w str,
    /// Those of the second rule.
    rich: u32,
    of: Vec<(Language, String)>,
}

impl<'w> Stems<'w> {
    /// Returns the stems of a normal form in a set of languages, a [bit](Language::bit) each; `None` if it has no other forms.
    ///
    /// Of a word that is in no text the languages may be `None`: any. It may be misspelled, so its forms must have its stem.
    #[must_use]
    pub fn of(word: &'w str, languages: Option<u32>) -> Option<Self> {
        let chars = word.chars().count();
        if !(MIN_CHARS..=MAX_CHARS).contains(&chars) || !word.chars().all(|c| !c.is_ascii_digit()) {
            return None;
        }
        let of: Vec<_> = Language::of_set(languages.unwrap_or(u32::MAX))
            .filter_map(|language| Some((language, stem(language, word)?)))
            .collect();
        // All forms of a word begin as its shortest stem does, up to its last letter: `cities` and `city`.
        let stems = of.iter().map(|(_, stem)| shared_chars(stem, word).saturating_sub(1));
        let rich = languages.unwrap_or_default() & RICH;
        let endings = (rich != 0).then(|| (SHARED_FIFTHS * letters(word)).div_ceil(5));
        let shared = stems.chain(endings).min()?.max(SHARED_CHARS);
        Some(Self { word, start: start_of(word, shared), rich, of })
    }

    /// Returns the letters that all forms begin with.
    #[must_use]
    pub fn start(&self) -> &'w str {
        self.start
    }

    /// Returns whether another word is a form of this one in a language that both have.
    #[must_use]
    pub fn has_form(&self, other: &str, languages: u32) -> bool {
        let mut stems = self.of.iter().filter(|(language, _)| languages & language.bit() != 0);
        other != self.word
            && other.chars().count() <= MAX_CHARS
            && (self.rich & languages != 0 && differ_in_endings(self.word, other)
                || stems.any(|(language, known)| stem(*language, other).as_ref() == Some(known)))
    }
}

/// Returns how many characters two words begin with.
fn shared_chars(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// Returns the first characters of a word.
fn start_of(word: &str, chars: usize) -> &str {
    word.char_indices().nth(chars).map_or(word, |(end, _)| &word[..end])
}

/// Returns how many letters a word has, without the vowel signs of Hindi.
fn letters(word: &str) -> usize {
    word.chars().filter(|c| !matches!(c, '\u{900}'..='\u{903}' | '\u{93E}'..='\u{94C}')).count()
}

/// Returns whether two words begin alike, and the rest of each is empty or begins with a vowel: `premier` and `première`.
fn differ_in_endings(a: &str, b: &str) -> bool {
    let shared = shared_chars(a, b);
    let longer = letters(a).max(letters(b));
    let is_ending = |word: &str, from| word.chars().nth(from).is_none_or(is_vowel);
    // The endings may begin alike: `mangée` and `manger`.
    (shared.saturating_sub(1)..=shared).any(|from| {
        from >= SHARED_CHARS
            && 5 * letters(start_of(a, from)) >= SHARED_FIFTHS * longer
            && is_ending(a, from)
            && is_ending(b, from)
    })
}

/// Returns whether a character of a normal form is a vowel of a language that has endings: in Latin, Greek, Cyrillic or Devanagari.
fn is_vowel(c: char) -> bool {
    "aeiouyαεηιουωаеиоуыэюяіє".contains(c)
        || matches!(c, '\u{900}'..='\u{914}' | '\u{93E}'..='\u{94C}')
}

/// Returns how a word may be written with other letters: `Mueller` for `Müller` and the reverse, an Arabic word with a particle.
///
/// Each is a word that may not exist: an engine that has it searches it, too.
#[must_use]
pub fn spellings(written: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lower = written.to_lowercase();
    if lower.contains(['ä', 'ö', 'ü']) {
        let long = UMLAUTS.iter().fold(lower, |word, (vowel, long)| word.replace(*vowel, long));
        found.push(normal_form(&long).into_owned());
    } else if UMLAUTS.iter().any(|(_, long)| lower.contains(long)) {
        found.push(UMLAUTS.iter().fold(lower, |word, (_, long)| word.replace(long, &long[..1])));
    } else if lower.starts_with(|c| matches!(c, '\u{620}'..='\u{64A}')) {
        let form = normal_form(written);
        found.extend(PARTICLES.iter().map(|particle| format!("{particle}{form}")));
        let bare = PARTICLES.iter().find_map(|particle| form.strip_prefix(particle));
        found.extend(bare.filter(|rest| rest.chars().count() > SHARED_CHARS).map(str::to_owned));
    }
    found
}

/// Returns the stem of a word in a language; `None` if the language has no stemmer.
fn stem(language: Language, word: &str) -> Option<String> {
    let stemmer = Stemmer::create(algorithm(language)?);
    // Without their accents `mangée` and `première` are not known for feminine.
    let masculine = || word.strip_suffix('e').or_else(|| word.strip_suffix("es"));
    let word = if language == French { masculine().unwrap_or(word) } else { word };
    Some(stemmer.stem(word).into_owned())
}

fn algorithm(language: Language) -> Option<Algorithm> {
    Some(match language {
        English => Algorithm::English,
        German => Algorithm::German,
        French => Algorithm::French,
        Spanish => Algorithm::Spanish,
        Italian => Algorithm::Italian,
        Portuguese => Algorithm::Portuguese,
        Dutch => Algorithm::Dutch,
        Swedish => Algorithm::Swedish,
        Danish => Algorithm::Danish,
        Norwegian => Algorithm::Norwegian,
        Finnish => Algorithm::Finnish,
        Hungarian => Algorithm::Hungarian,
        Romanian => Algorithm::Romanian,
        Turkish => Algorithm::Turkish,
        Russian => Algorithm::Russian,
        Arabic => Algorithm::Arabic,
        Greek => Algorithm::Greek,
        Tamil => Algorithm::Tamil,
        Polish | Czech | Indonesian | Vietnamese | Ukrainian | Persian | Hebrew | Hindi | Thai
        | Korean | Japanese | Chinese => return None,
    })
}

/// A word is searched as two words of at least so many letters each.
const MIN_PART: usize = 2;
/// A longer word is not searched as two words: no index has words of more than 40 letters.
const MAX_SPLIT: usize = 80;
/// From so many letters on, a word is corrected by one edit, or by two.
///
/// Of 32 misspelled words of real queries this rule corrects 30. Shorter words have too many neighbours.
const ONE_EDIT: usize = 5;
const TWO_EDITS: usize = 9;
/// Longer words are not corrected: nobody types them.
const MAX_CORRECTED: usize = 40;

/// Returns the ways to split a word in two; none if it is very long.
pub fn splits(word: &str) -> impl Iterator<Item = (&str, &str)> {
    let count = word.chars().count();
    let is_short = count <= MAX_SPLIT;
    word.char_indices()
        .enumerate()
        .take_while(move |_| is_short)
        .filter(move |(number, _)| *number >= MIN_PART && number + MIN_PART <= count)
        .map(|(_, (at, _))| word.split_at(at))
}

/// A word that may be misspelled, to compare with others.
#[derive(Debug)]
pub struct Misspelled {
    letters: Vec<char>,
    max_edits: usize,
}

impl Misspelled {
    /// Returns the word to compare; `None` if it is not corrected: because it is short, or has digits.
    pub fn of(word: &str) -> Option<Self> {
        let letters: Vec<char> = normal_form(word).chars().collect();
        let max_edits = match letters.len() {
            TWO_EDITS..=MAX_CORRECTED => 2,
            ONE_EDIT..TWO_EDITS => 1,
            _ => return None,
        };
        letters.iter().all(|c| c.is_alphabetic()).then_some(Self { letters, max_edits })
    }

    /// The first letter is hardly ever the wrong one.
    pub fn first(&self) -> char {
        self.letters[0]
    }

    /// Returns by how many edits a normalized word differs, if they are few: a letter more, less or different, or two
    /// neighbours swapped.
    pub fn distance(&self, other: &str) -> Option<usize> {
        let (bytes, max) = (other.len(), self.max_edits);
        // Most words differ in length: a letter has one to four bytes.
        if bytes + max < self.letters.len() || bytes > 4 * (self.letters.len() + max) {
            return None;
        }
        let other: Vec<char> = other.chars().collect();
        let (rows, columns) = (self.letters.len(), other.len());
        if rows.abs_diff(columns) > max || !other.iter().all(|c| c.is_alphabetic()) {
            return None;
        }
        let mut before: Vec<usize> = Vec::new();
        let mut last: Vec<usize> = (0..=columns).collect();
        for row in 1..=rows {
            let mut next = vec![row];
            for column in 1..=columns {
                let is_same = self.letters[row - 1] == other[column - 1];
                let mut least = (last[column] + 1)
                    .min(next[column - 1] + 1)
                    .min(last[column - 1] + usize::from(!is_same));
                if row > 1
                    && column > 1
                    && self.letters[row - 1] == other[column - 2]
                    && self.letters[row - 2] == other[column - 1]
                {
                    least = least.min(before[column - 2] + 1);
                }
                next.push(least);
            }
            if next.iter().all(|edits| *edits > max) {
                return None;
            }
            before = std::mem::replace(&mut last, next);
        }
        Some(last[columns]).filter(|edits| (1..=max).contains(edits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_form(language: Language, word: &str, other: &str) -> bool {
        let (word, other) = (normal_form(word), normal_form(other));
        let stems = Stems::of(&word, Some(language.bit()));
        stems.is_some_and(|stems| {
            other.starts_with(stems.start()) && stems.has_form(&other, language.bit())
        })
    }

    #[test]
    fn words_with_one_stem_are_forms_of_each_other() {
        for (language, word, other) in [
            (German, "Haus", "Häusern"),
            (German, "Küche", "Küchen"),
            (French, "mangée", "manger"),
            (French, "nationale", "nationaux"),
            (French, "première", "premier"),
            (Spanish, "canción", "canciones"),
            (Spanish, "instalación", "instalaciones"),
            (Spanish, "comía", "comer"),
            (Portuguese, "instalação", "instalações"),
            (Italian, "gatto", "gatti"),
            (Dutch, "sleutel", "sleutels"),
            (Swedish, "flicka", "flickor"),
            (Russian, "книга", "книгами"),
            (Russian, "новый", "новая"),
            (English, "deploys", "deploying"),
            (English, "city", "cities"),
            (English, "dog", "dogs"),
            (Hindi, "लड़का", "लड़के"),
            (Polish, "książka", "książki"),
            (Czech, "zelený", "zelená"),
            (Swedish, "stor", "stora"),
        ] {
            assert!(is_form(language, word, other), "{word} {other}");
            assert!(is_form(language, other, word), "{other} {word}");
        }
    }

    #[test]
    fn other_words_other_languages_and_short_words_are_no_forms() {
        for (language, word, other) in [
            (German, "Haus", "Haut"),
            (German, "Haus", "Haus"),
            (English, "deploy", "depend"),
            (Polish, "książka", "książę"),
            (Italian, "amico", "amido"),
            (Spanish, "casa2", "casas2"),
        ] {
            assert!(!is_form(language, word, other), "{word} {other}");
        }
        let stems = Stems::of("hauser", Some(German.bit()));
        assert!(stems.is_some_and(|stems| !stems.has_form("haus", French.bit())));
    }

    #[test]
    fn a_word_that_is_in_no_text_has_the_forms_of_its_stem() {
        let has_form = |word, other| {
            Stems::of(word, None).is_some_and(|stems| stems.has_form(other, u32::MAX))
        };
        assert!(has_form("canciones", "cancion"));
        assert!(!has_form("thinkibg", "think"));
    }

    #[test]
    fn a_word_may_be_written_with_other_letters() {
        assert_eq!(spellings("Müller"), ["mueller"]);
        assert_eq!(spellings("Mueller"), ["muller"]);
        assert!(spellings("كتاب").contains(&"وكتاب".to_owned()));
        assert!(spellings("وكتاب").contains(&"كتاب".to_owned()));
        assert!(spellings("word").is_empty());
    }

    #[track_caller]
    fn differs(written: &str, other: &str, expected: Option<usize>) {
        let word = Misspelled::of(written);
        assert_eq!(word.and_then(|word| word.distance(other)), expected, "{written} {other}");
    }

    #[test]
    fn words_are_one_edit_apart_from_five_letters_on_and_two_from_nine() {
        differs("seesion", "session", Some(1));
        differs("sesion", "session", Some(1));
        differs("sesssion", "session", Some(1));
        differs("sessoin", "session", Some(1));
        differs("sesoin", "session", None);
        differs("enivronmant", "environment", Some(2));
        differs("teh", "the", None);
        differs("größe", "große", None);
        differs("привот", "привет", Some(1));
    }

    #[test]
    fn a_word_does_not_differ_from_itself_and_digits_are_never_corrected() {
        differs("session", "session", None);
        differs("sha256sum", "sha257sum", None);
        differs("version", "versio2", None);
    }

    /// Each way to split a word of 100 000 letters was looked up: the search took minutes, whatever its timeout.
    #[test]
    fn a_very_long_word_is_not_split() {
        assert_eq!(splits(&"a".repeat(MAX_SPLIT)).count(), MAX_SPLIT - 2 * MIN_PART + 1);
        assert_eq!(splits(&"a".repeat(MAX_SPLIT + 1)).count(), 0);
    }

    #[test]
    fn each_part_of_a_split_has_two_letters() {
        let drawn = |word| splits(word).map(|(a, b)| format!("{a} {b}")).collect::<Vec<_>>();
        assert_eq!(drawn("hardl"), ["ha rdl", "har dl"]);
        assert_eq!(drawn("übel"), ["üb el"]);
        assert_eq!(drawn("abc"), [""; 0]);
    }
}
