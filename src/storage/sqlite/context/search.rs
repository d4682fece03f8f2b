//! Searching the texts of one block, with the code that searches messages: see
//! [`ranked`](super::super::search::ranked).
//!
//! Every query is limited to the block's range of addresses, to which FTS5 skips. The frequency of a word is counted in
//! the block alone, because FTS5's own totals cover all blocks.

use talktree_text::{Analysis, Candidate, Columns, Expr, Filters, Query};

use super::super::index::add_forms;
use super::super::index::{Expression, Index};
use super::super::interrupt::Watch;
use super::super::search::ranked::{MAX_READ_BYTES, Ranked, Texts};
use super::entry;
use crate::search::Matched;
use crate::sql::{BackendResult, Connection};
use crate::storage::context::Document;
use crate::tree::Address;

/// Returns the matching texts of a block, best first, and whether they have all words.
pub(super) fn search(
    conn: &Connection,
    block: i64,
    (query, limit): (&str, usize),
    watch: &Watch,
) -> BackendResult<(Vec<Document>, Matched)> {
    let mut parsed = Query::parse(query);
    // Filters for roles, sessions and times apply only to messages, and documents are searched in all columns.
    parsed.filters = Filters { columns: Columns::All, ..Filters::default() };
    if !parsed.has_terms() || limit == 0 {
        return Ok((Vec::new(), Matched::All));
    }
    add_forms(conn, &mut parsed, watch)?;
    let analysis = Analysis::of(parsed, query);
    let search = Search { conn, analysis: &analysis, range: Address::range_of(block), watch };
    // A document that has all words of a question answers it best; a message rarely repeats the words of its question.
    let ranked = Ranked::find(&search, false, false)?;
    // Only the returned texts are read again: up to a thousand are ranked, and each may be as large as the store
    // allows.
    let best = ranked.messages.iter().take(limit);
    let found: Vec<Document> = best
        .map(|(address, _)| entry::at(conn, *address))
        .collect::<BackendResult<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect();
    let matched = if found.is_empty() { Matched::All } else { ranked.matched };
    Ok((found, matched))
}

/// A search on one snapshot.
struct Search<'c> {
    conn: &'c Connection<'c>,
    analysis: &'c Analysis,
    range: (Address, Address),
    watch: &'c Watch,
}

impl Texts for Search<'_> {
    fn analysis(&self) -> &Analysis {
        self.analysis
    }

    fn list(&self, expr: &Expr, limit: usize) -> BackendResult<Vec<Address>> {
        let words = Some((expr, Columns::All));
        let expression = Expression { words, wanted: Some(limit), ..Expression::default() };
        let mut found = Vec::new();
        Index::Context.each(self.conn, &expression, self.range, self.watch, |address| {
            found.push(address);
            Ok(found.len() < limit)
        })?;
        Ok(found)
    }

    fn best(&self, expr: &Expr, limit: usize) -> BackendResult<Option<Vec<Address>>> {
        let expression = Expression { words: Some((expr, Columns::All)), ..Expression::default() };
        Index::Context.best(self.conn, &expression, self.range, limit).map(Some)
    }

    fn count(&self) -> BackendResult<f64> {
        let count: u64 = self.conn.one(IN_BLOCK, self.range.0.session())?;
        Ok(count as f64)
    }

    fn read(
        &self,
        found: &[Address],
        pairs: &[(usize, usize)],
    ) -> BackendResult<(Vec<Address>, Vec<Candidate>)> {
        let (finder, units) = (self.analysis.finder(), self.analysis.units.len());
        let (mut read, mut candidates) = (Vec::new(), Vec::new());
        found.iter().try_for_each(|address| self.conn.ask_ahead(entry::PRESENT, address))?;
        for &address in found {
            self.watch.check()?;
            // An address that only the index has is damage, which `verify` finds.
            let Some(entry) = entry::at(self.conn, address)? else { continue };
            let text = ranked_text(&entry);
            candidates.push(Candidate::read((&text, ""), &finder, units, pairs, MAX_READ_BYTES));
            read.push(address);
        }
        Ok((read, candidates))
    }
}

/// Returns the text that is ranked: key, title and description count twice.
fn ranked_text(entry: &Document) -> String {
    let title = entry.title.as_deref().unwrap_or_default();
    let description = entry.description.as_deref().unwrap_or_default();
    let name = [&entry.key, title, description].join("\n");
    [&name, &name, entry.content.as_str()].join("\n")
}

pub(in super::super) const IN_BLOCK: &str = "SELECT count(*)
   FROM context_entry
  WHERE block = ?1 AND present = 1";
