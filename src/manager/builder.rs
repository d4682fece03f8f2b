//! The builder of a manager: that of a session, for all sessions.

use std::fmt;
use std::sync::Arc;

use super::open_sessions::OpenSessions;
use super::{SessionManager, Shared};
use crate::error::Result;
use crate::id::SessionId;
use crate::session::SessionBuilder;
use crate::storage::sqlite::SqliteSession;
use crate::store::Store;

/// The id of the session with which the settings are checked. Nothing is stored before something is written to it.
const TEMPLATE: &str = "template of the manager";

/// A builder of a [`SessionManager`]: the settings of a [`SessionBuilder`], for all its sessions.
pub type SessionManagerBuilder = SessionBuilder<ManySessions>;

/// What a [`SessionManagerBuilder`] builds: a manager.
#[derive(Clone)]
pub struct ManySessions {
    pub(super) store: Store,
}

impl SessionManager {
    /// Returns a builder of a manager of the sessions of a store.
    ///
    /// ```
    /// use talktree::{Block, SessionManager, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let bot = SessionManager::builder(&store).block("soul", Block::text("Be brief.")).build()?;
    /// assert!(bot.session("s")?.prompt()?.ends_with("Be brief."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn builder(store: &Store) -> SessionManagerBuilder {
        let of = ManySessions { store: store.clone() };
        SessionBuilder::of(of, store.events().clone())
    }
}

impl SessionManagerBuilder {
    /// Returns a builder of one of the sessions.
    pub(super) fn session(&self, id: SessionId) -> SessionBuilder {
        self.for_session(stored(&self.target().store, id))
    }

    /// Returns the manager.
    ///
    /// # Errors
    /// As [`SessionBuilder::open`] for any of its sessions.
    pub fn build(self) -> Result<SessionManager> {
        // What is wrong with the settings is known now, not when a message comes in.
        self.session(TEMPLATE.into()).open()?;
        let shared = Shared { template: self, open: OpenSessions::default() };
        Ok(SessionManager { shared: Arc::new(shared) })
    }
}

fn stored(store: &Store, id: SessionId) -> SqliteSession {
    SqliteSession::new(Arc::clone(store.database()), id)
}

impl fmt::Debug for ManySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ManySessions")
    }
}
