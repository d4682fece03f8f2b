//! Sessions: one conversation each.
//!
//! A [`Session`] is a cheap handle of a session of a store: clones share it, any number of
//! threads may use one, and it caches nothing of the conversation. The first write creates the
//! session; before that it reads as empty. One file holds one family of verbs.

mod builder;
mod compact;
mod context;
mod head;
mod over;
mod page;
mod read;
mod reply;
mod write;

use std::fmt;
use std::sync::{Arc, Weak};

use crate::context::{Backing, Context, WeakContext};
use crate::error::Result;
use crate::event::{Change, Event, Events, Subscription};
use crate::id::{MessageId, SessionId, check_name};
use crate::outcome::{SessionDetails, SessionInfo};
use crate::search::{Scope, Search, SearchRequest};
use crate::storage::sqlite::{Spool, SqliteSession, catalog};
use crate::tokens::Counter;
use compact::{CompactionSettings, CompactionSettingsBuilder};

pub use builder::SessionBuilder;
pub use compact::{BranchSummaryPlan, Compacted};
pub use context::ToolStats;
pub use over::ProviderSession;
pub use page::{Messages, PageBuilder};
pub use read::Path;

/// One conversation.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("telegram:4711")?;
/// let question = chat.append(Message::user("Name three colours"))?.id;
/// chat.append(Message::assistant("red, green, blue"))?;
/// chat.append_to(&question, Message::assistant("cyan, magenta, yellow"))?;
///
/// assert_eq!(chat.branches(&question)?.len(), 2);
/// assert_eq!(chat.history()?.len(), 2);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct Session {
    storage: Arc<SqliteSession>,
    events: Events,
    context: Context,
    compaction: Arc<CompactionSettings>,
}

impl Session {
    pub(crate) fn storage(&self) -> &SqliteSession {
        &self.storage
    }

    /// Returns the id of the session.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// let chat = Store::open_in_memory()?.session("telegram:4711")?;
    /// assert_eq!(*chat.id(), "telegram:4711");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.storage.id()
    }

    /// Returns the session's details; `None` before its first write.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("telegram:4711")?;
    /// assert_eq!(chat.info()?, None);
    /// chat.append(Message::user("hello"))?;
    /// assert_eq!(chat.info()?.unwrap().id, "telegram:4711");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read: [`Error::Busy`](crate::Error::Busy), [`Error::Corrupt`](crate::Error::Corrupt)
    /// or [`Error::Storage`](crate::Error::Storage).
    pub fn info(&self) -> Result<Option<SessionInfo>> {
        self.storage.info()
    }

    /// Sets the details of the session that are `Some`; the others keep their value.
    ///
    /// Creates the session if it does not exist. [`Store::create_session_as`](crate::Store::create_session_as) creates
    /// one that must not exist yet.
    ///
    /// ```
    /// use talktree::{SessionDetails, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let model = Some("large".to_owned());
    /// chat.set_details(&SessionDetails { model, ..SessionDetails::default() })?;
    /// let name = Some("Deployment".to_owned());
    /// chat.set_details(&SessionDetails { name, ..SessionDetails::default() })?;
    ///
    /// let info = chat.info()?.unwrap();
    /// assert_eq!(info.model.as_deref(), Some("large")); // left as it was
    /// assert_eq!(info.name.as_deref(), Some("Deployment"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a name is empty or too long; as every
    /// write.
    pub fn set_details(&self, details: &SessionDetails) -> Result<()> {
        details.check()?;
        let max = self.storage.max_message_bytes();
        self.storage.write_short(|conn, name| {
            catalog::set_details(conn, name.find_or_create(conn)?.key, details, max)
        })
    }

    /// Returns a new session that starts with a copy of the path to `at`: its stored messages,
    /// compactions and labels.
    ///
    /// Ids are kept, and the fork point is recorded. One transaction. At a summary whose last message is deleted, the message
    /// above it takes its place: the copy of the summary ends there.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Shall we?"))?.id;
    /// chat.append(Message::assistant("No."))?;
    ///
    /// let what_if = chat.fork(&question, "What if")?;
    /// what_if.append(Message::assistant("Yes!"))?;
    /// assert_eq!(what_if.history()?[0].id, question);
    /// assert_eq!(chat.history()?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `at` is not in this session, or is a summary of which no message is left.
    pub fn fork(&self, at: &MessageId, name: &str) -> Result<Self> {
        self.fork_as(&SessionId::new(), at, name)
    }

    /// Returns a fork, as [`fork`](Self::fork) does, under the given id.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Shall we?"))?.id;
    ///
    /// let what_if = chat.fork_as(&"s/what-if".into(), &question, "What if")?;
    /// assert_eq!(what_if.info()?.unwrap().fork_point, Some(question.clone()));
    /// let again = chat.fork_as(&"s/what-if".into(), &question, "What if");
    /// assert!(matches!(again, Err(Error::SessionExists { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SessionExists`](crate::Error::SessionExists) if the id is taken; as
    /// [`fork`](Self::fork).
    pub fn fork_as(&self, id: &SessionId, at: &MessageId, name: &str) -> Result<Self> {
        id.check()?;
        check_name("session name", name)?;
        let details = SessionDetails { name: Some(name.to_owned()), ..SessionDetails::default() };
        let fork = self.of_another(self.storage.fork(at, id, &details)?);
        if let Ok(length) = fork.path_length() {
            fork.emit_changed(|| Change::Import { messages: length });
        }
        Ok(fork)
    }

    /// Calls `listener` after each committed change to this session that a handle of this store
    /// makes, in the thread that made it.
    ///
    /// A listener may read, write, subscribe and drop subscriptions: no lock is held. If it panics, the
    /// change is committed all the same, the other listeners are called, and the
    /// [`on_error`](SessionBuilder::on_error) of the session that changed receives
    /// [`Error::Callback`](crate::Error::Callback). A listener whose changes call listeners without end is
    /// not called when eight callbacks run inside each other; the error handler hears of the first time.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use talktree::{Change, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let (sender, changes) = mpsc::channel();
    /// let _subscription = chat.subscribe(move |event| { let _ = sender.send(event.change.clone()); });
    ///
    /// let id = chat.append(Message::user("hi"))?.id;
    /// assert_eq!(changes.recv(), Ok(Change::Append { ids: vec![id] }));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn subscribe(&self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Subscription {
        let id = self.id().clone();
        self.events.subscribe(move |event| {
            if event.session == id {
                listener(event);
            }
        })
    }

    /// Returns the session as it is now, for reads only.
    pub(crate) fn snapshot(&self) -> Result<Self> {
        let storage = Arc::new(self.storage.snapshot()?);
        Ok(Self {
            context: Context::empty(Backing::of(Arc::clone(&storage))),
            storage,
            events: Events::default(),
            compaction: CompactionSettingsBuilder::default().with(Counter::default()),
        })
    }

    /// Returns where an export of a snapshot is kept until the snapshot is closed.
    pub(crate) fn spool(&self) -> Spool {
        self.storage.spool()
    }

    /// Returns another session of the same store, with the same settings.
    fn of_another(&self, storage: SqliteSession) -> Self {
        let storage = Arc::new(storage);
        Self {
            context: self.context.moved_to(Backing::of(Arc::clone(&storage))),
            storage,
            events: self.events.clone(),
            compaction: self.compaction.of_another(),
        }
    }

    /// Returns whether two handles are clones of one.
    pub(crate) fn is_same_handle(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    fn emit(&self, change: impl FnOnce() -> Change) {
        self.events.emit(self.id(), change, |error| self.compaction.report(error));
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", self.id()).finish_non_exhaustive()
    }
}

impl Session {
    /// Returns a builder of a search in all branches of this session.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("Which colour shall the door have?"))?;
    /// let found = chat.search("colour door").run()?;
    /// assert_eq!(found.hits[0].snippet.to_string(), "Which **colour** shall the **door** have?");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn search(&self, text: impl Into<String>) -> Search {
        self.search_in(SearchRequest::new(text, Scope::session(self.id().clone())))
    }

    /// Returns a search of the path to `leaf`, or to the head if `None`.
    pub(super) fn search_within(&self, text: String, leaf: Option<&MessageId>) -> Search {
        self.search_in(SearchRequest::new(text, Scope::Path(self.id().clone(), leaf.cloned())))
    }

    fn search_in(&self, request: SearchRequest) -> Search {
        let target = Arc::clone(self.storage.database());
        Search::new(target, request)
    }
}

/// A handle of a session that ends when all others are dropped.
///
/// A manager keeps one for each open session, so that all handles of a session share its blocks.
#[derive(Clone)]
pub(crate) struct WeakSession {
    storage: Weak<SqliteSession>,
    events: Events,
    context: WeakContext,
    compaction: Weak<CompactionSettings>,
}

impl Session {
    pub(crate) fn downgrade(&self) -> WeakSession {
        WeakSession {
            storage: Arc::downgrade(&self.storage),
            events: self.events.clone(),
            context: self.context.downgrade(),
            compaction: Arc::downgrade(&self.compaction),
        }
    }
}

impl WeakSession {
    pub(crate) fn upgrade(&self) -> Option<Session> {
        Some(Session {
            storage: self.storage.upgrade()?,
            events: self.events.clone(),
            context: self.context.upgrade()?,
            compaction: self.compaction.upgrade()?,
        })
    }

    pub(crate) fn is_live(&self) -> bool {
        self.storage.strong_count() > 0
    }
}
