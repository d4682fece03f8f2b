//! Search: requests, results and steps. The words are those of [`talktree_text`].
//!
//! A [`Query`] is what a person types. A request adds a scope and a page; the results are hits,
//! best first, and whether the query was relaxed. The storage keeps the index, finds candidates and ranks them by
//! `talktree-text`; `indexed_text` says what of a message is searched. A text is a query unless
//! the search is [`plain`](Search::plain).
//!
//! Invariant: the method that returns a [`Search`] sets its scope. Later calls and the filters of a query only narrow it.
//!
//! Invariant: a text and a query are cut by one tokenizer, so every substring of whole words is found.

pub(crate) mod indexed_text;
mod results;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
pub use talktree_text::{
    Clause, Columns, Filters, MAX_TERM_TOKENS, MAX_TERMS, Query, SNIPPET_CHARS, Snippet, Term,
    parse_date,
};
use talktree_text::{DateHint, date_hint};

pub use self::results::{Alternative, Hit, Matched, SearchResults, SessionHit, Step};
use crate::embedding::{Embedder, QueryVector};
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};

/// The default limit of a search.
pub(crate) const DEFAULT_LIMIT: usize = 20;

/// The maximum number of messages in a [`SessionHit`].
pub(crate) const HITS_PER_SESSION: usize = 3;

/// How many terms of the index the prefixes of a query may begin, together.
///
/// Those beyond the limit are searched as whole words, with a notice, and the result is [partial](SearchResults::is_partial). The
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// A message that is left out, as if it were not in scope: the question that a model answers would be found by its own words.
    pub omits: Option<(SessionId, MessageId)>,
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
        Self { text: text.into(), scope, limit: DEFAULT_LIMIT, ..Self::default() }
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

/// What is searched: the storage, which is above this module.
pub(crate) trait SearchTarget: Send + Sync {
    /// Returns the matching messages, best first.
    fn search(&self, request: &SearchRequest) -> Result<SearchResults>;
    /// Returns the matching sessions, best first.
    fn search_sessions(&self, request: &SearchRequest) -> Result<SearchResults<SessionHit>>;
}

/// A search of a store, a session or a path.
///
/// [`Query`] documents the query language. No text is a syntax error. For a text that was not written as a
/// query, such as a message, use a [`plain`](Self::plain) search.
///
/// Whoever writes the query cannot widen the scope: `session:` in a query, like [`session`](Self::session), narrows it.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// for n in 0..30 {
///     store.session("s")?.append(Message::user(format!("red {n}")))?;
/// }
/// let second_page = store.search("red").offset(20).run()?;
/// assert_eq!(second_page.hits.len(), 10);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a search does nothing until `run`"]
pub struct Search {
    target: Arc<dyn SearchTarget>,
    request: SearchRequest,
    /// Whether only the path to the head is searched, of the one session that the scope must have in the end.
    is_on_path: bool,
    /// Gives the query a vector.
    embedder: Option<Arc<dyn Embedder>>,
}

impl Search {
    pub(crate) fn new(target: Arc<dyn SearchTarget>, request: SearchRequest) -> Self {
        Self { target, request, is_on_path: false, embedder: None }
    }

    /// Narrows the search to one session.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for id in ["monday", "tuesday"] {
    ///     store.session(id)?.append(Message::user("hello"))?;
    /// }
    /// let hits = store.search("hello").session("monday").run()?.hits;
    /// assert_eq!(hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn session(self, id: impl Into<SessionId>) -> Self {
        self.sessions([id])
    }

    /// Narrows the search to these sessions. An empty list finds nothing.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for id in ["monday", "tuesday", "friday"] {
    ///     store.session(id)?.append(Message::user("hello"))?;
    /// }
    /// assert_eq!(store.search("hello").sessions(["monday", "friday"]).run()?.hits.len(), 2);
    /// assert_eq!(store.session("monday")?.search("hello").session("friday").run()?.hits.len(), 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn sessions<I: Into<SessionId>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        let ids: Vec<SessionId> = ids.into_iter().map(Into::into).collect();
        self.request.scope = self.request.scope.within(&ids);
        self
    }

    /// Narrows the search to the sessions of an owner.
    ///
    /// ```
    /// use talktree::{Message, SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for owner in ["user:1", "user:2"] {
    ///     let details = SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() };
    ///     store.create_session(details)?.append(Message::user("hello"))?;
    /// }
    /// assert_eq!(store.search("hello").owner("user:1").run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.request.owner = Some(owner.into());
        self
    }

    /// Narrows the search to messages that a person wrote, named by [`Author::key`](crate::Author::key).
    ///
    /// With an empty query it lists them, newest first.
    ///
    /// ```
    /// use talktree::{Author, Message, Store};
    ///
    /// let group = Store::open_in_memory()?.session("group")?;
    /// for id in ["41", "42"] {
    ///     group.append(Message::user("hello").from(&Author::new(id)))?;
    /// }
    /// assert_eq!(group.search("hello").author("42").run()?.hits.len(), 1);
    /// assert_eq!(group.search("hello author:41").author("42").run()?.hits.len(), 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn author(mut self, author: impl Into<String>) -> Self {
        self.request.author = Some(author.into());
        self
    }

    /// Narrows the search to messages with a tag; called again, to those with all of the tags.
    ///
    /// With an empty query it lists them, newest first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let group = Store::open_in_memory()?.session("group")?;
    /// let bad = group.append(Message::user("Buy now!"))?.id;
    /// group.append(Message::user("I would not buy that."))?;
    /// group.tag(&bad, "spam")?;
    /// assert_eq!(group.search("buy").tag("spam").run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.request.tags.push(tag.into());
        self
    }

    /// Leaves hidden messages out, for a search whose hits a model sees.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::system("The user is on a slow line.").hidden())?;
    /// assert_eq!(chat.search("slow").run()?.hits.len(), 1);
    /// assert_eq!(chat.search("slow").without_hidden().run()?.hits.len(), 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn without_hidden(mut self) -> Self {
        self.request.omits_hidden = true;
        self
    }

    /// Narrows a search of one session to the path to its head. Of a store or of several sessions, name one with
    /// [`session`](Self::session), before or after this; otherwise [`run`](Self::run) is [`Error::Unsupported`].
    ///
    /// [`Path::search`](crate::Path::search) searches the path to another message.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Which colour?"))?.id;
    /// chat.append(Message::assistant("A red colour."))?;
    /// chat.append_to(&question, Message::assistant("A blue colour."))?;
    ///
    /// assert_eq!(chat.search("colour").run()?.hits.len(), 3);
    /// assert_eq!(chat.search("colour").on_path().run()?.hits.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn on_path(mut self) -> Self {
        self.is_on_path = true;
        self
    }

    /// Searches for the words of the text, which is no query: nothing in it is an operator, a filter or a date.
    ///
    /// For a text that was not written as a query, such as a message or a title. The words match as those of a query do:
    /// all of them, or some if they are a question or if no message has them all.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("The option -draft hides role:user."))?;
    ///
    /// assert_eq!(store.search("-draft role:tool").run()?.hits.len(), 0);
    /// assert_eq!(store.search("-draft role:tool").plain().run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn plain(mut self) -> Self {
        self.request.is_plain = true;
        self
    }

    /// Requires a run of characters in the searched part of a message, exactly as written. Several calls require all runs.
    ///
    /// As `exact:"..."` in a query, but the run may also have quotes. The messages with the words of the run are found first
    /// and read. For a run without a whole word all messages in scope are read, newest first: set a [`timeout`](Self::timeout).
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("s")?;
    /// chat.append_all(["let x = a ?? b;", "let x = a ? b : c;"].map(Message::user))?;
    ///
    /// assert_eq!(store.search("").exact("a ?? b").run()?.hits.len(), 1);
    /// assert_eq!(store.search("let").exact("??").run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn exact(mut self, run: impl Into<String>) -> Self {
        self.request.exact.push(run.into());
        self
    }

    /// Sets how long to search at most. By default there is no limit.
    ///
    /// After this time the result holds what was found until then, the newest matches rather than the best, and
    /// [`is_partial`](SearchResults::is_partial) is true. Reading the texts of the hits takes some milliseconds more.
    ///
    /// ```
    /// use std::time::Duration;
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("a red fox"))?;
    /// let search = store.search("fox");
    ///
    /// let found = search.clone().timeout(Duration::from_secs(60)).run()?;
    /// assert_eq!((found.hits.len(), found.is_partial), (1, false));
    /// assert!(search.timeout(Duration::ZERO).run()?.is_partial);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.timeout = Some(timeout);
        self
    }

    /// Sets the maximum number of results. The default is 20.
    pub fn limit(mut self, limit: usize) -> Self {
        self.request.limit = limit;
        self
    }

    /// Skips this many results, for the pages after the first.
    pub fn offset(mut self, offset: usize) -> Self {
        self.request.offset = offset;
        self
    }

    /// Sets the current time, for queries like `last week` and `after:7d`.
    ///
    /// ```
    /// use chrono::{TimeDelta, Utc};
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("We deploy on Friday."))?;
    /// let later = Utc::now() + TimeDelta::days(3);
    /// let found = store.search("when did we say we deploy, three days ago?").now(later).run()?;
    /// assert_eq!(found.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn now(mut self, now: DateTime<Utc>) -> Self {
        self.request.now = Some(now);
        self
    }

    /// Also finds messages that mean what the query says, in other words.
    ///
    /// The embedder gives the query a vector, outside any transaction, and the vectors that
    /// [`Store::embed`](crate::Store::embed) has stored of messages in scope are all compared with it. The score of a hit is then the sum
    /// of two: its score for words, as a share of the best one, and a part of the cosine. Filters and excluded words apply. A
    /// query with a phrase in quotes, a prefix or an `OR` asks for these words, and one `in:tools` for texts without vectors:
    /// their hits are as without an embedder.
    ///
    /// Comparing a vector of 384 dimensions costs about a microsecond, so this is for scopes of up to some 100 000 messages.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use talktree::{BoxError, Embedder, Message, Store};
    ///
    /// /// Knows two things: medicine and music.
    /// struct Topics;
    ///
    /// impl Embedder for Topics {
    ///     fn name(&self) -> &str {
    ///         "topics-1"
    ///     }
    ///
    ///     fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
    ///         let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word)) as u8 as f32;
    ///         let topics = |text: &&str| vec![has(text, &["doctor", "Dr."]), has(text, &["song", "tune"])];
    ///         Ok(texts.iter().map(topics).collect())
    ///     }
    /// }
    ///
    /// let model = Arc::new(Topics);
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("I have to see Dr. Patel on Monday."))?;
    /// store.embed(&model, |_| {})?;
    /// assert_eq!(store.search("doctor").by_meaning(model).run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// [`run`](Self::run) fails with [`Error::Embedder`] if the embedder does.
    pub fn by_meaning(mut self, embedder: impl Embedder + 'static) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Returns the matching messages, best first.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the leaf of a path is not in its session; [`Error::Unsupported`] after
    /// [`on_path`](Self::on_path) on several sessions; [`Error::Interrupted`]; and those of every read.
    pub fn run(self) -> Result<SearchResults> {
        let request = self.request_with_meaning()?;
        self.target.search(&request)
    }

    /// Returns the matching sessions with their best messages, best first. The limit and offset count sessions.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("monday")?;
    /// chat.append_all(["red", "red again"].map(Message::user))?;
    ///
    /// let sessions = store.search("red").limit(1).run_by_session()?.hits;
    /// assert_eq!((sessions.len(), sessions[0].hits.len()), (1, 2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_by_session(self) -> Result<SearchResults<SessionHit>> {
        let request = self.request_with_meaning()?;
        self.target.search_sessions(&request)
    }

    /// Returns queries with one condition less that find something, for a search that found nothing.
    ///
    /// Each was tried with a limit of 1, so this costs up to about thirty short searches; a
    /// [`timeout`](Self::timeout) limits all of them together. An alternative never leaves the scope of the search. A
    /// [`plain`](Self::plain) search has none.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("The deployment is on Friday."))?;
    ///
    /// let search = store.search("role:assistant friday");
    /// assert!(search.clone().run()?.hits.is_empty());
    /// assert_eq!(search.alternatives()?[0].query, "friday");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn alternatives(&self) -> Result<Vec<Alternative>> {
        let request = self.request()?;
        results::alternatives(&request, |other| Ok(!self.target.search(other)?.hits.is_empty()))
    }

    /// Returns the request with the vector of its text.
    fn request_with_meaning(&self) -> Result<Cow<'_, SearchRequest>> {
        let mut request = self.request()?;
        if let Some(embedder) = &self.embedder {
            let meaning = match request.is_plain {
                true => QueryVector::of(embedder, &request.text)?,
                false => QueryVector::of(embedder, &results::spoken(&request.text))?,
            };
            request.to_mut().meaning = meaning;
        }
        Ok(request)
    }

    /// Returns the request with the scope of all calls together.
    fn request(&self) -> Result<Cow<'_, SearchRequest>> {
        match &self.request.scope {
            _ if !self.is_on_path => {}
            Scope::Sessions(ids) if ids.len() == 1 => {
                let scope = Scope::Path(ids[0].clone(), None);
                return Ok(Cow::Owned(SearchRequest { scope, ..self.request.clone() }));
            }
            // Without any session there is nothing to find, and nothing to refuse.
            Scope::Sessions(ids) if ids.is_empty() => {}
            Scope::Path(..) => {}
            Scope::Store | Scope::Sessions(_) => {
                let what = "a search of a path without one session; name the session";
                return Err(Error::Unsupported { what });
            }
        }
        Ok(Cow::Borrowed(&self.request))
    }
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Search").field(&self.request).finish()
    }
}
