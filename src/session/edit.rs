//! Edit: another message in the place of one.

use super::Session;
use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;
use crate::outcome::Appended;
use crate::view::{ExpectedHead, Parent};

impl Session {
    /// Appends a message as a sibling of another, with the same parent, and moves the head to it.
    ///
    /// The edited message and all below it keep their place; [`update`](Self::update) replaces a content in place. The
    /// sibling of a root is a root. The message needs an id of its own: a known id is a no-op that says so, as in
    /// [`append`](Self::append).
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name three colours"))?.id;
    /// chat.append(Message::assistant("red, green, blue"))?;
    ///
    /// chat.edit(&question, Message::user("Name four colours"))?;
    /// assert_eq!(chat.history()?.len(), 1); // not answered yet
    /// assert_eq!(chat.roots()?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `id` is not a message of this session; the id of a
    /// summary is not, because a summary is not written by anyone in the conversation. As [`append`](Self::append).
    pub fn edit(&self, id: &MessageId, message: Message) -> Result<Appended> {
        self.append_one(&Parent::SiblingOf(id.clone()), &ExpectedHead::Any, message)
    }
}
