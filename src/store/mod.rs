//! The store: one database file with all its sessions, and the options that it is opened with.

mod care;
mod erase;
mod exchange;
mod inbox;
mod kept;
mod list;
mod retention;
mod sessions;
#[cfg(test)]
mod stream_tests;
mod transcripts;
mod usage;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::event::{Event, Events, Subscription};
use crate::search::{Scope, Search, SearchRequest};
use crate::session::Session;
#[cfg(feature = "sqlcipher")]
use crate::storage::sqlite::Encryption;
use crate::storage::sqlite::{self, Config, Database, Watch};
pub use inbox::Inbox;
pub use list::SessionList;
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
    /// is too long or it is a URL, [`Error::HardLinked`] if the file has another name, [`Error::MountedFile`] if it is mounted by itself.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Connects to a store on a PostgreSQL server, and creates its tables if they do not exist.
    ///
    /// The address is one of PostgreSQL's. Its parameter `schema` names the store's schema, which is `talktree` without it: each store
    /// has one of its own. Any number of hosts may use one store.
    ///
    /// ```no_run
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::connect("postgresql://bot@db.example/chats?schema=support")?;
    /// store.session("s")?.append(Message::user("hello"))?;
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAStore`] if the schema has the tables of another program, [`Error::NewerStore`] if a newer talktree made it,
    /// [`Error::Storage`] if the server cannot be reached.
    #[cfg(feature = "postgres")]
    pub fn connect(url: &str) -> Result<Self> {
        Self::options().connect(url)
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

    /// Returns whether the address of a store is a URL, which is that of a server, as [`StoreOptions::open_at`] takes it; otherwise
    /// it is the path of a file.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// assert!(Store::is_url("postgresql://bot@db.example/chats"));
    /// assert!(!Store::is_url("bot.db"));
    /// ```
    #[must_use]
    pub fn is_url(address: impl AsRef<Path>) -> bool {
        // Also a misspelt one, because it may hold a password, and what is wrong with a path is said with the path.
        let address = address.as_ref().to_string_lossy();
        let is_of_scheme = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
        address
            .split_once("://")
            .is_some_and(|(scheme, _)| scheme.len() > 1 && scheme.chars().all(is_of_scheme))
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

impl Store {
    /// Returns a handle that interrupts this store's long work from another thread: import, export, content hashes, verify,
    /// backup, rebuild, statistics, search, erasure and retention.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(self.database.watch())
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
pub struct InterruptHandle(Watch);

impl InterruptHandle {
    /// Interrupts the long work that is running.
    pub fn interrupt(&self) {
        self.0.raise();
    }

    /// Checks that long work of your own may go on, which began when this handle was returned.
    ///
    /// ```
    /// use talktree::{Error, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let work = store.interrupt_handle();
    /// work.check()?;
    /// store.interrupt_handle().interrupt();
    /// assert!(matches!(work.check(), Err(Error::Interrupted)));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the store was interrupted since.
    pub fn check(&self) -> Result<()> {
        self.0.check()
    }
}

/// The longest wait SQLite takes, about 24 days.
const MAX_BUSY_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// Which failures an acknowledged write survives.
///
/// ```
/// use talktree::{Durability, Store};
///
/// assert_eq!(Durability::default(), Durability::Full);
/// let store = Store::options().durability(Durability::Normal).open_in_memory()?;
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// A crash of the program and a power loss: each commit syncs to disk. Threads that write at the same time share
    /// commits.
    #[default]
    Full,
    /// A crash of the program. A power loss may lose the latest writes, and nothing else.
    Normal,
}

/// The options a store is opened with.
///
/// ```no_run
/// use std::time::Duration;
/// use talktree::{Durability, Store};
///
/// let store = Store::options()
///     .durability(Durability::Normal)
///     .busy_timeout(Duration::from_secs(5))
///     .open("bot.db")?;
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct StoreOptions {
    config: Config,
}

impl StoreOptions {
    /// Sets which failures an acknowledged write survives; [`Durability::Full`] by default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.config.is_synchronous = durability == Durability::Full;
        self
    }

    /// Sets how long a write waits for writers of other processes before it fails with
    /// [`Error::Busy`]; 30 seconds by default, at most 24 days. Threads of this process write in
    /// the order in which they ask.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.config.busy_timeout = timeout.min(MAX_BUSY_TIMEOUT);
        self
    }

    /// Sets the page cache of each connection, in KiB; 2 048 by default.
    pub fn cache_kib(mut self, kib: u32) -> Self {
        self.config.cache_kib = kib;
        self
    }

    /// The largest message, in bytes of the JSON of its parts, metadata and extra fields; 64 MiB
    /// if it is not called.
    pub fn max_message_bytes(mut self, max: usize) -> Self {
        self.config.max_message_bytes = max;
        self
    }

    /// Sets the size, in bytes, up to which an erasure always rewrites the file; 64 MiB by default, which takes about half
    /// a second. Writers wait meanwhile.
    ///
    /// SQLite leaves copies of rows in gaps between others. In a larger file an erasure looks for the erased texts, and
    /// rewrites the file if it finds one. It cannot look for the old content of an updated message, nor for messages
    /// that were deleted before. With [`u64::MAX`] the file is always rewritten, which removes these, too.
    ///
    /// ```
    /// use talktree::{Erasure, Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::options().erasure_rewrites_up_to(0).open(&path)?;
    /// store.session("s")?.append(Message::user("The vault opens with 7-1-9-4."))?;
    /// let erased = store.erase(&Erasure::session("s"))?;
    /// assert!(!erased.is_rewritten && erased.prove()?.found == 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn erasure_rewrites_up_to(mut self, bytes: u64) -> Self {
        self.config.rewritten_up_to = bytes;
        self
    }

    /// Sets how many idle connections for reading are kept; 4 by default.
    pub fn idle_readers(mut self, count: usize) -> Self {
        self.config.idle_readers = count;
        self
    }

    /// Encrypts the store with this key: the file, its log and its backups. A new store gets it; an existing store must have
    /// been created with it.
    ///
    /// Needs the feature `sqlcipher`. [`Store::rekey`] gives a store another key. A store in memory uses the key for its
    /// backups.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::options().key([7; 32]).open(&path)?;
    /// store.session("s")?.append(Message::user("hello"))?;
    /// drop(store);
    ///
    /// let refused = Store::options().key([8; 32]).open(&path);
    /// assert!(matches!(refused, Err(Error::WrongKey { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[cfg(feature = "sqlcipher")]
    pub fn key(mut self, key: [u8; 32]) -> Self {
        self.config.encryption = Some(Arc::new(Encryption::new(key)));
        self
    }

    /// Two stores that are opened with one key have two keys from then on.
    fn config(mut self) -> Config {
        let encryption = self.config.encryption.take();
        self.config.encryption = encryption.map(|known| Arc::new(known.renewed()));
        self.config
    }

    /// Opens the store in a file, which is created if it does not exist.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store> {
        Database::open(of_file(path.as_ref())?, self.config()).map(Store::over)
    }

    /// Connects to a store on a PostgreSQL server.
    ///
    /// # Errors
    /// As [`Store::connect`].
    #[cfg(feature = "postgres")]
    pub fn connect(self, url: &str) -> Result<Store> {
        Database::on_server(url, self.config()).map(Store::over)
    }

    /// Opens the store at an address that a user gave: the path of a file or, with the feature `postgres`, a URL.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let address = folder.path().join("bot.db");
    /// let store = Store::options().open_at(&address)?;
    /// store.session("s")?.append(Message::user("hello"))?;
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open`] and `Store::connect`; [`Error::InvalidValue`] for a URL without the feature.
    pub fn open_at(self, address: impl AsRef<Path>) -> Result<Store> {
        let address = address.as_ref();
        if !Store::is_url(address) {
            return self.open(address);
        }
        #[cfg(feature = "postgres")]
        return self.connect(&address.to_string_lossy());
        #[cfg(not(feature = "postgres"))]
        // A URL may hold a password.
        Err(Error::InvalidValue {
            what: "address of a store",
            given: "postgresql://..".to_owned(),
            why: "the cargo feature `postgres`, which brings stores on a server, is not in this build"
                .to_owned(),
        })
    }

    /// Opens a store in memory, which lives as long as its handles.
    ///
    /// # Errors
    /// As [`Store::open_in_memory`].
    pub fn open_in_memory(self) -> Result<Store> {
        Database::open_in_memory(self.config()).map(Store::over)
    }

    /// Opens an existing store for reading only.
    ///
    /// # Errors
    /// As [`Store::open_read_only`].
    pub fn open_read_only(self, path: impl AsRef<Path>) -> Result<Store> {
        Database::open_read_only(of_file(path.as_ref())?, self.config()).map(Store::over)
    }
}

/// Returns the path of a file. A URL is no such path, and an error about a path would show its password.
fn of_file(path: &Path) -> Result<&Path> {
    match Store::is_url(path) {
        true => Err(Error::InvalidValue {
            what: "path of a store",
            given: "postgresql://..".to_owned(),
            why: "it is a URL, which `connect` takes".to_owned(),
        }),
        false => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_timeout_opens_a_store() -> Result<()> {
        for timeout in [Duration::ZERO, MAX_BUSY_TIMEOUT, Duration::MAX] {
            let store = Store::options().busy_timeout(timeout).open_in_memory()?;
            store.create_session("s")?;
        }
        Ok(())
    }

    #[test]
    fn a_url_is_no_path_and_its_password_is_not_shown() {
        for scheme in ["postgresql", "POSTGRES", "postgress", "mysql"] {
            let url = format!("{scheme}://bot:secret@db.example/chats");
            for opened in [Store::open(&url), Store::open_read_only(&url)] {
                let error = opened.map(drop).unwrap_err().to_string();
                assert!(error.contains("`connect`") && !error.contains("secret"), "{error}");
            }
        }
        assert!(!Store::is_url("C://bot.db") && !Store::is_url("a/b://bot.db"));
    }
}
