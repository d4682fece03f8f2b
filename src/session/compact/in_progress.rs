//! One compaction of a session at a time.
//!
//! A session is known by its identity, not by its id: a compaction that never ends, of a session that was removed, must not
//! keep a new session of the same id from being compacted.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The sessions of all stores that are being compacted in this process, by their identity. A store that is opened twice has the
/// same ones.
static SESSIONS: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// One compaction of a session; dropping it lets another begin.
pub(super) struct Guard(String);

/// Returns the key of a compaction that the program asked for, of the session with this identity. It does not wait for
/// an automatic one, which may run on an executor and never end.
pub(super) fn by_request(identity: &str) -> String {
    format!("{identity}, by request")
}

/// Returns whether one of this key runs.
pub(super) fn is_running(key: &str) -> bool {
    sessions().contains(key)
}

/// Returns a guard, or `None` while another thread compacts the session; never waits.
pub(super) fn enter(key: String) -> Option<Guard> {
    // The lock is released before: dropping a guard takes it.
    let is_free = sessions().insert(key.clone());
    is_free.then(|| Guard(key))
}

fn sessions() -> MutexGuard<'static, HashSet<String>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Guard {
    fn drop(&mut self) {
        sessions().remove(&self.0);
    }
}
