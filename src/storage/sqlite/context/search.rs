//! Searching the texts of one block, with the code that searches messages: see
//! [`ranked`](super::super::search::ranked).
//!
//! Every query is limited to the block's range of addresses, to which FTS5 skips. The frequency of a word is counted in
//! the block alone, because FTS5's own totals cover all blocks.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::super::search::extent::Extent;
use super::super::search::ranked::{MAX_SCAN_BYTES, RANKED, Ranked, Size, Texts};
use super::entry;
use crate::search::analysis::Analysis;
use crate::search::rank::Candidate;
use crate::search::scanner::Scanner;
use crate::search::spelling::Spelling;
use crate::search::{Columns, Filters, Matched, Query};
use crate::storage::context::Entry;
use crate::tree::Address;

/// Returns the matching texts of a block, best first, and whether they have all words.
pub(super) fn search(
    conn: &Connection,
    block: i64,
    (query, limit): (&str, usize),
    watch: &Watch,
) -> BackendResult<(Vec<Entry>, Matched)> {
    let reading = read(query);
    let Some(all) = reading.all().filter(|_| limit > 0) else {
        return Ok((Vec::new(), Matched::All));
    };
    let (range, spelling) = (Address::range_of(block), Spelling::of(&reading));
    let search = Search { conn, reading: &reading, range, spelling, watch };
    let mut ranked = Ranked::find(&search, &all)?;
    ranked.fill(&search, limit)?;
    // Only the returned texts are read again: up to a thousand are ranked, and each may be as large as the store
    // allows.
    let best = ranked.messages.iter().take(limit);
    let found: Vec<Entry> = best
        .map(|(address, _)| entry::at(conn, *address))
        .collect::<BackendResult<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect();
    let matched = if found.is_empty() { Matched::All } else { ranked.matched };
    Ok((found, matched))
}

fn read(text: &str) -> Analysis {
    let mut query = Query::parse(text);
    // Filters for roles, sessions and times apply only to messages, and documents are searched in all columns.
    query.filters = Filters { columns: Columns::All, ..Filters::default() };
    Analysis::of(query, text)
}

/// A search on one snapshot.
struct Search<'c> {
    conn: &'c Connection,
    reading: &'c Analysis,
    range: (Address, Address),
    /// The signs that the words must have.
    spelling: Option<Spelling>,
    watch: &'c Watch,
}

impl Search<'_> {
    /// Returns the newest matches of an expression, whether they have the vowel signs of the words or not.
    fn matching(&self, expression: &str, limit: usize) -> BackendResult<Vec<Address>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = self.conn.prepare_cached(NEWEST)?;
        let mut rows = statement.query(params![expression, self.range.0, self.range.1, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            self.watch.check()?;
            found.push(row.get(0)?);
        }
        Ok(found)
    }

    /// Returns the first `limit` of the texts that have the signs.
    fn spelled(
        &self,
        found: impl Iterator<Item = Address>,
        matched: Matched,
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        let Some(spelling) = &self.spelling else { return Ok(found.take(limit).collect()) };
        let mut spelled = Vec::new();
        for address in found {
            self.watch.check()?;
            if spelled.len() == limit {
                break;
            }
            let entry = entry::at(self.conn, address)?;
            if entry.is_some_and(|entry| spelling.holds(&ranked_text(&entry), matched)) {
                spelled.push(address);
            }
        }
        Ok(spelled)
    }
}

impl Texts for Search<'_> {
    fn reading(&self) -> &Analysis {
        self.reading
    }

    /// A document that has all words of a question answers it best; a message rarely repeats the words of its question.
    fn is_relaxed_at_once(&self) -> bool {
        false
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn newest(
        &self,
        (expression, matched): (&str, Matched),
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        let listed = if self.spelling.is_some() { usize::MAX } else { limit };
        self.spelled(self.matching(expression, listed)?.into_iter(), matched, limit)
    }

    /// There is no filter.
    fn listed(&self, expression: &str, limit: usize) -> BackendResult<Vec<Address>> {
        self.matching(expression, limit)
    }

    /// Those with the words in their key, title or description, and the newest.
    fn chosen(&self, expression: &str, newest: &[Address]) -> BackendResult<Vec<Address>> {
        let named = format!("name : {expression}");
        let mut chosen = self.newest((&named, Matched::All), RANKED / 2)?;
        let known: HashSet<Address> = chosen.iter().copied().collect();
        chosen.extend(newest.iter().filter(|address| !known.contains(address)));
        chosen.truncate(RANKED);
        Ok(chosen)
    }

    fn passing(
        &self,
        found: impl Iterator<Item = Address>,
        limit: usize,
    ) -> BackendResult<Vec<Address>> {
        self.spelled(found, Matched::Relaxed, limit)
    }

    fn size(&self) -> BackendResult<Size> {
        let texts: i64 = self
            .conn
            .prepare_cached(IN_BLOCK)?
            .query_row([self.range.0.session()], |row| row.get(0))?;
        Ok(Size { texts: texts as f64, sessions: 1.0, mean_length: None })
    }

    fn extent(&self) -> BackendResult<Extent> {
        let newest: Option<Address> = self
            .conn
            .prepare_cached(LAST)?
            .query_row([self.range.0, self.range.1], |row| row.get(0))?;
        Ok(Extent::of_one((self.range.0, newest.unwrap_or(self.range.1)), self.size()?.texts))
    }

    fn candidates(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)> {
        let scanner = Scanner::new(&self.reading.units, pairs);
        let (mut read, mut candidates) = (Vec::new(), Vec::new());
        for &address in found {
            self.watch.check()?;
            // An address that only the index has is damage, which `verify` finds.
            let Some(entry) = entry::at(self.conn, address)? else { continue };
            let scan = scanner.scan(&ranked_text(&entry), MAX_SCAN_BYTES);
            candidates.push(Candidate { session: 0, is_user: false, is_in_time: false, scan });
            read.push(address);
        }
        Ok((read, candidates))
    }
}

/// Returns the text that is ranked: key, title and description count twice.
fn ranked_text(entry: &Entry) -> String {
    let title = entry.title.as_deref().unwrap_or_default();
    let description = entry.description.as_deref().unwrap_or_default();
    let name = [&entry.key, title, description].join("\n");
    [&name, &name, entry.content.as_str()].join("\n")
}

pub(in super::super) const NEWEST: &str = "SELECT rowid
   FROM context_search
  WHERE context_search MATCH ?1
    AND rowid BETWEEN ?2 AND ?3
  ORDER BY rowid DESC
  LIMIT ?4";

pub(in super::super) const LAST: &str =
    "SELECT max(address) FROM context_entry WHERE address BETWEEN ?1 AND ?2";

pub(in super::super) const IN_BLOCK: &str = "SELECT count(*)
   FROM context_entry
  WHERE block = ?1 AND present = 1";
