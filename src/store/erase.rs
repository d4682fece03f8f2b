//! Erasing: what is erased is in no byte of the file, of its log, or of a later backup.

use super::Store;
use crate::erasure::{Erased, Erasure, ErasureExtent};
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::event::Change;
use crate::id::SessionId;
use crate::report::Progress;

impl Store {
    /// Erases what is named: no byte of it is in the file, in the search index or in the log afterwards, nor in a later
    /// backup. A plain delete leaves words in the search index and text in the log for a while;
    /// [`Erasure::deleted`] erases them.
    ///
    /// It deletes in short transactions, so that others can write meanwhile; a session that is erased is in the trash until
    /// all of it is deleted. Then it merges the search index, rewrites the file while other writers wait, and empties the
    /// write-ahead log. A [large file](crate::StoreOptions::erasure_rewrites_up_to) is rewritten only if an erased text is
    /// found in it. The cost grows with the size of the store, not with that of the erased text: erase many things
    /// [at once](Erasure::and). If it fails or is interrupted, the same call finishes it, or
    /// [`finish_erasure`](Self::finish_erasure): until then, unknown sessions and messages count as erased, and a session that
    /// it names cannot be restored.
    ///
    /// Summaries and copies in forks are named in the outcome, and erased if the [`Erasure`] says so. Copies of the file
    /// that others have made, such as earlier backups, are not erased.
    ///
    /// ```
    /// use talktree::{Erasure, Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::open(&path)?;
    /// store.session("telegram:4711")?.append(Message::user("The vault opens with 7-1-9-4."))?;
    ///
    /// let erased = store.erase(&Erasure::session("telegram:4711"))?;
    /// assert!(erased.is_complete());
    /// assert_eq!(erased.prove()?.found, 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] and [`Error::UnknownMessage`]: nothing is erased then. [`Error::Interrupted`];
    /// [`Error::DiskFull`] if there is no room to rewrite the file; as every write.
    pub fn erase(&self, erasure: &Erasure) -> Result<Erased> {
        self.erase_with_progress(erasure, |_| {})
    }

    /// Erases as [`erase`](Self::erase) does, and calls `progress` after each transaction with the number of erased
    /// messages and entries of transcripts.
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub fn erase_with_progress(
        &self,
        erasure: &Erasure,
        mut progress: impl FnMut(Progress),
    ) -> Result<Erased> {
        let erased = self.database.erase(erasure, &mut progress)?;
        self.tell_erased(&erased);
        Ok(erased)
    }

    /// Returns what an erasure would remove, and which copies and summaries it would leave. Nothing is changed.
    ///
    /// ```
    /// use talktree::{Erasure, Message, SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let owner = Some("user:42".to_owned());
    /// store.create_session_as("s", SessionDetails { owner, ..SessionDetails::default() })?;
    /// store.session("s")?.append(Message::user("hello"))?;
    ///
    /// let extent = store.erasure_extent(&Erasure::owner("user:42"))?;
    /// assert_eq!((extent.sessions.len(), extent.messages), (1, 1));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] and [`Error::UnknownMessage`]; as every read.
    pub fn erasure_extent(&self, erasure: &Erasure) -> Result<ErasureExtent> {
        self.database.erasure_extent(erasure)
    }

    /// Finishes all erasures that were interrupted, or whose log was in use; returns whether all are complete now.
    ///
    /// It deletes what these erasures named when they began, nothing that was stored since. An erasure that another thread or
    /// process is running counts as interrupted.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// assert!(Store::open_in_memory()?.finish_erasure()?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub fn finish_erasure(&self) -> Result<bool> {
        self.finish_erasure_with_outcome().map(|(is_complete, _)| is_complete)
    }

    /// Finishes all erasures as [`finish_erasure`](Self::finish_erasure) does; also returns what this call erased. What the
    /// interrupted calls had erased before is not in it, and it cannot be [proved](Erased::prove).
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// let (is_complete, erased) = Store::open_in_memory()?.finish_erasure_with_outcome()?;
    /// assert_eq!((is_complete, erased.extent.messages), (true, 0));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub fn finish_erasure_with_outcome(&self) -> Result<(bool, Erased)> {
        let (is_complete, erased) = self.database.finish_erasure()?;
        self.tell_erased(&erased);
        Ok((is_complete, erased))
    }

    /// Returns whether there is an erasure to [finish](Self::finish_erasure), or one that is running.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// assert!(!Store::open_in_memory()?.has_unfinished_erasure()?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn has_unfinished_erasure(&self) -> Result<bool> {
        self.database.has_unfinished_erasure()
    }

    /// Returns whether a session was erased and must not be [imported again](Erasure::forbid_import).
    ///
    /// ```
    /// use talktree::{Erasure, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("hello"))?;
    /// store.erase(&Erasure::session("s").forbid_import())?;
    /// assert!(store.is_import_forbidden(&"s".into())?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn is_import_forbidden(&self, id: &SessionId) -> Result<bool> {
        self.database.is_import_forbidden(id)
    }

    fn tell_erased(&self, erased: &Erased) {
        for messages in erased.messages.chunk_by(|a, b| a.0 == b.0) {
            let ids = || messages.iter().map(|(_, id)| id.clone()).collect();
            self.events.emit(&messages[0].0, || Change::Delete { ids: ids() }, |_| {});
        }
        erased.extent.sessions.iter().for_each(|id| self.tell_removed(id));
    }
}
