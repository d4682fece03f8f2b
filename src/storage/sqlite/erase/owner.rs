//! Erases what an owner has besides sessions: texts, usage, pending items of inboxes, transcripts; and outside keys.
//!
//! The id of an item stays, as that of a handled one: otherwise the source could deliver the item again. The entries of a
//! transcript are deleted from the newest to the oldest, and the row goes with the last of them. So after a crash the
//! transcript is a shorter one, which the same erasure finds again. The row of a transcript that a session shows goes with
//! the session, because each leads to the other.

use rusqlite::{Connection, params};

use super::super::catalog::removal::{MAX_BYTES, MAX_MESSAGES};
use super::super::error::BackendResult;
use super::super::inbox::end;
use super::super::transcript::{
    DELETE_ENTRIES, delete_row, of_session, range, session_of, stored_in,
};
use super::Work;
use super::delete::{MAX_ROWS, keep_usage};
use super::targets::Block;
use super::texts::Texts;
use crate::error::Result;
use crate::tree::Address;

/// The form in which a prompt holds a text.
const QUOTABLE: &str = "SELECT content
   FROM context_entry
  WHERE block = ?1 AND content IS NOT NULL
 UNION ALL
 SELECT content
   FROM context_version
  WHERE entry BETWEEN (?1 << 32) AND (?1 << 32 | 4294967295) AND content IS NOT NULL";
const DELETE_EMPTY: &str = "DELETE FROM context_block
  WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM context_entry WHERE block = ?1)";
const PROMPTS: &str = "SELECT session, sections
   FROM frozen_prompt
  WHERE session > ?1
  ORDER BY session
  LIMIT 100";
const SOME_USAGE: &str = "DELETE FROM usage
  WHERE number IN (SELECT number FROM usage WHERE owner = ?1 AND number <= ?2 LIMIT ?3)";
const KEEP_SOME_USAGE: &str =
    keep_usage!("number IN (SELECT number FROM usage WHERE owner = ?1 AND number <= ?2 LIMIT ?3)");
const FORGET_SOME: &str = "UPDATE usage
    SET author = NULL
  WHERE number IN (SELECT number FROM usage WHERE author = ?1 AND number <= ?2 LIMIT ?3)";
const SOME_BINDINGS: &str = "DELETE FROM binding
  WHERE number IN (SELECT number FROM binding WHERE key = ?1 AND number <= ?2 LIMIT ?3)";

impl Work<'_> {
    /// Erases the context blocks of owners.
    pub(super) fn erase_blocks(&mut self, blocks: &[Block]) -> Result<()> {
        let mut quotable = Texts::default();
        for block in blocks {
            self.database.read(|conn| note_quotable(conn, block.key, &mut quotable))?;
        }
        // Before the texts are gone: after a crash they could not be looked for.
        self.thaw_quotes(&quotable)?;
        for block in blocks {
            self.erase_texts((Address::range_of(block.key).0, block.last), None)?;
            self.write(|conn, _| {
                // A text that was stored since needs its block.
                conn.prepare_cached(DELETE_EMPTY)?.execute([block.key])?;
                Ok(())
            })?;
        }
        // A prompt may have been frozen before its texts were gone.
        self.thaw_quotes(&quotable)
    }

    /// Erases the usage of an owner. Its sessions and blocks were erased before.
    pub(super) fn erase_owner(&mut self, owner: &str) -> Result<()> {
        self.texts.add_name(owner);
        let usage = if self.erasure.keep_totals { KEEP_SOME_USAGE } else { SOME_USAGE };
        let newest = self.targets.newest_usage;
        self.out.extent.usage += self.repeat(usage, params![owner, newest, MAX_ROWS])?;
        Ok(())
    }

    /// Takes a person out of the ledger. What the person wrote was erased before.
    pub(super) fn forget_author(&mut self, author: &str) -> Result<()> {
        self.texts.add_name(author);
        let newest = self.targets.newest_usage;
        self.out.extent.usage += self.repeat(FORGET_SOME, params![author, newest, MAX_ROWS])?;
        Ok(())
    }

    /// Deletes the frozen prompts that quote one of these texts.
    fn thaw_quotes(&mut self, quotable: &Texts) -> Result<()> {
        if quotable.is_empty() {
            return Ok(());
        }
        let mut after = 0;
        loop {
            self.check()?;
            let prompts = self.database.read(|conn| prompts_after(conn, after))?;
            let Some((last, _)) = prompts.last() else { return Ok(()) };
            after = *last;
            for (session, _) in prompts.iter().filter(|(_, text)| quotable.are_in(text)) {
                self.write(|conn, work| work.thaw(conn, *session))?;
            }
        }
    }

    /// Erases an outside key. The sessions that it leads to were erased before.
    pub(super) fn erase_key(&mut self, key: &str) -> Result<()> {
        self.texts.add_name(key);
        let newest = self.targets.newest_binding;
        self.out.extent.bindings += self.repeat(SOME_BINDINGS, params![key, newest, MAX_ROWS])?;
        Ok(())
    }
}

fn note_quotable(conn: &Connection, block: i64, texts: &mut Texts) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(QUOTABLE)?;
    let mut rows = statement.query([block])?;
    while let Some(row) = rows.next()? {
        // A prompt is stored as JSON; a text always has a form in it.
        if let Ok(quoted) = serde_json::to_string(row.get_ref(0)?.as_str()?) {
            texts.add_name(&quoted[1..quoted.len() - 1]);
        }
    }
    Ok(())
}

fn prompts_after(conn: &Connection, session: i64) -> BackendResult<Vec<(i64, String)>> {
    let prompts = conn
        .prepare_cached(PROMPTS)?
        .query_map(params![session], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(prompts)
}

macro_rules! items {
    ($condition:literal) => {
        concat!(
            "SELECT number, inbox_item.key, owner, note, body
   FROM inbox_source
  CROSS JOIN inbox_item ON inbox_item.source = inbox_source.key
  WHERE ",
            $condition,
            " AND +number <= ?2"
        )
    };
}

/// The pending items of an owner, up to the newest that the erasure names.
pub(in super::super) const OF_OWNER: &str = items!("inbox_item.key IS NOT NULL AND owner = ?1");
/// Those of a key in any source.
pub(in super::super) const OF_KEY: &str = items!("inbox_item.key = ?1");

impl Work<'_> {
    /// Erases the pending items of the owners and keys.
    pub(super) fn erase_items(&mut self) -> Result<()> {
        let targets = self.targets;
        for (names, sql) in [(&targets.owners, OF_OWNER), (&targets.item_keys, OF_KEY)] {
            for name in names {
                loop {
                    self.check()?;
                    if !self.write(|conn, work| work.erase_some_items(conn, sql, name))? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Erases some items that a statement finds; `false` if there are none.
    fn erase_some_items(
        &mut self,
        conn: &Connection,
        sql: &str,
        name: &str,
    ) -> BackendResult<bool> {
        let (mut numbers, mut bytes) = (Vec::new(), 0);
        {
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query(params![name, self.targets.newest_item])?;
            while numbers.len() < MAX_MESSAGES
                && bytes < MAX_BYTES
                && let Some(row) = rows.next()?
            {
                numbers.push(row.get::<_, i64>(0)?);
                for column in 1..5 {
                    // Damaged texts may be none.
                    if let Ok(Some(text)) = row.get_ref(column)?.as_str_or_null() {
                        self.texts.add_name(text);
                        bytes += text.len();
                    }
                }
            }
        }
        for number in &numbers {
            end(conn, *number)?;
        }
        self.out.extent.items += numbers.len() as u64;
        Ok(!numbers.is_empty())
    }
}

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
