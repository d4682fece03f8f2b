//! The items of a view.

use crate::id::CompactionId;
use crate::message::Message;
use crate::tokens::Counter;

/// A message or a summary that a model sees, with its tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) message: &'a Message,
    pub(crate) tokens: u64,
    pub(crate) is_summary: bool,
}

impl<'a> Item<'a> {
    /// Returns the item of a message of a history. Its id shows whether it is a summary.
    pub(crate) fn of(message: &'a Message, counter: &Counter) -> Self {
        Self::counted(message, counter.message(message))
    }

    /// Returns the item of a message whose tokens are known.
    pub(crate) fn counted(message: &'a Message, tokens: u64) -> Self {
        let is_summary = CompactionId::from_message(&message.id).is_some();
        Self { message, tokens, is_summary }
    }
}

/// Returns the sum of the tokens.
pub(crate) fn tokens_of(items: &[Item<'_>]) -> u64 {
    items.iter().fold(0, |sum, item| sum.saturating_add(item.tokens))
}
