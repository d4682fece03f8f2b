//! Sessions: one conversation each.
//!
//! A [`Session`] is a cheap handle over a [`SessionProvider`]: clones share the storage, any number of
//! threads may use one, and it caches nothing of the conversation. The first write creates the
//! session; before that it reads as empty. One file holds one family of verbs.

mod builder;
mod compact;
mod context;
mod edit;
mod head;
mod page;
mod path;
mod read;
mod recent;
mod retry;
mod search;
mod stream;
mod unfinished;
mod usage;
mod weak;
mod write;

use std::fmt;
use std::sync::Arc;

use compact::{CompactionSettings, CompactionSettingsBuilder};

use crate::context::{Backing, Context};
use crate::error::{Error, Result};
use crate::event::{Change, Event, Events, Subscription};
use crate::id::{MessageId, SessionId, check_name};
use crate::outcome::{SessionDetails, SessionInfo};
use crate::storage::SessionProvider;
use crate::storage::sqlite::Spool;
use crate::tokens::Counter;

pub use builder::{OneSession, SessionBuilder};
pub(crate) use compact::InProgress;
pub use compact::{
    AddedCompaction, BranchSummaryPlan, Compacted, CompactionJob, CompactionOutcome,
};
pub use page::PageBuilder;
pub use path::Path;
pub use retry::Retried;
pub use stream::Messages;
pub use usage::ToolStats;
pub(crate) use weak::WeakSession;

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
    provider: Arc<dyn SessionProvider>,
    events: Events,
    context: Context,
    compaction: CompactionSettings,
}

impl Session {
    /// Returns a session over the caller's own storage.
    ///
    /// ```
    /// use talktree::testing::MemorySession; // with the feature `testing`
    /// use talktree::{Message, Session};
    ///
    /// let chat = Session::over(MemorySession::new("s".into()));
    /// chat.append(Message::user("hello"))?;
    /// assert_eq!(chat.history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn over(provider: impl SessionProvider + 'static) -> Self {
        Self::of(Arc::new(provider))
    }

    pub(crate) fn of(provider: Arc<dyn SessionProvider>) -> Self {
        let backing = Backing { conversation: Some(Arc::clone(&provider)), ..Backing::default() };
        Self {
            provider,
            events: Events::default(),
            context: Context::empty(backing),
            compaction: CompactionSettingsBuilder::default().with(Counter::default()),
        }
    }

    /// Returns a builder of a session over the caller's own storage, with context blocks.
    ///
    /// Stored blocks and a frozen prompt need a [`Store`](crate::Store).
    ///
    /// ```
    /// use talktree::testing::MemorySession; // with the feature `testing`
    /// use talktree::{Block, Session};
    ///
    /// let storage = MemorySession::new("s".into());
    /// let chat = Session::builder(storage).block("soul", Block::text("Be brief.")).open()?;
    /// assert!(chat.prompt()?.ends_with("Be brief."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn builder(provider: impl SessionProvider + 'static) -> SessionBuilder {
        SessionBuilder::over(Arc::new(provider), Events::default(), InProgress::separate(), None)
    }

    /// Returns the storage behind the session.
    ///
    /// ```
    /// use talktree::{Message, SessionProvider, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("hello"))?;
    /// assert_eq!(chat.provider().path_length(None)?, 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn provider(&self) -> Arc<dyn SessionProvider> {
        Arc::clone(&self.provider)
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
        self.provider.id()
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
    /// As every read: [`Error::Busy`], [`Error::Corrupt`]
    /// or [`Error::Storage`].
    pub fn info(&self) -> Result<Option<SessionInfo>> {
        self.provider.info()
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
    /// [`Error::InvalidValue`] if a name is empty or too long; as every
    /// write.
    pub fn set_details(&self, details: &SessionDetails) -> Result<()> {
        details.check()?;
        self.provider.set_details(details)
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
    /// [`Error::UnknownMessage`] if `at` is not in this session, or is a summary of which no message is left.
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
    /// [`Error::SessionExists`] if the id is taken; as
    /// [`fork`](Self::fork).
    pub fn fork_as(&self, id: &SessionId, at: &MessageId, name: &str) -> Result<Self> {
        id.check()?;
        check_name("session name", name)?;
        let details = SessionDetails { name: Some(name.to_owned()), ..SessionDetails::default() };
        let provider = self.provider.fork(at, id, &details)?;
        let fork = self.with_provider(provider);
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
    /// [`Error::Callback`]. A listener whose changes call listeners without end is
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

    /// Returns the session as it is now, for reads only; over a storage that has no snapshots, the session itself.
    pub(crate) fn snapshot(&self) -> Result<Self> {
        let Some(store) = self.context.store() else { return Ok(self.clone()) };
        let (session, store) = store.snapshot()?;
        let provider: Arc<dyn SessionProvider> = Arc::new(session);
        let backing = Backing { store: Some(store), conversation: Some(Arc::clone(&provider)) };
        Ok(Self {
            provider,
            events: Events::default(),
            context: Context::empty(backing),
            compaction: CompactionSettingsBuilder::default().with(Counter::default()),
        })
    }

    /// Returns where an export of a snapshot is kept until the snapshot is closed; `None` over a storage without snapshots.
    pub(crate) fn spool(&self) -> Option<Spool> {
        Some(self.context.store()?.spool())
    }

    /// Returns a session over another storage of the same store, with the same settings.
    fn with_provider(&self, provider: Arc<dyn SessionProvider>) -> Self {
        let backing = self.context.backing().of(Arc::clone(&provider));
        let context = self.context.moved_to(backing);
        Self {
            provider,
            events: self.events.clone(),
            context,
            compaction: self.compaction.of_another(),
        }
    }

    /// Calls the error handler.
    pub(crate) fn report(&self, error: &Error) {
        self.compaction.report(error);
    }

    /// Returns whether two handles are clones of one.
    pub(crate) fn is_same_handle(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.provider, &other.provider)
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
