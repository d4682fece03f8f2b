//! Searching the texts of one block.
//!
//! All words are searched first; if no text has them all, any of them. Up to [`MAX_ALL`] matches are all ranked as
//! messages are, with word frequencies from the block alone. Of more, FTS5 picks the best; its own word frequencies
//! are those of all blocks.
//!
//! Every query is limited to the block's range of addresses, to which FTS5 skips.

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::super::search::among;
use super::entry;
use crate::search::choose::choose;
use crate::search::rank::{Candidate, Corpus, rank};
use crate::search::reading::Reading;
use crate::search::scan::Scanner;
use crate::search::{Columns, Filters, Matched, Query};
use crate::storage::context::Entry;
use crate::tree::Address;

/// Up to this many matches are all ranked here; of more, FTS5 picks the best.
const MAX_ALL: usize = 1_000;
/// How many of the matches that FTS5 picked are ranked here.
const RANKED: usize = 200;
/// How much of a text is scanned for ranking.
const MAX_SCAN_BYTES: usize = 64 << 10;

pub(super) struct Request {
    reading: Reading,
    limit: usize,
}

impl Request {
    pub(super) fn of(text: &str, limit: usize) -> Self {
        let mut query = Query::parse(text);
        // Filters on messages do not apply to documents; names and texts are searched together.
        query.filters = Filters { columns: Columns::All, ..Filters::default() };
        Self { reading: Reading::of(query, text), limit }
    }

    pub(super) fn run(
        &self,
        conn: &Connection,
        block: i64,
        watch: &Watch,
    ) -> BackendResult<(Vec<Entry>, Matched)> {
        let search =
            Search { conn, reading: &self.reading, range: Address::range_of(block), watch };
        let Some(all) = self.reading.all().filter(|_| self.limit > 0) else {
            return Ok((Vec::new(), Matched::All));
        };
        let found = search.found(&all, self.limit)?;
        if !found.is_empty() || self.reading.is_fixed() {
            return Ok((found, Matched::All));
        }
        let any = self.reading.any(0..self.reading.units.len());
        let found = match any {
            Some(any) => search.relaxed(&any, self.limit)?,
            None => Vec::new(),
        };
        // An empty answer is the same for any word as for all.
        let matched = if found.is_empty() { Matched::All } else { Matched::Relaxed };
        Ok((found, matched))
    }
}

/// A search on one snapshot.
struct Search<'c> {
    conn: &'c Connection,
    reading: &'c Reading,
    range: (Address, Address),
    watch: &'c Watch,
}

impl Search<'_> {
    /// Returns the matches of an expression, best first.
    fn found(&self, expression: &str, limit: usize) -> BackendResult<Vec<Entry>> {
        if let Some(all) = self.all_of(expression)? {
            return self.rank(&all, None, limit);
        }
        let best = self.best_of(expression, limit)?;
        let (frequencies, corpus) = self.figures()?;
        self.rank(&best, Some((frequencies, corpus)), limit)
    }

    /// Returns the matches of any word; if there are too many, those of the rare words.
    fn relaxed(&self, expression: &str, limit: usize) -> BackendResult<Vec<Entry>> {
        if let Some(all) = self.all_of(expression)? {
            return self.rank(&all, None, limit);
        }
        let (frequencies, corpus) = self.figures()?;
        let choice = choose(frequencies, corpus.messages);
        let any = self.reading.any(choice.looked_for.into_iter());
        let best = any.map(|any| self.best_of(&any, limit)).transpose()?.unwrap_or_default();
        self.rank(&best, Some((choice.frequencies, corpus)), limit)
    }

    /// Returns all matches if there are few enough to rank here.
    fn all_of(&self, expression: &str) -> BackendResult<Option<Vec<Address>>> {
        let found = self.addresses(MATCHING, expression, MAX_ALL + 1)?;
        Ok((found.len() <= MAX_ALL).then_some(found))
    }

    /// Returns the best matches by FTS5's ranking.
    fn best_of(&self, expression: &str, limit: usize) -> BackendResult<Vec<Address>> {
        self.addresses(BEST, expression, limit.max(RANKED))
    }

    fn addresses(&self, sql: &str, expression: &str, limit: usize) -> BackendResult<Vec<Address>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params![expression, self.range.0, self.range.1, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            self.watch.check()?;
            found.push(row.get(0)?);
        }
        Ok(found)
    }

    /// Returns how many texts of the block contain each unit, and how many texts there are.
    fn figures(&self) -> BackendResult<(Vec<f64>, Corpus)> {
        let mut frequencies = Vec::new();
        for unit in &self.reading.units {
            self.watch.check()?;
            let mut query = Query { clauses: vec![vec![unit.term.clone()]], ..Query::default() };
            query.filters.columns = Columns::All;
            let count: i64 = match query.to_fts_all() {
                Some(expression) => self
                    .conn
                    .prepare_cached(HOW_MANY)?
                    .query_row(params![expression, self.range.0, self.range.1], |row| row.get(0))?,
                None => 0,
            };
            frequencies.push(count as f64);
        }
        let messages: i64 = self
            .conn
            .prepare_cached(IN_BLOCK)?
            .query_row([self.range.0.session()], |row| row.get(0))?;
        // The mean length is set after some texts are read.
        let corpus = Corpus { messages: messages as f64, mean_length: 0.0, sessions: 1.0 };
        Ok((frequencies, corpus))
    }

    /// Returns the texts at these addresses, best first. Without `known` frequencies these addresses are all the
    /// matches.
    fn rank(
        &self,
        addresses: &[Address],
        known: Option<(Vec<f64>, Corpus)>,
        limit: usize,
    ) -> BackendResult<Vec<Entry>> {
        let pairs = self
            .reading
            .pairs(|unit| known.as_ref().is_none_or(|(frequencies, _)| frequencies[unit] > 0.0));
        let scanner = Scanner::new(&self.reading.units, &pairs);
        let (mut found, mut candidates) = (Vec::new(), Vec::new());
        for &address in addresses {
            self.watch.check()?;
            // `verify` checks the index. An entry without a text is skipped here.
            let Some(entry) = entry::at(self.conn, address)? else { continue };
            let scan = scanner.scan(&ranked_text(&entry), MAX_SCAN_BYTES);
            candidates.push(Candidate { session: 0, is_user: false, is_in_time: false, scan });
            // Keeps the address and not the text: a thousand may be ranked, each as large as the store allows.
            found.push(address);
        }
        let among = among(&candidates);
        let (frequencies, corpus) = match known {
            Some((frequencies, corpus)) => {
                (frequencies, Corpus { mean_length: among.1.mean_length, ..corpus })
            }
            None => among,
        };
        let ranking = rank(self.reading, &pairs, &frequencies, corpus, &candidates);
        let mut ranked: Vec<_> = found.into_iter().zip(ranking.messages).collect();
        // Equal scores: oldest first.
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.truncate(limit);
        let best = ranked.into_iter().map(|(address, _)| entry::at(self.conn, address));
        Ok(best.collect::<BackendResult<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// Returns the text to rank: the name counts twice.
fn ranked_text(entry: &Entry) -> String {
    let title = entry.title.as_deref().unwrap_or_default();
    let description = entry.description.as_deref().unwrap_or_default();
    let name = [&entry.key, title, description].join("\n");
    [&name, &name, entry.content.as_str()].join("\n")
}

pub(in super::super) const MATCHING: &str = "SELECT rowid
   FROM context_search
  WHERE context_search MATCH ?1
    AND rowid BETWEEN ?2 AND ?3
  ORDER BY rowid
  LIMIT ?4";

/// A match in the name weighs four times one in the text.
pub(in super::super) const BEST: &str = "SELECT rowid
   FROM context_search
  WHERE context_search MATCH ?1
    AND rowid BETWEEN ?2 AND ?3
  ORDER BY bm25(context_search, 4.0, 1.0), rowid
  LIMIT ?4";

pub(in super::super) const HOW_MANY: &str = "SELECT count(*)
   FROM context_search
  WHERE context_search MATCH ?1
    AND rowid BETWEEN ?2 AND ?3";

pub(in super::super) const IN_BLOCK: &str = "SELECT count(*)
   FROM context_entry
  WHERE block = ?1 AND present = 1";
