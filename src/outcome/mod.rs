//! The results of reads and writes.

mod record;
mod session;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::id::{CompactionId, MessageId, check_label};
use crate::message::{Message, Role};

pub use record::Record;
pub(crate) use session::{MAX_TAGS, too_many_tags};
pub use session::{SessionDetails, SessionInfo};

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

/// The result of an update or an upsert.
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
    /// Whether the id was unknown, so that an upsert appended the message.
    pub is_new: bool,
    /// Whether the content changed. Equal content is not written.
    pub is_changed: bool,
    /// The compactions whose range contains the message: their summaries may describe its old content.
    pub covered_by: Vec<CompactionId>,
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

/// The newest messages that fit a budget.
///
/// ```
/// use talktree::{Budget, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all([Message::user("hello"), Message::assistant("hi")])?;
///
/// let recent = chat.recent(Budget::messages(1))?;
/// assert_eq!((recent.messages[0].text().as_str(), recent.left_out), ("hi", 1));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recent {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The number of older messages and summaries that were left out.
    pub left_out: u64,
}

/// One page of a history.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=5).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
///
/// let page = chat.page().limit(2).run()?; // the last one
/// assert_eq!((page.before.clone(), page.after), (Some("4".into()), None));
/// let earlier = chat.page().before(&page.before.unwrap()).run()?;
/// assert_eq!((earlier.messages.len(), earlier.before), (3, None));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The argument of `before` for the previous page; `None` if this is the first one.
    pub before: Option<MessageId>,
    /// The argument of `after` for the next page; `None` if this is the last one.
    pub after: Option<MessageId>,
}

/// The statistics of one stored message, without its content.
///
/// ```
/// use talktree::{Message, Role, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("hi"))?;
///
/// let stat = &chat.row_stats()?[0];
/// assert_eq!(stat.role, Role::User);
/// assert_eq!(stat.bytes, r#"[{"type":"text","text":"hi"}]"#.len() as u64);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowStat {
    /// The id of the message.
    pub id: MessageId,
    /// The role of the message.
    pub role: Role,
    /// The size of the stored parts, metadata and extra fields, in bytes.
    pub bytes: u64,
    /// The estimated tokens, counted when the message was written.
    pub tokens: u64,
}

/// A named pointer to a message.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let draft = chat.append(Message::assistant("Draft 1"))?.id;
/// chat.label("best", &draft)?;
///
/// let label = &chat.labels()?[0];
/// assert_eq!((&*label.name, &label.id), ("best", &draft));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Label {
    /// The name, unique in its session.
    pub name: String,
    /// The message.
    pub id: MessageId,
}

impl Label {
    /// Returns a label.
    #[must_use]
    pub fn new(name: impl Into<String>, id: MessageId) -> Self {
        Self { name: name.into(), id }
    }

    /// Checks that the name can be one of a label in any session; its session may have a message of this id.
    ///
    /// ```
    /// use talktree::Label;
    ///
    /// assert!(Label::new("best", "m1".into()).check().is_ok());
    /// assert!(Label::new("head", "m1".into()).check().is_err());
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if it is empty or too long, `head`, or the name of a summary.
    pub fn check(&self) -> Result<()> {
        check_label(&self.name)
    }
}

/// A tag of a message.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let draft = chat.append(Message::assistant("Draft 1"))?.id;
/// chat.tag(&draft, "reviewed")?;
///
/// let tag = &chat.all_tags()?[0];
/// assert_eq!((&tag.message, &*tag.tag), (&draft, "reviewed"));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageTag {
    /// The message.
    pub message: MessageId,
    /// The tag.
    pub tag: String,
}

/// An entry of the head's log.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello"))?.id;
/// chat.checkout_start()?;
///
/// let last = chat.head_log()?.pop().unwrap();
/// assert_eq!((last.id, last.is_present), (None, true));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HeadEntry {
    /// The head; `None` before the first message.
    pub id: Option<MessageId>,
    /// Whether this is the current head. Later entries can be redone, earlier ones undone.
    pub is_present: bool,
}
