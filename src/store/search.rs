//! Searching the whole store.

use chrono::{DateTime, Utc};

use super::Store;
use crate::error::Result;
use crate::id::SessionId;
use crate::search::{Found, Scope, SearchRequest, SessionsFound};

impl Store {
    /// Returns a builder of a search over all sessions.
    pub fn search(&self, text: impl Into<String>) -> StoreSearch<'_> {
        StoreSearch { store: self, request: SearchRequest::new(text, Scope::Store) }
    }

    /// Returns a builder of a search for whole conversations.
    pub fn search_sessions(&self, text: impl Into<String>) -> SessionsSearch<'_> {
        self.search(text).by_session()
    }
}

/// A search over all sessions.
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
