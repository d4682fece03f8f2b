//! What a session is besides its messages.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId, check_name, shorten};
use crate::message::Json;

/// The most tags of one session or message: every list shows all of them.
pub(crate) const MAX_TAGS: usize = 100;

/// Returns the error of a tag more than are allowed.
pub(crate) fn too_many_tags(of: &str, tag: &str) -> Error {
    let why = format!("the {of} has {MAX_TAGS} tags, the limit");
    Error::InvalidValue { what: "tag", given: shorten(tag).into_owned(), why }
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
    /// The message of that session at which this one was forked; `None` once the copy of it here is deleted.
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

impl SessionInfo {
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
            tags: details.tags,
            messages: 0,
            last_message_at: None,
            created_at: details.created_at.unwrap_or(time),
            updated_at: details.updated_at.unwrap_or(time),
            ended_at: details.ended_at,
            is_pinned: details.is_pinned.unwrap_or_default(),
            deleted_at: None,
        }
    }

    /// Returns an error if the session was ended by a split, which ends it with this reason.
    pub(crate) fn check_split(&self, end_reason: &str) -> Result<()> {
        match self.ended_at.is_some() && self.end_reason.as_deref() == Some(end_reason) {
            false => Ok(()),
            true => Err(Error::InvalidValue {
                what: "session",
                given: self.id.to_string(),
                why: "it was split and continues in another session; it can be split again after \
                      it was reopened"
                    .to_owned(),
            }),
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
            tags: self.tags.clone(),
            is_pinned: self.is_pinned.then_some(true),
            ended_at: self.ended_at,
            created_at: Some(self.created_at),
            updated_at: Some(self.updated_at),
        }
    }
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
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
    /// Tags to add.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether it is pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_pinned: Option<bool>,
    /// When it was ended; if this is `None` and the reason is not, it is ended now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
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

    /// Checks that no text is empty or too long.
    ///
    /// # Errors
    /// [`Error::InvalidValue`].
    pub fn check(&self) -> Result<()> {
        for (what, text) in [
            ("session name", &self.name),
            ("owner", &self.owner),
            ("model", &self.model),
            ("source", &self.source),
            ("end reason", &self.end_reason),
        ] {
            text.as_ref().map_or(Ok(()), |text| check_name(what, text))?;
        }
        for tag in &self.tags {
            check_name("tag", tag)?;
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
            tags: self.tags.into_iter().filter(|tag| !info.tags.contains(tag)).collect(),
            is_pinned: None,
            ended_at: self.ended_at.filter(|_| info.ended_at.is_none()),
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
