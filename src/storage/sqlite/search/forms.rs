//! Adds to each word of a query its forms that the store has.
//!
//! A query tells its language, or the vocabulary does: of a word that the store has in other languages than English, those
//! are taken. A word that it has only in English has its stem in the index, and no forms.

use std::collections::HashSet;

use rusqlite::Connection;

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::super::vocabulary;
use crate::search::forms::{Stems, known_languages};
use crate::search::language::{Language, StopWords, language};
use crate::search::stemmer::stem;
use crate::search::tokenizer::normalize;
use crate::search::{Query, Term};

/// A word is searched in at most so many other forms: each is a list of the index to merge.
const MAX_FORMS: usize = 16;
/// The words of a longer query beyond this many are searched as they are written.
const MAX_WORDS: usize = 32;

/// Adds the forms of the words of a query. If the time for that is over, the other words have none.
pub(super) fn add(conn: &Connection, query: &mut Query, watch: &Watch) -> BackendResult<()> {
    let words: Vec<&str> = query.clauses.iter().filter_map(|clause| word(clause)).collect();
    let text = words.join(" ");
    let (language, stops) = (language(&text), StopWords::of(&text));
    if language == Some(Language::English) {
        return Ok(());
    }
    let plain = query.clauses.iter_mut().filter(|clause| word(clause).is_some());
    for term in plain.flatten().take(MAX_WORDS) {
        let Some(word) = term.tokens.first().map(|word| normalize(word)) else { continue };
        if stops.contains(&word) {
            continue;
        }
        match forms(conn, &word, language, watch) {
            Ok(forms) => term.forms.extend(forms),
            Err(error) if watch.is_end_of_budget(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the only word of a clause without an operator.
fn word(clause: &[Term]) -> Option<&str> {
    match clause {
        [term] if !term.is_quoted && !term.is_prefix => match term.tokens.as_slice() {
            [word] => Some(word),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the forms of a normalized word, those of nearly the same length first; of those with one stem in the index one.
fn forms(
    conn: &Connection,
    word: &str,
    language: Option<Language>,
    watch: &Watch,
) -> BackendResult<Vec<String>> {
    let english = Language::English.bit();
    let languages = match language {
        Some(language) => language.bit(),
        None => match vocabulary::languages(conn, word)?.unwrap_or(0) {
            0 => known_languages(),
            languages => languages & !english,
        },
    };
    let Some(stems) = Stems::of(word, languages) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    vocabulary::each_in_languages(conn, stems.start(), languages, watch, |other, languages| {
        if stems.has_form(other, languages) {
            found.push(other.to_owned());
        }
    })?;
    found.sort_by_key(|form| (form.len().abs_diff(word.len()), form.clone()));
    let mut known = HashSet::from([stem(word).into_owned()]);
    found.retain(|form| known.insert(stem(form).into_owned()));
    found.truncate(MAX_FORMS);
    Ok(found)
}
