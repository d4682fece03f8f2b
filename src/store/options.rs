//! The options a store is opened with.

use std::path::Path;
#[cfg(feature = "sqlcipher")]
use std::sync::Arc;
use std::time::Duration;

use super::Store;
#[cfg(feature = "sqlcipher")]
use crate::encryption_key::EncryptionKey;
use crate::error::Result;
#[cfg(feature = "sqlcipher")]
use crate::storage::sqlite::Encryption;
use crate::storage::sqlite::{Config, Database};

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
    #[cfg(feature = "sqlcipher")]
    key: Option<EncryptionKey>,
}

impl StoreOptions {
    /// Sets which failures an acknowledged write survives; [`Durability::Full`] by default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.config.is_synchronous = durability == Durability::Full;
        self
    }

    /// Sets how long a write waits for writers of other processes before it fails with
    /// [`Error::Busy`](crate::Error::Busy); 30 seconds by default, at most 24 days. Threads of this process write in
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
    pub fn key(mut self, key: impl Into<EncryptionKey>) -> Self {
        self.key = Some(key.into());
        self
    }

    #[cfg(feature = "sqlcipher")]
    fn config(self) -> Result<Config> {
        let key = self.key.map(|key| key.bytes()).transpose()?;
        let encryption = key.map(|key| Arc::new(Encryption::new(key)));
        Ok(Config { encryption, ..self.config })
    }

    #[cfg(not(feature = "sqlcipher"))]
    fn config(self) -> Result<Config> {
        Ok(self.config)
    }

    /// Opens the store in a file, which is created if it does not exist.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store> {
        Database::open(path.as_ref(), self.config()?).map(Store::over)
    }

    /// Opens a store in memory, which lives as long as its handles.
    ///
    /// # Errors
    /// As [`Store::open_in_memory`].
    pub fn open_in_memory(self) -> Result<Store> {
        Database::open_in_memory(self.config()?).map(Store::over)
    }

    /// Opens an existing store for reading only.
    ///
    /// # Errors
    /// As [`Store::open_read_only`].
    pub fn open_read_only(self, path: impl AsRef<Path>) -> Result<Store> {
        Database::open_read_only(path.as_ref(), self.config()?).map(Store::over)
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
}
