//! What an export and its import share: the version of the format, its checksum and its counts.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::SessionId;

/// The version of the format.
pub const VERSION: u32 = 2;

/// Returns the checksum with one more line.
pub fn chain(checksum: Uuid, line: &str) -> Uuid {
    Uuid::new_v5(&checksum, line.as_bytes())
}

/// Returns the number that each record of a session has. It is made from the id of the session: a counter would begin again
/// in each export, and a file may hold several exports.
pub fn number_of(session: &SessionId) -> u64 {
    chain(Uuid::nil(), session.as_str()).as_fields().0.into()
}

/// The number of records of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    pub sessions: u64,
    pub messages: u64,
    pub compactions: u64,
    pub labels: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, messages, compactions, labels } = self;
        write!(
            f,
            "{sessions} sessions, {messages} messages, {compactions} compactions and {labels} labels"
        )
    }
}
