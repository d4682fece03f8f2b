//! Finds the rows that an erasure names.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, params};

use super::super::delete;
use super::super::error::{BackendError, BackendResult};
use super::super::row::session::{self as session_row, SessionRow};
use super::super::transcript::projection;
use super::super::{compaction, message, transcript};
use crate::erasure::{Erasure, ErasureExtent, ErasureTarget};
use crate::error::Error;
use crate::id::SessionId;
use crate::tree::Address;

/// A session that an erasure names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) key: i64,
    pub(super) id: SessionId,
}

#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) sessions: BTreeSet<Target>,
    /// Messages of sessions that stay.
    pub(super) messages: BTreeMap<Target, BTreeSet<Address>>,
    pub(super) owners: Vec<String>,
    pub(super) keys: Vec<String>,
    /// The rows of transcripts. A main one comes after the others of its session, because it leads to them.
    pub(super) transcripts: Vec<i64>,
    /// How many entries they have.
    pub(super) entries: u64,
    /// How many messages there are in all.
    pub(super) total: u64,
}

impl Targets {
    /// Finds what an erasure names. While an erasure is unfinished, unknown sessions and messages count as erased.
    pub(super) fn find(
        conn: &Connection,
        erasure: &Erasure,
        is_unfinished: bool,
    ) -> BackendResult<Self> {
        let mut targets = Self::default();
        for target in &erasure.targets {
            match targets.add(conn, target) {
                Err(BackendError::Own(
                    Error::UnknownSession { .. } | Error::UnknownMessage { .. },
                )) if is_unfinished => {}
                added => added?,
            }
        }
        targets.add_projected(conn)?;
        let Self { sessions, messages, .. } = &mut targets;
        messages.retain(|session, addresses| !addresses.is_empty() && !sessions.contains(session));
        let mut total: u64 = messages.values().map(|addresses| addresses.len() as u64).sum();
        for session in &*sessions {
            total += messages_of(conn, session.key)?;
        }
        targets.total = total;
        targets.transcripts.sort_unstable();
        targets.transcripts.dedup();
        let mut mains = Vec::new();
        for key in std::mem::take(&mut targets.transcripts) {
            let Some(transcript) = transcript::read::stored_in(conn, key)? else { continue };
            targets.entries += transcript.entries;
            let group =
                if transcript.key.is_main() { &mut mains } else { &mut targets.transcripts };
            group.push(key);
        }
        targets.transcripts.extend(mains);
        Ok(targets)
    }

    fn add(&mut self, conn: &Connection, target: &ErasureTarget) -> BackendResult<()> {
        match target {
            ErasureTarget::Messages { session, ids } => {
                let (target, row) = known(conn, session)?;
                refuse_projected(conn, &target)?;
                // Those that are known are erased, also if an unfinished erasure has erased others.
                let mut unknown = None;
                let addresses = self.messages.entry(target).or_default();
                for id in ids {
                    match message::require(conn, Some(row.key), session, id) {
                        Ok(address) => _ = addresses.insert(address),
                        Err(error) => unknown = Some(error),
                    }
                }
                unknown.map_or(Ok(()), Err)
            }
            ErasureTarget::Branch { session, id } => {
                let (target, row) = known(conn, session)?;
                refuse_projected(conn, &target)?;
                let top = message::require(conn, Some(row.key), session, id)?;
                let addresses = self.messages.entry(target).or_default();
                for (first, last) in delete::below(conn, top)? {
                    living(conn, first, last, addresses)?;
                }
                Ok(())
            }
            ErasureTarget::Session(id) => {
                let (target, _) = known(conn, id)?;
                self.sessions.insert(target);
                Ok(())
            }
            ErasureTarget::Owner(owner) => {
                if owner.is_empty() {
                    // Blocks without an owner are those of all sessions.
                    let why = "it is empty".to_owned();
                    let given = String::new();
                    return Err(BackendError::Own(Error::InvalidName {
                        what: "owner",
                        given,
                        why,
                    }));
                }
                self.add_sessions(conn, OF_OWNER, owner)?;
                self.transcripts.extend(transcript::delete::of_owner(conn, owner)?);
                self.owners.push(owner.clone());
                Ok(())
            }
            ErasureTarget::Key(key) => {
                self.add_sessions(conn, OF_KEY, key)?;
                self.keys.push(key.clone());
                Ok(())
            }
            ErasureTarget::Transcript(key) => {
                self.transcripts.extend(transcript::delete::named(conn, key)?);
                Ok(())
            }
        }
    }

    /// Adds the transcripts that the sessions show, and the sessions that show the transcripts.
    fn add_projected(&mut self, conn: &Connection) -> BackendResult<()> {
        for session in &self.sessions {
            self.transcripts.extend(projection::of_session(conn, session.key)?);
        }
        for transcript in &self.transcripts {
            if let Some((key, id)) = projection::session_of(conn, *transcript)? {
                self.sessions.insert(Target { key, id });
            }
        }
        Ok(())
    }

    fn add_sessions(&mut self, conn: &Connection, sql: &str, value: &str) -> BackendResult<()> {
        let mut statement = conn.prepare_cached(sql)?;
        let found = statement.query_map([value], |row| {
            Ok(Target { key: row.get(0)?, id: SessionId::from(row.get::<_, String>(1)?) })
        })?;
        for target in found {
            self.sessions.insert(target?);
        }
        Ok(())
    }

    /// Returns what would be removed.
    pub(super) fn extent(
        &self,
        conn: &Connection,
        erasure: &Erasure,
    ) -> BackendResult<ErasureExtent> {
        let mut extent = ErasureExtent { messages: self.total, ..ErasureExtent::default() };
        for session in &self.sessions {
            extent.sessions.push(session.id.clone());
            let key = session.key;
            extent.texts += count(conn, TEXTS_OF_SESSION, params![key])?;
            extent.summaries += count(conn, SUMMARIES_OF_SESSION, params![key])?;
            extent.prompts += count(conn, PROMPTS_OF_SESSION, params![key])?;
            extent.bindings += count(conn, BINDINGS_OF_SESSION, params![key])?;
            extent.usage += count(conn, USAGE_OF_SESSION, params![key])?;
        }
        for addresses in self.messages.values() {
            extent.summaries += match erasure.summaries {
                true => compaction::covering(conn, addresses)?.len() as u64,
                false => 0,
            };
            for address in addresses {
                extent.usage += count(conn, USAGE_OF_MESSAGE, params![address])?;
            }
        }
        for owner in &self.owners {
            extent.texts += count(conn, TEXTS_OF_OWNER, params![owner])?;
        }
        for key in &self.keys {
            extent.bindings += count(conn, BINDINGS_OF_KEY, params![key])?;
        }
        for key in &self.transcripts {
            if let Some(transcript) = transcript::read::stored_in(conn, *key)? {
                extent.entries += transcript.entries;
                extent.transcripts.push(transcript.key);
            }
        }
        if erasure.copies {
            extent.messages += self.copies(conn)?.len() as u64;
        }
        Ok(extent)
    }

    /// Returns the copies of all messages in sessions that stay.
    fn copies(&self, conn: &Connection) -> BackendResult<BTreeSet<Address>> {
        let keys: BTreeSet<i64> = self.sessions.iter().map(|session| session.key).collect();
        let mut copies = BTreeSet::new();
        let mut look = |address: Address| -> BackendResult<()> {
            for copy in copies_of(conn, address)? {
                let is_named = self.messages.values().any(|named| named.contains(&copy));
                if !keys.contains(&copy.session()) && !is_named {
                    copies.insert(copy);
                }
            }
            Ok(())
        };
        for address in self.messages.values().flatten() {
            look(*address)?;
        }
        for session in &self.sessions {
            let (first, last) = Address::range_of(session.key);
            let mut all = BTreeSet::new();
            living(conn, first, last, &mut all)?;
            for address in all {
                look(address)?;
            }
        }
        Ok(copies)
    }
}

/// Returns the other messages that are copies of the same one, the first one included.
pub(super) fn copies_of(conn: &Connection, address: Address) -> BackendResult<Vec<Address>> {
    let copies = conn
        .prepare_cached(COPIES)?
        .query_map([address], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(copies)
}

/// The first one may have been removed, and its session too.
const COPIES: &str = "WITH first (address) AS
        (SELECT coalesce(origin, address) FROM message WHERE address = ?1)
 SELECT message.address
   FROM first
   JOIN message ON message.address = first.address
  WHERE message.id IS NOT NULL AND message.address <> ?1
 UNION ALL
 SELECT message.address
   FROM first
  CROSS JOIN message ON message.origin = first.address
  WHERE message.address <> ?1";

fn known(conn: &Connection, id: &SessionId) -> BackendResult<(Target, SessionRow)> {
    let row = session_row::find(conn, id)?
        .ok_or_else(|| BackendError::Own(Error::UnknownSession { id: id.clone() }))?;
    Ok((Target { key: row.key, id: id.clone() }, row))
}

/// Returns an error if a session shows a transcript: its entries have the same texts, and lead to each other.
fn refuse_projected(conn: &Connection, session: &Target) -> BackendResult<()> {
    match projection::of_session(conn, session.key)? {
        None => Ok(()),
        Some(_) => Err(BackendError::Own(Error::InvalidName {
            what: "session",
            given: session.id.to_string(),
            why: "it shows a transcript, which can only be erased as a whole".to_owned(),
        })),
    }
}

/// Adds the messages of a range that are not deleted.
fn living(
    conn: &Connection,
    first: Address,
    last: Address,
    addresses: &mut BTreeSet<Address>,
) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(
        "SELECT address FROM message WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL",
    )?;
    for address in statement.query_map([first, last], |row| row.get(0))? {
        addresses.insert(address?);
    }
    Ok(())
}

fn messages_of(conn: &Connection, key: i64) -> BackendResult<u64> {
    let messages: Option<i64> = conn
        .prepare_cached("SELECT messages FROM session WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    Ok(messages.and_then(|messages| u64::try_from(messages).ok()).unwrap_or_default())
}

fn count(conn: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> BackendResult<u64> {
    Ok(conn.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
}

/// Sessions in the trash have an index of their own.
const OF_OWNER: &str = "SELECT key, id FROM session WHERE owner = ?1 AND deleted_at IS NULL
 UNION ALL
 SELECT key, id FROM session WHERE owner = ?1 AND deleted_at IS NOT NULL";
const OF_KEY: &str = "SELECT DISTINCT session.key, session.id
   FROM binding
   JOIN session ON session.key = binding.session
  WHERE binding.key = ?1";
const TEXTS_OF_SESSION: &str = "SELECT count(*)
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
  WHERE session = ?1 AND owner = ''";
const TEXTS_OF_OWNER: &str = "SELECT count(*)
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
  WHERE session = 0 AND owner = ?1";
const SUMMARIES_OF_SESSION: &str = "SELECT count(*) FROM compaction WHERE session = ?1";
const PROMPTS_OF_SESSION: &str = "SELECT count(*) FROM frozen_prompt WHERE session = ?1";
const BINDINGS_OF_SESSION: &str = "SELECT count(*) FROM binding WHERE session = ?1";
/// The bindings of its sessions are counted with the sessions.
const BINDINGS_OF_KEY: &str = "SELECT count(*)
   FROM binding
  WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM session WHERE session.key = binding.session)";
const USAGE_OF_SESSION: &str = "SELECT count(*) FROM usage WHERE session = ?1";
const USAGE_OF_MESSAGE: &str = "SELECT count(*) FROM usage WHERE address = ?1";
