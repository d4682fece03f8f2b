//! Interrupting long work from another thread.

use super::Store;
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::storage::sqlite::{InterruptSignal, Watch};

impl Store {
    /// Returns a handle that interrupts this store's long work from another thread: import, export, content hashes, verify,
    /// backup, rebuild, statistics and search.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(self.database.interrupt_signal())
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
