//! Which words are forms of one word.
//!
//! The index has words as they are. The words of a query are compared with those of the index by their stems when a search needs
//! them, so a language can be added without indexing again. Snowball stems; for Hindi the endings are taken off here.
//!
//! Normal forms have no diacritics, and the stemmers need some of them: `-ción`, `-ée`, `-ый`. So a word that ends like one
//! of those is stemmed in both spellings, and two words are forms of each other if any of their stems is the same.

use rust_stemmers::{Algorithm, Stemmer};

use crate::language::Language::{self, *};
use crate::token::normal_form;

/// A shorter word has too few letters for a stem.
const MIN_CHARS: usize = 3;
/// A longer word is no word of a language.
const MAX_CHARS: usize = 40;
/// The forms of a word share at least so many letters.
const SHARED_CHARS: usize = 3;

/// Endings as normal forms have them, and as the language may write them.
const ENDINGS: &[(Language, &str, &str)] = &[
    (French, "e", "é"),
    (French, "es", "és"),
    (French, "ee", "ée"),
    (French, "ees", "ées"),
    (French, "ere", "ère"),
    (French, "eres", "ères"),
    (French, "erent", "èrent"),
    (Spanish, "cion", "ción"),
    (Spanish, "ia", "ía"),
    (Spanish, "ias", "ías"),
    (Spanish, "ian", "ían"),
    (Spanish, "iamos", "íamos"),
    (Spanish, "are", "aré"),
    (Spanish, "ere", "eré"),
    (Spanish, "ire", "iré"),
    (Portuguese, "cao", "ção"),
    (Portuguese, "coes", "ções"),
    (Portuguese, "ao", "ão"),
    (Portuguese, "oes", "ões"),
    (Italian, "ita", "ità"),
    (Russian, "ыи", "ый"),
    (Russian, "ии", "ий"),
    (Russian, "ои", "ой"),
    (Russian, "еи", "ей"),
];

/// The endings of Hindi, longest first: gender, number and case.
const HINDI: [&str; 20] = [
    "ियों",
    "ियाँ",
    "ियां",
    "ाओं",
    "ुओं",
    "ाएं",
    "ाएँ",
    "ों",
    "ें",
    "ीं",
    "ां",
    "ओं",
    "ा",
    "ि",
    "ी",
    "ु",
    "ू",
    "े",
    "ै",
    "ो",
];

/// Particles that Arabic joins to the beginning of a word.
const PARTICLES: [&str; 5] = ["و", "ف", "ب", "ل", "ك"];

/// Vowels with a diaeresis, and how they are written without one.
const UMLAUTS: [(char, &str); 3] = [('ä', "ae"), ('ö', "oe"), ('ü', "ue")];

/// The stems of a word in some languages, to compare others with.
#[derive(Debug)]
pub struct Stems<'w> {
    word: &'w str,
    start: &'w str,
    of: Vec<(Language, Vec<String>)>,
}

impl<'w> Stems<'w> {
    /// Returns the stems of a normal form in a set of languages, a [bit](Language::bit) each; `None` if it has no other forms.
    #[must_use]
    pub fn of(word: &'w str, languages: u32) -> Option<Self> {
        let chars = word.chars().count();
        if !(MIN_CHARS..=MAX_CHARS).contains(&chars) || !word.chars().all(|c| !c.is_ascii_digit()) {
            return None;
        }
        let of: Vec<_> = Language::of_set(languages)
            .map(|language| (language, stems(language, word)))
            .filter(|(_, stems)| !stems.is_empty())
            .collect();
        // All forms of a word begin as its shortest stem does, up to its last letter: `cities` and `city`.
        let shared = of.iter().flat_map(|(_, stems)| stems).map(|stem| {
            let same = stem.chars().zip(word.chars()).take_while(|(a, b)| a == b).count();
            same.saturating_sub(1).max(SHARED_CHARS)
        });
        let shared = shared.min()?;
        let end = word.char_indices().nth(shared).map_or(word.len(), |(at, _)| at);
        Some(Self { word, start: &word[..end], of })
    }

    /// Returns the letters that all forms begin with.
    #[must_use]
    pub fn start(&self) -> &'w str {
        self.start
    }

    /// Returns whether another word is a form of this one in a language that both have.
    #[must_use]
    pub fn has_form(&self, other: &str, languages: u32) -> bool {
        let mut shared = self.of.iter().filter(|(language, _)| languages & language.bit() != 0);
        other != self.word
            && other.chars().count() <= MAX_CHARS
            && shared.any(|(language, known)| {
                stems(*language, other).iter().any(|stem| known.contains(stem))
            })
    }
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

/// Returns the stems of a word in one language, by each way in which it may be written; none if the language has no stemmer.
fn stems(language: Language, word: &str) -> Vec<String> {
    if language == Hindi {
        let stem = HINDI.iter().find_map(|ending| word.strip_suffix(ending));
        let stem = stem.filter(|stem| stem.chars().count() > 1).unwrap_or(word);
        return vec![stem.to_owned()];
    }
    let Some(algorithm) = algorithm(language) else { return Vec::new() };
    let stemmer = Stemmer::create(algorithm);
    let mut all = vec![stemmer.stem(word).into_owned()];
    for (_, ending, written) in ENDINGS.iter().filter(|(of, ..)| *of == language) {
        if let Some(start) = word.strip_suffix(ending) {
            all.push(stemmer.stem(&format!("{start}{written}")).into_owned());
        }
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    fn is_form(language: Language, word: &str, other: &str) -> bool {
        let (word, other) = (normal_form(word), normal_form(other));
        let stems = Stems::of(&word, language.bit());
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
            (Polish, "książka", "książki"),
            (Spanish, "casa2", "casas2"),
        ] {
            assert!(!is_form(language, word, other), "{word} {other}");
        }
        let stems = Stems::of("hauser", German.bit());
        assert!(stems.is_some_and(|stems| !stems.has_form("haus", French.bit())));
    }

    #[test]
    fn a_word_may_be_written_with_other_letters() {
        assert_eq!(spellings("Müller"), ["mueller"]);
        assert_eq!(spellings("Mueller"), ["muller"]);
        assert!(spellings("كتاب").contains(&"وكتاب".to_owned()));
        assert!(spellings("وكتاب").contains(&"كتاب".to_owned()));
        assert!(spellings("word").is_empty());
    }
}
