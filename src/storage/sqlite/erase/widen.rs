//! Finds what else an erasure has to erase, or to list: copies, and messages that are summaries of erased ones.
//!
//! Three kinds of messages are summaries: that of a compaction has a row of its own, which its deleted messages lead to. A
//! *branch summary* is a message whose metadata names the end of the branch. A session that continues another one *opens* with
//! a summary of it.
//!
//! A fork and a continuation begin with copies of the session's own texts and details. A text is such a copy if a relative has
//! it under the same label and key, in any version of both. Relatives are the sessions that name each other as parents, and
//! those that share messages.

use std::collections::{BTreeSet, HashSet};

use super::super::path::Ancestry;
use super::super::{compaction, message, path, transcript};
use super::mark::{Marking, by_session, id_of};
use crate::erasure::ErasureSummary;
use crate::id::{MessageId, SessionId};
use crate::message::Json;
use crate::sql::{BackendResult, Connection, Read};
use crate::tree::Address;

impl Marking<'_> {
    /// Adds copies and summaries of what is named, then those of what was added, until there are no more. Those that are not
    /// to be erased are listed.
    pub(super) fn widen(&mut self) -> BackendResult<()> {
        let conn = self.conn;
        let (mut found, mut tombstones) = (BTreeSet::new(), BTreeSet::new());
        let mut asked = HashSet::new();
        let openings = self.continuations()?;
        self.sort_summaries(openings, &mut found);
        for key in self.sessions.keys().copied().collect::<Vec<_>>() {
            let range = Address::range_of(key);
            let mut others = copies_of(conn, conn.rows(ORIGINALS, range)?, &mut asked)?;
            others.extend(conn.rows::<Address>(COPIES_OF_RANGE, range)?);
            self.sort_copies(others, &mut found, &mut tombstones)?;
        }
        let mut new = self.messages.clone();
        while !new.is_empty() || !found.is_empty() {
            for address in &new {
                let others = copies_of(conn, conn.rows(ORIGINAL, address)?, &mut asked)?;
                self.sort_copies(others, &mut found, &mut tombstones)?;
            }
            let summaries = self.branch_summaries(&new)?;
            self.sort_summaries(summaries, &mut found);
            new = std::mem::take(&mut found);
            new.retain(|address| !self.has(*address));
            self.messages.extend(&new);
        }
        let mut left = std::mem::take(&mut self.marked.copies_left);
        left.retain(|copy| !self.has(*copy));
        self.marked.copies_left = left;
        self.summaries_of_tombstones(&tombstones)
    }

    /// Adds the copies that are to be erased to `found`, and lists those that are left. A copy that was deleted before may
    /// still be in a summary.
    fn sort_copies(
        &mut self,
        copies: Vec<Address>,
        found: &mut BTreeSet<Address>,
        tombstones: &mut BTreeSet<Address>,
    ) -> BackendResult<()> {
        for copy in copies.into_iter().filter(|copy| !self.has(*copy)).collect::<Vec<_>>() {
            // That of a session that was removed is left over.
            if id_of(self.conn, copy.session())?.is_none() {
                continue;
            }
            let is_deleted = message::id_at(self.conn, copy)?.0.is_none();
            match self.erasure.forks {
                true if is_deleted => _ = tombstones.insert(copy),
                // Its transcript has the same text.
                true if transcript::of_session(self.conn, copy.session())?.is_none() => {
                    found.insert(copy);
                }
                _ if is_deleted => {}
                _ => _ = self.marked.copies_left.insert(copy),
            }
        }
        Ok(())
    }

    /// Adds the summaries that are to be erased to `found`, or lists those that are left.
    fn sort_summaries(
        &mut self,
        summaries: Vec<(Address, ErasureSummary)>,
        found: &mut BTreeSet<Address>,
    ) {
        for (address, summary) in summaries {
            match self.erasure.summaries {
                true => _ = found.insert(address),
                false => _ = self.marked.summaries_left.insert(summary),
            }
        }
    }

    /// Erases the summaries of compactions that cover a copy that was deleted, or lists them.
    fn summaries_of_tombstones(&mut self, tombstones: &BTreeSet<Address>) -> BackendResult<()> {
        for (key, addresses) in by_session(tombstones) {
            let Some(session) = id_of(self.conn, key)? else { continue };
            for span in compaction::covering(self.conn, &addresses)? {
                let id = compaction::id_of(self.conn, span.key)?;
                self.summary(key, &session, id)?;
            }
        }
        Ok(())
    }

    /// Returns the messages with which sessions open that continue one that is erased, or one of these.
    fn continuations(&self) -> BackendResult<Vec<(Address, ErasureSummary)>> {
        let mut parents: Vec<i64> = self.sessions.keys().rev().copied().collect();
        let mut known: BTreeSet<i64> = self.sessions.keys().copied().collect();
        let mut found = Vec::new();
        while let Some(parent) = parents.pop() {
            self.conn.each(OPENINGS, parent, |row| {
                let (key, parent, metadata): (_, String, String) = Read::read(row, 0)?;
                let (opening, session, id): (_, String, String) = Read::read(row, 3)?;
                let split = text_in(&metadata, "/split/session");
                if split.is_some_and(|session| session == parent) && known.insert(key) {
                    parents.push(key);
                    let (session, id) = (SessionId::from(session), MessageId::from(id));
                    found.push((opening, ErasureSummary { session, id }));
                }
                Ok(true)
            })?;
        }
        Ok(found)
    }

    /// Returns the branch summaries of messages in sessions that stay.
    fn branch_summaries(
        &self,
        of: &BTreeSet<Address>,
    ) -> BackendResult<Vec<(Address, ErasureSummary)>> {
        let mut found = Vec::new();
        for (key, messages) in by_session(of) {
            let Some(oldest) = messages.first().copied() else { continue };
            let Some(session) = id_of(self.conn, key)? else { continue };
            let mut nearest = Ancestry::of(self.conn, key, &messages);
            let (_, end) = Address::range_of(key);
            type Row = (Address, String, Option<Address>, String);
            for (summary, id, parent, metadata) in
                self.conn.rows::<Row>(BRANCH_SUMMARIES, (oldest, end))?
            {
                let from = text_in(&metadata, "/branch_summary/from");
                let Some(from) = from.map(MessageId::from) else { continue };
                let from = message::find(self.conn, key, &from)?;
                if !self.has(summary)
                    && covers(self.conn, (summary, parent, from), &messages, &mut nearest)?
                {
                    let (session, id) = (session.clone(), MessageId::from(id));
                    found.push((summary, ErasureSummary { session, id }));
                }
            }
        }
        Ok(found)
    }

    /// Returns what relatives of the sessions have of them.
    pub(super) fn relatives(&self) -> BackendResult<BTreeSet<Copied>> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for key in self.sessions.keys().copied() {
            let mut family: Vec<i64> = seen.insert(key).then_some(key).into_iter().collect();
            let mut at = 0;
            while let Some(key) = family.get(at) {
                let next = self.conn.rows::<i64>(RELATIVES, key)?;
                family.extend(next.into_iter().filter(|key| seen.insert(*key)));
                at += 1;
            }
            let (gone, kept): (Vec<i64>, Vec<i64>) =
                family.into_iter().partition(|key| self.sessions.contains_key(key));
            let mut texts = HashSet::new();
            for session in gone.into_iter().filter(|_| !kept.is_empty()) {
                for (copied, text) in Copied::all_in(self.conn, session)? {
                    texts.insert((copied.label, copied.detail, text));
                }
            }
            for session in kept {
                for (copied, text) in Copied::all_in(self.conn, session)? {
                    if texts.contains(&(copied.label.clone(), copied.detail.clone(), text)) {
                        found.insert(copied);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// What a session may have copied from another one, apart from its messages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Copied {
    pub(super) session: i64,
    /// The label of the block of a text.
    pub(super) label: Option<String>,
    /// The key of a text, or the name of a column.
    pub(super) detail: String,
    /// Of a text.
    pub(super) address: Option<Address>,
}

impl Copied {
    fn all_in(conn: &Connection, session: i64) -> BackendResult<Vec<(Self, String)>> {
        conn.rows_with(TEXTS_AND_DETAILS, session, |row| {
            let (label, detail, address, text) = Read::read(row, 0)?;
            Ok((Self { session, label, detail, address }, text))
        })
    }
}

/// Returns a text of some metadata.
fn text_in(metadata: &str, pointer: &str) -> Option<String> {
    let metadata = Json::parse(metadata).ok()?.value();
    Some(metadata.pointer(pointer)?.as_str()?.to_owned())
}

/// Returns the messages that are copies of some, and these, unless they were asked for before: a chain of forks has as many
/// copies of a message as sessions, and each of them has the same others.
fn copies_of(
    conn: &Connection,
    originals: Vec<Address>,
    asked: &mut HashSet<Address>,
) -> BackendResult<Vec<Address>> {
    let mut found = Vec::new();
    for original in originals {
        if asked.insert(original) {
            found.extend(conn.rows::<Address>(COPIES, original)?);
        }
    }
    Ok(found)
}

/// Returns whether a branch summary, with its parent and the end of the branch, covers one of some messages: one that is on the
/// path to that end, and not on the path to the summary.
fn covers(
    conn: &Connection,
    (summary, parent, from): (Address, Option<Address>, Option<Address>),
    messages: &BTreeSet<Address>,
    nearest: &mut Ancestry<'_>,
) -> BackendResult<bool> {
    let is_off_path = |address: Address| Ok(!path::holds(conn, parent, address)?);
    match from {
        // If the nearest one is on the path to the summary, those above it are, too.
        Some(from) => nearest.nearest(from)?.map_or(Ok(false), is_off_path),
        // The end of the branch was deleted, so it is not known which branch it was.
        None => {
            let mut older = messages.range(..summary).copied();
            older.try_fold(false, |is_off, address| Ok(is_off || is_off_path(address)?))
        }
    }
}

const ORIGINAL: &str = "SELECT coalesce(origin, address) FROM message WHERE address = ?1";
pub(in super::super) const COPIES: &str = "SELECT address FROM message WHERE address = ?1
 UNION ALL
 SELECT address FROM message WHERE origin = ?1";
/// The copies of a session's messages, without those of deleted ones.
const COPIES_OF_RANGE: &str = "SELECT copy.address
   FROM message AS copy
  WHERE copy.origin BETWEEN ?1 AND ?2
    AND EXISTS (SELECT 1 FROM message WHERE address = copy.origin AND id IS NOT NULL)";
const ORIGINALS: &str = "SELECT origin
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
    AND origin IS NOT NULL";

const BRANCH_SUMMARIES: &str = "SELECT address, id, parent, metadata
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
    AND metadata LIKE '%\"branch_summary\"%'";

/// The sessions that may continue one, with their opening messages.
const OPENINGS: &str = "SELECT child.key, session.id, message.metadata,
        message.address, child.id, message.id
   FROM session
  CROSS JOIN session AS child
  CROSS JOIN message
  WHERE session.key = ?1
    AND child.parent_session = session.id
    AND message.address = (child.key << 32) + 1
    AND message.id IS NOT NULL
    AND message.origin IS NULL
    AND message.metadata IS NOT NULL";

/// The first message of a fork is a copy.
const RELATIVES: &str = "SELECT child.key
   FROM session
  CROSS JOIN session AS child
  WHERE session.key = ?1 AND child.parent_session = session.id
 UNION ALL
 SELECT parent.key
   FROM session
  CROSS JOIN session AS parent
  WHERE session.key = ?1 AND parent.id = session.parent_session
 UNION ALL
 SELECT origin >> 32 FROM message WHERE address = (?1 << 32) + 1 AND origin IS NOT NULL
 UNION ALL
 SELECT DISTINCT address >> 32
   FROM message
  WHERE origin BETWEEN (?1 << 32) AND (?1 << 32 | 4294967295)";

/// The current texts of a session's own blocks, their earlier versions, and its details.
const TEXTS_AND_DETAILS: &str = "SELECT label, context_entry.key, address, content
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
  WHERE session = ?1 AND owner = '' AND content IS NOT NULL
 UNION ALL
 SELECT label, context_entry.key, address, context_version.content
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
   JOIN context_version ON entry = address
  WHERE session = ?1 AND owner = '' AND context_version.content IS NOT NULL
 UNION ALL
 SELECT NULL, 'name', NULL, name FROM session WHERE key = ?1 AND name IS NOT NULL
 UNION ALL
 SELECT NULL, 'metadata', NULL, metadata FROM session WHERE key = ?1 AND metadata IS NOT NULL";
