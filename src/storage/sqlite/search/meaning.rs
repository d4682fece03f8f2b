//! Adds the messages that mean what the query says: those whose vectors are nearest to its vector.
//!
//! The score is a weighted sum: the score for words as a share of the best one, plus a share of the cosine. Joining the two
//! lists by the places of their hits was tried and made answers worse, because the best hit by words is often
//! far better than the second.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;
use talktree_text::{Columns, Finder};

use super::super::embedding::{self, EmbedderRow};
use super::super::error::BackendResult;
use super::ranked::{RANKED, Ranked};
use super::{Search, hits};
use crate::embedding::{QueryVector, Vector};
use crate::search::Matched;
use crate::tree::Address;

/// The weight of the cosine, beside 1 for the best score for words.
///
/// Of 0.1, 0.25, 0.5 and 1 the one with the most chats among the first ten on the tuned half of LongMemEval, with
/// all-MiniLM-L6-v2: .842 instead of .840, and on the held half .884 as before, among the first five .812 instead of .797. With 1
/// fewer are found than by words alone.
const WEIGHT: f64 = 0.25;
/// How many of the nearest messages are joined to those found by words.
const NEAREST: usize = 200;
/// If filters leave too few of the nearest messages, this many times as many are taken.
const MORE: usize = 8;

/// The vector of a query, and whose vectors it is compared with.
#[derive(Clone, Copy)]
pub(super) struct Meaning<'r> {
    embedder: EmbedderRow,
    vector: &'r Vector,
}

impl<'r> Meaning<'r> {
    /// Returns what to compare; `None`, with a notice, if the store has no vectors of the embedder.
    pub(super) fn of(
        conn: &Connection,
        query: Option<&'r QueryVector>,
        notices: &mut Vec<String>,
    ) -> BackendResult<Option<Self>> {
        let Some(query) = query else { return Ok(None) };
        let (name, vector) = (query.embedder(), query.vector());
        let Some(embedder) = embedding::find(conn, name)? else {
            notices.push(format!("the store has no vectors by {name:?}: only words are searched"));
            return Ok(None);
        };
        if let Some(dimensions) = embedder.dimensions.filter(|known| *known != vector.dimensions())
        {
            notices.push(format!(
                "the vectors by {name:?} have {dimensions} dimensions in the store, the query's has {}: only words are searched",
                vector.dimensions()
            ));
            return Ok(None);
        }
        Ok(Some(Self { embedder, vector }))
    }
}

impl Search<'_> {
    /// Adds the messages that mean the same to those found by words.
    ///
    /// A spent budget leaves what was found by words.
    pub(super) fn with_meaning(&self, ranked: Ranked) -> BackendResult<Ranked> {
        let Some(meaning) = self.meaning.as_ref().filter(|_| self.analysis.strict.is_empty())
        else {
            return Ok(ranked);
        };
        if self.analysis.query.filters.columns == Columns::Tools || self.is_stopped.get() {
            return Ok(ranked);
        }
        let nearest = match self.nearest(meaning) {
            Err(error) if self.watch.is_end_of_budget(&error) => {
                self.is_stopped.set(true);
                return Ok(ranked);
            }
            nearest => nearest?,
        };
        self.joined(meaning, ranked, nearest)
    }

    /// Returns the nearest messages that pass the filters, with their cosines.
    fn nearest(&self, meaning: &Meaning<'_>) -> BackendResult<HashMap<Address, f64>> {
        let mut limit = NEAREST;
        loop {
            let found = embedding::nearest(
                self.conn,
                meaning.embedder,
                meaning.vector,
                &self.range.ranges(),
                |address| self.range.holds(address),
                limit,
                self.watch,
            )?;
            let passed = self.of_scope(&found)?;
            if found.len() < limit || passed.len() >= NEAREST {
                return Ok(found.into_iter().filter(|(at, _)| passed.contains(at)).collect());
            }
            limit *= MORE;
        }
    }

    /// Returns those of the messages that pass the filters and have no excluded word.
    fn of_scope(&self, found: &[(Address, f64)]) -> BackendResult<HashSet<Address>> {
        let mut finder = Finder::default();
        for term in &self.analysis.query.excluded {
            finder.add(&term.phrases());
        }
        let mut reader = self.checks.reader(self.conn)?;
        let mut passed = HashSet::new();
        for (address, _) in found {
            let columns = self.analysis.query.filters.columns;
            let is_excluded = reader.read(*address, |row| {
                Ok(!finder.find(&hits::text(row.parts, columns)).0.is_empty())
            })?;
            if is_excluded == Some(false) {
                passed.insert(*address);
            }
        }
        Ok(passed)
    }

    /// Joins the two; messages after the first [`RANKED`] keep their order after all others.
    fn joined(
        &self,
        meaning: &Meaning<'_>,
        mut ranked: Ranked,
        mut nearest: HashMap<Address, f64>,
    ) -> BackendResult<Ranked> {
        let rest = ranked.messages.split_off(ranked.messages.len().min(RANKED));
        let rest: Vec<Address> = rest
            .into_iter()
            .map(|(address, _)| address)
            .filter(|address| !nearest.contains_key(address))
            .collect();
        let matched = if ranked.messages.is_empty() { Matched::Meaning } else { ranked.matched };
        let share = |score: f64, best: f64| if best > 0.0 { score / best } else { 0.0 };
        let best = ranked.messages.first().map_or(0.0, |first| first.1);
        let best_session = ranked.sessions.first().map_or(0.0, |first| first.1);
        let mut greatest: HashMap<i64, f64> = HashMap::new();
        let mut note = |address: Address, cosine: f64| {
            let known = greatest.entry(address.session()).or_insert(cosine);
            *known = known.max(cosine);
        };
        let mut messages = Vec::with_capacity(ranked.messages.len() + nearest.len());
        for (address, score) in ranked.messages {
            let cosine = match nearest.remove(&address) {
                Some(cosine) => Some(cosine),
                None => {
                    embedding::cosine_with(self.conn, meaning.embedder, meaning.vector, address)?
                }
            };
            let cosine = cosine.unwrap_or(0.0).max(0.0);
            note(address, cosine);
            messages.push((address, share(score, best) + WEIGHT * cosine));
        }
        for (address, cosine) in nearest {
            // The opposite, or something that has nothing to do with it.
            if cosine > 0.0 {
                note(address, cosine);
                messages.push((address, WEIGHT * cosine));
            }
        }
        messages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut sessions = Vec::with_capacity(ranked.sessions.len() + greatest.len());
        for (session, score) in ranked.sessions {
            let cosine = greatest.remove(&session).unwrap_or(0.0);
            sessions.push((session, share(score, best_session) + WEIGHT * cosine));
        }
        sessions.extend(greatest.into_iter().map(|(session, cosine)| (session, WEIGHT * cosine)));
        sessions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let floor = messages.last().map_or(0.0, |last| last.1);
        let mut joined = Ranked { messages, sessions, matched, more: ranked.more };
        joined.follow(&rest, floor);
        Ok(joined)
    }
}
