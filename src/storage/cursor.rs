//! Streams over a path, a batch at a time.

use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;

/// An open stream over a view, in one direction.
///
/// Opening it fixes what it covers; messages deleted since are skipped. It holds no transaction between calls.
///
/// ```
/// use talktree::{Cursor, Message, Order, SessionProvider, Store, View};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=5).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
///
/// let mut cursor = chat.provider().cursor(&View::head(), Order::OldestFirst)?;
/// assert_eq!(cursor.total()?, 5);
/// assert!(cursor.skip_past(&"3".into())?);
/// assert_eq!(cursor.next(1)?[0].text(), "4");
/// # Ok::<(), talktree::Error>(())
/// ```
pub trait Cursor: Send {
    /// Returns the next messages, at most `limit`; none only at the end.
    fn next(&mut self, limit: usize) -> Result<Vec<Message>>;

    /// Continues after this message or summary. Returns `false`, and stays where it is, if the view does not contain
    /// it.
    fn skip_past(&mut self, id: &MessageId) -> Result<bool>;

    /// Returns how many messages and summaries the view contains, without those deleted since.
    ///
    /// A stream that was opened by [`newest`](crate::SessionProvider::newest) counted when it was opened.
    fn total(&mut self) -> Result<u64>;
}

/// A stream over messages in memory.
pub(crate) struct VecCursor {
    messages: Vec<Option<Message>>,
    at: usize,
}

impl VecCursor {
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        Self { messages: messages.into_iter().map(Some).collect(), at: 0 }
    }
}

impl Cursor for VecCursor {
    fn next(&mut self, limit: usize) -> Result<Vec<Message>> {
        let end = self.messages.len().min(self.at.saturating_add(limit));
        let batch = self.messages[self.at..end].iter_mut().filter_map(Option::take).collect();
        self.at = end;
        Ok(batch)
    }

    fn skip_past(&mut self, id: &MessageId) -> Result<bool> {
        let holds = |message: &Option<Message>| message.as_ref().is_some_and(|m| m.id == *id);
        let found = self.messages.iter().position(holds);
        self.at = found.map_or(self.at, |found| found + 1);
        Ok(found.is_some())
    }

    fn total(&mut self) -> Result<u64> {
        Ok(self.messages.len() as u64)
    }
}
