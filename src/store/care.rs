//! Care of the file: statistics, checks, backups, and what is made from messages: indexes, figures, vectors.

use std::path::Path;

use super::Store;
use crate::embedding;
use crate::embedding::{Embedder, Embedding};
use crate::error::{Error, Result};
use crate::id::check_name;
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
    /// [`Error::Unsupported`] if the store has no key; as every write. The store has its old key then.
    #[cfg(feature = "sqlcipher")]
    pub fn rekey(&self, key: [u8; 32]) -> Result<()> {
        self.database.rekey(key)
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
}

/// How many messages an embedder gets at once.
const BATCH: usize = 64;
/// How many bytes of a message an embedder gets: models read some hundred words.
const MAX_BYTES: usize = 8 << 10;

impl Store {
    /// Gives a vector to every message that has none of this embedder: those of its text parts, up to their first 8 KiB.
    ///
    /// Afterwards [`Search::by_meaning`](crate::search::Search::by_meaning) finds them. The first call makes the tables that
    /// hold the vectors; a vector takes a byte for each dimension. From then on every new or changed message
    /// is pending until the next call, and a search does not find it by its meaning; a deleted one loses its vector, an
    /// erased one too, and the copy that a fork makes has that of its original.
    ///
    /// The embedder gets up to 64 texts at once, outside any transaction. What it has done is stored after each batch: a call
    /// that fails or is interrupted is continued by the next one. `progress` is called after each batch.
    ///
    /// Several threads and processes may call it at once, but some texts are then embedded twice. Exports hold no vectors.
    ///
    /// ```
    /// use talktree::{BoxError, Embedder, Message, Store};
    ///
    /// struct Length;
    ///
    /// impl Embedder for Length {
    ///     fn name(&self) -> &str {
    ///         "length-1"
    ///     }
    ///
    ///     fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
    ///         Ok(texts.iter().map(|text| vec![1.0, text.len() as f32]).collect())
    ///     }
    /// }
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append_all(["red", "blue"].map(Message::user))?;
    /// let embedding = store.embed(&Length, |progress| println!("{} messages", progress.done))?;
    /// assert_eq!((embedding.embedded, embedding.pending), (2, 0));
    /// assert_eq!(embedding.dimensions, Some(2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Embedder`] if the embedder fails, or if its vectors have other dimensions than before: a changed model needs
    /// a new name. [`Error::InvalidValue`] if its name is empty or too long; [`Error::Interrupted`]; as every write.
    pub fn embed(
        &self,
        embedder: &dyn Embedder,
        mut progress: impl FnMut(Progress),
    ) -> Result<Embedding> {
        let name = embedding::name_of(embedder)?;
        check_name("embedder", &name)?;
        let watch = self.database.watch();
        let mut row = self.database.begin_embedding(&name)?;
        while self.database.queue_for_embedding(row)? {
            watch.check()?;
        }
        let total = self.embedding(&name)?.pending;
        let (mut done, mut from) = (0, None);
        // Messages that are appended meanwhile are left to the next call, so that this one ends.
        while done < total {
            watch.check()?;
            let batch = self.database.unembedded(row, from, BATCH)?;
            let Some(last) = batch.last() else { break };
            from = Some(last.address());
            done += batch.len() as u64;
            let texts: Vec<&str> = batch
                .iter()
                .map(|message| start(&message.text))
                .filter(|text| !text.is_empty())
                .collect();
            let vectors = match texts.is_empty() {
                true => Vec::new(),
                false => embedding::embed(embedder, &texts)?.1,
            };
            let found = vectors.iter().flatten().map(embedding::Vector::dimensions).next();
            check_dimensions(&name, row.dimensions, found)?;
            row.dimensions = row.dimensions.or(found);
            let mut vectors = vectors.into_iter();
            let with_vectors: Vec<_> = batch
                .into_iter()
                .map(|message| match start(&message.text).is_empty() {
                    true => (message, None),
                    false => (message, vectors.next().flatten()),
                })
                .collect();
            self.database.store_vectors(row, &with_vectors)?;
            progress(Progress::new(done, total.max(done)));
        }
        self.embedding(&name)
    }

    /// Returns which embedders the store has vectors of, by name. It counts the vectors, so it reads them all.
    ///
    /// ```
    /// let store = talktree::Store::open_in_memory()?;
    /// assert!(store.embeddings()?.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read; [`Error::Interrupted`].
    pub fn embeddings(&self) -> Result<Vec<Embedding>> {
        self.database.embeddings()
    }

    /// Removes the vectors of an embedder, such as a former model; returns whether there were any.
    ///
    /// With the last one the tables are removed, too, and appends cost what they did before.
    ///
    /// ```
    /// let store = talktree::Store::open_in_memory()?;
    /// assert!(!store.remove_embedding("letters-1")?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write; [`Error::Interrupted`]: nothing is removed then.
    pub fn remove_embedding(&self, embedder: &str) -> Result<bool> {
        self.database.remove_embedding(embedder)
    }

    fn embedding(&self, name: &str) -> Result<Embedding> {
        let all = self.database.embeddings()?;
        all.into_iter().find(|embedding| embedding.embedder == name).ok_or_else(|| {
            Error::Embedder { source: "its vectors were removed from the store meanwhile".into() }
        })
    }
}

/// Returns the part of a text that an embedder gets.
fn start(text: &str) -> &str {
    let text = text.trim();
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

fn check_dimensions(name: &str, known: Option<usize>, found: Option<usize>) -> Result<()> {
    match (known, found) {
        (Some(known), Some(found)) if known != found => Err(Error::Embedder {
            source: format!(
                "its vectors have {found} dimensions, those in the store {known}; give a changed model another name than {name:?}"
            )
            .into(),
        }),
        _ => Ok(()),
    }
}
