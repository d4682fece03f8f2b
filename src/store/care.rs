//! Care of the file: statistics, checks, backups and figures that are made again.

use std::path::Path;

use super::Store;
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::report::{Progress, StoreStats, Verified};

impl Store {
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

    /// Brings the search index up to date, which every search does before it searches, and reports how far it is.
    ///
    /// Usually little is left to index. But the index of a store that another version of talktree wrote is emptied when the
    /// store is opened, if that version indexed texts in another way. Then all messages are indexed again: call this after
    /// opening a store to show progress, or to do it at a time when nobody searches. `progress.total` is the number of
    /// messages to index; if there are none, `progress` is not called.
    ///
    /// Each transaction holds the write lock for about 100 ms. Between two of them others can write, and `progress` is called,
    /// which may use the store. A call that fails or is interrupted, or whose process is killed, is continued by the next one.
    ///
    /// A store that is opened read-only indexes nothing: its searches index what is pending in a temporary table.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append_all(["red", "blue"].map(Message::user))?;
    ///
    /// let mut shown = Vec::new();
    /// store.index(|at| shown.push(format!("{} of {}", at.done, at.total)))?;
    /// assert_eq!(shown, ["0 of 2", "2 of 2"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Interrupted`]; as every write.
    pub fn index(&self, progress: impl FnMut(Progress)) -> Result<()> {
        self.database.index_all(progress)
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
    /// assert_eq!(Store::open(&path)?.session("s")?.history()?, store.session("s")?.history()?);
    /// assert!(matches!(store.backup(&path, |_| {}), Err(Error::Io { .. }))); // never over a file
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists or cannot be created; [`Error::InvalidValue`] if SQLite uses a file of this
    /// name for an open store, as `STORE-journal`; [`Error::Interrupted`]; no file is left then.
    pub fn backup(&self, path: impl AsRef<Path>, progress: impl FnMut(Progress)) -> Result<()> {
        self.database.backup(path.as_ref(), progress)
    }

    /// Encrypts the store with another key, in one transaction: the file has the old key or the new one, whatever fails.
    ///
    /// All handles of this store continue with the new key. Its reads that begin meanwhile wait until the key is changed,
    /// and so do all writes. Any other store that has the file open, in this process or in another, gets
    /// [`Error::WrongKey`] from its next call, and must be opened again with the new key.
    ///
    /// It writes every page to the log, so it needs as much space on the disk as the store takes. Then the log is emptied;
    /// if someone reads it just then, pages with the old key stay in it until it is used again. Backups keep their keys.
    ///
    /// A store without a key does not get one: export it, and import it into a new store that has one.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::options().key([7; 32]).open(&path)?;
    /// store.session("s")?.append(Message::user("hello"))?;
    ///
    /// store.rekey([8; 32])?;
    /// assert_eq!(store.session("s")?.history()?.len(), 1);
    /// drop(store);
    /// assert!(matches!(Store::options().key([7; 32]).open(&path), Err(Error::WrongKey { .. })));
    /// Store::options().key([8; 32]).open(&path)?;
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the store has no key; [`Error::EncryptionKey`]; as every write. The store has its old key
    /// then.
    #[cfg(feature = "sqlcipher")]
    pub fn rekey(&self, key: impl Into<crate::EncryptionKey>) -> Result<()> {
        self.database.rekey(key.into().bytes()?)
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

    /// Adds the usage of messages that have no row in the ledger. No row is changed or removed.
    ///
    /// Messages that were stored by a talktree of format 3 or older are not in the ledger: call it once after the store was
    /// opened by this one. It takes about 8 s for 500 000 answers, in short transactions; others may write meanwhile.
    /// Called again, it adds nothing.
    ///
    /// ```
    /// use talktree::{Message, Store, Usage};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::open(&path)?;
    /// let answer = Message::assistant("4").with_usage(&Usage { output: 20, ..Usage::default() });
    /// store.session("s")?.append(answer)?;
    ///
    /// let sqlite = rusqlite::Connection::open(&path).unwrap(); // what an older talktree left out
    /// sqlite.execute("DELETE FROM usage", []).unwrap();
    /// assert_eq!(store.usage().total()?.output, 0);
    ///
    /// store.recount_usage()?;
    /// assert_eq!(store.usage().total()?.output, 20);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write; [`Error::Interrupted`]: what was added stays, and another call goes on.
    pub fn recount_usage(&self) -> Result<()> {
        self.database.recount_usage()
    }
}
