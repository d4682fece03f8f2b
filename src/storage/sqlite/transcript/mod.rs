//! Transcripts: entries in order of append, each transcript one range of rowids.
//!
//! An entry's address is the key of its transcript and its number in it. So the entries of a transcript are adjacent, and
//! all of them are read with one scan. The row of a transcript has the summary that its last append has derived, and says
//! which session shows it; [`session`] writes that. The entries are the authority: nothing that happens to the session
//! changes them.
//!
//! The time of an append is after that of every one before. The last time is a setting, so that it is kept when transcripts are
//! deleted. On a server hosts would wait for each other at that row, so there only deletions write it: a time is after those of the handle, of the transcript,
//! and of all that were there when the handle appended first.

mod session;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use super::catalog::removal;
use super::commit_group::millis_since;
use super::connection::{Database, lock};
use crate::clock;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::Json;
use crate::outcome::Record;
use crate::sql::{BackendError, BackendResult, Connection, Read, Row, corrupt};
use crate::transcript::{
    AppendedEntries, Derived, StoredTranscript, TranscriptFilter, TranscriptKey, check_owner,
    check_sizes, uuid_of,
};

/// The maximum number of entries of a transcript: an address has 32 bits for it.
const MAX_ENTRIES: u64 = u32::MAX as u64 - 1;
/// The maximum number of transcripts of a store: the upper half of an address holds no more.
const MAX_TRANSCRIPTS: u64 = i32::MAX as u64;
/// The most entries of a short write. A message takes as long as three entries.
const MAX_FEW: usize = 64;
/// The most bytes of a short write.
const MAX_SHORT: usize = 64 << 10;

impl Database {
    pub(crate) fn append_entries(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        owner: Option<&str>,
        mut derive: impl FnMut(&StoredTranscript, &[&Json]) -> Result<Derived>,
    ) -> Result<AppendedEntries> {
        key.check()?;
        check_owner(owner, None)?;
        let sizes = || entries.iter().map(|entry| entry.as_str().len());
        check_sizes(sizes(), self.config.max_message_bytes)?;
        // Outside the transaction, because entries may be large.
        let uuids: Vec<Option<String>> = entries.iter().map(uuid_of).collect::<Result<_>>()?;
        let batch = Batch { key, entries, uuids, owner: owner.filter(|_| !entries.is_empty()) };
        // Usually it is as the last append has left it, and all entries are new: then nothing is read.
        let last = lock(&self.last_transcript).take();
        let is_it = |last: &StoredTranscript| {
            last.key == *key && check_owner(batch.owner, last.owner.as_deref()).is_ok()
        };
        if let Some(before) = last.filter(|last| is_it(last) && !entries.is_empty()) {
            let all: Vec<usize> = (0..entries.len()).collect();
            if self.write_entries(&batch, &before, &all, &mut derive)? {
                let added = all.len() as u64;
                return Ok(AppendedEntries { added, ..AppendedEntries::default() });
            }
            // Another append came first, or an entry is known.
        }
        let began = Instant::now();
        loop {
            let (before, appended, new) = self.read(|conn| {
                let unknown =
                    || StoredTranscript { key: key.clone(), ..StoredTranscript::default() };
                let before = find(conn, key)?.unwrap_or_else(unknown);
                let (appended, new) = compare(conn, &before, &batch)?;
                Ok((before, appended, new))
            })?;
            check_owner(batch.owner, before.owner.as_deref())?;
            if before.number == 0 && entries.is_empty()
                || self.write_entries(&batch, &before, &new, &mut derive)?
            {
                return Ok(appended);
            }
            if began.elapsed() >= self.config.busy_timeout {
                return Err(Error::Busy { waited_ms: millis_since(began) });
            }
        }
    }

    /// Writes the new ones of a batch and what is derived of them; `false` if the transcript is not as it was before, or has one of
    /// them.
    fn write_entries(
        &self,
        batch: &Batch<'_>,
        before: &StoredTranscript,
        new: &[usize],
        mut derive: impl FnMut(&StoredTranscript, &[&Json]) -> Result<Derived>,
    ) -> Result<bool> {
        let added: Vec<&Json> = new.iter().map(|at| &batch.entries[*at]).collect();
        let bytes: usize = added.iter().map(|entry| entry.as_str().len()).sum();
        let Derived { summary, session, replaces } = derive(before, &added)?;
        if new.is_empty() && session.is_none() {
            return Ok(true);
        }
        let is_message = |record: &&Record| matches!(record, Record::Message { .. });
        let few = new.len() + 3 * session.iter().flatten().filter(is_message).count();
        let (derived, is_known) = (Cell::new(Some((summary, session))), Cell::new(false));
        let work = |conn: &Connection| {
            // Otherwise another append came first, or the session was written to, or the write runs again.
            let is_same = |stored: &StoredTranscript| stored == before;
            let is_same = find(conn, batch.key)?.as_ref().map_or(before.number == 0, is_same);
            let Some((summary, session)) = derived.take().filter(|_| is_same) else {
                return Ok(None);
            };
            let mut after = before.clone();
            if !new.is_empty() {
                let appended = append(conn, &mut after, batch, new, summary, &self.last_entry_at);
                appended.inspect_err(|error| is_known.set(error.is_of_unique()))?;
            }
            let Some(records) = session else { return Ok(Some((Some(after), 0))) };
            let written = (records, replaces);
            let messages = session::write(conn, &self.config, before, &after, written)?;
            Ok(Some((find(conn, batch.key)?, messages)))
        };
        let written = match few <= MAX_FEW && bytes <= MAX_SHORT {
            true => self.write_short(work),
            false => self.write(work),
        };
        let written = if is_known.get() { None } else { written? };
        let Some((after, messages)) = written else { return Ok(false) };
        *lock(&self.last_transcript) = after;
        if messages > 0 {
            self.appended(messages);
        }
        Ok(true)
    }
}

/// Entries that are appended together.
struct Batch<'a> {
    key: &'a TranscriptKey,
    entries: &'a [Json],
    uuids: Vec<Option<String>>,
    owner: Option<&'a str>,
}

/// Returns how many of the entries a transcript has, and the places of the others.
fn compare(
    conn: &Connection,
    before: &StoredTranscript,
    batch: &Batch<'_>,
) -> BackendResult<(AppendedEntries, Vec<usize>)> {
    let (mut appended, mut new) = (AppendedEntries::default(), Vec::new());
    let mut of_batch: HashMap<&str, &Json> = HashMap::new();
    for (at, (entry, uuid)) in batch.entries.iter().zip(&batch.uuids).enumerate() {
        if let Some(uuid) = uuid.as_deref() {
            let stored: Option<String> = conn.first(BY_UUID, (before.number, uuid))?;
            let is_same = match (&stored, of_batch.get(uuid)) {
                (Some(text), _) => {
                    Some(text == entry.as_str() || Json::parse(text).is_ok_and(|it| it == *entry))
                }
                (None, Some(first)) => Some(*first == entry),
                (None, None) => None,
            };
            if let Some(is_same) = is_same {
                appended.known += 1;
                appended.differing += u64::from(!is_same);
                continue;
            }
            of_batch.insert(uuid, entry);
        }
        appended.added += 1;
        new.push(at);
    }
    Ok((appended, new))
}

/// Adds entries of a batch to a transcript, which is created for its first ones.
fn append(
    conn: &Connection,
    to: &mut StoredTranscript,
    batch: &Batch<'_>,
    new: &[usize],
    summary: Option<Json>,
    last: &AtomicI64,
) -> BackendResult<()> {
    let full = |what, max| BackendError::Own(Error::TranscriptFull { what, max });
    if to.number == 0 {
        let TranscriptKey { project, session, subpath } = &to.key;
        to.number = conn.one(CREATE, (project, session, subpath))?;
        if to.number > MAX_TRANSCRIPTS {
            return Err(full("transcripts", MAX_TRANSCRIPTS));
        }
    }
    let key = to.number as i64;
    for at in new {
        to.entries += 1;
        if to.entries > MAX_ENTRIES {
            return Err(full("entries", MAX_ENTRIES));
        }
        let (uuid, entry) = (&batch.uuids[*at], batch.entries[*at].as_str());
        conn.send(ADD, (address(key, to.entries), uuid, entry))?;
    }
    to.mtime = time_after(conn, to.mtime, last)?;
    to.summary = summary.or(to.summary.take());
    to.owner = to.owner.take().or(batch.owner.map(str::to_owned));
    conn.run(APPENDED, (key, to.entries + 1, to.mtime, &to.summary, &to.owner))?;
    Ok(())
}

/// Returns the time of an append: now, or just after the last one.
fn time_after(conn: &Connection, before: i64, last: &AtomicI64) -> BackendResult<i64> {
    let now = clock::now().timestamp_millis();
    if !conn.is_far() {
        let time: String = conn.one(TICK, now)?;
        let what = || corrupt(format!("the time of the last transcript is {time:?}"));
        return time.parse().map_err(|_| what());
    }
    let of_handle = last.load(Ordering::Relaxed);
    let stored: Option<i64> = conn.one(if of_handle == 0 { LAST } else { LAST_DELETED }, ())?;
    let before = before.max(of_handle).max(stored.unwrap_or_default());
    let time = now.max(before.saturating_add(1));
    last.fetch_max(time, Ordering::Relaxed);
    Ok(time)
}

fn address(key: i64, number: u64) -> i64 {
    key << 32 | i64::try_from(number).unwrap_or_default()
}

/// Returns the first and last address of a transcript.
pub(super) fn range(key: i64) -> [i64; 2] {
    [address(key, 1), address(key, u64::from(u32::MAX))]
}

// Its first entries are added in the same transaction; then its time is known.
const CREATE: &str = "INSERT INTO transcript (project, session, subpath, written_at)
 VALUES (?1, ?2, ?3, 0)
 RETURNING key";

pub(super) const ADD: &str =
    "INSERT INTO transcript_entry (address, uuid, entry) VALUES (?1, ?2, ?3)";

const APPENDED: &str = "UPDATE transcript
    SET next = ?2, written_at = ?3, summary = ?4, owner = ?5
  WHERE key = ?1";

pub(super) const BY_UUID: &str = "SELECT entry
   FROM transcript_entry
  WHERE transcript = ?1 AND uuid = ?2 /*HASH*/";

/// The time of an append: now, or just after the last one.
const TICK: &str = "INSERT INTO setting (name, value)
 VALUES ('transcript_clock', CAST(CAST(?1 AS BIGINT) AS TEXT))
     ON CONFLICT (name)
     DO UPDATE SET value = CASE
        WHEN CAST(setting.value AS BIGINT) < ?1 THEN excluded.value
        ELSE CAST(CAST(setting.value AS BIGINT) + 1 AS TEXT)
        END
 RETURNING value";

/// The greatest time of a transcript that was deleted.
const LAST_DELETED: &str =
    "SELECT max(CAST(value AS BIGINT)) FROM setting WHERE name = 'transcript_clock'";

/// The greatest time of any, by a scan.
const LAST: &str = "SELECT max(time)
   FROM (SELECT written_at AS time
           FROM transcript
          UNION ALL
         SELECT CAST(value AS BIGINT) FROM setting WHERE name = 'transcript_clock') AS times";

/// Keeps the time of a transcript that is deleted.
pub(super) const KEEP_TIME: &str = "INSERT INTO setting (name, value)
 SELECT 'transcript_clock', CAST(written_at AS TEXT)
   FROM transcript
  WHERE key = ?1
     ON CONFLICT (name)
     DO UPDATE SET value = excluded.value
  WHERE CAST(setting.value AS BIGINT) < CAST(excluded.value AS BIGINT)";

/// Returns the entries after so many.
pub(crate) fn load_after(
    conn: &Connection,
    key: &TranscriptKey,
    entries: u64,
) -> BackendResult<Vec<Json>> {
    match row_of(conn, key)? {
        Some(key) => entries_after(conn, key, entries, usize::MAX),
        None => Ok(Vec::new()),
    }
}

/// Returns the entries after so many, of about so many bytes; none at the end.
pub(super) fn entries_after(
    conn: &Connection,
    key: i64,
    after: u64,
    max_bytes: usize,
) -> BackendResult<Vec<Json>> {
    let first = address(key, after.min(u64::from(u32::MAX)));
    let (mut entries, mut bytes) = (Vec::new(), 0);
    conn.each(ENTRIES, (first, range(key)[1]), |row| {
        let entry = stored_json(row, 0)?;
        bytes += entry.as_str().len();
        entries.push(entry);
        Ok(bytes < max_bytes)
    })?;
    Ok(entries)
}

pub(super) const ENTRIES: &str = "SELECT entry
   FROM transcript_entry
  WHERE address > ?1 AND address <= ?2
  ORDER BY address";

/// Returns the JSON in a column.
pub(super) fn stored_json(row: &Row<'_>, column: usize) -> BackendResult<Json> {
    Json::parse(&Cow::<'_, str>::read(row, column)?).map_err(|error| corrupt(error.to_string()))
}

/// The rows of transcripts, with the sessions that show them.
macro_rules! stored {
    ($where:literal) => {
        concat!(
            "SELECT transcript.key, project, transcript.session, subpath, transcript.owner, transcript.next, written_at, summary,
        shown.id, coalesce(transcript.shown, 0), shown.next + shown.changes IS DISTINCT FROM version
   FROM transcript
   LEFT JOIN session AS shown ON shown.key = transcript.shown_by
  WHERE ",
            $where
        )
    };
}

fn read_stored(row: &Row<'_>) -> BackendResult<StoredTranscript> {
    let (number, project, session, subpath): (_, String, String, String) = Read::read(row, 0)?;
    let (owner, next, mtime, summary): (_, u64, _, Option<Cow<'_, str>>) = Read::read(row, 4)?;
    let (shown_by, shown, is_changed): (Option<String>, _, bool) = Read::read(row, 8)?;
    Ok(StoredTranscript {
        number,
        key: TranscriptKey::new(project, session).subpath(subpath),
        owner,
        entries: next.saturating_sub(1),
        mtime,
        summary: summary.map(|_| stored_json(row, 7)).transpose()?,
        is_session_changed: shown_by.is_some() && is_changed,
        session: shown_by.map(SessionId::from),
        shown,
    })
}

pub(crate) fn find(
    conn: &Connection,
    key: &TranscriptKey,
) -> BackendResult<Option<StoredTranscript>> {
    conn.first_with(FIND, (&key.project, &key.session, &key.subpath), read_stored)
}

pub(super) const FIND: &str =
    stored!("project = ?1 /*HASH*/ AND transcript.session = ?2 /*HASH*/ AND subpath = ?3 /*HASH*/");

/// Returns the transcript of a row; `None` if there is no such row.
pub(super) fn stored_in(conn: &Connection, key: i64) -> BackendResult<Option<StoredTranscript>> {
    conn.first_with(stored!("transcript.key = ?1"), key, read_stored)
}

pub(crate) fn of_project(conn: &Connection, project: &str) -> BackendResult<Vec<StoredTranscript>> {
    conn.rows_with(OF_PROJECT, project, read_stored)
}

pub(super) const OF_PROJECT: &str = stored!("project = ?1 /*HASH*/ AND subpath = ''");

pub(crate) fn list(
    conn: &Connection,
    filter: &TranscriptFilter,
    after: Option<u64>,
    limit: usize,
) -> BackendResult<Vec<StoredTranscript>> {
    let TranscriptFilter { project, owner, written_before } = filter;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (after, limit) = (number(after.unwrap_or(0)), number(limit as u64));
    let values = (after, project, written_before, limit);
    match owner {
        Some(owner) => conn.rows_with(LIST_OF_OWNER, (values, owner), read_stored),
        None => conn.rows_with(LIST, values, read_stored),
    }
}

pub(super) const LIST_OF_OWNER: &str = stored!(
    "transcript.owner = ?5
    AND transcript.key > ?1
    AND (CAST(?2 AS TEXT) IS NULL OR project = ?2)
    AND (CAST(?3 AS BIGINT) IS NULL OR written_at < ?3)
  ORDER BY transcript.key
  LIMIT ?4"
);

pub(super) const LIST: &str = stored!(
    "transcript.key > ?1
    AND (CAST(?2 AS TEXT) IS NULL OR project = ?2)
    AND (CAST(?3 AS BIGINT) IS NULL OR written_at < ?3)
  ORDER BY transcript.key
  LIMIT ?4"
);

pub(crate) fn subpaths(
    conn: &Connection,
    project: &str,
    session: &str,
) -> BackendResult<Vec<String>> {
    conn.rows(SUBPATHS, (project, session))
}

pub(super) const SUBPATHS: &str = "SELECT subpath
   FROM transcript
  WHERE project = ?1 /*HASH*/ AND session = ?2 /*HASH*/ AND subpath > ''
  ORDER BY subpath";

fn row_of(conn: &Connection, key: &TranscriptKey) -> BackendResult<Option<i64>> {
    conn.first(
        "SELECT key
           FROM transcript
          WHERE project = ?1 /*HASH*/ AND session = ?2 /*HASH*/ AND subpath = ?3 /*HASH*/",
        (&key.project, &key.session, &key.subpath),
    )
}

/// Returns the session that shows a transcript.
pub(super) fn session_of(conn: &Connection, key: i64) -> BackendResult<Option<(i64, SessionId)>> {
    let found: Option<(i64, String)> = conn.first(SESSION_OF, key)?;
    Ok(found.map(|(session, id)| (session, SessionId::from(id))))
}

pub(super) const SESSION_OF: &str = "SELECT key, id
   FROM session
  WHERE key = (SELECT shown_by FROM transcript WHERE key = ?1)";

/// Returns the transcript that a session shows.
pub(super) fn of_session(conn: &Connection, session: i64) -> BackendResult<Option<i64>> {
    conn.first(OF_SESSION, session)
}

pub(super) const OF_SESSION: &str = "SELECT key FROM transcript WHERE shown_by = ?1";

/// Returns the rows that a key names: of a main transcript also those of the others of its session.
pub(crate) fn named(conn: &Connection, key: &TranscriptKey) -> BackendResult<BTreeSet<i64>> {
    match key.is_main() {
        true => Ok(BTreeSet::from_iter(conn.rows(WITH_OTHERS, (&key.project, &key.session))?)),
        false => Ok(row_of(conn, key)?.into_iter().collect()),
    }
}

pub(super) const WITH_OTHERS: &str =
    "SELECT key FROM transcript WHERE project = ?1 /*HASH*/ AND session = ?2 /*HASH*/";

/// Returns the rows of an owner's transcripts, and of the others of a session whose main one is the owner's.
pub(crate) fn of_owner(conn: &Connection, owner: &str) -> BackendResult<BTreeSet<i64>> {
    Ok(BTreeSet::from_iter(conn.rows(OF_OWNER, owner)?))
}

pub(super) const OF_OWNER: &str = "SELECT key FROM transcript WHERE owner = ?1
 UNION ALL
 SELECT other.key
   FROM transcript AS main
  CROSS JOIN transcript AS other
  WHERE main.owner = ?1
    AND main.subpath = ''
    AND other.project = main.project /*HASH*/
    AND other.session = main.session /*HASH*/";

impl Database {
    /// Deletes transcripts with the sessions that show them. Returns how many were deleted.
    pub(crate) fn delete_transcripts(
        &self,
        named: impl Fn(&Connection) -> BackendResult<BTreeSet<i64>>,
    ) -> Result<u64> {
        self.removing(|conn| {
            let keys = named(conn)?;
            for key in &keys {
                match session_of(conn, *key)? {
                    // The transcript goes with it.
                    Some((session, _)) => removal::take_out(conn, session)?,
                    None => removal::take_out_transcript(conn, *key)?,
                }
            }
            Ok(keys.len() as u64)
        })
    }
}

pub(super) const DELETE_ENTRIES: &str =
    "DELETE FROM transcript_entry WHERE address BETWEEN ?1 AND ?2";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::sqlite::connection::Config;

    fn append(database: &Database, key: &TranscriptKey, entry: &Json) -> Result<()> {
        let entries = std::slice::from_ref(entry);
        database.append_entries(key, entries, None, |_, _| Ok(Derived::default())).map(drop)
    }

    #[test]
    fn a_full_transcript_is_an_error() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
        append(&database, &key, &entry)?;
        let next = "UPDATE transcript SET next = ?1";
        database.write(|conn| conn.run(next, MAX_ENTRIES as i64).map(drop))?;
        append(&database, &key, &entry)?;
        let full = append(&database, &key, &entry);
        assert!(matches!(full, Err(Error::TranscriptFull { what: "entries", .. })), "{full:?}");
        assert_eq!(database.read(|conn| load_after(conn, &key, 0))?.len(), 2);

        let last_key = MAX_TRANSCRIPTS as i64 - 1;
        database.write(|conn| match conn {
            Connection::Sqlite(_) => conn
                .run("UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'transcript'", last_key)
                .map(drop),
            #[cfg(feature = "postgres")]
            Connection::Postgres(_) => {
                let set = "SELECT setval(pg_get_serial_sequence('transcript', 'key'), ?1)";
                conn.one::<i64>(set, last_key).map(drop)
            }
        })?;
        append(&database, &TranscriptKey::new("p", "last"), &entry)?;
        let full = append(&database, &TranscriptKey::new("p", "too many"), &entry);
        assert!(matches!(full, Err(Error::TranscriptFull { what: "transcripts", .. })), "{full:?}");
        assert_eq!(database.read(|conn| of_project(conn, "p"))?.len(), 2);
        Ok(())
    }

    #[test]
    fn the_time_of_an_append_is_after_every_other_one_if_the_clock_is_set_back() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
        append(&database, &key, &entry)?;
        let future = 9_000_000_000_000_i64;
        database.write(|conn| {
            assert_eq!(conn.run("UPDATE transcript SET written_at = ?1", future)?, 1);
            Ok(())
        })?;
        database.delete_transcripts(|conn| named(conn, &key))?;
        append(&database, &key, &entry)?;
        assert_eq!(database.read(|conn| of_project(conn, "p"))?[0].mtime, future + 1);
        Ok(())
    }
}
