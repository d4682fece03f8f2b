//! Inboxes: deliveries are stored when they are received, so that each is handled once.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Store;
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::inbox::InboxItem;
use crate::storage::sqlite::Database;

/// The deliveries that a program has received from a source and not handled yet: from [`Store::inbox`].
///
/// Sources such as the update queue of a messenger or a webhook deliver *at least once*: after a lost answer they deliver
/// again. A program that stores each delivery first, and confirms it then, loses none and handles none twice. Its threads
/// take the items of a [key](InboxItem::key), such as a chat, one after the other, and those of different keys at once. A
/// program that is killed finds in the [note](Self::note) how far it came.
///
/// A cheap handle: clones share it. Any number of threads and processes may use one source.
///
/// ```
/// use talktree::{InboxItem, Store};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("bot.db");
/// let inbox = Store::open(&path)?.inbox("telegram");
/// let items = [InboxItem::new("812", "telegram:4711", "Can we deploy on Friday?").owner("user:42")];
/// assert_eq!(inbox.receive(&items, Some(813))?, [true]);
/// assert_eq!(inbox.receive(&items, Some(813))?, [false]); // delivered again
///
/// for key in inbox.keys()? {
///     while let Some(item) = inbox.next(&key)? {
///         inbox.note(&item.id, "answered as message 99")?;
///         // A program that is killed here continues from the note.
///         let item = Store::open(&path)?.inbox("telegram").next(&key)?.unwrap();
///         assert_eq!(item.note.as_deref(), Some("answered as message 99"));
///         assert!(inbox.done(&item.id)?);
///     }
/// }
/// assert_eq!((inbox.pending()?, inbox.offset()?.unwrap().0), (0, 813));
/// assert_eq!(inbox.receive(&items, None)?, [false]); // its id is remembered
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Inbox {
    database: Arc<Database>,
    source: Arc<str>,
}

impl Store {
    /// Returns the inbox of a source, such as `telegram` or the name of a webhook. [`Inbox`] has an example.
    ///
    /// The name is checked by each verb: [`Error::InvalidValue`] if it is empty or too long.
    #[must_use]
    pub fn inbox(&self, source: &str) -> Inbox {
        Inbox { database: Arc::clone(&self.database), source: Arc::from(source) }
    }
}

impl Inbox {
    /// Returns the name of the source.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// assert_eq!(Store::open_in_memory()?.inbox("telegram").source(), "telegram");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Stores items and the offset from which to read next, in one transaction; returns for each item whether it is new.
    ///
    /// An item with a known id is ignored, whatever its other fields are: while the first item with this id is pending, and
    /// while its id is remembered after it was handled: the newest 100 000 of a source are. Items are handled in the order in which
    /// they are received. Without an offset the one that is stored stays; it may also go back.
    ///
    /// Confirm a delivery, or poll from the new offset, only after this has returned.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if an id, a key or an owner is empty or too long; [`Error::TooLarge`] if a body is over the
    /// store's limit for messages, or all items together are over
    /// 1 GiB. Nothing is stored then. As every write.
    pub fn receive(&self, items: &[InboxItem], offset: Option<i64>) -> Result<Vec<bool>> {
        self.database.receive(&self.source, items, offset)
    }

    /// Returns the offset from which to read next, and when it was stored; `None` if none was. Some sources start their numbers
    /// again after days without deliveries.
    ///
    /// # Errors
    /// As every read.
    pub fn offset(&self) -> Result<Option<(i64, DateTime<Utc>)>> {
        self.database.inbox_offset(&self.source)
    }

    /// Returns the keys with pending items, that of the oldest item first; 10 000 at most.
    ///
    /// The cost grows with the number of pending items.
    ///
    /// # Errors
    /// As every read.
    pub fn keys(&self) -> Result<Vec<String>> {
        self.database.inbox_keys(&self.source)
    }

    /// Returns the oldest pending item of a key; `None` if there is none. It stays pending until it is
    /// [`done`](Self::done).
    ///
    /// Two threads that ask for one key get the same item: let only one at a time work on a key.
    ///
    /// # Errors
    /// As every read.
    pub fn next(&self, key: &str) -> Result<Option<InboxItem>> {
        self.database.next_item(&self.source, key)
    }

    /// Returns how many items are pending. The cost grows with this number.
    ///
    /// # Errors
    /// As every read.
    pub fn pending(&self) -> Result<u64> {
        self.database.pending_items(&self.source)
    }

    /// Stores how far the handling of a pending item came, in place of its last note. Returns `false` if the item is not pending:
    /// it is done, was erased or is unknown.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the note is over the store's limit for messages; as every write.
    pub fn note(&self, id: &str, note: &str) -> Result<bool> {
        self.database.note_item(&self.source, id, note)
    }

    /// Ends the handling of an item: removes its body, note, key and owner, and remembers its id, so that a duplicate is
    /// ignored. Returns `false` if it was not pending.
    ///
    /// # Errors
    /// As every write.
    pub fn done(&self, id: &str) -> Result<bool> {
        self.database.end_item(&self.source, id)
    }
}
