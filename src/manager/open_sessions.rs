//! The sessions that have handles.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::session::{Session, WeakSession};

/// How many entries there are before ended ones are removed for the first time.
const FIRST_SWEEP: usize = 64;

/// The sessions that have handles, so that another handle shares their blocks. It keeps none of them.
#[derive(Default)]
pub(super) struct OpenSessions(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    sessions: HashMap<SessionId, WeakSession>,
    /// The number of entries at which ended ones are removed.
    next_sweep: usize,
}

impl OpenSessions {
    /// Returns a handle of the session; the first one is opened.
    pub(super) fn get(
        &self,
        id: &SessionId,
        open: impl FnOnce() -> Result<Session>,
    ) -> Result<Session> {
        let found = self.find(id);
        // A handle of a removed session never writes again; a new one begins the session afresh.
        if let Some(session) = found.as_ref()
            && !matches!(session.storage().identity(), Err(Error::SessionRemoved { .. }))
        {
            return Ok(session.clone());
        }
        let opened = open()?;
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have opened it meanwhile.
        let other = entries.sessions.get(id).and_then(WeakSession::upgrade);
        let is_former =
            |other: &Session| found.as_ref().is_some_and(|found| found.is_same_handle(other));
        if let Some(other) = other.filter(|other| !is_former(other)) {
            return Ok(other);
        }
        if entries.sessions.len() >= entries.next_sweep.max(FIRST_SWEEP) {
            entries.sessions.retain(|_, session| session.is_live());
            entries.next_sweep = entries.sessions.len() * 2;
        }
        entries.sessions.insert(id.clone(), opened.downgrade());
        Ok(opened)
    }

    fn find(&self, id: &SessionId) -> Option<Session> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.sessions.get(id).and_then(WeakSession::upgrade)
    }
}
