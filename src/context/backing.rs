//! Backing: the store that keeps the texts of blocks, and the conversation they belong to.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::search::{Found, Scope, SearchRequest};
use crate::storage::context::BlockScope;
use crate::storage::sqlite::SqliteContext;
use crate::storage::{DEFAULT_BUSY_TIMEOUT, SessionProvider};

/// A session over a [`SessionProvider`] of the caller may have no store; a context without a session has no conversation.
#[derive(Clone, Default)]
pub(crate) struct Backing {
    pub(crate) store: Option<SqliteContext>,
    pub(crate) conversation: Option<Arc<dyn SessionProvider>>,
}

impl Backing {
    /// Returns the backing of another session of the same storage.
    pub(crate) fn of(&self, conversation: Arc<dyn SessionProvider>) -> Self {
        let store = self.store.as_ref().map(|store| store.of(conversation.id()));
        Self { store, conversation: Some(conversation) }
    }

    pub(crate) fn store(&self) -> Result<&SqliteContext> {
        self.store.as_ref().ok_or(Error::Unsupported { what: "context kept in the store" })
    }

    /// Returns how long a write to a block waits for other writes.
    pub(super) fn busy_timeout(&self) -> Duration {
        self.store.as_ref().map_or(DEFAULT_BUSY_TIMEOUT, SqliteContext::busy_timeout)
    }

    /// Searches the messages of past sessions: of the session's owner, or of all. A session without an owner finds its own
    /// messages only.
    pub(crate) fn search_sessions(
        &self,
        scope: BlockScope,
        mut request: SearchRequest,
    ) -> Result<Found> {
        if scope == BlockScope::Shared {
            return self.store()?.search_sessions(&request);
        }
        let conversation = self.conversation()?;
        request.owner = match scope {
            BlockScope::Owner => conversation.info()?.and_then(|info| info.owner),
            _ => None,
        };
        if request.owner.is_none() {
            request.scope = Scope::session(conversation.id().clone());
            return conversation.search(&request);
        }
        self.store()?.search_sessions(&request)
    }

    pub(crate) fn conversation(&self) -> Result<&dyn SessionProvider> {
        let what = "a conversation beside the context";
        self.conversation.as_deref().ok_or(Error::Unsupported { what })
    }
}
