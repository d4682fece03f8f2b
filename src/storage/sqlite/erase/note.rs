//! The notes of erasures that are not complete: settings of the store. And the sessions that must not be imported again: keyed
//! hashes of their ids.
//!
//! While rows are left to delete, the note lists them. They are listed by numbers that are never reused, so whoever finishes
//! the erasure deletes nothing that was stored since. When all of them are deleted, the note is replaced by one without
//! names, before the bytes are overwritten.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::connection::Database;
use super::super::error::{BackendError, BackendResult};
use crate::erasure::Erasure;
use crate::error::{Error, Result};
use crate::id::SessionId;

/// How the name of a note begins.
const PREFIX: &str = "erasure:";
/// How the value of a note begins when all rows are deleted.
const DELETED: &str = "deleted ";

/// What an erasure deletes, and with which options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ToDelete {
    /// The keys of sessions.
    pub(super) sessions: Vec<i64>,
    /// Ranges of addresses, of messages in sessions that stay, in the order in which they are deleted.
    pub(super) messages: Vec<Vec<[i64; 2]>>,
    /// The keys of transcripts.
    pub(super) transcripts: Vec<i64>,
    /// The keys of context blocks of owners.
    pub(super) blocks: Vec<i64>,
    /// The address of the last text of each block: later ones stay. Notes of former versions have none.
    #[serde(default)]
    pub(super) last_texts: Vec<i64>,
    /// The keys of compactions, in sessions that stay.
    #[serde(default)]
    pub(super) compactions: Vec<i64>,
    pub(super) owners: Vec<String>,
    #[serde(default)]
    pub(super) authors: Vec<String>,
    pub(super) keys: Vec<String>,
    /// The newest row of usage, and the newest binding: later ones stay.
    pub(super) newest_usage: i64,
    pub(super) newest_binding: i64,
    /// The keys whose pending items are deleted, and the newest item; so are those of the owners.
    #[serde(default)]
    pub(super) item_keys: Vec<String>,
    #[serde(default)]
    pub(super) newest_item: i64,
    options: [bool; 4],
}

impl ToDelete {
    /// Returns the options of an erasure, and no rows.
    pub(super) fn with_options_of(erasure: &Erasure) -> Self {
        let options =
            [erasure.forks, erasure.summaries, erasure.keep_totals, erasure.forbid_import];
        Self { options, ..Self::default() }
    }

    /// Returns an erasure with these options that names nothing.
    pub(super) fn options(&self) -> Erasure {
        let [forks, summaries, keep_totals, forbid_import] = self.options;
        Erasure { forks, summaries, keep_totals, forbid_import, ..Erasure::default() }
    }
}

/// An erasure that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) name: String,
    value: String,
    is_stored: bool,
    /// Whether others finished the erasure, or began to.
    pub(super) is_taken: bool,
}

impl Note {
    /// Returns the note of a new erasure.
    pub(super) fn new(to_delete: &ToDelete) -> Self {
        let value = serde_json::to_string(to_delete).unwrap_or_default();
        Self { name: name(), value, is_stored: false, is_taken: false }
    }

    /// Returns this note with other rows.
    pub(super) fn with(&self, to_delete: &ToDelete) -> Self {
        Self { name: self.name.clone(), ..Self::new(to_delete) }
    }

    /// Returns what is left to delete; `None` if all is deleted. Nothing can be deleted by a damaged note.
    pub(super) fn to_delete(&self) -> Option<ToDelete> {
        serde_json::from_str(&self.value).ok()
    }

    /// Stores the note unless it is stored. Whoever finished the erasure meanwhile may have taken it.
    ///
    /// A note of many sessions is long, and every transaction of an erasure calls this: one of the same length is not read.
    /// Nobody but this erasure writes another one that lists rows.
    pub(super) fn keep(&mut self, conn: &Connection) -> BackendResult<()> {
        let bytes: Option<usize> = conn
            .prepare_cached("SELECT octet_length(value) FROM setting WHERE name = ?1")?
            .query_row([&self.name], |row| row.get(0))
            .optional()?;
        if bytes == Some(self.value.len()) {
            return Ok(());
        }
        self.is_taken |= self.is_stored;
        self.store(conn)
    }

    /// Stores the note.
    pub(super) fn store(&mut self, conn: &Connection) -> BackendResult<()> {
        conn.prepare_cached(STORE)?.execute(params![self.name, self.value])?;
        self.is_stored = true;
        Ok(())
    }

    /// Replaces the note by one of another name: so whoever stored it sees that others delete its rows.
    pub(super) fn take(&self, conn: &Connection) -> BackendResult<Self> {
        conn.prepare_cached("DELETE FROM setting WHERE name = ?1")?.execute([&self.name])?;
        let mut taken = Self { name: name(), ..self.clone() };
        taken.store(conn)?;
        Ok(taken)
    }

    /// Replaces the note by one that says that all is deleted.
    pub(super) fn store_deleted(&self, conn: &Connection) -> BackendResult<()> {
        // Another value each time: one that was read before must not match it.
        let value = format!("{DELETED}{:x}", random());
        conn.prepare_cached(STORE)?.execute(params![self.name, value])?;
        Ok(())
    }

    /// Removes the note if its value is still the same.
    pub(super) fn remove(&self, conn: &Connection) -> BackendResult<()> {
        conn.prepare_cached("DELETE FROM setting WHERE name = ?1 AND value = ?2")?
            .execute(params![self.name, self.value])?;
        Ok(())
    }
}

/// Returns the notes of all erasures that are not complete.
pub(super) fn all(conn: &Connection) -> BackendResult<Vec<Note>> {
    let mut statement = conn.prepare_cached(ALL)?;
    let notes = statement
        .query_map([], |row| {
            let (name, value) = (row.get(0)?, row.get(1)?);
            Ok(Note { name, value, is_stored: true, is_taken: false })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(notes)
}

/// Returns whether an erasure that is not complete deletes a session.
pub(in super::super) fn has_session(conn: &Connection, key: i64) -> BackendResult<bool> {
    let notes = all(conn)?;
    let mut listed = notes.iter().filter_map(Note::to_delete);
    Ok(listed.any(|to_delete| to_delete.sessions.contains(&key)))
}

/// The random half: an id that is made in the same millisecond begins with the other one.
fn name() -> String {
    format!("{PREFIX}{:x}", random())
}

fn random() -> u64 {
    crate::clock::uuid().as_u128() as u64
}

/// `;` is the character after `:`.
const ALL: &str = "SELECT name, value FROM setting WHERE name >= 'erasure:' AND name < 'erasure;'";
const STORE: &str = "INSERT INTO setting (name, value) VALUES (?1, ?2)
 ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value";

/// The setting with the key of the hashes: the hashes of two stores tell nothing of each other.
const KEY: &str = "SELECT value FROM setting WHERE name = 'erasure_key'";

/// Forbids imports of a session.
pub(super) fn add(conn: &Connection, id: &SessionId) -> BackendResult<()> {
    let key = match key(conn)? {
        Some(key) => key,
        None => {
            let key = crate::clock::uuid();
            conn.prepare_cached("INSERT INTO setting (name, value) VALUES ('erasure_key', ?1)")?
                .execute([key.to_string()])?;
            key
        }
    };
    conn.prepare_cached("INSERT OR IGNORE INTO erased_session (hash) VALUES (?1)")?
        .execute([hash(&key, id)])?;
    Ok(())
}

/// Returns an error if imports of a session are forbidden.
pub(in super::super) fn check(conn: &Connection, id: &SessionId) -> BackendResult<()> {
    match is_erased(conn, id)? {
        true => Err(BackendError::Own(Error::SessionErased { id: id.clone() })),
        false => Ok(()),
    }
}

fn is_erased(conn: &Connection, id: &SessionId) -> BackendResult<bool> {
    // Few stores have a key.
    let Some(key) = key(conn)? else { return Ok(false) };
    let found = conn
        .prepare_cached("SELECT 1 FROM erased_session WHERE hash = ?1")?
        .exists([hash(&key, id)])?;
    Ok(found)
}

fn key(conn: &Connection) -> BackendResult<Option<Uuid>> {
    let key: Option<String> =
        conn.prepare_cached(KEY)?.query_row([], |row| row.get(0)).optional()?;
    // With a damaged key no hash is found.
    Ok(key.map(|key| Uuid::try_parse(&key).unwrap_or_default()))
}

fn hash(key: &Uuid, id: &SessionId) -> String {
    Uuid::new_v5(key, id.as_str().as_bytes()).to_string()
}

impl Database {
    /// Returns whether a session was erased and must not be imported again.
    pub(crate) fn is_import_forbidden(&self, id: &SessionId) -> Result<bool> {
        self.read(|conn| is_erased(conn, id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::connection::{Config, Database};
    use super::*;
    use crate::error::Result;

    #[test]
    fn a_note_is_removed_only_with_the_value_that_was_read() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        let to_delete = ToDelete { owners: vec!["ann".to_owned()], ..ToDelete::default() };
        let mut note = Note::new(&to_delete);
        let mut other = Note::new(&ToDelete::default());
        database.write(|conn| {
            note.store(conn)?;
            other.store(conn)?;
            assert_eq!(all(conn)?.len(), 2);
            note.store_deleted(conn)?;
            let read = all(conn)?.into_iter().find(|read| read.name == note.name).unwrap();
            assert_eq!((read.to_delete(), note.to_delete()), (None, Some(to_delete.clone())));
            note.store_deleted(conn)?;
            read.remove(conn)?;
            assert_eq!(all(conn)?.len(), 2);
            for note in all(conn)? {
                note.remove(conn)?;
            }
            assert_eq!(all(conn)?, []);
            Ok(())
        })
    }
}
