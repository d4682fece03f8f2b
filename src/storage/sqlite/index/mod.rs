//! The index of words: an inverted index and nothing more.
//!
//! FTS5 holds terms and no text. It is given normal forms, cut by `talktree-text`, and answers with addresses; the library ranks and
//! shows what it finds. There are three columns: the text, what tools and reasoning say, and *labels*, words that stand for what a
//! message is: its role and its day. So a filter is a word of the expression, and the engine skips what cannot pass it.
//!
//! In the sqlite3 shell MATCH takes normal forms: `SELECT rowid FROM search WHERE search MATCH 'text: deploy AND labels: ruser'`.
//!
//! Invariant: a message is in the index, or it is pending: its session's `unindexed` is its number or a smaller one.

mod feed;
mod labels;
mod pending;
mod terms;

use rusqlite::{Connection, params};
use talktree_text::{Columns, Expr, Phrase};

pub(super) use self::feed::{
    Deferred, add, each_doc, empty_if_outdated, has_current_version, make_pending, refresh,
    remove_to_update, store_version,
};
#[cfg(test)]
pub(super) use self::feed::{FIRST_PENDING, PENDING_PARTS};
pub(super) use self::labels::{tell, wanted};
#[cfg(test)]
pub(super) use self::pending::{CREATE as CREATE_PENDING, IS_PENDING, PENDING};
pub(super) use self::pending::{Prepared, prepare};
pub(super) use self::terms::{Found, cut, each_compound, each_from, languages, sweep};
pub(super) use super::context::entry::each_text;
use super::error::BackendResult;
use super::interrupt::Watch;
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
        conn.prepare_cached(sql)?.execute(params![address, text, tools, labels])?;
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
        conn.prepare_cached(sql)?.execute([first, last])?;
        Ok(())
    }

    /// Removes everything.
    pub(super) fn clear(self, conn: &Connection) -> BackendResult<()> {
        let sql = match self {
            Messages => "INSERT INTO search (search) VALUES ('delete-all')",
            Context => "INSERT INTO context_search (context_search) VALUES ('delete-all')",
            Pending => "INSERT INTO temp.pending_index (pending_index) VALUES ('delete-all')",
        };
        conn.prepare_cached(sql)?.execute([])?;
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
        let sql = match self {
            Messages => FIND[0],
            Context => FIND[1],
            Pending => FIND[2],
        };
        let mut statement = conn.prepare_cached(sql)?;
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
        let mut statement = conn.prepare_cached(BEST[usize::from(self == Context)])?;
        let found = statement.query_map(params![expression, low, high, limit], |row| row.get(0))?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Returns whether any text matches an expression.
    pub(super) fn has(self, conn: &Connection, expression: &str) -> BackendResult<bool> {
        let mut statement = conn.prepare_cached(match self {
            Messages => FIND[0],
            Context => FIND[1],
            Pending => FIND[2],
        })?;
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
        conn.prepare_cached(set)?.execute([2])?;
        let before = conn.total_changes();
        conn.prepare_cached(merge)?.execute([if begins { -pages } else { pages }])?;
        // The statement itself is one change.
        let has_more = conn.total_changes() - before > 1;
        conn.prepare_cached(set)?.execute([USUAL_MERGE])?;
        Ok(has_more)
    }
}

/// FTS5's own setting of how many segments of a level it merges.
const USUAL_MERGE: u32 = 4;

/// The matches in a range, newest first.
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
