//! Vectors of messages, beside them.
//!
//! The tables and triggers of `tables.sql`, or of `tables.postgres.sql`, are created by the first
//! [`begin`](Database::begin_embedding) and dropped with the last embedder: a store without vectors has none of them. The triggers keep the vectors right whatever writes messages:
//! a new message is pending, a changed one is pending again, and a deleted one has no vector.
//!
//! A search by meaning compares all vectors in scope with that of the query, so none is missed, and adds the nearest messages to those
//! found by words. The score is a weighted sum: the score for words as a share of the best one, plus a share of the cosine. Joining the
//! two lists by the places of their hits was tried and made answers worse, because the best hit by words is often far better than the
//! second.
//!
//! Invariant: a vector is that of the message's present text.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
#[cfg(feature = "postgres")]
use std::time::{Duration, Instant};

use talktree_text::{Columns, Finder};

use super::connection::Database;
use super::search::Search;
use super::search::hits;
use super::search::ranked::Ranked;
use crate::embedding::{Embedding, QueryVector, Vector, cosine};
use crate::error::{Error, Result};
use crate::message::parts_from_text;
use crate::search::{Matched, indexed_text};
use crate::sql::{BackendResult, Connection, Read};
use crate::tree::Address;

/// How many messages one transaction makes pending when a store is embedded the first time: some milliseconds.
const MAX_QUEUED: usize = 10_000;

/// How many vectors are read at a time.
const READ_AHEAD: usize = 16_000;

pub(super) const TABLES: &str = include_str!("tables.sql");
#[cfg(feature = "postgres")]
const TABLES_ON_A_SERVER: &str = include_str!("tables.postgres.sql");

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
        let row = self.write(|conn| {
            if !exists(conn)? {
                conn.script(match conn {
                    Connection::Sqlite(_) => TABLES,
                    #[cfg(feature = "postgres")]
                    Connection::Postgres(_) => TABLES_ON_A_SERVER,
                })?;
            }
            Ok(EmbedderRow { key: conn.one(INSERT, (name, i64::MIN))?, dimensions: None })
        })?;
        #[cfg(feature = "postgres")]
        if self.server.is_some() {
            self.wait_for_older_writes()?;
        }
        Ok(row)
    }

    /// Waits, up to the busy timeout, for writes that began before the embedder was there: no trigger makes their messages pending.
    #[cfg(feature = "postgres")]
    fn wait_for_older_writes(&self) -> Result<()> {
        let began = Instant::now();
        let next: String = self.read(|conn| conn.one(NEXT_WRITE, ()))?;
        while !self.read(|conn| conn.one(ARE_DONE, &next))?
            && began.elapsed() < self.config.busy_timeout
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
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
            let last: Option<i64> = conn.one(LAST_OF_CHUNK, (from, MAX_QUEUED))?;
            if let Some(last) = last {
                conn.run(QUEUE, (key, from, last))?;
            }
            conn.run(SET_QUEUED, (key, last))?;
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
            let from = from.map_or(i64::MIN, Address::raw);
            conn.rows_with(PENDING, (embedder.key, from, limit), |row| {
                let (address, parts): (_, String) = Read::read(row, 0)?;
                // Damaged parts have no text; reading the message is an error.
                let text = indexed_text::plain_text(&parts_from_text(&parts).unwrap_or_default());
                Ok(Unembedded { address, parts, text })
            })
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
                conn.run(SET_DIMENSIONS, (embedder.key, dimensions))?;
            }
            let mut refused = 0;
            for (message, vector) in vectors {
                let bytes = vector.as_ref().map_or(&[][..], Vector::bytes);
                let values = (embedder.key, message.address, bytes, &message.parts);
                refused += 1 - conn.run(STORE, values)?;
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
            conn.rows_with(LIST, (), |row| {
                let (embedder, dimensions, rows, pending, new): (_, _, u64, u64, u64) =
                    Read::read(row, 0)?;
                let embedded = rows.saturating_sub(pending);
                Ok(Embedding { embedder, dimensions, embedded, pending: pending + new })
            })
        })
    }

    /// Removes the vectors of an embedder; `false` if there are none.
    pub(crate) fn remove_embedding(&self, name: &str) -> Result<bool> {
        self.write_long(|conn| {
            let Some(embedder) = find(conn, name)? else { return Ok(false) };
            for sql in REMOVE {
                conn.run(sql, embedder.key)?;
            }
            if !conn.has("SELECT 1 FROM embedder LIMIT 1", ())? {
                conn.script(match conn {
                    Connection::Sqlite(_) => DROP,
                    #[cfg(feature = "postgres")]
                    Connection::Postgres(_) => DROP_ON_A_SERVER,
                })?;
            }
            Ok(true)
        })
    }
}

/// Returns whether the store has the tables.
fn exists(conn: &Connection) -> BackendResult<bool> {
    conn.one(
        match conn {
            Connection::Sqlite(_) => EXISTS,
            #[cfg(feature = "postgres")]
            Connection::Postgres(_) => "SELECT to_regclass('embedding') IS NOT NULL",
        },
        (),
    )
}

pub(super) fn find(conn: &Connection, name: &str) -> BackendResult<Option<EmbedderRow>> {
    if !exists(conn)? {
        return Ok(None);
    }
    let found: Option<(i64, Option<usize>)> = conn.first(FIND, name)?;
    Ok(found.map(|(key, dimensions)| EmbedderRow { key, dimensions }))
}

/// Returns up to which address messages were made pending; `None` if all were, or if the embedder was removed.
fn queued(conn: &Connection, key: i64) -> BackendResult<Option<i64>> {
    if !exists(conn)? {
        return Err(removed().into());
    }
    let queued: Option<Option<i64>> =
        conn.first("SELECT queued FROM embedder WHERE key = ?1", key)?;
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
 ON CONFLICT (name) DO UPDATE SET name = excluded.name
 RETURNING key";

#[cfg(feature = "postgres")]
const NEXT_WRITE: &str = "SELECT CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT)";
#[cfg(feature = "postgres")]
const ARE_DONE: &str =
    "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= CAST(CAST(?1 AS TEXT) AS xid8)";

const LAST_OF_CHUNK: &str = "SELECT max(address)
   FROM (SELECT address FROM message WHERE address > ?1 ORDER BY address LIMIT ?2) AS chunk";

const QUEUE: &str = "INSERT INTO embedding (embedder, address)
 SELECT CAST(?1 AS BIGINT), address FROM message WHERE address > ?2 AND address <= ?3 AND id IS NOT NULL
    AND address >> 32 NOT IN (SELECT session FROM leftover)
     ON CONFLICT DO NOTHING";

const SET_QUEUED: &str = "UPDATE embedder SET queued = ?2 WHERE key = ?1";

const PENDING: &str = "SELECT embedding.address, message.parts
   FROM embedding
   JOIN message ON message.address = embedding.address
  WHERE embedding.embedder = ?1
    AND embedding.address > ?2
    AND message.address > ?2
    AND embedding.vector IS NULL
    AND embedding.address >> 32 NOT IN (SELECT session FROM leftover)
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
        (SELECT count(*)
           FROM embedding
          WHERE embedder = embedder.key AND address >> 32 NOT IN (SELECT session FROM leftover)),
        (SELECT count(*)
           FROM embedding
          WHERE embedder = embedder.key AND vector IS NULL
            AND address >> 32 NOT IN (SELECT session FROM leftover)),
        (SELECT count(*)
           FROM message
          WHERE id IS NOT NULL AND address > embedder.queued
            AND address >> 32 NOT IN (SELECT session FROM leftover))
   FROM embedder
  ORDER BY name";

const REMOVE: [&str; 2] =
    ["DELETE FROM embedding WHERE embedder = ?1", "DELETE FROM embedder WHERE key = ?1"];

const DROP: &str = "DROP TRIGGER embedding_added;
 DROP TRIGGER embedding_changed;
 DROP TRIGGER embedding_removed;
 DROP TABLE embedding;
 DROP TABLE embedder;";

#[cfg(feature = "postgres")]
const DROP_ON_A_SERVER: &str = "DROP TRIGGER embedding_added ON message;
 DROP TRIGGER embedding_changed ON message;
 DROP TRIGGER embedding_removed ON message;
 DROP FUNCTION embedding_added, embedding_changed, embedding_removed;
 DROP TABLE embedding, embedder;";

/// The weight of the cosine, beside 1 for the best score for words.
///
/// Of 0.1, 0.25, 0.5 and 1 the one with the most chats among the first ten on the tuned half of LongMemEval, with
/// all-MiniLM-L6-v2: .842 instead of .840, and on the held half .884 as before, among the first five .812 instead of .797. With 1
/// fewer are found than by words alone.
const WEIGHT: f64 = 0.25;
/// How many of the nearest messages are joined to those found by words.
const NEAREST: usize = 200;
/// If filters leave too few of the nearest messages, this many times as many are taken.
const MORE: usize = 8;

/// The cosines of messages.
type Cosines = HashMap<Address, f64>;

/// The vector of a query, and whose vectors it is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meaning<'r> {
    embedder: EmbedderRow,
    vector: &'r Vector,
}

impl<'r> Meaning<'r> {
    /// Returns what to compare; `None`, with a notice, if the store has no vectors of the embedder.
    pub(super) fn of(
        conn: &Connection,
        query: Option<&'r QueryVector>,
        notices: &mut Vec<String>,
    ) -> BackendResult<Option<Self>> {
        let Some(query) = query else { return Ok(None) };
        let (name, vector) = (query.embedder(), query.vector());
        let Some(embedder) = find(conn, name)? else {
            notices.push(format!("the store has no vectors by {name:?}: only words are searched"));
            return Ok(None);
        };
        if let Some(dimensions) = embedder.dimensions.filter(|known| *known != vector.dimensions())
        {
            notices.push(format!(
                "the vectors by {name:?} have {dimensions} dimensions in the store, the query's has {}: only words are searched",
                vector.dimensions()
            ));
            return Ok(None);
        }
        Ok(Some(Self { embedder, vector }))
    }
}

impl Search<'_> {
    /// Adds the messages that mean the same to those found by words.
    ///
    /// A spent budget leaves what was found by words.
    pub(super) fn with_meaning(&self, ranked: Ranked) -> BackendResult<Ranked> {
        let Some(meaning) = self.meaning.filter(|_| self.analysis.strict.is_empty()) else {
            return Ok(ranked);
        };
        if self.columns() == Columns::Tools || self.is_stopped.get() {
            return Ok(ranked);
        }
        let cosines = match self.cosines(meaning, &ranked) {
            Err(error) if self.watch.is_end_of_budget(&error) => {
                self.is_stopped.set(true);
                return Ok(ranked);
            }
            cosines => cosines?,
        };
        let matched = if ranked.messages.is_empty() { Matched::Meaning } else { ranked.matched };
        let mut of_sessions: HashMap<i64, f64> = HashMap::new();
        for (address, cosine) in &cosines {
            let greatest = of_sessions.entry(address.session()).or_default();
            *greatest = greatest.max(*cosine);
        }
        let messages = joined(ranked.messages, cosines);
        let sessions = joined(ranked.sessions, of_sessions);
        Ok(Ranked { messages, sessions, matched, more: ranked.more })
    }

    /// Returns the cosines of the messages found by words, and of the nearest that pass the filters and have no excluded word.
    fn cosines(&self, meaning: Meaning<'_>, ranked: &Ranked) -> BackendResult<Cosines> {
        let by_words: HashSet<Address> = ranked.messages.iter().map(|found| found.0).collect();
        let mut excluded = Finder::default();
        for term in &self.analysis.query.excluded {
            excluded.add(&term.phrases());
        }
        let mut limit = NEAREST;
        loop {
            let (mut cosines, nearest) = self.compared(meaning, &by_words, limit)?;
            let (count, mut passed) = (nearest.len(), 0);
            self.ask_ahead(nearest.iter().map(|near| near.0))?;
            for (address, cosine) in nearest {
                let is_free = self.read_one(address, |row| {
                    Ok(excluded.find(&hits::text(row.parts, self.columns())).0.is_empty())
                })?;
                passed += usize::from(is_free == Some(true));
                // Others mean the opposite, or something that has nothing to do with it.
                if is_free == Some(true) && cosine > 0.0 {
                    cosines.insert(address, cosine);
                }
            }
            if count < limit || passed >= NEAREST {
                return Ok(cosines);
            }
            limit *= MORE;
        }
    }

    /// Returns the cosines of some messages, and those of the nearest in scope, nearest first, at most `limit`; of equal ones the oldest
    /// first.
    fn compared(
        &self,
        meaning: Meaning<'_>,
        some: &HashSet<Address>,
        limit: usize,
    ) -> BackendResult<(Cosines, Vec<(Address, f64)>)> {
        let mut of_some = HashMap::new();
        let mut best: Vec<(Address, f64)> = Vec::with_capacity(2 * limit);
        let mut take = |address, stored: &[u8]| {
            let Some(cosine) = cosine(meaning.vector, stored).map(f64::from) else { return };
            if some.contains(&address) {
                of_some.insert(address, cosine.max(0.0));
            }
            if self.range.holds(address) {
                best.push((address, cosine));
            }
            if best.len() == 2 * limit {
                best.select_nth_unstable_by(limit - 1, by_score);
                best.truncate(limit);
            }
        };
        for (low, high) in self.range.ranges() {
            let mut from = Some(low);
            while let Some(low) = from {
                let (mut count, mut last) = (0, low);
                self.conn.each(VECTORS, (meaning.embedder.key, low, high, READ_AHEAD), |row| {
                    self.watch.check()?;
                    (count, last) = (count + 1, row.get(0)?);
                    if let Some(stored) = row.value(1)?.as_blob_or_null()? {
                        take(last, stored);
                    }
                    Ok(true)
                })?;
                from = (count == READ_AHEAD && last < high).then(|| last.after());
            }
        }
        best.sort_unstable_by(by_score);
        best.truncate(limit);
        Ok((of_some, best))
    }
}

fn by_score<K: Ord>(a: &(K, f64), b: &(K, f64)) -> std::cmp::Ordering {
    b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0))
}

/// Returns what was found by words, best first, and what only means the same, with both scores together.
fn joined<K: Copy + Eq + Hash + Ord>(
    found: Vec<(K, f64)>,
    mut cosines: HashMap<K, f64>,
) -> Vec<(K, f64)> {
    let best = found.first().map_or(0.0, |first| first.1);
    let share = |score: f64| if best > 0.0 { score / best } else { 0.0 };
    let mut all: Vec<(K, f64)> = found
        .into_iter()
        .map(|(key, score)| (key, share(score) + WEIGHT * cosines.remove(&key).unwrap_or(0.0)))
        .collect();
    all.extend(cosines.into_iter().map(|(key, cosine)| (key, WEIGHT * cosine)));
    all.sort_unstable_by(by_score);
    all
}

pub(super) const VECTORS: &str = "SELECT address, vector
   FROM embedding
  WHERE embedder = ?1
    AND address BETWEEN ?2 AND ?3
  ORDER BY address
  LIMIT ?4";
