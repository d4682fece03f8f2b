//! A minimal tree of messages on SQLite, written by hand: integer ids, the head in the session's row, cached
//! statements, one transaction per write.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::Result;
use crate::messages::TestMessage;
use crate::tasks::Chat;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY, head INTEGER);
CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, parent INTEGER, role TEXT NOT NULL,
    text TEXT NOT NULL, created_at INTEGER NOT NULL);
INSERT OR IGNORE INTO session VALUES (1, NULL);";

/// The path to the head of a session, newest first; the second parameter limits its length.
const PATH: &str = "
WITH RECURSIVE path (id, parent, role, text, created_at, depth) AS (
    SELECT message.id, parent, role, text, created_at, 1
      FROM session JOIN message ON message.id = session.head
     WHERE session.id = ?1
     UNION ALL
    SELECT message.id, message.parent, message.role, message.text, message.created_at, depth + 1
      FROM path JOIN message ON message.id = path.parent
     WHERE depth < ?2)
SELECT id, parent, role, text, created_at FROM path";

const INSERT: &str = "INSERT INTO message (session, parent, role, text, created_at)
VALUES (1, ?1, ?2, ?3, unixepoch())";

pub(crate) struct Bare(Connection);

#[derive(Debug)]
#[expect(dead_code, reason = "a reader wants the whole message; the tasks check only its text")]
pub(crate) struct Row {
    id: i64,
    parent: Option<i64>,
    role: String,
    text: String,
    created_at: i64,
}

impl Bare {
    fn read(&self, session: i64, limit: i64) -> Result<Vec<Row>> {
        let mut statement = self.0.prepare_cached(PATH)?;
        let rows = statement.query_map([session, limit], |row| {
            Ok(Row {
                id: row.get(0)?,
                parent: row.get(1)?,
                role: row.get(2)?,
                text: row.get(3)?,
                created_at: row.get(4)?,
            })
        })?;
        let mut path = rows.collect::<std::result::Result<Vec<_>, _>>()?;
        path.reverse();
        Ok(path)
    }

    fn insert(&mut self, parent: Option<i64>, messages: &[TestMessage]) -> Result<()> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut head = match parent {
            Some(parent) => Some(parent),
            None => transaction
                .prepare_cached("SELECT head FROM session WHERE id = 1")?
                .query_row([], |row| row.get(0))
                .optional()?
                .flatten(),
        };
        for message in messages {
            transaction.prepare_cached(INSERT)?.execute(params![
                head,
                message.role,
                message.text
            ])?;
            head = Some(transaction.last_insert_rowid());
        }
        transaction.prepare_cached("UPDATE session SET head = ?1 WHERE id = 1")?.execute([head])?;
        Ok(transaction.commit()?)
    }
}

impl Chat for Bare {
    type Item = Row;
    type Id = i64;

    const LACKS: &'static [(&'static str, &'static str)] =
        &[("compacted", "has no summaries"), ("search-first", "has no index")];
    const NOTES: &'static [(&'static str, &'static str)] = &[
        ("append-deep", "has no index to update"),
        ("search", "LIKE, newest first: stops at the 20th hit"),
        ("search-huge", "LIKE, newest first: stops at the 20th hit"),
        ("search-common", "LIKE, newest first: stops at the 20th hit"),
    ];
    const SUMMARIES: usize = 0;

    fn versions() -> String {
        format!("rusqlite 0.41, SQLite {}", rusqlite::version())
    }

    fn open(folder: &Path, is_full: bool) -> Result<Self> {
        let conn = Connection::open(folder.join("bare.db"))?;
        let synchronous = if is_full { "FULL" } else { "NORMAL" };
        conn.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; {SCHEMA}"
        ))?;
        Ok(Self(conn))
    }

    fn append(&mut self, message: &TestMessage) -> Result<()> {
        self.insert(None, std::slice::from_ref(message))
    }

    fn fill(&mut self, messages: &[TestMessage]) -> Result<()> {
        self.insert(None, messages)
    }

    fn history(&mut self) -> Result<Vec<Row>> {
        self.read(1, i64::MAX)
    }

    fn last(&mut self, count: usize) -> Result<Vec<Row>> {
        self.read(1, i64::try_from(count)?)
    }

    fn text(item: &Row) -> String {
        item.text.clone()
    }

    fn ids(&mut self) -> Result<Vec<i64>> {
        Ok(self.history()?.iter().map(|row| row.id).collect())
    }

    fn branch(&mut self, at: &i64, message: &TestMessage) -> Result<()> {
        self.insert(Some(*at), std::slice::from_ref(message))
    }

    /// Copies the rows of the path, each with the copy before it as its parent.
    fn fork(&mut self, at: &i64) -> Result<String> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.prepare_cached("INSERT INTO session (head) VALUES (NULL)")?.execute([])?;
        let session = transaction.last_insert_rowid();
        let offset: i64 = transaction
            .prepare_cached("SELECT max(id) FROM message")?
            .query_row([], |row| row.get(0))?;
        let copied = transaction
            .prepare_cached(
                "WITH RECURSIVE path (id, depth) AS (
                     SELECT ?1, 0
                      UNION ALL
                     SELECT message.parent, depth + 1
                       FROM path JOIN message ON message.id = path.id
                      WHERE message.parent IS NOT NULL),
                 copy AS (
                     SELECT message.*, ROW_NUMBER() OVER (ORDER BY depth DESC) AS place
                       FROM path JOIN message ON message.id = path.id)
                 INSERT INTO message (id, session, parent, role, text, created_at)
                 SELECT ?2 + place, ?3, iif(place = 1, NULL, ?2 + place - 1), role, text, created_at
                   FROM copy",
            )?
            .execute([*at, offset, session])?;
        transaction
            .prepare_cached("UPDATE session SET head = ?1 WHERE id = ?2")?
            .execute([offset + i64::try_from(copied)?, session])?;
        transaction.commit()?;
        Ok(session.to_string())
    }

    fn fork_length(&mut self, name: &str) -> Result<usize> {
        Ok(self.read(name.parse()?, i64::MAX)?.len())
    }

    fn compact(&mut self, _: &[i64], _: &i64, _: &str) -> Result<()> {
        Err("has no summaries".into())
    }

    fn search(&mut self, word: &str, limit: usize) -> Result<Vec<String>> {
        let mut statement = self.0.prepare_cached(
            "SELECT text FROM message
              WHERE session = 1 AND text LIKE '%' || ?1 || '%'
              ORDER BY id DESC
              LIMIT ?2",
        )?;
        let rows = statement.query_map(params![word, i64::try_from(limit)?], |row| row.get(0))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }
}
