//! Items: what a view is made of.

use crate::id::CompactionId;
use crate::message::Message;
use crate::tokens::Counter;

/// One message that a model sees, or one summary, with its tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) message: &'a Message,
    pub(crate) tokens: u64,
    pub(crate) is_summary: bool,
}

impl<'a> Item<'a> {
    /// Returns the item of a message of a history, which is a summary if its id says so.
    pub(crate) fn of(message: &'a Message, counter: &Counter) -> Self {
        let is_summary = CompactionId::from_message(&message.id).is_some();
        Self { message, tokens: counter.message(message), is_summary }
    }
}

/// Returns the tokens of the items together.
pub(crate) fn tokens_of(items: &[Item<'_>]) -> u64 {
    items.iter().fold(0, |sum, item| sum.saturating_add(item.tokens))
}
