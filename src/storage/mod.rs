//! What keeps sessions: SQLite, or for one session a storage of the program's own, by [`SessionProvider`].

pub(crate) mod context;
mod cursor;
mod provider;
pub(crate) mod sqlite;

use std::time::Duration;

pub(crate) use cursor::Cursor;
pub use provider::SessionProvider;

/// How long a write waits for other writers, unless a store says otherwise.
pub(crate) const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(30);
