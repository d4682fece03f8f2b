//! Reads the data of a person or a session besides its records: texts, usage, pending items, transcripts, imported records.
//!
//! Each piece is a JSON object. Pieces are read in batches, between which the caller gets them.

use chrono::DateTime;
use serde::Serialize;
use serde_json::json;

use super::connection::Database;
use super::context::{self, entry};
use super::row::session as row;
use super::{transcript, usage};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::Json;
use crate::sql::{BackendResult, Read, Row, damaged};

/// How many rows of the ledger one read returns.
const BATCH: usize = 1_000;

/// Whose data is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PersonalData<'a> {
    Owner(&'a str),
    /// The usage of the answers to a person.
    Author(&'a str),
    Session(&'a SessionId),
}

type With<'w> = &'w mut dyn FnMut(&'static str, Json) -> Result<()>;

impl Database {
    /// Calls `with` for each piece of data, with its kind.
    pub(crate) fn personal_data(&self, of: PersonalData<'_>, with: With<'_>) -> Result<()> {
        match of {
            PersonalData::Author(author) => self.ledger(LEDGER_OF_AUTHOR, author, with),
            PersonalData::Session(id) => self.data_of_session(id, with),
            PersonalData::Owner(owner) => {
                self.texts(0, owner, None, with)?;
                self.ledger(LEDGER, owner, with)?;
                let mut after = 0;
                let next =
                    |after: i64| self.read(|conn| conn.first_with(ITEM, (owner, after), read_item));
                while let Some((number, item)) = next(after)? {
                    after = number;
                    with("item", item)?;
                }
                self.transcripts(owner, with)
            }
        }
    }

    fn data_of_session(&self, id: &SessionId, with: With<'_>) -> Result<()> {
        let Some(session) = self.read(|conn| row::find(conn, id))? else { return Ok(()) };
        self.texts(session.key, "", Some(id), with)?;
        if let Some(sections) = self.read(|conn| context::frozen(conn, session.key))? {
            with("prompt", json!({ "session": id, "sections": sections }).into())?;
        }
        let names: Vec<String> = self.read(|conn| conn.rows(IMPORTED, session.key))?;
        let mut names = names.into_iter();
        names.try_for_each(|name| with("imported", json!({"session": id, "record": name}).into()))
    }

    /// Reads the versions of all texts of an owner or a session, removed ones included.
    fn texts(
        &self,
        session: i64,
        owner: &str,
        of: Option<&SessionId>,
        with: With<'_>,
    ) -> Result<()> {
        for (label, key) in self.read(|conn| entry::names(conn, session, owner))? {
            for version in
                self.read(|conn| context::versions(conn, session, owner, &label, &key))?
            {
                let mut text = json!(version);
                text["label"] = label.as_str().into();
                if let Some(id) = of {
                    text["session"] = id.as_str().into();
                }
                with("text", text.into())?;
            }
        }
        Ok(())
    }

    /// Reads rows of the ledger, oldest first.
    fn ledger(&self, sql: &'static str, name: &str, with: With<'_>) -> Result<()> {
        let mut after = (i64::MIN, i64::MIN);
        loop {
            let found = self.read(|conn| conn.rows_with(sql, (name, after, BATCH), read_usage))?;
            let Some((place, _)) = found.last() else { return Ok(()) };
            after = *place;
            found.into_iter().try_for_each(|(_, usage)| with("usage", usage))?;
        }
    }

    /// Reads the transcripts of an owner, and the others of a session whose main one is the owner's, oldest first.
    fn transcripts(&self, owner: &str, with: With<'_>) -> Result<()> {
        for key in self.read(|conn| transcript::of_owner(conn, owner))? {
            let Some(found) = self.read(|conn| transcript::stored_in(conn, key))? else {
                continue;
            };
            let mut about = json!(found.key);
            about["owner"] = found.owner.into();
            about["entries"] = found.entries.into();
            about["written_at"] = json!(chrono::DateTime::from_timestamp_millis(found.mtime));
            if let Some(session) = found.session {
                about["shown_by"] = json!(session);
            }
            with("transcript", about.into())?;
            let mut after = 0;
            loop {
                let entries =
                    self.read(|conn| transcript::entries_after(conn, key, after, 1 << 20))?;
                if entries.is_empty() {
                    break;
                }
                after += entries.len() as u64;
                for entry in entries {
                    with("entry", Json::parse(&format!("{{\"entry\":{}}}", entry.as_str()))?)?;
                }
            }
        }
        Ok(())
    }
}

/// A row of the ledger, as it is written.
#[derive(Serialize)]
struct UsageRow {
    session: Option<String>,
    message: Option<String>,
    model: Option<String>,
    source: Option<String>,
    input: i64,
    output: i64,
    cache_read: i64,
    cache_write: i64,
    reasoning: i64,
    cost: Option<i64>,
    currency: Option<String>,
    answer: Option<String>,
    used_at: Option<String>,
}

/// Reads the time and the number of a row of the ledger, and the row.
fn read_usage(row: &Row<'_>) -> BackendResult<((i64, i64), Json)> {
    let number = i64::read(row, 0)?;
    let read = || {
        let used_at = i64::read(row, 1)?;
        let (session, message, model, source) = Read::read(row, 2)?;
        let (input, output, cache_read, cache_write, reasoning) = Read::read(row, 6)?;
        let (cost, currency, answer) = Read::read(row, 11)?;
        let usage = UsageRow {
            session,
            message,
            model,
            source,
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
            cost,
            currency,
            answer,
            used_at: text_of(used_at),
        };
        Ok(((used_at, number), object(&usage)?))
    };
    read().map_err(damaged(usage::named(number)))
}

/// A pending item, as it is written.
#[derive(Serialize)]
struct Item {
    inbox: String,
    id: String,
    key: String,
    owner: Option<String>,
    body: Option<String>,
    note: Option<String>,
    received_at: Option<String>,
}

/// Reads the number of an item, and the item.
fn read_item(row: &Row<'_>) -> BackendResult<(i64, Json)> {
    let (number, inbox, id, key) = Read::read(row, 0)?;
    let (owner, body, note, received_at) = Read::read(row, 4)?;
    let received_at = text_of(received_at);
    let item = Item { inbox, id, key, owner, body, note, received_at };
    Ok((number, object(&item)?))
}

fn object(row: &impl Serialize) -> BackendResult<Json> {
    let text = serde_json::to_string(row);
    let text = text.map_err(|source| Error::Json { what: "a row", source })?;
    Ok(Json::parse(&text)?)
}

/// Returns a time in microseconds as text; `None` if it is none.
fn text_of(micros: i64) -> Option<String> {
    let time = DateTime::from_timestamp_micros(micros)?;
    Some(time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

macro_rules! ledger {
    ($person:literal) => {
        concat!(
            "SELECT number, used_at, session.id, message.id, usage.model, usage.source, input, output, cache_read,
        cache_write, reasoning, cost, currency, answer
   FROM usage
   LEFT JOIN session ON session.key = usage.session
   LEFT JOIN message ON message.address = usage.address
  WHERE ",
            $person,
            " = ?1
    AND (used_at, number) > (?2, ?3)
  ORDER BY used_at, number
  LIMIT ?4"
        )
    };
}

pub(super) const LEDGER: &str = ledger!("usage.owner");
pub(super) const LEDGER_OF_AUTHOR: &str = ledger!("usage.author");

pub(super) const ITEM: &str =
    "SELECT number, name, inbox_item.id, inbox_item.key, owner, body, note, received_at
   FROM inbox_source
  CROSS JOIN inbox_item
  WHERE inbox_item.source = inbox_source.key
    AND inbox_item.key IS NOT NULL
    AND owner = ?1
    AND +number > ?2
  ORDER BY number
  LIMIT 1";

const IMPORTED: &str = "SELECT record FROM imported WHERE session = ?1 ORDER BY record";
