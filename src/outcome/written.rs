//! The results of writes to a session.

use crate::id::{CompactionId, MessageId};

/// The result of an append.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("hello").with_id("m1"))?;
///
/// let answer = chat.append(Message::user("good morning").with_id("m1"))?;
/// assert!(!answer.is_new && answer.differs);
/// assert_eq!(chat.history()?[0].text(), "hello");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The id of the message.
    pub id: MessageId,
    /// Whether the message was stored; `false` if its id was already known.
    pub is_new: bool,
    /// Whether the id was known and its message has other content. The stored message is unchanged.
    pub differs: bool,
}

impl Appended {
    /// Returns the result for a stored message.
    #[must_use]
    pub fn new(id: MessageId) -> Self {
        Self { id, is_new: true, differs: false }
    }

    /// Returns the result for a known id.
    #[must_use]
    pub fn known(id: MessageId, differs: bool) -> Self {
        Self { id, is_new: false, differs }
    }
}

/// The result of an append, with the visible tokens after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CountedAppend {
    /// The result of each message, in order.
    pub appended: Vec<Appended>,
    /// The tokens that a model sees on the path to the head after the append; `None` if the storage would have to count
    /// them.
    pub visible_tokens: Option<u64>,
}

/// The result of an update.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello").with_id("m1"))?.id;
/// let compaction = chat.add_compaction("A greeting.", &hello, &hello)?.id;
///
/// let updated = chat.update(Message::user("goodbye").with_id("m1"))?;
/// assert!(updated.is_changed);
/// assert_eq!(updated.covered_by, [compaction]); // an outdated summary
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Updated {
    /// Whether the content changed. Equal content is not written.
    pub is_changed: bool,
    /// The compactions whose range contains the message: their summaries may describe its old content.
    pub covered_by: Vec<CompactionId>,
}

/// The result of an upsert.
///
/// ```
/// use talktree::{Message, Store, Upserted};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let first = chat.upsert(Message::user("Milk").with_id("m1"))?;
/// assert!(matches!(first, Upserted::Appended(answer) if answer.is_new));
/// let then = chat.upsert(Message::user("Milk, bread").with_id("m1"))?;
/// assert!(matches!(then, Upserted::Updated(answer) if answer.is_changed));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upserted {
    /// The id was unknown: the message was appended.
    Appended(Appended),
    /// The id was known: its content was replaced.
    Updated(Updated),
}

/// The result of a delete.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let secret = chat.append(Message::user("My password is ..."))?.id;
/// let reply = chat.append(Message::assistant("Noted."))?.id;
/// let compaction = chat.add_compaction("They shared a password.", &secret, &reply)?.id;
///
/// assert_eq!(chat.delete([&secret])?.covered_by, [compaction.clone()]); // its summary mentions the message
/// assert_eq!(chat.delete([&reply])?.compactions_gone, [compaction]);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Deleted {
    /// The deleted messages, in the order given.
    pub messages: Vec<MessageId>,
    /// The compactions whose range contains a deleted message: their summaries may describe it.
    pub covered_by: Vec<CompactionId>,
    /// The compactions that were removed, because their last message or their whole range was deleted.
    pub compactions_gone: Vec<CompactionId>,
    /// The compactions that became visible again, because a later one was removed.
    pub compactions_back: Vec<CompactionId>,
}
