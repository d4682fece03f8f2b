//! One compaction of a session at a time.
//!
//! A session is known by its identity, not by its id: a compaction that never ends, of a session that was removed, must not
//! keep a new session of the same id from being compacted.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

type Sessions = Arc<Mutex<HashSet<String>>>;

/// The sessions of all stores that are being compacted in this process. A store that is opened twice has the same ones.
static OF_PROCESS: LazyLock<Sessions> = LazyLock::new(Sessions::default);

/// The sessions that are being compacted in this process, by their identity. Clones share them.
#[derive(Clone)]
pub(crate) struct InProgress(Sessions);

impl Default for InProgress {
    fn default() -> Self {
        Self(Arc::clone(&OF_PROCESS))
    }
}

/// One compaction of a session; dropping it lets another begin.
pub(super) struct Guard {
    in_progress: InProgress,
    session: String,
}

impl InProgress {
    /// Returns a set of its own, for a caller's storage, whose identities others may have, too.
    pub(crate) fn separate() -> Self {
        Self(Sessions::default())
    }

    /// Returns the key of a compaction that the program asked for, of the session with this identity. It does not wait for
    /// an automatic one, which may run on an executor and never end.
    pub(super) fn by_request(identity: &str) -> String {
        format!("{identity}, by request")
    }

    /// Returns whether one of this key runs.
    pub(super) fn holds(&self, session: &str) -> bool {
        self.sessions().contains(session)
    }

    /// Returns a guard, or `None` while another thread compacts the session; never waits.
    pub(super) fn enter(&self, session: String) -> Option<Guard> {
        let is_free = self.sessions().insert(session.clone());
        is_free.then(|| Guard { in_progress: self.clone(), session })
    }

    fn sessions(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.in_progress.sessions().remove(&self.session);
    }
}
