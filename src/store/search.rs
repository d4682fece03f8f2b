//! Searching the whole store.

use std::sync::Arc;

use super::Store;
use crate::error::Result;
use crate::search::{Found, Scope, Search, SearchRequest, SearchTarget, SessionsFound};
use crate::storage::sqlite::Database;

impl Store {
    /// Returns a builder of a search over all sessions.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("Can we deploy on Friday?"))?;
    /// for hit in store.search("deploy friday").limit(5).run()? {
    ///     assert_eq!(hit.snippet.to_string(), "Can we **deploy** on **Friday**?");
    /// }
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn search(&self, text: impl Into<String>) -> Search {
        let target = Arc::clone(&self.database);
        Search::new(target, SearchRequest::new(text, Scope::Store))
    }
}

impl SearchTarget for Database {
    fn search(&self, request: &SearchRequest) -> Result<Found> {
        Self::search(self, request)
    }

    fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        Self::search_sessions(self, request)
    }
}
