//! What a search finds.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Snippet;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Role;

/// How the query was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matched {
    /// All words stand in the message.
    All,
    /// All words together found too little: any of them stands in it.
    Relaxed,
}

/// One message found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// The session it was written in; of copies in forks, the one in scope.
    pub session: SessionId,
    /// The message.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// The stretch of its text around the match.
    pub snippet: Snippet,
    /// How well it fits; greater is better, comparable within one answer.
    pub score: f64,
    /// Whether all words stand in it.
    pub matched: Matched,
    /// Whether it lies on the path to its session's head.
    pub on_path: bool,
    /// The compaction it is folded under on that path.
    #[serde(rename = "under_compaction")]
    pub under: Option<CompactionId>,
    /// Every session that holds a copy of it.
    pub sessions: Vec<SessionId>,
}

/// The answer to a search for messages.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Found {
    /// The messages, best first.
    pub hits: Vec<Hit>,
    /// How the query was read.
    pub matched: Matched,
    /// What of the query could not be read as meant, for people.
    pub notices: Vec<String>,
}

impl IntoIterator for Found {
    type Item = Hit;
    type IntoIter = std::vec::IntoIter<Hit>;

    fn into_iter(self) -> Self::IntoIter {
        self.hits.into_iter()
    }
}

/// One conversation found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionHit {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: Option<String>,
    /// How well it fits; greater is better, comparable within one answer.
    pub score: f64,
    /// Its best messages, best first.
    pub hits: Vec<Hit>,
}

/// The answer to a search for whole conversations.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionsFound {
    /// The conversations, best first.
    pub sessions: Vec<SessionHit>,
    /// How the query was read.
    pub matched: Matched,
    /// What of the query could not be read as meant, for people.
    pub notices: Vec<String>,
}

impl IntoIterator for SessionsFound {
    type Item = SessionHit;
    type IntoIter = std::vec::IntoIter<SessionHit>;

    fn into_iter(self) -> Self::IntoIter {
        self.sessions.into_iter()
    }
}
