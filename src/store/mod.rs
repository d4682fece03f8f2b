//! The store: one database file with all its sessions.

mod import;
mod options;
mod search;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::context::{Backing, ContextBuilder};
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::event::{Change, Event, Events, Subscription};
use crate::id::{SessionId, check_name};
use crate::outcome::{SessionDetails, SessionInfo};
use crate::report::{Progress, StoreStats, Verified};
use crate::session::{InProgress, Session, SessionBuilder};
use crate::storage::sqlite::{self, Database, InterruptSignal, SqliteSession, Watch};

pub use options::{Durability, StoreOptions};

/// One database file with all its sessions.
///
/// A cheap handle: clones share the connections. Any number of threads and processes may use one file.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("telegram:4711")?.append(Message::user("Can we deploy on Friday?"))?;
/// for hit in store.search("deploy friday").limit(5).run()? {
///     println!("{}  {}  {}", hit.session, hit.created_at, hit.snippet);
/// }
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct Store {
    database: Arc<Database>,
    events: Events,
    in_progress: InProgress,
}

impl Store {
    /// Opens the store in a file, which is created if it does not exist.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// Store::open(&path)?.session("s")?.append(Message::user("hello"))?;
    /// assert_eq!(Store::open(&path)?.session("s")?.history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAStore`] if the file is not a talktree store, [`Error::NewerStore`] if a newer
    /// talktree wrote it, [`Error::Io`] if it cannot be created or opened, [`Error::InvalidName`] if its absolute path
    /// is too long.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens a store in memory, which lives as long as its handles.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("hello"))?;
    /// assert_eq!(store.clone().sessions()?.len(), 1); // a clone is the same store
    /// assert!(Store::open_in_memory()?.sessions()?.is_empty()); // another is its own
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`] if there is not enough memory.
    pub fn open_in_memory() -> Result<Self> {
        Self::options().open_in_memory()
    }

    /// Opens an existing store for reading only.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// Store::open(&path)?.session("s")?.append(Message::user("hello"))?;
    ///
    /// let chat = Store::open_read_only(&path)?.session("s")?;
    /// assert_eq!(chat.history()?.len(), 1);
    /// assert!(matches!(chat.append(Message::user("hi")), Err(Error::ReadOnly { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OlderStore`] if an older talktree wrote it: only a store that is opened for writing is
    /// migrated. As [`open`](Self::open).
    ///
    /// Where SQLite cannot create its lock files beside the file, the file is read without locks, and a read never
    /// returns an old state: it is [`Error::UnreadableLog`] if there is a log, or if others have written since.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open_read_only(path)
    }

    /// Returns whether this process has a file open as a part of a store: the database, its write-ahead log or its lock
    /// file, by whatever name.
    ///
    /// Do not open such a file yourself, not even to read it: when a process closes any descriptor of a file, POSIX
    /// systems drop all its locks on that file. Then other processes would remove the log under this store, and
    /// acknowledged writes would be lost. A program that opens files that it did not choose, such as all files of a
    /// folder, asks this first.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::open(&path)?;
    /// assert!(Store::is_open_file(&path));
    /// assert!(Store::is_open_file(folder.path().join("bot.db-wal")));
    /// assert!(!Store::is_open_file(folder.path().join("chats.jsonl")));
    ///
    /// drop(store);
    /// assert!(!Store::is_open_file(&path));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn is_open_file(path: impl AsRef<Path>) -> bool {
        sqlite::is_open(path.as_ref())
    }

    /// Returns the options a store can be opened with.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
    /// let long = Message::user("x".repeat(2_000));
    /// let refused = store.session("s")?.append(long);
    /// assert!(matches!(refused, Err(Error::MessageTooLarge { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn options() -> StoreOptions {
        StoreOptions::default()
    }

    fn over(database: Database) -> Self {
        Self {
            database: Arc::new(database),
            events: Events::default(),
            in_progress: InProgress::default(),
        }
    }

    /// Returns the session with this id; its first write creates it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("telegram:4711")?;
    /// assert!(store.sessions()?.is_empty());
    ///
    /// chat.append(Message::user("hello"))?;
    /// assert_eq!(store.sessions()?[0].id, "telegram:4711");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidName`] if the id is empty or longer than
    /// [`MAX_ID_BYTES`](crate::MAX_ID_BYTES).
    pub fn session(&self, id: impl Into<SessionId>) -> Result<Session> {
        self.session_builder(id).open()
    }

    /// Returns a builder of a session with context blocks, a frozen prompt, tools and compaction.
    ///
    /// [`SessionBuilder`] has an example.
    pub fn session_builder(&self, id: impl Into<SessionId>) -> SessionBuilder {
        let id = id.into();
        let provider = Arc::new(SqliteSession::new(Arc::clone(&self.database), id));
        let store = provider.context();
        SessionBuilder::over(provider, self.events.clone(), self.in_progress.clone(), Some(store))
    }

    /// Returns a builder of a context without a session, for a program that keeps its messages elsewhere.
    ///
    /// Its stored texts belong to the session with this id, which needs no messages.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.append("memory", "Likes coffee.")?;
    /// assert!(context.prompt()?.ends_with("Likes coffee."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn context(&self, id: impl Into<SessionId>) -> ContextBuilder {
        let id = id.into();
        let conversation = Arc::new(SqliteSession::new(Arc::clone(&self.database), id));
        let store = conversation.context();
        ContextBuilder::over(Backing { store: Some(store), conversation: Some(conversation) })
    }

    /// Creates a session with a new id and these details, in one transaction, and returns it.
    ///
    /// A text is the name.
    ///
    /// ```
    /// use talktree::{SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.create_session("Deployment")?;
    /// assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("Deployment"));
    ///
    /// let model = Some("large".to_owned());
    /// let chat = store.create_session(SessionDetails { model, ..SessionDetails::named("Door") })?;
    /// assert_eq!(chat.info()?.unwrap().model.as_deref(), Some("large"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidName`] if a name is empty or too long; as every write.
    pub fn create_session(&self, details: impl Into<SessionDetails>) -> Result<Session> {
        self.create_session_as(SessionId::new(), details)
    }

    /// Creates a session, as [`create_session`](Self::create_session) does, under the given id.
    ///
    /// An importer keeps the times of its source this way.
    ///
    /// ```
    /// use talktree::{Error, Message, SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let (first, last) = ("2024-02-03T10:00:00Z".parse().unwrap(), "2024-02-03T11:30:00Z".parse().unwrap());
    /// let details = SessionDetails { created_at: Some(first), ..SessionDetails::named("Old talk") };
    /// let chat = store.create_session_as("old", details)?;
    /// chat.append_all([Message::user("hello").at(first), Message::assistant("hi").at(last)])?;
    /// chat.set_details(&SessionDetails { updated_at: Some(last), ..SessionDetails::default() })?;
    ///
    /// let info = chat.info()?.unwrap();
    /// assert_eq!((info.created_at, info.updated_at), (first, last));
    /// let again = store.create_session_as("old", "Another");
    /// assert!(matches!(again, Err(Error::SessionExists { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SessionExists`] if the id is taken; as [`create_session`](Self::create_session).
    pub fn create_session_as(
        &self,
        id: impl Into<SessionId>,
        details: impl Into<SessionDetails>,
    ) -> Result<Session> {
        let session = self.session(id)?;
        let details = details.into();
        details.check()?;
        self.database.create_session(session.id(), &details)?;
        session.info()?; // from here on the handle knows the session
        Ok(session)
    }

    /// Returns the details of every session; the most recently written comes first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for id in ["monday", "tuesday", "monday"] {
    ///     store.session(id)?.append(Message::user("hello"))?;
    /// }
    /// let ids: Vec<_> = store.sessions()?.into_iter().map(|session| session.id).collect();
    /// assert_eq!(ids, ["monday", "tuesday"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.database.sessions()
    }

    pub(crate) fn session_ids(&self) -> Result<Vec<SessionId>> {
        self.database.session_ids()
    }

    /// Renames a session.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("telegram:4711")?.append(Message::user("hello"))?;
    /// store.rename(&"telegram:4711".into(), "Deployment")?;
    /// assert_eq!(store.sessions()?[0].name.as_deref(), Some("Deployment"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if it is not in the store; [`Error::InvalidName`].
    pub fn rename(&self, id: &SessionId, name: &str) -> Result<()> {
        check_name("session name", name)?;
        self.database.rename(id, name)
    }

    /// Removes a session with its messages, compactions, labels and context.
    ///
    /// Forks of it keep their copies. A handle that read or wrote the session reads as empty from then on, and its writes
    /// fail with [`Error::SessionRemoved`]; a new handle of the same id begins a new session.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let copy = chat.fork(&hello, "Copy")?;
    ///
    /// store.remove(chat.id())?;
    /// assert_eq!(store.sessions()?.len(), 1);
    /// assert_eq!(copy.history()?.len(), 1);
    ///
    /// assert!(chat.append(Message::user("still there?")).is_err());
    /// store.session("s")?.append(Message::user("hello again"))?;
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if it is not in the store.
    pub fn remove(&self, id: &SessionId) -> Result<()> {
        self.database.remove(id)?;
        // A store has no error handler.
        self.events.emit(id, || Change::Remove, |_| {});
        Ok(())
    }

    /// Returns the statistics of the store.
    ///
    /// The read costs the shape of every tree, not the content.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// chat.append_to(&question, Message::assistant("cyan"))?;
    ///
    /// let stats = store.stats()?;
    /// assert_eq!((stats.sessions, stats.messages, stats.branching_messages), (1, 3, 1));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read; [`Error::Interrupted`].
    pub fn stats(&self) -> Result<StoreStats> {
        self.database.stats()
    }

    /// Checks every invariant of the store and lists the damage found.
    ///
    /// Reads everything, and calls `progress` on the way.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("hello"))?;
    ///
    /// let verified = store.verify(|at| println!("{} of {}", at.done, at.total))?;
    /// assert_eq!(verified.messages, 1);
    /// assert!(verified.damages.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read; [`Error::Interrupted`]. Damage is not an error: the result
    /// lists it.
    ///
    /// The search index of a store of more than 32 MiB is checked in a copy, which is made beside the store and removed
    /// afterwards.
    pub fn verify(&self, progress: impl FnMut(Progress)) -> Result<Verified> {
        self.database.verify(progress)
    }

    /// Copies a snapshot of the store to a new file; others may write at the same time.
    ///
    /// The file gets its name when the copy is complete. A crash may leave an incomplete copy whose name
    /// ends in `.partial`. `progress` may use the store; if it panics, so does this call, and no file is
    /// left.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("copy.db");
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("hello"))?;
    ///
    /// store.backup(&path, |_| {})?;
    /// assert_eq!(Store::open(&path)?.content_hash()?, store.content_hash()?);
    /// assert!(matches!(store.backup(&path, |_| {}), Err(Error::Io { .. }))); // never over a file
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists or cannot be created; [`Error::Interrupted`]; no file is left
    /// then.
    pub fn backup(&self, path: impl AsRef<Path>, progress: impl FnMut(Progress)) -> Result<()> {
        self.database.backup(path.as_ref(), progress)
    }

    /// Rebuilds the search index from the stored messages.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("Which colour shall the door have?"))?;
    /// store.rebuild_search()?;
    /// assert_eq!(store.search("door").run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write; [`Error::Interrupted`]: the old index stays then.
    pub fn rebuild_search(&self) -> Result<()> {
        self.database.rebuild_search()
    }

    /// Drops the token figures stored with sessions, and replaces impossible figures of messages and
    /// those of [`TokenCounter`](crate::TokenCounter)s by talktree's estimate. The next use of a session
    /// counts its figure again, with its counter.
    ///
    /// Call it when [`verify`](Self::verify) finds wrong figures, or when a counter gave wrong ones: they
    /// make automatic compaction start too early or too late. It costs time and loses nothing.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::open(&path)?;
    /// let chat = store.session("s")?;
    /// chat.append(Message::user("Hello world"))?;
    ///
    /// let sqlite = rusqlite::Connection::open(&path).unwrap(); // what no one should do
    /// sqlite.execute("UPDATE session SET visible_tokens = 1000000", []).unwrap();
    /// assert_eq!(store.verify(|_| {})?.damages[0].kind, "wrong-tokens");
    ///
    /// store.recount_tokens()?;
    /// assert_eq!(chat.visible_tokens()?, 7);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write; [`Error::Interrupted`].
    pub fn recount_tokens(&self) -> Result<()> {
        self.database.recount_tokens()
    }

    /// Returns a hash of the content of every session: equal for two stores with the same content.
    ///
    /// It covers ids, trees, messages, heads, labels, compactions and session details. It does not cover
    /// context blocks, the head's log or import records. It consists of many reads: if others write
    /// meanwhile, it may mix several states.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("s")?;
    /// let draft = chat.append(Message::assistant("Draft 1"))?.id;
    /// let hash = store.content_hash()?;
    ///
    /// chat.label("best", &draft)?;
    /// assert_ne!(store.content_hash()?, hash);
    /// chat.unlabel("best")?;
    /// assert_eq!(store.content_hash()?, hash);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn content_hash(&self) -> Result<String> {
        crate::export::content_hash(self)
    }

    /// Returns a handle that interrupts this store's long work from another thread: import, verify,
    /// backup, rebuild, statistics and search.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(self.database.interrupt_signal())
    }

    pub(crate) fn interrupt_signal(&self) -> InterruptSignal {
        self.database.interrupt_signal()
    }

    /// Calls `listener` after each committed change to any session that this handle or a clone of it
    /// makes, in the thread that made it.
    ///
    /// [`Session::subscribe`] says what a listener may do.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let (sender, sessions) = mpsc::channel();
    /// let _subscription = store.subscribe(move |event| { let _ = sender.send(event.session.clone()); });
    ///
    /// store.session("monday")?.append(Message::user("hello"))?;
    /// store.session("tuesday")?.append(Message::user("hello"))?;
    /// assert_eq!(sessions.try_iter().collect::<Vec<_>>(), ["monday", "tuesday"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn subscribe(&self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Subscription {
        self.events.subscribe(listener)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.database.path()).finish_non_exhaustive()
    }
}

/// Interrupts the long work of a store from another thread.
///
/// Work that runs when [`interrupt`](Self::interrupt) is called ends with [`Error::Interrupted`]; work
/// that starts later is not affected.
///
/// ```
/// use talktree::{Error, Message, Store};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("copy.db");
/// let store = Store::open(folder.path().join("store.db"))?;
/// store.session("s")?.append(Message::user("x".repeat(2 << 20)))?;
///
/// let handle = store.interrupt_handle(); // may go to another thread
/// let stopped = store.backup(&path, |_| handle.interrupt());
/// assert!(matches!(stopped, Err(Error::Interrupted)));
/// assert!(!path.exists());
/// assert!(store.verify(|_| {})?.damages.is_empty()); // begun afterwards
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct InterruptHandle(InterruptSignal);

impl InterruptHandle {
    /// Interrupts the long work that is running.
    pub fn interrupt(&self) {
        self.0.raise();
    }

    /// Returns a watch for long work of your own, which asks it whether to stop; the watch begins now.
    #[must_use]
    pub fn watch(&self) -> InterruptWatch {
        InterruptWatch(self.0.watch())
    }
}

/// Says whether long work on a store must stop.
///
/// ```
/// use talktree::{Error, Store};
///
/// let store = Store::open_in_memory()?;
/// let watch = store.interrupt_handle().watch();
/// watch.check()?;
/// store.interrupt_handle().interrupt();
/// assert!(matches!(watch.check(), Err(Error::Interrupted)));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct InterruptWatch(Watch);

impl InterruptWatch {
    /// Checks that the work may go on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if [`InterruptHandle::interrupt`] was called since the watch began.
    pub fn check(&self) -> Result<()> {
        self.0.check()
    }
}

const _: () = {
    const fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Store>();
    is_shared::<Session>();
};
