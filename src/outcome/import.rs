//! What an import stores, and what became of it.

use super::pointer::Label;
use super::session::SessionDetails;
use crate::compaction::Compaction;
use crate::id::{MessageId, SessionId};
use crate::message::Message;

/// A message to import, with its id and time.
///
/// ```
/// use talktree::{ImportRecord, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let record = ImportRecord {
///     record: "chat.jsonl:1".to_owned(),
///     parent: None,
///     message: Message::user("hello").with_id("m1"),
/// };
/// chat.import_messages(&[record])?;
/// assert_eq!(chat.head()?, Some("m1".into()));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ImportRecord {
    /// The name of the record in its source. A record is imported only once, even if its message was deleted later.
    pub record: String,
    /// The parent of the message; `None` for a root.
    pub parent: Option<MessageId>,
    /// The message, with its id and time.
    pub message: Message,
}

impl ImportRecord {
    /// Returns a record without a message: only its name is stored, so that
    /// [`Session::is_imported`](crate::Session::is_imported) knows it later.
    ///
    /// For what an importer stores besides messages. `at` is any message of the session; it does not change.
    ///
    /// ```
    /// use talktree::{ImportRecord, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.import_messages(&[ImportRecord::mark("chat.jsonl:title", hello)])?;
    /// assert!(chat.is_imported("chat.jsonl:title")?);
    /// assert_eq!(chat.path_length()?, 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn mark(record: impl Into<String>, at: MessageId) -> Self {
        let message = Message::new("", Vec::new()).with_id(at.clone());
        Self { record: record.into(), parent: Some(at), message }
    }
}

/// A whole session to import: see [`Store::import_sessions`](crate::Store::import_sessions).
#[derive(Debug, Clone, PartialEq)]
pub struct SessionImport {
    /// The id of the session.
    pub id: SessionId,
    /// Its details, with its times.
    pub details: SessionDetails,
    /// Its messages; a parent comes before its children.
    pub records: Vec<ImportRecord>,
    /// Its compactions, in the order in which they were made.
    pub compactions: Vec<Compaction>,
    /// Its labels.
    pub labels: Vec<Label>,
    /// Its head; `None`: where it would be if all messages were appended in order.
    pub head: Option<MessageId>,
    /// Names of imported records without a message, like those of [`ImportRecord::mark`].
    pub marks: Vec<String>,
}

impl SessionImport {
    /// Returns a session without details and messages.
    ///
    /// ```
    /// use talktree::{SessionDetails, SessionImport};
    ///
    /// let details = SessionDetails::named("Deployment");
    /// let session = SessionImport { details, ..SessionImport::new("chat-7") };
    /// assert!(session.records.is_empty());
    /// ```
    #[must_use]
    pub fn new(id: impl Into<SessionId>) -> Self {
        Self {
            id: id.into(),
            details: SessionDetails::default(),
            records: Vec::new(),
            compactions: Vec::new(),
            labels: Vec::new(),
            head: None,
            marks: Vec::new(),
        }
    }
}

/// The result of importing one message.
///
/// ```
/// use talktree::{Imported, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("hello").with_id("m1"))?;
///
/// let other = Message::user("goodbye").with_id("m1");
/// assert_eq!(chat.import_message(None, other)?, Imported::Differs);
/// assert_eq!(chat.history()?[0].text(), "hello");
/// let new = Message::user("goodbye").with_id("m2");
/// assert_eq!(chat.import_message(None, new)?, Imported::Added);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Imported {
    /// The message was stored.
    Added,
    /// The record was imported before, or the store has the same message.
    Known,
    /// The store has a message of this id with other content, which is unchanged.
    Differs,
}
