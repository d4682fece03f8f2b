//! Erases what an owner has besides sessions, and outside keys.

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::Work;
use super::sessions::{MAX_ROWS, keep_usage};
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
