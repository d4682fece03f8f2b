//! Reads the data of an owner besides messages: texts, usage, pending items, transcripts, imported records.

use rusqlite::{Connection, Row, params};

use super::connection::Database;
use super::context::texts;
use super::error::{BackendResult, damaged};
use super::inbox::read_item;
use super::row::{Read, session as row, time};
use super::{transcript, usage};
use crate::error::Result;
use crate::id::SessionId;
use crate::message::Json;
use crate::storage::context::EntryVersion;
use crate::storage::owner_data::{LedgerOf, LedgerRow, OwnedItem, TextName, TextsOf};
use crate::transcript::StoredTranscript;

/// How many rows of the ledger one read returns.
const BATCH: usize = 1_000;

impl Database {
    /// Returns the names of all texts of an owner or a session, removed ones included.
    pub(crate) fn text_names(&self, of: TextsOf<'_>) -> Result<Vec<TextName>> {
        self.read(|conn| match key_of(conn, of)? {
            Some((session, owner)) => texts::names(conn, session, owner),
            None => Ok(Vec::new()),
        })
    }

    /// Returns the versions of a text, oldest first.
    pub(crate) fn text_versions(
        &self,
        of: TextsOf<'_>,
        name: &TextName,
    ) -> Result<Vec<EntryVersion>> {
        self.read(|conn| match key_of(conn, of)? {
            Some((session, owner)) => texts::versions(conn, session, owner, name),
            None => Ok(Vec::new()),
        })
    }

    /// Returns rows of the ledger, oldest first: a batch of those after a place. An empty batch is the end.
    pub(crate) fn ledger(
        &self,
        of: LedgerOf<'_>,
        after: Option<(i64, i64)>,
    ) -> Result<Vec<LedgerRow>> {
        let (used_at, number) = after.unwrap_or((i64::MIN, i64::MIN));
        let (sql, name) = match of {
            LedgerOf::Owner(owner) => (LEDGER, owner),
            LedgerOf::Author(author) => (LEDGER_OF_AUTHOR, author),
        };
        self.read(|conn| {
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query(params![name, used_at, number, BATCH])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(ledger_row(row)?);
            }
            Ok(found)
        })
    }

    /// Returns the next pending item of an owner in any inbox, after one of them.
    pub(crate) fn owned_item(&self, owner: &str, after: i64) -> Result<Option<OwnedItem>> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(ITEM)?;
            let mut rows = statement.query(params![owner, after])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let item = read_item(row, 2)?;
            Ok(Some(OwnedItem { number: row.get(0)?, inbox: row.get(1)?, item }))
        })
    }

    /// Returns the transcripts of an owner, and the others of a session whose main one is the owner's, oldest first.
    pub(crate) fn owned_transcripts(&self, owner: &str) -> Result<Vec<StoredTranscript>> {
        self.read(|conn| {
            let mut found = Vec::new();
            for key in transcript::delete::of_owner(conn, owner)? {
                found.extend(transcript::read::stored_in(conn, key)?);
            }
            Ok(found)
        })
    }

    /// Returns a batch of a transcript's entries with their numbers, after one of them. An empty batch is the end.
    pub(crate) fn entries(&self, transcript: u64, after: i64) -> Result<Vec<(i64, Json)>> {
        // No store has a row of that key.
        let key = i64::try_from(transcript).unwrap_or_default();
        self.read(|conn| transcript::read::entries_after(conn, key, after))
    }

    /// Returns the keys of the records that were imported into a session, sorted.
    pub(crate) fn imported_records(&self, id: &SessionId) -> Result<Vec<String>> {
        self.read(|conn| {
            let Some(session) = row::find(conn, id)? else { return Ok(Vec::new()) };
            let mut statement = conn.prepare_cached(IMPORTED)?;
            let records = statement.query_map([session.key], |row| row.get(0))?;
            Ok(records.collect::<rusqlite::Result<_>>()?)
        })
    }
}

/// Returns the session key and the owner in the rows of context blocks.
fn key_of<'a>(conn: &Connection, of: TextsOf<'a>) -> BackendResult<Option<(i64, &'a str)>> {
    match of {
        // Blocks without an owner are shared by all.
        TextsOf::Owner(owner) => Ok((!owner.is_empty()).then_some((0, owner))),
        TextsOf::Session(id) => Ok(row::find(conn, id)?.map(|session| (session.key, ""))),
    }
}

macro_rules! ledger {
    ($condition:literal) => {
        concat!(
            "SELECT session.id, message.id, usage.model, usage.source, input, output, cache_read,
        cache_write, reasoning, cost, currency, answer, used_at, number
   FROM usage
   LEFT JOIN session ON session.key = usage.session
   LEFT JOIN message ON message.address = usage.address
  WHERE ",
            $condition,
            "
    AND (used_at, number) > (?2, ?3)
  ORDER BY used_at, number
  LIMIT ?4"
        )
    };
}

pub(super) const LEDGER: &str = ledger!("usage.owner = ?1");
pub(super) const LEDGER_OF_AUTHOR: &str = ledger!("usage.author = ?1");

fn ledger_row(row: &Row<'_>) -> BackendResult<LedgerRow> {
    let tokens = |at: usize| -> BackendResult<u64> {
        Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or_default())
    };
    let (used_at, number): (i64, i64) = (row.get(12)?, row.get(13)?);
    let read = || {
        Ok(LedgerRow {
            session: Read::read(row, 0)?,
            message: Read::read(row, 1)?,
            model: row.get(2)?,
            source: row.get(3)?,
            input: tokens(4)?,
            output: tokens(5)?,
            cache_read: tokens(6)?,
            cache_write: tokens(7)?,
            reasoning: tokens(8)?,
            cost: row.get(9)?,
            currency: row.get(10)?,
            answer: row.get(11)?,
            used_at: time(used_at)?,
            place: (used_at, number),
        })
    };
    read().map_err(damaged(usage::named(number)))
}

pub(super) const ITEM: &str =
    "SELECT number, name, inbox_item.id, inbox_item.key, owner, body, note, received_at
   FROM inbox_item
   JOIN inbox_source ON inbox_source.key = inbox_item.source
  WHERE owner = ?1
    AND number > ?2
  ORDER BY number
  LIMIT 1";

const IMPORTED: &str = "SELECT record FROM imported WHERE session = ?1 ORDER BY record";
