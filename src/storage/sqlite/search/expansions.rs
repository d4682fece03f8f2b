//! Limits the words that the prefixes of a query expand to.
//!
//! FTS5 has no list of the messages with a prefix: for each prefix and each statement it merges the lists of all words
//! that begin with it. So the prefixes of a query expand to at most [`MAX_EXPANSIONS`] words together. A prefix beyond that
//! is searched as a whole word, which finds fewer messages and no wrong one. Excluded prefixes have no limit: if they
//! excluded fewer words, the search would find wrong messages.

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use crate::search::tokenizer::normalize;
use crate::search::{MAX_EXPANSIONS, Query, Term};

/// Replaces each prefix beyond the limit by a word, with a notice; returns whether there was any.
///
/// The longest prefixes are counted first, because they expand to the fewest words. Counting stops at the limit.
pub(super) fn cap(conn: &Connection, query: &mut Query, watch: &Watch) -> BackendResult<bool> {
    let mut prefixes: Vec<String> = query.clauses.iter().flatten().filter_map(prefix).collect();
    if prefixes.is_empty() {
        return Ok(false);
    }
    prefixes.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    prefixes.dedup();
    // A virtual table over the index, in the connection's temporary schema; it stores nothing.
    conn.execute_batch(MAKE_WORDS)?;
    let mut left = MAX_EXPANSIONS;
    let mut fits = |prefix: &String| -> BackendResult<bool> {
        let end = format!("{prefix}\u{10FFFF}");
        let count = conn
            .prepare_cached(COUNT)?
            .query_row(params![prefix, end, left + 1], |row| row.get::<_, usize>(0));
        match count.map_err(Into::into) {
            Ok(count) => {
                let fits = count <= left;
                left -= count.min(left);
                Ok(fits)
            }
            // It took too long to count them.
            Err(error) if watch.is_end_of_budget(&error) => Ok(false),
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
        let words = term.tokens.join(" ");
        let notice =
            format!("\"{words}*\" expands to too many words: it is searched as \"{words}\"");
        if !query.notices.contains(&notice) {
            query.notices.push(notice);
        }
    }
    Ok(!capped.is_empty())
}

/// Returns the prefix that a term expands, if it is one.
fn prefix(term: &Term) -> Option<String> {
    let last = term.words().last().filter(|_| term.is_prefix)?;
    Some(normalize(last).into_owned())
}

const MAKE_WORDS: &str =
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_words USING fts5vocab (main, search, row)";

const COUNT: &str = "SELECT count(*)
   FROM (SELECT 1 FROM temp.search_words WHERE term >= ?1 AND term < ?2 LIMIT ?3)";
