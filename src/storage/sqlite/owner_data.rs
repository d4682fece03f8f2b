//! Reads the data of a person or a session besides its records: texts, usage, pending items, transcripts, imported records.
//!
//! SQLite writes each piece as a JSON object. Pieces are read in batches, between which the caller gets them.

use rusqlite::{Connection, Params, Row};
use serde_json::json;

use super::connection::Database;
use super::context::{self, entry};
use super::error::{BackendResult, damaged};
use super::row::session as row;
use super::{transcript, usage};
use crate::error::Result;
use crate::id::SessionId;
use crate::message::Json;

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
                    |after: i64| self.read(|conn| rows(conn, ITEM, (owner, after), read_row));
                while let Some((number, item)) = next(after)?.pop() {
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
        let read_name = |row: &Row<'_>| Ok(row.get::<_, String>(0)?);
        let names = self.read(|conn| rows(conn, IMPORTED, [session.key], read_name))?;
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
    fn ledger(&self, sql: &str, name: &str, with: With<'_>) -> Result<()> {
        let mut after = (i64::MIN, i64::MIN);
        loop {
            let read = |row: &Row<'_>| {
                let (used_at, number) = (row.get(2)?, row.get(0)?);
                let read = || Ok((used_at, read_row(row)?));
                read().map_err(damaged(usage::named(number)))
            };
            let place = (name, after.0, after.1, BATCH);
            let found = self.read(|conn| rows(conn, sql, place, read))?;
            let Some((used_at, (number, _))) = found.last() else { return Ok(()) };
            after = (*used_at, *number);
            found.into_iter().try_for_each(|(_, (_, usage))| with("usage", usage))?;
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
                let entries = self.read(|conn| transcript::entries_after(conn, key, after))?;
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

fn rows<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> BackendResult<T>,
) -> BackendResult<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Reads a number and an object.
fn read_row(row: &Row<'_>) -> BackendResult<(i64, Json)> {
    Ok((row.get(0)?, transcript::stored_json(row, 1)?))
}

/// A time as text, to the microsecond; the division of a negative number would round up.
macro_rules! time {
    ($column:literal) => {
        concat!(
            "strftime('%Y-%m-%dT%H:%M:%S', (",
            $column,
            " - (",
            $column,
            " % 1000000 + 1000000) % 1000000) / 1000000, 'unixepoch')
              || printf('.%06dZ', (",
            $column,
            " % 1000000 + 1000000) % 1000000)"
        )
    };
}

macro_rules! ledger {
    ($person:literal) => {
        concat!(
            "SELECT number,
        json_object('session', session.id, 'message', message.id, 'model', usage.model,
            'source', usage.source, 'input', input, 'output', output, 'cache_read', cache_read,
            'cache_write', cache_write, 'reasoning', reasoning, 'cost', cost,
            'currency', currency, 'answer', answer, 'used_at', ",
            time!("used_at"),
            "),
        used_at
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

pub(super) const ITEM: &str = concat!(
    "SELECT number,
        json_object('inbox', name, 'id', inbox_item.id, 'key', inbox_item.key, 'owner', owner,
            'body', body, 'note', note, 'received_at', ",
    time!("received_at"),
    ")
   FROM inbox_source
  CROSS JOIN inbox_item ON inbox_item.source = inbox_source.key
  WHERE inbox_item.key IS NOT NULL
    AND owner = ?1
    AND +number > ?2
  ORDER BY number
  LIMIT 1"
);

const IMPORTED: &str = "SELECT record FROM imported WHERE session = ?1 ORDER BY record";
