//! Pointers to messages: labels and the places of the head.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::id::{MessageId, check_label};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Label {
    /// The name, unique in its session.
    pub name: String,
    /// The message.
    pub id: MessageId,
}

impl Label {
    /// Returns a label.
    #[must_use]
    pub fn new(name: impl Into<String>, id: MessageId) -> Self {
        Self { name: name.into(), id }
    }

    /// Checks that the name can be one of a label in any session; its session may have a message of this id.
    ///
    /// ```
    /// use talktree::Label;
    ///
    /// assert!(Label::new("best", "m1".into()).check().is_ok());
    /// assert!(Label::new("head", "m1".into()).check().is_err());
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if it is empty or too long, `head`, or the name of a summary.
    pub fn check(&self) -> Result<()> {
        check_label(&self.name)
    }
}

/// A tag of a message.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let draft = chat.append(Message::assistant("Draft 1"))?.id;
/// chat.tag(&draft, "reviewed")?;
///
/// let tag = &chat.all_tags()?[0];
/// assert_eq!((&tag.message, &*tag.tag), (&draft, "reviewed"));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageTag {
    /// The message.
    pub message: MessageId,
    /// The tag.
    pub tag: String,
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
