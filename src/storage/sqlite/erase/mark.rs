//! Marks what an erasure names, in one transaction: no read finds it from then on.
//!
//! Messages of sessions that stay are deleted as `delete` deletes them, and so is all that is few. Whole sessions and
//! transcripts are [taken out](removal::take_out) of the store; what they leave over is deleted later. A row of its own says
//! that bytes are to be overwritten. These rows are all that an erasure notes.
//!
//! A dry run marks, too, and is rolled back.

use std::collections::{BTreeMap, BTreeSet};

use super::super::catalog::{self, removal};
use super::super::context::entry;
use super::super::message::Mention;
use super::super::row::session as session_row;
use super::super::{compaction, delete, inbox, message, transcript};
use super::texts::Texts;
use super::widen::Copied;
use super::{Marked, forbid_import};
use crate::erasure::{Erasure, ErasureCopies, ErasureSummary, ErasureTarget};
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId, check_name};
use crate::sql::{BackendError, BackendResult, Bind, Connection};
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
    marking.erase(relatives)
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
                for range in delete::below(conn, top)? {
                    self.messages.extend(conn.rows::<Address>(LIVING, range)?);
                }
                Ok(())
            }
            ErasureTarget::Session(id) => {
                let key = self.known(id)?;
                for bound in conn.rows::<String>(OPEN_KEYS, key)? {
                    self.erase_items(ITEMS_OF_KEY, &bound)?;
                }
                self.sessions.insert(key, id.clone());
                Ok(())
            }
            ErasureTarget::Unchanged(known) => match removal::is_unchanged(conn, known)? {
                true => self.add(&ErasureTarget::Session(known.id.clone())),
                false => Ok(()),
            },
            ErasureTarget::Owner(owner) => {
                // Blocks without an owner are those of all sessions.
                check_name("owner", owner).map_err(BackendError::Own)?;
                for sql in SESSIONS_OF_OWNER {
                    self.add_sessions(sql, owner)?;
                }
                self.transcripts.extend(transcript::of_owner(conn, owner)?);
                self.marked.names.push(owner.clone());
                for block in conn.rows::<i64>(BLOCKS_OF_OWNER, owner)? {
                    self.erase_texts(Address::range_of(block))?;
                    conn.run("DELETE FROM context_block WHERE key = ?1", block)?;
                }
                self.erase_usage(USAGE_OF_OWNER, owner)?;
                self.erase_items(ITEMS_OF_OWNER, owner)
            }
            ErasureTarget::Author(author) => {
                check_name("author", author).map_err(BackendError::Own)?;
                for address in conn.rows::<Address>(WRITTEN, author)? {
                    // The entries of a transcript have the same texts.
                    match transcript::of_session(conn, address.session())? {
                        Some(_) => _ = self.marked.copies_left.insert(address),
                        None => _ = self.messages.insert(address),
                    }
                }
                self.marked.names.push(author.clone());
                self.marked.out.extent.usage += conn.run(FORGET_AUTHOR, author)? as u64;
                Ok(())
            }
            ErasureTarget::Key(key) => {
                check_name("key", key).map_err(BackendError::Own)?;
                self.add_sessions(SESSIONS_OF_KEY, key)?;
                self.marked.names.push(key.clone());
                let count = conn.run("DELETE FROM binding WHERE key = ?1", key)?;
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

    fn add_sessions(&mut self, sql: &'static str, value: &str) -> BackendResult<()> {
        let found = self.conn.rows::<(i64, String)>(sql, value)?;
        self.sessions.extend(found.into_iter().map(|(key, id)| (key, id.into())));
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
                        self.erase_texts((address, address))?;
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
        Ok(())
    }

    /// Deletes messages of a session that stays.
    fn erase_messages(&mut self, key: i64, addresses: &BTreeSet<Address>) -> BackendResult<()> {
        let conn = self.conn;
        let Some(session) = id_of(conn, key)? else { return Ok(()) };
        let Some(mut row) = session_row::find(conn, &session)? else { return Ok(()) };
        for address in addresses {
            self.note(OF_MESSAGES, address.raw(), address.raw());
            self.erase_usage(USAGE_OF_MESSAGE, address)?;
            if let Some(id) = message::id_at(conn, *address)?.0 {
                let summary = ErasureSummary { session: session.clone(), id: id.clone() };
                self.marked.summaries_left.remove(&summary);
                self.marked.out.messages.push((session.clone(), id));
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
            self.note_summary(key, &session, id);
        }
        for id in deleted.covered_by {
            self.summary(key, &session, id)?;
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
        self.note(OF_SESSIONS, key, key);
        self.thaw(key)?;
        for block in conn.rows::<i64>(entry::BLOCKS, key)? {
            self.erase_texts(Address::range_of(block))?;
        }
        self.erase_usage(USAGE_OF_SESSION, key)?;
        let (first, last) = Address::range_of(key);
        self.note(OF_MESSAGES, first.raw(), last.raw());
        let count = |sql| -> BackendResult<u64> { Ok(conn.one::<i64>(sql, key)?.max(0) as u64) };
        let extent = &mut self.marked.out.extent;
        extent.messages += count("SELECT messages FROM session WHERE key = ?1")?;
        extent.summaries += count("SELECT count(*) FROM compaction WHERE session = ?1")?;
        extent.bindings += count("SELECT count(*) FROM binding WHERE session = ?1")?;
        conn.run(REPLACE_PARENT, (key, id.as_str()))?;
        removal::take_out(conn, key)?;
        if self.erasure.forbid_import {
            forbid_import(conn, &id)?;
        }
        self.marked.out.extent.sessions.push(id);
        Ok(())
    }

    fn erase_transcript(&mut self, key: i64) -> BackendResult<()> {
        let Some(stored) = transcript::stored_in(self.conn, key)? else { return Ok(()) };
        let (first, last) = Address::range_of(key);
        self.note(OF_TRANSCRIPTS, key, key);
        self.note(OF_ENTRIES, first.raw(), last.raw());
        removal::take_out_transcript(self.conn, key)?;
        self.marked.out.extent.entries += stored.entries;
        self.marked.out.extent.transcripts.push(stored.key);
        Ok(())
    }

    /// Erases a range of the texts of a block, with their versions.
    fn erase_texts(&mut self, (first, last): (Address, Address)) -> BackendResult<()> {
        self.note(OF_TEXTS, first.raw(), last.raw());
        self.marked.out.extent.texts += self.conn.one::<u64>(COUNT_TEXTS, (first, last))?;
        entry::remove_range(self.conn, first, last)
    }

    /// Deletes the frozen prompt of a session.
    fn thaw(&mut self, session: i64) -> BackendResult<()> {
        self.note(OF_PROMPTS, session, session);
        session_row::claim(self.conn, session)?;
        let thawed = self.conn.run("DELETE FROM frozen_prompt WHERE session = ?1", session)?;
        self.marked.out.extent.prompts += thawed as u64;
        Ok(())
    }

    /// Removes a detail of a session that stays: its name or metadata.
    fn forget(&mut self, session: i64, detail: &str) -> BackendResult<()> {
        let (read, clear) = match detail {
            "name" => (NAMES, "UPDATE session SET name = NULL WHERE key = ?1 AND name IS NOT NULL"),
            _ => (METADATA, CLEAR_METADATA),
        };
        self.note(read, session, session);
        self.marked.out.extent.details += self.conn.run(clear, session)? as u64;
        Ok(())
    }

    /// Deletes the usage that a statement finds, or keeps it for totals, without what it is of.
    fn erase_usage(&mut self, sql: &'static str, of: impl Bind) -> BackendResult<()> {
        let erase = if self.erasure.keep_totals { KEEP_USAGE } else { DELETE_USAGE };
        for number in self.conn.rows::<i64>(sql, of)? {
            self.conn.run(erase, number)?;
            self.marked.out.extent.usage += 1;
        }
        Ok(())
    }

    /// Erases the pending items that a statement finds. The id of each stays, as that of a handled one: otherwise the source
    /// could deliver it again.
    fn erase_items(&mut self, sql: &'static str, name: &str) -> BackendResult<()> {
        if self.erasure.keep_items {
            return Ok(());
        }
        for number in self.conn.rows::<i64>(sql, name)? {
            self.note(OF_ITEMS, number, number);
            inbox::end(self.conn, number)?;
            self.marked.out.extent.items += 1;
        }
        Ok(())
    }

    /// Notes a range of rows whose texts are read later.
    fn note(&mut self, of: &'static [&'static str], first: i64, last: i64) {
        match self.marked.rows.last_mut() {
            Some((same, _, before)) if *same == of && *before + 1 == first => *before = last,
            _ => self.marked.rows.push((of, first, last)),
        }
    }
}

impl Marked {
    /// Reads the texts of what was marked, in the state before.
    pub(super) fn read_texts(&mut self, conn: &Connection, texts: &mut Texts) -> BackendResult<()> {
        self.names.drain(..).for_each(|name| texts.add_name(&name));
        for (of, first, last) in self.rows.drain(..) {
            for sql in of {
                texts.add_rows(conn, sql, (first, last))?;
            }
        }
        for summary in self.summaries.drain(..) {
            texts.add_rows(conn, SUMMARY, summary)?;
        }
        Ok(())
    }

    /// Names the copies and the summaries that are left, for the outcome.
    pub(super) fn name_what_is_left(&mut self, conn: &Connection) -> BackendResult<()> {
        let extent = &mut self.out.extent;
        let erased: BTreeSet<&SessionId> = extent.sessions.iter().collect();
        extent.copies_left.clear();
        let mut sessions = by_session(&self.copies_left);
        for copied in &self.relatives_left {
            sessions.entry(copied.session).or_default();
        }
        for (key, addresses) in sessions {
            // One that was erased with a later group has none.
            let session = id_of(conn, key)?.filter(|id| !erased.contains(id));
            let Some(session) = session else { continue };
            let (mut ids, mut blocks, mut details) = (Vec::new(), Vec::new(), Vec::new());
            for address in addresses {
                ids.extend(conn.first::<String>(ID, address)?.map(MessageId::from));
            }
            for copied in self.relatives_left.iter().filter(|copied| copied.session == key) {
                match &copied.label {
                    Some(label) => blocks.push(label.clone()),
                    None => details.push(copied.detail.clone()),
                }
            }
            blocks.dedup();
            let messages = ids.len() as u64;
            extent.copies_left.push(ErasureCopies { session, messages, ids, blocks, details });
        }
        let summaries = self.summaries_left.iter().filter(|it| !erased.contains(&it.session));
        extent.summaries_left = summaries.cloned().collect();
        Ok(())
    }
}

/// Returns the id of the session with this key.
pub(super) fn id_of(conn: &Connection, key: i64) -> BackendResult<Option<SessionId>> {
    let id = conn.first::<String>("SELECT id FROM session WHERE key = ?1", key)?;
    Ok(id.map(SessionId::from))
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
const SESSIONS_OF_OWNER: [&str; 2] = [
    "SELECT key, id
   FROM session
  WHERE owner = ?1 AND deleted_at IS NULL
  ORDER BY key /*LOCK session*/",
    "SELECT key, id
   FROM session
  WHERE owner = ?1 AND deleted_at IS NOT NULL
  ORDER BY key /*LOCK session*/",
];
const OPEN_KEYS: &str = "SELECT key FROM binding WHERE session = ?1 AND ended_at IS NULL";
const SESSIONS_OF_KEY: &str = "SELECT session.key, session.id
   FROM binding
   JOIN session ON session.key = binding.session
  WHERE binding.key = ?1
  ORDER BY session.key /*LOCK session*/";
const WRITTEN: &str = "SELECT address
   FROM message INDEXED BY message_author
  WHERE author = ?1
    AND author IS NOT NULL
    AND address >> 32 NOT IN (SELECT session FROM leftover)";
const BLOCKS_OF_OWNER: &str = "SELECT key
   FROM context_block
  WHERE session = 0 AND owner = ?1
  ORDER BY key /*LOCK context_block*/";
/// The pending items of an owner.
pub(in super::super) const ITEMS_OF_OWNER: &str = "SELECT number
   FROM inbox_source
  CROSS JOIN inbox_item
  WHERE inbox_item.source = inbox_source.key AND inbox_item.key IS NOT NULL AND owner = ?1";
/// Those of a key in any source.
const ITEMS_OF_KEY: &str = "SELECT number
   FROM inbox_source
  CROSS JOIN inbox_item
  WHERE inbox_item.source = inbox_source.key AND inbox_item.key = ?1";
const COUNT_TEXTS: &str = "SELECT count(*) FROM context_entry WHERE address BETWEEN ?1 AND ?2";

/// The parent of an erased session takes its place: a later erasure of that one finds what it left here.
const REPLACE_PARENT: &str = "UPDATE session
    SET parent_session = (SELECT erased.parent_session FROM session AS erased WHERE erased.key = ?1),
        fork_point = NULL
  WHERE parent_session = ?2";
const CLEAR_METADATA: &str =
    "UPDATE session SET metadata = NULL WHERE key = ?1 AND metadata IS NOT NULL";

const USAGE_OF_OWNER: &str = "SELECT number FROM usage WHERE owner = ?1";
const USAGE_OF_SESSION: &str = "SELECT number FROM usage WHERE session = ?1";
const USAGE_OF_MESSAGE: &str = "SELECT number FROM usage WHERE address = ?1 AND session = ?1 >> 32";
const DELETE_USAGE: &str = "DELETE FROM usage WHERE number = ?1";
const KEEP_USAGE: &str = "UPDATE usage
    SET session = NULL, address = NULL, owner = NULL, source = NULL, answer = NULL, author = NULL
  WHERE number = ?1";
const FORGET_AUTHOR: &str = "UPDATE usage SET author = NULL WHERE author = ?1";

// The texts of what is erased, by ranges of keys or addresses.

const OF_SESSIONS: &[&str] = &[
    "SELECT id, name, metadata, end_reason, owner FROM session WHERE key BETWEEN ?1 AND ?2",
    "SELECT tag FROM session_tag WHERE session BETWEEN ?1 AND ?2",
    "SELECT key FROM binding WHERE session BETWEEN ?1 AND ?2",
    "SELECT label FROM context_block WHERE session BETWEEN ?1 AND ?2",
    "SELECT summary, details FROM compaction WHERE session BETWEEN ?1 AND ?2",
];
const OF_MESSAGES: &[&str] = &[
    "SELECT id, parts, metadata, extra
   FROM message
  WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL",
    "SELECT marker FROM elision WHERE address BETWEEN ?1 AND ?2",
    "SELECT name FROM label WHERE address BETWEEN ?1 AND ?2 AND session = ?1 >> 32",
    "SELECT tag FROM message_tag WHERE address BETWEEN ?1 AND ?2",
];
const OF_TEXTS: &[&str] = &[
    "SELECT key, title, description, content
   FROM context_entry
  WHERE address BETWEEN ?1 AND ?2",
    "SELECT title, description, content
   FROM context_version
  WHERE entry BETWEEN ?1 AND ?2",
];
const OF_PROMPTS: &[&str] = &["SELECT sections FROM frozen_prompt WHERE session BETWEEN ?1 AND ?2"];
const NAMES: &[&str] = &["SELECT name FROM session WHERE key BETWEEN ?1 AND ?2"];
const METADATA: &[&str] = &["SELECT metadata FROM session WHERE key BETWEEN ?1 AND ?2"];
const OF_ITEMS: &[&str] =
    &["SELECT key, owner, note, body FROM inbox_item WHERE number BETWEEN ?1 AND ?2"];
const OF_TRANSCRIPTS: &[&str] = &["SELECT session, project, subpath, owner, summary
   FROM transcript
  WHERE key BETWEEN ?1 AND ?2"];
const OF_ENTRIES: &[&str] =
    &["SELECT uuid, entry FROM transcript_entry WHERE address BETWEEN ?1 AND ?2"];
const SUMMARY: &str = "SELECT summary, details FROM compaction WHERE session = ?1 AND id = ?2";
