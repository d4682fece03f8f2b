//! Erases whole sessions.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::super::catalog::removal::{self, MAX_MESSAGES};
use super::super::compaction;
use super::super::context::{self, entry};
use super::super::error::BackendResult;
use super::super::row::session as session_row;
use super::targets::Target;
use super::{Work, children_of, forbidden};
use crate::error::Result;
use crate::tree::Address;

/// How many small rows one transaction deletes.
pub(super) const MAX_ROWS: i64 = 2_000;

/// The texts of a session's row and of the rows that are deleted first.
const TEXTS: &[&str] = &[
    "SELECT name, metadata, end_reason, owner FROM session WHERE key = ?1",
    "SELECT tag FROM session_tag WHERE session = ?1",
    "SELECT key FROM binding WHERE session = ?1",
    "SELECT name FROM label WHERE session = ?1",
    "SELECT label FROM context_block WHERE session = ?1",
];
const PROMPT: &str = "SELECT sections FROM frozen_prompt WHERE session = ?1";

/// Rows that are not needed to find the other rows.
const DELETE_FIRST: &[&str] = &[
    "DELETE FROM compaction WHERE session = ?1",
    "DELETE FROM label WHERE session = ?1",
    "DELETE FROM head_log WHERE session = ?1",
    "UPDATE session
        SET head = NULL, head_position = 0, visible_tokens = 0, changes = changes + 1,
            name = NULL, metadata = NULL, end_reason = NULL, fork_point = NULL,
            deleted_at = coalesce(deleted_at, max(updated_at, created_at))
      WHERE key = ?1",
];

/// The rows that lead from an owner or a key to a session, and the session: so an interrupted erasure still finds it.
const DELETE_LAST: &[&str] = &[
    "DELETE FROM session_tag WHERE session = ?1",
    "DELETE FROM context_block WHERE session = ?1",
    "DELETE FROM session WHERE key = ?1",
];

/// The parent of an erased session takes its place: a later erasure of that one finds what it left here.
const FORGET_PARENT: &str = "UPDATE session
    SET parent_session = (SELECT erased.parent_session FROM session AS erased WHERE erased.id = ?2),
        fork_point = NULL
  WHERE key = ?1 AND parent_session = ?2";
const BLOCKS: &str = "SELECT key FROM context_block WHERE session = ?1 AND owner = ''";
const SOME_IMPORTED: &str = "DELETE FROM imported
  WHERE session = ?1
    AND record IN (SELECT record FROM imported WHERE session = ?1 LIMIT ?2)";

/// Keeps usage under a condition in totals, without all that it is of.
macro_rules! keep_usage {
    ($condition:literal) => {
        concat!(
            "UPDATE usage
    SET session = NULL, address = NULL, owner = NULL, source = NULL, answer = NULL, author = NULL
  WHERE ",
            $condition
        )
    };
}
pub(super) use keep_usage;

const SOME_USAGE: &str = "DELETE FROM usage
  WHERE number IN (SELECT number FROM usage WHERE session = ?1 LIMIT ?2)";
const KEEP_SOME_USAGE: &str =
    keep_usage!("number IN (SELECT number FROM usage WHERE session = ?1 LIMIT ?2)");

impl Work<'_> {
    /// Erases a session with all that belongs to it.
    pub(super) fn erase_session(&mut self, session: &Target) -> Result<()> {
        let begun = self.write(|conn, work| work.begin_session(conn, session))?;
        if !begun {
            return Ok(());
        }
        loop {
            self.check()?;
            if !self.write(|conn, work| work.erase_newest(conn, session))? {
                break;
            }
        }
        for block in self.database.read(|conn| keys(conn, BLOCKS, [session.key]))? {
            self.erase_texts(Address::range_of(block), None)?;
        }
        self.repeat(SOME_IMPORTED, params![session.key, MAX_ROWS])?;
        let usage = if self.erasure.keep_totals { KEEP_SOME_USAGE } else { SOME_USAGE };
        self.out.extent.usage += self.repeat(usage, params![session.key, MAX_ROWS])?;
        self.write(|conn, work| work.end_session(conn, session))
    }

    /// Puts a session into the trash, and deletes what refers to its messages; `false` if it is gone.
    fn begin_session(&mut self, conn: &Connection, session: &Target) -> BackendResult<bool> {
        let found = session_row::find(conn, &session.id)?;
        if found.is_none_or(|row| row.key != session.key) {
            return Ok(false);
        }
        self.texts.add_id(session.id.as_str());
        for sql in TEXTS {
            self.note_all(conn, sql, session.key)?;
        }
        for (_, summary) in compaction::all(conn, session.key)? {
            self.note_summary(&summary);
            self.out.extent.summaries += 1;
        }
        self.thaw(conn, session.key)?;
        for sql in DELETE_FIRST {
            conn.prepare_cached(sql)?.execute([session.key])?;
        }
        Ok(true)
    }

    /// Deletes the frozen prompt of a session.
    pub(super) fn thaw(&mut self, conn: &Connection, session: i64) -> BackendResult<()> {
        let is_frozen =
            conn.prepare_cached(PROMPT)?.query_row([session], |_| Ok(())).optional()?.is_some();
        if is_frozen {
            self.note_all(conn, PROMPT, session)?;
            context::thaw(conn, session)?;
            self.out.extent.prompts += 1;
        }
        Ok(())
    }

    /// Deletes the newest messages of a session; `false` if there are none.
    fn erase_newest(&mut self, conn: &Connection, session: &Target) -> BackendResult<bool> {
        let (mut copies, mut lowest, mut living) = (BTreeSet::new(), None, 0);
        for (address, is_living) in removal::newest(conn, session.key)? {
            if copies.len() >= MAX_MESSAGES {
                break;
            }
            lowest = Some(address);
            if is_living {
                self.note_copies(conn, address, &mut copies)?;
                self.note_content(conn, address)?;
                living += 1;
            }
        }
        let Some(lowest) = lowest else { return Ok(false) };
        self.delete_copies(conn, &copies)?;
        let (_, last) = Address::range_of(session.key);
        self.drop_usage(conn, lowest, last)?;
        removal::delete_from(conn, lowest, living)?;
        self.out.extent.messages += living as u64;
        Ok(true)
    }

    /// Erases a range of the texts of a block; its row stays. The frozen prompt of a session that stays goes with each of its texts: after a
    /// crash nothing would say that it quotes one.
    pub(super) fn erase_texts(
        &mut self,
        (start, last): (Address, Address),
        quoted_in: Option<i64>,
    ) -> Result<()> {
        let mut next = Some(start);
        while let Some(first) = next {
            self.check()?;
            next = self.write(|conn, work| {
                let found: Option<Address> = conn
                    .prepare_cached(
                        "SELECT min(address) FROM context_entry WHERE address BETWEEN ?1 AND ?2",
                    )?
                    .query_row([first, last], |row| row.get(0))?;
                let Some(address) = found else { return Ok(None) };
                for sql in [ENTRY, VERSIONS] {
                    work.note_all(conn, sql, address.raw())?;
                }
                if let Some(session) = quoted_in {
                    work.thaw(conn, session)?;
                }
                entry::remove_range(conn, address, address)?;
                work.out.extent.texts += 1;
                Ok(Some(address))
            })?;
        }
        Ok(())
    }

    /// Runs a statement that changes a part of its rows, until there are none; returns how many there were.
    pub(super) fn repeat(&mut self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<u64> {
        let mut all = 0;
        loop {
            self.check()?;
            let count = self.write(|conn, _| Ok(conn.prepare_cached(sql)?.execute(values)?))?;
            if count == 0 {
                return Ok(all);
            }
            all += count as u64;
        }
    }

    fn end_session(&mut self, conn: &Connection, session: &Target) -> BackendResult<()> {
        for key in children_of(conn, &session.id)? {
            conn.prepare_cached(FORGET_PARENT)?.execute(params![key, session.id.as_str()])?;
        }
        let bindings = conn
            .prepare_cached("DELETE FROM binding WHERE session = ?1")?
            .execute([session.key])?;
        self.out.extent.bindings += bindings as u64;
        for sql in DELETE_LAST {
            conn.prepare_cached(sql)?.execute([session.key])?;
        }
        self.end_transcript(conn, session.key)?;
        if self.erasure.forbid_import {
            forbidden::add(conn, &session.id)?;
        }
        self.out.extent.sessions.push(session.id.clone());
        Ok(())
    }
}

const ENTRY: &str = "SELECT key, title, description, content FROM context_entry WHERE address = ?1";
const VERSIONS: &str = "SELECT title, description, content FROM context_version WHERE entry = ?1";

pub(super) fn keys(
    conn: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> BackendResult<Vec<i64>> {
    let keys = conn
        .prepare_cached(sql)?
        .query_map(values, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(keys)
}
