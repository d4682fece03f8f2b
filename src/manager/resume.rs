//! Resuming: from an outside key to its present session.

use std::time::Duration;

use super::SessionManager;
use crate::catalog::{Binding, BindingEnd, BindingFilter, ResumeRequest};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::SessionDetails;
use crate::session::Session;

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
