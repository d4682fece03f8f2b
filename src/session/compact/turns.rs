//! Turns: one automatic compaction of a session at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::SessionId;

/// The sessions of a store that are being compacted in this process. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Turns(Arc<Mutex<HashSet<SessionId>>>);

/// A turn; it ends when it is dropped.
pub(super) struct Turn {
    turns: Turns,
    session: SessionId,
}

impl Turns {
    /// Returns the turn, if no other thread has it; nobody waits.
    pub(super) fn enter(&self, session: &SessionId) -> Option<Turn> {
        let is_free = self.sessions().insert(session.clone());
        is_free.then(|| Turn { turns: self.clone(), session: session.clone() })
    }

    fn sessions(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.sessions().remove(&self.session);
    }
}
