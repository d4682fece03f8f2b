//! Erasing transcripts.
//!
//! The entries are deleted from the newest to the oldest, and the row goes with the last of them. So after a crash the
//! transcript is a shorter one, which the same erasure finds again. The row of a transcript that a session shows goes with
//! the session, because each leads to the other.

use rusqlite::{Connection, params};

use super::super::catalog::removal::{MAX_BYTES, MAX_MESSAGES};
use super::super::error::BackendResult;
use super::super::transcript::{
    DELETE_ENTRIES, delete_row, of_session, range, session_of, stored_in,
};
use super::Work;
use crate::error::Result;

/// The summary has what the entries say.
const FORGET_SUMMARY: &str = "UPDATE transcript SET summary = NULL WHERE key = ?1";
const NAMES: &str =
    "SELECT project, session, subpath, owner, summary FROM transcript WHERE key = ?1";
const NEWEST: &str = "SELECT address, uuid, entry
   FROM transcript_entry
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address DESC";
const IS_ANY: &str =
    "SELECT EXISTS (SELECT 1 FROM transcript_entry WHERE address BETWEEN ?1 AND ?2)";

impl Work<'_> {
    /// Erases a transcript, by the key of its row.
    pub(super) fn erase_transcript(&mut self, key: i64) -> Result<()> {
        self.write(|conn, work| work.begin_transcript(conn, key))?;
        loop {
            self.check()?;
            if !self.write(|conn, work| work.erase_newest_entries(conn, key))? {
                return Ok(());
            }
        }
    }

    fn begin_transcript(&mut self, conn: &Connection, key: i64) -> BackendResult<()> {
        self.note_transcript(conn, key)?;
        conn.prepare_cached(FORGET_SUMMARY)?.execute([key])?;
        Ok(())
    }

    fn note_transcript(&mut self, conn: &Connection, key: i64) -> BackendResult<()> {
        let mut statement = conn.prepare_cached(NAMES)?;
        let mut rows = statement.query([key])?;
        while let Some(row) = rows.next()? {
            for name in [0, 2, 3, 4] {
                self.texts.add_name(row.get_ref(name)?.as_str_or_null()?.unwrap_or_default());
            }
            self.texts.add_id(row.get_ref(1)?.as_str()?);
        }
        Ok(())
    }

    /// Deletes the newest entries of a transcript; `false` if it is gone.
    fn erase_newest_entries(&mut self, conn: &Connection, key: i64) -> BackendResult<bool> {
        let Some(stored) = stored_in(conn, key)? else { return Ok(false) };
        let [first, last] = range(key);
        let (mut lowest, mut count, mut bytes) = (last, 0, 0);
        {
            let mut statement = conn.prepare_cached(NEWEST)?;
            let mut rows = statement.query([first, last])?;
            while count < MAX_MESSAGES
                && bytes < MAX_BYTES
                && let Some(row) = rows.next()?
            {
                lowest = row.get(0)?;
                if let Some(uuid) = row.get_ref(1)?.as_str_or_null()? {
                    self.texts.add_id(uuid);
                }
                let entry = row.get_ref(2)?.as_str()?;
                self.texts.add_name(entry);
                bytes += entry.len();
                count += 1;
            }
        }
        conn.prepare_cached(DELETE_ENTRIES)?.execute([lowest, last])?;
        self.out.extent.entries += count as u64;
        let is_any: bool =
            conn.prepare_cached(IS_ANY)?.query_row([first, last], |row| row.get(0))?;
        if is_any {
            // It has as many entries as its lists say.
            conn.prepare_cached("UPDATE transcript SET next = ?2 WHERE key = ?1")?
                .execute(params![key, lowest & i64::from(u32::MAX)])?;
            return Ok(true);
        }
        if session_of(conn, key)?.is_none() {
            self.forget_transcript(conn, key)?;
        }
        self.out.extent.transcripts.push(stored.key);
        Ok(false)
    }

    /// Deletes the row of a transcript without entries.
    fn forget_transcript(&mut self, conn: &Connection, key: i64) -> BackendResult<()> {
        // An append may have extended the summary since, or named an owner.
        self.note_transcript(conn, key)?;
        delete_row(conn, key)
    }

    /// Deletes the transcript that an erased session showed, with entries that came meanwhile.
    pub(super) fn end_transcript(&mut self, conn: &Connection, session: i64) -> BackendResult<()> {
        let Some(key) = of_session(conn, session)? else { return Ok(()) };
        let [first, last] = range(key);
        {
            let mut statement = conn.prepare_cached(NEWEST)?;
            let mut rows = statement.query([first, last])?;
            while let Some(row) = rows.next()? {
                if let Some(uuid) = row.get_ref(1)?.as_str_or_null()? {
                    self.texts.add_id(uuid);
                }
                self.texts.add_name(row.get_ref(2)?.as_str()?);
            }
        }
        let count = conn.prepare_cached(DELETE_ENTRIES)?.execute([first, last])?;
        self.out.extent.entries += count as u64;
        self.forget_transcript(conn, key)
    }
}
