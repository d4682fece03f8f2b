//! The floor: what the same work costs with SQLite alone.

use std::path::Path;

use rusqlite::{Connection, Row, params};
use serde::Deserialize;
use serde_json::value::RawValue;
use talktree::{Durability, Message};

use crate::Result;

/// Opens a database with talktree's settings: write-ahead log, page size, cache, durability.
pub(crate) fn open(path: &Path, durability: Durability) -> Result<Connection> {
    let conn = Connection::open(path)?;
    let synchronous = if durability == Durability::Full { "FULL" } else { "NORMAL" };
    conn.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
         PRAGMA cache_size = -2048; PRAGMA journal_size_limit = 16777216;"
    ))?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// Creates the minimal tables of a chat: messages with a unique id, and one row for the session.
pub(crate) fn create(conn: &Connection) -> Result<()> {
    conn.execute_batch(
        "CREATE TABLE session (key INTEGER PRIMARY KEY, next INTEGER, head INTEGER, updated_at INTEGER);
         INSERT INTO session VALUES (1, 1, NULL, 0);
         CREATE TABLE message (
             address INTEGER PRIMARY KEY, parent INTEGER, id TEXT NOT NULL, role TEXT NOT NULL,
             parts TEXT NOT NULL, metadata TEXT, extra TEXT, tokens INTEGER NOT NULL,
             hidden INTEGER NOT NULL, created_at INTEGER NOT NULL);
         CREATE UNIQUE INDEX message_id ON message (id);",
    )?;
    Ok(())
}

/// The values of a message's row, converted before the clock starts.
pub(crate) struct Ready {
    id: String,
    role: String,
    parts: String,
    tokens: u64,
    created_at: i64,
}

impl Ready {
    pub(crate) fn new(message: &Message) -> Result<Self> {
        Ok(Self {
            id: message.id.to_string(),
            role: message.role.as_str().to_owned(),
            parts: serde_json::to_string(&message.parts)?,
            tokens: message.tokens(),
            created_at: message.created_at.timestamp_micros(),
        })
    }
}

pub(crate) fn insert(conn: &Connection, address: i64, row: &Ready) -> Result<()> {
    conn.prepare_cached("INSERT INTO message VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL, ?6, 0, ?7)")?
        .execute(params![
            address,
            Some(address - 1).filter(|parent| *parent > 0),
            row.id,
            row.role,
            row.parts,
            row.tokens,
            row.created_at
        ])?;
    Ok(())
}

pub(crate) fn set_head(conn: &Connection, address: i64, time: i64) -> Result<()> {
    conn.prepare_cached(
        "UPDATE session SET next = ?1 + 1, head = ?1, updated_at = ?2 WHERE key = 1",
    )?
    .execute([address, time])?;
    Ok(())
}

pub(crate) fn run(conn: &Connection, sql: &str) -> Result<()> {
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// Appends one message in one transaction.
pub(crate) fn append(conn: &Connection, address: i64, row: &Ready) -> Result<()> {
    run(conn, "BEGIN IMMEDIATE")?;
    insert(conn, address, row)?;
    set_head(conn, address, row.created_at)?;
    run(conn, "COMMIT")
}

/// A message read into derived structs.
#[expect(dead_code, reason = "a caller would read all fields")]
pub(crate) struct Plain {
    pub(crate) id: String,
    pub(crate) parent: Option<i64>,
    pub(crate) role: String,
    pub(crate) parts: Vec<PlainPart>,
    pub(crate) metadata: Option<Box<RawValue>>,
    pub(crate) is_hidden: bool,
    pub(crate) created_at: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a caller would read all fields")]
pub(crate) struct PlainPart {
    r#type: String,
    text: Option<String>,
    tool_call_id: Option<String>,
    state: Option<String>,
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
}

/// Reads a row of `parent, id, role, parts, metadata, hidden, created_at`.
pub(crate) fn plain(row: &Row<'_>) -> Result<Plain> {
    let metadata = row.get_ref(4)?.as_str_or_null()?;
    Ok(Plain {
        parent: row.get(0)?,
        id: row.get(1)?,
        role: row.get(2)?,
        parts: serde_json::from_str(row.get_ref(3)?.as_str()?)?,
        metadata: metadata.map(serde_json::from_str).transpose()?,
        is_hidden: row.get(5)?,
        created_at: row.get(6)?,
    })
}

/// Reads the messages that a statement selects.
pub(crate) fn read<P: rusqlite::Params>(
    conn: &Connection,
    sql: &str,
    values: P,
) -> Result<Vec<Plain>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(plain(row)?);
    }
    Ok(messages)
}

/// Reads a path from leaf to root by a recursive query, with one seek per message.
pub(crate) const PATH_BY_PARENT: &str = "WITH RECURSIVE path AS (
    SELECT parent, id, role, parts, metadata, hidden, created_at FROM message WHERE address = ?1
     UNION ALL
    SELECT m.parent, m.id, m.role, m.parts, m.metadata, m.hidden, m.created_at
      FROM path JOIN message AS m ON m.address = path.parent)
 SELECT parent, id, role, parts, metadata, hidden, created_at FROM path";

/// The same, but the recursion yields only addresses, and the messages are then read in order.
pub(crate) const PATH_BY_PARENT_THEN_FETCH: &str = "WITH RECURSIVE path (address) AS (
    SELECT ?1
     UNION ALL
    SELECT m.parent FROM path JOIN message AS m ON m.address = path.address WHERE m.parent NOT NULL)
 SELECT parent, id, role, parts, metadata, hidden, created_at
   FROM message WHERE address IN path ORDER BY address";
