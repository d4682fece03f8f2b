//! What the verbs answer.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Json, Message, Role};

/// What an append did.
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

/// What an append came to, and how much a model sees since.
///
/// ```
/// use talktree::{ExpectedHead, Message, Parent, SessionProvider, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let counted = chat.provider().append_counted(&Parent::Head, &ExpectedHead::Any, &[Message::user("Hello world")])?;
/// assert!(counted.appended[0].is_new);
/// assert_eq!(grown.visible_tokens, Some(7));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CountedAppend {
    /// The outcome of each message, in order.
    pub appended: Vec<Appended>,
    /// How many tokens a model sees on the path to the head since, if the storage knows it without
    /// counting.
    pub visible_tokens: Option<u64>,
}

/// What an update did.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello").with_id("m1"))?.id;
/// let compaction = chat.add_compaction("A greeting.", &hello, &hello)?;
///
/// let updated = chat.update(Message::user("goodbye").with_id("m1"))?;
/// assert!(updated.is_changed);
/// assert_eq!(updated.covered_by, [compaction]); // a summary to make anew
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Updated {
    /// Whether anything was written; content that is the same is not.
    pub is_changed: bool,
    /// The compactions that cover the message: their summaries may still tell its old text.
    pub covered_by: Vec<CompactionId>,
}

/// What an upsert did.
///
/// ```
/// use talktree::{Message, Store, Upserted};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let first = chat.upsert(Message::assistant("The an").with_id("m1"))?;
/// assert!(matches!(first, Upserted::Appended(answer) if answer.is_new));
/// let then = chat.upsert(Message::assistant("The answer").with_id("m1"))?;
/// assert!(matches!(then, Upserted::Updated(answer) if answer.is_changed));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upserted {
    /// No message of this id stood: it was appended.
    Appended(Appended),
    /// A message of this id stood: its content was replaced.
    Updated(Updated),
}

/// What a delete did.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let secret = chat.append(Message::user("My password is ..."))?.id;
/// let reply = chat.append(Message::assistant("Noted."))?.id;
/// let compaction = chat.add_compaction("They shared a password.", &secret, &reply)?;
///
/// assert_eq!(chat.delete([&secret])?.covered_by, [compaction.clone()]); // its summary speaks of it
/// assert_eq!(chat.delete([&reply])?.compactions_gone, [compaction]);
/// # Ok::<(), talktree::Error>(())
/// ```
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
    /// How many older ones (messages and summaries) were left out.
    pub left_out: u64,
}

/// One page of a conversation.
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
    /// Where the page before this one ends: pass it to `before`. `None` at the beginning.
    pub before: Option<MessageId>,
    /// Where the page after this one begins: pass it to `after`. `None` at the end.
    pub after: Option<MessageId>,
}

/// The figures of one stored message, without its content.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// The name, unique in its session.
    pub name: String,
    /// The message.
    pub id: MessageId,
}

/// One entry of the head's log.
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
    /// Where the head stood; `None` before the first message.
    pub id: Option<MessageId>,
    /// Whether the head stands here now; what comes after can be redone, what comes before undone.
    pub is_present: bool,
}

/// What is known of a session without its messages.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("s")?;
/// let question = chat.append(Message::user("Shall we?"))?.id;
///
/// let info = chat.fork(&question, "What if")?.info()?.unwrap();
/// assert_eq!(info.name.as_deref(), Some("What if"));
/// assert_eq!((info.parent_session, info.fork_point), (Some("s".into()), Some(question)));
/// # Ok::<(), talktree::Error>(())
/// ```
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
///
/// ```
/// use talktree::{SessionDetails, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.set_details(&SessionDetails {
///     name: Some("Deployment".to_owned()),
///     source: Some("telegram".to_owned()),
///     ..SessionDetails::default()
/// })?;
/// assert_eq!(chat.info()?.unwrap().source.as_deref(), Some("telegram"));
/// # Ok::<(), talktree::Error>(())
/// ```
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

impl SessionDetails {
    /// Returns the details that a session does not have yet; when it came into being is one it has.
    ///
    /// ```
    /// use talktree::{SessionDetails, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let named = SessionDetails { name: Some("mine".to_owned()), ..SessionDetails::default() };
    /// chat.set_details(&named)?;
    ///
    /// let model = Some("small".to_owned());
    /// let details = SessionDetails { name: Some("theirs".to_owned()), model, ..SessionDetails::default() };
    /// chat.set_details(&details.missing_in(&chat.info()?.unwrap()))?;
    /// let info = chat.info()?.unwrap();
    /// assert_eq!((info.name.as_deref(), info.model.as_deref()), (Some("mine"), Some("small")));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn missing_in(self, info: &SessionInfo) -> Self {
        Self {
            name: self.name.filter(|_| info.name.is_none()),
            parent_session: self.parent_session.filter(|_| info.parent_session.is_none()),
            fork_point: self.fork_point.filter(|_| info.fork_point.is_none()),
            model: self.model.filter(|_| info.model.is_none()),
            source: self.source.filter(|_| info.source.is_none()),
            metadata: self.metadata.filter(|_| info.metadata.is_none()),
            end_reason: self.end_reason.filter(|_| info.end_reason.is_none()),
            created_at: None,
        }
    }
}

impl RowStat {
    /// Returns the figures of a message, for a storage of your own.
    #[must_use]
    pub fn new(id: MessageId, role: Role, bytes: u64, tokens: u64) -> Self {
        Self { id, role, bytes, tokens }
    }
}

impl Label {
    /// Returns a label, for a storage of your own.
    #[must_use]
    pub fn new(name: impl Into<String>, id: MessageId) -> Self {
        Self { name: name.into(), id }
    }
}

impl HeadEntry {
    /// Returns an entry of a head's log, for a storage of your own.
    #[must_use]
    pub fn new(id: Option<MessageId>, is_present: bool) -> Self {
        Self { id, is_present }
    }
}

impl SessionInfo {
    /// Returns what is known of a session that has no more than an id, for a storage of your own.
    #[must_use]
    pub fn new(id: SessionId, created_at: DateTime<Utc>) -> Self {
        Self {
            id,
            name: None,
            parent_session: None,
            fork_point: None,
            model: None,
            source: None,
            metadata: None,
            end_reason: None,
            created_at,
            updated_at: created_at,
        }
    }
}

/// One historical message to store as it is.
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
    /// What names the record in its source; a record that was imported once is not imported again,
    /// also when its message was deleted since.
    pub record: String,
    /// The message it follows; `None` for a root.
    pub parent: Option<MessageId>,
    /// The message, with its id and time.
    pub message: Message,
}

impl ImportRecord {
    /// Returns a record that brings no message: only its name is kept, so that
    /// [`Session::is_imported`](crate::Session::is_imported) knows it later.
    ///
    /// For what an importer takes in beside messages. `at` is any message of the session; it stays as
    /// it is.
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

/// What became of one historical message.
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
    /// Stored now.
    Added,
    /// Imported before, or a message of this id and content stands.
    Known,
    /// A message of this id with other content stands, and was left as it is.
    Differs,
}
