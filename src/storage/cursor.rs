//! Streams over a path, a batch at a time.

use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;

/// An open stream over a view, in one direction.
///
/// Opening it fixes what it covers; messages deleted since are skipped. It holds no transaction between calls.
pub(crate) trait Cursor: Send {
    /// Returns the next messages, at most `limit`; none only at the end.
    fn next(&mut self, limit: usize) -> Result<Vec<Message>>;

    /// Continues after this message or summary. Returns `false`, and stays where it is, if the view does not contain
    /// it.
    fn skip_past(&mut self, id: &MessageId) -> Result<bool>;

    /// Returns how many messages and summaries the view contains, without those deleted since.
    ///
    /// A stream that was opened by `newest` counted when it was opened.
    fn total(&mut self) -> Result<u64>;
}
