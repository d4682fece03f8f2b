//! Blocks: the labels of texts.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::error::{BackendError, BackendResult, corrupt, damaged};
use super::Whose;
use crate::error::Error;
use crate::id::check_name;
use crate::storage::context::StoredLabel;
use crate::tree::{Address, MAX_MESSAGES, MAX_SESSIONS};

/// How many blocks a store can create over its lifetime: the upper half of an address.
const MAX_BLOCKS: i64 = MAX_SESSIONS;
/// How many texts a block can get over its lifetime; numbers are never reused.
const MAX_ENTRIES: u64 = MAX_MESSAGES;

pub(super) fn find(conn: &Connection, whose: &Whose, label: &str) -> BackendResult<Option<i64>> {
    let key = conn
        .prepare_cached(BY_LABEL)?
        .query_row(params![whose.session, whose.owner, label], |row| row.get(0))
        .optional()?;
    Ok(key)
}

pub(in super::super) const BY_LABEL: &str =
    "SELECT key FROM context_block WHERE session = ?1 AND owner = ?2 AND label = ?3";

/// Returns the key of a block, creating it if it does not exist.
pub(super) fn find_or_create(conn: &Connection, whose: &Whose, label: &str) -> BackendResult<i64> {
    if let Some(key) = find(conn, whose, label)? {
        return Ok(key);
    }
    create(conn, whose, label)
}

/// Creates a block; its label must be free.
pub(super) fn create(conn: &Connection, whose: &Whose, label: &str) -> BackendResult<i64> {
    conn.prepare_cached("INSERT INTO context_block (session, owner, label) VALUES (?1, ?2, ?3)")?
        .execute(params![whose.session, whose.owner, label])?;
    let key = conn.last_insert_rowid();
    if key > MAX_BLOCKS {
        let max = MAX_BLOCKS as u64;
        return Err(BackendError::Own(Error::ContextFull { what: "context blocks", max }));
    }
    Ok(key)
}

/// Returns the address of the block's next text.
pub(super) fn next_address(conn: &Connection, block: i64) -> BackendResult<Address> {
    let number: u64 = conn
        .prepare_cached(
            "UPDATE context_block SET next = next + 1 WHERE key = ?1 RETURNING next - 1",
        )?
        .query_row([block], |row| row.get(0))?;
    match u32::try_from(number).ok().filter(|_| number <= MAX_ENTRIES) {
        // No read finds a text at this address.
        Some(0) => Err(corrupt(format!("the next number of context block {block} is 0"))),
        Some(number) => Ok(Address::new(block, number)),
        None => Err(BackendError::Own(Error::ContextFull {
            what: "texts in this block",
            max: MAX_ENTRIES,
        })),
    }
}

/// Returns the labels that have at least one text, sorted.
pub(super) fn labels(conn: &Connection, whose: &Whose) -> BackendResult<Vec<StoredLabel>> {
    let mut statement = conn.prepare_cached(LABELS)?;
    let mut rows = statement.query(params![whose.session, whose.owner])?;
    let mut labels = Vec::new();
    while let Some(row) = rows.next()? {
        let is_searchable: Option<bool> = row.get(3)?;
        labels.push(StoredLabel {
            label: read_label(row)?,
            has_text: row.get(2)?,
            has_documents: is_searchable.is_some(),
            is_searchable: is_searchable == Some(true),
        });
    }
    Ok(labels)
}

/// Reads the label of a row of `key, label`. One that talktree would refuse was written by another program.
pub(in super::super) fn read_label(row: &Row<'_>) -> BackendResult<String> {
    let key: i64 = row.get(0)?;
    let read = || {
        let label: String = row.get(1)?;
        check_name("context label", &label).map_err(|error| corrupt(error.to_string()))?;
        Ok(label)
    };
    read().map_err(damaged(format_args!("context block {key}")))
}

/// The first document is enough: the block's kind decides whether its documents are searchable.
pub(in super::super) const LABELS: &str = "SELECT key, label,
        EXISTS (SELECT 1
                  FROM context_entry
                 WHERE block = context_block.key AND context_entry.key = ''
                   AND present = 1) AS has_text,
        (SELECT searchable
           FROM context_entry
          WHERE block = context_block.key AND context_entry.key > '' AND present = 1
          LIMIT 1) AS searchable
   FROM context_block
  WHERE session = ?1 AND owner = ?2 AND (has_text OR searchable IS NOT NULL)
  ORDER BY label";

/// Returns the blocks of a session, by label.
pub(super) fn all(conn: &Connection, session: i64) -> BackendResult<Vec<(i64, String)>> {
    let mut statement = conn.prepare_cached(ALL)?;
    let blocks = statement.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(blocks.collect::<rusqlite::Result<_>>()?)
}

pub(in super::super) const ALL: &str =
    "SELECT key, label FROM context_block WHERE session = ?1 AND owner = '' ORDER BY label";
