//! Finds what else an erasure has to erase, or to name: copies, and messages that are summaries of erased ones.
//!
//! Three kinds of messages are summaries: that of a compaction is in a row of its own, which `messages` finds. A *branch
//! summary* is a message whose metadata names the end of the branch. A session that continues another one *opens* with a
//! summary of it.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};

use super::super::ancestry::Ancestry;
use super::super::error::BackendResult;
use super::super::{compaction, message, path, transcript};
use super::children_of;
use super::copies::Copies;
use super::targets::{Messages, Target, Targets, living, target};
use crate::erasure::{Erasure, ErasureSummary};
use crate::id::{MessageId, SessionId};
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
