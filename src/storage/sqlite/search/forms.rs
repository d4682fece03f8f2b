//! Adds to each word of a query its forms that the store has.
//!
//! A query tells its language, or the index does: the languages of the texts that have the word. Any text may have English words, and
//! the endings of English are those of other languages, too.

use rusqlite::Connection;
use talktree_text::{Language, Query, Stems, StopWords, Term, language, normal_form, spellings};

use super::super::error::BackendResult;
use super::super::index::{each_from, languages};
use super::super::interrupt::Watch;
use crate::search::MAX_EXPANSIONS;

/// A word is searched in at most so many other forms: each is a list of the index to merge.
const MAX_FORMS: usize = 16;
/// The words of a longer query beyond this many are searched as they are written.
const MAX_WORDS: usize = 32;

/// Adds the forms of the words of a query; returns whether prefixes were cut. If the time for that is over, the other words have no
/// forms.
pub(in super::super) fn add(
    conn: &Connection,
    query: &mut Query,
    watch: &Watch,
) -> BackendResult<bool> {
    let is_capped = cap_prefixes(conn, query, watch)?;
    let words: Vec<&str> = query.clauses.iter().filter_map(|clause| word(clause)).collect();
    let text = words.join(" ");
    let (language, stops) = (language(&text), StopWords::of(&text));
    let plain = query.clauses.iter_mut().filter(|clause| word(clause).is_some());
    for term in plain.flatten().take(MAX_WORDS) {
        let Some(written) = term.tokens.first().cloned() else { continue };
        let form = normal_form(&written);
        if stops.contains(&form) {
            continue;
        }
        match forms(conn, (&written, &form), language, watch) {
            Ok(forms) => term.forms.extend(forms),
            Err(error) if watch.is_end_of_budget(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(is_capped)
}

/// Searches prefixes that too many terms begin with as whole words, with a notice. Returns whether there are any.
fn cap_prefixes(conn: &Connection, query: &mut Query, watch: &Watch) -> BackendResult<bool> {
    let mut left = MAX_EXPANSIONS;
    let mut notices = Vec::new();
    for term in query.clauses.iter_mut().flatten().filter(|term| term.is_prefix) {
        let Some(start) = term.tokens.last().map(|word| normal_form(word).into_owned()) else {
            continue;
        };
        let mut count = 0;
        each_from(conn, &start, watch, |_, _| {
            count += 1;
            count <= left
        })?;
        if count <= left {
            left -= count;
            continue;
        }
        // As a phrase it is never relaxed, and neither was the prefix.
        (term.is_prefix, term.is_quoted) = (false, true);
        let words = term.tokens.join(" ");
        notices
            .push(format!("\"{words}*\" expands to too many words: it is searched as \"{words}\""));
    }
    let is_capped = !notices.is_empty();
    notices.dedup();
    query.notices.extend(notices);
    Ok(is_capped)
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

/// Returns the forms of a word, those of nearly the same length first.
fn forms(
    conn: &Connection,
    (written, form): (&str, &str),
    language: Option<Language>,
    watch: &Watch,
) -> BackendResult<Vec<String>> {
    let english = Language::English.bit();
    let mut found = Vec::new();
    let mut words = vec![form.to_owned()];
    for spelling in spellings(written) {
        if languages(conn, &spelling)?.is_some() {
            words.push(spelling);
        }
    }
    for word in &words {
        let of_word = match (language, languages(conn, word)?) {
            (Some(language), _) => language.bit() | english,
            (None, Some(languages)) => languages | english,
            (None, None) => u32::MAX,
        };
        let Some(stems) = Stems::of(word, of_word) else { continue };
        each_from(conn, stems.start(), watch, |other, languages| {
            if stems.has_form(other, (languages | english) & of_word)
                && !words.iter().any(|word| word == other)
            {
                found.push(other.to_owned());
            }
            true
        })?;
    }
    found.sort_by_key(|other| (other.len().abs_diff(form.len()), other.clone()));
    found.dedup();
    found.truncate(MAX_FORMS);
    found.splice(0..0, words.into_iter().skip(1));
    Ok(found)
}
