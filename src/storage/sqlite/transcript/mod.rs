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
pub(crate) mod delete;
pub(super) mod projection;
pub(crate) mod read;

use rusqlite::Row;

use super::error::{BackendResult, corrupt};
use crate::message::Json;

pub(crate) use append::Projects;

/// The maximum number of entries of a transcript: an address has 32 bits for it.
pub(super) const MAX_ENTRIES: i64 = u32::MAX as i64 - 1;
/// The maximum number of transcripts of a store: the upper half of an address holds no more.
pub(super) const MAX_TRANSCRIPTS: i64 = i32::MAX as i64;

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
    use crate::error::{Error, Result};
    use crate::storage::sqlite::connection::{Config, Database};
    use crate::transcript::TranscriptKey;

    fn append(database: &Database, key: &TranscriptKey, entry: &Json) -> Result<()> {
        database.append_entries(key, std::slice::from_ref(entry), None, Projects::No).map(drop)
    }

    #[test]
    fn a_full_transcript_is_an_error() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
        append(&database, &key, &entry)?;
        let set = |sql: &str, value: i64| {
            database.write(|conn| Ok(conn.execute(sql, [value]).map(drop)?))
        };
        set("UPDATE transcript SET next = ?1", MAX_ENTRIES)?;
        append(&database, &key, &entry)?;
        let full = append(&database, &key, &entry);
        assert!(matches!(full, Err(Error::TranscriptFull { what: "entries", .. })), "{full:?}");
        assert_eq!(
            database.read(|conn| read::load(conn, &key))?.map(|entries| entries.len()),
            Some(2)
        );

        set("UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'transcript'", MAX_TRANSCRIPTS - 1)?;
        append(&database, &TranscriptKey::new("p", "last"), &entry)?;
        let full = append(&database, &TranscriptKey::new("p", "too many"), &entry);
        assert!(matches!(full, Err(Error::TranscriptFull { what: "transcripts", .. })), "{full:?}");
        assert_eq!(database.read(|conn| read::sessions(conn, "p"))?.len(), 2);
        Ok(())
    }

    #[test]
    fn the_time_of_an_append_is_after_every_other_one_if_the_clock_is_set_back() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
        append(&database, &key, &entry)?;
        let future = 9_000_000_000_000_i64;
        database.write(|conn| {
            let sql = "UPDATE setting SET value = ?1 WHERE name = 'transcript_clock'";
            assert_eq!(conn.execute(sql, [future])?, 1);
            Ok(())
        })?;
        database.write_long(|conn| delete::delete(conn, &key))?;
        append(&database, &key, &entry)?;
        assert_eq!(database.read(|conn| read::sessions(conn, "p"))?[0].mtime, future + 1);
        Ok(())
    }
}
