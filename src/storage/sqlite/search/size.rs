//! How much is searched: the totals that FTS5 keeps of the whole index.

use rusqlite::{Connection, OptionalExtension};

use super::super::error::BackendResult;
use super::candidates::Index;
use super::ranked::Size;
use crate::search::Columns;

/// Returns how many messages and sessions the store has, and how long the messages are.
pub(super) fn of_store(
    conn: &Connection,
    indexes: &[Index],
    columns: Columns,
) -> BackendResult<Size> {
    let [messages, text, tools] = totals(conn)?.map(|total| total as f64);
    let tokens = match columns {
        Columns::Text => text,
        Columns::Tools => tools,
        Columns::All => text + tools,
    };
    let pending: i64 = match indexes.contains(&Index::Pending) {
        true => conn
            .prepare_cached("SELECT count(*) FROM temp.pending_index_docsize")?
            .query_row([], |row| row.get(0))?,
        false => 0,
    };
    let sessions: i64 =
        conn.prepare_cached("SELECT count(*) FROM session")?.query_row([], |row| row.get(0))?;
    Ok(Size {
        texts: messages + pending as f64,
        sessions: sessions as f64,
        mean_length: Some(tokens / messages.max(1.0)),
    })
}

/// Returns how many messages are indexed, and how many words of text and of tools.
fn totals(conn: &Connection) -> BackendResult<[u64; 3]> {
    // FTS5 keeps the number of rows and of tokens per column in one record, as varints.
    let record: Option<Vec<u8>> = conn
        .prepare_cached("SELECT block FROM search_data WHERE id = 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let record = record.unwrap_or_default();
    let mut bytes = record.as_slice();
    Ok([(); 3].map(|()| varint(&mut bytes)))
}

/// Reads one of SQLite's varints and advances; 0 at the end.
pub(super) fn varint(bytes: &mut &[u8]) -> u64 {
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
