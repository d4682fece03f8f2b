//! Changes of a session that are no changes of its conversation.

use crate::error::Result;
use crate::id::check_name;
use crate::message::Json;

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
