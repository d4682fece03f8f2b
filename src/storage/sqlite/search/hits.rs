//! Turning matches into hits: their text, their flags, their copies.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use talktree_text::{Columns, Finder, Query, SNIPPET_CHARS, snippet};

use super::super::compaction;
use super::super::row::session::read_id;
use super::Search;
use super::range::{self, SessionNames};
use super::steps::{Attempt, Results};
use crate::id::{MessageId, SessionId};
use crate::message::{Role, parts_from_text, single_text};
use crate::search::{Hit, Matched, indexed_text};
use crate::sql::time;
use crate::sql::{BackendResult, Connection, corrupt, damaged};
use crate::storage::sqlite::path::{self, SessionTree};
use crate::tree::{Address, PlanPart, Span, Walk};

/// The columns of a message that a hit needs.
struct Row {
    id: MessageId,
    role: String,
    parts: String,
    /// The address of the message that this one is a copy of, or its own.
    origin: Address,
    created_at: i64,
}

pub(super) const AT: &str = "SELECT id, role, parts, coalesce(origin, address), created_at
   FROM message
  WHERE address = ?1";

/// Returns the searched text of parts as people read it, and what tools say.
///
/// Damaged parts have no text: one damaged message must not make every search fail. Reading that message is an error.
pub(super) fn texts(parts: &str) -> (Cow<'_, str>, Cow<'_, str>) {
    if let Some(text) = single_text(parts) {
        return (Cow::Borrowed(text), Cow::default());
    }
    let parts = parts_from_text(parts).unwrap_or_default();
    (indexed_text::plain_text(&parts).into(), indexed_text::searched_tools(&parts).into())
}

/// Returns the text of the columns that are searched.
pub(in super::super) fn text(parts: &str, columns: Columns) -> Cow<'_, str> {
    let (text, tools) = texts(parts);
    match columns {
        Columns::Text => text,
        Columns::Tools => tools,
        Columns::All if tools.is_empty() => text,
        Columns::All if text.is_empty() => tools,
        Columns::All => (text.into_owned() + "\n" + &tools).into(),
    }
}

/// What one query that was searched says of its matches.
struct Reading {
    matched: Matched,
    /// What is marked in a message, whether it has all words or not.
    shown: [Query; 2],
    /// Finds the words of the query in a text; a message that has them all matches without being relaxed.
    words: Finder,
    count: usize,
}

pub(super) struct HitMaker<'c> {
    search: &'c Search<'c>,
    /// The query as it was written, and that of each other attempt.
    readings: Vec<Reading>,
}

impl<'c> HitMaker<'c> {
    pub(super) fn new(search: &'c Search<'c>, results: &Results) -> Self {
        let reading = |attempt: &Attempt| Reading {
            matched: attempt.ranked.matched,
            shown: [false, true].map(|is_relaxed| attempt.analysis.shown(is_relaxed)),
            words: attempt.analysis.words_finder(),
            count: attempt.analysis.words.len(),
        };
        Self { search, readings: results.attempts.iter().map(reading).collect() }
    }

    /// Returns the hits for messages, each with the number of its attempt and its score, in the same order.
    pub(super) fn hits(&self, found: &[(usize, Address, f64)]) -> BackendResult<Vec<Hit>> {
        let conn = self.search.conn;
        let mut oldest: BTreeMap<i64, Address> = BTreeMap::new();
        for (_, address, _) in found {
            let oldest = oldest.entry(address.session()).or_insert(*address);
            *oldest = (*oldest).min(*address);
        }
        let mut sessions: HashMap<i64, (SessionNames, HeadPath)> = HashMap::new();
        found.iter().try_for_each(|(_, address, _)| conn.ask_ahead(AT, address))?;
        oldest.keys().try_for_each(|key| conn.ask_ahead(range::NAMES, key))?;
        let mut names = Vec::with_capacity(oldest.len());
        for key in oldest.keys() {
            let found = range::names(conn, *key)?;
            names.push(found.ok_or_else(|| corrupt(format!("no session has key {key}")))?);
        }
        path::ask_ahead(conn, names.iter().filter_map(|names| names.head), 2)?;
        for ((key, oldest), names) in oldest.into_iter().zip(names) {
            let path = HeadPath::of(conn, names.head, oldest)?;
            sessions.insert(key, (names, path));
        }
        let mut hits = Vec::with_capacity(found.len());
        for &(attempt, address, score) in found {
            self.search.watch.check()?;
            let (names, path) = &sessions[&address.session()];
            let row = conn.first_with(AT, address, |row| {
                Ok(Row {
                    id: MessageId::from(row.value(0)?.as_str()?),
                    role: row.get(1)?,
                    parts: row.value(2)?.as_str().unwrap_or_default().to_owned(),
                    origin: row.get(3)?,
                    created_at: row.get(4)?,
                })
            });
            let missing = || corrupt("a row that another one refers to is missing");
            let row =
                row.and_then(|row| row.ok_or_else(missing)).map_err(damaged(format_args!(
                    "message {} of session {:?}, which is in the search index",
                    address.n(),
                    names.id
                )))?;
            hits.push(self.hit(row, (address, score), &self.readings[attempt], names, path)?);
        }
        Ok(hits)
    }

    fn hit(
        &self,
        row: Row,
        (address, score): (Address, f64),
        reading: &Reading,
        names: &SessionNames,
        path: &HeadPath,
    ) -> BackendResult<Hit> {
        let mut shown_text = text(&row.parts, self.search.columns());
        if shown_text.is_empty() && !self.search.analysis.query.has_terms() {
            shown_text = text(&row.parts, Columns::All);
        }
        let matched = self.matched(&shown_text, reading);
        let shown = &reading.shown[usize::from(matched != Matched::All)];
        let on_path = path.holds(address);
        let under = match path.summary_over(address).filter(|_| on_path) {
            Some(span) => Some(compaction::id_of(self.search.conn, span.key)?),
            None => None,
        };
        Ok(Hit {
            session: names.id.clone(),
            snippet: snippet(&shown_text, shown, SNIPPET_CHARS),
            created_at: time(row.created_at)?,
            sessions: if self.search.has_copies {
                self.copies(&row)?
            } else {
                vec![names.id.clone()]
            },
            role: Role::from(row.role),
            id: row.id,
            score,
            matched,
            on_path,
            under,
        })
    }

    /// Returns how many words of the query the text has. Read from the text: the index would read the long lists of a
    /// question's stop words.
    fn matched(&self, text: &str, reading: &Reading) -> Matched {
        let has_meaning = self.search.meaning.is_some();
        if reading.matched == Matched::All && !has_meaning {
            return Matched::All;
        }
        let found = reading.words.find(text).0;
        let found: HashSet<usize> = found.iter().map(|found| found.target).collect();
        match found.len() {
            0 if has_meaning && reading.count > 0 => Matched::Meaning,
            found if found == reading.count => Matched::All,
            _ => Matched::Relaxed,
        }
    }

    /// Returns the sessions in scope that contain a message with the same origin and content, oldest first.
    fn copies(&self, row: &Row) -> BackendResult<Vec<SessionId>> {
        let values = (row.origin, &*row.role, &*row.parts);
        let ids = self.search.conn.rows_with(COPIES, values, |found| {
            let key = found.get(1)?;
            let is_in_scope = self.search.range.holds_session(key);
            is_in_scope.then(|| read_id(found, 0, key)).transpose()
        })?;
        Ok(ids.into_iter().flatten().collect())
    }
}

pub(super) const COPIES: &str = "SELECT session.id, session.key
   FROM (SELECT address FROM message
          WHERE address = ?1 AND id IS NOT NULL AND role = ?2 AND parts = ?3
         UNION ALL
         SELECT address FROM message
          WHERE origin = ?1 AND role = ?2 AND parts = ?3) AS copy
   JOIN session ON session.key = copy.address >> 32
  ORDER BY copy.address";

/// The path to a session's head, back to a message.
struct HeadPath {
    /// Its ranges of addresses, newest first.
    ranges: Vec<(Address, Address)>,
    summaries: Vec<Span>,
}

impl HeadPath {
    fn of(conn: &Connection, head: Option<Address>, down_to: Address) -> BackendResult<Self> {
        let mut path = Self { ranges: Vec::new(), summaries: Vec::new() };
        let mut tree = SessionTree::new(conn, down_to.session());
        let mut walk = Walk::raw(&mut tree, head);
        while let Some(planned) = walk.next()? {
            let PlanPart::Messages { first, last } = planned else { continue };
            path.ranges.push((first, last));
            if first <= down_to {
                break;
            }
        }
        let mut tree = SessionTree::new(conn, down_to.session());
        let mut walk = Walk::visible(&mut tree, head);
        while let Some(planned) = walk.next()? {
            let first = match planned {
                PlanPart::Messages { first, .. } => first,
                PlanPart::Summary(span) => {
                    path.summaries.push(span);
                    span.first
                }
            };
            if first <= down_to {
                break;
            }
        }
        Ok(path)
    }

    fn holds(&self, address: Address) -> bool {
        let at = self.ranges.partition_point(|planned| planned.0 > address);
        self.ranges.get(at).is_some_and(|planned| address <= planned.1)
    }

    /// Returns the visible summary whose range of addresses contains this one.
    fn summary_over(&self, address: Address) -> Option<Span> {
        let at = self.summaries.partition_point(|span| span.first > address);
        self.summaries.get(at).filter(|span| address <= span.last).copied()
    }
}
