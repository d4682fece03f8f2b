//! What long work reports: progress, statistics, damage.

use serde::Serialize;

/// How far long work is.
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
    /// Units done.
    pub done: u64,
    /// Units in all, as far as known; it may grow.
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

/// The figures of a store.
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
    /// Sessions.
    pub sessions: u64,
    /// Messages, hidden not counted.
    pub messages: u64,
    /// Hidden.
    pub hidden: u64,
    /// Messages that more than one message follows.
    pub branching_messages: u64,
    /// The most messages that follow one message directly.
    pub max_children: u64,
    /// The length of the longest path, in messages.
    pub max_depth: u64,
    /// Compactions.
    pub compactions: u64,
    /// Texts of context blocks, documents among them.
    pub context_entries: u64,
    /// Versions that these texts had before and that are kept.
    pub context_versions: u64,
    /// Elisions: markers laid over the outputs of tools.
    pub elisions: u64,
    /// Bytes of the file, with what is not yet moved into it.
    pub bytes: u64,
}

/// What a check of a store found.
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
    /// Messages that were checked.
    pub messages: u64,
    /// Every damage that was found; none in a sound store.
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
    /// What kind it is: a fixed word, such as `search-index` or `broken-message`.
    pub kind: &'static str,
    /// Where, and what was found there.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}
