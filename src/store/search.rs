//! Searching the whole store.

use chrono::{DateTime, Utc};

use super::Store;
use crate::error::Result;
use crate::id::SessionId;
use crate::search::{Found, Scope, SearchRequest, SessionsFound};

impl Store {
    /// Returns a builder of a search over all sessions.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("monday")?.append(Message::user("Can we deploy on Friday?"))?;
    /// store.session("tuesday")?.append(Message::user("Not on a Friday."))?;
    ///
    /// let found = store.search("friday -deploy").run()?;
    /// assert_eq!(found.hits[0].session, "tuesday");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn search(&self, text: impl Into<String>) -> StoreSearch<'_> {
        StoreSearch { store: self, request: SearchRequest::new(text, Scope::Store) }
    }

    /// Returns a builder of a search for whole conversations.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("monday")?;
    /// chat.append(Message::user("Can we deploy on Friday?"))?;
    /// chat.append(Message::assistant("Friday will do."))?;
    ///
    /// let found = store.search_sessions("friday").run()?;
    /// assert_eq!((found.sessions.len(), found.sessions[0].hits.len()), (1, 2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn search_sessions(&self, text: impl Into<String>) -> SessionsSearch<'_> {
        self.search(text).by_session()
    }
}

/// A search over all sessions.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// for id in ["monday", "tuesday", "friday"] {
///     store.session(id)?.append(Message::user("Which colour?"))?;
/// }
/// assert_eq!(store.search("colour").limit(2).run()?.hits.len(), 2);
/// assert_eq!(store.search("colour").limit(2).offset(2).run()?.hits.len(), 1);
/// assert_eq!(store.search("colour").session("friday").run()?.hits[0].session, "friday");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a search is run by `run`"]
pub struct StoreSearch<'a> {
    store: &'a Store,
    request: SearchRequest,
}

impl<'a> StoreSearch<'a> {
    /// Searches one session only.
    pub fn session(mut self, id: impl Into<SessionId>) -> Self {
        self.request.scope = Scope::Session(id.into());
        self
    }

    /// Answers with this many hits at the most; 20 if it is not called.
    pub fn limit(mut self, limit: usize) -> Self {
        self.request.limit = limit;
        self
    }

    /// Leaves out this many of the best hits, for the pages after the first.
    pub fn offset(mut self, offset: usize) -> Self {
        self.request.offset = offset;
        self
    }

    /// Takes the question as asked at this time: `last week` is the week before it. The clock's time if it is not
    /// called.
    ///
    /// ```
    /// use chrono::{DateTime, TimeDelta};
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let day = |n| DateTime::UNIX_EPOCH + TimeDelta::days(n);
    /// let chat = store.session("s")?;
    /// for n in [0, 10] {
    ///     chat.append(Message::user(format!("We paint door {n}.")).at(day(n)))?;
    /// }
    /// for n in [0, 10] {
    ///     let found = store.search("Which door was it yesterday?").now(day(n + 1)).run()?;
    ///     assert_eq!(found.hits[0].created_at, day(n));
    /// }
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn now(mut self, now: DateTime<Utc>) -> Self {
        self.request.now = Some(now);
        self
    }

    /// Finds whole conversations instead of messages.
    pub fn by_session(self) -> SessionsSearch<'a> {
        SessionsSearch(self)
    }

    /// Returns the messages found, best first.
    ///
    /// # Errors
    /// As every read; no text of a query is an error.
    pub fn run(self) -> Result<Found> {
        self.store.database.search(&self.request)
    }
}

/// A search for whole conversations.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// for id in ["monday", "tuesday", "friday"] {
///     store.session(id)?.append(Message::user("Which colour?"))?;
/// }
/// let rest = store.search_sessions("colour").limit(2).offset(2).run()?;
/// assert_eq!(rest.sessions.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a search is run by `run`"]
pub struct SessionsSearch<'a>(StoreSearch<'a>);

impl SessionsSearch<'_> {
    /// Answers with this many conversations at the most; 20 if it is not called.
    pub fn limit(self, limit: usize) -> Self {
        Self(self.0.limit(limit))
    }

    /// Leaves out this many of the best conversations.
    pub fn offset(self, offset: usize) -> Self {
        Self(self.0.offset(offset))
    }

    /// Takes the question as asked at this time, as [`StoreSearch::now`] does.
    pub fn now(self, now: DateTime<Utc>) -> Self {
        Self(self.0.now(now))
    }

    /// Returns the conversations found with their best messages, best first.
    ///
    /// # Errors
    /// As every read; no text of a query is an error.
    pub fn run(self) -> Result<SessionsFound> {
        self.0.store.database.search_sessions(&self.0.request)
    }
}
