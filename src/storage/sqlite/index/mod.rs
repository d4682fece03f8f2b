//! The index of words: an inverted index and nothing more.
//!
//! FTS5 holds terms and no text. It is given normal forms, cut by `talktree-text`, and answers with addresses; the library ranks and
//! shows what it finds. There are three columns: the text, what tools and reasoning say, and *labels*, words that stand for what a
//! message is: its role, author and tags, and its day. So a filter is a word of the expression, and the engine skips what cannot pass it.
//!
//! A range of days is the few labels that cover it: each day has a label, and so has each span of 8, 64, 512 and 4 096 days. Days before
//! 1900 and after 2100 count as the first and last of these, and a time of day has no label: such times are compared with the row.
//!
//! In the sqlite3 shell MATCH takes normal forms: `SELECT rowid FROM search WHERE search MATCH 'text: deploy AND labels: ruser'`.
//!
//! Invariant: a message is in the index, or it is pending: its session's `unindexed` is its number or a smaller one.

mod feed;
mod terms;

use crate::sql::Connection;
use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::params;
use talktree_text::{Columns, Expr, Filters, Phrase};

#[cfg(test)]
pub(super) use self::feed::{CREATE_PENDING, FIRST_PENDING, IS_PENDING, PENDING, PENDING_PARTS};
pub(super) use self::feed::{
    Deferred, Prepared, add, each_doc, empty_if_outdated, has_current_version, make_pending,
    prepare, refresh, remove_to_update, store_version,
};
pub(super) use self::terms::{Found, add_forms, cut, each_from, languages, sweep};
pub(super) use super::context::entry::each_text;
use super::interrupt::Watch;
use crate::sql::{BackendResult, Sql};
use crate::tree::Address;

/// An inverted index: a table of FTS5, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// Of the messages.
    Messages,
    /// Of the texts of context blocks. Their labels are empty.
    Context,
    /// Of messages that are pending, for the searches of one connection.
    Pending,
}

use Index::{Context, Messages, Pending};

/// The statements of each index.
macro_rules! of_each {
    ($index:expr, $before:literal, $after:literal) => {
        match $index {
            Messages => concat!($before, "search", $after),
            Context => concat!($before, "context_search", $after),
            Pending => concat!($before, "temp.pending_index", $after),
        }
    };
}

impl Index {
    /// Adds the terms of a text: of its words, of what tools say, and its labels.
    pub(super) fn put(
        self,
        conn: &Connection,
        address: Address,
        [text, tools, labels]: [&str; 3],
    ) -> BackendResult<()> {
        let sql =
            of_each!(self, "INSERT INTO ", " (rowid, text, tools, labels) VALUES (?1, ?2, ?3, ?4)");
        conn.sqlite()?.prepare_cached(sql)?.execute(params![address, text, tools, labels])?;
        Ok(())
    }

    /// Removes the texts of a range. Those that are not in the index are no error.
    pub(super) fn remove(
        self,
        conn: &Connection,
        first: Address,
        last: Address,
    ) -> BackendResult<()> {
        let sql = of_each!(self, "DELETE FROM ", " WHERE rowid BETWEEN ?1 AND ?2");
        conn.sqlite()?.prepare_cached(sql)?.execute([first, last])?;
        Ok(())
    }

    /// Removes everything.
    pub(super) fn clear(self, conn: &Connection) -> BackendResult<()> {
        let sql = match self {
            Messages => "INSERT INTO search (search) VALUES ('delete-all')",
            Context => "INSERT INTO context_search (context_search) VALUES ('delete-all')",
            Pending => "INSERT INTO temp.pending_index (pending_index) VALUES ('delete-all')",
        };
        conn.sqlite()?.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// Calls `take` with the texts in a range that match an expression, newest first, until it returns false.
    pub(super) fn each(
        self,
        conn: &Connection,
        expression: &str,
        (low, high): (Address, Address),
        watch: &Watch,
        mut take: impl FnMut(Address) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        let mut statement = conn.sqlite()?.prepare_cached(FIND[self as usize])?;
        let mut rows = statement.query(params![expression, low, high])?;
        while let Some(row) = rows.next()? {
            watch.check()?;
            if !take(row.get(0)?)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the best matches in a range by FTS5's own ranking.
    pub(super) fn best(
        self,
        conn: &Connection,
        expression: &str,
        (low, high): (Address, Address),
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = conn.sqlite()?.prepare_cached(BEST[usize::from(self == Context)])?;
        let found = statement.query_map(params![expression, low, high, limit], |row| row.get(0))?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Returns whether any text matches an expression.
    pub(super) fn has(self, conn: &Connection, expression: &str) -> BackendResult<bool> {
        let mut statement = conn.sqlite()?.prepare_cached(FIND[self as usize])?;
        Ok(statement.exists(params![expression, i64::MIN, i64::MAX])?)
    }

    /// Merges segments: begins to merge all of them if `begins`, or goes on. Returns whether there may be more to do.
    pub(super) fn merge(self, conn: &Connection, pages: i64, begins: bool) -> BackendResult<bool> {
        let (set, merge) = match self {
            Messages => (
                "INSERT INTO search (search, rank) VALUES ('usermerge', ?1)",
                "INSERT INTO search (search, rank) VALUES ('merge', ?1)",
            ),
            _ => (
                "INSERT INTO context_search (context_search, rank) VALUES ('usermerge', ?1)",
                "INSERT INTO context_search (context_search, rank) VALUES ('merge', ?1)",
            ),
        };
        // FTS5 does not go on with a merge while a lower level has as many segments as it usually merges. No other connection
        // sees this setting: both changes are in one transaction.
        conn.sqlite()?.prepare_cached(set)?.execute([2])?;
        let before = conn.sqlite()?.total_changes();
        conn.sqlite()?.prepare_cached(merge)?.execute([if begins { -pages } else { pages }])?;
        // The statement itself is one change.
        let has_more = conn.sqlite()?.total_changes() - before > 1;
        conn.sqlite()?.prepare_cached(set)?.execute([USUAL_MERGE])?;
        Ok(has_more)
    }
}

/// Deletes messages without that FTS5 merges segments, which could take 0.4 s: each of the next appends merges a little.
pub(super) fn without_merges<T>(
    conn: &Connection,
    delete: impl FnOnce() -> BackendResult<T>,
) -> BackendResult<T> {
    conn.run(MERGE_AT, 0_i64)?;
    let deleted = delete()?;
    conn.run(MERGE_AT, USUAL_MERGE)?;
    Ok(deleted)
}

const MERGE_AT: &str = "INSERT INTO search (search, rank) VALUES ('automerge', ?1)";

/// FTS5's own setting of how many segments of a level it merges.
const USUAL_MERGE: i64 = 4;

/// The matches in a range of each index, newest first.
pub(super) const FIND: [&str; 3] = [
    "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC",
    "SELECT rowid FROM context_search WHERE context_search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC",
    "SELECT rowid FROM temp.pending_index WHERE pending_index MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC",
];

/// The best matches in a range. Labels do not count, and a text that is called so comes first.
const BEST: [&str; 2] = [
    "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY bm25(search, 1, 1, 0) LIMIT ?4",
    "SELECT rowid FROM context_search WHERE context_search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY bm25(context_search, 10, 1, 0) LIMIT ?4",
];

/// Returns the expression in FTS5's language of texts with these labels.
pub(super) fn fts_labels(labels: &Expr) -> String {
    let mut out = String::from("{labels} : (");
    write(labels, &mut out);
    out.push(')');
    out
}

/// Returns an expression in FTS5's language, in some columns, of texts with these labels.
///
/// Invariant: FTS5 gets quoted words in their normal form and these operators, whatever a query holds.
pub(super) fn fts(expr: &Expr, columns: Columns, labels: Option<&Expr>) -> String {
    let mut out = String::from(match columns {
        Columns::Text => "{text} : (",
        Columns::Tools => "{tools} : (",
        Columns::All => "{text tools} : (",
    });
    write(expr, &mut out);
    out.push(')');
    if let Some(labels) = labels {
        out.push_str(" AND ");
        out.push_str(&fts_labels(labels));
    }
    out
}

fn write(expr: &Expr, out: &mut String) {
    let mut join = |parts: &[Expr], between: &str| {
        for (number, part) in parts.iter().enumerate() {
            out.push_str(if number == 0 { "(" } else { between });
            write(part, out);
        }
        out.push(')');
    };
    match expr {
        Expr::Phrase(Phrase { words, is_prefix }) => {
            out.push('"');
            out.push_str(&words.join(" "));
            out.push_str(if *is_prefix { "\" *" } else { "\"" });
        }
        Expr::Any(parts) => join(parts, " OR "),
        Expr::All(parts) => join(parts, " AND "),
        Expr::Without(what, not) => {
            out.push('(');
            write(what, out);
            out.push_str(" NOT ");
            write(not, out);
            out.push(')');
        }
    }
}

/// Returns the labels of a message.
fn labels_of(
    role: &str,
    created_at: Option<DateTime<Utc>>,
    author: Option<&str>,
    tags: &[String],
) -> String {
    let mut labels = label('r', role);
    let author = author.map(|author| label('a', author));
    for other in author.into_iter().chain(tags.iter().map(|tag| label('t', tag))) {
        labels.push(' ');
        labels.push_str(&other);
    }
    if let Some(day) = created_at.map(day) {
        for (kind, days) in SPANS {
            labels.push_str(&format!(" {kind}{}", day / days));
        }
    }
    labels
}

/// Returns what the labels of a message must match to pass the filters; `None` if any may. A message that matches may still be of
/// another time of the first or last day.
pub(super) fn wanted(filters: &Filters) -> Option<Expr> {
    let mut all = Vec::new();
    if !filters.roles.is_empty() {
        all.push(Expr::Any(filters.roles.iter().map(|role| word(label('r', role))).collect()));
    }
    if !filters.authors.is_empty() {
        all.push(Expr::Any(
            filters.authors.iter().map(|author| word(label('a', author))).collect(),
        ));
    }
    all.extend(filters.tags.iter().map(|tag| word(label('t', tag))));
    if filters.after.is_some() || filters.before.is_some() {
        let first = filters.after.map_or(FIRST, day);
        let last = filters.before.map_or(LAST, |time| day(time - TimeDelta::microseconds(1)));
        let labels = spans(first, last);
        // Of no time at all is no message.
        let labels = if labels.is_empty() { vec![word("none".to_owned())] } else { labels };
        all.push(Expr::Any(labels));
    }
    (!all.is_empty()).then_some(Expr::All(all))
}

fn word(label: String) -> Expr {
    Expr::Phrase(Phrase { words: vec![label], is_prefix: false })
}

/// Returns the label of a value: as it is if it is a plain word, and otherwise its bytes, so that no two are alike.
fn label(kind: char, value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match !value.is_empty() && value.bytes().all(is_plain) {
        true => format!("{kind}{value}"),
        false => value.bytes().fold(format!("{kind}x"), |label, byte| format!("{label}{byte:02x}")),
    }
}

/// The spans of time that have labels, by their number of days, the longest first: each begins at a multiple of it.
const SPANS: [(char, i64); 5] = [('l', 4_096), ('h', 512), ('g', 64), ('e', 8), ('d', 1)];
const SECONDS: i64 = 86_400;
/// The days with labels of their own, since 1900-01-01.
const FIRST: i64 = 0;
const LAST: i64 = 73_413;
/// 1970-01-01.
const EPOCH: i64 = 25_567;

fn day(time: DateTime<Utc>) -> i64 {
    since_first(time).clamp(FIRST, LAST)
}

fn since_first(time: DateTime<Utc>) -> i64 {
    time.timestamp().div_euclid(SECONDS) + EPOCH
}

/// Returns whether the labels tell what is before a time and what is not.
pub(super) fn tell(time: DateTime<Utc>) -> bool {
    let is_midnight = time.timestamp_micros() % (SECONDS * 1_000_000) == 0;
    is_midnight && (FIRST + 1..=LAST).contains(&since_first(time))
}

/// Returns the labels that cover the days from `first` to `last`.
fn spans(first: i64, last: i64) -> Vec<Expr> {
    let mut labels = Vec::new();
    let mut at = first;
    while at <= last {
        let fits = |(_, days): &&(char, i64)| at % days == 0 && at + days - 1 <= last;
        let Some((kind, days)) = SPANS.iter().find(fits) else { break };
        labels.push(word(format!("{kind}{}", at / days)));
        at += days;
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(first: i64, last: i64) -> String {
        let words = spans(first, last).into_iter().map(|label| match label {
            Expr::Phrase(phrase) => phrase.words.concat(),
            other => panic!("{other:?}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn few_labels_cover_a_span() {
        assert_eq!(covered(6, 17), "d6 d7 e1 d16 d17");
        assert_eq!(covered(0, 4_096), "l0 d4096");
        assert_eq!(covered(56, 64 + 511), "e7 g1 g2 g3 g4 g5 g6 g7 g8");
        assert_eq!(covered(2, 1), "");
        assert!(covered(FIRST + 1, LAST - 1).split(' ').count() < 80);
    }

    #[test]
    fn days_are_counted_from_1900_to_2100() {
        let day = |text: &str| day(text.parse().unwrap());
        assert_eq!(day("1900-01-01T00:00:00Z"), FIRST);
        assert_eq!(day("1970-01-01T23:59:59Z"), EPOCH);
        assert_eq!(day("2100-12-31T12:00:00Z"), LAST);
        assert_eq!((day("0001-01-01T00:00:00Z"), day("9999-12-31T00:00:00Z")), (FIRST, LAST));
        for (time, expected) in [
            ("2026-01-31T00:00:00Z", true),
            ("2026-01-31T00:00:01Z", false),
            ("1850-01-01T00:00:00Z", false),
            ("2150-01-01T00:00:00Z", false),
        ] {
            assert_eq!(tell(time.parse().unwrap()), expected, "{time}");
        }
    }

    #[test]
    fn no_two_roles_have_one_label() {
        let roles = ["user", "User", "x75", "", "a b", "a-b", "ünder", "u\u{0}"];
        let labels: std::collections::HashSet<String> =
            roles.iter().map(|role| label('r', role)).collect();
        assert_eq!(labels.len(), roles.len());
    }
}
