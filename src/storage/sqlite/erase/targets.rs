//! Finds the rows that an erasure names.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, params};

use super::super::catalog::binding;
use super::super::delete;
use super::super::error::{BackendError, BackendResult};
use super::super::row::session::{self as session_row, SessionRow};
use super::super::{message, transcript};
use super::delete::keys;
use super::note::{self, ToDelete};
use super::owner;
use crate::erasure::{Erasure, ErasureSummary, ErasureTarget};
use crate::error::Error;
use crate::id::{SessionId, check_name};
use crate::tree::Address;

/// A session that an erasure names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) key: i64,
    pub(super) id: SessionId,
}

/// A context block of an owner, up to the last text that an erasure names: later ones stay, with the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) key: i64,
    pub(super) last: Address,
}

impl Block {
    /// Returns the block with all texts that it has now.
    pub(super) fn whole(conn: &Connection, key: i64) -> BackendResult<Self> {
        let (first, last) = Address::range_of(key);
        let newest: Option<Address> =
            conn.prepare_cached(NEWEST_TEXT)?.query_row([first, last], |row| row.get(0))?;
        Ok(Self { key, last: newest.unwrap_or(first) })
    }

    /// Returns whether there is something to erase: an old text, or an empty block.
    fn is_left(self, conn: &Connection) -> BackendResult<bool> {
        let (first, _) = Address::range_of(self.key);
        Ok(conn.prepare_cached(BLOCK_IS_LEFT)?.exists(params![self.key, first, self.last])?)
    }
}

/// Messages, by session.
pub(super) type Messages = BTreeMap<Target, BTreeSet<Address>>;

#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) sessions: BTreeSet<Target>,
    /// Messages of sessions that stay, in the order in which they are erased: copies and summaries, which were found by
    /// others, come before these. So after a crash they are found again.
    pub(super) messages: Vec<Messages>,
    pub(super) owners: Vec<String>,
    pub(super) authors: Vec<String>,
    /// The context blocks of the owners.
    pub(super) blocks: Vec<Block>,
    pub(super) keys: Vec<String>,
    /// The newest row of usage, and the newest binding: later ones stay.
    pub(super) newest_usage: i64,
    pub(super) newest_binding: i64,
    /// The keys whose pending items are erased: those that are named, and those that lead to a named session.
    pub(super) item_keys: Vec<String>,
    /// The newest item of an inbox: later ones stay.
    pub(super) newest_item: i64,
    /// The rows of transcripts. A main one comes after the others of its session, because it leads to them.
    pub(super) transcripts: Vec<i64>,
    /// How many entries they have.
    pub(super) entries: u64,
    /// How many messages there are in all.
    pub(super) total: u64,
    /// The branch summaries of erased messages that are left.
    pub(super) summaries_left: BTreeSet<ErasureSummary>,
    /// The keys of compactions whose summaries cover a copy that was deleted.
    pub(super) summaries: BTreeSet<i64>,
    /// Copies, and messages of an author, in sessions that show transcripts, which have the same texts; none is erased by itself.
    pub(super) kept_copies: BTreeSet<Address>,
    /// The sessions that begin with a summary of an erased one, and keep it.
    pub(super) continued_in: Vec<SessionId>,
    /// Whether an erasure that is not complete may have deleted a part of what is named.
    pub(super) is_partial: bool,
}

impl Targets {
    /// Finds what an erasure names. While an erasure is not complete, unknown sessions and messages count as erased.
    pub(super) fn find(conn: &Connection, erasure: &Erasure) -> BackendResult<Self> {
        let is_unfinished = !note::all(conn)?.is_empty();
        let (mut targets, mut named) = (Self::default(), Messages::new());
        for target in &erasure.targets {
            match targets.add(conn, target, &mut named) {
                Err(BackendError::Own(
                    Error::UnknownSession { .. } | Error::UnknownMessage { .. },
                )) if is_unfinished => targets.is_partial = true,
                added => added?,
            }
        }
        targets.add_projected(conn)?;
        named.retain(|session, addresses| {
            !addresses.is_empty() && !targets.sessions.contains(session)
        });
        targets.messages.push(named);
        targets.widen(conn, erasure)?;
        targets.messages.reverse();
        for session in targets.sessions.iter().filter(|_| is_unfinished) {
            targets.is_partial |= note::has_session(conn, session.key)?;
        }
        if !targets.owners.is_empty() || !targets.authors.is_empty() {
            targets.newest_usage = newest(conn, "SELECT max(number) FROM usage")?;
        }
        if !targets.keys.is_empty() {
            targets.newest_binding = newest(conn, "SELECT max(number) FROM binding")?;
        }
        if erasure.keep_items {
            // The newest item stays 0, so none of an owner is named either.
            targets.item_keys.clear();
        } else if !targets.owners.is_empty() || !targets.item_keys.is_empty() {
            targets.newest_item = newest(conn, "SELECT max(number) FROM inbox_item")?;
        }
        targets.count(conn)?;
        Ok(targets)
    }

    /// Finds what is left of the rows that a note lists.
    pub(super) fn again(conn: &Connection, to_delete: &ToDelete) -> BackendResult<Self> {
        let mut targets = Self {
            owners: to_delete.owners.clone(),
            authors: to_delete.authors.clone(),
            keys: to_delete.keys.clone(),
            transcripts: to_delete.transcripts.clone(),
            newest_usage: to_delete.newest_usage,
            newest_binding: to_delete.newest_binding,
            item_keys: to_delete.item_keys.clone(),
            newest_item: to_delete.newest_item,
            ..Self::default()
        };
        for key in &to_delete.sessions {
            targets.sessions.extend(target(conn, *key)?);
        }
        for (at, key) in to_delete.blocks.iter().copied().enumerate() {
            let last = to_delete.last_texts.get(at).map(|last| Address::from_raw(*last));
            let block = Block { key, last: last.unwrap_or(Address::range_of(key).1) };
            if block.is_left(conn)? {
                targets.blocks.push(block);
            }
        }
        for ranges in &to_delete.messages {
            let mut messages = Messages::new();
            for [first, last] in ranges {
                let (first, last) = (Address::from_raw(*first), Address::from_raw(*last));
                let Some(session) = target(conn, first.session())? else { continue };
                living(conn, first, last, messages.entry(session).or_default())?;
            }
            messages.retain(|_, addresses| !addresses.is_empty());
            targets.messages.push(messages);
        }
        for key in &to_delete.compactions {
            if conn.prepare_cached(COMPACTION_IS_LEFT)?.exists([key])? {
                targets.summaries.insert(*key);
            }
        }
        targets.count(conn)?;
        Ok(targets)
    }

    /// Returns whether nothing is left to delete.
    pub(super) fn is_empty(&self, conn: &Connection) -> BackendResult<bool> {
        for (names, sql, newest) in [
            (&self.owners, USAGE_IS_LEFT, self.newest_usage),
            (&self.authors, ANSWER_IS_LEFT, self.newest_usage),
            (&self.keys, BINDING_IS_LEFT, self.newest_binding),
            (&self.owners, owner::OF_OWNER, self.newest_item),
            (&self.item_keys, owner::OF_KEY, self.newest_item),
        ] {
            for name in names {
                if conn.prepare_cached(sql)?.exists(params![name, newest])? {
                    return Ok(false);
                }
            }
        }
        Ok(self.sessions.is_empty()
            && self.blocks.is_empty()
            && self.summaries.is_empty()
            && self.transcripts.is_empty()
            && self.messages.iter().all(Messages::is_empty))
    }

    /// Returns what the note of the erasure lists.
    pub(super) fn to_delete(&self, erasure: &Erasure) -> ToDelete {
        let mut to_delete = ToDelete::with_options_of(erasure);
        to_delete.sessions = self.sessions.iter().map(|session| session.key).collect();
        to_delete.messages = self.messages.iter().map(ranges).collect();
        to_delete.transcripts.clone_from(&self.transcripts);
        to_delete.blocks = self.blocks.iter().map(|block| block.key).collect();
        to_delete.last_texts = self.blocks.iter().map(|block| block.last.raw()).collect();
        to_delete.compactions = self.summaries.iter().copied().collect();
        to_delete.owners.clone_from(&self.owners);
        to_delete.authors.clone_from(&self.authors);
        to_delete.keys.clone_from(&self.keys);
        to_delete.newest_usage = self.newest_usage;
        to_delete.newest_binding = self.newest_binding;
        to_delete.item_keys.clone_from(&self.item_keys);
        to_delete.newest_item = self.newest_item;
        to_delete
    }

    /// Counts the messages and entries, and puts main transcripts last.
    fn count(&mut self, conn: &Connection) -> BackendResult<()> {
        let messages = self.messages.iter().flat_map(Messages::values);
        self.total = messages.map(|addresses| addresses.len() as u64).sum();
        for session in &self.sessions {
            self.total += messages_of(conn, session.key)?;
        }
        self.transcripts.sort_unstable();
        self.transcripts.dedup();
        let mut mains = Vec::new();
        for key in std::mem::take(&mut self.transcripts) {
            let Some(transcript) = transcript::stored_in(conn, key)? else { continue };
            self.entries += transcript.entries;
            let group = if transcript.key.is_main() { &mut mains } else { &mut self.transcripts };
            group.push(key);
        }
        self.transcripts.extend(mains);
        Ok(())
    }

    /// Returns whether a message is erased, by itself or with its session.
    pub(super) fn has(&self, address: Address) -> bool {
        let start = Target { key: address.session(), id: SessionId::from("") };
        self.has_session(address.session())
            || self.messages.iter().any(|messages| {
                let of_session = messages.range(&start..).next();
                of_session.is_some_and(|(session, addresses)| {
                    session.key == address.session() && addresses.contains(&address)
                })
            })
    }

    pub(super) fn has_session(&self, key: i64) -> bool {
        let start = Target { key, id: SessionId::from("") };
        self.sessions.range(&start..).next().is_some_and(|session| session.key == key)
    }

    fn add(
        &mut self,
        conn: &Connection,
        target: &ErasureTarget,
        named: &mut Messages,
    ) -> BackendResult<()> {
        match target {
            ErasureTarget::Messages { session, ids } => {
                let (target, row) = known(conn, session)?;
                refuse_projected(conn, &target)?;
                // Those that are known are erased, also if an unfinished erasure has erased others.
                let mut unknown = None;
                let addresses = named.entry(target).or_default();
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
                let addresses = named.entry(target).or_default();
                for (first, last) in delete::below(conn, top)? {
                    living(conn, first, last, addresses)?;
                }
                Ok(())
            }
            ErasureTarget::Session(id) => {
                let (target, _) = known(conn, id)?;
                let mut bound = conn.prepare_cached(binding::OPEN_OF_SESSION)?;
                for key in bound.query_map([target.key], |row| row.get(1))? {
                    self.item_keys.push(key?);
                }
                self.sessions.insert(target);
                Ok(())
            }
            ErasureTarget::Owner(owner) => {
                // Blocks without an owner are those of all sessions.
                check_name("owner", owner).map_err(BackendError::Own)?;
                self.add_sessions(conn, OF_OWNER, owner)?;
                self.transcripts.extend(transcript::of_owner(conn, owner)?);
                let mut blocks = keys(conn, BLOCKS_OF_OWNER, [owner])?;
                // It is not known any more whose the texts of these are.
                blocks.extend(keys(conn, BLOCKS_WITHOUT_ROW, [])?);
                for key in blocks {
                    if self.blocks.iter().all(|block| block.key != key) {
                        self.blocks.push(Block::whole(conn, key)?);
                    }
                }
                self.owners.push(owner.clone());
                Ok(())
            }
            ErasureTarget::Author(author) => {
                check_name("author", author).map_err(BackendError::Own)?;
                self.add_written(conn, author, named)?;
                self.authors.push(author.clone());
                Ok(())
            }
            ErasureTarget::Key(key) => {
                check_name("key", key).map_err(BackendError::Own)?;
                self.add_sessions(conn, OF_KEY, key)?;
                self.keys.push(key.clone());
                self.item_keys.push(key.clone());
                Ok(())
            }
            ErasureTarget::Transcript(key) => {
                self.transcripts.extend(transcript::named(conn, key)?);
                Ok(())
            }
            ErasureTarget::Deleted => Ok(()),
        }
    }

    /// Adds the messages that a person wrote. Those of a session that shows a transcript are noted as left: its entries have the
    /// same texts.
    fn add_written(
        &mut self,
        conn: &Connection,
        author: &str,
        named: &mut Messages,
    ) -> BackendResult<()> {
        let mut statement = conn.prepare_cached(OF_AUTHOR)?;
        let written = statement.query_map([author], |row| row.get(0))?;
        let written: Vec<Address> = written.collect::<rusqlite::Result<_>>()?;
        for of_session in written.chunk_by(|a, b| a.session() == b.session()) {
            let key = of_session[0].session();
            match (transcript::of_session(conn, key)?, target(conn, key)?) {
                (Some(_), _) => self.kept_copies.extend(of_session),
                (None, Some(target)) => named.entry(target).or_default().extend(of_session),
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Adds the transcripts that the sessions show, and the sessions that show the transcripts.
    fn add_projected(&mut self, conn: &Connection) -> BackendResult<()> {
        for session in &self.sessions {
            self.transcripts.extend(transcript::of_session(conn, session.key)?);
        }
        for transcript in &self.transcripts {
            if let Some((key, id)) = transcript::session_of(conn, *transcript)? {
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
}

fn known(conn: &Connection, id: &SessionId) -> BackendResult<(Target, SessionRow)> {
    let row = session_row::find(conn, id)?
        .ok_or_else(|| BackendError::Own(Error::UnknownSession { id: id.clone() }))?;
    Ok((Target { key: row.key, id: id.clone() }, row))
}

/// Returns an error if a session shows a transcript: its entries have the same texts, and lead to each other.
fn refuse_projected(conn: &Connection, session: &Target) -> BackendResult<()> {
    match transcript::of_session(conn, session.key)? {
        None => Ok(()),
        Some(_) => Err(BackendError::Own(Error::InvalidValue {
            what: "session",
            given: session.id.to_string(),
            why: "it shows a transcript, which can only be erased as a whole".to_owned(),
        })),
    }
}

/// Adds the messages of a range that are not deleted.
pub(super) fn living(
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

/// Returns the session of a key.
pub(super) fn target(conn: &Connection, key: i64) -> BackendResult<Option<Target>> {
    Ok(session_row::info_by_key(conn, key)?.map(|info| Target { key, id: info.id }))
}

pub(super) fn newest(conn: &Connection, sql: &str) -> BackendResult<i64> {
    let newest: Option<i64> = conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(newest.unwrap_or_default())
}

/// Returns ranges of consecutive addresses.
fn ranges(messages: &Messages) -> Vec<[i64; 2]> {
    let mut ranges: Vec<[i64; 2]> = Vec::new();
    for address in messages.values().flatten().map(|address| address.raw()) {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == address => *last = address,
            _ => ranges.push([address, address]),
        }
    }
    ranges
}

/// Sessions in the trash have an index of their own.
const OF_OWNER: &str = "SELECT key, id FROM session WHERE owner = ?1 AND deleted_at IS NULL
 UNION ALL
 SELECT key, id FROM session WHERE owner = ?1 AND deleted_at IS NOT NULL";
const OF_AUTHOR: &str = "SELECT address
   FROM message INDEXED BY message_author
  WHERE author = ?1 AND author IS NOT NULL
  ORDER BY address";
const OF_KEY: &str = "SELECT DISTINCT session.key, session.id
   FROM binding
   JOIN session ON session.key = binding.session
  WHERE binding.key = ?1";
const BLOCKS_OF_OWNER: &str = "SELECT key FROM context_block WHERE session = 0 AND owner = ?1";
const BLOCKS_WITHOUT_ROW: &str = "SELECT DISTINCT block
   FROM context_entry
  WHERE NOT EXISTS (SELECT 1 FROM context_block WHERE context_block.key = context_entry.block)";
const NEWEST_TEXT: &str = "SELECT max(address) FROM context_entry WHERE address BETWEEN ?1 AND ?2";
const BLOCK_IS_LEFT: &str = "SELECT 1 FROM context_entry WHERE address BETWEEN ?2 AND ?3
 UNION ALL
 SELECT 1
   FROM context_block
  WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM context_entry WHERE block = ?1)";
const COMPACTION_IS_LEFT: &str = "SELECT 1 FROM compaction WHERE key = ?1";
const USAGE_IS_LEFT: &str = "SELECT 1 FROM usage WHERE owner = ?1 AND number <= ?2";
const ANSWER_IS_LEFT: &str = "SELECT 1 FROM usage WHERE author = ?1 AND number <= ?2";
const BINDING_IS_LEFT: &str = "SELECT 1 FROM binding WHERE key = ?1 AND number <= ?2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_addresses_are_one_range() {
        let target = |key| Target { key, id: "s".into() };
        let at = |key, numbers: &[u32]| -> BTreeSet<Address> {
            numbers.iter().map(|n| Address::new(key, *n)).collect()
        };
        let messages =
            Messages::from([(target(1), at(1, &[1, 2, 3, 7])), (target(2), at(2, &[8, 9]))]);
        let raw = |key, n| Address::new(key, n).raw();
        assert_eq!(
            ranges(&messages),
            [[raw(1, 1), raw(1, 3)], [raw(1, 7), raw(1, 7)], [raw(2, 8), raw(2, 9)]]
        );
        let targets = Targets {
            sessions: BTreeSet::from([target(5)]),
            messages: vec![messages],
            ..Targets::default()
        };
        let named: Vec<(i64, u32)> = [(1, 2), (1, 4), (2, 8), (3, 8), (5, 1), (6, 1)]
            .into_iter()
            .filter(|(key, n)| targets.has(Address::new(*key, *n)))
            .collect();
        assert_eq!(named, [(1, 2), (2, 8), (5, 1)]);
    }
}
