//! The index as tables of FTS5, which are given words and answer with rowids.

use talktree_text::{Columns, Expr, Phrase};

use super::Index::{self, Context, Messages, Pending};
use super::{Expression, Stored};
use crate::sql::{BackendResult, Connection};
use crate::tree::Address;

pub(super) fn put(
    index: Index,
    conn: &Connection,
    address: Address,
    [text, tools, labels]: [&str; 3],
) -> BackendResult<()> {
    let sql =
        of_each!(index, "INSERT INTO ", " (rowid, text, tools, labels) VALUES (?1, ?2, ?3, ?4)");
    conn.run(sql, (address, text, tools, labels)).map(drop)
}

/// Calls `take` with the matches in a range, newest first, until it returns false.
pub(super) fn each(
    index: Index,
    conn: &Connection,
    expression: &Expression<'_>,
    (low, high): (Address, Address),
    mut take: impl FnMut(Address) -> BackendResult<bool>,
) -> BackendResult<()> {
    let sql = FIND[index as usize];
    conn.each(sql, (&*written(expression), low, high), |row| take(row.get(0)?))
}

/// Returns the best matches in a range by FTS5's own ranking.
pub(super) fn best(
    index: Index,
    conn: &Connection,
    expression: &Expression<'_>,
    (low, high): (Address, Address),
    limit: usize,
) -> BackendResult<Vec<Address>> {
    let sql = BEST[usize::from(index == Context)];
    conn.rows(sql, (&*written(expression), low, high, limit))
}

/// Returns which of some words no text has.
pub(super) fn unused(conn: &Connection, words: &[Expr]) -> BackendResult<Vec<usize>> {
    let all = (Address::from_raw(i64::MIN), Address::from_raw(i64::MAX));
    let mut unused = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let words = Some((word, Columns::All));
        let expression = Expression { words, ..Expression::default() };
        let mut is_used = false;
        for index in [Messages, Context] {
            each(index, conn, &expression, all, |_| {
                is_used = true;
                Ok(false)
            })?;
        }
        if !is_used {
            unused.push(at);
        }
    }
    Ok(unused)
}

pub(super) fn each_term(columns: [&str; 3], mut take: impl FnMut(Stored<'_>)) {
    for (column, terms) in ["text", "tools", "labels"].into_iter().zip(columns) {
        for (position, term) in terms.split_ascii_whitespace().enumerate() {
            take((column, term, position as i64));
        }
    }
}

pub(super) fn each_stored(
    index: Index,
    sqlite: &rusqlite::Connection,
    mut take: impl FnMut(Address, Stored<'_>),
) -> BackendResult<()> {
    let table = if index == Messages { "search" } else { "context_search" };
    let create = "CREATE VIRTUAL TABLE temp.verified USING fts5vocab('main', ";
    sqlite.execute(&format!("{create}'{table}', 'instance')"), [])?;
    {
        let mut statement = sqlite.prepare("SELECT doc, term, col, offset FROM temp.verified")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            // No term of talktree is no text; another one equals none of them.
            let term = row.get_ref(1)?.as_str().unwrap_or_default();
            take(row.get(0)?, (row.get_ref(2)?.as_str()?, term, row.get(3)?));
        }
    }
    Ok(sqlite.execute_batch("DROP TABLE temp.verified")?)
}

/// Merges segments: begins to merge all of them if `begins`, or goes on. Returns whether there may be more to do. A server merges by
/// itself.
pub(in super::super) fn merge(
    index: Index,
    conn: &Connection,
    pages: i64,
    begins: bool,
) -> BackendResult<bool> {
    let Ok(sqlite) = conn.sqlite() else { return Ok(false) };
    let (set, merge) = match index {
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
    conn.run(set, 2_i64)?;
    let before = sqlite.total_changes();
    conn.run(merge, if begins { -pages } else { pages })?;
    // The statement itself is one change.
    let has_more = sqlite.total_changes() - before > 1;
    conn.run(set, USUAL_MERGE)?;
    Ok(has_more)
}

/// Deletes messages without that FTS5 merges segments, which could take 0.4 s: each of the next appends merges a little.
pub(in super::super) fn without_merges<T>(
    conn: &Connection,
    delete: impl FnOnce() -> BackendResult<T>,
) -> BackendResult<T> {
    if conn.sqlite().is_err() {
        return delete();
    }
    conn.run(MERGE_AT, 0_i64)?;
    let deleted = delete()?;
    conn.run(MERGE_AT, USUAL_MERGE)?;
    Ok(deleted)
}

const MERGE_AT: &str = "INSERT INTO search (search, rank) VALUES ('automerge', ?1)";

/// FTS5's own setting of how many segments of a level it merges.
const USUAL_MERGE: i64 = 4;

/// The matches in a range of each index, newest first.
pub(in super::super) const FIND: [&str; 3] = [
    "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC",
    "SELECT rowid FROM context_search WHERE context_search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC",
    "SELECT rowid FROM temp.pending_index WHERE pending_index MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC",
];

/// The best matches in a range. Labels do not count, and a text that is called so comes first.
const BEST: [&str; 2] = [
    "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY bm25(search, 1, 1, 0) LIMIT ?4",
    "SELECT rowid FROM context_search WHERE context_search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY bm25(context_search, 10, 1, 0) LIMIT ?4",
];

/// Returns an expression in FTS5's language.
///
/// Invariant: FTS5 gets quoted words in their normal form and these operators, whatever a query holds.
fn written(expression: &Expression<'_>) -> String {
    let mut out = String::new();
    if let Some((words, columns)) = expression.words {
        out.push_str(match columns {
            Columns::Text => "{text} : (",
            Columns::Tools => "{tools} : (",
            Columns::All => "{text tools} : (",
        });
        write(words, &mut out);
        out.push(')');
    }
    if let Some(labels) = expression.labels {
        out.push_str(if out.is_empty() { "{labels} : (" } else { " AND {labels} : (" });
        write(labels, &mut out);
        out.push(')');
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
