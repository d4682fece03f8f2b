//! The row of a compaction.

use rusqlite::{Connection, Row};

use super::super::error::{BackendResult, corrupt, damaged};
use super::{Read, execute};
use crate::compaction::{Compaction, is_blank};
use crate::id::CompactionId;
use crate::tree::Span;

columns! {
    compaction_columns: Compaction {
        id,
        first = first_id,
        last = last_id,
        count,
        tokens_before = before,
        tokens_after = after,
        nested,
        model,
        summary,
        details,
        created_at,
    }
}

/// Returns the SQL that selects spans with their compactions, for a condition and an order.
macro_rules! select_compactions {
    ($condition:literal) => {
        concat!(
            "SELECT key, first, last",
            compaction_columns!(names),
            " FROM compaction ",
            $condition
        )
    };
}

/// Reads the first columns of a row of `select_compactions!`, or a row of `key, first, last`.
pub(in super::super) fn read_span(row: &Row<'_>) -> rusqlite::Result<Span> {
    Ok(Span { key: row.get(0)?, first: row.get(1)?, last: row.get(2)? })
}

/// Reads the compaction in a row of `select_compactions!`.
pub(in super::super) fn read(row: &Row<'_>) -> BackendResult<Compaction> {
    let key: i64 = row.get(0)?;
    // The id is the first column of the list.
    let id = CompactionId::read(row, 3).map_err(damaged(format_args!("compaction key {key}")))?;
    let read = || match Compaction::read(row, 3)? {
        compaction if is_blank(&compaction.summary) => Err(corrupt("its summary is blank")),
        compaction => Ok(compaction),
    };
    read().map_err(damaged(format_args!("compaction {id:?}")))
}

/// Stores a compaction. The span's key is not used.
pub(in super::super) fn insert(
    conn: &Connection,
    session: i64,
    span: Span,
    compaction: &Compaction,
) -> BackendResult<()> {
    execute(conn, INSERT, &[&session, &span.first, &span.last, compaction])?;
    Ok(())
}

const INSERT: &str = concat!(
    "INSERT INTO compaction (session, first, last",
    compaction_columns!(names),
    ") VALUES (?1, ?2, ?3",
    compaction_columns!(values),
    ")"
);
