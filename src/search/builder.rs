//! The builder of a search of a store, a session or a path.
//!
//! A text is a query, in the language of [`Query`](super::Query), unless the search is [`plain`](Search::plain).
//!
//! Invariant: the method that returns a [`Search`] sets its scope. Later calls and the filters of a query only narrow it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::alternative::{self, Alternative};
use super::{Found, Scope, SearchRequest, SessionsFound};
use crate::embedding::{Embedder, QueryVector};
use crate::error::{Error, Result};
use crate::id::SessionId;

/// A store or session that can be searched.
pub(crate) trait SearchTarget: Send + Sync {
    fn search(&self, request: &SearchRequest) -> Result<Found>;

    fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound>;
}

/// A search of a store, a session or a path.
///
/// [`Query`](super::Query) documents the query language. No text is a syntax error. For a text that was not written as a
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
    /// [`is_partial`](Found::is_partial) is true. Reading the texts of the hits takes some milliseconds more.
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

    /// Searches for whole sessions instead of single messages.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("monday")?;
    /// chat.append_all(["red", "red again"].map(Message::user))?;
    ///
    /// let found = store.search("red").by_session().run()?;
    /// assert_eq!((found.sessions.len(), found.sessions[0].hits.len()), (1, 2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn by_session(self) -> SearchBySession {
        SearchBySession(self)
    }

    /// Returns the matching messages, best first.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the leaf of a path is not in its session; [`Error::Unsupported`] after
    /// [`on_path`](Self::on_path) on several sessions, or if the storage does not support this search;
    /// [`Error::Interrupted`]; and those of every read.
    pub fn run(self) -> Result<Found> {
        let request = self.request_with_meaning()?;
        self.target.search(&request)
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
        alternative::of(&request, |other| Ok(!self.target.search(other)?.hits.is_empty()))
    }

    /// Returns the request with the vector of its text.
    fn request_with_meaning(&self) -> Result<Cow<'_, SearchRequest>> {
        let mut request = self.request()?;
        if let Some(embedder) = &self.embedder {
            let meaning = match request.is_plain {
                true => QueryVector::of(embedder, &request.text)?,
                false => QueryVector::of(embedder, &alternative::spoken(&request.text))?,
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

/// A search for whole sessions.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// for id in ["monday", "tuesday"] {
///     store.session(id)?.append(Message::user("Can we deploy on Friday?"))?;
/// }
/// let best = store.search("friday").limit(1).by_session().run()?;
/// assert_eq!(best.sessions.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a search does nothing until `run`"]
pub struct SearchBySession(Search);

impl SearchBySession {
    /// Returns the matching sessions with their best messages, best first. The limit and offset of the search count
    /// sessions.
    ///
    /// # Errors
    /// As [`Search::run`].
    pub fn run(self) -> Result<SessionsFound> {
        let request = self.0.request_with_meaning()?;
        self.0.target.search_sessions(&request)
    }
}
