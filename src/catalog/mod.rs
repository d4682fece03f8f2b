//! The catalog: the sessions of a store as a list, and the outside keys that point to them.
//!
//! A list shows sessions without reading their messages. A *filter* chooses which ones; a list of messages those of an
//! author or with a tag.
//! A session can be put into the *trash*: lists, searches and bindings leave it out, and it can be restored. A *binding*
//! says which session an outside key, such as a chat of a messenger, points to. At any time a key points to one session at
//! most; the sessions that it pointed to before stay in the store.

mod binding;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::error::Result;
use crate::id::{SessionId, check_given, check_name};
use crate::message::{Json, Message};
use crate::outcome::SessionInfo;
pub use binding::{Binding, BindingEnd, BindingFilter};
pub(crate) use binding::{ResumeRequest, Resumed};

/// Which sessions a list shows. The default shows all that are not in the trash.
///
/// A session is shown if every condition that is set holds.
///
/// ```
/// use talktree::{SessionFilter, SessionState};
///
/// let filter = SessionFilter {
///     owner: Some("user:42".to_owned()),
///     state: SessionState::Open,
///     ..SessionFilter::default()
/// };
/// assert!(filter.tag.is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFilter {
    /// The owner.
    pub owner: Option<String>,
    /// The program or file that it came from.
    pub source: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// A person who wrote in it, named by [`Author::key`](crate::Author::key).
    pub author: Option<String>,
    /// A tag that it has.
    pub tag: Option<String>,
    /// The session that it was forked from.
    pub parent_session: Option<SessionId>,
    /// It was created at exactly this time, as a conversation and its copies are that an import stores.
    pub created_at: Option<DateTime<Utc>>,
    /// Its last message is not older. A session that never had one counts from its creation, here and in `until`.
    pub since: Option<DateTime<Utc>>,
    /// Its last message is older.
    pub until: Option<DateTime<Utc>>,
    /// A text in its name, in any case.
    pub name: Option<String>,
    /// Whether it is pinned.
    pub is_pinned: Option<bool>,
    /// Its state.
    pub state: SessionState,
}

/// The states of sessions that a list shows.
///
/// ```
/// use talktree::SessionState;
///
/// assert_eq!(SessionState::default(), SessionState::Present);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SessionState {
    /// Not in the trash.
    #[default]
    Present,
    /// Neither ended nor in the trash.
    Open,
    /// Ended, and not in the trash.
    Ended,
    /// In the trash.
    Trash,
}

impl SessionFilter {
    /// Checks that owner, author, source, model and tag are not empty: no session has an empty one.
    pub(crate) fn check(&self) -> Result<()> {
        check_given([
            ("owner", &self.owner),
            ("author", &self.author),
            ("source", &self.source),
            ("model", &self.model),
            ("tag", &self.tag),
        ])
    }

    /// Returns a filter of the sessions of one owner.
    ///
    /// ```
    /// use talktree::SessionFilter;
    ///
    /// assert_eq!(SessionFilter::owned_by("user:42").owner.as_deref(), Some("user:42"));
    /// ```
    #[must_use]
    pub fn owned_by(owner: impl Into<String>) -> Self {
        Self { owner: Some(owner.into()), ..Self::default() }
    }

    /// Returns whether a session is shown, except that who wrote in it is not compared: its details do not say that.
    pub(crate) fn shows(&self, info: &SessionInfo) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let at = info.last_message_at.unwrap_or(info.created_at);
        let is_named = |text: &String| {
            let name = info.name.as_deref().unwrap_or_default();
            name.to_lowercase().contains(&text.to_lowercase())
        };
        is(&self.owner, &info.owner)
            && is(&self.source, &info.source)
            && is(&self.model, &info.model)
            && self.tag.as_ref().is_none_or(|tag| info.tags.contains(tag))
            && (self.parent_session.is_none() || self.parent_session == info.parent_session)
            && self.created_at.is_none_or(|created_at| created_at == info.created_at)
            && self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
            && self.name.as_ref().is_none_or(is_named)
            && self.is_pinned.is_none_or(|is_pinned| is_pinned == info.is_pinned)
            && self.state.holds(info)
    }
}

impl SessionState {
    fn holds(self, info: &SessionInfo) -> bool {
        let (is_deleted, is_ended) = (info.deleted_at.is_some(), info.ended_at.is_some());
        match self {
            Self::Present => !is_deleted,
            Self::Open => !is_deleted && !is_ended,
            Self::Ended => !is_deleted && is_ended,
            Self::Trash => is_deleted,
        }
    }
}

/// The most characters of a preview.
const MAX_PREVIEW: usize = 120;

/// A session of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListedSession {
    /// Its details.
    #[serde(flatten)]
    pub info: SessionInfo,
    /// The first line that a user wrote in it, of at most 120 characters, for sessions without a name. `None` if there is
    /// none among its first messages.
    pub preview: Option<String>,
}

/// A page of a list of sessions, the one with the newest message first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<ListedSession>,
    /// Where the next page begins; `None` if this is the last one. A session that gets a new message meanwhile moves to the
    /// front of the list; the place stays where it was.
    pub after: Option<String>,
}

impl ListedSession {
    /// Returns a session of a list; `first` is its first message of a user.
    pub(crate) fn new(info: SessionInfo, first: Option<&Message>) -> Self {
        let text = first.map(Message::text).unwrap_or_default();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        let preview = line.map(|line| match line.char_indices().nth(MAX_PREVIEW - 1) {
            Some((end, last)) if end + last.len_utf8() < line.len() => format!("{}…", &line[..end]),
            _ => line.to_owned(),
        });
        Self { info, preview }
    }
}

/// A person or tenant with sessions that are not in the trash, or with transcripts. Listed by
/// [`Store::owners`](crate::Store::owners), which has an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OwnerInfo {
    /// The name that its sessions have, such as `user:42`.
    pub owner: String,
    /// How many sessions.
    pub sessions: u64,
    /// How many messages they have.
    pub messages: u64,
    /// The time of the message that was appended last to any of them.
    pub last_message_at: Option<DateTime<Utc>>,
    /// How many transcripts of agents.
    pub transcripts: u64,
}

impl OwnerInfo {
    pub(crate) fn new(owner: String) -> Self {
        Self { owner, sessions: 0, messages: 0, last_message_at: None, transcripts: 0 }
    }
}

/// A change of a session that is no change of its conversation.
///
/// ```
/// use talktree::{SessionChange, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.create_session("Deployment")?;
/// store.change_session(chat.id(), &SessionChange::Tag("work".to_owned()))?;
/// store.change_session(chat.id(), &SessionChange::Pin(true))?;
/// let info = chat.info()?.unwrap();
/// assert_eq!((info.tags, info.is_pinned), (vec!["work".to_owned()], true));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SessionChange {
    /// Sets the name; `None` removes it.
    Name(Option<String>),
    /// Sets the owner; `None` removes it. Another owner removes the frozen prompt, which may hold texts of the former one.
    Owner(Option<String>),
    /// Sets the metadata; `None` removes it.
    Metadata(Option<Json>),
    /// Adds a tag; one that it has is a no-op.
    Tag(String),
    /// Removes a tag; one that it does not have is a no-op.
    Untag(String),
    /// Pins it, so that no retention rule removes it, or takes the pin away.
    Pin(bool),
    /// Ends it with a reason. It can still be read and written; bindings do not lead to it any more.
    End(String),
    /// Takes the end back.
    Reopen,
    /// Puts it into the trash: lists, searches and bindings leave it out, and it cannot be written or changed until it is
    /// restored. One that is there is a no-op.
    Delete,
    /// Takes it out of the trash.
    Restore,
}

impl SessionChange {
    /// Checks the texts.
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if one is empty or too long.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Name(Some(name)) => check_name("session name", name),
            Self::Owner(Some(owner)) => check_name("owner", owner),
            Self::Tag(tag) | Self::Untag(tag) => check_name("tag", tag),
            Self::End(reason) => check_name("end reason", reason),
            _ => Ok(()),
        }
    }

    /// Returns whether a session in the trash can be changed so: it can be taken out of it, and put into it again.
    pub(crate) fn is_allowed_in_trash(&self) -> bool {
        matches!(self, Self::Delete | Self::Restore)
    }
}

/// Which messages are listed. The default lists all.
///
/// ```
/// use talktree::{Author, Message, MessageFilter, Store};
///
/// let store = Store::open_in_memory()?;
/// let group = store.session("group")?;
/// let bad = group.append(Message::user("Buy now!").from(&Author::new("41")))?.id;
/// group.append(Message::user("No.").from(&Author::new("42")))?;
/// group.tag(&bad, "spam")?;
///
/// let page = store.list_messages(&MessageFilter::tagged("spam"), None, 50)?;
/// assert_eq!((&page.messages[0].message.id, &*page.messages[0].tags), (&bad, &["spam".to_owned()][..]));
/// let page = store.list_messages(&MessageFilter::written_by("42"), None, 50)?;
/// assert_eq!(page.messages[0].message.text(), "No.");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageFilter {
    /// Of this session.
    pub session: Option<SessionId>,
    /// Written by this person, named by [`Author::key`](crate::Author::key).
    pub author: Option<String>,
    /// With this tag.
    pub tag: Option<String>,
    /// Whether messages of sessions in the trash are listed, too.
    pub includes_trash: bool,
}

/// A message of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListedMessage {
    /// Its session.
    pub session: SessionId,
    /// The message.
    pub message: Message,
    /// Its tags, sorted.
    pub tags: Vec<String>,
}

/// A page of a list of messages, session by session, in the order in which they were appended.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct MessagePage {
    /// The messages.
    pub messages: Vec<ListedMessage>,
    /// Where the next page begins; `None` if this is the last one.
    pub after: Option<String>,
}

impl MessageFilter {
    /// Returns a filter of the messages that a person wrote.
    ///
    /// ```
    /// use talktree::MessageFilter;
    ///
    /// assert_eq!(MessageFilter::written_by("42").author.as_deref(), Some("42"));
    /// ```
    #[must_use]
    pub fn written_by(author: impl Into<String>) -> Self {
        Self { author: Some(author.into()), ..Self::default() }
    }

    /// Returns a filter of the messages with a tag.
    ///
    /// ```
    /// use talktree::MessageFilter;
    ///
    /// assert_eq!(MessageFilter::tagged("spam").tag.as_deref(), Some("spam"));
    /// ```
    #[must_use]
    pub fn tagged(tag: impl Into<String>) -> Self {
        Self { tag: Some(tag.into()), ..Self::default() }
    }

    /// Returns an error if the author or the tag is empty: no message has an empty one.
    pub(crate) fn check(&self) -> Result<()> {
        check_given([("author", &self.author), ("tag", &self.tag)])
    }
}

impl ListedMessage {
    pub(crate) fn new(session: SessionId, message: Message, tags: Vec<String>) -> Self {
        Self { session, message, tags }
    }
}
