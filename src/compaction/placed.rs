//! Compactions with the places where they start and end.
//!
//! An end of a compaction may be a deleted message, whose place no id names. What is visible still depends on that place:
//! of two compactions that end there and at the message above, each has its own. So a copy of a session needs the place.

use super::Compaction;
use crate::id::MessageId;

/// The compactions of a session with their places.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PlacedCompactions {
    /// The compactions, oldest first.
    pub compactions: Vec<PlacedCompaction>,
    /// The deleted messages at which one of them starts or ends; parents come before their children.
    pub tombstones: Vec<Tombstone>,
}

/// A compaction with its places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlacedCompaction {
    /// The compaction.
    pub compaction: Compaction,
    /// Where its range starts.
    pub first: Place,
    /// Where its range ends.
    pub last: Place,
}

/// A place in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// The message with this id.
    Message(MessageId),
    /// The tombstone at this index of [`PlacedCompactions::tombstones`].
    Tombstone(usize),
}

/// A deleted message at which a compaction starts or ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tombstone {
    /// The nearest place above; `None` if there is none.
    pub parent: Option<Place>,
    /// The messages of which it is the nearest place above, in order of creation.
    pub children: Vec<MessageId>,
}
