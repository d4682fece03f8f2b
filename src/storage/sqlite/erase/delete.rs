//! Erases messages with their copies, and whole sessions.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension, params};

use super::super::catalog::removal::{self, MAX_BYTES, MAX_MESSAGES};
use super::super::context::{self, entry};
use super::super::error::BackendResult;
use super::super::message::Mention;
use super::super::row::session as session_row;
use super::super::{catalog, compaction, delete, message, transcript};
use super::targets::{Target, target};
use super::{Work, children_of, note};
use crate::compaction::Compaction;
use crate::erasure::ErasureSummary;
use crate::error::Result;
use crate::id::{CompactionId, MessageId};
use crate::tree::{Address, Span};

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

/// The content of a row.
const CONTENT: &str =
    "SELECT id, parts, metadata, extra FROM message WHERE address = ?1 AND id IS NOT NULL";
const MARKERS: &str = "SELECT marker FROM elision WHERE address = ?1";
const LABELS: &str = "SELECT name FROM label WHERE session = ?1 >> 32 AND address = ?1";
const TAGS: &str = "SELECT tag FROM message_tag WHERE address = ?1";
const DELETE_USAGE: &str =
    "DELETE FROM usage WHERE session = ?1 >> 32 AND address BETWEEN ?1 AND ?2";
const KEEP_USAGE: &str = keep_usage!("session = ?1 >> 32 AND address BETWEEN ?1 AND ?2");

impl Work<'_> {
    /// Erases messages of a session that stays.
    pub(super) fn erase_messages(
        &mut self,
        session: &Target,
        addresses: &BTreeSet<Address>,
    ) -> Result<()> {
        let mut left: Vec<Address> = addresses.iter().copied().collect();
        while !left.is_empty() {
            self.check()?;
            self.write(|conn, work| {
                // The newest first, so that a branch leaves no tombstones on the way.
                let (mut batch, mut copies) = (BTreeSet::new(), BTreeSet::new());
                let mut bytes = 0;
                while batch.len() + copies.len() < MAX_MESSAGES
                    && bytes < MAX_BYTES
                    && let Some(address) = left.pop()
                {
                    work.note_copies(conn, address, &mut copies)?;
                    bytes += bytes_of(conn, address)?;
                    batch.insert(address);
                }
                work.delete_from(conn, session, &batch)?;
                work.delete_copies(conn, &copies)
            })?;
        }
        Ok(())
    }

    /// Adds the copies of a message that are to be erased, and notes those that are left.
    pub(super) fn note_copies(
        &mut self,
        conn: &Connection,
        address: Address,
        copies: &mut BTreeSet<Address>,
    ) -> BackendResult<()> {
        let found = self.copies.of(conn, address)?;
        self.sort_copies(conn, found, copies)
    }

    fn sort_copies(
        &mut self,
        conn: &Connection,
        found: Vec<Address>,
        copies: &mut BTreeSet<Address>,
    ) -> BackendResult<()> {
        for copy in found {
            match self.erasure.forks {
                // One that is erased later is not listed at the end.
                false => _ = self.copies_left.insert(copy),
                true if self.targets.has(copy) => {}
                // Its transcript has the same text.
                true if transcript::of_session(conn, copy.session())?.is_some() => {
                    self.copies_left.insert(copy);
                }
                true => _ = copies.insert(copy),
            }
        }
        Ok(())
    }

    /// Erases the copies that were made after those of the same message were looked for, or notes them if they are left.
    pub(super) fn erase_new_copies(&mut self) -> Result<()> {
        for group in self.copies.take().chunks(MAX_MESSAGES) {
            self.check()?;
            self.write(|conn, work| {
                let mut copies = BTreeSet::new();
                for first in group {
                    let found = all(conn, *first)?;
                    work.sort_copies(conn, found, &mut copies)?;
                }
                work.delete_copies(conn, &copies)
            })?;
        }
        Ok(())
    }

    /// Deletes copies in other sessions.
    pub(super) fn delete_copies(
        &mut self,
        conn: &Connection,
        copies: &BTreeSet<Address>,
    ) -> BackendResult<()> {
        let mut by_session: BTreeMap<i64, BTreeSet<Address>> = BTreeMap::new();
        for copy in copies {
            by_session.entry(copy.session()).or_default().insert(*copy);
        }
        for (key, addresses) in by_session {
            if let Some(session) = target(conn, key)? {
                self.delete_from(conn, &session, &addresses)?;
            }
        }
        Ok(())
    }

    /// Deletes messages of one session with what belongs to them.
    pub(super) fn delete_from(
        &mut self,
        conn: &Connection,
        session: &Target,
        addresses: &BTreeSet<Address>,
    ) -> BackendResult<()> {
        let row = session_row::find(conn, &session.id)?;
        let Some(mut row) = row.filter(|row| row.key == session.key) else { return Ok(()) };
        let mut living = BTreeSet::new();
        for address in addresses {
            if let Some(id) = self.note_content(conn, *address)? {
                living.insert(*address);
                self.summaries_left
                    .remove(&ErasureSummary { session: session.id.clone(), id: id.clone() });
                self.out.messages.push((session.id.clone(), id));
            }
        }
        if living.is_empty() {
            return Ok(());
        }
        let places: Vec<_> = living.iter().map(|address| (*address, *address)).collect();
        for mention in message::mentions_of(conn, session.key, &places)? {
            match mention {
                Mention::Name(key) => self.forget(conn, key, "name")?,
                Mention::ForkPoint(_) => mention.remove(conn)?,
            }
        }
        let mut covering: BTreeMap<CompactionId, Compaction> = BTreeMap::new();
        for span in compaction::covering(conn, &living)? {
            if self.erasure.summaries {
                self.delete_summary(conn, span)?;
            } else if let Some(found) = compaction::by_key(conn, span.key)? {
                covering.insert(found.id.clone(), found);
            }
        }
        let deleted = delete::delete_at(conn, &mut row, &living)?;
        for id in deleted.compactions_gone {
            if let Some(gone) = covering.remove(&id) {
                self.note_summary(&gone);
            }
            let id = id.as_message();
            self.summaries_left.remove(&ErasureSummary { session: session.id.clone(), id });
            self.out.extent.summaries += 1;
        }
        for id in covering.into_keys() {
            let id = id.as_message();
            self.summaries_left.insert(ErasureSummary { session: session.id.clone(), id });
        }
        for address in &living {
            self.drop_usage(conn, *address, *address)?;
        }
        self.out.extent.messages += living.len() as u64;
        Ok(())
    }

    /// Notes the texts of a message; returns its id, unless it is deleted.
    pub(super) fn note_content(
        &mut self,
        conn: &Connection,
        address: Address,
    ) -> BackendResult<Option<MessageId>> {
        let mut statement = conn.prepare_cached(CONTENT)?;
        let mut rows = statement.query([address])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let id = row.get_ref(0)?.as_str()?;
        self.texts.add_id(id);
        for column in 1..4 {
            // Damaged parts may be no text.
            if let Ok(Some(text)) = row.get_ref(column)?.as_str_or_null() {
                self.texts.add(text);
            }
        }
        let id = MessageId::from(id);
        self.note_all(conn, MARKERS, address.raw())?;
        self.note_all(conn, LABELS, address.raw())?;
        self.note_all(conn, TAGS, address.raw())?;
        Ok(Some(id))
    }

    /// Notes the texts that a statement returns.
    pub(super) fn note_all(&mut self, conn: &Connection, sql: &str, key: i64) -> BackendResult<()> {
        let mut statement = conn.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([key])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                if let Ok(Some(text)) = row.get_ref(column)?.as_str_or_null() {
                    self.texts.add(text);
                }
            }
        }
        Ok(())
    }

    /// Erases the summary of a compaction in a session whose messages stay.
    pub(super) fn erase_summary(&mut self, key: i64) -> Result<()> {
        self.check()?;
        self.write(|conn, work| {
            if compaction::by_key(conn, key)?.is_none() {
                return Ok(());
            }
            let (span, _) = compaction::named_span(conn, key)?;
            work.delete_summary(conn, span)?;
            catalog::touch_view(conn, span.last.session())
        })
    }

    /// Deletes a summary that covers erased messages.
    fn delete_summary(&mut self, conn: &Connection, span: Span) -> BackendResult<()> {
        if let Some(found) = compaction::by_key(conn, span.key)? {
            self.note_summary(&found);
            compaction::remove(conn, span.key)?;
            self.out.extent.summaries += 1;
        }
        Ok(())
    }

    pub(super) fn note_summary(&mut self, summary: &Compaction) {
        self.texts.add(&summary.summary);
        if let Some(details) = &summary.details {
            self.texts.add(details.as_str());
        }
    }

    /// Deletes the usage of a range of messages, or keeps it for totals.
    pub(super) fn drop_usage(
        &mut self,
        conn: &Connection,
        first: Address,
        last: Address,
    ) -> BackendResult<()> {
        let sql = if self.erasure.keep_totals { KEEP_USAGE } else { DELETE_USAGE };
        let count = conn.prepare_cached(sql)?.execute([first, last])?;
        self.out.extent.usage += count as u64;
        Ok(())
    }
}

fn bytes_of(conn: &Connection, address: Address) -> BackendResult<usize> {
    let bytes: Option<i64> = conn
        .prepare_cached("SELECT octet_length(parts) FROM message WHERE address = ?1")?
        .query_row([address], |row| row.get(0))
        .optional()?;
    Ok(bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default())
}

/// Which messages were asked for. A chain of forks has as many copies as sessions, and each of them has the same others: so
/// only the first one is answered.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The first messages of those that have copies.
    asked: HashSet<Address>,
}

impl Copies {
    /// Returns the other messages that are copies of the same one, the first one and deleted ones included; none if another
    /// one of them was asked for before.
    pub(super) fn of(
        &mut self,
        conn: &Connection,
        address: Address,
    ) -> BackendResult<Vec<Address>> {
        let first: Option<Address> =
            conn.prepare_cached(FIRST)?.query_row([address], |row| row.get(0)).optional()?;
        let Some(first) = first.filter(|first| !self.asked.contains(first)) else {
            return Ok(Vec::new());
        };
        let mut found = all(conn, first)?;
        found.retain(|copy| *copy != address);
        if !found.is_empty() {
            self.asked.insert(first);
        }
        Ok(found)
    }

    /// Returns the first messages of those that were asked for, and forgets them.
    pub(super) fn take(&mut self) -> Vec<Address> {
        std::mem::take(&mut self.asked).into_iter().collect()
    }
}

/// Returns a message and its copies. It may have been removed, and its session too.
pub(super) fn all(conn: &Connection, first: Address) -> BackendResult<Vec<Address>> {
    let copies = conn
        .prepare_cached(ALL)?
        .query_map([first], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(copies)
}

pub(in super::super) const FIRST: &str =
    "SELECT coalesce(origin, address) FROM message WHERE address = ?1";
pub(in super::super) const ALL: &str = "SELECT address FROM message WHERE address = ?1
 UNION ALL
 SELECT address FROM message WHERE origin = ?1";

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
            note::add(conn, &session.id)?;
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
