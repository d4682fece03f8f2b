//! The ids of sessions, messages and compactions.
//!
//! Each is a text with a type of its own, so that one cannot be passed for another. Any text of up to [`MAX_ID_BYTES`]
//! is allowed. A generated id is a UUIDv7, which sorts by time.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The maximum length of an id, name or label: 1 024 bytes, so that an index entry fits into a database page.
///
/// ```
/// use talktree::{MAX_ID_BYTES, MessageId};
///
/// assert!("m".repeat(MAX_ID_BYTES).parse::<MessageId>().is_ok());
/// assert!("m".repeat(MAX_ID_BYTES + 1).parse::<MessageId>().is_err());
/// ```
pub const MAX_ID_BYTES: usize = 1024;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns a new id: a UUIDv7, unique and increasing with time.
            #[must_use]
            pub fn new() -> Self {
                let mut text = uuid::Uuid::encode_buffer();
                Self(Arc::from(&*crate::clock::uuid().hyphenated().encode_lower(&mut text)))
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Checks that the id is not empty and within [`MAX_ID_BYTES`], for storages of your own.
            ///
            /// # Errors
            /// [`Error::InvalidValue`].
            pub fn check(&self) -> Result<()> {
                check_name($what, &self.0)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(shorten(&self.0).as_ref(), f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                let id = Self::from(text);
                id.check()?;
                Ok(id)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<&$name> for $name {
            fn from(id: &$name) -> Self {
                id.clone()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
    };
}

id! {
    /// The id of a message, unique in its session.
    ///
    /// ```
    /// use talktree::MessageId;
    ///
    /// let id: MessageId = "m1".into();
    /// assert_eq!(id, "m1");
    /// assert!(MessageId::new() < MessageId::new());
    /// ```
    MessageId, "message id"
}

id! {
    /// The id of a session, unique in its store.
    ///
    /// ```
    /// use talktree::SessionId;
    ///
    /// assert_eq!(SessionId::from("telegram:4711").to_string(), "telegram:4711");
    /// ```
    SessionId, "session id"
}

id! {
    /// The id of a compaction, unique in its session. Forks and exports keep it.
    ///
    /// ```
    /// use talktree::CompactionId;
    ///
    /// let id = CompactionId::from("c1");
    /// assert_eq!(id.as_message().as_str(), "compaction_c1");
    /// assert_eq!(CompactionId::from_message(&id.as_message()), Some(id));
    /// ```
    CompactionId, "compaction id"
}

impl CompactionId {
    /// The prefix of a summary's id in a history. No message id may start with it.
    ///
    /// Where an id names a place, the id of a summary means the last message of its range: for
    /// [`at`](crate::Session::at), [`append_to`](crate::Session::append_to), [`checkout`](crate::Session::checkout),
    /// [`fork`](crate::Session::fork), [`branches`](crate::Session::branches), labels, search scopes and exports. It keeps this
    /// place when that message is deleted. Only [`update`](crate::Session::update) and [`delete`](crate::Session::delete),
    /// which name content, do not know it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// assert!(chat.append(Message::user("hello").with_id("compaction_1")).is_err());
    ///
    /// let question = chat.append(Message::user("Shall we?"))?.id;
    /// chat.append(Message::assistant("No."))?;
    /// chat.add_compaction("They asked.", &question, &question)?;
    /// let summary = chat.history()?[0].id.clone();
    /// chat.append_to(&summary, Message::assistant("Yes!"))?;
    /// assert_eq!(chat.history()?.iter().map(Message::text).collect::<Vec<_>>(), ["They asked.", "Yes!"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub const PREFIX: &str = "compaction_";

    /// Returns the message id of the summary in a history.
    ///
    /// ```
    /// use talktree::CompactionId;
    ///
    /// assert_eq!(CompactionId::from("c1").as_message(), "compaction_c1");
    /// ```
    #[must_use]
    pub fn as_message(&self) -> MessageId {
        MessageId::from(format!("{}{self}", Self::PREFIX))
    }

    /// Returns the compaction of a summary's message id; `None` if the id is not one of a summary.
    ///
    /// ```
    /// use talktree::CompactionId;
    ///
    /// assert_eq!(CompactionId::from_message(&"compaction_c1".into()), Some("c1".into()));
    /// assert_eq!(CompactionId::from_message(&"m1".into()), None);
    /// ```
    #[must_use]
    pub fn from_message(id: &MessageId) -> Option<Self> {
        id.as_str().strip_prefix(Self::PREFIX).map(Self::from)
    }
}

impl MessageId {
    /// Checks that the id is allowed for a message.
    pub(crate) fn check_for_writing(&self) -> Result<()> {
        self.check()?;
        if self.0.starts_with(CompactionId::PREFIX) {
            return Err(Error::InvalidValue {
                what: "message id",
                given: shorten(&self.0).into_owned(),
                why: format!(
                    "ids that start with {:?} are kept for summaries",
                    CompactionId::PREFIX
                ),
            });
        }
        Ok(())
    }
}

/// What stands for the head in the command and in other tools.
const HEAD: &str = "head";

/// Checks what a label may be called, whatever its session holds.
pub(crate) fn check_label(name: &str) -> Result<()> {
    check_name("label", name)?;
    if name == HEAD {
        return Err(refused_label(name, "it always means the head"));
    }
    if name.starts_with(CompactionId::PREFIX) {
        return Err(refused_label(
            name,
            "names that start with \"compaction_\" are those of summaries",
        ));
    }
    Ok(())
}

/// Returns the error for a label that has the id of a message.
pub(crate) fn label_is_id(name: &str) -> Error {
    refused_label(name, "it is the id of a message of this session")
}

fn refused_label(name: &str, why: &str) -> Error {
    Error::InvalidValue { what: "label", given: shorten(name).into_owned(), why: why.to_owned() }
}

/// Checks that a name is not empty and has at most [`MAX_ID_BYTES`].
pub(crate) fn check_name(what: &'static str, text: &str) -> Result<()> {
    if text.is_empty() {
        let why = "it is empty".to_owned();
        return Err(Error::InvalidValue { what, given: String::new(), why });
    }
    check_name_length(what, text)
}

/// Checks the names that are given.
pub(crate) fn check_given<const N: usize>(
    names: [(&'static str, &Option<String>); N],
) -> Result<()> {
    let given = names.into_iter().filter_map(|(what, name)| Some((what, name.as_ref()?)));
    given.into_iter().try_for_each(|(what, name)| check_name(what, name))
}

/// Checks that a name has at most [`MAX_ID_BYTES`].
pub(crate) fn check_name_length(what: &'static str, text: &str) -> Result<()> {
    check_length(what, text, MAX_ID_BYTES)
}

/// Checks that a text is no longer than a limit in bytes.
pub(crate) fn check_length(what: &'static str, text: &str, max: usize) -> Result<()> {
    if text.len() <= max {
        return Ok(());
    }
    let why = format!("it has {} bytes, over the limit of {max}", text.len());
    Err(Error::InvalidValue { what, given: shorten(text).into_owned(), why })
}

/// Truncates a text to 80 characters, for an error.
pub(crate) fn shorten(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}
