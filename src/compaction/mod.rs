//! Compactions: summaries laid over stretches of a path.

pub(crate) mod policy;
mod refusal;
mod seen;
mod status;
mod summary;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use crate::id::{CompactionId, MessageId};
use crate::message::{Extra, Json, Message, Part, Role};

pub(crate) use refusal::is_blank;
pub use refusal::{Stale, SummaryRefused};
pub use seen::Seen;
pub use status::CompactionStatus;
pub use summary::Summary;

/// A summary laid over a stretch of a path when a history is read.
///
/// The messages under it stay as they are: raw history shows them, and removing the compaction
/// brings them back into view.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello"))?.id;
/// let reply = chat.append(Message::assistant("hi"))?.id;
/// chat.add_compaction("They greeted.", &hello, &reply)?;
///
/// let compaction = chat.compactions()?.remove(0);
/// assert_eq!((compaction.summary.as_str(), compaction.count), ("They greeted.", 2));
/// assert_eq!((compaction.first, compaction.last), (hello, reply));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Compaction {
    /// Its name, unique in its session.
    pub id: CompactionId,
    /// The first message under it.
    pub first: MessageId,
    /// The last message under it; the summary shows on the paths that hold this message.
    pub last: MessageId,
    /// How many messages it stood for when it was made.
    pub count: u64,
    /// What is read in their place.
    pub summary: String,
    /// How many tokens a model saw there before it was laid: messages, and the summaries it took in.
    pub tokens_before: u64,
    /// How many tokens it sees since: those of the summary as a message.
    pub tokens_after: u64,
    /// The summaries that a model saw there before, which this one took in; oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<CompactionId>,
    /// What wrote the summary, if that was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Anything the maker of the summary wants to keep beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
    /// When it was made, in UTC, to the microsecond.
    pub created_at: DateTime<Utc>,
}

impl Compaction {
    /// Returns a summary of the stretch from `first` to `last`, with a new id, made now; how many
    /// messages, tokens and summaries it stands for is counted when it is laid.
    ///
    /// ```
    /// use talktree::Compaction;
    ///
    /// let compaction = Compaction::new("They greeted.", "a".into(), "b".into());
    /// assert_eq!((compaction.count, compaction.last.as_str()), (0, "b"));
    /// ```
    #[must_use]
    pub fn new(summary: impl Into<String>, first: MessageId, last: MessageId) -> Self {
        Self {
            id: CompactionId::new(),
            first,
            last,
            count: 0,
            summary: summary.into(),
            tokens_before: 0,
            tokens_after: 0,
            nested: Vec::new(),
            model: None,
            details: None,
            created_at: crate::message::now(),
        }
    }

    /// Returns the summary as it reads in a history: an `assistant` message under the id
    /// `compaction_<id>`, at the stored time.
    ///
    /// Its metadata is `{"compaction": {"id", "first", "last", "count"}}`.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all([Message::user("hi").with_id("a"), Message::assistant("ho").with_id("b")])?;
    /// let compaction = chat.add_compaction("They greeted.", &"a".into(), &"b".into())?;
    ///
    /// let summary = &chat.history()?[0];
    /// assert_eq!(summary.id, compaction.as_message());
    /// assert_eq!(summary.text(), "They greeted.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn to_message(&self, parent: Option<MessageId>) -> Message {
        let about = json!({"compaction": {
            "id": self.id, "first": self.first, "last": self.last, "count": self.count,
        }});
        Message {
            id: self.id.as_message(),
            parent,
            role: Role::Assistant,
            parts: vec![Part::text(self.summary.as_str())],
            metadata: Some(about.into()),
            created_at: self.created_at,
            is_hidden: false,
            extra: Extra::new(),
        }
    }
}
