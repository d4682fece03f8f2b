//! Many sessions: one template for all of them, a list, and the outside keys that lead to them.
//!
//! A [`SessionManager`] holds what a bot's sessions have in common: blocks, the frozen prompt, compaction, a token counter,
//! tools. It opens every session of a [`Store`] with these settings. Handles of one session in one process share their blocks, so
//! a block added through one is seen by the others; they end when the last handle is dropped.

mod sessions;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::SessionDetails;
use crate::search::Search;
use crate::session::{Session, SessionBuilder, WeakSession};
use crate::store::{SessionList, Store, UsageReport};
pub use sessions::{Resume, ResumedSession};

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
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct SessionManager {
    shared: Arc<Shared>,
}

struct Shared {
    template: SessionBuilder<Store>,
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
    /// [`Error::InvalidValue`] if the id is empty or too long.
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
    /// [`Error::InvalidValue`] if a text is empty or too long; as every write.
    pub fn create(&self, details: impl Into<SessionDetails>) -> Result<Session> {
        self.create_as(SessionId::new(), details)
    }

    /// Creates a session, as [`create`](Self::create) does, under the given id.
    ///
    /// # Errors
    /// [`Error::SessionExists`] if the id is taken; as [`create`](Self::create).
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

    /// Returns a list of the sessions that are not in the trash, also of those that no key leads to.
    ///
    /// ```
    /// use talktree::{Message, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let chat = bot.resume("telegram:4711").owner("user:42").open()?;
    /// chat.append(Message::user("Can we deploy on Friday?"))?;
    ///
    /// assert_eq!(bot.list().owner("user:42").limit(20).run()?.sessions.len(), 1);
    /// assert_eq!(bot.search("deploy").owner("user:42").run()?.hits.len(), 1);
    /// assert!(bot.usage().by_model().run()?.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn list(&self) -> SessionList {
        self.store().list()
    }

    /// Returns a search in all sessions, as [`Store::search`] does.
    pub fn search(&self, text: impl Into<String>) -> Search {
        self.store().search(text)
    }

    /// Returns a report of what answers took, as [`Store::usage`] does.
    pub fn usage(&self) -> UsageReport {
        self.store().usage()
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.shared.template.target()
    }
}

impl fmt::Debug for SessionManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionManager")
            .field("template", &self.shared.template)
            .finish_non_exhaustive()
    }
}

/// The id of the session with which the settings are checked. Nothing is stored before something is written to it.
const TEMPLATE: &str = "template of the manager";

impl SessionManager {
    /// Returns a builder of a manager of the sessions of a store.
    ///
    /// ```
    /// use talktree::{Block, SessionManager, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let bot = SessionManager::builder(&store).block("soul", Block::text("Be brief.")).build()?;
    /// assert!(bot.session("s")?.prompt()?.ends_with("Be brief."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn builder(store: &Store) -> SessionBuilder<Store> {
        SessionBuilder::of(store.clone(), Arc::clone(store.database()), store.events().clone())
    }
}

impl SessionBuilder<Store> {
    /// Returns a builder of one of the sessions.
    fn session(&self, id: SessionId) -> SessionBuilder {
        self.for_session(id)
    }

    /// Returns the manager.
    ///
    /// # Errors
    /// As [`SessionBuilder::open`] for any of its sessions.
    pub fn build(self) -> Result<SessionManager> {
        // What is wrong with the settings is known now, not when a message comes in.
        self.session(TEMPLATE.into()).open()?;
        let shared = Shared { template: self, open: OpenSessions::default() };
        Ok(SessionManager { shared: Arc::new(shared) })
    }
}

/// How many entries there are before ended ones are removed for the first time.
const FIRST_SWEEP: usize = 64;

/// The sessions that have handles, so that another handle shares their blocks. It keeps none of them.
#[derive(Default)]
struct OpenSessions(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    sessions: HashMap<SessionId, WeakSession>,
    /// The number of entries at which ended ones are removed.
    next_sweep: usize,
}

impl OpenSessions {
    /// Returns a handle of the session; the first one is opened.
    fn get(&self, id: &SessionId, open: impl FnOnce() -> Result<Session>) -> Result<Session> {
        let found = self.find(id);
        // A handle of a removed session never writes again; a new one begins the session afresh.
        if let Some(session) = found.as_ref()
            && !matches!(session.storage().identity(), Err(Error::SessionRemoved { .. }))
        {
            return Ok(session.clone());
        }
        let opened = open()?;
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have opened it meanwhile.
        let other = entries.sessions.get(id).and_then(WeakSession::upgrade);
        let is_former =
            |other: &Session| found.as_ref().is_some_and(|found| found.is_same_handle(other));
        if let Some(other) = other.filter(|other| !is_former(other)) {
            return Ok(other);
        }
        if entries.sessions.len() >= entries.next_sweep.max(FIRST_SWEEP) {
            entries.sessions.retain(|_, session| session.is_live());
            entries.next_sweep = entries.sessions.len() * 2;
        }
        entries.sessions.insert(id.clone(), opened.downgrade());
        Ok(opened)
    }

    fn find(&self, id: &SessionId) -> Option<Session> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.sessions.get(id).and_then(WeakSession::upgrade)
    }
}
