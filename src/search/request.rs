//! The request of a search: a query, a scope and a page.

use std::time::Duration;

use chrono::{DateTime, Utc};

use talktree_text::{DateHint, date_hint};

use super::Query;
use crate::embedding::QueryVector;
use crate::id::{MessageId, SessionId};

/// The default limit of a search.
pub(crate) const DEFAULT_LIMIT: usize = 20;

/// The maximum number of messages in a [`SessionHit`](super::SessionHit).
pub(crate) const HITS_PER_SESSION: usize = 3;

/// How many terms of the index the prefixes of a query may begin, together.
///
/// Those beyond the limit are searched as whole words, with a notice, and the result is [partial](super::Found::is_partial). The
/// engine reads every posting of each term that a prefix begins, which takes 5 ms for each 30 000.
///
/// ```
/// use talktree::search::MAX_EXPANSIONS;
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let words: Vec<String> = (0..=MAX_EXPANSIONS).map(|n| format!("a{n}")).collect();
/// store.session("s")?.append(Message::user(words.join(" ")))?;
///
/// assert!(!store.search("a12*").run()?.is_partial);
/// let found = store.search("a*").run()?;
/// assert!(found.is_partial && found.hits.is_empty());
/// # Ok::<(), talktree::Error>(())
/// ```
pub const MAX_EXPANSIONS: usize = 5_000;

/// Where to search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub(crate) enum Scope {
    /// All sessions of the store.
    #[default]
    Store,
    /// All branches of these sessions; an empty list finds nothing.
    Sessions(Vec<SessionId>),
    /// The path to one message of a session, or to its head if `None`.
    Path(SessionId, Option<MessageId>),
}

impl Scope {
    /// Returns the scope of all branches of one session.
    #[must_use]
    pub(crate) fn session(id: impl Into<SessionId>) -> Self {
        Self::Sessions(vec![id.into()])
    }

    /// Returns the scope, narrowed to these sessions.
    pub(crate) fn within(&self, ids: &[SessionId]) -> Self {
        match self {
            Self::Store => Self::Sessions(ids.to_vec()),
            Self::Sessions(own) => {
                Self::Sessions(own.iter().filter(|id| ids.contains(id)).cloned().collect())
            }
            Self::Path(own, _) if ids.contains(own) => self.clone(),
            Self::Path(..) => Self::Sessions(Vec::new()),
        }
    }
}

/// A query with its scope, page and time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct SearchRequest {
    /// The query as typed; see [`Query`] for the language.
    pub text: String,
    /// Whether the text is searched as words: nothing in it is an operator, a filter or a date.
    pub is_plain: bool,
    /// Runs of characters that a message must contain exactly, besides those in the text.
    pub exact: Vec<String>,
    /// Where to search. Sessions in the trash are never searched.
    pub scope: Scope,
    /// The owner whose sessions are searched, within the scope; `None` for all.
    pub owner: Option<String>,
    /// The author of the messages, within those that the query names; `None` for all.
    pub author: Option<String>,
    /// Tags that the messages have, besides those in the query.
    pub tags: Vec<String>,
    /// Whether hidden messages are left out, as if they were not in scope. The tools of a model ask for this.
    pub omits_hidden: bool,
    /// The maximum number of hits.
    pub limit: usize,
    /// How many of the best hits to skip, for the pages after the first.
    pub offset: usize,
    /// The current time, for queries like `last week` and `after:7d`; `None` for the system clock.
    pub now: Option<DateTime<Utc>>,
    /// How long to search at most; `None` without a limit. A storage may ignore it.
    pub timeout: Option<Duration>,
    /// The vector of the query, to find messages that mean the same. A storage may ignore it.
    pub meaning: Option<QueryVector>,
}

impl SearchRequest {
    /// Returns a request for the 20 best hits in a scope.
    #[must_use]
    pub(crate) fn new(text: impl Into<String>, scope: Scope) -> Self {
        Self {
            text: text.into(),
            is_plain: false,
            exact: Vec::new(),
            scope,
            owner: None,
            author: None,
            tags: Vec::new(),
            omits_hidden: false,
            limit: DEFAULT_LIMIT,
            offset: 0,
            now: None,
            timeout: None,
            meaning: None,
        }
    }

    /// Returns the parsed text.
    #[must_use]
    pub(crate) fn query(&self) -> Query {
        let mut query = match self.is_plain {
            true => Query::plain(&self.text),
            false => Query::parse_at(&self.text, self.time()),
        };
        let is_narrowed = self.author.is_some() || !self.tags.is_empty();
        if (is_narrowed || !self.exact.is_empty()) && self.text.trim().is_empty() {
            query.notices.clear();
        }
        self.exact.iter().for_each(|run| query.add_exact(run));
        let filters = &mut query.filters;
        filters.tags.extend(self.tags.iter().cloned());
        if let Some(author) = &self.author {
            let is_named = filters.authors.is_empty() || filters.authors.contains(author);
            // No author is empty.
            filters.authors = vec![if is_named { author.clone() } else { String::new() }];
        }
        query
    }

    /// Returns the time that the text mentions; none of a plain text.
    pub(crate) fn date_hint(&self) -> Option<DateHint> {
        let text = (!self.is_plain).then_some(&*self.text);
        text.and_then(|text| date_hint(text, self.time()))
    }

    fn time(&self) -> DateTime<Utc> {
        self.now.unwrap_or_else(crate::clock::now)
    }
}
