//! Searching.

use super::connection::Database;
use crate::error::Result;
use crate::search::{Found, Matched, SearchRequest, SessionsFound};

impl Database {
    /// Returns the messages found, best first.
    pub(crate) fn search(&self, _request: &SearchRequest) -> Result<Found> {
        Ok(Found { hits: Vec::new(), matched: Matched::All, notices: Vec::new() })
    }

    /// Returns the conversations found, best first.
    pub(crate) fn search_sessions(&self, _request: &SearchRequest) -> Result<SessionsFound> {
        Ok(SessionsFound { sessions: Vec::new(), matched: Matched::All, notices: Vec::new() })
    }
}
