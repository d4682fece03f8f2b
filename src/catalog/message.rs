//! Lists of messages: those of an author, and those with a tag.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::id::{SessionId, check_given, shorten};
use crate::message::Message;

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
    pub after: Option<MessageCursor>,
}

/// A place in a list of messages. As text it can be given to another program.
///
/// ```
/// use talktree::MessageCursor;
///
/// let cursor: MessageCursor = "4294967297".parse()?;
/// assert_eq!(cursor.to_string(), "4294967297");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageCursor(i64);

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

impl MessageCursor {
    pub(crate) fn new(place: i64) -> Self {
        Self(place)
    }

    pub(crate) fn place(self) -> i64 {
        self.0
    }
}

impl fmt::Display for MessageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MessageCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.parse().map(Self).map_err(|_| Error::InvalidValue {
            what: "place in a list of messages",
            given: shorten(text).into_owned(),
            why: "it is not one that a list returned".to_owned(),
        })
    }
}

impl Serialize for MessageCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
