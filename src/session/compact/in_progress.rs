//! One compaction of a session by its summarizer at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::SessionId;

/// The sessions of a store that are being compacted in this process. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct InProgress(Arc<Mutex<HashSet<SessionId>>>);

/// One compaction of a session; dropping it lets another begin.
pub(super) struct Guard {
    in_progress: InProgress,
    session: SessionId,
}

impl InProgress {
    /// Returns a guard, or `None` while another thread compacts the session; never waits.
    pub(super) fn enter(&self, session: &SessionId) -> Option<Guard> {
        let is_free = self.sessions().insert(session.clone());
        is_free.then(|| Guard { in_progress: self.clone(), session: session.clone() })
    }

    fn sessions(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.in_progress.sessions().remove(&self.session);
    }
}
