//! Marks what an erasure names, in one transaction: no read finds it from then on.
//!
//! Messages of sessions that stay are deleted as `delete` deletes them, and so is all that is few. Whole sessions and
//! transcripts are [taken out](removal::take_out) of the store; what they leave over is deleted later. A row of its own says
//! that bytes are to be overwritten. These rows are all that an erasure notes.
//!
//! A dry run marks, too, and is rolled back.

use std::collections::{BTreeMap, BTreeSet};

use crate::sql::Connection;
use rusqlite::types::FromSql;
use rusqlite::{Params, params};

use super::super::catalog::{self, removal};
use super::super::context::{self, entry};
use super::super::error::{BackendError, BackendResult};
use super::super::message::Mention;
use super::super::row::session as session_row;
use super::super::{compaction, delete, inbox, message, transcript};
use super::texts::Texts;
use super::widen::Copied;
use super::{Marked, forbid};
use crate::erasure::{Erasure, ErasureCopies, ErasureSummary, ErasureTarget};
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId, check_name};
use crate::tree::Address;

/// The transaction that marks.
pub(super) struct Marking<'a> {
    pub(super) conn: &'a Connection<'a>,
    pub(super) erasure: &'a Erasure,
    pub(super) marked: &'a mut Marked,
    /// The sessions that are erased as a whole, by key.
    pub(super) sessions: BTreeMap<i64, SessionId>,
    /// The messages of sessions that stay.
    pub(super) messages: BTreeSet<Address>,
    transcripts: BTreeSet<i64>,
}

/// Marks what an erasure names. What is unknown counts as erased if another erasure is to be finished.
pub(super) fn mark(
    conn: &Connection,
    erasure: &Erasure,
    marked: &mut Marked,
    is_resumed: bool,
) -> BackendResult<()> {
    let (sessions, messages, transcripts) = Default::default();
    let mut marking = Marking { conn, erasure, marked, sessions, messages, transcripts };
    for target in &erasure.targets {
        match marking.add(target) {
            Err(BackendError::Own(Error::UnknownSession { .. } | Error::UnknownMessage { .. }))
                if is_resumed =>
            {
                marking.marked.is_partial = true
            }
            added => added?,
        }
    }
    marking.add_shown()?;
    let sessions = &marking.sessions;
    marking.messages.retain(|address| !sessions.contains_key(&address.session()));
    marking.widen()?;
    let relatives = marking.relatives()?;
    marking.erase(relatives)?;
    marking.name_what_is_left()
}

impl Marking<'_> {
    fn add(&mut self, target: &ErasureTarget) -> BackendResult<()> {
        let conn = self.conn;
        match target {
            ErasureTarget::Messages { session, ids } => {
                let key = self.known_without_transcript(session)?;
                // Those that are known are erased, also if an unfinished erasure has erased others.
                let mut unknown = Ok(());
                for id in ids {
                    match message::require(conn, Some(key), session, id) {
                        Ok(address) => _ = self.messages.insert(address),
                        Err(error) => unknown = Err(error),
                    }
                }
                unknown
            }
            ErasureTarget::Branch { session, id } => {
                let key = self.known_without_transcript(session)?;
                let top = message::require(conn, Some(key), session, id)?;
                for (first, last) in delete::below(conn, top)? {
                    self.messages.extend(column::<Address>(conn, LIVING, [first, last])?);
                }
                Ok(())
            }
            ErasureTarget::Session(id) => {
                let key = self.known(id)?;
                for bound in column::<String>(conn, OPEN_KEYS, [key])? {
                    self.erase_items(ITEMS_OF_KEY, &bound)?;
                }
                self.sessions.insert(key, id.clone());
                Ok(())
            }
            ErasureTarget::Unchanged(known) => {
                if removal::is_unchanged(conn, known)? {
                    return self.add(&ErasureTarget::Session(known.id.clone()));
                }
                Ok(())
            }
            ErasureTarget::Owner(owner) => {
                // Blocks without an owner are those of all sessions.
                check_name("owner", owner).map_err(BackendError::Own)?;
                self.add_sessions(SESSIONS_OF_OWNER, owner)?;
                self.transcripts.extend(transcript::of_owner(conn, owner)?);
                self.marked.texts.add_name(owner);
                self.erase_blocks(owner)?;
                self.erase_usage("owner = ?1", [owner])?;
                self.erase_items(ITEMS_OF_OWNER, owner)
            }
            ErasureTarget::Author(author) => {
                check_name("author", author).map_err(BackendError::Own)?;
                for address in column::<Address>(conn, WRITTEN, [author])? {
                    // The entries of a transcript have the same texts.
                    match transcript::of_session(conn, address.session())? {
                        Some(_) => _ = self.marked.copies_left.insert(address),
                        None => _ = self.messages.insert(address),
                    }
                }
                Ok(())
            }
            ErasureTarget::Key(key) => {
                check_name("key", key).map_err(BackendError::Own)?;
                self.add_sessions(SESSIONS_OF_KEY, key)?;
                self.marked.texts.add_name(key);
                let sql = "DELETE FROM binding WHERE key = ?1";
                let count = conn.sqlite()?.prepare_cached(sql)?.execute([key])?;
                self.marked.out.extent.bindings += count as u64;
                self.erase_items(ITEMS_OF_KEY, key)
            }
            ErasureTarget::Transcript(key) => {
                self.transcripts.extend(transcript::named(conn, key)?);
                Ok(())
            }
            ErasureTarget::Deleted => Ok(()),
        }
    }

    fn known(&self, id: &SessionId) -> BackendResult<i64> {
        let found = session_row::find(self.conn, id)?;
        let unknown = || BackendError::Own(Error::UnknownSession { id: id.clone() });
        found.map(|row| row.key).ok_or_else(unknown)
    }

    /// Returns the key of a session of which messages may be erased.
    fn known_without_transcript(&self, id: &SessionId) -> BackendResult<i64> {
        let key = self.known(id)?;
        match transcript::of_session(self.conn, key)? {
            None => Ok(key),
            Some(_) => Err(BackendError::Own(Error::InvalidValue {
                what: "session",
                given: id.to_string(),
                why: "it shows a transcript, which can only be erased as a whole".to_owned(),
            })),
        }
    }

    fn add_sessions(&mut self, sql: &str, value: &str) -> BackendResult<()> {
        let mut statement = self.conn.sqlite()?.prepare_cached(sql)?;
        let found = statement.query_map([value], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for session in found {
            let (key, id): (i64, String) = session?;
            self.sessions.insert(key, id.into());
        }
        Ok(())
    }

    /// Adds the transcripts that the sessions show, and the sessions that show the transcripts.
    fn add_shown(&mut self) -> BackendResult<()> {
        for key in self.sessions.keys() {
            self.transcripts.extend(transcript::of_session(self.conn, *key)?);
        }
        for key in &self.transcripts {
            self.sessions.extend(transcript::session_of(self.conn, *key)?);
        }
        Ok(())
    }

    /// Returns whether a message is erased, by itself or with its session.
    pub(super) fn has(&self, address: Address) -> bool {
        self.sessions.contains_key(&address.session()) || self.messages.contains(&address)
    }

    fn erase(&mut self, relatives: BTreeSet<Copied>) -> BackendResult<()> {
        for (key, addresses) in by_session(&std::mem::take(&mut self.messages)) {
            self.erase_messages(key, &addresses)?;
        }
        if self.erasure.forks {
            for Copied { session, detail, address, .. } in relatives {
                match address {
                    Some(address) => {
                        self.erase_texts(address, address)?;
                        self.thaw(session)?;
                    }
                    None => self.forget(session, &detail)?,
                }
            }
        } else {
            self.marked.relatives_left.extend(relatives);
        }
        for key in std::mem::take(&mut self.transcripts) {
            self.erase_transcript(key)?;
        }
        for (key, id) in std::mem::take(&mut self.sessions) {
            self.erase_session(key, id)?;
        }
        for target in &self.erasure.targets {
            // Last: of the usage that is left.
            if let ErasureTarget::Author(author) = target {
                self.marked.texts.add_name(author);
                let count = self.conn.sqlite()?.prepare_cached(FORGET_AUTHOR)?.execute([author])?;
                self.marked.out.extent.usage += count as u64;
            }
        }
        Ok(())
    }

    /// Deletes messages of a session that stays.
    fn erase_messages(&mut self, key: i64, addresses: &BTreeSet<Address>) -> BackendResult<()> {
        let conn = self.conn;
        let Some(info) = session_row::info_by_key(conn, key)? else { return Ok(()) };
        let Some(mut row) = session_row::find(conn, &info.id)? else { return Ok(()) };
        for address in addresses {
            self.marked.add_messages(*address, *address);
            self.erase_usage("session = ?1 >> 32 AND address = ?1", [address])?;
            if let Some(id) = message::id_at(conn, *address)?.0 {
                let summary = ErasureSummary { session: info.id.clone(), id: id.clone() };
                self.marked.summaries_left.remove(&summary);
                self.marked.out.messages.push((info.id.clone(), id));
            }
        }
        let places: Vec<_> = addresses.iter().map(|address| (*address, *address)).collect();
        for mention in message::mentions_of(conn, key, &places)? {
            match mention {
                Mention::Name(key) => self.forget(key, "name")?,
                Mention::ForkPoint(_) => mention.remove(conn)?,
            }
        }
        let deleted = delete::delete_at(conn, &mut row, addresses)?;
        for id in &deleted.compactions_gone {
            self.note_summary(key, &info.id, id);
        }
        for id in deleted.covered_by {
            self.summary(key, &info.id, id)?;
        }
        self.marked.out.extent.messages += addresses.len() as u64;
        Ok(())
    }

    /// Deletes the summary of a compaction that covers an erased message, or lists it if it is left.
    pub(super) fn summary(
        &mut self,
        key: i64,
        session: &SessionId,
        id: CompactionId,
    ) -> BackendResult<()> {
        if !self.erasure.summaries {
            let id = id.as_message();
            self.marked.summaries_left.insert(ErasureSummary { session: session.clone(), id });
            return Ok(());
        }
        if let Some(span) = compaction::find(self.conn, key, &id)? {
            compaction::remove(self.conn, span.key)?;
            catalog::touch_view(self.conn, key)?;
            self.note_summary(key, session, &id);
        }
        Ok(())
    }

    fn note_summary(&mut self, key: i64, session: &SessionId, id: &CompactionId) {
        let summary = ErasureSummary { session: session.clone(), id: id.as_message() };
        self.marked.summaries_left.remove(&summary);
        self.marked.summaries.push((key, id.clone()));
        self.marked.out.extent.summaries += 1;
    }

    /// Takes a session out of the store.
    fn erase_session(&mut self, key: i64, id: SessionId) -> BackendResult<()> {
        let conn = self.conn;
        for sql in TEXTS_OF_SESSION {
            self.note(sql, [key])?;
        }
        self.thaw(key)?;
        for block in column::<i64>(conn, entry::BLOCKS, [key])? {
            let (first, last) = Address::range_of(block);
            self.erase_texts(first, last)?;
        }
        self.erase_usage("session = ?1", [key])?;
        let (first, last) = Address::range_of(key);
        self.marked.add_messages(first, last);
        let count = |sql| -> BackendResult<u64> {
            Ok(conn.sqlite()?.prepare_cached(sql)?.query_row([key], |row| row.get(0))?)
        };
        let extent = &mut self.marked.out.extent;
        extent.messages += count("SELECT max(messages, 0) FROM session WHERE key = ?1")?;
        extent.summaries += count("SELECT count(*) FROM compaction WHERE session = ?1")?;
        extent.bindings += count("SELECT count(*) FROM binding WHERE session = ?1")?;
        conn.sqlite()?.prepare_cached(REPLACE_PARENT)?.execute(params![key, id.as_str()])?;
        removal::take_out(conn, key)?;
        if self.erasure.forbid_import {
            forbid::add(conn, &id)?;
        }
        self.marked.out.extent.sessions.push(id);
        Ok(())
    }

    fn erase_transcript(&mut self, key: i64) -> BackendResult<()> {
        let Some(stored) = transcript::stored_in(self.conn, key)? else { return Ok(()) };
        self.note(NAMES_OF_TRANSCRIPT, [key])?;
        removal::take_out_transcript(self.conn, key)?;
        self.marked.entries.push(Address::range_of(key));
        self.marked.out.extent.entries += stored.entries;
        self.marked.out.extent.transcripts.push(stored.key);
        Ok(())
    }

    /// Erases the context blocks of an owner, and the frozen prompts of sessions that stay and quote one.
    fn erase_blocks(&mut self, owner: &str) -> BackendResult<()> {
        let conn = self.conn;
        let mut quotable = Texts::default();
        for block in column::<i64>(conn, BLOCKS_OF_OWNER, [owner])? {
            let (first, last) = Address::range_of(block);
            for text in column::<String>(conn, CONTENTS, [first, last])? {
                // A prompt is stored as JSON; a text always has a form in it.
                let quoted = serde_json::to_string(&text).unwrap_or_default();
                quotable.add_name(quoted.trim_matches('"'));
            }
            self.erase_texts(first, last)?;
            conn.sqlite()?
                .prepare_cached("DELETE FROM context_block WHERE key = ?1")?
                .execute([block])?;
        }
        if quotable.is_empty() {
            return Ok(());
        }
        let mut quoting = Vec::new();
        {
            let mut prompts =
                conn.sqlite()?.prepare("SELECT session, sections FROM frozen_prompt")?;
            let mut rows = prompts.query([])?;
            while let Some(row) = rows.next()? {
                if quotable.are_in(row.get_ref(1)?.as_str()?) {
                    quoting.push(row.get(0)?);
                }
            }
        }
        quoting.into_iter().try_for_each(|session| self.thaw(session))
    }

    /// Erases a range of the texts of a block, with their versions.
    fn erase_texts(&mut self, first: Address, last: Address) -> BackendResult<()> {
        self.marked.out.extent.texts += self.note(ENTRIES, [first, last])?;
        self.note(VERSIONS, [first, last])?;
        entry::remove_range(self.conn, first, last)
    }

    /// Deletes the frozen prompt of a session.
    fn thaw(&mut self, session: i64) -> BackendResult<()> {
        self.marked.out.extent.prompts += self.note(context::FROZEN, [session])?;
        context::thaw(self.conn, session)
    }

    /// Removes a detail of a session that stays: its name or metadata.
    fn forget(&mut self, session: i64, detail: &str) -> BackendResult<()> {
        let some = format!("key = ?1 AND {detail} IS NOT NULL");
        self.note(&format!("SELECT {detail} FROM session WHERE {some}"), [session])?;
        let sql = format!("UPDATE session SET {detail} = NULL WHERE {some}");
        self.marked.out.extent.details +=
            self.conn.sqlite()?.prepare_cached(&sql)?.execute([session])? as u64;
        Ok(())
    }

    /// Deletes the usage under a condition, or keeps it for totals, without what it is of.
    fn erase_usage(&mut self, condition: &str, values: impl Params) -> BackendResult<()> {
        let verb = if self.erasure.keep_totals { KEEP_USAGE } else { "DELETE FROM usage" };
        let sql = format!("{verb} WHERE {condition}");
        self.marked.out.extent.usage +=
            self.conn.sqlite()?.prepare_cached(&sql)?.execute(values)? as u64;
        Ok(())
    }

    /// Erases the pending items that a statement finds. The id of each stays, as that of a handled one: otherwise the source
    /// could deliver it again.
    fn erase_items(&mut self, sql: &str, name: &str) -> BackendResult<()> {
        if self.erasure.keep_items {
            return Ok(());
        }
        self.note(sql, [name])?;
        for number in column::<i64>(self.conn, sql, [name])? {
            inbox::end(self.conn, number)?;
            self.marked.out.extent.items += 1;
        }
        Ok(())
    }

    /// Notes the texts that a statement returns; returns how many rows it does.
    fn note(&mut self, sql: &str, values: impl Params) -> BackendResult<u64> {
        self.marked.texts.add_rows(self.conn, sql, values)
    }

    /// Names the copies that are left, for the outcome.
    fn name_what_is_left(&mut self) -> BackendResult<()> {
        let Marked { out, copies_left, relatives_left, summaries_left, .. } = &mut *self.marked;
        let mut ids = by_session(copies_left);
        relatives_left.iter().for_each(|copied| _ = ids.entry(copied.session).or_default());
        let erased: BTreeSet<SessionId> = out.extent.sessions.iter().cloned().collect();
        out.extent.copies_left.clear();
        for (key, addresses) in ids {
            // One that was erased with a later group has none.
            let info = session_row::info_by_key(self.conn, key)?;
            let Some(info) = info.filter(|info| !erased.contains(&info.id)) else { continue };
            let mut copies = ErasureCopies::in_session(info.id);
            for address in addresses {
                let id = column::<String>(self.conn, ID, [address])?;
                copies.ids.extend(id.into_iter().map(MessageId::from));
            }
            copies.messages = copies.ids.len() as u64;
            for Copied { label, detail, .. } in relatives_left.iter().filter(|it| it.session == key)
            {
                match label {
                    Some(label) => copies.blocks.push(label.clone()),
                    None => copies.details.push(detail.clone()),
                }
            }
            copies.blocks.dedup();
            out.extent.copies_left.push(copies);
        }
        out.extent.summaries_left = summaries_left.iter().cloned().collect();
        out.extent.continued_in.retain(|session| !erased.contains(session));
        Ok(())
    }
}

impl Marked {
    /// Adds a range of messages to those whose texts are read later.
    fn add_messages(&mut self, first: Address, last: Address) {
        match self.messages.last_mut() {
            Some((_, before)) if before.raw() + 1 == first.raw() => *before = last,
            _ => self.messages.push((first, last)),
        }
    }

    /// Reads the texts of messages, entries and summaries, in the state before they were marked.
    pub(super) fn read_texts(&mut self, conn: &Connection) -> BackendResult<()> {
        let texts = &mut self.texts;
        for range in self.messages.drain(..) {
            for sql in [CONTENT, MARKERS, LABELS, TAGS] {
                texts.add_rows(conn, sql, range)?;
            }
        }
        for range in self.entries.drain(..) {
            texts.add_rows(conn, ENTRIES_OF_TRANSCRIPT, range)?;
        }
        for (key, id) in self.summaries.drain(..) {
            texts.add_rows(conn, SUMMARY, params![key, id.as_str()])?;
        }
        Ok(())
    }
}

/// Returns the first column of the rows of a statement.
pub(super) fn column<T: FromSql>(
    conn: &Connection,
    sql: &str,
    values: impl Params,
) -> BackendResult<Vec<T>> {
    let mut statement = conn.sqlite()?.prepare_cached(sql)?;
    let found = statement.query_map(values, |row| row.get(0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn by_session(addresses: &BTreeSet<Address>) -> BTreeMap<i64, BTreeSet<Address>> {
    let mut by_session: BTreeMap<i64, BTreeSet<Address>> = BTreeMap::new();
    for address in addresses {
        by_session.entry(address.session()).or_default().insert(*address);
    }
    by_session
}

const ID: &str = "SELECT id FROM message WHERE address = ?1 AND id IS NOT NULL";
const LIVING: &str =
    "SELECT address FROM message WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL";
/// Sessions in the trash have an index of their own.
const SESSIONS_OF_OWNER: &str =
    "SELECT key, id FROM session WHERE owner = ?1 AND deleted_at IS NULL
 UNION ALL
 SELECT key, id FROM session WHERE owner = ?1 AND deleted_at IS NOT NULL";
const OPEN_KEYS: &str = "SELECT key FROM binding WHERE session = ?1 AND ended_at IS NULL";
const SESSIONS_OF_KEY: &str = "SELECT session.key, session.id
   FROM binding
   JOIN session ON session.key = binding.session
  WHERE binding.key = ?1";
const WRITTEN: &str = "SELECT address
   FROM message INDEXED BY message_author
  WHERE author = ?1
    AND author IS NOT NULL
    AND address >> 32 NOT IN (SELECT session FROM leftover)";
const BLOCKS_OF_OWNER: &str = "SELECT key FROM context_block WHERE session = 0 AND owner = ?1";
/// The pending items of an owner.
pub(in super::super) const ITEMS_OF_OWNER: &str = "SELECT number, inbox_item.key, owner, note, body
   FROM inbox_source
  CROSS JOIN inbox_item ON inbox_item.source = inbox_source.key
  WHERE inbox_item.key IS NOT NULL AND owner = ?1";
/// Those of a key in any source.
const ITEMS_OF_KEY: &str = "SELECT number, inbox_item.key, owner, note, body
   FROM inbox_source
  CROSS JOIN inbox_item ON inbox_item.source = inbox_source.key
  WHERE inbox_item.key = ?1";

const CONTENTS: &str = "SELECT content
   FROM context_entry
  WHERE address BETWEEN ?1 AND ?2 AND content IS NOT NULL
 UNION ALL
 SELECT content
   FROM context_version
  WHERE entry BETWEEN ?1 AND ?2 AND content IS NOT NULL";
const ENTRIES: &str = "SELECT key, title, description, content
   FROM context_entry
  WHERE address BETWEEN ?1 AND ?2";
const VERSIONS: &str = "SELECT title, description, content
   FROM context_version
  WHERE entry BETWEEN ?1 AND ?2";

/// What is deleted with the row of a session. Texts and messages are deleted elsewhere.
const TEXTS_OF_SESSION: &[&str] = &[
    "SELECT id, name, metadata, end_reason, owner FROM session WHERE key = ?1",
    "SELECT tag FROM session_tag WHERE session = ?1",
    "SELECT key FROM binding WHERE session = ?1",
    "SELECT label FROM context_block WHERE session = ?1",
    "SELECT summary, details FROM compaction WHERE session = ?1",
];
/// The parent of an erased session takes its place: a later erasure of that one finds what it left here.
const REPLACE_PARENT: &str = "UPDATE session
    SET parent_session = (SELECT erased.parent_session FROM session AS erased WHERE erased.key = ?1),
        fork_point = NULL
  WHERE parent_session = ?2";
const FORGET_AUTHOR: &str = "UPDATE usage SET author = NULL WHERE author = ?1";
const KEEP_USAGE: &str = "UPDATE usage
    SET session = NULL, address = NULL, owner = NULL, source = NULL, answer = NULL, author = NULL";

const CONTENT: &str = "SELECT id, parts, metadata, extra
   FROM message
  WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL";
const MARKERS: &str = "SELECT marker FROM elision WHERE address BETWEEN ?1 AND ?2";
const LABELS: &str =
    "SELECT name FROM label WHERE session = ?1 >> 32 AND address BETWEEN ?1 AND ?2";
const TAGS: &str = "SELECT tag FROM message_tag WHERE address BETWEEN ?1 AND ?2";
const NAMES_OF_TRANSCRIPT: &str = "SELECT session AS id, project, subpath, owner, summary
   FROM transcript
  WHERE key = ?1";
const ENTRIES_OF_TRANSCRIPT: &str =
    "SELECT uuid AS id, entry FROM transcript_entry WHERE address BETWEEN ?1 AND ?2";
const SUMMARY: &str = "SELECT summary, details FROM compaction WHERE session = ?1 AND id = ?2";
