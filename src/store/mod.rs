//! The store: one database file with all its sessions.

mod care;
mod embed;
mod erase;
mod exchange;
mod inbox;
mod interrupt;
mod options;
mod retention;
mod search;
mod sessions;
#[cfg(test)]
mod stream_tests;
mod transcripts;
mod usage;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::event::{Event, Events, Subscription};
use crate::session::Session;
use crate::storage::sqlite::{self, Database};

pub(crate) use erase::tell as tell_erased;
pub use inbox::Inbox;
pub use interrupt::{InterruptHandle, InterruptWatch};
pub use options::{Durability, StoreOptions};
pub use retention::RetentionRun;
pub use transcripts::Transcripts;
pub use usage::UsageReport;

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
    /// talktree wrote it, [`Error::Io`] if it cannot be created or opened, [`Error::InvalidValue`] if its absolute path
    /// is too long, [`Error::HardLinked`] if the file has another name, [`Error::MountedFile`] if it is mounted by itself.
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
    /// Where SQLite cannot create its lock files beside the file, or where they would bar the owner of the file from writing,
    /// the file is read without locks, and a read never returns an old state: it is [`Error::UnreadableLog`] if there is a log,
    /// or if others have written since.
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

    /// Returns the store as it is now, for reads only.
    fn snapshot(&self) -> Result<Self> {
        Ok(Self { database: self.database.snapshot()?, ..self.clone() })
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    pub(crate) fn database(&self) -> &Arc<Database> {
        &self.database
    }

    fn over(database: Database) -> Self {
        Self { database: Arc::new(database), events: Events::default() }
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

const _: () = {
    const fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Store>();
    is_shared::<Session>();
};
