//! Owners, as a list shows them.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// A person or tenant with sessions that are not in the trash, or with transcripts. Listed by
/// [`Store::owners`](crate::Store::owners), which has an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OwnerInfo {
    /// The name that its sessions have, such as `user:42`.
    pub owner: String,
    /// How many sessions.
    pub sessions: u64,
    /// How many messages they have.
    pub messages: u64,
    /// The time of the message that was appended last to any of them.
    pub last_message_at: Option<DateTime<Utc>>,
    /// How many transcripts of agents.
    pub transcripts: u64,
}

impl OwnerInfo {
    pub(crate) fn new(owner: String) -> Self {
        Self { owner, sessions: 0, messages: 0, last_message_at: None, transcripts: 0 }
    }
}
