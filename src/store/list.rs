//! Lists of sessions.

use std::sync::Arc;

use super::Store;
use crate::catalog::{SessionFilter, SessionPage};
use crate::error::Result;
use crate::storage::sqlite::Database;

/// A page of a list of sessions, the one with the newest message first. Made by [`Store::list`].
///
/// A page costs what it shows, not how many sessions there are, if the filter names nothing, an owner, a source or a model.
/// With a tag it costs how many sessions have the tag; a text in the name is looked for in all of them.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// for id in ["monday", "tuesday", "monday"] {
///     store.session(id)?.append(Message::user(format!("Good {id}!")))?;
/// }
/// let page = store.list().limit(1).run()?;
/// assert_eq!(page.sessions[0].info.id, "monday");
/// assert_eq!(page.sessions[0].preview.as_deref(), Some("Good monday!"));
///
/// let page = store.list().limit(1).after(page.after.as_deref()).run()?;
/// assert_eq!((page.sessions[0].info.messages, page.after), (1, None));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a list does nothing until `run`"]
pub struct SessionList {
    database: Arc<Database>,
    filter: SessionFilter,
    after: Option<String>,
    limit: usize,
}

impl Store {
    /// Returns a list of the sessions that are not in the trash. [`SessionList`] has an example.
    pub fn list(&self) -> SessionList {
        SessionList {
            database: Arc::clone(&self.database),
            filter: SessionFilter::default(),
            after: None,
            limit: 20,
        }
    }
}

impl SessionList {
    /// Lists what a filter shows, instead of what was set before.
    pub fn filter(mut self, filter: SessionFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Lists the sessions of an owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.filter.owner = Some(owner.into());
        self
    }

    /// Goes on after a place that an earlier page returned.
    pub fn after(mut self, place: Option<&str>) -> Self {
        self.after = place.map(str::to_owned);
        self
    }

    /// Lists at most so many sessions: 20 without this, 1 000 at most.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Returns the page.
    ///
    /// # Errors
    /// As every read.
    pub fn run(self) -> Result<SessionPage> {
        self.database.list_sessions(&self.filter, self.after.as_deref(), self.limit)
    }
}
