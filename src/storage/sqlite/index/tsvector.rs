//! The index as tables of `tsvector` on PostgreSQL.
//!
//! A word has the weight A in texts and D in what tools say, so that a word in any of them is one word of a query. A label begins with a
//! space, as no word does, and has no position.
//!
//! PostgreSQL limits a vector to a megabyte, a word to 2 KB, its positions to 256, and all positions to 16 383. So a text may have several
//! rows: each has its labels, all its words, and the positions of some. In a very long one, words beyond [`MAX_ROWS`] of these are not
//! found in phrases, and not together if they are further apart than [`MAX_BYTES`]; an excluded phrase is that of one row.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use talktree_text::{Columns, Expr, Phrase};

use super::Index::{self, Context, Messages, Pending};
use super::{Expression, Stored};
use crate::sql::{BackendResult, Connection, Sql};
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
/// The positions, by its weight, of a word that has its own in other rows: no neighbours of each other and of words that are there.
const ELSEWHERE: [(char, usize); 2] = [(TEXT, 16_383), (TOOLS, 16_381)];
/// How many matches are read at a time at most: as many as are listed of one word.
const READ_AHEAD: usize = 16_000;
/// How many at least: for few matches the server would read the newest texts one by one, also for a rare word.
const READ_LEAST: usize = 1_000;

/// The weights of words.
const TEXT: char = 'A';
const TOOLS: char = 'D';

/// A word as it is stored, with its weight and its position in the whole text.
struct Word<'t> {
    lexeme: &'t str,
    weight: char,
    position: usize,
}

/// The different words of a text, with their weights.
type Different<'t> = BTreeMap<&'t str, BTreeSet<char>>;

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

fn words<'t>(text: &'t str, tools: &'t str) -> Vec<Word<'t>> {
    let of_one = |words: &'t str, weight| {
        words.split_ascii_whitespace().map(move |word| (lexeme(word), weight))
    };
    let text = of_one(text, TEXT).map(Some);
    // Words of two columns are no neighbours.
    let all = text.chain([None]).chain(of_one(tools, TOOLS).map(Some)).zip(1..);
    all.filter_map(|(word, position)| {
        word.map(|(lexeme, weight)| Word { lexeme, weight, position })
    })
    .collect()
}

/// Returns the literals of the rows of a text: at least one.
fn vectors(labels: &str, words: &[Word<'_>]) -> Vec<String> {
    let mut vectors = Vec::new();
    let mut rest = words;
    loop {
        let (mut all, mut bytes) = (Different::new(), 0);
        let end = rest.iter().take_while(|word| {
            let is_new = !all.contains_key(word.lexeme);
            bytes += if is_new { word.lexeme.len() + OF_EACH } else { 0 };
            if bytes <= MAX_BYTES {
                all.entry(word.lexeme).or_default().insert(word.weight);
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
fn vector(labels: &str, all: &Different<'_>, words: &[Word<'_>]) -> (String, usize) {
    let mut positions: BTreeMap<&str, Vec<(char, usize)>> = BTreeMap::new();
    let before = words.first().map_or(0, |first| first.position - 1);
    let count = words.iter().take_while(|word| {
        let of_word = positions.entry(word.lexeme).or_default();
        let position = word.position - before;
        let fits = of_word.len() < MAX_OF_WORD && position <= MAX_POSITION;
        if fits {
            of_word.push((word.weight, position));
        }
        fits
    });
    let count = count.count();
    let mut out = String::new();
    for label in labels.split_ascii_whitespace().map(label) {
        quote(&label, &mut out);
        out.push(' ');
    }
    for (lexeme, weights) in all {
        quote(lexeme, &mut out);
        let here = positions.get(lexeme).map_or(&[][..], |here| here);
        let elsewhere = ELSEWHERE.iter().filter(|(weight, _)| {
            weights.contains(weight) && !here.iter().any(|(other, _)| other == weight)
        });
        for (number, (weight, position)) in here.iter().chain(elsewhere).enumerate() {
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

/// Positions are not compared: PostgreSQL keeps the first ones of a word.
pub(super) fn each_term([text, tools, labels]: [&str; 3], mut take: impl FnMut(Stored<'_>)) {
    let words = words(text, tools);
    let mut terms: BTreeSet<_> =
        words.iter().map(|word| (Cow::Borrowed(word.lexeme), word.weight)).collect();
    terms.extend(labels.split_ascii_whitespace().map(|it| (Cow::Owned(label(it)), TOOLS)));
    for (lexeme, weight) in &terms {
        take((weight.encode_utf8(&mut [0; 4]), lexeme, 0));
    }
}

pub(super) fn each_stored(
    index: Index,
    conn: &Connection,
    mut take: impl FnMut(Address, Stored<'_>),
) -> BackendResult<()> {
    let select = of_each!(
        index,
        "SELECT DISTINCT address, lexeme, weight FROM ",
        ", unnest(terms) AS it (lexeme, positions, weights), unnest(coalesce(weights, '{D}')) AS weight"
    );
    conn.each(select, (), |row| {
        take(row.get(0)?, (row.value(2)?.as_str()?, row.value(1)?.as_str()?, 0));
        Ok(true)
    })
}

/// Returns a word as it is stored: not longer than PostgreSQL takes.
fn lexeme(word: &str) -> &str {
    let mut end = word.len().min(MAX_WORD);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    &word[..end]
}

fn label(label: &str) -> String {
    format!(" {}", lexeme(label))
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
        let weight = match columns {
            Columns::Text => Some(TEXT),
            Columns::Tools => Some(TOOLS),
            Columns::All => None,
        };
        write_expr(words, &|word| (lexeme(word).to_owned(), weight), &mut out);
    }
    if let Some(labels) = expression.labels {
        out.push_str(if out.is_empty() { "" } else { " & " });
        write_expr(labels, &|word| (label(word), None), &mut out);
    }
    out
}

fn write_expr(expr: &Expr, stored: &dyn Fn(&str) -> (String, Option<char>), out: &mut String) {
    let mut join = |parts: &[Expr], between: &str| {
        for (number, part) in parts.iter().enumerate() {
            out.push_str(if number == 0 { "(" } else { between });
            write_expr(part, stored, out);
        }
        out.push(')');
    };
    match expr {
        Expr::Phrase(Phrase { words, is_prefix }) => {
            for (number, word) in words.iter().enumerate() {
                let (lexeme, weight) = stored(word);
                out.push_str(if number == 0 { "(" } else { " <-> " });
                quote(&lexeme, out);
                let is_prefix = *is_prefix && number + 1 == words.len();
                if is_prefix || weight.is_some() {
                    out.push(':');
                }
                out.push_str(if is_prefix { "*" } else { "" });
                out.extend(weight);
            }
            out.push(')');
        }
        Expr::Any(parts) => join(parts, " | "),
        Expr::All(parts) => join(parts, " & "),
        Expr::Without(what, not) => {
            out.push('(');
            write_expr(what, stored, out);
            out.push_str(" & !");
            write_expr(not, stored, out);
            out.push(')');
        }
    }
}
