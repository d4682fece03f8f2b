//! Whole sessions: names, tags, the end, the trash, forks, erasing; and the keys that lead to them.

use std::time::Duration;

use super::SessionManager;
use crate::catalog::{Binding, BindingEnd, BindingFilter, ResumeRequest, SessionChange};
use crate::compaction::Summary;
use crate::erasure::{Erased, Erasure};
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::message::Json;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::session::Session;

impl SessionManager {
    /// Returns the details of a session, also of one in the trash; `None` if there is none.
    ///
    /// # Errors
    /// As every read.
    pub fn get(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        self.store().database().session_info(id)
    }

    /// Sets the name of a session.
    ///
    /// # Errors
    /// As [`Store::change_session`](crate::Store::change_session).
    pub fn rename(&self, id: &SessionId, name: impl Into<String>) -> Result<()> {
        self.store().change_session(id, &SessionChange::Name(Some(name.into())))
    }

    /// Adds a tag.
    ///
    /// ```
    /// use talktree::{SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let chat = bot.create("Deployment")?;
    /// bot.tag(chat.id(), "work")?;
    /// assert_eq!(bot.get(chat.id())?.unwrap().tags, ["work"]);
    /// bot.untag(chat.id(), "work")?;
    /// assert!(bot.get(chat.id())?.unwrap().tags.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::change_session`](crate::Store::change_session).
    pub fn tag(&self, id: &SessionId, tag: impl Into<String>) -> Result<()> {
        self.store().change_session(id, &SessionChange::Tag(tag.into()))
    }

    /// Removes a tag.
    ///
    /// # Errors
    /// As [`Store::change_session`](crate::Store::change_session).
    pub fn untag(&self, id: &SessionId, tag: impl Into<String>) -> Result<()> {
        self.store().change_session(id, &SessionChange::Untag(tag.into()))
    }

    /// Sets the metadata; `None` removes it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it is over the store's limit; as [`Store::change_session`](crate::Store::change_session).
    pub fn set_metadata(&self, id: &SessionId, metadata: Option<Json>) -> Result<()> {
        self.store().change_session(id, &SessionChange::Metadata(metadata))
    }

    /// Ends a session with a reason. It can still be read and written; [`resume`](Self::resume) does not lead to it any
    /// more.
    ///
    /// # Errors
    /// As [`Store::change_session`](crate::Store::change_session).
    pub fn end(&self, id: &SessionId, reason: impl Into<String>) -> Result<()> {
        self.store().change_session(id, &SessionChange::End(reason.into()))
    }

    /// Pins a session, so that no retention rule removes it, or takes the pin away.
    ///
    /// # Errors
    /// As [`Store::change_session`](crate::Store::change_session).
    pub fn pin(&self, id: &SessionId, is_pinned: bool) -> Result<()> {
        self.store().change_session(id, &SessionChange::Pin(is_pinned))
    }

    /// Puts a session into the trash: lists, searches and [`resume`](Self::resume) leave it out, and writes to it fail with
    /// [`Error::SessionInTrash`].
    ///
    /// ```
    /// use talktree::{Error, Message, SessionFilter, SessionManager, SessionState, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let chat = bot.session("s")?;
    /// chat.append(Message::user("hello"))?;
    /// bot.delete(chat.id())?;
    /// assert!(bot.store().sessions()?.is_empty());
    /// assert!(matches!(chat.append(Message::user("hi")), Err(Error::SessionInTrash { .. })));
    /// let trash = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
    /// assert_eq!(bot.list().filter(trash).run()?.sessions.len(), 1);
    ///
    /// bot.restore(chat.id())?;
    /// chat.append(Message::user("hi"))?;
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::change_session`](crate::Store::change_session).
    pub fn delete(&self, id: &SessionId) -> Result<()> {
        self.store().change_session(id, &SessionChange::Delete)
    }

    /// Takes a session out of the trash.
    ///
    /// # Errors
    /// As [`Store::change_session`](crate::Store::change_session).
    pub fn restore(&self, id: &SessionId) -> Result<()> {
        self.store().change_session(id, &SessionChange::Restore)
    }

    /// Removes a session for good, with its messages, compactions, labels and context. It need not be in the trash.
    ///
    /// # Errors
    /// [`Error::UnknownSession`]; as every write.
    pub fn remove(&self, id: &SessionId) -> Result<()> {
        self.store().remove(id)
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

    /// Erases all sessions of an owner, the owner's texts, usage and pending items in inboxes. An owner of nothing is no error.
    ///
    /// ```
    /// use talktree::{Message, SessionManager, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let bot = SessionManager::builder(&Store::open(&path)?).build()?;
    /// let chat = bot.resume("telegram:4711").owner("user:42").open()?;
    /// chat.append(Message::user("My address is 4 Privet Drive."))?;
    ///
    /// bot.erase_owner("user:42")?.prove()?; // no byte left
    /// assert!(bot.store().sessions()?.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::erase`](crate::Store::erase).
    pub fn erase_owner(&self, owner: impl Into<String>) -> Result<Erased> {
        self.store().erase(&Erasure::owner(owner))
    }
}

/// How often a key is resumed again because its session was removed before it was returned.
const MAX_TRIES: u32 = 16;

/// A resume of the session that an outside key points to. Made by [`SessionManager::resume`].
#[derive(Debug, Clone)]
#[must_use = "a resume does nothing until `open`"]
pub struct Resume<'m> {
    manager: &'m SessionManager,
    request: ResumeRequest,
}

/// The session that a key points to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResumedSession {
    /// The session.
    pub session: Session,
    /// Whether it was created now.
    pub is_new: bool,
    /// The session that the key pointed to until now, and why it does not any more; `None` also if it was removed.
    pub former: Option<(SessionId, BindingEnd)>,
}

impl SessionManager {
    /// Returns a resume of the session that an outside key points to, such as `telegram:12345` or `slack:C1/thread`.
    ///
    /// If there is none, or if it was ended, deleted, expired, is of another owner or cannot be read, a new session is
    /// created and the key points to it; the former one stays. Threads and processes that resume one key at once get one
    /// session.
    ///
    /// ```
    /// use talktree::{BindingEnd, SessionManager, Store};
    ///
    /// let bot = SessionManager::builder(&Store::open_in_memory()?).build()?;
    /// let first = bot.resume("telegram:4711").open()?;
    /// bot.end(first.id(), "the user said goodbye")?;
    ///
    /// let resumed = bot.resume("telegram:4711").run()?;
    /// assert!(resumed.is_new);
    /// assert_eq!(resumed.former, Some((first.id().clone(), BindingEnd::Ended)));
    /// assert_eq!(bot.bindings("telegram:4711")?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn resume(&self, key: impl Into<String>) -> Resume<'_> {
        Resume { manager: self, request: ResumeRequest::new(key) }
    }

    /// Ends the binding of a key, so that the next resume creates a session; returns the session that it pointed to.
    ///
    /// # Errors
    /// As every write.
    pub fn unbind(&self, key: &str) -> Result<Option<SessionId>> {
        self.store().database().unbind(key)
    }

    /// Returns the sessions that a key points to and pointed to before, the newest 1 000, newest first.
    ///
    /// # Errors
    /// As every read.
    pub fn bindings(&self, key: impl Into<String>) -> Result<Vec<Binding>> {
        let filter = BindingFilter { key: Some(key.into()), ..BindingFilter::default() };
        self.store().bindings(&filter, None, usize::MAX)
    }
}

impl Resume<'_> {
    /// Sets the owner that the session must have. A session without an owner gets this one.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.request.owner = Some(owner.into());
        self
    }

    /// Sets how long after its last message a session is resumed; zero, the default: always.
    ///
    /// A session without messages counts from when the key was bound. If the clock was set back, it is not expired.
    pub fn expire_after(mut self, idle: Duration) -> Self {
        self.request.expire_after = idle;
        self
    }

    /// Sets the details of a session that has to be created.
    pub fn details(mut self, details: impl Into<SessionDetails>) -> Self {
        self.request.details = details.into();
        self
    }

    /// Sets the id of a session that has to be created; a random one unless set.
    pub fn new_id(mut self, id: impl Into<SessionId>) -> Self {
        self.request.new_id = id.into();
        self
    }

    /// Returns the session.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if a text is empty or too long;
    /// [`Error::SessionExists`] if the new id is taken; [`Error::SessionRemoved`] if others remove each session before it can be
    /// returned; as every write.
    pub fn open(self) -> Result<Session> {
        Ok(self.run()?.session)
    }

    /// Returns the session, and whether it is new.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn run(self) -> Result<ResumedSession> {
        let mut tries = 1;
        loop {
            let resumed = self.manager.store().database().resume(&self.request)?;
            let session = self.manager.session(resumed.session)?;
            // From here on the handle knows the session. Otherwise, if it is removed or erased, the first write would create
            // it again, without an owner and without the key.
            if session.info()?.is_some() {
                let (is_new, former) = (resumed.is_new, resumed.former);
                return Ok(ResumedSession { session, is_new, former });
            }
            // It was removed in between.
            if tries == MAX_TRIES {
                return Err(Error::SessionRemoved { id: session.id().clone() });
            }
            tries += 1;
        }
    }
}
