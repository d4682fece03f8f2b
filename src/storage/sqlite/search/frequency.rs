//! How common what is looked for is: figures that the index keeps.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::fault::Outcome;
use super::candidates::Index;
use super::ranked::Figures;
use crate::search::Columns;
use crate::search::reading::{Reading, Unit};

/// Up to so many messages of a phrase are counted: they must be looked up one by one.
const MAX_PHRASES: usize = 2_000;
/// Up to so many words that start alike are counted.
const MAX_STARTING: usize = 200;

/// Returns how common each unit is in the store.
pub(super) fn of_store(
    conn: &Connection,
    reading: &Reading,
    indexes: &[Index],
) -> Outcome<Figures> {
    let mut counts = vec![0.0; reading.units.len()];
    for index in indexes {
        // A table of the connection's own, over the index; it holds nothing.
        conn.execute_batch(MAKE_VOCABULARY[*index as usize])?;
        for (count, unit) in counts.iter_mut().zip(&reading.units) {
            *count += of_unit(conn, *index, unit, reading.query.filters.columns)? as f64;
        }
    }
    corpus(conn, indexes, reading.query.filters.columns, counts)
}

fn of_unit(conn: &Connection, index: Index, unit: &Unit, columns: Columns) -> Outcome<i64> {
    let index = index as usize;
    let column = match columns {
        Columns::Text => Some("text"),
        Columns::Tools => Some("tools"),
        Columns::All => None,
    };
    match unit.stems.as_slice() {
        [start] if unit.term.is_prefix => {
            let end = format!("{start}\u{10FFFF}");
            let sql = STARTING[index];
            let count = conn
                .prepare_cached(sql)?
                .query_row(params![start, end, column, MAX_STARTING], |row| row.get(0))?;
            Ok(count)
        }
        [stem] => {
            Ok(conn.prepare_cached(WITH[index])?.query_row((stem, column), |row| row.get(0))?)
        }
        _ => {
            let Some(expression) = unit.to_fts(columns) else { return Ok(0) };
            let mut statement = conn.prepare_cached(PHRASES[index])?;
            Ok(statement.query_row(params![expression, MAX_PHRASES], |row| row.get(0))?)
        }
    }
}

const MAKE_VOCABULARY: [&str; 2] = [
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_vocabulary USING fts5vocab (main, search, col)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.fresh_vocabulary
      USING fts5vocab (temp, search_fresh, col)",
];

const WITH: [&str; 2] = [
    "SELECT coalesce(sum(doc), 0)
   FROM temp.search_vocabulary
  WHERE term = ?1
    AND (?2 IS NULL OR col = ?2)",
    "SELECT coalesce(sum(doc), 0)
   FROM temp.fresh_vocabulary
  WHERE term = ?1
    AND (?2 IS NULL OR col = ?2)",
];

const STARTING: [&str; 2] = [
    "SELECT coalesce(sum(doc), 0)
   FROM (SELECT doc
           FROM temp.search_vocabulary
          WHERE term >= ?1
            AND term < ?2
            AND (?3 IS NULL OR col = ?3)
          LIMIT ?4)",
    "SELECT coalesce(sum(doc), 0)
   FROM (SELECT doc
           FROM temp.fresh_vocabulary
          WHERE term >= ?1
            AND term < ?2
            AND (?3 IS NULL OR col = ?3)
          LIMIT ?4)",
];

const PHRASES: [&str; 2] = [
    "SELECT count(*) FROM (SELECT 1 FROM search WHERE search MATCH ?1 LIMIT ?2)",
    "SELECT count(*) FROM (SELECT 1 FROM search_fresh WHERE search_fresh MATCH ?1 LIMIT ?2)",
];

/// Adds how many messages and sessions there are, and how long the messages are.
fn corpus(
    conn: &Connection,
    indexes: &[Index],
    columns: Columns,
    frequencies: Vec<f64>,
) -> Outcome<Figures> {
    let [messages, text, tools] = totals(conn)?.map(|total| total as f64);
    let tokens = match columns {
        Columns::Text => text,
        Columns::Tools => tools,
        Columns::All => text + tools,
    };
    let fresh: i64 = match indexes.contains(&Index::Fresh) {
        true => conn
            .prepare_cached("SELECT count(*) FROM temp.search_fresh_docsize")?
            .query_row([], |row| row.get(0))?,
        false => 0,
    };
    let sessions: i64 =
        conn.prepare_cached("SELECT count(*) FROM session")?.query_row([], |row| row.get(0))?;
    Ok(Figures {
        frequencies,
        texts: messages + fresh as f64,
        sessions: sessions as f64,
        mean_length: Some(tokens / messages.max(1.0)),
    })
}

/// Returns how many messages are indexed, and how many words of text and of tools.
fn totals(conn: &Connection) -> Outcome<[u64; 3]> {
    // FTS5 keeps the number of rows and of the tokens of each column in one record, as varints.
    let record: Option<Vec<u8>> = conn
        .prepare_cached("SELECT block FROM search_data WHERE id = 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let record = record.unwrap_or_default();
    let mut bytes = record.as_slice();
    Ok([(); 3].map(|()| varint(&mut bytes)))
}

/// Returns whether an eighth of all messages, or more, are this session's.
pub(super) fn is_much_of_store(conn: &Connection, session: i64) -> Outcome<bool> {
    let next: Option<u64> = conn
        .prepare_cached("SELECT next FROM session WHERE key = ?1")?
        .query_row([session], |row| row.get(0))
        .optional()?;
    Ok(next.unwrap_or(0).saturating_mul(8) >= totals(conn)?[0])
}

/// Takes a number in SQLite's own encoding off the front; 0 at the end.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for at in 0..9 {
        let Some((&byte, rest)) = bytes.split_first() else { return number };
        *bytes = rest;
        if at == 8 {
            return (number << 8) | u64::from(byte);
        }
        number = (number << 7) | u64::from(byte & 0x7F);
        if byte < 0x80 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_sqlite_writes_them() {
        let mut bytes: &[u8] =
            &[5, 0x81, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!([(); 4].map(|()| varint(&mut bytes)), [5, 128, u64::MAX, 0]);
    }
}
