//! Vectors of messages, beside them.
//!
//! The tables and triggers of `tables.sql` are created by the first [`begin`](Database::begin_embedding) and dropped with the
//! last embedder: a store without vectors has none of them. The triggers keep the vectors right whatever writes messages:
//! a new message is pending, a changed one is pending again, and a deleted one has no vector.
//!
//! Invariant: a vector is that of the message's present text.

mod nearest;

use rusqlite::{Connection, OptionalExtension, params};

pub(super) use nearest::{cosine_with, nearest};

use super::connection::Database;
use super::error::BackendResult;
use crate::embedding::{Embedding, Vector};
use crate::error::{Error, Result};
use crate::message::parts_from_text;
use crate::search::indexed_text;
use crate::tree::Address;

/// How many messages one transaction makes pending when a store is embedded the first time: some milliseconds.
const MAX_QUEUED: usize = 10_000;

pub(super) const TABLES: &str = include_str!("tables.sql");

/// The vectors of one embedder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EmbedderRow {
    pub(crate) key: i64,
    pub(crate) dimensions: Option<usize>,
}

/// A message without a vector.
#[derive(Debug)]
pub(crate) struct Unembedded {
    address: Address,
    /// What was read; a vector of another text is not stored.
    parts: String,
    pub(crate) text: String,
}

impl Unembedded {
    pub(crate) fn address(&self) -> Address {
        self.address
    }
}

impl Database {
    /// Returns the embedder of this name; creates it, and the tables, if it is new.
    pub(crate) fn begin_embedding(&self, name: &str) -> Result<EmbedderRow> {
        if let Some(known) = self.read(|conn| find(conn, name))? {
            return Ok(known);
        }
        self.write(|conn| {
            conn.execute_batch(TABLES)?;
            conn.prepare_cached(INSERT)?.execute(params![name, i64::MIN])?;
            Ok(EmbedderRow { key: conn.last_insert_rowid(), dimensions: None })
        })
    }

    /// Makes some of the messages pending that were there before the embedder; returns whether there may be more.
    pub(crate) fn queue_for_embedding(&self, embedder: EmbedderRow) -> Result<bool> {
        let key = embedder.key;
        if self.read(|conn| queued(conn, key))?.is_none() {
            return Ok(false);
        }
        self.write(|conn| {
            // Another process may have done some meanwhile.
            let Some(from) = queued(conn, key)? else { return Ok(false) };
            let last: Option<i64> = conn
                .prepare_cached(LAST_OF_CHUNK)?
                .query_row(params![from, MAX_QUEUED], |row| row.get(0))?;
            if let Some(last) = last {
                conn.prepare_cached(QUEUE)?.execute(params![key, from, last])?;
            }
            conn.prepare_cached(SET_QUEUED)?.execute(params![key, last])?;
            Ok(last.is_some())
        })
    }

    /// Returns the first messages without a vector, from an address on.
    pub(crate) fn unembedded(
        &self,
        embedder: EmbedderRow,
        from: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Unembedded>> {
        self.read_long(|conn| {
            let mut statement = conn.prepare_cached(PENDING)?;
            let from = from.map_or(i64::MIN, Address::raw);
            let mut rows = statement.query(params![embedder.key, from, limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let parts: String = row.get(1)?;
                // Damaged parts have no text; reading the message is an error.
                let text = indexed_text::plain_text(&parts_from_text(&parts).unwrap_or_default());
                found.push(Unembedded { address: row.get(0)?, parts, text });
            }
            Ok(found)
        })
    }

    /// Stores vectors, `None` for a message without text; returns how many messages had another text by then, or a vector.
    pub(crate) fn store_vectors(
        &self,
        embedder: EmbedderRow,
        vectors: &[(Unembedded, Option<Vector>)],
    ) -> Result<usize> {
        let dimensions = vectors.iter().find_map(|(_, vector)| Some(vector.as_ref()?.dimensions()));
        self.write(|conn| {
            if let Some(dimensions) = dimensions {
                conn.prepare_cached(SET_DIMENSIONS)?.execute(params![embedder.key, dimensions])?;
            }
            let mut store = conn.prepare_cached(STORE)?;
            let mut refused = 0;
            for (message, vector) in vectors {
                let bytes = vector.as_ref().map_or(&[][..], Vector::bytes);
                let values = params![embedder.key, message.address, bytes, message.parts];
                refused += 1 - store.execute(values)?;
            }
            Ok(refused)
        })
    }

    /// Returns what the store has of each embedder, by name.
    pub(crate) fn embeddings(&self) -> Result<Vec<Embedding>> {
        self.read_long(|conn| {
            if !exists(conn)? {
                return Ok(Vec::new());
            }
            let mut statement = conn.prepare_cached(LIST)?;
            let all = statement.query_map([], |row| {
                let pending: u64 = row.get(3)?;
                let rows: u64 = row.get(2)?;
                Ok(Embedding {
                    embedder: row.get(0)?,
                    dimensions: row.get(1)?,
                    embedded: rows.saturating_sub(pending),
                    pending: pending + row.get::<_, u64>(4)?,
                })
            })?;
            Ok(all.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Removes the vectors of an embedder; `false` if there are none.
    pub(crate) fn remove_embedding(&self, name: &str) -> Result<bool> {
        self.write_long(|conn| {
            let Some(embedder) = find(conn, name)? else { return Ok(false) };
            for sql in REMOVE {
                conn.execute(sql, [embedder.key])?;
            }
            if conn.query_row("SELECT NOT EXISTS (SELECT 1 FROM embedder)", [], |row| row.get(0))? {
                conn.execute_batch(DROP)?;
            }
            Ok(true)
        })
    }
}

/// Returns whether the store has the tables.
fn exists(conn: &Connection) -> BackendResult<bool> {
    Ok(conn.prepare_cached(EXISTS)?.query_row([], |row| row.get(0))?)
}

pub(super) fn find(conn: &Connection, name: &str) -> BackendResult<Option<EmbedderRow>> {
    if !exists(conn)? {
        return Ok(None);
    }
    let found = conn
        .prepare_cached(FIND)?
        .query_row([name], |row| Ok(EmbedderRow { key: row.get(0)?, dimensions: row.get(1)? }))
        .optional()?;
    Ok(found)
}

/// Returns up to which address messages were made pending; `None` if all were, or if the embedder was removed.
fn queued(conn: &Connection, key: i64) -> BackendResult<Option<i64>> {
    if !exists(conn)? {
        return Err(removed().into());
    }
    let queued: Option<Option<i64>> = conn
        .prepare_cached("SELECT queued FROM embedder WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    queued.ok_or_else(|| removed().into())
}

fn removed() -> Error {
    Error::Embedder { source: "its vectors were removed from the store meanwhile".into() }
}

const EXISTS: &str =
    "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'embedding')";

const FIND: &str = "SELECT key, dimensions FROM embedder WHERE name = ?1";

/// Every address is greater than the lowest integer.
const INSERT: &str = "INSERT INTO embedder (name, queued)
 VALUES (?1, ?2)
 ON CONFLICT (name) DO UPDATE SET name = name";

const LAST_OF_CHUNK: &str = "SELECT max(address)
   FROM (SELECT address FROM message WHERE address > ?1 ORDER BY address LIMIT ?2)";

const QUEUE: &str = "INSERT OR IGNORE INTO embedding (embedder, address)
 SELECT ?1, address FROM message WHERE address > ?2 AND address <= ?3 AND id IS NOT NULL";

const SET_QUEUED: &str = "UPDATE embedder SET queued = ?2 WHERE key = ?1";

const PENDING: &str = "SELECT embedding.address, message.parts
   FROM embedding
  CROSS JOIN message ON message.address = embedding.address
  WHERE embedding.embedder = ?1
    AND embedding.address > ?2
    AND embedding.vector IS NULL
  ORDER BY embedding.address
  LIMIT ?3";

const SET_DIMENSIONS: &str =
    "UPDATE embedder SET dimensions = ?2 WHERE key = ?1 AND dimensions IS NULL";

const STORE: &str = "UPDATE embedding
    SET vector = ?3
  WHERE embedder = ?1
    AND address = ?2
    AND vector IS NULL
    AND EXISTS (SELECT 1 FROM message WHERE message.address = ?2 AND message.parts = ?4)";

const LIST: &str = "SELECT name, dimensions,
        (SELECT count(*) FROM embedding WHERE embedder = embedder.key),
        (SELECT count(*) FROM embedding WHERE embedder = embedder.key AND vector IS NULL),
        (SELECT count(*) FROM message WHERE id IS NOT NULL AND address > embedder.queued)
   FROM embedder
  ORDER BY name";

const REMOVE: [&str; 2] =
    ["DELETE FROM embedding WHERE embedder = ?1", "DELETE FROM embedder WHERE key = ?1"];

const DROP: &str = "DROP TRIGGER embedding_added;
 DROP TRIGGER embedding_changed;
 DROP TRIGGER embedding_removed;
 DROP TABLE embedding;
 DROP TABLE embedder;";
