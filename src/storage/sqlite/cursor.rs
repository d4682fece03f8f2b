//! Streams over a path: the plan is fixed when one is opened, and each batch is a read of its own.

use std::sync::Arc;

use super::connection::Database;
use super::rows::PlanReader;
use super::{compaction, message};
use crate::error::Result;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::storage::Cursor;

/// An open stream.
pub(super) struct PlanCursor {
    pub(super) database: Arc<Database>,
    pub(super) session: Option<i64>,
    pub(super) reader: PlanReader,
    pub(super) total: u64,
}

impl Cursor for PlanCursor {
    fn next(&mut self, limit: usize) -> Result<Vec<Message>> {
        self.database.read(|conn| self.reader.next(conn, limit))
    }

    fn skip_past(&mut self, id: &MessageId) -> Result<bool> {
        let Some(session) = self.session else { return Ok(false) };
        self.database.read(|conn| match CompactionId::from_message(id) {
            None => Ok(message::find(conn, session, id)?
                .is_some_and(|address| self.reader.skip_past(address))),
            Some(id) => Ok(compaction::find(conn, session, &id)?
                .is_some_and(|overlay| self.reader.skip_past_summary(overlay.key))),
        })
    }

    fn total(&self) -> u64 {
        self.total
    }
}
