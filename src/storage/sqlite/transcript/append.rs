//! Appends entries.

use rusqlite::{Connection, params};

use super::super::connection::Database;
use super::super::error::{BackendError, BackendResult, corrupt};
use super::projection::{Reach, Whole};
use super::{MAX_ENTRIES, MAX_TRANSCRIPTS, stored_json};
use crate::clock;
use crate::error::{Error, Result};
use crate::message::Json;
use crate::transcript::{AppendedEntries, Facts, TranscriptKey, check_owner, fold};

/// The most entries of a short write.
const MAX_FEW: usize = 64;
/// The most entries of a short write that projects them.
const MAX_FEW_PROJECTED: usize = 16;
/// The most bytes of a short write.
const MAX_SHORT: usize = 64 << 10;

impl Database {
    pub(crate) fn append_entries(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        owner: Option<&str>,
        projects: Projects,
    ) -> Result<AppendedEntries> {
        key.check()?;
        check_owner(owner, None)?;
        TranscriptKey::check_size(entries, self.config.max_message_bytes)?;
        // Outside the transaction, because entries may be large.
        let facts: Vec<Facts<'_>> = entries.iter().map(Facts::of).collect::<Result<_>>()?;
        if entries.is_empty() {
            return Ok(AppendedEntries::default());
        }
        let bytes: usize = entries.iter().map(|entry| entry.as_str().len()).sum();
        if projects == Projects::No {
            let work = |conn: &Connection| append(conn, key, entries, &facts, owner);
            let (appended, _) = match entries.len() <= MAX_FEW && bytes <= MAX_SHORT {
                true => self.write_short(work),
                false => self.write(work),
            }?;
            return Ok(appended);
        }
        let prepared = self.prepared_projector(key)?;
        let work = |conn: &Connection| {
            let (appended, row) = append(conn, key, entries, &facts, owner)?;
            let Some(row) = row else { return Ok((appended, None)) };
            let owner = row.owner.as_deref().or(owner);
            let whole = Whole { transcript: row.key, key, owner };
            let total = u64::try_from(row.next - 1).unwrap_or_default();
            let reach = Reach::Append(appended.added);
            Ok((appended, whole.project(conn, &self.config, prepared, total, reach)?))
        };
        let (appended, projected) = match entries.len() <= MAX_FEW_PROJECTED && bytes <= MAX_SHORT {
            true => self.write_short(work),
            false => self.write(work),
        }?;
        self.projected(projected);
        Ok(appended)
    }
}

/// Whether an append also writes the session that shows the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Projects {
    Yes,
    No,
}

/// The row of a transcript, as far as an append reads it.
struct Row {
    key: i64,
    next: i64,
    owner: Option<String>,
    summary: Option<Json>,
}

/// Appends entries; returns the row too, if there were new ones.
fn append(
    conn: &Connection,
    key: &TranscriptKey,
    entries: &[Json],
    facts: &[Facts<'_>],
    owner: Option<&str>,
) -> BackendResult<(AppendedEntries, Option<Row>)> {
    let mut row = match find(conn, key)? {
        Some(row) => row,
        None => create(conn, key)?,
    };
    check_owner(owner, row.owner.as_deref())?;
    let mut appended = AppendedEntries::default();
    let mut new = Vec::with_capacity(entries.len());
    for (entry, facts) in entries.iter().zip(facts) {
        let uuid = facts.uuid();
        if row.next > MAX_ENTRIES {
            let max = MAX_ENTRIES as u64;
            return Err(BackendError::Own(Error::TranscriptFull { what: "entries", max }));
        }
        let added = conn.prepare_cached(ADD)?.execute(params![
            row.key << 32 | row.next,
            uuid,
            entry.as_str()
        ])?;
        match added {
            0 => {
                appended.known += 1;
                let is_same = is_stored(conn, row.key, uuid.as_deref(), entry)?;
                appended.differing += u64::from(!is_same);
            }
            _ => {
                row.next += 1;
                appended.added += 1;
                new.push(facts);
            }
        }
    }
    if new.is_empty() {
        return Ok((appended, None));
    }
    let summary = match key.is_main() {
        false => None,
        true => Some(fold(row.summary.as_ref(), new.into_iter())?),
    };
    let written_at = tick(conn)?;
    conn.prepare_cached(
        "UPDATE transcript SET next = ?2, written_at = ?3, summary = ?4, owner = coalesce(owner, ?5) WHERE key = ?1",
    )?
    .execute(params![row.key, row.next, written_at, summary.as_ref().map(Json::as_str), owner])?;
    Ok((appended, Some(row)))
}

fn find(conn: &Connection, key: &TranscriptKey) -> BackendResult<Option<Row>> {
    let mut statement = conn.prepare_cached(FIND)?;
    let mut rows = statement.query([&key.project, &key.session, &key.subpath])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let summary = key.is_main().then(|| stored_json(row, 3)).transpose()?;
    Ok(Some(Row { key: row.get(0)?, next: row.get(1)?, owner: row.get(2)?, summary }))
}

fn create(conn: &Connection, key: &TranscriptKey) -> BackendResult<Row> {
    // Its first entries are added in the same transaction; then its time is known.
    conn.prepare_cached(
        "INSERT INTO transcript (project, session, subpath, written_at, summary)
         VALUES (?1, ?2, ?3, 0, iif(?3 = '', '{}', NULL))",
    )?
    .execute([&key.project, &key.session, &key.subpath])?;
    let key = conn.last_insert_rowid();
    if key > MAX_TRANSCRIPTS {
        let max = MAX_TRANSCRIPTS as u64;
        return Err(BackendError::Own(Error::TranscriptFull { what: "transcripts", max }));
    }
    Ok(Row { key, next: 1, owner: None, summary: None })
}

/// Returns whether the stored entry of this uuid is the same.
fn is_stored(conn: &Connection, key: i64, uuid: Option<&str>, entry: &Json) -> BackendResult<bool> {
    let mut statement = conn.prepare_cached(BY_UUID)?;
    let stored: String = statement.query_row(params![key, uuid], |row| row.get(0))?;
    Ok(stored == entry.as_str() || Json::parse(&stored).is_ok_and(|stored| stored == *entry))
}

/// Returns the time of an append: now, or just after the last one.
fn tick(conn: &Connection) -> BackendResult<i64> {
    let now = clock::now().timestamp_millis();
    let time: String = conn.prepare_cached(TICK)?.query_row([now], |row| row.get(0))?;
    time.parse().map_err(|_| corrupt(format!("the time of the last transcript is {time:?}")))
}

pub(in super::super) const FIND: &str = "SELECT key, next, owner, summary
   FROM transcript
  WHERE project = ?1 AND session = ?2 AND subpath = ?3";

pub(in super::super) const ADD: &str = "INSERT INTO transcript_entry (address, uuid, entry)
 VALUES (?1, ?2, ?3)
     ON CONFLICT (transcript, uuid) WHERE uuid IS NOT NULL DO NOTHING";

pub(in super::super) const BY_UUID: &str = "SELECT entry
   FROM transcript_entry
  WHERE transcript = ?1 AND uuid = ?2";

const TICK: &str = "INSERT INTO setting (name, value)
 VALUES ('transcript_clock', ?1)
     ON CONFLICT (name) DO UPDATE SET value = max(CAST(value AS INTEGER) + 1, ?1)
 RETURNING value";
