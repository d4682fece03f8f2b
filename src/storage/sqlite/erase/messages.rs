//! Erases messages, and copies of them.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension};

use super::super::catalog::removal::{MAX_BYTES, MAX_MESSAGES};
use super::super::error::BackendResult;
use super::super::mention::{self, Mention};
use super::super::row::session as session_row;
use super::super::{catalog, compaction, delete, transcript};
use super::Work;
use super::copies;
use super::sessions::keep_usage;
use super::targets::{Target, target};
use crate::compaction::Compaction;
use crate::erasure::ErasureSummary;
use crate::error::Result;
use crate::id::{CompactionId, MessageId};
use crate::tree::{Address, Span};

/// The content of a row.
const CONTENT: &str =
    "SELECT id, parts, metadata, extra FROM message WHERE address = ?1 AND id IS NOT NULL";
const MARKERS: &str = "SELECT marker FROM elision WHERE address = ?1";
const LABELS: &str = "SELECT name FROM label WHERE address = ?1";
const TAGS: &str = "SELECT tag FROM message_tag WHERE address = ?1";
const DELETE_USAGE: &str = "DELETE FROM usage WHERE address BETWEEN ?1 AND ?2";
const KEEP_USAGE: &str = keep_usage!("address BETWEEN ?1 AND ?2");

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
                    let found = copies::all(conn, *first)?;
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
        for mention in mention::of(conn, session.key, &places)? {
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
