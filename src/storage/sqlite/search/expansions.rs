//! Replaces the prefixes of a query by the words of the index.
//!
//! FTS5 has no list of the messages with a prefix: for each prefix and each statement it merges the lists of all words that
//! begin with it before it returns the first match. Of the words themselves it returns the newest matches first and stops
//! early: `con*` took 65 ms in a million messages, and its 185 words take 12 ms; [`super::leaves`] finds them.
//!
//! The prefixes of a query expand to at most [`MAX_EXPANSIONS`] words together. A prefix beyond that is searched as a whole
//! word, which finds fewer messages and no wrong one. Excluded prefixes have no limit: if they excluded fewer words, the
//! search would find wrong messages.

use std::borrow::Cow;

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::leaves;
use crate::search::prefix::spelling;
use crate::search::tokenizer::normalize;
use crate::search::{MAX_EXPANSIONS, Query, Term};

/// A prefix with more words than this is left to FTS5, which then takes less time than to merge so many lists.
const MAX_LISTS: usize = 512;

/// What the prefixes of a query expand to.
#[derive(Debug, Default)]
pub(super) struct Expansions {
    /// Whether some prefixes are searched as words: there are too many words, or there was no time to count them.
    pub(super) is_capped: bool,
    /// A prefix and its words, both as FTS5 expressions.
    words: Vec<(String, String)>,
}

impl Expansions {
    /// Returns an expression with the words instead of the prefixes.
    ///
    /// No word contains a quote, so what looks like a prefix is one.
    pub(super) fn apply<'e>(&self, expression: &'e str) -> Cow<'e, str> {
        let replace =
            |expression: Cow<'e, str>, (prefix, words): &(String, String)| match expression
                .contains(prefix.as_str())
            {
                true => Cow::Owned(expression.replace(prefix, words)),
                false => expression,
            };
        self.words.iter().fold(Cow::Borrowed(expression), replace)
    }

    fn add(&mut self, prefix: &str, stems: &[String]) {
        if !(1..=MAX_LISTS).contains(&stems.len()) {
            return;
        }
        let quoted: Vec<String> =
            stems.iter().map(|stem| format!("\"{}\"", spelling(stem))).collect();
        let words = format!("({})", quoted.join(" OR "));
        self.words.push((format!("\"{}\"*", spelling(prefix)), words));
    }
}

/// Expands the prefixes of a query; replaces each prefix beyond the limit by a word, with a notice, and each that there is no
/// time for, without one.
///
/// The longest prefixes are counted first, because they expand to the fewest words. Counting stops at the limit.
pub(super) fn expand(
    conn: &Connection,
    query: &mut Query,
    watch: &Watch,
) -> BackendResult<Expansions> {
    let mut prefixes: Vec<String> = query.clauses.iter().flatten().filter_map(prefix).collect();
    let mut expansions = Expansions::default();
    if prefixes.is_empty() {
        return Ok(expansions);
    }
    prefixes.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    prefixes.dedup();
    let (mut left, mut is_late) = (MAX_EXPANSIONS, false);
    let mut fits = |prefix: &String| -> BackendResult<bool> {
        let words = stems(conn, prefix, left + 1, watch);
        match words {
            Ok(stems) => {
                let fits = stems.len() <= left;
                left -= stems.len().min(left);
                if fits {
                    expansions.add(prefix, &stems);
                }
                Ok(fits)
            }
            Err(error) if watch.is_end_of_budget(&error) => {
                is_late = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    };
    let mut admitted = 0;
    while let Some(next) = prefixes.get(admitted)
        && fits(next)?
    {
        admitted += 1;
    }
    let capped = prefixes.split_off(admitted);
    let is_capped = |term: &Term| prefix(term).is_some_and(|prefix| capped.contains(&prefix));
    for term in query.clauses.iter_mut().flatten().filter(|term| is_capped(term)) {
        // As a phrase it is never relaxed, and neither was the prefix.
        (term.is_prefix, term.is_quoted) = (false, true);
        // There may be few words: a search that is out of time says only that.
        if is_late {
            continue;
        }
        let words = term.tokens.join(" ");
        let notice =
            format!("\"{words}*\" expands to too many words: it is searched as \"{words}\"");
        if !query.notices.contains(&notice) {
            query.notices.push(notice);
        }
    }
    expansions.is_capped = !capped.is_empty();
    Ok(expansions)
}

/// Returns the stems of the index with a prefix.
fn stems(
    conn: &Connection,
    prefix: &str,
    limit: usize,
    watch: &Watch,
) -> BackendResult<Vec<String>> {
    if let Some(words) = leaves::words(conn, prefix, limit, watch)? {
        return Ok(words);
    }
    // A virtual table over the index, in the connection's temporary schema; it stores nothing.
    conn.execute_batch(MAKE_WORDS)?;
    let mut statement = conn.prepare_cached(STEMS)?;
    let end = format!("{prefix}\u{10FFFF}");
    let stems = statement.query_map(params![prefix, end, limit], |row| row.get(0))?;
    Ok(stems.collect::<Result<_, _>>()?)
}

/// Returns the prefix that a term expands, if it is one.
fn prefix(term: &Term) -> Option<String> {
    let last = term.words().last().filter(|_| term.is_prefix)?;
    Some(normalize(last).into_owned())
}

const MAKE_WORDS: &str =
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_words USING fts5vocab (main, search, row)";

const STEMS: &str = "SELECT term
   FROM temp.search_words
  WHERE term >= ?1
    AND term < ?2
  LIMIT ?3";
