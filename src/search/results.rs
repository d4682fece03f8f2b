//! What a search returns: hits, best first, what was done if the query finds little, and queries to try if nothing is found.
//!
//! An *alternative* is the query with one condition less: without its roles, without its dates, without its quotes.
//! Each is tried, and returned only if it finds something. An alternative never leaves the scope of the search.

use std::fmt;
use std::time::Instant;

use chrono::{DateTime, Utc};
use serde::Serialize;
use talktree_text::{Columns, Filter, Lexeme, LexemeKind, lex, tokens};

use super::{SearchRequest, Snippet};
use crate::error::Result;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Role;

/// Whether a query was relaxed.
///
/// ```
/// use talktree::{Matched, Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("Can we deploy on Friday?"))?;
///
/// assert_eq!(store.search("deploy friday").run()?.matched, Matched::All);
/// assert_eq!(store.search("deploy saturday").run()?.matched, Matched::Relaxed);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matched {
    /// The message contains every word.
    All,
    /// The message needs only some of the words: the query is a question, or no message has all of them.
    Relaxed,
    /// The message has none of the words; it [means](super::Search::by_meaning) something near.
    Meaning,
}

/// One message found.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("s")?;
/// let question = chat.append(Message::user("Can we deploy on Friday?"))?.id;
/// let compaction = chat.add_compaction("They plan.", &question, &question)?.id;
///
/// let hit = &store.search("friday").run()?.hits[0];
/// assert_eq!((&hit.session, &hit.id), (chat.id(), &question));
/// assert_eq!(hit.snippet.to_string(), "Can we deploy on **Friday**?");
/// assert_eq!((hit.on_path, &hit.under), (true, &Some(compaction)));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// The session of the message; for copies in forks, the one in scope.
    pub session: SessionId,
    /// The id of the message.
    pub id: MessageId,
    /// The role of the message.
    pub role: Role,
    /// The time of the message.
    pub created_at: DateTime<Utc>,
    /// The part of the text around the match.
    pub snippet: Snippet,
    /// The relevance: greater is better, comparable within one result.
    pub score: f64,
    /// Whether the message contains every word.
    pub matched: Matched,
    /// Whether the message is on the path to its session's head.
    pub on_path: bool,
    /// The compaction on that path that covers the message.
    #[serde(rename = "under_compaction")]
    pub under: Option<CompactionId>,
    /// Every session in the scope of the search that holds a copy of the message.
    ///
    /// Copies outside it, in sessions of another owner for example, are not named, and neither are copies in the trash.
    pub sessions: Vec<SessionId>,
}

/// One session found.
///
/// ```
/// use talktree::Message;
///
/// let store = talktree::Store::open_in_memory()?;
/// let chat = store.create_session("Deployment")?;
/// chat.append(Message::user("Can we deploy on Friday?"))?;
///
/// let hit = &store.search("friday").run_by_session()?.hits[0];
/// assert_eq!((&hit.session, hit.name.as_deref()), (chat.id(), Some("Deployment")));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionHit {
    /// The id of the session.
    pub session: SessionId,
    /// The name of the session.
    pub name: Option<String>,
    /// The relevance: greater is better, comparable within one result.
    pub score: f64,
    /// The best messages of the session, best first.
    pub hits: Vec<Hit>,
}

/// The result of a search: messages, or sessions.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("Can we deploy on Friday?"))?;
///
/// let results = store.search("friday after:someday").run()?;
/// assert_eq!(results.notices.len(), 1);
/// let texts: Vec<String> = results.into_iter().map(|hit| hit.snippet.text).collect();
/// assert_eq!(texts, ["Can we deploy on Friday?"]);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SearchResults<T = Hit> {
    /// The hits, best first.
    pub hits: Vec<T>,
    /// Whether the query was relaxed.
    pub matched: Matched,
    /// Which other words were searched because the query finds little or nothing as it is written; empty if it finds enough.
    pub steps: Vec<Step>,
    /// For people: which parts of the query were ignored or searched as words.
    pub notices: Vec<String>,
    /// Whether the search ended before it had seen everything, so that there may be more hits, and better ones.
    ///
    /// It reached its [`timeout`](super::Search::timeout), or a prefix expands to more words than are looked up
    /// ([`MAX_EXPANSIONS`](super::MAX_EXPANSIONS)). Every hit is a true match.
    pub is_partial: bool,
}

impl<T> SearchResults<T> {
    /// Returns the result of a search that finds nothing.
    pub(crate) fn nothing(notices: Vec<String>) -> Self {
        let (hits, steps) = (Vec::new(), Vec::new());
        Self { hits, matched: Matched::All, steps, notices, is_partial: false }
    }
}

impl<T> IntoIterator for SearchResults<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.hits.into_iter()
    }
}

/// Other words that were searched because a query finds little or nothing as it is written.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("The session manager restarts."))?;
///
/// let results = store.search("seesion manager").run()?;
/// let step = &results.steps[0];
/// assert_eq!((&*step.written, &*step.searched, step.hits), ("seesion", "session", 1));
/// assert_eq!(step.to_string(), "1 hit: searched for \"session\" instead of \"seesion\"");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// The word in the query, or two words.
    pub written: String,
    /// What was searched: a beginning with a star, two words in a row, the nearest spelling that somebody wrote.
    pub searched: String,
    /// How many messages it found that no earlier step found, at most 1 000. Steps that were taken together have the same
    /// number. The messages are among the hits.
    pub hits: u64,
}

/// The maximum count of the hits of a step.
const MAX_HITS: u64 = 1_000;

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hits {
            1 => f.write_str("1 hit")?,
            MAX_HITS.. => write!(f, "at least {MAX_HITS} hits")?,
            hits => write!(f, "{hits} hits")?,
        }
        write!(f, ": searched for {:?} instead of {:?}", self.searched, self.written)
    }
}

/// A query that finds something where another one found nothing.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("Can we deploy on Friday?"))?;
///
/// let alternatives = store.search("role:assistant friday").alternatives()?;
/// assert_eq!((alternatives[0].widening, &*alternatives[0].query), ("for any role", "friday"));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Alternative {
    /// How it differs from the query, for people: `for any role`.
    pub widening: &'static str,
    /// The other query.
    pub query: String,
}

const ROLE: (&str, &[Filter]) = ("for any role", &[Filter::Role]);
const TIME: (&str, &[Filter]) = ("at any time", &[Filter::After, Filter::Before]);
const SESSION: (&str, &[Filter]) = ("without `session:`", &[Filter::Session]);
const AUTHOR: (&str, &[Filter]) = ("by any author", &[Filter::Author]);
const TAG: (&str, &[Filter]) = ("with any tags", &[Filter::Tag]);
const WITHOUT_FILTERS: &str = "without filters";

/// Returns the alternatives of a request that find something. `finds` runs a request.
pub(super) fn alternatives(
    request: &SearchRequest,
    mut finds: impl FnMut(&SearchRequest) -> Result<bool>,
) -> Result<Vec<Alternative>> {
    if request.is_plain {
        return Ok(Vec::new());
    }
    let until = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut finds = |query: &str| {
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        if timeout.is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
        let mut other =
            SearchRequest { text: query.to_owned(), limit: 1, offset: 0, ..request.clone() };
        other.timeout = timeout;
        finds(&other)
    };
    let parts: Vec<Lexeme<'_>> = lex(&request.text).collect();
    let mut found = Vec::new();
    let mut queries = widened(&parts, request.query().filters.columns);
    let last = queries.pop_if(|last| last.widening == WITHOUT_FILTERS);
    for alternative in queries {
        // For `-role:user` the query without filters is the one without excluded words.
        let is_known = found.iter().any(|it: &Alternative| it.query == alternative.query);
        if !is_known && finds(&alternative.query)? {
            found.push(alternative);
        }
    }
    if let Some(last) = last.filter(|_| found.is_empty())
        && finds(&last.query)?
    {
        found.push(last);
    }
    Ok(found)
}

/// Returns the query with one kind of condition less, for each kind that it has; the one without filters is the last.
fn widened(parts: &[Lexeme<'_>], columns: Columns) -> Vec<Alternative> {
    let is_any_of = |part: &Lexeme<'_>, filters: &[Filter]| matches!(part.kind, LexemeKind::Filter { filter, .. } if filters.contains(&filter));
    let without = |is_left_out: &dyn Fn(&Lexeme<'_>) -> bool| {
        rewritten(parts, |part| if is_left_out(part) { "" } else { part.written }.to_owned())
    };
    let all_columns = |query: String| format!("in:all {query}").trim_end().to_owned();
    let mut all = Vec::new();
    let mut add = |widening, query: String| all.push(Alternative { widening, query });
    let mut has_filter = columns != Columns::All;
    for (widening, filters) in [ROLE, TIME, SESSION, AUTHOR, TAG] {
        let is_it = |part: &Lexeme<'_>| is_any_of(part, filters);
        if parts.iter().any(is_it) {
            has_filter = true;
            add(widening, without(&is_it));
        }
    }
    if columns != Columns::All {
        let query = without(&|part| is_any_of(part, &[Filter::In]));
        add("in text, reasoning and tools", all_columns(query));
    }
    if parts.iter().any(|part| part.is_excluded) {
        add("without excluding words", without(&|part| part.is_excluded));
    }
    let phrase = |part: &Lexeme<'_>| match part.kind {
        LexemeKind::Phrase { text, .. } if !part.is_excluded => Some(words(text)),
        _ => None,
    };
    if parts.iter().any(|part| phrase(part).is_some()) {
        let loose = |part: &Lexeme<'_>| phrase(part).unwrap_or_else(|| part.written.to_owned());
        add("with the words of the phrase in any place", rewritten(parts, loose));
    }
    if has_filter {
        let is_filter = |part: &Lexeme<'_>| match part.kind {
            LexemeKind::Filter { filter, .. } => filter != Filter::Exact,
            _ => false,
        };
        add(WITHOUT_FILTERS, all_columns(without(&is_filter)));
    }
    all
}

/// Returns the words of a phrase, none of which is an operator.
fn words(phrase: &str) -> String {
    let words = tokens(phrase).map(|token| token.text()).filter(|word| *word != "OR");
    words.collect::<Vec<_>>().join(" ")
}

/// Returns what a query says: its words and phrases, without filters, minus signs and excluded words.
pub(super) fn spoken(text: &str) -> String {
    let parts: Vec<Lexeme<'_>> = lex(text).collect();
    rewritten(&parts, |part| match part.kind {
        _ if part.is_excluded => String::new(),
        LexemeKind::Phrase { text, .. } => text.to_owned(),
        LexemeKind::Filter { .. } => String::new(),
        LexemeKind::Word(word) => word.to_owned(),
    })
}

fn rewritten(parts: &[Lexeme<'_>], mut write: impl FnMut(&Lexeme<'_>) -> String) -> String {
    let written = parts.iter().map(&mut write).filter(|part| !part.is_empty());
    written.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Scope;

    /// Asserts the alternatives of `text` if only the queries in `found` find something.
    #[track_caller]
    fn gives(text: &str, found: &[&str], expected: &[&str]) {
        let request = SearchRequest::new(text, Scope::Store);
        let finds = |request: &SearchRequest| Ok(found.contains(&request.text.as_str()));
        let all: Vec<String> = alternatives(&request, finds)
            .unwrap_or_default()
            .into_iter()
            .map(|one| one.query)
            .collect();
        assert_eq!(all, expected, "{text}");
    }

    #[test]
    fn one_kind_of_condition_is_left_out_at_a_time() {
        gives("role:user fox role:tool", &["fox"], &["fox"]);
        gives("after:2023 fox before:7d", &["fox"], &["fox"]);
        gives("fox session:\"my chat\"", &["fox"], &["fox"]);
        gives("fox in:tools", &["in:all fox"], &["in:all fox"]);
        gives("fox in:text", &["in:all fox"], &["in:all fox"]);
        gives("fox -den -\"a b\"", &["fox"], &["fox"]);
        gives("role:user \"red OR fox\"", &["role:user red fox"], &["role:user red fox"]);
        gives("fox in:all", &["fox"], &[]);
        gives("fox -role:user", &["fox"], &["fox"]);
    }

    #[test]
    fn all_filters_are_left_out_if_one_is_not_enough() {
        let text = "role:user after:2023 fox";
        gives(text, &["in:all fox"], &["in:all fox"]);
        gives(text, &["in:all fox", "role:user fox"], &["role:user fox"]);
    }

    #[test]
    fn a_plain_text_and_a_spent_timeout_have_no_alternatives() -> Result<()> {
        let mut request = SearchRequest::new("role:user fox", Scope::Store);
        request.timeout = Some(std::time::Duration::ZERO);
        assert_eq!(alternatives(&request, |_| Ok(true))?, []);
        request.timeout = None;
        assert!(!alternatives(&request, |_| Ok(true))?.is_empty());
        request.is_plain = true;
        assert_eq!(alternatives(&request, |_| Ok(true))?, []);
        Ok(())
    }
}
