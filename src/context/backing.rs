//! Backing: the store that keeps the texts of blocks, and the conversation they belong to.

use std::sync::Arc;

use crate::error::Result;
use crate::search::{Found, Scope, SearchRequest};
use crate::storage::context::BlockScope;
use crate::storage::sqlite::{SqliteContext, SqliteSession};

#[derive(Clone)]
pub(crate) struct Backing {
    pub(crate) store: SqliteContext,
    pub(crate) conversation: Arc<SqliteSession>,
}

impl Backing {
    pub(crate) fn of(conversation: Arc<SqliteSession>) -> Self {
        Self { store: conversation.context(), conversation }
    }

    /// Searches the messages of past sessions: of the session's owner, or of all. A session without an owner finds its own
    /// messages only.
    pub(crate) fn search_sessions(
        &self,
        scope: BlockScope,
        mut request: SearchRequest,
    ) -> Result<Found> {
        if scope == BlockScope::Shared {
            return self.store.search_sessions(&request);
        }
        request.owner = match scope {
            BlockScope::Owner => self.conversation.info()?.and_then(|info| info.owner),
            _ => None,
        };
        if request.owner.is_none() {
            request.scope = Scope::session(self.conversation.id().clone());
            return self.conversation.search(&request);
        }
        self.store.search_sessions(&request)
    }
}
