//! Progress, statistics and damage reports.

use serde::Serialize;

/// The progress of a long operation.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("hello"))?;
///
/// let mut share = 0.0;
/// store.verify(|progress| share = progress.done as f64 / progress.total as f64)?;
/// assert_eq!(share, 1.0);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The units done.
    pub done: u64,
    /// The units in total, as far as known. It may grow.
    pub total: u64,
}

impl Progress {
    /// Returns how far long work is, for work of your own.
    ///
    /// ```
    /// use talktree::Progress;
    ///
    /// assert_eq!(Progress::new(3, 4).total, 4);
    /// ```
    #[must_use]
    pub fn new(done: u64, total: u64) -> Self {
        Self { done, total }
    }
}

/// The statistics of a store.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("s")?;
/// chat.append(Message::user("hello"))?;
/// chat.append(Message::system("seen at noon").hidden())?;
///
/// let stats = store.stats()?;
/// assert_eq!((stats.messages, stats.hidden, stats.max_depth), (1, 1, 2));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct StoreStats {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of messages that are not hidden.
    pub messages: u64,
    /// The number of hidden messages.
    pub hidden: u64,
    /// The number of messages with several children.
    pub branching_messages: u64,
    /// The maximum number of children of a message.
    pub max_children: u64,
    /// The length of the longest path, in messages.
    pub max_depth: u64,
    /// The number of compactions.
    pub compactions: u64,
    /// The number of texts of context blocks, including documents.
    pub context_entries: u64,
    /// The number of stored old versions of these texts.
    pub context_versions: u64,
    /// The number of elisions: markers that replace a tool result.
    pub elisions: u64,
    /// The number of transcripts of agent sessions, those of subagents included.
    pub transcripts: u64,
    /// The number of their entries.
    pub transcript_entries: u64,
    /// The number of items of inboxes that are not handled yet.
    pub inbox_items: u64,
    /// The size of the file and its write-ahead log, in bytes.
    pub bytes: u64,
}

/// The result of a check of a store.
///
/// ```
/// use talktree::Store;
///
/// let store = Store::open_in_memory()?;
/// for damage in store.verify(|_| {})?.damages {
///     panic!("{}: {} ({})", damage.kind, damage.what, damage.remedy);
/// }
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Verified {
    /// The number of messages checked.
    pub messages: u64,
    /// All damage found; empty for a sound store.
    pub damages: Vec<Damage>,
}

/// One broken invariant.
///
/// ```
/// use talktree::{Message, Store};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("bot.db");
/// let store = Store::open(&path)?;
/// store.session("s")?.append(Message::user("hello"))?;
///
/// let sqlite = rusqlite::Connection::open(&path).unwrap(); // what no one should do
/// sqlite.execute("UPDATE message SET parts = 'hello'", []).unwrap();
/// let damages = store.verify(|_| {})?.damages;
/// assert!(damages.iter().any(|damage| damage.kind == "broken-message"), "{damages:?}");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Damage {
    /// The kind: a fixed word such as `search-index` or `broken-message`.
    pub kind: &'static str,
    /// The place and the damage.
    pub what: String,
    /// The suggested repair.
    pub remedy: &'static str,
}
