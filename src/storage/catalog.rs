//! The doorway to the catalog: all sessions of a storage, and the outside keys that point to them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::SessionProvider;
use super::context::ContextStore;
use crate::catalog::{
    Binding, BindingFilter, OwnerInfo, ResumeRequest, Resumed, SessionChange, SessionCursor,
    SessionFilter, SessionPage,
};
use crate::erasure::{Erased, Erasure, ErasureExtent};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::stored_bytes;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::report::Progress;
use crate::retention::RetentionAction;
use crate::search::{Found, SearchRequest, SessionsFound};
use crate::usage::{UsageFilter, UsageGroup, UsageRow};

/// How many sessions are read at a time to list their owners.
const OWNERS_PAGE: usize = 1_000;

/// The storage of one session.
#[derive(Clone)]
pub struct SessionStorage {
    /// Its conversation.
    pub session: Arc<dyn SessionProvider>,
    /// Its context; `None` if there is none: then blocks cannot be stored, and prompts cannot be frozen.
    pub context: Option<Arc<dyn ContextStore>>,
}

/// All sessions of a storage. A [`SessionManager`](crate::SessionManager) works over it.
///
/// Threads and processes share it and may call it at the same time. Each verb is atomic: all of it is done, or nothing.
/// An unknown session is [`Error::UnknownSession`]; a text that is empty or too long is
/// [`Error::InvalidValue`].
///
/// A session in the trash is left out of lists (unless they ask for it) and of searches, and no key leads to it. Its writes,
/// those of its context and its changes are [`Error::SessionInTrash`], until it is restored.
///
/// `talktree::testing::conformance_of_catalog` tests an implementation.
pub trait SessionCatalog: Send + Sync {
    /// Returns the storage of a session; its first write creates the session.
    fn session(&self, id: &SessionId) -> SessionStorage;

    /// Returns the details of a session, also of one in the trash.
    fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>>;

    /// Creates a session with these details.
    ///
    /// # Errors
    /// [`Error::SessionExists`] if the id is taken, also by a session in the trash.
    fn create(&self, id: &SessionId, details: &SessionDetails) -> Result<()>;

    /// Returns at most `limit` sessions that the filter shows, the one with the newest message first: the first ones, or
    /// those after a place. A session that never had a message counts from its creation.
    ///
    /// A filter with an empty text is [`Error::InvalidValue`]: see [`SessionFilter::check`].
    ///
    /// Over the pages of a list, a session to which nothing is appended meanwhile is shown exactly once; one that gets a
    /// message moves to the front and is not shown again.
    fn list(
        &self,
        filter: &SessionFilter,
        after: Option<SessionCursor>,
        limit: usize,
    ) -> Result<SessionPage>;

    /// Changes a session. A session has a hundred tags at most. Another owner removes its frozen prompt, in one step with the
    /// change; so it does in [`resume`](Self::resume) and in [`SessionProvider::set_details`].
    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<()>;

    /// Removes a session and all that belongs to it: messages, texts of its own, bindings. Texts of its owner stay. A long
    /// session may be in the trash until all of it is removed.
    fn remove(&self, id: &SessionId) -> Result<()>;

    /// Removes sessions, or puts them into the trash (also those that will be erased), unless they have changed since
    /// `sessions` was read; returns for each whether it was done. One that is not there any more has changed.
    ///
    /// The default reads each session and then writes, so a write between the two is missed. A storage that others write
    /// to at the same time does it in one transaction.
    fn discard(&self, sessions: &[SessionInfo], action: RetentionAction) -> Result<Vec<bool>> {
        let discard = |known: &SessionInfo| {
            if self.info(&known.id)?.as_ref() != Some(known) {
                return Ok(false);
            }
            match action {
                RetentionAction::Remove => self.remove(&known.id)?,
                _ => self.change(&known.id, &SessionChange::Delete)?,
            }
            Ok(true)
        };
        sessions.iter().map(discard).collect()
    }

    /// Returns the size of all messages of a session, in bytes of JSON as [`RowStat`](crate::RowStat) counts them; 0 if
    /// there is no such session.
    ///
    /// The default reads every message.
    fn bytes(&self, id: &SessionId) -> Result<u64> {
        let (session, mut bytes, mut parents) = (self.session(id).session, 0, vec![None]);
        while let Some(parent) = parents.pop() {
            for message in session.branches(parent.as_ref())? {
                bytes += stored_bytes(&message)?;
                parents.push(Some(message.id));
            }
        }
        Ok(bytes)
    }

    /// Returns at most `limit` owners of sessions that are not in the trash, by name: the first ones, or those after a
    /// name.
    ///
    /// The default reads the list of all sessions.
    fn owners(&self, after: Option<&str>, limit: usize) -> Result<Vec<OwnerInfo>> {
        let (mut owners, mut place) = (BTreeMap::<String, OwnerInfo>::new(), None);
        loop {
            let page = self.list(&SessionFilter::default(), place, OWNERS_PAGE)?;
            for info in page.sessions.into_iter().map(|listed| listed.info) {
                let Some(owner) = info.owner else { continue };
                if after.is_some_and(|after| *owner <= *after) {
                    continue;
                }
                let of_owner =
                    owners.entry(owner).or_insert_with_key(|owner| OwnerInfo::new(owner));
                of_owner.sessions += 1;
                of_owner.messages += info.messages;
                of_owner.last_message_at = of_owner.last_message_at.max(info.last_message_at);
            }
            place = page.after;
            if place.is_none() {
                return Ok(owners.into_values().take(limit).collect());
            }
        }
    }

    /// Returns the session that a key points to. If there is none, or if it must not be resumed, creates one, and binds
    /// the key to it. Callers that resume one key at once get the same session.
    ///
    /// A session must not be resumed if it is in the trash or ended, if it has another owner than the request, if the
    /// request says that it [is expired](ResumeRequest::is_expired), or if its history cannot be read. One without an owner
    /// gets that of the request.
    ///
    /// # Errors
    /// [`Error::SessionExists`] if a session has to be created and its id is taken.
    fn resume(&self, request: &ResumeRequest) -> Result<Resumed>;

    /// Ends the binding of a key; returns the session that it pointed to.
    fn unbind(&self, key: &str) -> Result<Option<SessionId>>;

    /// Returns at most `limit` bindings that the filter shows, the newest first: those with a number below `before`.
    fn bindings(
        &self,
        filter: &BindingFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Binding>>;

    /// Returns the usage that a filter names, added up by group: the newest day first, otherwise the largest sum.
    fn usage(&self, filter: &UsageFilter, group: UsageGroup) -> Result<Vec<UsageRow>> {
        let _ = (filter, group);
        Err(Error::Unsupported { what: "usage" })
    }

    /// Erases what is named: afterwards no byte of it is in the storage or in a later backup. Calls `progress` meanwhile.
    /// The same call after a failure finishes the erasure.
    ///
    /// # Errors
    /// [`Error::UnknownSession`] and [`Error::UnknownMessage`] if a session or message is unknown; nothing is erased then.
    fn erase(&self, erasure: &Erasure, progress: &mut dyn FnMut(Progress)) -> Result<Erased> {
        let _ = (erasure, progress);
        Err(Error::Unsupported { what: "erasure" })
    }

    /// Erases sessions, unless they have changed since `sessions` was read, and returns those that were erased. `options`
    /// names nothing. Calls `progress` meanwhile.
    ///
    /// By default all are put into the trash, and erased at once. If that is stopped, the same call finishes it; a storage that
    /// begins with a few at a time leaves the others as they were.
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    fn erase_unchanged(
        &self,
        sessions: &[SessionInfo],
        options: &Erasure,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Erased> {
        let done = self.discard(sessions, RetentionAction::Erase)?;
        let mut erasure = options.clone();
        for (info, _) in sessions.iter().zip(done).filter(|(_, is_done)| *is_done) {
            erasure = erasure.and(Erasure::session(&info.id));
        }
        if erasure.targets.is_empty() {
            return Ok(Erased::default());
        }
        self.erase(&erasure, progress)
    }

    /// Returns what an erasure would remove.
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    fn erasure_extent(&self, erasure: &Erasure) -> Result<ErasureExtent> {
        let _ = erasure;
        Err(Error::Unsupported { what: "erasure" })
    }

    /// Searches the messages of all sessions within the request's scope.
    fn search(&self, request: &SearchRequest) -> Result<Found>;

    /// Searches for whole sessions within the request's scope.
    fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound>;
}

impl fmt::Debug for SessionStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStorage").field("id", self.session.id()).finish_non_exhaustive()
    }
}
