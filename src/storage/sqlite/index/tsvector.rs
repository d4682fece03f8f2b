//! The index as tables of `tsvector` on PostgreSQL.
//!
//! A word is stored with a letter before it that tells its column, so that GIN alone answers and no row has to be read for that.
//! PostgreSQL limits a vector to a megabyte, so a long text has several rows; a lexeme to 2 KB; and positions to 16 383: later words
//! are found, but not in phrases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use talktree_text::{Columns, Expr, Phrase};

use super::Index::{self, Context, Messages, Pending};
use super::{Expression, Stored};
use crate::sql::{BackendResult, Connection, Sql};
use crate::tree::Address;

/// How many bytes of different words one row has.
const MAX_ROW: usize = 400 << 10;
/// How many bytes of a word count.
const MAX_WORD: usize = 1_000;
/// PostgreSQL's last position.
const MAX_POSITION: usize = 16_383;
/// How many matches are read at a time at most: as many as are listed of one word.
const READ_AHEAD: usize = 16_000;
/// How many at least: for few matches the server would read the newest texts one by one, also for a rare word.
const READ_LEAST: usize = 1_000;

const TEXT: char = 't';
const TOOLS: char = 'o';
const LABELS: char = 'l';

/// The words of a row with their positions.
type Lexemes = BTreeMap<String, Vec<usize>>;

pub(super) fn put(
    index: Index,
    conn: &Connection,
    address: Address,
    [text, tools, labels]: [&str; 3],
) -> BackendResult<()> {
    let insert = of_each!(
        index,
        "INSERT INTO ",
        " (address, part, terms) VALUES (?1, ?2, CAST(CAST(?3 AS TEXT) AS TSVECTOR))"
    );
    let (mut lexemes, mut bytes, mut part, mut position) = (Lexemes::new(), 0, 0, 0);
    let store = |lexemes: &mut Lexemes, part: &mut i64| {
        conn.send(insert, (address, *part, vector(lexemes)))?;
        *part += 1;
        lexemes.clear();
        BackendResult::Ok(())
    };
    for (column, words) in [(LABELS, labels), (TEXT, text), (TOOLS, tools)] {
        // Words of two columns are no neighbours.
        position += 1;
        for word in words.split_ascii_whitespace() {
            position += 1;
            let lexeme = lexeme(column, word);
            bytes += lexeme.len();
            let of_one = lexemes.entry(lexeme).or_default();
            of_one.push(position.min(MAX_POSITION));
            if bytes > MAX_ROW {
                store(&mut lexemes, &mut part)?;
                bytes = 0;
            }
        }
    }
    if part == 0 || !lexemes.is_empty() {
        store(&mut lexemes, &mut part)?;
    }
    Ok(())
}

/// Calls `take` with the matches in a range, newest first, until it returns false.
pub(super) fn each(
    index: Index,
    conn: &Connection,
    expression: &Expression<'_>,
    (low, mut high): (Address, Address),
    mut take: impl FnMut(Address) -> BackendResult<bool>,
) -> BackendResult<()> {
    let select = of_each!(
        index,
        "SELECT address FROM ",
        "
          WHERE terms @@ CAST(CAST(?1 AS TEXT) AS TSQUERY) AND address BETWEEN ?2 AND ?3
          ORDER BY address DESC
          LIMIT ?4"
    );
    let select_of_parts = of_each!(
        index,
        "SELECT address
           FROM unnest(CAST(CAST(?5 AS TEXT) AS BIGINT[]), CAST(CAST(?6 AS TEXT) AS BIGINT[])) AS part (low, high)
          CROSS JOIN LATERAL (SELECT address, terms FROM ",
        " WHERE address BETWEEN low AND high OFFSET 0) AS of_part
          WHERE terms @@ CAST(CAST(?1 AS TEXT) AS TSQUERY) AND address BETWEEN ?2 AND ?3
          ORDER BY address DESC
          LIMIT ?4"
    );
    let query = written(expression);
    let ends = |end: fn(&(Address, Address)) -> i64| {
        let ends: Vec<String> = expression.parts.iter().map(|it| end(it).to_string()).collect();
        format!("{{{}}}", ends.join(","))
    };
    let count = expression.wanted.unwrap_or(READ_AHEAD).clamp(READ_LEAST, READ_AHEAD);
    let (lows, highs) = (ends(|part| part.0.raw()), ends(|part| part.1.raw()));
    loop {
        let values = (&*query, low, high, count);
        let found: Vec<Address> = match expression.parts {
            [] => conn.rows(select, values)?,
            _ => conn.rows(select_of_parts, (values, &*lows, &*highs))?,
        };
        // A long text has several rows.
        for of_one in found.chunk_by(|a, b| a == b) {
            if !take(of_one[0])? {
                return Ok(());
            }
        }
        match found.last() {
            Some(last) if found.len() == count && *last > low => high = last.before(),
            _ => return Ok(()),
        }
    }
}

/// Returns the best matches in a range by PostgreSQL's ranking of how often the words are in a text, and in how short a one. A text of
/// a block that is called so comes first.
pub(super) fn best(
    index: Index,
    conn: &Connection,
    expression: &Expression<'_>,
    (low, high): (Address, Address),
    limit: usize,
) -> BackendResult<Vec<Address>> {
    let select = of_each!(
        index,
        "SELECT address FROM ",
        "
          CROSS JOIN (SELECT CAST(CAST(?1 AS TEXT) AS TSQUERY) AS query) AS asked
          WHERE terms @@ query AND address BETWEEN ?2 AND ?3
          GROUP BY address
          ORDER BY max(ts_rank(CAST(CAST(?5 AS TEXT) AS REAL[]), terms, query, 1)) DESC, address
          LIMIT ?4"
    );
    // Of what tools say and of texts.
    let weights = if index == Context { "{0.1, 1, 1, 1}" } else { "{1, 1, 1, 1}" };
    conn.rows(select, (&*written(expression), low, high, limit, weights))
}

/// Positions are not compared: PostgreSQL keeps the first ones of a word.
pub(super) fn each_term(columns: [&str; 3], mut take: impl FnMut(Stored<'_>)) {
    let mut lexemes = BTreeSet::new();
    for (column, words) in [TEXT, TOOLS, LABELS].into_iter().zip(columns) {
        lexemes.extend(words.split_ascii_whitespace().map(|word| lexeme(column, word)));
    }
    lexemes.iter().for_each(|lexeme| take(("", lexeme, 0)));
}

pub(super) fn each_stored(
    index: Index,
    conn: &Connection,
    mut take: impl FnMut(Address, Stored<'_>),
) -> BackendResult<()> {
    let select = of_each!(
        index,
        "SELECT DISTINCT address, lexeme FROM ",
        ", unnest(terms) AS it (lexeme, positions, weights)"
    );
    conn.each(select, (), |row| {
        take(row.get(0)?, ("", row.value(1)?.as_str()?, 0));
        Ok(true)
    })
}

/// Returns a word as it is stored: with the letter of its column, and not longer than PostgreSQL takes.
fn lexeme(column: char, word: &str) -> String {
    let mut end = word.len().min(MAX_WORD);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    format!("{column}{}", &word[..end])
}

/// Returns the literal of a vector. Words of texts have the weight A, and others D.
fn vector(lexemes: &Lexemes) -> String {
    let mut out = String::new();
    for (lexeme, positions) in lexemes {
        quote(lexeme, &mut out);
        for (number, position) in positions.iter().enumerate() {
            let weight = if lexeme.starts_with(TEXT) { "A" } else { "" };
            let _ = write!(out, "{}{position}{weight}", if number == 0 { ':' } else { ',' });
        }
        out.push(' ');
    }
    out
}

fn quote(lexeme: &str, out: &mut String) {
    out.push('\'');
    out.push_str(&lexeme.replace('\\', "\\\\").replace('\'', "''"));
    out.push('\'');
}

/// Returns an expression as a query of PostgreSQL.
fn written(expression: &Expression<'_>) -> String {
    let mut out = String::new();
    if let Some((words, columns)) = expression.words {
        let columns: &[char] = match columns {
            Columns::Text => &[TEXT],
            Columns::Tools => &[TOOLS],
            Columns::All => &[TEXT, TOOLS],
        };
        write_expr(words, columns, &mut out);
    }
    if let Some(labels) = expression.labels {
        out.push_str(if out.is_empty() { "" } else { " & " });
        write_expr(labels, &[LABELS], &mut out);
    }
    out
}

fn write_expr(expr: &Expr, columns: &[char], out: &mut String) {
    let mut join = |parts: &[Expr], between: &str| {
        for (number, part) in parts.iter().enumerate() {
            out.push_str(if number == 0 { "(" } else { between });
            write_expr(part, columns, out);
        }
        out.push(')');
    };
    match expr {
        Expr::Phrase(Phrase { words, is_prefix }) => {
            for (number, column) in columns.iter().enumerate() {
                out.push_str(if number == 0 { "((" } else { ") | (" });
                for (number, word) in words.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { " <-> " });
                    quote(&lexeme(*column, word), out);
                }
                out.push_str(if *is_prefix { ":*" } else { "" });
            }
            out.push_str("))");
        }
        Expr::Any(parts) => join(parts, " | "),
        Expr::All(parts) => join(parts, " & "),
        Expr::Without(what, not) => {
            out.push('(');
            write_expr(what, columns, out);
            out.push_str(" & !");
            write_expr(not, columns, out);
            out.push(')');
        }
    }
}
