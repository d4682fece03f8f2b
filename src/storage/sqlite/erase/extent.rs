//! Counts what an erasure would remove, and finds what it would leave.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::super::{children, compaction, delete, message, path, transcript};
use super::delete::Copies;
use super::targets::{Messages, Targets, living};
use super::{named, owner};
use crate::erasure::{Erasure, ErasureExtent, ErasureSummary};
use crate::storage::sqlite::message::Mention;
use crate::tree::{Address, PlanPart, Span};

impl Targets {
    /// Returns what would be removed, and what would be left.
    pub(super) fn extent(
        &self,
        conn: &Connection,
        erasure: &Erasure,
    ) -> BackendResult<ErasureExtent> {
        let mut extent = ErasureExtent {
            messages: self.total,
            continued_in: self.continued_in.clone(),
            ..ErasureExtent::default()
        };
        for session in &self.sessions {
            extent.sessions.push(session.id.clone());
            let key = session.key;
            extent.texts += count(conn, TEXTS_OF_SESSION, params![key])?;
            extent.summaries += count(conn, SUMMARIES_OF_SESSION, params![key])?;
            extent.prompts += count(conn, PROMPTS_OF_SESSION, params![key])?;
            extent.bindings += count(conn, BINDINGS_OF_SESSION, params![key])?;
            extent.usage += count(conn, USAGE_OF_SESSION, params![key])?;
        }
        let mut messages = Messages::new();
        for (session, addresses) in self.messages.iter().flatten() {
            messages.entry(session.clone()).or_default().extend(addresses);
        }
        let mut left = self.summaries_left.clone();
        extent.summaries += self.summaries.len() as u64;
        for (session, addresses) in &messages {
            for address in addresses {
                extent.usage += count(conn, USAGE_OF_MESSAGE, params![address])?;
            }
            let covering = compaction::covering(conn, addresses)?;
            let mut counted: BTreeSet<i64> = covering.iter().map(|span| span.key).collect();
            counted.extend(&self.summaries);
            for place in pruned(conn, addresses)? {
                for key in delete::ending_in(conn, place, place)? {
                    extent.summaries += u64::from(counted.insert(key));
                }
            }
            for span in covering {
                if self.summaries.contains(&span.key) {
                    continue;
                }
                if erasure.summaries || goes_with(conn, span, addresses)? {
                    extent.summaries += 1;
                } else {
                    let id = compaction::id_of(conn, span.key)?.as_message();
                    left.insert(ErasureSummary { session: session.id.clone(), id });
                }
            }
        }
        extent.summaries_left = left.into_iter().collect();
        let (relatives, mut metadata) = (self.relatives(conn)?, 0);
        let mut names: BTreeSet<i64> = BTreeSet::new();
        for (session, addresses) in &messages {
            let places: Vec<_> = addresses.iter().map(|address| (*address, *address)).collect();
            for mention in message::mentions_of(conn, session.key, &places)? {
                if let Mention::Name(key) = mention {
                    names.insert(key);
                }
            }
        }
        for relative in relatives.iter().filter(|_| erasure.forks) {
            extent.texts += relative.texts.len() as u64;
            if !relative.texts.is_empty() {
                extent.prompts += count(conn, PROMPTS_OF_SESSION, params![relative.key])?;
            }
            names.extend(Some(relative.key).filter(|_| relative.has_name));
            metadata += u64::from(relative.has_metadata);
        }
        extent.details = names.len() as u64 + metadata;
        for block in &self.blocks {
            extent.texts += count(conn, TEXTS_OF_BLOCK, params![block.key])?;
        }
        for key in &self.keys {
            extent.bindings += count(conn, BINDINGS_OF_KEY, params![key])?;
        }
        for author in &self.authors {
            extent.usage += self.answers_to(conn, author)?;
        }
        extent.items = self.items(conn)?;
        for key in &self.transcripts {
            if let Some(transcript) = transcript::stored_in(conn, *key)? {
                extent.entries += transcript.entries;
                extent.transcripts.push(transcript.key);
            }
        }
        let mut left = if erasure.forks { BTreeSet::new() } else { self.copies_left(conn)? };
        left.extend(self.kept_copies.iter().copied().filter(|copy| !self.has(*copy)));
        let relatives = if erasure.forks { Vec::new() } else { relatives };
        extent.copies_left = named(conn, &left, &relatives)?;
        Ok(extent)
    }

    /// Returns how many answers to an author the ledger has, besides those that are erased themselves.
    fn answers_to(&self, conn: &Connection, author: &str) -> BackendResult<u64> {
        let mut statement = conn.prepare_cached(ANSWERS)?;
        let found = statement.query_map(params![author, self.newest_usage], |row| row.get(0))?;
        let mut count = 0;
        for address in found {
            let address: Option<Address> = address?;
            count += u64::from(!address.is_some_and(|address| self.has(address)));
        }
        Ok(count)
    }

    /// Returns how many pending items are named, by their owner or key.
    fn items(&self, conn: &Connection) -> BackendResult<u64> {
        let mut numbers: BTreeSet<i64> = BTreeSet::new();
        for (names, sql) in [(&self.owners, owner::OF_OWNER), (&self.item_keys, owner::OF_KEY)] {
            for name in names {
                let mut statement = conn.prepare_cached(sql)?;
                let found =
                    statement.query_map(params![name, self.newest_item], |row| row.get(0))?;
                for number in found {
                    numbers.insert(number?);
                }
            }
        }
        Ok(numbers.len() as u64)
    }

    /// Returns the copies of what is named in sessions that stay.
    fn copies_left(&self, conn: &Connection) -> BackendResult<BTreeSet<Address>> {
        let mut all: BTreeSet<Address> =
            self.messages.iter().flat_map(Messages::values).flatten().copied().collect();
        for session in &self.sessions {
            let (first, last) = Address::range_of(session.key);
            living(conn, first, last, &mut all)?;
        }
        let (mut left, mut copies) = (BTreeSet::new(), Copies::default());
        for address in all {
            left.extend(copies.of(conn, address)?.into_iter().filter(|copy| !self.has(*copy)));
        }
        Ok(left)
    }
}

/// Returns the tombstones that lose their last child when messages of one session are erased.
fn pruned(conn: &Connection, erased: &BTreeSet<Address>) -> BackendResult<BTreeSet<Address>> {
    let (mut removed, mut pruned) = (BTreeSet::new(), BTreeSet::new());
    // Children before parents.
    for address in erased.iter().rev() {
        let mut at = Some(*address);
        while let Some(place) = at {
            let children = children::direct_children(conn, place.session(), Some(place))?;
            if children.iter().any(|child| !removed.contains(child)) {
                break;
            }
            if removed.insert(place) && !erased.contains(&place) {
                pruned.insert(place);
            }
            at = message::parent(conn, place)?;
            // Another message stays, or has its turn.
            if let Some(parent) = at
                && message::id_at(conn, parent)?.0.is_some()
            {
                break;
            }
        }
    }
    Ok(pruned)
}

/// Returns whether a summary goes with erased messages: if its last row does, or if it would cover nothing visible.
fn goes_with(conn: &Connection, span: Span, erased: &BTreeSet<Address>) -> BackendResult<bool> {
    let is_left = |sql: &str, first: Address, last: Address| -> BackendResult<bool> {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([first, last])?;
        while let Some(row) = rows.next()? {
            if !erased.contains(&row.get(0)?) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut is_last_left = false;
    for (first, last) in delete::below(conn, span.last)? {
        is_last_left |= is_left(LIVING, first, last)?;
    }
    let mut is_any_visible = false;
    for planned in path::between(conn, span.first, span.last)? {
        if let PlanPart::Messages { first, last } = planned {
            is_any_visible |= is_left(VISIBLE, first, last)?;
        }
    }
    Ok(!is_last_left || !is_any_visible)
}

const LIVING: &str =
    "SELECT address FROM message WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL";
const VISIBLE: &str = "SELECT address
   FROM message
  WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL AND hidden = 0";

fn count(conn: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> BackendResult<u64> {
    Ok(conn.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
}

const TEXTS_OF_SESSION: &str = "SELECT count(*)
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
  WHERE session = ?1 AND owner = ''";
const TEXTS_OF_BLOCK: &str = "SELECT count(*) FROM context_entry WHERE block = ?1";
const SUMMARIES_OF_SESSION: &str = "SELECT count(*) FROM compaction WHERE session = ?1";
const PROMPTS_OF_SESSION: &str = "SELECT count(*) FROM frozen_prompt WHERE session = ?1";
const BINDINGS_OF_SESSION: &str = "SELECT count(*) FROM binding WHERE session = ?1";
/// The bindings of its sessions are counted with the sessions.
const BINDINGS_OF_KEY: &str = "SELECT count(*)
   FROM binding
  WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM session WHERE session.key = binding.session)";
const USAGE_OF_SESSION: &str = "SELECT count(*) FROM usage WHERE session = ?1";
const ANSWERS: &str = "SELECT address FROM usage WHERE author = ?1 AND number <= ?2";
const USAGE_OF_MESSAGE: &str =
    "SELECT count(*) FROM usage WHERE session = ?1 >> 32 AND address = ?1";
