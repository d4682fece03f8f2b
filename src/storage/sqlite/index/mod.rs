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

mod feed;
mod fts5;
mod terms;
#[cfg(feature = "postgres")]
mod tsvector;

use chrono::{DateTime, TimeDelta, Utc};
use talktree_text::{Columns, Expr, Filters, Phrase};

#[cfg(feature = "postgres")]
pub(super) use self::feed::make_current;
#[cfg(test)]
pub(super) use self::feed::{CREATE_PENDING, FIRST_PENDING, NEXT_PENDING, PENDING_PARTS};
pub(super) use self::feed::{
    Deferred, Prepared, add, each_doc, empty_if_outdated, has_current_version, make_pending,
    prepare, refresh, remove_to_update, store_version,
};
#[cfg(test)]
pub(super) use self::fts5::FIND;
pub(super) use self::fts5::{merge, without_merges};
pub(super) use self::terms::{Found, add_forms, ask_ahead, cut, each_from, languages, sweep};
pub(super) use super::context::entry::each_text;
use super::interrupt::Watch;
use crate::sql::{BackendResult, Connection};
use crate::tree::Address;

/// Returns the statement that finds the matches in a range of the context's index.
#[cfg(test)]
pub(super) fn find_context(conn: &Connection) -> &'static str {
    match conn {
        Connection::Sqlite(_) => FIND[Context as usize],
        #[cfg(feature = "postgres")]
        Connection::Postgres(_) => tsvector::find(Context),
    }
}

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

impl Index {
    /// Returns the connection that the index is on.
    fn home<'c>(self, conn: &Connection<'c>) -> BackendResult<Connection<'c>> {
        if self == Pending { conn.temporary() } else { Ok(*conn) }
    }

    /// Adds the terms of a text: of its words, of what tools say, and its labels.
    pub(super) fn put(
        self,
        conn: &Connection,
        address: Address,
        columns: [&str; 3],
    ) -> BackendResult<()> {
        match &self.home(conn)? {
            conn @ Connection::Sqlite(_) => fts5::put(self, conn, address, columns),
            #[cfg(feature = "postgres")]
            conn @ Connection::Postgres(_) => tsvector::put(self, conn, address, columns),
        }
    }

    /// Removes the texts of a range. Those that are not in the index are no error.
    pub(super) fn remove(
        self,
        conn: &Connection,
        first: Address,
        last: Address,
    ) -> BackendResult<()> {
        let sql = conn.by_engine(
            of_each!(self, "DELETE FROM ", " WHERE rowid BETWEEN ?1 AND ?2"),
            of_each!(self, "DELETE FROM ", " WHERE address BETWEEN ?1 AND ?2"),
        );
        conn.send(sql, (first, last))
    }

    /// Removes everything.
    pub(super) fn clear(self, conn: &Connection) -> BackendResult<()> {
        let conn = self.home(conn)?;
        let sql = match (conn, self) {
            #[cfg(feature = "postgres")]
            (Connection::Postgres(_), _) => of_each!(self, "DELETE FROM ", ""),
            (_, Messages) => "INSERT INTO search (search) VALUES ('delete-all')",
            (_, Context) => "INSERT INTO context_search (context_search) VALUES ('delete-all')",
            (_, Pending) => "INSERT INTO temp.pending_index (pending_index) VALUES ('delete-all')",
        };
        conn.run(sql, ()).map(drop)
    }

    /// Calls `take` with the texts in a range that match an expression, newest first, until it returns false.
    pub(super) fn each(
        self,
        conn: &Connection,
        expression: &Expression<'_>,
        range: (Address, Address),
        watch: &Watch,
        mut take: impl FnMut(Address) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        let take = |address| {
            watch.check()?;
            take(address)
        };
        match &self.home(conn)? {
            conn @ Connection::Sqlite(_) => fts5::each(self, conn, expression, range, take),
            #[cfg(feature = "postgres")]
            conn @ Connection::Postgres(_) => tsvector::each(self, conn, expression, range, take),
        }
    }

    /// Returns the best matches in a range by the engine's own ranking.
    pub(super) fn best(
        self,
        conn: &Connection,
        expression: &Expression<'_>,
        range: (Address, Address),
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        match conn {
            Connection::Sqlite(_) => fts5::best(self, conn, expression, range, limit),
            #[cfg(feature = "postgres")]
            Connection::Postgres(_) => tsvector::best(self, conn, expression, range, limit),
        }
    }
}

/// Returns which of some words no text has.
fn unused(conn: &Connection, words: &[Expr]) -> BackendResult<Vec<usize>> {
    match conn {
        Connection::Sqlite(_) => fts5::unused(conn, words),
        #[cfg(feature = "postgres")]
        Connection::Postgres(_) => tsvector::unused(conn, words),
    }
}

/// A term as the index has it: its column, the term, its position.
type Stored<'t> = (&'t str, &'t str, i64);

/// Calls `take` with the terms of a text as the index stores them.
pub(super) fn each_term(conn: &Connection, columns: [&str; 3], take: impl FnMut(Stored<'_>)) {
    match conn {
        Connection::Sqlite(_) => fts5::each_term(columns, take),
        #[cfg(feature = "postgres")]
        Connection::Postgres(_) => tsvector::each_term(columns, take),
    }
}

impl Index {
    /// Calls `take` with every term of every text.
    pub(super) fn each_stored(
        self,
        conn: &Connection,
        take: impl FnMut(Address, Stored<'_>),
    ) -> BackendResult<()> {
        match conn {
            Connection::Sqlite(sqlite) => fts5::each_stored(self, sqlite, take),
            #[cfg(feature = "postgres")]
            Connection::Postgres(_) => tsvector::each_stored(self, conn, take),
        }
    }
}

/// What a text must have: an expression over words in some columns, and labels.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Expression<'e> {
    pub(super) words: Option<(&'e Expr, Columns)>,
    pub(super) labels: Option<&'e Expr>,
    /// If there are some, a server reads the texts in these parts of the range and no others.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "of a server"))]
    pub(super) parts: &'e [(Address, Address)],
    /// How many are wanted, if that is known: a server sends no more at once.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "of a server"))]
    pub(super) wanted: Option<usize>,
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
