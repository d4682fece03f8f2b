//! The end of a conversation within a budget.

use super::Session;
use crate::error::Result;
use crate::id::CompactionId;
use crate::message::{Message, stored_bytes};
use crate::outcome::Recent;
use crate::tree::Cut;
use crate::view::{Budget, Order, View};

/// How many messages are read at a time.
const BATCH: usize = 32;

impl Session {
    /// Returns the newest stretch of the history that fits a budget.
    ///
    /// It never begins between the call of a tool and its result, holds the newest message
    /// whatever that costs, and takes a summary that comes right before it. Costs what is
    /// returned, and a look at the shape of the path to say how much was left out.
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
        self.recent_of(&View::head(), budget)
    }

    /// Returns the newest stretch of a view that fits a budget.
    ///
    /// ```
    /// use talktree::{Budget, Message, Store, View};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
    ///
    /// let recent = chat.recent_of(&View::at(&"6".into()), Budget::messages(2))?;
    /// assert_eq!(recent.messages.iter().map(Message::text).collect::<String>(), "56");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if the view's leaf is not in this
    /// session.
    pub fn recent_of(&self, view: &View, budget: Budget) -> Result<Recent> {
        let (Budget::Tokens(max) | Budget::Bytes(max) | Budget::Messages(max)) = budget;
        let mut cursor = self.provider.cursor(view, Order::NewestFirst)?;
        let mut cut = Cut::new(max);
        'reading: loop {
            let batch = cursor.next(BATCH)?;
            if batch.is_empty() {
                break;
            }
            for message in batch {
                let cost = self.cost(&message, budget)?;
                let is_summary = CompactionId::from_message(&message.id).is_some();
                if !cut.offer(message, cost, is_summary) {
                    break 'reading;
                }
            }
        }
        let messages = cut.finish();
        let left_out = cursor.total()?.saturating_sub(messages.len() as u64);
        Ok(Recent { messages, left_out })
    }

    fn cost(&self, message: &Message, budget: Budget) -> Result<u64> {
        match budget {
            Budget::Tokens(_) => Ok(self.compaction.counter().message(message)),
            Budget::Bytes(_) => stored_bytes(message),
            Budget::Messages(_) => Ok(1),
        }
    }
}
