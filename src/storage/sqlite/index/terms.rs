//! The terms of the index, for forms, spellings and beginnings of the words of a query.
//!
//! FTS5 lists the terms of a beginning by walking their postings, which takes too long. So each term is also in a plain table, with the
//! languages of the texts that have it, a bit each: those decide which other terms are its forms. A term of a text whose language
//! cannot be told has none of them, and may be of any.
//!
//! A long word of a language that joins words is there backwards, too, to be found by its last word.
//!
//! Terms that only deleted messages had stay until an erasure sweeps them out.
//!
//! Invariant: a word of letters of an indexed message, or of a text of a block, is in the table.

use std::collections::HashMap;

use rusqlite::{Connection, params};
use talktree_text::{Expr, Language, Phrase, is_unigram};

use super::{Columns, Index, fts};
use crate::storage::sqlite::error::BackendResult;
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
const SWEPT: u32 = 1_000;

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
        let mut statement = conn.prepare_cached(STORE)?;
        for (term, languages) in terms {
            statement.execute(params![term, languages])?;
        }
        Ok(())
    }
}

const STORE: &str = "INSERT INTO term (term, languages) VALUES (?1, ?2)
 ON CONFLICT (term) DO UPDATE SET languages = languages | excluded.languages
  WHERE languages | excluded.languages <> languages";

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
pub(in super::super) fn each_compound(
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

/// Returns the languages of a term; `None` if it is not in the table.
pub(in super::super) fn languages(conn: &Connection, term: &str) -> BackendResult<Option<u32>> {
    let mut statement = conn.prepare_cached("SELECT languages FROM term WHERE term = ?1")?;
    let mut rows = statement.query([term])?;
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
}

/// Calls `look` with the terms that begin so, in order, and with their languages, until it returns false.
pub(in super::super) fn each_from(
    conn: &Connection,
    start: &str,
    watch: &Watch,
    mut look: impl FnMut(&str, u32) -> bool,
) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(FROM)?;
    let mut rows = statement.query([start, &format!("{start}\u{10FFFF}")])?;
    while let Some(row) = rows.next()? {
        watch.check()?;
        if !look(row.get_ref(0)?.as_str()?, row.get(1)?) {
            break;
        }
    }
    Ok(())
}

const FROM: &str = "SELECT term, languages FROM term WHERE term >= ?1 AND term < ?2";

/// Removes the terms after one that no text in the index has, some of them; returns where to go on.
pub(in super::super) fn sweep(conn: &Connection, after: &str) -> BackendResult<Option<String>> {
    let mut statement =
        conn.prepare_cached("SELECT term FROM term WHERE term > ?1 ORDER BY term LIMIT ?2")?;
    let terms: Vec<String> =
        statement.query_map(params![after, SWEPT], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for term in &terms {
        let word = match term.strip_prefix(BACKWARDS) {
            Some(word) => word.chars().rev().collect(),
            None => term.clone(),
        };
        let phrase = Expr::Phrase(Phrase { words: vec![word], is_prefix: false });
        let expression = fts(&phrase, Columns::All, None);
        if !Index::Messages.has(conn, &expression)? && !Index::Context.has(conn, &expression)? {
            conn.prepare_cached("DELETE FROM term WHERE term = ?1")?.execute([term])?;
        }
    }
    Ok(terms.into_iter().nth(SWEPT as usize - 1))
}

/// Returns the terms of a text, for the index, and notes them.
pub(in super::super) fn cut(text: &str, found: &mut Found) -> String {
    let terms = talktree_text::terms(text);
    found.note(text, &terms);
    terms
}
