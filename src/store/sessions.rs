//! The sessions of a store: opening, creating, listing, renaming and removing them.

use std::sync::Arc;

use super::Store;
use crate::catalog::{
    Binding, BindingFilter, MessageFilter, MessagePage, OwnerInfo, SessionChange,
};
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::event::Change;
use crate::id::SessionId;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::session::{Session, SessionBuilder};

impl Store {
    /// Returns the session with this id; its first write creates it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("telegram:4711")?;
    /// assert!(store.sessions()?.is_empty());
    ///
    /// chat.append(Message::user("hello"))?;
    /// assert_eq!(store.sessions()?[0].id, "telegram:4711");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the id is empty or longer than
    /// [`MAX_ID_BYTES`](crate::MAX_ID_BYTES).
    pub fn session(&self, id: impl Into<SessionId>) -> Result<Session> {
        self.session_builder(id).open()
    }

    /// Returns a builder of a session with context blocks, a frozen prompt, tools and compaction.
    ///
    /// [`SessionBuilder`] has an example.
    pub fn session_builder(&self, id: impl Into<SessionId>) -> SessionBuilder {
        SessionBuilder::of(id.into(), Arc::clone(&self.database), self.events.clone())
    }

    /// Creates a session with a new id and these details, in one transaction, and returns it.
    ///
    /// A text is the name.
    ///
    /// ```
    /// use talktree::{SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.create_session("Deployment")?;
    /// assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("Deployment"));
    ///
    /// let model = Some("large".to_owned());
    /// let chat = store.create_session(SessionDetails { model, ..SessionDetails::named("Door") })?;
    /// assert_eq!(chat.info()?.unwrap().model.as_deref(), Some("large"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if a name is empty or too long; as every write.
    pub fn create_session(&self, details: impl Into<SessionDetails>) -> Result<Session> {
        self.create_session_as(SessionId::new(), details)
    }

    /// Creates a session, as [`create_session`](Self::create_session) does, under the given id.
    ///
    /// An importer keeps the times of its source this way.
    ///
    /// ```
    /// use talktree::{Error, Message, SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let (first, last) = ("2024-02-03T10:00:00Z".parse().unwrap(), "2024-02-03T11:30:00Z".parse().unwrap());
    /// let details = SessionDetails { created_at: Some(first), ..SessionDetails::named("Old talk") };
    /// let chat = store.create_session_as("old", details)?;
    /// chat.append_all([Message::user("hello").at(first), Message::assistant("hi").at(last)])?;
    /// chat.set_details(&SessionDetails { updated_at: Some(last), ..SessionDetails::default() })?;
    ///
    /// let info = chat.info()?.unwrap();
    /// assert_eq!((info.created_at, info.updated_at), (first, last));
    /// let again = store.create_session_as("old", "Another");
    /// assert!(matches!(again, Err(Error::SessionExists { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SessionExists`] if the id is taken; as [`create_session`](Self::create_session).
    pub fn create_session_as(
        &self,
        id: impl Into<SessionId>,
        details: impl Into<SessionDetails>,
    ) -> Result<Session> {
        let session = self.session(id)?;
        self.database.create_session(session.id(), &details.into())?;
        session.info()?; // from here on the handle knows the session
        Ok(session)
    }

    /// Returns the details of every session that is not in the trash; the most recently written comes first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for id in ["monday", "tuesday", "monday"] {
    ///     store.session(id)?.append(Message::user("hello"))?;
    /// }
    /// let ids: Vec<_> = store.sessions()?.into_iter().map(|session| session.id).collect();
    /// assert_eq!(ids, ["monday", "tuesday"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.database.sessions()
    }

    /// Renames a session.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("telegram:4711")?.append(Message::user("hello"))?;
    /// store.rename(&"telegram:4711".into(), "Deployment")?;
    /// assert_eq!(store.sessions()?[0].name.as_deref(), Some("Deployment"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if it is not in the store; [`Error::SessionInTrash`]; [`Error::InvalidValue`].
    pub fn rename(&self, id: &SessionId, name: &str) -> Result<()> {
        self.change_session(id, &SessionChange::Name(Some(name.to_owned())))
    }

    /// Removes a session with its messages, compactions, labels and context.
    ///
    /// It vanishes in one transaction. If it has more than 256 messages, they are deleted in several others, so that others can write
    /// meanwhile; after a crash the next removal or erasure of any session finishes that.
    ///
    /// Forks of it keep their copies. A handle that read or wrote the session reads as empty from then on, and its writes
    /// fail with [`Error::SessionRemoved`]; a new handle of the same id begins a new session.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let copy = chat.fork(&hello, "Copy")?;
    ///
    /// store.remove(chat.id())?;
    /// assert_eq!(store.sessions()?.len(), 1);
    /// assert_eq!(copy.history()?.len(), 1);
    ///
    /// assert!(chat.append(Message::user("still there?")).is_err());
    /// store.session("s")?.append(Message::user("hello again"))?;
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if it is not in the store.
    pub fn remove(&self, id: &SessionId) -> Result<()> {
        self.database.remove(id)?;
        self.tell_removed(id);
        Ok(())
    }

    /// Calls the listeners after the removal of a session. A store has no handler of their errors.
    pub(super) fn tell_removed(&self, id: &SessionId) {
        self.events.emit(id, || Change::Remove, |_| {});
    }
}

/// The catalog.
impl Store {
    /// Returns at most `limit` messages (1 000 at most) that a filter shows, session by session in the order in which they
    /// were appended: the first ones, or those after a place that an earlier page returned.
    ///
    /// A page of the messages of an author or with a tag costs what it shows. Copies in forks are messages of their own.
    ///
    /// [`MessageFilter`] has an example.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the author or the tag is empty; as every read.
    pub fn list_messages(
        &self,
        filter: &MessageFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<MessagePage> {
        self.database.list_messages(filter, after, limit)
    }

    /// Changes a session in a way that is no change of its conversation.
    ///
    /// [`SessionChange`] has an example.
    ///
    /// # Errors
    /// [`Error::UnknownSession`]; [`Error::InvalidValue`] if a text is empty or too long, or there are 100 tags already;
    /// [`Error::SessionInTrash`] if it is in the trash, and not taken out of it.
    pub fn change_session(&self, id: &SessionId, change: &SessionChange) -> Result<()> {
        self.database.change_session(id, change)
    }

    /// Returns at most `limit` owners (1 000 at most) of sessions that are not in the trash, and of transcripts, by name: the
    /// first ones, or those after a name.
    ///
    /// The cost grows with the number of sessions and transcripts that these owners have.
    ///
    /// ```
    /// use talktree::{Message, SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for owner in ["ann", "bob", "ann"] {
    ///     let owner = Some(owner.to_owned());
    ///     let chat = store.create_session(SessionDetails { owner, ..SessionDetails::default() })?;
    ///     chat.append(Message::user("hello"))?;
    /// }
    /// let first = store.owners(None, 1)?;
    /// assert_eq!((first[0].owner.as_str(), first[0].sessions, first[0].messages), ("ann", 2, 2));
    /// assert_eq!(store.owners(Some("ann"), 10)?[0].owner, "bob");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn owners(&self, after: Option<&str>, limit: usize) -> Result<Vec<OwnerInfo>> {
        self.database.owners(after, limit)
    }

    /// Returns at most `limit` bindings (1 000 at most) of outside keys that a filter shows, the newest first: those with
    /// a number below `before`.
    ///
    /// ```
    /// use talktree::{BindingFilter, SessionManager, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = SessionManager::builder(&store).build()?.resume("telegram:4711").open()?;
    /// let bindings = store.bindings(&BindingFilter::default(), None, 10)?;
    /// assert_eq!((bindings[0].key.as_str(), &bindings[0].session), ("telegram:4711", chat.id()));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn bindings(
        &self,
        filter: &BindingFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Binding>> {
        self.database.bindings(filter, before, limit)
    }
}
