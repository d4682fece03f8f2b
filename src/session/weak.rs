//! A handle that does not keep its session.

use std::sync::{Arc, Weak};

use super::Session;
use super::compact::WeakSettings;
use crate::context::WeakContext;
use crate::event::Events;
use crate::storage::sqlite::SqliteSession;

/// A handle of a session that ends when all others are dropped.
///
/// A manager keeps one for each open session, so that all handles of a session share its blocks.
#[derive(Clone)]
pub(crate) struct WeakSession {
    storage: Weak<SqliteSession>,
    events: Events,
    context: WeakContext,
    compaction: WeakSettings,
}

impl Session {
    pub(crate) fn downgrade(&self) -> WeakSession {
        WeakSession {
            storage: Arc::downgrade(&self.storage),
            events: self.events.clone(),
            context: self.context.downgrade(),
            compaction: self.compaction.downgrade(),
        }
    }
}

impl WeakSession {
    pub(crate) fn upgrade(&self) -> Option<Session> {
        Some(Session {
            storage: self.storage.upgrade()?,
            events: self.events.clone(),
            context: self.context.upgrade()?,
            compaction: self.compaction.upgrade()?,
        })
    }

    pub(crate) fn is_live(&self) -> bool {
        self.storage.strong_count() > 0
    }
}
