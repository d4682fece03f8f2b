//! The newest messages within a budget.

use super::{Path, Session};
use crate::error::Result;
use crate::id::CompactionId;
use crate::message::{Message, stored_bytes};
use crate::outcome::Recent;
use crate::tree::Cut;
use crate::view::Budget;

/// How many messages are read at a time.
const BATCH: usize = 32;
/// How many are read at a time at most, when others delete messages meanwhile.
const MAX_BATCH: usize = 1 << 16;

impl Session {
    /// Returns the newest messages of the history that fit a budget.
    ///
    /// They never begin between a tool call and its result. The newest message is always
    /// returned, even over the budget; so is a summary directly before the returned messages. Only the
    /// returned messages are read; the others are counted, not read.
    ///
    /// ```
    /// use talktree::{Budget, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=100).map(|n| Message::user(format!("message {n}"))))?;
    ///
    /// let recent = chat.recent(Budget::messages(10))?;
    /// assert_eq!((recent.messages.len(), recent.left_out), (10, 90));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn recent(&self, budget: Budget) -> Result<Recent> {
        self.path().recent(budget)
    }

    fn cost(&self, message: &Message, budget: Budget) -> Result<u64> {
        match budget {
            Budget::Tokens(_) => Ok(self.compaction.counter().message(message)),
            Budget::Bytes(_) => stored_bytes(message),
            Budget::Messages(_) => Ok(1),
        }
    }
}

impl Path {
    /// Returns the newest messages of this path that fit a budget, as [`Session::recent`] does.
    ///
    /// ```
    /// use talktree::{Budget, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
    ///
    /// let recent = chat.at(&"6".into()).recent(Budget::messages(2))?;
    /// assert_eq!(recent.messages.iter().map(Message::text).collect::<String>(), "56");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if the leaf is not in this session; as
    /// every read.
    pub fn recent(&self, budget: Budget) -> Result<Recent> {
        let mut batch = BATCH;
        loop {
            let (recent, is_whole) = self.read_recent(budget, batch)?;
            if is_whole || batch >= MAX_BATCH {
                return Ok(recent);
            }
            // Others deleted messages between two batches. A larger batch leaves them less time.
            batch *= 4;
        }
    }

    /// Returns the newest messages, and whether the path was still whole when its end was reached.
    fn read_recent(&self, budget: Budget, batch: usize) -> Result<(Recent, bool)> {
        let (Budget::Tokens(max) | Budget::Bytes(max) | Budget::Messages(max)) = budget;
        // What fits into the first batch is of the same state as the total.
        let mut cursor = self.session.storage.newest(&self.view, batch)?;
        let total = cursor.total()?;
        let mut cut = Cut::new(max);
        let (mut seen, mut is_whole) = (0, true);
        'reading: loop {
            let messages = cursor.next(batch)?;
            if messages.is_empty() {
                is_whole = seen == total;
                break;
            }
            for message in messages {
                seen += 1;
                let cost = self.session.cost(&message, budget)?;
                let is_summary = CompactionId::from_message(&message.id).is_some();
                if !cut.offer(message, cost, is_summary) {
                    break 'reading;
                }
            }
        }
        let messages = cut.finish();
        let left_out = total.saturating_sub(messages.len() as u64);
        Ok((Recent { messages, left_out }, is_whole))
    }
}
