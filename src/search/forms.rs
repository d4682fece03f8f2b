//! Which words are forms of one word, in other languages than English.
//!
//! The index has English stems. Of other languages the words of the vocabulary are compared by the stems of their
//! language when a search needs them, so a language can be added without indexing again.
//!
//! The vocabulary has no diacritics, and the stemmers need some of them: `-ción`, `-ée`, `-ый`. So a word that ends like one
//! of those is stemmed in both spellings, and two words are forms of each other if any of their stems is the same.

use rust_stemmers::{Algorithm, Stemmer};

use super::language::Language::{self, *};

/// A shorter word has too few letters for a stem.
const MIN_CHARS: usize = 4;
/// A longer word is no word of a language.
const MAX_CHARS: usize = 40;
/// The forms of a word share so many letters.
const SHARED_CHARS: usize = 3;

/// Endings as the vocabulary has them, and as the language may write them.
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

/// The languages whose forms are known.
pub(crate) fn known_languages() -> u32 {
    Language::of_set(u32::MAX)
        .filter(|language| algorithm(*language).is_some())
        .fold(0, |set, language| set | language.bit())
}

/// The stems of a word in some languages, to compare others with.
pub(crate) struct Stems<'w> {
    word: &'w str,
    of: Vec<(Language, Vec<String>)>,
}

impl<'w> Stems<'w> {
    /// Returns the stems of a normalized word in a set of languages; `None` if it has no other forms.
    pub(crate) fn of(word: &'w str, languages: u32) -> Option<Self> {
        let chars = word.chars().count();
        if !(MIN_CHARS..=MAX_CHARS).contains(&chars) || !word.chars().all(char::is_alphabetic) {
            return None;
        }
        let of: Vec<_> = Language::of_set(languages & known_languages())
            .map(|language| (language, stems(language, word)))
            .collect();
        (!of.is_empty()).then_some(Self { word, of })
    }

    /// Returns the letters that all forms begin with.
    pub(crate) fn start(&self) -> &'w str {
        let end = self.word.char_indices().nth(SHARED_CHARS).map_or(self.word.len(), |(at, _)| at);
        &self.word[..end]
    }

    /// Returns whether another word is a form of this one in a language that both have.
    pub(crate) fn has_form(&self, other: &str, languages: u32) -> bool {
        let mut shared = self.of.iter().filter(|(language, _)| languages & language.bit() != 0);
        other != self.word
            && other.chars().count() <= MAX_CHARS
            && shared.any(|(language, known)| {
                stems(*language, other).iter().any(|stem| known.contains(stem))
            })
    }
}

/// Returns the stems of a word in one language, by each way in which it may be written.
fn stems(language: Language, word: &str) -> Vec<String> {
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

/// English has its stems in the index.
fn algorithm(language: Language) -> Option<Algorithm> {
    Some(match language {
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
        English | Polish | Czech | Indonesian | Vietnamese | Ukrainian | Persian | Hebrew
        | Hindi | Thai | Korean | Japanese | Chinese => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::tokenizer::normalize;

    fn is_form(language: Language, word: &str, other: &str) -> bool {
        let (word, other) = (normalize(word), normalize(other));
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
        ] {
            assert!(is_form(language, word, other), "{word} {other}");
            assert!(is_form(language, other, word), "{other} {word}");
        }
    }

    #[test]
    fn other_words_other_languages_and_short_words_are_no_forms() {
        for (language, word, other) in [
            (German, "Haus", "Haut"),
            (German, "Tag", "Tage"),
            (German, "Haus", "Haus"),
            (English, "deploy", "deployment"),
            (Polish, "książka", "książki"),
            (Spanish, "casa2", "casas2"),
        ] {
            assert!(!is_form(language, word, other), "{word} {other}");
        }
        let stems = Stems::of("hauser", German.bit());
        assert!(stems.is_some_and(|stems| !stems.has_form("haus", French.bit())));
    }

    #[test]
    fn many_languages_are_known() {
        assert_eq!(known_languages().count_ones(), 17);
    }
}
