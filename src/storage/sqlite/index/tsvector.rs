//! The index as tables of `tsvector` on PostgreSQL.
//!
//! A word is stored with a letter before it that tells its column. With weights in place of letters a search of what tools say for a word that
//! only texts have took 413 ms of a million messages, and not 19: the planner takes the word for common.
//!
//! PostgreSQL limits a vector to a megabyte, a word to 2 KB, its positions to 256, and all positions to 16 383. So a text may have several
//! rows: each has its labels, all its words, and the positions of some. In a very long one, words beyond [`MAX_ROWS`] of these are not
//! found in phrases, and not together if they are further apart than [`MAX_BYTES`]; an excluded phrase is that of one row.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use talktree_text::{Columns, Expr, Phrase};

use super::Index::{self, Context, Messages, Pending};
use super::{Expression, Stored};
use crate::sql::{BackendResult, Connection};
use crate::tree::Address;

/// How many bytes of different words one row has, with [`OF_EACH`] for what PostgreSQL keeps of a word.
const MAX_BYTES: usize = 900 << 10;
const OF_EACH: usize = 8;
/// How many bytes of a word count.
const MAX_WORD: usize = 1_000;
/// How many positions of a word a row has, without [`ELSEWHERE`], and its last position.
const MAX_OF_WORD: usize = 254;
const MAX_POSITION: usize = 16_000;
/// How many rows have positions of the same words.
const MAX_ROWS: usize = 8;
/// A row begins with so many of the last words of the one before: a phrase across both is in one of them.
const OVERLAP: usize = 64;
/// The position of a word that has its own in other rows: no neighbour of words that are there.
const ELSEWHERE: usize = 16_383;
/// How many matches are read at a time at most: as many as are listed of one word.
const READ_AHEAD: usize = 16_000;
/// How many at least: for few matches the server would read the newest texts one by one, also for a rare word.
const READ_LEAST: usize = 1_000;

const TEXT: char = 't';
const TOOLS: char = 'o';
const LABELS: char = 'l';

/// A word as it is stored, with its position in the whole text.
struct Word {
    lexeme: String,
    position: usize,
}

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
    let vectors = vectors(labels, &words(text, tools));
    vectors
        .iter()
        .enumerate()
        .try_for_each(|(part, vector)| conn.send(insert, (address, part, &**vector)))
}

fn words(text: &str, tools: &str) -> Vec<Word> {
    let text = lexemes(TEXT, text).map(Some);
    // Words of two columns are no neighbours.
    let all = text.chain([None]).chain(lexemes(TOOLS, tools).map(Some)).zip(1..);
    all.filter_map(|(lexeme, position)| lexeme.map(|lexeme| Word { lexeme, position })).collect()
}

fn lexemes(column: char, words: &str) -> impl Iterator<Item = String> {
    words.split_ascii_whitespace().map(move |word| lexeme(column, word))
}

/// Returns the literals of the rows of a text: at least one.
fn vectors(labels: &str, words: &[Word]) -> Vec<String> {
    let mut vectors = Vec::new();
    let mut rest = words;
    loop {
        let (mut all, mut bytes) = (BTreeSet::new(), 0);
        let end = rest.iter().take_while(|word| {
            let is_new = !all.contains(&*word.lexeme);
            bytes += if is_new { word.lexeme.len() + OF_EACH } else { 0 };
            if bytes <= MAX_BYTES {
                all.insert(&*word.lexeme);
            }
            bytes <= MAX_BYTES
        });
        let (mut of_row, after) = rest.split_at(end.count());
        for _ in 0..MAX_ROWS {
            let (vector, count) = vector(labels, &all, of_row);
            vectors.push(vector);
            if count == of_row.len() {
                break;
            }
            of_row = &of_row[count.saturating_sub(OVERLAP).max(1)..];
        }
        rest = after;
        if rest.is_empty() {
            return vectors;
        }
    }
}

/// Returns the literal of a row with the labels and all words of a text and the positions of the first of some words, and how many
/// these are.
fn vector(labels: &str, all: &BTreeSet<&str>, words: &[Word]) -> (String, usize) {
    let mut positions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let before = words.first().map_or(0, |first| first.position - 1);
    let count = words.iter().take_while(|word| {
        let of_word = positions.entry(&word.lexeme).or_default();
        let position = word.position - before;
        let fits = of_word.len() < MAX_OF_WORD && position <= MAX_POSITION;
        if fits {
            of_word.push(position);
        }
        fits
    });
    let count = count.count();
    let mut out = String::new();
    for label in lexemes(LABELS, labels) {
        quote(&label, &mut out);
        out.push(' ');
    }
    for lexeme in all {
        quote(lexeme, &mut out);
        let weight = if lexeme.starts_with(TEXT) { "A" } else { "" };
        let here = positions.get(lexeme).filter(|here| !here.is_empty());
        let here = here.map_or(&[ELSEWHERE][..], |here| here);
        for (number, position) in here.iter().enumerate() {
            let _ = write!(out, "{}{position}{weight}", if number == 0 { ':' } else { ',' });
        }
        out.push(' ');
    }
    (out, count)
}

/// Calls `take` with the matches in a range, newest first, until it returns false.
pub(super) fn each(
    index: Index,
    conn: &Connection,
    expression: &Expression<'_>,
    (low, mut high): (Address, Address),
    mut take: impl FnMut(Address) -> BackendResult<bool>,
) -> BackendResult<()> {
    let select = find(index);
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

/// The matches in a range, newest first.
pub(in super::super) fn find(index: Index) -> &'static str {
    of_each!(
        index,
        "SELECT address FROM ",
        "
          WHERE terms @@ CAST(CAST(?1 AS TEXT) AS TSQUERY) AND address BETWEEN ?2 AND ?3
          ORDER BY address DESC
          LIMIT ?4"
    )
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

/// Returns which of some words no text has. One by one they take twenty times as long.
pub(super) fn unused(conn: &Connection, words: &[Expr]) -> BackendResult<Vec<usize>> {
    let select = "SELECT number - 1
           FROM string_to_table(CAST(?1 AS TEXT), chr(10)) WITH ORDINALITY AS asked (query, number)
          WHERE NOT EXISTS (SELECT 1 FROM search WHERE terms @@ CAST(query AS TSQUERY))
            AND NOT EXISTS (SELECT 1 FROM context_search WHERE terms @@ CAST(query AS TSQUERY))";
    let query =
        |word| written(&Expression { words: Some((word, Columns::All)), ..Expression::default() });
    let queries: Vec<String> = words.iter().map(query).collect();
    conn.rows(select, &*queries.join("\n"))
}

/// Positions are not compared: of a long text each row has some.
pub(super) fn each_term([text, tools, labels]: [&str; 3], mut take: impl FnMut(Stored<'_>)) {
    let words = lexemes(TEXT, text).chain(lexemes(TOOLS, tools));
    let all: BTreeSet<String> = words.chain(lexemes(LABELS, labels)).collect();
    all.iter().for_each(|lexeme| take(("", lexeme, 0)));
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
