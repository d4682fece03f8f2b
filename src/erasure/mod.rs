//! Erasing: what is erased is in no byte of the file, of its log, or of a later backup.
//!
//! An [`Erasure`] names what is erased. It vanishes from every read in one transaction. Then the storage deletes the rows that
//! are left, overwrites their bytes in the file and in the search index, and empties the write-ahead log. [`ErasureExtent`] lists what is erased and what is left: summaries, and copies
//! in forks. [`Erased::prove`] looks for the erased texts in every byte of the files.

mod outcome;

use crate::id::{MessageId, SessionId};
use crate::outcome::SessionInfo;
use crate::transcript::TranscriptKey;
pub use outcome::{Erased, ErasureCopies, ErasureExtent, ErasureProof, ErasureSummary};

/// A request to erase something: what, and which copies and figures of it are kept.
///
/// ```
/// use talktree::{Erasure, Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("telegram:4711")?;
/// let secret = chat.append(Message::user("My password is hunter2"))?.id;
/// let copy = chat.fork(&secret, "Copy")?;
///
/// let erasure = Erasure::messages(chat.id(), [&secret]);
/// let erased = store.erase(&erasure)?;
/// assert_eq!((erased.extent.messages, erased.extent.copies_left.len()), (1, 1));
/// assert_eq!(copy.history()?.len(), 1); // the copy in the fork was named, and stays
///
/// store.erase(&Erasure::session(chat.id()).with_forks())?;
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
#[must_use = "an erasure does nothing until a store runs it"]
pub struct Erasure {
    /// What is erased.
    pub(crate) targets: Vec<ErasureTarget>,
    /// Whether copies of the messages are erased too: in forks, and in the session that they were forked from.
    pub forks: bool,
    /// Whether summaries that cover an erased message are erased too.
    pub summaries: bool,
    /// Whether the usage of what is erased stays in totals, without its session, owner, source and message.
    pub keep_totals: bool,
    /// Whether pending items of inboxes stay.
    pub keep_items: bool,
    /// Whether later imports of the erased sessions are refused.
    pub forbid_import: bool,
}

/// One thing to erase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ErasureTarget {
    /// Messages of a session. One that others follow leaves a tombstone.
    Messages {
        /// The session.
        session: SessionId,
        /// The messages.
        ids: Vec<MessageId>,
    },
    /// A message and all messages below it.
    Branch {
        /// The session.
        session: SessionId,
        /// The message at which the branch begins.
        id: MessageId,
    },
    /// A session with all that belongs to it, also one in the trash.
    Session(SessionId),
    /// A session, unless it has changed since it was read.
    Unchanged(Box<SessionInfo>),
    /// The sessions, the context blocks and the transcripts of an owner, its usage, and its pending items in inboxes. What is
    /// stored after the erasure has begun stays.
    Owner(String),
    /// What a person wrote in all sessions, and the person's name in the ledger. What is stored after the erasure has begun
    /// stays.
    Author(String),
    /// An outside key, with the sessions that it points to or pointed to, and its pending items in inboxes.
    Key(String),
    /// A transcript of an agent; the main one with all others of its session.
    Transcript(TranscriptKey),
    /// What was deleted before, and is not in the trash.
    Deleted,
}

impl Erasure {
    /// Returns the erasure of messages of a session. The names of their import records stay, so that a later import does not
    /// store the messages again.
    pub fn messages<'a>(session: &SessionId, ids: impl IntoIterator<Item = &'a MessageId>) -> Self {
        let ids = ids.into_iter().cloned().collect();
        Self::of(ErasureTarget::Messages { session: session.clone(), ids })
    }

    /// Returns the erasure of a message and all messages below it.
    pub fn branch(session: &SessionId, id: &MessageId) -> Self {
        Self::of(ErasureTarget::Branch { session: session.clone(), id: id.clone() })
    }

    /// Returns the erasure of a session with all that belongs to it.
    ///
    /// These are its messages, summaries, labels, context blocks with all versions, frozen prompt, bindings with their
    /// keys, tags, name, metadata and usage, its id where forks name it as their origin, and the pending items in inboxes of
    /// the keys that point to it.
    pub fn session(id: impl Into<SessionId>) -> Self {
        Self::of(ErasureTarget::Session(id.into()))
    }

    /// Returns the erasure of all sessions of an owner, and of the owner's context blocks, usage, transcripts and pending items
    /// in inboxes. If a main transcript is the owner's, all others of its session are erased, too. An item without an owner stays, also if its key points to a session
    /// of the owner; of every erased item its id stays, so that it cannot be delivered again.
    pub fn owner(owner: impl Into<String>) -> Self {
        Self::of(ErasureTarget::Owner(owner.into()))
    }

    /// Returns the erasure of what a person wrote, in every session: for one who leaves a group. The person is named by
    /// [`Author::key`](crate::Author::key).
    ///
    /// The messages of others stay, and so do the answers of models, also where they quote the person. The usage of answers to
    /// the person stays in the totals of their sessions, without the person. A session that shows a transcript of an agent
    /// keeps its messages, which are listed as copies that are left.
    /// [`owner`](Self::owner) erases the sessions of a person.
    ///
    /// ```
    /// use talktree::{Author, Erasure, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let group = store.session("group")?;
    /// for id in ["41", "42"] {
    ///     group.append(Message::user(format!("I am {id}.")).from(&Author::new(id)))?;
    /// }
    /// store.erase(&Erasure::author("41").with_forks().with_summaries())?;
    /// let left = group.history()?;
    /// assert_eq!(left.iter().map(Message::text).collect::<Vec<_>>(), ["I am 42."]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn author(author: impl Into<String>) -> Self {
        Self::of(ErasureTarget::Author(author.into()))
    }

    /// Returns the erasure of an outside key, of the sessions that it points to or pointed to, and of its pending items in
    /// inboxes.
    pub fn key(key: impl Into<String>) -> Self {
        Self::of(ErasureTarget::Key(key.into()))
    }

    /// Returns the erasure of a transcript; of the main one with all others of its session. An unknown one is a no-op.
    ///
    /// ```
    /// use talktree::{Erasure, Json, Store, TranscriptKey};
    ///
    /// let store = Store::open_in_memory()?;
    /// let key = TranscriptKey::new("-home-ann-shop", "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10");
    /// store.transcripts().append(&key, &[Json::parse(r#"{"type":"user"}"#)?])?;
    ///
    /// let erased = store.erase(&Erasure::transcript(&key))?;
    /// assert_eq!((erased.extent.transcripts, erased.extent.entries), (vec![key.clone()], 1));
    /// assert_eq!(store.transcripts().load(&key)?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn transcript(key: &TranscriptKey) -> Self {
        Self::of(ErasureTarget::Transcript(key.clone()))
    }

    /// Returns the erasure of what was deleted before: it overwrites every byte that deletes left in the store.
    ///
    /// Sessions in the trash stay. The deleted texts are not known any more, so [`prove`](crate::Erased::prove) cannot look for
    /// them; the file is rewritten, however large it is.
    ///
    /// ```
    /// use talktree::{Erasure, Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::open(&path)?;
    /// let chat = store.session("s")?;
    /// let secret = chat.append(Message::user("The vault opens with 7-1-9-4."))?.id;
    /// chat.delete([&secret])?; // leaves words in the search index, and text in the log
    ///
    /// let erased = store.erase(&Erasure::deleted())?;
    /// assert!(erased.is_complete() && erased.is_rewritten);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn deleted() -> Self {
        Self::of(ErasureTarget::Deleted)
    }

    fn of(target: ErasureTarget) -> Self {
        Self { targets: vec![target], ..Self::default() }
    }

    /// Adds the targets of another erasure. An option is set if one of the two has it.
    ///
    /// One erasure of many sessions costs much less than many erasures: the search index is merged and the file is
    /// rewritten or read once.
    ///
    /// ```
    /// use talktree::{Erasure, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for id in ["monday", "tuesday"] {
    ///     store.session(id)?.append(Message::user("hello"))?;
    /// }
    /// let erased = store.erase(&Erasure::session("monday").and(Erasure::session("tuesday")))?;
    /// assert_eq!(erased.extent.sessions.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn and(mut self, other: Self) -> Self {
        self.targets.extend(other.targets);
        self.forks |= other.forks;
        self.summaries |= other.summaries;
        self.keep_totals |= other.keep_totals;
        self.keep_items |= other.keep_items;
        self.forbid_import |= other.forbid_import;
        self
    }

    /// Also erases copies of the messages: in forks, in forks of forks, and in the session that they were forked from. Of a whole
    /// session also copies of the texts of its own blocks, of its metadata and its name, there and in sessions that continue it.
    pub fn with_forks(mut self) -> Self {
        self.forks = true;
        self
    }

    /// Also erases summaries that cover an erased message: of compactions, of branches, and the opening message of a session
    /// that continues an erased one. So are summaries that cover one of these.
    ///
    /// If the end of a branch was deleted before, its summary counts as one of all messages that are older and not on its path.
    pub fn with_summaries(mut self) -> Self {
        self.summaries = true;
        self
    }

    /// Keeps the usage of what is erased in totals of models and days, without its session, owner, source and message.
    pub fn keep_totals(mut self) -> Self {
        self.keep_totals = true;
        self
    }

    /// Keeps the pending items of inboxes: what was received, and is not handled yet.
    ///
    /// A retention rule erases so. A message that came for an old session is then answered in a new one.
    ///
    /// ```
    /// use talktree::{Erasure, InboxItem, SessionManager, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = SessionManager::builder(&store).build()?.resume("telegram:4711").open()?;
    /// store.inbox("telegram").receive(&[InboxItem::new("812", "telegram:4711", "hello")], None)?;
    ///
    /// let erasure = Erasure::session(chat.id());
    /// assert_eq!(store.erasure_extent(&erasure)?.items, 1);
    /// assert_eq!(store.erase(&erasure.keep_items())?.extent.items, 0);
    /// assert_eq!(store.inbox("telegram").pending()?, 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn keep_items(mut self) -> Self {
        self.keep_items = true;
        self
    }

    /// Makes later imports of the erased sessions fail with [`Error::SessionErased`](crate::Error::SessionErased).
    ///
    /// Imports are refused by the id of the session only. The same messages under another id are imported: in an export that
    /// was changed, in a file without ids, or with the option `session`.
    ///
    /// The store keeps a keyed hash of each id, and the key. So anyone who has the file can test whether an id was erased.
    ///
    /// ```
    /// use talktree::{Erasure, Error, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("hello"))?;
    /// store.erase(&Erasure::session("s").forbid_import())?;
    ///
    /// let again = store.session("s")?.import_message(None, Message::user("hello"));
    /// assert!(matches!(again, Err(Error::SessionErased { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn forbid_import(mut self) -> Self {
        self.forbid_import = true;
        self
    }
}
