//! Adds to each word of a query its forms that the store has.
//!
//! The index tells the languages of a word, those of the texts that have it, or the query does. Any text may have English words, and the
//! endings of English are those of other languages, too.

use rusqlite::Connection;
use talktree_text::{Language, Query, Stems, StopWords, Term, normal_form, spellings};

use super::super::error::BackendResult;
use super::super::index::{each_compound, each_from, languages};
use super::super::interrupt::Watch;
use crate::search::MAX_EXPANSIONS;

/// A word is searched in at most so many other forms: each is a list of the index to merge.
const MAX_FORMS: usize = 16;
/// The words of a longer query beyond this many are searched as they are written.
const MAX_WORDS: usize = 16;

/// A compound is a form of its last word if that has at least so many letters: a `Stromrechnung` is a `Rechnung`.
const MIN_COMPOUNDED: usize = 5;

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
    let (asked, stops) = (talktree_text::languages(&text), StopWords::of(&text));
    let plain = query.clauses.iter_mut().filter(|clause| word(clause).is_some());
    for term in plain.flatten().take(MAX_WORDS) {
        let Some(written) = term.tokens.first().cloned() else { continue };
        let form = normal_form(&written);
        if stops.contains(&form) {
            continue;
        }
        match forms(conn, (&written, &form), asked, watch) {
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
    asked: u32,
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
        let written = languages(conn, word)?;
        let known = written.unwrap_or_default();
        let of_word = [asked & known, known, asked].into_iter().find(|set| *set != 0);
        // Of two words in texts of no language it is not known that they are words of one.
        let of_other = if of_word.is_some() { u32::MAX } else { english };
        let of_word = of_word.or(written.map(|_| u32::MAX)).map(|set| set | english);
        let Some(stems) = Stems::of(word, of_word) else { continue };
        each_from(conn, stems.start(), watch, |other, languages| {
            let languages = if languages == 0 { of_other } else { languages | english };
            if stems.has_form(other, languages) && !words.iter().any(|word| word == other) {
                found.push(other.to_owned());
            }
            true
        })?;
    }
    if form.chars().count() >= MIN_COMPOUNDED {
        each_compound(conn, form, watch, |other| found.push(other))?;
    }
    found.sort_by_key(|other| (other.len().abs_diff(form.len()), other.clone()));
    found.dedup();
    found.truncate(MAX_FORMS);
    found.splice(0..0, words.into_iter().skip(1));
    Ok(found)
}
