//! Erasing: sessions, owners and keys.

use super::SessionManager;
use crate::erasure::{Erased, Erasure, ErasureExtent};
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::id::SessionId;
use crate::report::Progress;
use crate::store::tell_erased;

impl SessionManager {
    /// Erases what is named, as [`Store::erase`](crate::Store::erase) does.
    ///
    /// # Errors
    /// As [`Store::erase`](crate::Store::erase).
    pub fn erase(&self, erasure: &Erasure) -> Result<Erased> {
        self.erase_with_progress(erasure, |_| {})
    }

    /// Erases as [`erase`](Self::erase) does, and calls `progress` as
    /// [`Store::erase_with_progress`](crate::Store::erase_with_progress) does.
    ///
    /// ```
    /// use talktree::{Erasure, Message, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// bot.session("s")?.append(Message::user("hello"))?;
    /// let mut calls = 0;
    /// bot.erase_with_progress(&Erasure::session("s"), |_| calls += 1)?;
    /// assert!(calls > 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub fn erase_with_progress(
        &self,
        erasure: &Erasure,
        mut progress: impl FnMut(Progress),
    ) -> Result<Erased> {
        let erased = self.store().database().erase(erasure, &mut progress)?;
        tell_erased(&erased, |session, change| self.emit(session, || change));
        Ok(erased)
    }

    /// Erases a session with all that belongs to it.
    ///
    /// # Errors
    /// [`Error::UnknownSession`]; as [`erase`](Self::erase).
    pub fn erase_session(&self, id: &SessionId) -> Result<Erased> {
        self.erase(&Erasure::session(id))
    }

    /// Erases all sessions of an owner, the owner's texts, usage and pending items in inboxes. An owner of nothing is no error.
    ///
    /// ```
    /// use talktree::{Message, SessionManager, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let bot = SessionManager::builder(&Store::open(&path)?).build()?;
    /// let chat = bot.resume("telegram:4711").owner("user:42").open()?;
    /// chat.append(Message::user("My address is 4 Privet Drive."))?;
    ///
    /// bot.erase_owner("user:42")?.prove()?; // no byte left
    /// assert!(bot.list().run()?.sessions.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub fn erase_owner(&self, owner: impl Into<String>) -> Result<Erased> {
        self.erase(&Erasure::owner(owner))
    }

    /// Erases an outside key, and the sessions that it points to or pointed to. An unknown key is no error.
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub fn erase_key(&self, key: impl Into<String>) -> Result<Erased> {
        self.erase(&Erasure::key(key))
    }

    /// Returns what an erasure would remove.
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub fn erasure_extent(&self, erasure: &Erasure) -> Result<ErasureExtent> {
        self.store().erasure_extent(erasure)
    }
}
