//! Verbs on a session by its id, for callers that hold no handle.

use super::SessionManager;
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{Appended, Deleted, Upserted};

impl SessionManager {
    /// Appends a message at the head of a session, as [`Session::append`](crate::Session::append) does.
    ///
    /// ```
    /// use talktree::{Message, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let question = bot.append(&"s".into(), Message::user("Name three colours"))?.id;
    /// bot.append(&"s".into(), Message::assistant("red, green, blue"))?;
    /// assert_eq!((bot.history(&"s".into())?.len(), bot.count(&"s".into())?), (2, 2));
    /// assert_eq!(bot.branches(&"s".into(), &question)?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::append`](crate::Session::append).
    pub fn append(&self, id: &SessionId, message: Message) -> Result<Appended> {
        self.session(id.clone())?.append(message)
    }

    /// Appends messages, as [`Session::append_all`](crate::Session::append_all) does.
    ///
    /// # Errors
    /// As [`Session::append_all`](crate::Session::append_all).
    pub fn append_all(
        &self,
        id: &SessionId,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Appended>> {
        self.session(id.clone())?.append_all(messages)
    }

    /// Replaces the content of a message, or appends it if its id is unknown: under `parent`, or at the head.
    ///
    /// ```
    /// use talktree::{Message, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let question = bot.append(&"s".into(), Message::user("Name three colours"))?.id;
    /// bot.append(&"s".into(), Message::assistant("red, green, blue"))?;
    /// bot.upsert(&"s".into(), Some(&question), Message::assistant("cyan").with_id("m"))?;
    /// bot.upsert(&"s".into(), Some(&question), Message::assistant("cyan, magenta").with_id("m"))?;
    /// assert_eq!(bot.branches(&"s".into(), &question)?[1].text(), "cyan, magenta");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the parent is not in the session; as every write.
    pub fn upsert(
        &self,
        id: &SessionId,
        parent: Option<&MessageId>,
        message: Message,
    ) -> Result<Upserted> {
        let session = self.session(id.clone())?;
        let Some(parent) = parent else { return session.upsert(message) };
        // Two steps are enough: of two racing upserts the later append finds the id and updates.
        let appended = session.append_to(parent, message.clone())?;
        match appended.is_new {
            true => Ok(Upserted::Appended(appended)),
            false => session.update(message).map(Upserted::Updated),
        }
    }

    /// Returns the history of a session, as a model should see it.
    ///
    /// # Errors
    /// As [`Session::history`](crate::Session::history).
    pub fn history(&self, id: &SessionId) -> Result<Vec<Message>> {
        self.session(id.clone())?.history()
    }

    /// Returns how many messages a session has on all its branches, without reading them.
    ///
    /// # Errors
    /// As every read.
    pub fn count(&self, id: &SessionId) -> Result<u64> {
        Ok(self.get(id)?.map_or(0, |info| info.messages))
    }

    /// Deletes all messages of a session, as [`Session::clear`](crate::Session::clear) does.
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if there is none; as every write.
    pub fn clear(&self, id: &SessionId) -> Result<()> {
        if self.get(id)?.is_none() {
            return Err(Error::UnknownSession { id: id.clone() });
        }
        self.session(id.clone())?.clear()
    }

    /// Deletes messages of a session, as [`Session::delete`](crate::Session::delete) does.
    ///
    /// # Errors
    /// As [`Session::delete`](crate::Session::delete).
    pub fn delete_messages<'a>(
        &self,
        id: &SessionId,
        messages: impl IntoIterator<Item = &'a MessageId>,
    ) -> Result<Deleted> {
        self.session(id.clone())?.delete(messages)
    }

    /// Returns the children of a message of a session, as [`Session::branches`](crate::Session::branches) does.
    ///
    /// # Errors
    /// As [`Session::branches`](crate::Session::branches).
    pub fn branches(&self, id: &SessionId, message: &MessageId) -> Result<Vec<Message>> {
        self.session(id.clone())?.branches(message)
    }
}
