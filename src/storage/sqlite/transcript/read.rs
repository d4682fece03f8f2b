//! Reads transcripts, and lists of them.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::error::BackendResult;
use super::{range, stored_json};
use crate::id::SessionId;
use crate::message::Json;
use crate::transcript::{
    ListedTranscript, StoredTranscript, TranscriptFilter, TranscriptKey, TranscriptSummary,
};

pub(crate) fn load(conn: &Connection, key: &TranscriptKey) -> BackendResult<Option<Vec<Json>>> {
    let Some(row) = row_of(conn, key)? else { return Ok(None) };
    let mut statement = conn.prepare_cached(ENTRIES)?;
    let mut rows = statement.query(range(row))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(stored_json(row, 0)?);
    }
    Ok(Some(entries).filter(|entries| !entries.is_empty()))
}

pub(in super::super) const ENTRIES: &str = "SELECT entry
   FROM transcript_entry
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address";

pub(crate) fn sessions(conn: &Connection, project: &str) -> BackendResult<Vec<ListedTranscript>> {
    let mut statement = conn.prepare_cached(SESSIONS)?;
    let rows = statement.query_map([project], |row| {
        Ok(ListedTranscript { session: row.get(0)?, mtime: row.get(1)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(in super::super) const SESSIONS: &str = "SELECT session, written_at
   FROM transcript
  WHERE project = ?1 AND subpath = ''";

pub(crate) fn summaries(conn: &Connection, project: &str) -> BackendResult<Vec<TranscriptSummary>> {
    let mut statement = conn.prepare_cached(SUMMARIES)?;
    let mut rows = statement.query([project])?;
    let mut summaries = Vec::new();
    while let Some(row) = rows.next()? {
        summaries.push(read_summary(row)?);
    }
    Ok(summaries)
}

pub(in super::super) const SUMMARIES: &str = "SELECT session, written_at, summary
   FROM transcript
  WHERE project = ?1 AND subpath = ''";

pub(crate) fn summary(
    conn: &Connection,
    project: &str,
    session: &str,
) -> BackendResult<Option<TranscriptSummary>> {
    let mut statement = conn.prepare_cached(SUMMARY)?;
    let mut rows = statement.query([project, session])?;
    rows.next()?.map(read_summary).transpose()
}

pub(in super::super) const SUMMARY: &str = "SELECT session, written_at, summary
   FROM transcript
  WHERE project = ?1 AND session = ?2 AND subpath = ''";

fn read_summary(row: &Row<'_>) -> BackendResult<TranscriptSummary> {
    let data = stored_json(row, 2)?;
    Ok(TranscriptSummary { session: row.get(0)?, mtime: row.get(1)?, data })
}

pub(crate) fn subpaths(
    conn: &Connection,
    project: &str,
    session: &str,
) -> BackendResult<Vec<String>> {
    let mut statement = conn.prepare_cached(SUBPATHS)?;
    let rows = statement.query_map([project, session], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(in super::super) const SUBPATHS: &str = "SELECT subpath
   FROM transcript
  WHERE project = ?1 AND session = ?2 AND subpath > ''";

pub(crate) fn list(
    conn: &Connection,
    filter: &TranscriptFilter,
    after: Option<u64>,
    limit: usize,
) -> BackendResult<Vec<StoredTranscript>> {
    let sql = if filter.owner.is_some() { OF_OWNER } else { ALL };
    let mut statement = conn.prepare_cached(sql)?;
    let number = |number: Option<u64>| i64::try_from(number.unwrap_or(0)).unwrap_or(i64::MAX);
    let rows = statement.query_map(
        params![
            number(after),
            filter.owner,
            filter.project,
            filter.written_before,
            number(Some(limit as u64)),
        ],
        read_stored,
    )?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The columns that `read_stored` reads.
macro_rules! select_stored {
    () => {
        "SELECT key, project, session, subpath, owner, next, written_at,
        (SELECT session.id
           FROM projection
           JOIN session ON session.key = projection.session
          WHERE projection.transcript = transcript.key)
   FROM transcript"
    };
}

macro_rules! stored {
    ($where:literal) => {
        concat!(
            select_stored!(),
            "
  WHERE ",
            $where,
            " AND key > ?1
    AND (?3 IS NULL OR project = ?3)
    AND (?4 IS NULL OR written_at < ?4)
  ORDER BY key
  LIMIT ?5"
        )
    };
}

pub(in super::super) const OF_OWNER: &str = stored!("owner = ?2");

pub(in super::super) const ALL: &str = stored!("?2 IS NULL");

pub(crate) fn stored(
    conn: &Connection,
    key: &TranscriptKey,
) -> BackendResult<Option<StoredTranscript>> {
    let mut statement = conn.prepare_cached(STORED)?;
    let row = statement.query_row([&key.project, &key.session, &key.subpath], read_stored);
    Ok(row.optional()?)
}

pub(in super::super) const STORED: &str = concat!(
    select_stored!(),
    "
  WHERE project = ?1 AND session = ?2 AND subpath = ?3"
);

/// Returns the transcript of a row; `None` if there is no such row.
pub(in super::super) fn stored_in(
    conn: &Connection,
    key: i64,
) -> BackendResult<Option<StoredTranscript>> {
    let mut statement = conn.prepare_cached(STORED_IN)?;
    Ok(statement.query_row([key], read_stored).optional()?)
}

const STORED_IN: &str = concat!(
    select_stored!(),
    "
  WHERE key = ?1"
);

/// Returns some entries of a transcript with their numbers: those after a number. An empty answer is the end.
pub(in super::super) fn entries_after(
    conn: &Connection,
    key: i64,
    after: i64,
) -> BackendResult<Vec<(i64, Json)>> {
    let [first, last] = range(key);
    let mut statement = conn.prepare_cached(NUMBERED_ENTRIES)?;
    let mut rows = statement.query([first + after, last])?;
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while bytes < MAX_BATCH_BYTES
        && let Some(row) = rows.next()?
    {
        let entry = stored_json(row, 1)?;
        bytes += entry.as_str().len();
        entries.push((row.get::<_, i64>(0)? & i64::from(u32::MAX), entry));
    }
    Ok(entries)
}

/// After how many bytes a batch of entries ends.
const MAX_BATCH_BYTES: usize = 1 << 20;

const NUMBERED_ENTRIES: &str = "SELECT address, entry
   FROM transcript_entry
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address";

fn read_stored(row: &Row<'_>) -> rusqlite::Result<StoredTranscript> {
    let part = |at: usize| row.get::<_, String>(at);
    let key = TranscriptKey::new(part(1)?, part(2)?).subpath(part(3)?);
    let next: i64 = row.get(5)?;
    Ok(StoredTranscript {
        number: row.get(0)?,
        key,
        owner: row.get(4)?,
        entries: u64::try_from(next - 1).unwrap_or(0),
        mtime: row.get(6)?,
        projected_to: row.get::<_, Option<String>>(7)?.map(SessionId::from),
    })
}

/// Returns the key of a transcript's row.
pub(super) fn row_of(conn: &Connection, key: &TranscriptKey) -> BackendResult<Option<i64>> {
    let mut statement = conn.prepare_cached(
        "SELECT key FROM transcript WHERE project = ?1 AND session = ?2 AND subpath = ?3",
    )?;
    let row = statement.query_row([&key.project, &key.session, &key.subpath], |row| row.get(0));
    Ok(row.optional()?)
}
