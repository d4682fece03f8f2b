//! Finds what else an erasure has to erase, or to name: copies, and messages that are summaries of erased ones.
//!
//! Three kinds of messages are summaries: that of a compaction is in a row of its own, which `messages` finds. A *branch
//! summary* is a message whose metadata names the end of the branch. A session that continues another one *opens* with a
//! summary of it.
//!
//! Relatives of an erased session have texts of blocks, metadata and a name of it. A fork and a continuation begin with copies of the session's own texts and of its details. A text is such a copy if a
//! relative has it under the same label and key, in any version of both. Relatives are the sessions that name each other as
//! parents, and those that share messages.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};

use rusqlite::{Connection, OptionalExtension, params};

use super::super::error::BackendResult;
use super::super::{compaction, message, path, transcript};
use super::delete::{Copies, keys};
use super::targets::{Messages, Target, Targets, living, target};
use super::{Work, children_of};
use crate::erasure::{Erasure, ErasureSummary};
use crate::error::Result;
use crate::id::{MessageId, SessionId};
use crate::storage::sqlite::path::Ancestry;
use crate::tree::Address;

impl Targets {
    /// Adds copies and summaries of what is named, then those of what was added, until there are no more. Summaries that
    /// are not to be erased are noted.
    pub(super) fn widen(&mut self, conn: &Connection, erasure: &Erasure) -> BackendResult<()> {
        let mut new: BTreeSet<Address> =
            self.messages.iter().flat_map(Messages::values).flatten().copied().collect();
        let (mut found, mut copies) = (BTreeSet::new(), Copies::default());
        // By session.
        let mut deleted: BTreeMap<i64, BTreeSet<Address>> = BTreeMap::new();
        for (child, opening) in self.continuations(conn)? {
            match erasure.summaries {
                true => _ = found.insert(opening),
                false => self.continued_in.push(child.id),
            }
        }
        if erasure.forks {
            for session in &self.sessions {
                let (first, last) = Address::range_of(session.key);
                living(conn, first, last, &mut new)?;
            }
        }
        loop {
            if erasure.forks {
                for address in &new {
                    for copy in copies.of(conn, *address)? {
                        if message::id_at(conn, copy)?.0.is_none() {
                            deleted.entry(copy.session()).or_default().insert(copy);
                            continue;
                        }
                        match transcript::of_session(conn, copy.session())? {
                            Some(_) => _ = self.kept_copies.insert(copy),
                            None => _ = found.insert(copy),
                        }
                    }
                }
            }
            for (summary, id) in self.branch_summaries(conn, &new)? {
                match erasure.summaries {
                    true => _ = found.insert(summary),
                    false => _ = self.summaries_left.insert(id),
                }
            }
            let mut level = Messages::new();
            new = std::mem::take(&mut found);
            new.retain(|address| !self.has(*address));
            for address in &new {
                if let Some(session) = target(conn, address.session())? {
                    level.entry(session).or_default().insert(*address);
                }
            }
            if level.is_empty() {
                return self.add_summaries_of_deleted(conn, &deleted, erasure);
            }
            self.messages.push(level);
        }
    }

    /// Adds the summaries of compactions that cover a copy that was deleted, or notes them if they are not to be erased.
    fn add_summaries_of_deleted(
        &mut self,
        conn: &Connection,
        deleted: &BTreeMap<i64, BTreeSet<Address>>,
        erasure: &Erasure,
    ) -> BackendResult<()> {
        for (key, addresses) in deleted {
            let Some(session) = target(conn, *key)?.filter(|_| !self.has_session(*key)) else {
                continue;
            };
            for span in compaction::covering(conn, addresses)? {
                if erasure.summaries {
                    self.summaries.insert(span.key);
                } else {
                    let id = compaction::id_of(conn, span.key)?.as_message();
                    self.summaries_left.insert(ErasureSummary { session: session.id.clone(), id });
                }
            }
        }
        Ok(())
    }

    /// Returns the sessions that open with a summary of one that is erased, and those that continue these.
    fn continuations(&self, conn: &Connection) -> BackendResult<Vec<(Target, Address)>> {
        let mut parents: Vec<Target> = self.sessions.iter().rev().cloned().collect();
        let mut known: BTreeSet<i64> = self.sessions.iter().map(|session| session.key).collect();
        let mut found = Vec::new();
        let mut statement = conn.prepare_cached(OPENING)?;
        while let Some(parent) = parents.pop() {
            for key in children_of(conn, &parent.id)? {
                let mut rows = statement.query(params![key, parent.id.as_str()])?;
                let Some(row) = rows.next()? else { continue };
                if known.insert(key) {
                    let child = Target { key, id: SessionId::from(row.get_ref(0)?.as_str()?) };
                    parents.push(child.clone());
                    found.push((child, row.get(1)?));
                }
            }
        }
        Ok(found)
    }

    /// Returns the branch summaries of messages in sessions that stay.
    fn branch_summaries(
        &self,
        conn: &Connection,
        of: &BTreeSet<Address>,
    ) -> BackendResult<Vec<(Address, ErasureSummary)>> {
        let mut by_session: BTreeMap<i64, BTreeSet<Address>> = BTreeMap::new();
        for address in of.iter().filter(|address| !self.has_session(address.session())) {
            by_session.entry(address.session()).or_default().insert(*address);
        }
        let mut found = Vec::new();
        for (key, messages) in by_session {
            let Some(oldest) = messages.first().copied() else { continue };
            let mut nearest = Ancestry::of(conn, key, &messages);
            let mut session: Option<SessionId> = None;
            for summary in BranchSummary::after(conn, oldest)? {
                if self.has(summary.address) || !summary.covers(conn, &messages, &mut nearest)? {
                    continue;
                }
                let name = match &session {
                    Some(name) => name.clone(),
                    None => match target(conn, key)? {
                        Some(found) => session.insert(found.id).clone(),
                        None => break,
                    },
                };
                found.push((summary.address, ErasureSummary { session: name, id: summary.id }));
            }
        }
        Ok(found)
    }
}

/// A message that is the summary of a branch.
struct BranchSummary {
    address: Address,
    id: MessageId,
    parent: Option<Address>,
    /// The last message of the branch.
    from: MessageId,
}

impl BranchSummary {
    /// Returns the branch summaries after a message of a session.
    fn after(conn: &Connection, oldest: Address) -> BackendResult<Vec<Self>> {
        let (_, end) = Address::range_of(oldest.session());
        let mut statement = conn.prepare_cached(BRANCH_SUMMARIES)?;
        let mut rows = statement.query([oldest, end])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(Self {
                address: row.get(0)?,
                id: MessageId::from(row.get_ref(1)?.as_str()?),
                parent: row.get(2)?,
                from: MessageId::from(row.get_ref(3)?.as_str()?),
            });
        }
        Ok(found)
    }

    /// Returns whether it covers one of some messages: one that is on the path to the end of the branch, and not on the
    /// path to the summary.
    fn covers(
        &self,
        conn: &Connection,
        messages: &BTreeSet<Address>,
        nearest: &mut Ancestry<'_>,
    ) -> BackendResult<bool> {
        let is_off_path = |address: Address| -> BackendResult<bool> {
            Ok(!path::holds(conn, self.parent, address)?)
        };
        if let Some(from) = message::find(conn, self.address.session(), &self.from)? {
            // If the nearest one is on the path to the summary, those above it are, too.
            return nearest.nearest(from)?.map_or(Ok(false), is_off_path);
        }
        // The end of the branch was deleted, so it is not known which branch it was.
        for address in messages.range(..self.address) {
            if is_off_path(*address)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

const BRANCH_SUMMARIES: &str = "SELECT address, id, parent, metadata ->> '$.branch_summary.from'
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
    AND instr(metadata, '\"branch_summary\"') > 0
    AND iif(json_valid(metadata), json_type(metadata, '$.branch_summary.from'), NULL) = 'text'";

/// The opening message of a session that continues another one.
pub(in super::super) const OPENING: &str = "SELECT session.id, message.address
   FROM session NOT INDEXED
   JOIN message ON message.address = (session.key << 32) + 1
  WHERE session.key = ?1
    AND parent_session = ?2
    AND message.id IS NOT NULL
    AND message.origin IS NULL
    AND iif(json_valid(message.metadata), message.metadata ->> '$.split.session', NULL) = ?2";

/// What a session that stays has of the erased ones.
#[derive(Debug)]
pub(super) struct Relative {
    pub(super) key: i64,
    /// Texts of its blocks, with the labels.
    pub(super) texts: BTreeSet<(Address, String)>,
    pub(super) has_name: bool,
    pub(super) has_metadata: bool,
}

/// The current texts of a session's own blocks and their earlier versions.
const TEXTS: &str = "SELECT label, context_entry.key, address, content
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
  WHERE session = ?1 AND owner = '' AND content IS NOT NULL
 UNION ALL
 SELECT label, context_entry.key, address, context_version.content
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
   JOIN context_version ON entry = address
  WHERE session = ?1 AND owner = '' AND context_version.content IS NOT NULL";
const DETAILS: &str = "SELECT name, metadata FROM session WHERE key = ?1";
const PARENT: &str = "SELECT parent.key
   FROM session
   JOIN session AS parent ON parent.id = session.parent_session
  WHERE session.key = ?1";
/// The first message of a fork is a copy.
const COPIED_FROM: &str =
    "SELECT origin >> 32 FROM message WHERE address = ?1 AND origin IS NOT NULL";
const COPIED_TO: &str = "SELECT DISTINCT address >> 32 FROM message WHERE origin BETWEEN ?1 AND ?2";

impl Targets {
    /// Returns the relatives of erased sessions that stay and have something of them.
    pub(super) fn relatives(&self, conn: &Connection) -> BackendResult<Vec<Relative>> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::<i64>::new());
        for session in &self.sessions {
            if seen.contains(&session.key) {
                continue;
            }
            let family = Self::family(conn, session.clone())?;
            seen.extend(&family);
            let (gone, kept): (Vec<i64>, Vec<i64>) =
                family.into_iter().partition(|key| self.has_session(*key));
            if !kept.is_empty() {
                found.extend(copies(conn, &gone, &kept)?);
            }
        }
        Ok(found)
    }

    /// Returns a session, its relatives, and theirs.
    fn family(conn: &Connection, session: Target) -> BackendResult<BTreeSet<i64>> {
        let mut family = BTreeSet::from([session.key]);
        let mut left = vec![session];
        while let Some(Target { key, id }) = left.pop() {
            let (first, last) = Address::range_of(key);
            let mut next = children_of(conn, &id)?;
            next.extend(keys(conn, PARENT, [key])?);
            next.extend(keys(conn, COPIED_FROM, [Address::new(key, 1)])?);
            next.extend(keys(conn, COPIED_TO, [first, last])?);
            for key in next {
                if family.insert(key) {
                    left.extend(target(conn, key)?);
                }
            }
        }
        Ok(family)
    }
}

/// Returns what these sessions have of erased ones.
fn copies(conn: &Connection, gone: &[i64], kept: &[i64]) -> BackendResult<Vec<Relative>> {
    let random = RandomState::new();
    let (mut texts, mut names, mut metadata) = (HashSet::new(), HashSet::new(), HashSet::new());
    for session in gone {
        each_text(conn, *session, |label, key, _, content| {
            texts.insert((label.to_owned(), key.to_owned(), random.hash_one(content)));
        })?;
        let (name, json) = details(conn, *session)?;
        names.extend(name);
        metadata.extend(json);
    }
    let mut found = Vec::new();
    for session in kept {
        let mut copied = BTreeSet::new();
        each_text(conn, *session, |label, key, address, content| {
            if texts.contains(&(label.to_owned(), key.to_owned(), random.hash_one(content))) {
                copied.insert((address, label.to_owned()));
            }
        })?;
        let (name, json) = details(conn, *session)?;
        let has_name = name.is_some_and(|name| names.contains(&name));
        let has_metadata = json.is_some_and(|json| metadata.contains(&json));
        if has_name || has_metadata || !copied.is_empty() {
            found.push(Relative { key: *session, texts: copied, has_name, has_metadata });
        }
    }
    Ok(found)
}

fn each_text(
    conn: &Connection,
    session: i64,
    mut take: impl FnMut(&str, &str, Address, &str),
) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(TEXTS)?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        take(text(0)?, text(1)?, row.get(2)?, text(3)?);
    }
    Ok(())
}

/// Returns the name and the metadata of a session.
fn details(conn: &Connection, key: i64) -> BackendResult<(Option<String>, Option<String>)> {
    let found = conn
        .prepare_cached(DETAILS)?
        .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.unwrap_or_default())
}

impl Work<'_> {
    /// Erases what relatives have of the sessions, or notes it if it is left.
    ///
    /// Comes after the sessions are in the trash, where nobody forks them, and before their texts are gone: so after a crash it
    /// is found again.
    pub(super) fn erase_relatives(&mut self) -> Result<()> {
        let targets = self.targets;
        let relatives = self.database.read(|conn| targets.relatives(conn))?;
        if !self.erasure.forks {
            self.relatives_left.extend(relatives);
            return Ok(());
        }
        for Relative { key, texts, has_name, has_metadata } in relatives {
            for (address, _) in &texts {
                self.erase_texts((*address, *address), Some(key))?;
            }
            self.write(|conn, work| {
                if has_name {
                    work.forget(conn, key, "name")?;
                }
                if has_metadata {
                    work.forget(conn, key, "metadata")?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Removes a detail of a session that stays.
    pub(super) fn forget(
        &mut self,
        conn: &Connection,
        session: i64,
        detail: &'static str,
    ) -> BackendResult<()> {
        self.note_all(conn, &format!("SELECT {detail} FROM session WHERE key = ?1"), session)?;
        let count = conn
            .prepare_cached(&format!(
                "UPDATE session SET {detail} = NULL WHERE key = ?1 AND {detail} IS NOT NULL"
            ))?
            .execute([session])?;
        self.out.extent.details += count as u64;
        Ok(())
    }
}
