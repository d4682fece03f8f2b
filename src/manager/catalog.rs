//! What happens to whole sessions: names, tags, the end, the trash, forks.

use super::SessionManager;
use crate::catalog::SessionChange;
use crate::compaction::Summary;
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::event::Change;
use crate::id::{MessageId, SessionId};
use crate::message::Json;
use crate::outcome::SessionInfo;
use crate::session::Session;

impl SessionManager {
    /// Returns the details of a session, also of one in the trash; `None` if there is none.
    ///
    /// # Errors
    /// As every read.
    pub fn get(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        self.store().database().session_info(id)
    }

    /// Changes a session in a way that is no change of its conversation. The verbs below are short for this one.
    ///
    /// # Errors
    /// [`Error::UnknownSession`]; [`Error::InvalidValue`] if a text is empty or too long, or there are 100 tags already.
    pub fn change(&self, id: &SessionId, change: &SessionChange) -> Result<()> {
        self.store().change_session(id, change)
    }

    /// Sets the name of a session.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn rename(&self, id: &SessionId, name: impl Into<String>) -> Result<()> {
        self.change(id, &SessionChange::Name(Some(name.into())))
    }

    /// Adds a tag.
    ///
    /// ```
    /// use talktree::{SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let chat = bot.create("Deployment")?;
    /// bot.tag(chat.id(), "work")?;
    /// assert_eq!(bot.list().tag("work").run()?.sessions.len(), 1);
    /// bot.untag(chat.id(), "work")?;
    /// assert!(bot.get(chat.id())?.unwrap().tags.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn tag(&self, id: &SessionId, tag: impl Into<String>) -> Result<()> {
        self.change(id, &SessionChange::Tag(tag.into()))
    }

    /// Removes a tag.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn untag(&self, id: &SessionId, tag: impl Into<String>) -> Result<()> {
        self.change(id, &SessionChange::Untag(tag.into()))
    }

    /// Sets the metadata; `None` removes it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it is over the store's limit; as [`change`](Self::change).
    pub fn set_metadata(&self, id: &SessionId, metadata: Option<Json>) -> Result<()> {
        self.change(id, &SessionChange::Metadata(metadata))
    }

    /// Ends a session with a reason. It can still be read and written; [`resume`](Self::resume) does not lead to it any
    /// more.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn end(&self, id: &SessionId, reason: impl Into<String>) -> Result<()> {
        self.change(id, &SessionChange::End(reason.into()))
    }

    /// Pins a session, so that no retention rule removes it, or takes the pin away.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn pin(&self, id: &SessionId, is_pinned: bool) -> Result<()> {
        self.change(id, &SessionChange::Pin(is_pinned))
    }

    /// Puts a session into the trash: lists, searches and [`resume`](Self::resume) leave it out, and writes to it fail with
    /// [`Error::SessionInTrash`].
    ///
    /// ```
    /// use talktree::{Error, Message, SessionManager, SessionState, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let chat = bot.session("s")?;
    /// chat.append(Message::user("hello"))?;
    /// bot.delete(chat.id())?;
    /// assert!(bot.list().run()?.sessions.is_empty());
    /// assert!(matches!(chat.append(Message::user("hi")), Err(Error::SessionInTrash { .. })));
    /// assert_eq!(bot.list().state(SessionState::Trash).run()?.sessions.len(), 1);
    ///
    /// bot.restore(chat.id())?;
    /// chat.append(Message::user("hi"))?;
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn delete(&self, id: &SessionId) -> Result<()> {
        self.change(id, &SessionChange::Delete)
    }

    /// Takes a session out of the trash.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is being erased; as [`change`](Self::change).
    pub fn restore(&self, id: &SessionId) -> Result<()> {
        self.change(id, &SessionChange::Restore)
    }

    /// Removes a session for good, with its messages, compactions, labels and context. It need not be in the trash.
    ///
    /// # Errors
    /// [`Error::UnknownSession`]; as every write.
    pub fn remove(&self, id: &SessionId) -> Result<()> {
        self.store().database().remove(id)?;
        self.emit(id, || Change::Remove);
        Ok(())
    }

    /// Returns a new session that starts with a copy of the path to a message, as [`Session::fork`] does.
    ///
    /// # Errors
    /// As [`Session::fork`].
    pub fn fork(&self, id: &SessionId, at: &MessageId, name: &str) -> Result<Session> {
        let fork = self.session(id.clone())?.fork(at, name)?;
        self.session(fork.id().clone())
    }

    /// Ends a session and continues it in a new one, as [`Session::compact_and_split`] does. The keys of the session lead
    /// to the new one.
    ///
    /// ```
    /// use talktree::{Message, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let chat = bot.resume("telegram:4711").open()?;
    /// chat.append(Message::user("Until tomorrow!"))?;
    /// let next = bot.compact_and_split(chat.id(), "They said goodbye.")?;
    /// assert_eq!(bot.resume("telegram:4711").open()?.id(), next.id());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::compact_and_split`].
    pub fn compact_and_split(
        &self,
        id: &SessionId,
        summary: impl Into<Summary>,
    ) -> Result<Session> {
        let next = self.session(id.clone())?.compact_and_split(summary)?;
        self.session(next.id().clone())
    }
}
