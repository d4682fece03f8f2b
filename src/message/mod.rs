//! Messages and their parts.
//!
//! A message has an id, a parent, a role, parts and metadata. Its parts have the shape of the Vercel
//! AI SDK's `UIMessage`, so that such a message can be stored unchanged. Parts and fields that
//! talktree does not know are kept, deep-equal.
//!
//! Invariant: reading a message and writing it again gives the same JSON value.

mod author;
mod json;
mod pairs;
mod part;
mod question;
mod wire;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::MessageId;

pub use author::{Author, AuthorLine};
pub use json::Json;
pub(crate) use json::replace_lone_surrogates;
pub(crate) use pairs::{NewestFirst, pairs_across};
pub use pairs::{Pairing, ToolPairs};
pub use part::{File, Part, Reasoning, Text, Tool};
pub(crate) use question::{Question, WayUp, asks};
pub(crate) use wire::{
    check_shape, extra_from_text, extra_to_text, parts_from_text, parts_to_text, single_text,
};

/// Fields that talktree does not know, by name.
///
/// A message is refused if one of them has the name of a field that the message or the part itself
/// has.
///
/// ```
/// use serde_json::json;
/// use talktree::Message;
///
/// let json = json!({"role": "user", "parts": [], "mood": "calm"});
/// let message: Message = serde_json::from_value(json)?;
/// assert_eq!(message.extra["mood"].value(), "calm");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type Extra = BTreeMap<String, Json>;

/// One message of a conversation.
///
/// ```
/// use talktree::{Message, Part};
///
/// let message = Message::user("Can we deploy on Friday?").with_id("m1");
/// assert_eq!(message.text(), "Can we deploy on Friday?");
///
/// let from_json: Message = serde_json::from_str(
///     r#"{"id": "m2", "role": "assistant", "parts": [{"type": "text", "text": "Yes."}]}"#,
/// )?;
/// assert!(matches!(&from_json.parts[0], Part::Text(text) if text.text == "Yes."));
///
/// let of_a_chat_api: Message = serde_json::from_str(r#"{"role": "assistant", "content": "Yes."}"#)?;
/// assert_eq!(of_a_chat_api.parts, from_json.parts);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The id of the message, unique in its session.
    pub id: MessageId,
    /// The message it follows; `None` for a root. Set when a message is read, ignored when it is
    /// written: each verb that writes names the parent itself.
    pub parent: Option<MessageId>,
    /// Who speaks.
    pub role: Role,
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// Any JSON that the caller wants to store with it.
    pub metadata: Option<Json>,
    /// When it was created, in UTC, to the microsecond.
    pub created_at: DateTime<Utc>,
    /// Kept in the tree, in raw history and in search, but not shown to a model.
    pub is_hidden: bool,
    /// Fields of the message that talktree does not know.
    pub extra: Extra,
}

impl Message {
    /// Returns a message of these parts, with a new id and the current time.
    ///
    /// ```
    /// use talktree::{Message, Part};
    ///
    /// let message = Message::new("critic", vec![Part::text("Too long.")]);
    /// assert_eq!(message.role.as_str(), "critic");
    /// assert_ne!(message.id, Message::user("Too long.").id);
    /// ```
    #[must_use]
    pub fn new(role: impl Into<Role>, parts: Vec<Part>) -> Self {
        Self {
            id: MessageId::new(),
            parent: None,
            role: role.into(),
            parts,
            metadata: None,
            created_at: now(),
            is_hidden: false,
            extra: Extra::new(),
        }
    }

    fn of_text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Part::text(text)])
    }

    /// Returns a user message of one text.
    ///
    /// ```
    /// use talktree::{Message, Role};
    ///
    /// let question = Message::user("2 + 2?");
    /// assert_eq!((question.role, question.parts.len()), (Role::User, 1));
    /// ```
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::of_text(Role::User, text)
    }

    /// Returns an assistant message of one text.
    ///
    /// ```
    /// use talktree::{Message, Role};
    ///
    /// assert_eq!(Message::assistant("4").role, Role::Assistant);
    /// ```
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::of_text(Role::Assistant, text)
    }

    /// Returns a system message of one text: an instruction to the model.
    ///
    /// ```
    /// use talktree::{Message, Role};
    ///
    /// assert_eq!(Message::system("Answer in one word.").role, Role::System);
    /// ```
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::of_text(Role::System, text)
    }

    /// Returns the message with this id.
    ///
    /// ```
    /// use talktree::Message;
    ///
    /// assert_eq!(Message::user("hello").with_id("telegram:42").id, "telegram:42");
    /// ```
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = id.into();
        self
    }

    /// Returns the message with this part added at the end.
    ///
    /// ```
    /// use talktree::{Message, Part};
    ///
    /// let message = Message::user("What is this?").with_part(Part::file("image/png", "cat.png"));
    /// assert_eq!(message.parts[1].kind(), "file");
    /// ```
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Returns the message with this metadata.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Message;
    ///
    /// let message = Message::assistant("4").with_metadata(json!({"model": "small"}));
    /// assert_eq!(message.metadata.unwrap().value()["model"], "small");
    /// ```
    #[must_use]
    pub fn with_metadata(mut self, metadata: impl Into<Json>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }

    /// Returns the message with this creation time, cut to the microsecond.
    ///
    /// ```
    /// use chrono::{DateTime, TimeDelta};
    /// use talktree::Message;
    ///
    /// let time = DateTime::UNIX_EPOCH + TimeDelta::nanoseconds(1_234_567);
    /// let message = Message::user("hello").at(time);
    /// assert_eq!(message.created_at.timestamp_subsec_nanos(), 1_234_000);
    /// ```
    #[must_use]
    pub fn at(mut self, time: DateTime<Utc>) -> Self {
        self.created_at = time.trunc_subsecs(6);
        self
    }

    /// Returns the message as a hidden one: kept and searchable, but not shown to a model.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("hello"))?;
    /// chat.append(Message::system("seen at noon").hidden())?;
    ///
    /// assert_eq!((chat.history()?.len(), chat.raw_history()?.len()), (1, 2));
    /// assert_eq!(chat.search("noon").run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// Returns the text parts, joined by line breaks. Text parts of a model side by side are one text: a provider cuts an answer
    /// where it cites.
    ///
    /// ```
    /// use talktree::{Message, Part};
    ///
    /// let message = Message::assistant("Four.")
    ///     .with_part(Part::reasoning("2 and 2"))
    ///     .with_part("Or 4.".into());
    /// assert_eq!(message.text(), "Four.\nOr 4.");
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let (mut texts, mut before) = (String::new(), None::<Cow<'_, Part>>);
        for part in &self.parts {
            let typed = part.typed();
            if let Part::Text(text) = typed.as_ref() {
                let is_continued = self.role == Role::Assistant
                    && matches!(before.as_deref(), Some(Part::Text(it)) if text.continues(&it.extra));
                if !texts.is_empty() && !is_continued {
                    texts.push('\n');
                }
                texts.push_str(&text.text);
            }
            before = Some(typed);
        }
        texts
    }

    /// Returns the estimated number of tokens the message takes in a model's window. It includes the line that names the
    /// [`Author`] of a user message, whether a request shows it or not.
    ///
    /// ```
    /// use talktree::Message;
    ///
    /// assert_eq!(Message::user("Hello world").tokens(), 4 + 3);
    /// ```
    #[must_use]
    pub fn tokens(&self) -> u64 {
        crate::tokens::of_message(self)
    }

    /// Returns whether both have the same content. Parent and time are ignored: a retry may give
    /// others.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.role == other.role
            && self.parts == other.parts
            && self.metadata == other.metadata
            && self.is_hidden == other.is_hidden
            && self.extra == other.extra
    }
}

/// Returns the current time to the microsecond, the precision of a row.
pub(crate) fn now() -> DateTime<Utc> {
    crate::clock::now().trunc_subsecs(6)
}

/// Returns how many bytes the parts, metadata and extra fields of the message take when stored.
pub(crate) fn stored_bytes(message: &Message) -> crate::error::Result<u64> {
    let parts = parts_to_text(&message.parts)?.len();
    let metadata = message.metadata.as_ref().map_or(0, |json| json.as_str().len());
    let extra = extra_to_text(&message.extra)?.map_or(0, |text| text.len());
    Ok((parts + metadata + extra) as u64)
}

/// Who speaks in a message: one of four usual roles, or any other text.
///
/// ```
/// use talktree::Role;
///
/// assert_eq!(Role::from("user"), Role::User);
/// assert_eq!(Role::from("critic").as_str(), "critic");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A person.
    User,
    /// The model.
    Assistant,
    /// Instructions to the model.
    System,
    /// Results of tools.
    Tool,
    /// Any other role.
    Other(Box<str>),
}

impl Role {
    /// Returns the role as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
            Self::Other(role) => role,
        }
    }
}

impl From<&str> for Role {
    fn from(role: &str) -> Self {
        match role {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "system" => Self::System,
            "tool" => Self::Tool,
            other => Self::Other(other.into()),
        }
    }
}

impl From<String> for Role {
    fn from(role: String) -> Self {
        Self::from(role.as_str())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Ok(Self::from(&*text))
    }
}
