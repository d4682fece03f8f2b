//! Turning matches into hits: their text, their flags, their copies.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Statement};
use talktree_text::{Analysis, Columns, Finder, Query, SNIPPET_CHARS, Snippet, snippet, tokens};

use super::super::compaction;
use super::super::error::{BackendResult, corrupt, damaged};
use super::super::interrupt::Watch;
use super::super::row::session::read_id;
use super::super::row::time;
use super::super::tree_source::SessionTree;
use super::range::{self, Range, SessionNames};
use crate::id::{MessageId, SessionId};
use crate::message::{Part, Role, parts_from_text, single_text};
use crate::search::{Hit, Matched, indexed_text};
use crate::tree::{Address, Span, Stretch, Walk};

/// The columns of a message that a hit needs.
struct Row {
    id: MessageId,
    role: String,
    parts: String,
    /// The address of the message that this one is a copy of, or its own.
    origin: Address,
    created_at: i64,
}

/// Returns the message at an address; the statement is [`AT`].
fn row(at: &mut Statement<'_>, address: Address) -> BackendResult<Row> {
    let row = at.query_row([address], |row| {
        Ok(Row {
            id: MessageId::from(row.get_ref(0)?.as_str()?),
            role: row.get(1)?,
            parts: row.get_ref(2)?.as_str().unwrap_or_default().to_owned(),
            origin: row.get(3)?,
            created_at: row.get(4)?,
        })
    })?;
    Ok(row)
}

pub(super) const AT: &str = "SELECT id, role, parts, coalesce(origin, address), created_at
   FROM message
  WHERE address = ?1";

impl Row {
    fn text(&self, columns: Columns) -> Cow<'_, str> {
        text(&self.parts, columns)
    }
}

/// Returns the searched text of parts as people read it.
///
/// Damaged parts have no text: one damaged message must not make every search fail. Reading that message is an error.
pub(super) fn text(parts: &str, columns: Columns) -> Cow<'_, str> {
    if let Some(text) = single_text(parts) {
        return Cow::Borrowed(if columns == Columns::Tools { "" } else { text });
    }
    let parts = parts_from_text(parts).unwrap_or_default();
    Cow::Owned(match columns {
        Columns::Text => indexed_text::plain_text(&parts),
        Columns::Tools => indexed_text::plain_tools(&parts),
        Columns::All => everything(&parts),
    })
}

fn everything(parts: &[Part]) -> String {
    let (text, tools) = (indexed_text::plain_text(parts), indexed_text::plain_tools(parts));
    if text.is_empty() || tools.is_empty() { text + &tools } else { text + "\n" + &tools }
}

/// Returns the words of a query and of its exact runs, normalized; not their forms.
fn words_of(query: &Query) -> HashSet<String> {
    let terms = query.clauses.iter().flatten().flat_map(|term| &term.tokens);
    terms
        .chain(&query.filters.exact)
        .flat_map(|token| tokens(token))
        .map(|token| token.form().into_owned())
        .collect()
}

/// Returns the words that match in a snippet and are not among those that were written.
fn other_words(snippet: &Snippet, written: &HashSet<String>) -> Vec<String> {
    let matches = snippet.pieces().filter(|(_, is_match)| *is_match);
    let mut seen = HashSet::new();
    matches
        .flat_map(|(piece, _)| tokens(piece))
        .filter(|token| {
            let word = token.form();
            !written.contains(&*word) && seen.insert(word.into_owned())
        })
        .map(|token| token.text().to_owned())
        .collect()
}

pub(super) struct HitMaker<'c> {
    conn: &'c Connection,
    watch: &'c Watch,
    range: &'c Range,
    matched: Matched,
    /// Whether there may be hits without any word of the query.
    has_meaning: bool,
    /// Whether there may be a copy in another session in scope.
    has_copies: bool,
    columns: Columns,
    has_terms: bool,
    /// The words of the query as it was written, normalized.
    written: HashSet<String>,
    /// What is marked in a message, whether it has all words or not.
    shown: [Query; 2],
    /// Finds the words of the query in a text; a message that has them all matches without being relaxed.
    words: (Finder, usize),
}

impl<'c> HitMaker<'c> {
    /// `asked` is the query as it was written, and `reading` the one that was searched.
    pub(super) fn new(
        conn: &'c Connection,
        (asked, reading): (&Analysis, &Analysis),
        (matched, has_meaning): (Matched, bool),
        (range, has_copies): (&'c Range, bool),
        watch: &'c Watch,
    ) -> Self {
        Self {
            conn,
            watch,
            range,
            matched,
            has_meaning,
            has_copies: has_copies && !range.is_one_session(),
            columns: reading.query.filters.columns,
            has_terms: reading.query.has_terms(),
            written: words_of(&asked.query),
            shown: [false, true].map(|is_relaxed| reading.shown(is_relaxed)),
            words: (reading.words_finder(), reading.words.len()),
        }
    }

    /// Returns the hits for messages and their scores, in the same order.
    pub(super) fn hits(&self, found: &[(Address, f64)]) -> BackendResult<Vec<Hit>> {
        let mut oldest: HashMap<i64, Address> = HashMap::new();
        for (address, _) in found {
            let oldest = oldest.entry(address.session()).or_insert(*address);
            *oldest = (*oldest).min(*address);
        }
        let mut sessions: HashMap<i64, (SessionNames, HeadPath)> = HashMap::new();
        let mut hits = Vec::with_capacity(found.len());
        let mut at = self.conn.prepare_cached(AT)?;
        for &(address, score) in found {
            self.watch.check()?;
            let key = address.session();
            let (names, path) = match sessions.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(range) => {
                    let names = range::names(self.conn, key)?;
                    let names =
                        names.ok_or_else(|| corrupt(format!("no session has key {key}")))?;
                    let path = HeadPath::of(self.conn, names.head, oldest[&key])?;
                    range.insert((names, path))
                }
            };
            let row = row(&mut at, address).map_err(damaged(format_args!(
                "message {} of session {:?}, which is in the search index",
                address.n(),
                names.id
            )))?;
            hits.push(self.hit(row, (address, score), names, path)?);
        }
        Ok(hits)
    }

    fn hit(
        &self,
        row: Row,
        (address, score): (Address, f64),
        names: &SessionNames,
        path: &HeadPath,
    ) -> BackendResult<Hit> {
        let mut text = row.text(self.columns);
        if text.is_empty() && !self.has_terms {
            text = row.text(Columns::All);
        }
        let matched = self.matched(&text);
        let shown = &self.shown[usize::from(matched != Matched::All)];
        let on_path = path.holds(address);
        let under = match path.summary_over(address).filter(|_| on_path) {
            Some(span) => Some(compaction::id_of(self.conn, span.key)?),
            None => None,
        };
        let snippet = snippet(&text, shown, SNIPPET_CHARS);
        Ok(Hit {
            session: names.id.clone(),
            words: other_words(&snippet, &self.written),
            snippet,
            created_at: time(row.created_at)?,
            sessions: if self.has_copies { self.copies(&row)? } else { vec![names.id.clone()] },
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
    fn matched(&self, text: &str) -> Matched {
        if self.matched == Matched::All && !self.has_meaning {
            return Matched::All;
        }
        let (finder, count) = &self.words;
        let found: HashSet<usize> = finder.find(text).0.iter().map(|found| found.target).collect();
        match found.len() {
            0 if self.has_meaning && *count > 0 => Matched::Meaning,
            found if found == *count => Matched::All,
            _ => Matched::Relaxed,
        }
    }

    /// Returns the sessions in scope that contain a message with the same origin and content, oldest first.
    fn copies(&self, row: &Row) -> BackendResult<Vec<SessionId>> {
        let mut statement = self.conn.prepare_cached(COPIES)?;
        let mut rows = statement.query((row.origin, &row.role, &row.parts))?;
        let mut ids = Vec::new();
        while let Some(found) = rows.next()? {
            let key = found.get(1)?;
            if self.range.holds_session(key) {
                ids.push(read_id(found, 0, key)?);
            }
        }
        Ok(ids)
    }
}

pub(super) const COPIES: &str = "SELECT session.id, session.key
   FROM (SELECT address FROM message
          WHERE address = ?1 AND id IS NOT NULL AND role = ?2 AND parts = ?3
         UNION ALL
         SELECT address FROM message
          WHERE origin = ?1 AND role = ?2 AND parts = ?3) AS copy
   JOIN session ON session.key = copy.address >> 32
  WHERE session.deleted_at IS NULL
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
        while let Some(stretch) = walk.next()? {
            let Stretch::Messages { first, last } = stretch else { continue };
            path.ranges.push((first, last));
            if first <= down_to {
                break;
            }
        }
        let mut tree = SessionTree::new(conn, down_to.session());
        let mut walk = Walk::visible(&mut tree, head);
        while let Some(stretch) = walk.next()? {
            let first = match stretch {
                Stretch::Messages { first, .. } => first,
                Stretch::Summary(span) => {
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
        let at = self.ranges.partition_point(|stretch| stretch.0 > address);
        self.ranges.get(at).is_some_and(|stretch| address <= stretch.1)
    }

    /// Returns the visible summary whose range of addresses contains this one.
    fn summary_over(&self, address: Address) -> Option<Span> {
        let at = self.summaries.partition_point(|span| span.first > address);
        self.summaries.get(at).filter(|span| address <= span.last).copied()
    }
}
