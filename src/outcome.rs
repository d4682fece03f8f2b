//! The results of reads and writes.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::compaction::Compaction;
use crate::error::Result;
use crate::id::{CompactionId, MessageId, SessionId, check_name, check_name_length};
use crate::message::{Json, Message, Role};

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
///
/// ```
/// use talktree::{ExpectedHead, Message, Parent, SessionProvider, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let counted = chat.provider().append_counted(&Parent::Head, &ExpectedHead::Any, &[Message::user("Hello world")])?;
/// assert!(counted.appended[0].is_new);
/// assert_eq!(counted.visible_tokens, Some(7));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CountedAppend {
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
/// let first = chat.upsert(Message::assistant("The an").with_id("m1"))?;
/// assert!(matches!(first, Upserted::Appended(answer) if answer.is_new));
/// let then = chat.upsert(Message::assistant("The answer").with_id("m1"))?;
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// The name, unique in its session.
    pub name: String,
    /// The message.
    pub id: MessageId,
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

/// The details of a session, without its messages.
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
    /// The id.
    pub id: SessionId,
    /// The name, for people.
    pub name: Option<String>,
    /// The session that this one was forked from.
    pub parent_session: Option<SessionId>,
    /// The message of that session at which this one was forked.
    pub fork_point: Option<MessageId>,
    /// The model that the caller set.
    pub model: Option<String>,
    /// The program or file that the session comes from.
    pub source: Option<String>,
    /// Metadata of the caller.
    pub metadata: Option<Json>,
    /// The reason why the caller ended the session.
    pub end_reason: Option<String>,
    /// The person or tenant whose data it is.
    pub owner: Option<String>,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// How many messages it has, on all branches.
    pub messages: u64,
    /// The time of the message that was appended last. A delete does not change it. A message with a time in the future
    /// counts as appended now.
    pub last_message_at: Option<DateTime<Utc>>,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The time of the last write of any kind.
    pub updated_at: DateTime<Utc>,
    /// When it was ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether it is pinned: no retention rule removes it.
    pub is_pinned: bool,
    /// When it was put into the trash.
    pub deleted_at: Option<DateTime<Utc>>,
}

/// The details of a session to set. `None` leaves a detail unchanged.
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
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SessionDetails {
    /// The name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The session that this one was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
    /// The message of that session at which this one was forked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_point: Option<MessageId>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The program or file that the session comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Metadata of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The reason why the session was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
    /// The person or tenant whose data it is, such as `user:42`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The time of creation, for an imported session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// The time of the last write, for an imported session. Set it last: every later write replaces it by the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl SessionDetails {
    /// Returns details with this name.
    ///
    /// ```
    /// use talktree::{SessionDetails, Store};
    ///
    /// let source = Some("telegram".to_owned());
    /// let details = SessionDetails { source, ..SessionDetails::named("Deployment") };
    /// let chat = Store::open_in_memory()?.create_session(details)?;
    /// assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("Deployment"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// Checks that name and owner are not empty and that no text is too long.
    pub(crate) fn check(&self) -> Result<()> {
        for (what, text) in [("session name", &self.name), ("owner", &self.owner)] {
            text.as_ref().map_or(Ok(()), |text| check_name(what, text))?;
        }
        for (what, text) in
            [("model", &self.model), ("source", &self.source), ("end reason", &self.end_reason)]
        {
            check_name_length(what, text.as_deref().unwrap_or_default())?;
        }
        let parent = self.parent_session.as_ref().map(SessionId::check);
        let fork_point = self.fork_point.as_ref().map(MessageId::check);
        parent.into_iter().chain(fork_point).collect()
    }

    /// Returns the details that a session does not have yet. Every session has both times, so they are left out.
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
            owner: self.owner.filter(|_| info.owner.is_none()),
            created_at: None,
            updated_at: None,
        }
    }
}

/// Details with this name.
impl From<&str> for SessionDetails {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

/// Details with this name.
impl From<String> for SessionDetails {
    fn from(name: String) -> Self {
        Self::named(name)
    }
}

/// Details with this name.
impl From<&String> for SessionDetails {
    fn from(name: &String) -> Self {
        Self::named(name)
    }
}

impl RowStat {
    /// Returns the statistics of a message, for storages of your own.
    #[must_use]
    pub fn new(id: MessageId, role: Role, bytes: u64, tokens: u64) -> Self {
        Self { id, role, bytes, tokens }
    }
}

impl Label {
    /// Returns a label, for storages of your own.
    #[must_use]
    pub fn new(name: impl Into<String>, id: MessageId) -> Self {
        Self { name: name.into(), id }
    }
}

impl HeadEntry {
    /// Returns an entry of the head's log, for storages of your own.
    #[must_use]
    pub fn new(id: Option<MessageId>, is_present: bool) -> Self {
        Self { id, is_present }
    }
}

impl SessionInfo {
    /// Returns the details of a session that has only an id, for storages of your own.
    #[must_use]
    pub fn new(id: SessionId, created_at: DateTime<Utc>) -> Self {
        Self::from_details(id, SessionDetails::default(), created_at)
    }

    /// Returns the information of a session with these details; `time` replaces a missing one.
    pub(crate) fn from_details(
        id: SessionId,
        details: SessionDetails,
        time: DateTime<Utc>,
    ) -> Self {
        Self {
            id,
            name: details.name,
            parent_session: details.parent_session,
            fork_point: details.fork_point,
            model: details.model,
            source: details.source,
            metadata: details.metadata,
            end_reason: details.end_reason,
            owner: details.owner,
            tags: Vec::new(),
            messages: 0,
            last_message_at: None,
            created_at: details.created_at.unwrap_or(time),
            updated_at: details.updated_at.unwrap_or(time),
            ended_at: None,
            is_pinned: false,
            deleted_at: None,
        }
    }

    /// Returns the details: everything but the id.
    pub(crate) fn details(&self) -> SessionDetails {
        SessionDetails {
            name: self.name.clone(),
            parent_session: self.parent_session.clone(),
            fork_point: self.fork_point.clone(),
            model: self.model.clone(),
            source: self.source.clone(),
            metadata: self.metadata.clone(),
            end_reason: self.end_reason.clone(),
            owner: self.owner.clone(),
            created_at: Some(self.created_at),
            updated_at: Some(self.updated_at),
        }
    }
}

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
