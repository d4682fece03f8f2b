//! The doorway to all sessions of a database.

use std::sync::Arc;

use super::super::connection::Database;
use super::super::row::session as row;
use super::super::session::SqliteSession;
use crate::catalog::{
    Binding, BindingFilter, OwnerInfo, ResumeRequest, Resumed, SessionChange, SessionCursor,
    SessionFilter, SessionPage,
};
use crate::erasure::{Erased, Erasure, ErasureExtent};
use crate::error::Result;
use crate::id::SessionId;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::report::Progress;
use crate::retention::RetentionAction;
use crate::search::{Found, SearchRequest, SessionsFound};
use crate::storage::catalog::{SessionCatalog, SessionStorage};
use crate::usage::{UsageFilter, UsageGroup, UsageRow};

/// All sessions of a database.
pub(crate) struct SqliteCatalog {
    database: Arc<Database>,
}

impl SqliteCatalog {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }
}

impl SessionCatalog for SqliteCatalog {
    fn session(&self, id: &SessionId) -> SessionStorage {
        let session = Arc::new(SqliteSession::new(Arc::clone(&self.database), id.clone()));
        let context = Some(session.context());
        SessionStorage { session, context }
    }

    fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        self.database.read(|conn| row::info(conn, id))
    }

    fn create(&self, id: &SessionId, details: &SessionDetails) -> Result<()> {
        self.database.create_session(id, details)
    }

    fn list(
        &self,
        filter: &SessionFilter,
        after: Option<SessionCursor>,
        limit: usize,
    ) -> Result<SessionPage> {
        self.database.list_sessions(filter, after, limit)
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<()> {
        self.database.change_session(id, change)
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        self.database.remove(id)
    }

    fn resume(&self, request: &ResumeRequest) -> Result<Resumed> {
        self.database.resume(request)
    }

    fn unbind(&self, key: &str) -> Result<Option<SessionId>> {
        self.database.unbind(key)
    }

    fn bindings(
        &self,
        filter: &BindingFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Binding>> {
        self.database.bindings(filter, before, limit)
    }

    fn discard(&self, sessions: &[SessionInfo], action: RetentionAction) -> Result<Vec<bool>> {
        self.database.discard(sessions, action)
    }

    fn bytes(&self, id: &SessionId) -> Result<u64> {
        self.database.bytes(id)
    }

    fn owners(&self, after: Option<&str>, limit: usize) -> Result<Vec<OwnerInfo>> {
        self.database.owners(after, limit)
    }

    fn usage(&self, filter: &UsageFilter, group: UsageGroup) -> Result<Vec<UsageRow>> {
        self.database.usage(filter, group)
    }

    fn erase(&self, erasure: &Erasure, progress: &mut dyn FnMut(Progress)) -> Result<Erased> {
        self.database.erase(erasure, progress)
    }

    fn erase_unchanged(
        &self,
        sessions: &[SessionInfo],
        options: &Erasure,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Erased> {
        self.database.erase_unchanged(sessions, options, progress)
    }

    fn erasure_extent(&self, erasure: &Erasure) -> Result<ErasureExtent> {
        self.database.erasure_extent(erasure)
    }

    fn search(&self, request: &SearchRequest) -> Result<Found> {
        self.database.search(request)
    }

    fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        self.database.search_sessions(request)
    }
}
