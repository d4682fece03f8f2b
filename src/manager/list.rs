//! Lists of sessions.

use chrono::{DateTime, Utc};

use super::SessionManager;
use crate::catalog::{SessionCursor, SessionFilter, SessionPage, SessionState};
use crate::error::Result;
use crate::store::Store;

/// The sessions of a page if nothing else is asked for.
const DEFAULT_LIMIT: usize = 20;

/// A list of sessions, the one with the newest message first. Made by [`SessionManager::list`].
///
/// ```
/// use talktree::{Message, SessionManager, Store};
///
/// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
/// for n in 0..30 {
///     bot.session(format!("s{n}"))?.append(Message::user("hello"))?;
/// }
/// let first = bot.list().limit(20).run()?;
/// let second = bot.list().limit(20).after(first.after.unwrap()).run()?;
/// assert_eq!((second.sessions.len(), second.after), (10, None));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a list does nothing until `run`"]
pub struct SessionList {
    store: Store,
    filter: SessionFilter,
    after: Option<SessionCursor>,
    limit: usize,
}

impl SessionManager {
    /// Returns a list of the sessions that are not in the trash. [`SessionList`] has an example.
    pub fn list(&self) -> SessionList {
        SessionList {
            store: self.store().clone(),
            filter: SessionFilter::default(),
            after: None,
            limit: DEFAULT_LIMIT,
        }
    }

    /// Returns a list of the sessions of an owner.
    pub fn sessions_of(&self, owner: impl Into<String>) -> SessionList {
        self.list().owner(owner)
    }
}

impl SessionList {
    /// Shows the sessions that a filter shows, instead of what was set before.
    pub fn filter(mut self, filter: SessionFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Shows the sessions of an owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.filter.owner = Some(owner.into());
        self
    }

    /// Shows the sessions that came from a program or file.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.filter.source = Some(source.into());
        self
    }

    /// Shows the sessions with a model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.filter.model = Some(model.into());
        self
    }

    /// Shows the sessions in which a person wrote, named by [`Author::key`](crate::Author::key).
    ///
    /// ```
    /// use talktree::{Author, Message, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// bot.session("group")?.append(Message::user("hello").from(&Author::new("42")))?;
    /// bot.session("other")?.append(Message::user("hello"))?;
    /// assert_eq!(bot.list().author("42").run()?.sessions.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn author(mut self, author: impl Into<String>) -> Self {
        self.filter.author = Some(author.into());
        self
    }

    /// Shows the sessions with a tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.filter.tag = Some(tag.into());
        self
    }

    /// Shows the sessions whose last message is not older.
    pub fn since(mut self, time: DateTime<Utc>) -> Self {
        self.filter.since = Some(time);
        self
    }

    /// Shows the sessions whose last message is older.
    pub fn until(mut self, time: DateTime<Utc>) -> Self {
        self.filter.until = Some(time);
        self
    }

    /// Shows the sessions with a text in their name, in any case.
    pub fn name(mut self, text: impl Into<String>) -> Self {
        self.filter.name = Some(text.into());
        self
    }

    /// Shows the sessions in a state.
    pub fn state(mut self, state: SessionState) -> Self {
        self.filter.state = state;
        self
    }

    /// Shows pinned sessions only.
    pub fn pinned(mut self) -> Self {
        self.filter.is_pinned = Some(true);
        self
    }

    /// Shows the sessions after a place, which an earlier page returned.
    pub fn after(mut self, after: SessionCursor) -> Self {
        self.after = Some(after);
        self
    }

    /// Shows at most this many sessions: 20 unless set, 1 000 at most.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Returns the page.
    ///
    /// # Errors
    /// As every read.
    pub fn run(self) -> Result<SessionPage> {
        self.store.list_sessions(&self.filter, self.after, self.limit)
    }
}

impl std::fmt::Debug for SessionList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionList")
            .field("filter", &self.filter)
            .field("after", &self.after)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
