//! The terms of the index, for forms, spellings and beginnings of the words of a query.
//!
//! FTS5 lists the terms of a beginning by walking their postings, which takes too long. So each term is also in a plain table, with the
//! languages of the texts that have it, a bit each: those decide which other terms are its forms. A term of a text whose language
//! cannot be told has none of them, and may be of any.
//!
//! A long word of a language that joins words is there backwards, too, to be found by its last word.
//!
//! A search adds to each word of its query the forms that the table has. The index tells the languages of a word, those of the texts that
//! have it, or the query does. Any text may have English words, and the endings of English are those of other languages, too.
//!
//! Terms that only deleted messages had stay until an erasure sweeps them out.
//!
//! Invariant: a word of letters of an indexed message, or of a text of a block, is in the table.

use std::collections::HashMap;

use talktree_text::{
    Expr, Language, Phrase, Query, Stems, StopWords, Term, is_unigram, normal_form, spellings,
};

use crate::search::MAX_EXPANSIONS;
use crate::sql::{BackendResult, Connection};
use crate::storage::sqlite::interrupt::Watch;

/// The lengths, in characters, of terms in the table: longer ones are no words of a language.
const CHARS: std::ops::RangeInclusive<usize> = 2..=40;
/// A word with more digits is an id or a hash. Names such as `parseargs2` and `sha256` have fewer.
const MAX_DIGITS: usize = 4;
/// The mark of a term that is stored backwards. No text has it in a term.
const BACKWARDS: char = '\u{E001}';
/// A shorter word is no compound.
const MIN_COMPOUND: usize = 8;
/// How many terms a step of a sweep looks up.
const SWEPT: usize = 1_000;

/// A word is searched in at most so many other forms: each is a list of the index to merge.
const MAX_FORMS: usize = 16;
/// The words of a longer query beyond this many are searched as they are written.
const MAX_WORDS: usize = 16;

/// A compound is a form of its last word if that has at least so many letters: a `Stromrechnung` is a `Rechnung`.
const MIN_COMPOUNDED: usize = 5;

/// The terms of some messages, each once.
#[derive(Debug, Default)]
pub(in super::super) struct Found(HashMap<String, u32>);

impl Found {
    /// Notes the terms of a text that was cut into `terms`.
    pub(super) fn note(&mut self, text: &str, terms: &str) {
        let of_text = talktree_text::languages(text);
        for term in terms.split_ascii_whitespace().filter(|term| is_kept(term)) {
            match self.0.get_mut(term) {
                Some(languages) => *languages |= of_text,
                None => _ = self.0.insert(term.to_owned(), of_text),
            }
            if of_text & Language::COMPOUNDING != 0 && term.chars().count() >= MIN_COMPOUND {
                self.0.insert(backwards(term), of_text);
            }
        }
    }

    /// Stores the terms that are new, or new in a language.
    pub(in super::super) fn store(self, conn: &Connection) -> BackendResult<()> {
        // In order: neighbours are on one page.
        let mut terms: Vec<_> = self.0.into_iter().collect();
        terms.sort_unstable();
        if conn.is_far() {
            // Most are known, and a row that is written again is locked, and copied.
            ask_ahead(conn, terms.iter().map(|(term, _)| &**term))?;
            let mut new = Vec::new();
            for (term, found) in terms {
                if languages(conn, &term)?.is_none_or(|known| known | found != known) {
                    new.push((term, found));
                }
            }
            terms = new;
        }
        for (term, languages) in terms {
            conn.send(STORE, (term, i64::from(languages)))?;
        }
        Ok(())
    }
}

const LANGUAGES: &str = "SELECT languages FROM term WHERE term = ?1";

const STORE: &str = "INSERT INTO term (term, languages) VALUES (?1, ?2)
 ON CONFLICT (term) DO UPDATE SET languages = term.languages | excluded.languages
  WHERE term.languages | excluded.languages <> term.languages";

/// Returns whether the table has a term.
fn is_kept(term: &str) -> bool {
    let digits = term.chars().filter(|c| c.is_numeric()).count();
    CHARS.contains(&term.chars().count())
        && digits <= MAX_DIGITS
        && !term.chars().next().is_none_or(is_unigram)
}

fn backwards(term: &str) -> String {
    std::iter::once(BACKWARDS).chain(term.chars().rev()).collect()
}

/// Calls `look` with the compounds that end with a word.
fn each_compound(
    conn: &Connection,
    word: &str,
    watch: &Watch,
    mut look: impl FnMut(String),
) -> BackendResult<()> {
    each_from(conn, &backwards(word), watch, |term, _| {
        let first = term.chars().count() - 1 - word.chars().count();
        if first >= *CHARS.start() {
            look(term.chars().skip(1).collect::<Vec<_>>().into_iter().rev().collect());
        }
        true
    })
}

/// Asks a server for the languages of terms that will be looked up.
pub(in super::super) fn ask_ahead<'t>(
    conn: &Connection,
    mut terms: impl Iterator<Item = &'t str>,
) -> BackendResult<()> {
    terms.try_for_each(|term| conn.ask_ahead(LANGUAGES, term))
}

/// Returns the languages of a term; `None` if it is not in the table.
pub(in super::super) fn languages(conn: &Connection, term: &str) -> BackendResult<Option<u32>> {
    let languages: Option<i64> = conn.first(LANGUAGES, term)?;
    Ok(languages.map(bits))
}

/// Returns a set of languages as it is stored.
fn bits(languages: i64) -> u32 {
    u32::try_from(languages).unwrap_or_default()
}

/// Calls `look` with the terms that begin so, in order, and with their languages, until it returns false.
pub(in super::super) fn each_from(
    conn: &Connection,
    start: &str,
    watch: &Watch,
    mut look: impl FnMut(&str, u32) -> bool,
) -> BackendResult<()> {
    let (mut from, end) = ends(start);
    loop {
        let (mut count, mut next) = (0, None);
        // As one, not in portions.
        conn.ask_ahead(FROM, (&*from, &*end, READ_AHEAD))?;
        conn.each(FROM, (&*from, &*end, READ_AHEAD), |row| {
            watch.check()?;
            let term = row.value(0)?.as_str()?;
            count += 1;
            let goes_on = look(term, bits(row.get(1)?));
            if goes_on && count == READ_AHEAD {
                // The least one after it.
                next = Some(format!("{term}\u{0}"));
            }
            Ok(goes_on)
        })?;
        match next {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

/// Returns the least term that begins so, and one after the last.
fn ends(start: &str) -> (String, String) {
    (start.to_owned(), format!("{start}\u{10FFFF}"))
}

/// How many terms are read at a time.
const READ_AHEAD: usize = 1_000;

const FROM: &str = "SELECT term, languages
   FROM term
  WHERE term >= ?1 AND term < ?2
  ORDER BY term
  LIMIT ?3";

/// Removes the terms after one that no text in the index has, some of them; returns where to go on.
pub(in super::super) fn sweep(conn: &Connection, after: &str) -> BackendResult<Option<String>> {
    let sql = "SELECT term FROM term WHERE term > ?1 ORDER BY term LIMIT ?2";
    let terms: Vec<String> = conn.rows(sql, (after, SWEPT))?;
    let word = |term: &String| {
        let word = match term.strip_prefix(BACKWARDS) {
            Some(word) => word.chars().rev().collect(),
            None => term.clone(),
        };
        Expr::Phrase(Phrase { words: vec![word], is_prefix: false })
    };
    let words: Vec<Expr> = terms.iter().map(word).collect();
    for at in super::unused(conn, &words)? {
        conn.send("DELETE FROM term WHERE term = ?1", &*terms[at])?;
    }
    Ok(terms.into_iter().nth(SWEPT - 1))
}

/// Returns the terms of a text, for the index, and notes them.
pub(in super::super) fn cut(text: &str, found: &mut Found) -> String {
    let terms = talktree_text::terms(text);
    found.note(text, &terms);
    terms
}

/// Adds the forms of the words of a query; returns whether prefixes were cut. If the time for that is over, the other words have no
/// forms.
pub(in super::super) fn add_forms(
    conn: &Connection,
    query: &mut Query,
    watch: &Watch,
) -> BackendResult<bool> {
    let is_capped = cap_prefixes(conn, query, watch)?;
    let words: Vec<&str> = query.clauses.iter().filter_map(|clause| word(clause)).collect();
    let text = words.join(" ");
    let (asked, stops) = (talktree_text::languages(&text), StopWords::of(&text));
    for form in words.iter().take(MAX_WORDS).map(|word| normal_form(word)) {
        conn.ask_ahead(LANGUAGES, &*form)?;
        let (from, end) = ends(&backwards(&form));
        conn.ask_ahead(FROM, (from, end, READ_AHEAD))?;
    }
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
