//! What the verbs answer.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Json, Message, Role};

/// What an append did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The message's id.
    pub id: MessageId,
    /// Whether it was stored now; `false` if a message of this id stood already.
    pub is_new: bool,
    /// Whether the message that stood already says something else; it was left as it is.
    pub differs: bool,
}

impl Appended {
    /// Returns the answer for a message that was stored now.
    #[must_use]
    pub fn new(id: MessageId) -> Self {
        Self { id, is_new: true, differs: false }
    }

    /// Returns the answer for a message whose id stood already.
    #[must_use]
    pub fn known(id: MessageId, differs: bool) -> Self {
        Self { id, is_new: false, differs }
    }
}

/// What an update did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Updated {
    /// Whether anything was written; content that is the same is not.
    pub is_changed: bool,
    /// The compactions that cover the message: their summaries may still tell its old text.
    pub covered_by: Vec<CompactionId>,
}

/// What an upsert did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upserted {
    /// No message of this id stood: it was appended.
    Appended(Appended),
    /// A message of this id stood: its content was replaced.
    Updated(Updated),
}

/// What a delete did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Deleted {
    /// The messages that are gone, in the order given.
    pub messages: Vec<MessageId>,
    /// Compactions that still stand and cover deleted text: their summaries may speak of it.
    pub covered_by: Vec<CompactionId>,
    /// Compactions that went, because all they covered or the message they ended at is gone.
    pub compactions_gone: Vec<CompactionId>,
    /// Compactions that lay under those that went and show again.
    pub compactions_back: Vec<CompactionId>,
}

/// The end of a conversation that fits a budget.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recent {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// How many older ones (messages and summaries) were left out.
    pub left_out: u64,
}

/// One page of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Where the page before this one ends: pass it to `before`. `None` at the beginning.
    pub before: Option<MessageId>,
    /// Where the page after this one begins: pass it to `after`. `None` at the end.
    pub after: Option<MessageId>,
}

/// The figures of one stored message, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowStat {
    /// The message.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// Stored bytes of parts, metadata and further fields.
    pub bytes: u64,
    /// Estimated tokens, stamped when it was written.
    pub tokens: u64,
}

/// A named pointer to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// The name, unique in its session.
    pub name: String,
    /// The message.
    pub id: MessageId,
}

/// One entry of the head's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HeadEntry {
    /// Where the head stood; `None` before the first message.
    pub id: Option<MessageId>,
    /// Whether the head stands here now; what comes after can be redone, what comes before undone.
    pub is_present: bool,
}

/// What is known of a session without its messages.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The name programs know it by.
    pub id: SessionId,
    /// The name people know it by.
    pub name: Option<String>,
    /// The session it was forked from.
    pub parent_session: Option<SessionId>,
    /// The message of that session at which it was forked.
    pub fork_point: Option<MessageId>,
    /// The model it talks to, as the caller said.
    pub model: Option<String>,
    /// The program or file it comes from.
    pub source: Option<String>,
    /// Anything the caller keeps beside it.
    pub metadata: Option<Json>,
    /// Why it was closed, if it was.
    pub end_reason: Option<String>,
    /// When it came into being.
    pub created_at: DateTime<Utc>,
    /// When it was last written to.
    pub updated_at: DateTime<Utc>,
}

/// What is set beside a session's messages; `None` leaves what is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionDetails {
    /// The name people know it by.
    pub name: Option<String>,
    /// The session it comes from.
    pub parent_session: Option<SessionId>,
    /// The message of that session at which it was forked.
    pub fork_point: Option<MessageId>,
    /// The model it talks to.
    pub model: Option<String>,
    /// The program or file it comes from.
    pub source: Option<String>,
    /// Anything to keep beside it.
    pub metadata: Option<Json>,
    /// Why it was closed.
    pub end_reason: Option<String>,
    /// When it came into being, for one that is imported.
    pub created_at: Option<DateTime<Utc>>,
}

/// One historical message to store as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// What names the record in its source; a record that was imported once is not imported again,
    /// also when its message was deleted since.
    pub record: String,
    /// The message it follows; `None` for a root.
    pub parent: Option<MessageId>,
    /// The message, with its id and time.
    pub message: Message,
}

/// What became of one historical message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrival {
    /// Stored now.
    Added,
    /// Imported before, or a message of this id and content stands.
    Known,
    /// A message of this id with other content stands, and was left as it is.
    Differs,
}
