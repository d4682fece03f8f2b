//! Many sessions: one template for all of them, a list, and the outside keys that lead to them.
//!
//! A [`SessionManager`] holds what a bot's sessions have in common: blocks, the frozen prompt, compaction, a token counter,
//! tools. It opens every session of a [`Store`] with these settings. Handles of one session in one process share their blocks, so
//! a block added through one is seen by the others; they end when the last handle is dropped.

mod builder;
mod catalog;
mod erase;
mod list;
mod open_sessions;
mod resume;

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::event::Change;
use crate::id::SessionId;
use crate::outcome::SessionDetails;
use crate::retention::Retention;
use crate::search::Search;
use crate::session::{Session, SessionBuilder};
use crate::store::{RetentionRun, Store, UsageReport};

pub use builder::{ManySessions, SessionManagerBuilder};
pub use list::SessionList;
pub use resume::{Resume, ResumedSession};

use open_sessions::OpenSessions;

/// Many sessions with the same settings.
///
/// A cheap handle: clones share the open sessions.
///
/// ```
/// use std::time::Duration;
/// use talktree::{Block, Message, SessionManager, Store};
///
/// let store = Store::open_in_memory()?;
/// let bot = SessionManager::builder(&store)
///     .block("soul", Block::text("You are a helpful assistant."))
///     .block("memory", Block::stored().max_tokens(1_100))
///     .cached_prompt()
///     .build()?;
///
/// let day = Duration::from_secs(86_400);
/// let chat = bot.resume("telegram:4711").owner("user:42").expire_after(day).open()?;
/// chat.append(Message::user("Can we deploy on Friday?"))?;
/// assert_eq!(bot.resume("telegram:4711").open()?.history()?.len(), 1);
/// assert_eq!(bot.list().owner("user:42").run()?.sessions.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct SessionManager {
    shared: Arc<Shared>,
}

struct Shared {
    template: SessionBuilder<ManySessions>,
    open: OpenSessions,
}

impl SessionManager {
    /// Returns the session with this id, with the settings of the manager; its first write creates it.
    ///
    /// ```
    /// use talktree::{Block, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let chat = bot.session("telegram:4711")?;
    /// chat.context().add("task", Block::text("Book a table."))?;
    /// assert_eq!(bot.session("telegram:4711")?.blocks()?.len(), 1); // the handles share it
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the id is empty or too long.
    pub fn session(&self, id: impl Into<SessionId>) -> Result<Session> {
        let id = id.into();
        self.shared.open.get(&id, || self.shared.template.session(id.clone()).open())
    }

    /// Creates a session with a new id and these details. A text is the name.
    ///
    /// ```
    /// use talktree::{SessionDetails, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let owner = Some("user:42".to_owned());
    /// let chat = bot.create(SessionDetails { owner, ..SessionDetails::named("Deployment") })?;
    /// assert_eq!(bot.get(chat.id())?.unwrap().owner.as_deref(), Some("user:42"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a text is empty or too long; as every write.
    pub fn create(&self, details: impl Into<SessionDetails>) -> Result<Session> {
        self.create_as(SessionId::new(), details)
    }

    /// Creates a session, as [`create`](Self::create) does, under the given id.
    ///
    /// # Errors
    /// [`Error::SessionExists`](crate::Error::SessionExists) if the id is taken; as [`create`](Self::create).
    pub fn create_as(
        &self,
        id: impl Into<SessionId>,
        details: impl Into<SessionDetails>,
    ) -> Result<Session> {
        let id = id.into();
        self.store().create_session_as(id.clone(), details)?;
        let session = self.session(id)?;
        session.info()?; // from here on the handle knows the session
        Ok(session)
    }

    /// Returns a builder of a search over all sessions. [`Search::owner`] narrows it to those of an owner.
    ///
    /// ```
    /// use talktree::{Message, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// bot.session("s")?.append(Message::user("Can we deploy on Friday?"))?;
    /// assert_eq!(bot.search("deploy").run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn search(&self, text: impl Into<String>) -> Search {
        self.store().search(text)
    }

    /// Returns a report of what answers took. [`UsageReport`] has an example.
    pub fn usage(&self) -> UsageReport {
        self.store().usage()
    }

    /// Returns a run of retention rules, as [`Store::retention`] does.
    ///
    /// ```
    /// use talktree::{Message, Retention, RetentionRule, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// for id in ["monday", "tuesday"] {
    ///     bot.session(id)?.append(Message::user("hello"))?;
    /// }
    /// let newest = RetentionRule::new("newest").keep_sessions(1);
    /// bot.retention(Retention::new().rule(newest)).run()?;
    /// assert_eq!(bot.list().run()?.sessions.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn retention(&self, retention: Retention) -> RetentionRun<'_> {
        let on_removed = |id: &SessionId| self.emit(id, || Change::Remove);
        RetentionRun::over(Arc::clone(self.store().database()), retention, on_removed)
    }

    fn store(&self) -> &Store {
        &self.shared.template.target().store
    }

    fn emit(&self, id: &SessionId, change: impl FnOnce() -> Change) {
        // Failures of listeners reach the error handler of the session.
        let session = self.session(id.clone());
        self.shared.template.events().emit(id, change, |error| {
            if let Ok(session) = &session {
                session.report(error);
            }
        });
    }
}

impl fmt::Debug for SessionManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionManager")
            .field("template", &self.shared.template)
            .finish_non_exhaustive()
    }
}
