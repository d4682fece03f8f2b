//! What keeps sessions: SQLite, or for one session a storage of the program's own, by [`SessionProvider`].

pub(crate) mod context;
pub(crate) mod sqlite;

use std::time::Duration;

use crate::compaction::Compaction;
use crate::error::Result;
use crate::id::{MessageId, SessionId};
use crate::message::Message;
use crate::outcome::Appended;
use crate::view::Parent;

/// How long a write waits for other writers, unless a store says otherwise.
pub(crate) const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The storage of one session, if it is not a [`Store`](crate::Store). [`Session::over`](crate::Session::over) returns a session
/// over it; `examples/own_storage.rs` is a small one.
///
/// Threads share it and may call it at the same time. Each verb is atomic: all of it is done, or nothing. A session that was never
/// written to reads as empty. An unknown id is [`Error::UnknownMessage`](crate::Error::UnknownMessage), except in
/// [`message`](Self::message).
///
/// The id of a summary means the last message of its compaction where an id names a place: a parent or a leaf.
pub trait SessionProvider: Send + Sync {
    /// Returns the session's id.
    fn id(&self) -> &SessionId;

    /// Returns the message with this id.
    fn message(&self, id: &MessageId) -> Result<Option<Message>>;

    /// Returns the path to `leaf` (`None`: the newest message), oldest first, as a model should see it: each compacted range
    /// is its [summary](Compaction::to_message), hidden messages are left out. Of several compactions that end at one message,
    /// the one that reaches furthest back is shown.
    fn history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>>;

    /// Returns the newest message, which never has children.
    fn latest_leaf(&self) -> Result<Option<Message>>;

    /// Returns the children of a message, or the roots for `None`, in order of creation.
    fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>>;

    /// Returns how many messages are on the path to `leaf` (`None`: the newest message), hidden ones included.
    fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64>;

    /// Appends messages, each the child of the one before, and returns one result per message. [`Parent::Head`] is the newest
    /// message. A known id is a no-op, and the chain continues from it.
    fn append(&self, parent: &Parent, messages: &[Message]) -> Result<Vec<Appended>>;

    /// Replaces the content of the message with this id: role, parts, metadata, extra fields. Returns whether it changed.
    fn update(&self, message: &Message) -> Result<bool>;

    /// Deletes messages. The children of a deleted message become those of its parent.
    fn delete(&self, ids: &[MessageId]) -> Result<()>;

    /// Deletes all messages and compactions.
    fn clear(&self) -> Result<()>;

    /// Adds a summary that replaces the range `first ..= last`: the ids of messages, the first on the path to the last.
    fn add_compaction(&self, compaction: &Compaction) -> Result<()>;

    /// Returns all compactions, oldest first.
    fn compactions(&self) -> Result<Vec<Compaction>>;

    /// Returns at most `limit` messages that contain all words of a query, the best first.
    fn search(&self, query: &str, limit: usize) -> Result<Vec<Message>>;
}
