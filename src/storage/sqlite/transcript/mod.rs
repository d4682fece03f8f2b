//! Transcripts: entries in order of append, each transcript one range of rowids.
//!
//! An entry's address is the key of its transcript and its number in it. So the entries of a transcript are adjacent, and
//! all of them are read with one scan. The row of a main transcript has the summary of its session, which each append
//! replaces in its own transaction.
//!
//! A transcript can be projected: then a session shows its entries as messages; see [`projection`].
//!
//! The time of the last append to any transcript is a setting, so that it is kept when transcripts are deleted.

pub(super) mod append;
pub(super) mod delete;
pub(super) mod projection;
pub(super) mod read;

use std::sync::Arc;

use rusqlite::Row;

use super::connection::Database;
use super::error::{BackendResult, corrupt};
use crate::error::Result;
use crate::message::Json;
use crate::storage::transcript::TranscriptStore;
use crate::transcript::{
    AppendedEntries, ListedTranscript, Projection, StoredTranscript, TranscriptFilter,
    TranscriptKey, TranscriptSummary,
};
use append::Projects;

/// The maximum number of entries of a transcript: an address has 32 bits for it.
pub(super) const MAX_ENTRIES: i64 = u32::MAX as i64 - 1;
/// The maximum number of transcripts of a store: the upper half of an address holds no more.
pub(super) const MAX_TRANSCRIPTS: i64 = i32::MAX as i64;

/// The transcripts of a database.
pub(crate) struct SqliteTranscripts {
    database: Arc<Database>,
}

impl SqliteTranscripts {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }
}

impl TranscriptStore for SqliteTranscripts {
    fn append(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        owner: Option<&str>,
    ) -> Result<AppendedEntries> {
        self.database.append_entries(key, entries, owner, Projects::No)
    }

    fn append_projected(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        owner: Option<&str>,
    ) -> Result<AppendedEntries> {
        self.database.append_entries(key, entries, owner, Projects::Yes)
    }

    fn project(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        self.database.project(key)
    }

    fn projection(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        self.database.projection(key)
    }

    fn load(&self, key: &TranscriptKey) -> Result<Option<Vec<Json>>> {
        self.database.read(|conn| read::load(conn, key))
    }

    fn list_sessions(&self, project: &str) -> Result<Vec<ListedTranscript>> {
        self.database.read(|conn| read::sessions(conn, project))
    }

    fn list_session_summaries(&self, project: &str) -> Result<Vec<TranscriptSummary>> {
        self.database.read(|conn| read::summaries(conn, project))
    }

    fn session_summary(&self, project: &str, session: &str) -> Result<Option<TranscriptSummary>> {
        self.database.read(|conn| read::summary(conn, project, session))
    }

    fn delete(&self, key: &TranscriptKey) -> Result<u64> {
        self.database.write_long(|conn| delete::delete(conn, key))
    }

    fn list_subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        self.database.read(|conn| read::subpaths(conn, project, session))
    }

    fn list(
        &self,
        filter: &TranscriptFilter,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredTranscript>> {
        self.database.read(|conn| read::list(conn, filter, after, limit))
    }

    fn stored(&self, key: &TranscriptKey) -> Result<Option<StoredTranscript>> {
        self.database.read(|conn| read::stored(conn, key))
    }

    fn delete_of_owner(&self, owner: &str) -> Result<u64> {
        self.database.write_long(|conn| delete::delete_of_owner(conn, owner))
    }
}

/// Returns the JSON in a column.
pub(super) fn stored_json(row: &Row<'_>, column: usize) -> BackendResult<Json> {
    Json::parse(row.get_ref(column)?.as_str()?).map_err(|error| corrupt(error.to_string()))
}

/// Returns the first and last address of a transcript.
pub(super) fn range(key: i64) -> [i64; 2] {
    [key << 32 | 1, key << 32 | i64::from(u32::MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::storage::sqlite::connection::Config;

    #[test]
    fn a_full_transcript_is_an_error() -> Result<()> {
        let database = Arc::new(Database::open_in_memory(Config::default())?);
        let transcripts = SqliteTranscripts::new(Arc::clone(&database));
        let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
        let one = std::slice::from_ref(&entry);
        transcripts.append(&key, one, None)?;
        let set = |sql: &str, value: i64| {
            database.write(|conn| Ok(conn.execute(sql, [value]).map(drop)?))
        };
        set("UPDATE transcript SET next = ?1", MAX_ENTRIES)?;
        transcripts.append(&key, one, None)?;
        let full = transcripts.append(&key, one, None);
        assert!(matches!(full, Err(Error::TranscriptFull { what: "entries", .. })), "{full:?}");
        assert_eq!(transcripts.load(&key)?.map(|entries| entries.len()), Some(2));

        set("UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'transcript'", MAX_TRANSCRIPTS - 1)?;
        transcripts.append(&TranscriptKey::new("p", "last"), one, None)?;
        let full = transcripts.append(&TranscriptKey::new("p", "too many"), one, None);
        assert!(matches!(full, Err(Error::TranscriptFull { what: "transcripts", .. })), "{full:?}");
        assert_eq!(transcripts.list_sessions("p")?.len(), 2);
        Ok(())
    }

    #[test]
    fn the_time_of_an_append_is_after_every_other_one_if_the_clock_is_set_back() -> Result<()> {
        let database = Arc::new(Database::open_in_memory(Config::default())?);
        let transcripts = SqliteTranscripts::new(Arc::clone(&database));
        let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
        transcripts.append(&key, std::slice::from_ref(&entry), None)?;
        let future = 9_000_000_000_000_i64;
        database.write(|conn| {
            let sql = "UPDATE setting SET value = ?1 WHERE name = 'transcript_clock'";
            assert_eq!(conn.execute(sql, [future])?, 1);
            Ok(())
        })?;
        transcripts.delete(&key)?;
        transcripts.append(&key, &[entry], None)?;
        assert_eq!(transcripts.list_sessions("p")?[0].mtime, future + 1);
        Ok(())
    }
}
