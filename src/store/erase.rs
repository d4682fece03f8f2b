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
    /// One transaction takes what is named out of the store: from then on no read finds it. The messages of sessions that stay are
    /// deleted in it, as by a [delete](crate::Session::delete); those of whole sessions, and entries of transcripts, in short
    /// transactions afterwards, so that others can write meanwhile. Then it merges the search index, rewrites the file while other
    /// writers wait, and empties the write-ahead log. A [large file](crate::StoreOptions::erasure_rewrites_up_to) is rewritten only if an erased text is
    /// found in it. The cost grows with the size of the store, not with that of the erased text: erase many things
    /// [at once](Erasure::and). If it fails or is interrupted, every later erasure finishes it, or
    /// [`finish_erasure`](Self::finish_erasure): until then, unknown sessions and messages count as erased.
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
        let erasures = std::slice::from_ref(erasure);
        self.database.erase(erasures, |erased| self.tell_erased(erased), &mut progress)
    }

    /// Returns what an erasure would remove, and which copies and summaries it would leave. It erases in a transaction that is
    /// rolled back, so others wait to write meanwhile, and the store must not be read-only.
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
    /// [`Error::UnknownSession`] and [`Error::UnknownMessage`]; as every write.
    pub fn erasure_extent(&self, erasure: &Erasure) -> Result<ErasureExtent> {
        self.database.erasure_extent(std::slice::from_ref(erasure))
    }

    /// Finishes all erasures that were interrupted, or whose log was in use; returns whether all are complete now.
    ///
    /// It deletes what these erasures have taken out of the store, nothing that was stored since, and rewrites the file. An
    /// erasure that another thread or process is running counts as interrupted.
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
        self.database.finish_erasure()
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
