//! A compaction replaces a range of a path with a summary when a history is read.

pub(crate) mod policy;
mod seen;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Extra, Json, Message, Part, Role};

pub(crate) use seen::{Seen, is_blank};
pub use seen::{Stale, SummaryRefused};

/// A summary that replaces a range of a path when a history is read.
///
/// The messages of the range are unchanged: a raw history has them, and they become visible again when the compaction
/// is removed.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compaction {
    /// Its id, unique in its session.
    pub id: CompactionId,
    /// The first message of the range.
    pub first: MessageId,
    /// The last message of the range. The summary is visible on the paths that contain it.
    pub last: MessageId,
    /// The number of messages of the range when the compaction was added.
    #[serde(default)]
    pub count: u64,
    /// The summary.
    pub summary: String,
    /// The tokens that a model saw in the range before: of messages, and of summaries inside it.
    #[serde(default)]
    pub tokens_before: u64,
    /// The tokens of the summary as a message.
    #[serde(default)]
    pub tokens_after: u64,
    /// The compactions inside the range whose summaries were visible before; oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<CompactionId>,
    /// The model that wrote the summary, if the caller set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Details of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
    /// The time of creation, in UTC, to the microsecond.
    #[serde(default = "crate::message::now")]
    pub created_at: DateTime<Utc>,
}

impl Compaction {
    /// Returns a compaction of the range from `first` to `last`, with a new id and the current time.
    ///
    /// The storage sets the counts of messages and tokens and the nested compactions when it adds the compaction.
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

    /// Returns the summary as a message of a history: an `assistant` message with the id `compaction_<id>` and the time
    /// of the compaction.
    ///
    /// Its metadata is `{"compaction": {"id", "first", "last", "count"}}`.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all([Message::user("hi").with_id("a"), Message::assistant("ho").with_id("b")])?;
    /// let compaction = chat.add_compaction("They greeted.", &"a".into(), &"b".into())?.id;
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

/// The text of a summary, with its origin.
///
/// ```
/// use talktree::Summary;
///
/// let summary = Summary::new("They deploy on Friday.").by("small-1").details(serde_json::json!({"cost": 0.01}));
/// assert_eq!(summary.text(), "They deploy on Friday.");
/// assert_eq!(Summary::from("They deploy."), Summary::new("They deploy."));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use = "a summary does nothing until it is committed"]
pub struct Summary {
    pub(crate) text: String,
    pub(crate) model: Option<String>,
    pub(crate) details: Option<Json>,
}

impl Summary {
    /// Returns a summary of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the model that wrote the summary. The compaction keeps it.
    pub fn by(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets details that the compaction keeps.
    pub fn details(mut self, details: impl Into<Json>) -> Self {
        self.details = Some(details.into());
        self
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether it has no text that can be seen; a blank summary is refused.
    ///
    /// ```
    /// use talktree::Summary;
    ///
    /// assert!(Summary::new(" \n\u{200B}").is_blank());
    /// assert!(!Summary::new("They deploy on Friday.").is_blank());
    /// ```
    #[must_use]
    pub fn is_blank(&self) -> bool {
        is_blank(&self.text)
    }
}

impl From<String> for Summary {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Summary {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// Whether a compaction is visible on the path to the head.
///
/// ```
/// use talktree::{CompactionStatus, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello"))?.id;
/// let reply = chat.append(Message::assistant("hi"))?.id;
/// let inner = chat.add_compaction("A greeting.", &hello, &hello)?.id;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Shown);
///
/// let outer = chat.add_compaction("They greeted.", &hello, &reply)?.id;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Under { id: outer });
/// chat.checkout(&hello)?;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Shown);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionStatus {
    /// Its summary is visible.
    Shown,
    /// Its range was compacted again: a later summary is visible instead.
    Under {
        /// The later compaction.
        id: CompactionId,
    },
    /// Its last message is not on the path to the head.
    OffPath,
}

/// The session that a plan was made in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanOrigin {
    session: SessionId,
    /// What the storage returns as the session's identity.
    identity: String,
}

impl PlanOrigin {
    pub(crate) fn new(session: SessionId, identity: String) -> Self {
        Self { session, identity }
    }

    /// Checks that a session is the one that the plan was made in.
    pub(crate) fn check(&self, session: &SessionId, identity: &str) -> Result<()> {
        if self.session == *session && self.identity == identity {
            return Ok(());
        }
        let (planned, session) = (self.session.clone(), session.clone());
        Err(Error::PlanOfAnother { planned, session })
    }
}
