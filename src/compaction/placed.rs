//! Compactions with the places where they start and end.
//!
//! An end of a compaction may be a deleted message, whose place no id names. What is visible still depends on that place:
//! of two compactions that end there and at the message above, each has its own. So a copy of a session needs the place.

use super::Compaction;
use crate::id::MessageId;

/// The compactions of a session with their places.
///
/// ```
/// use talktree::{Message, Place, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all(["a", "b", "c"].map(|id| Message::user(id).with_id(id)))?;
/// chat.add_compaction("a and b", &"a".into(), &"b".into())?;
/// chat.delete([&"b".into()])?;
///
/// let placed = chat.provider().placed_compactions()?;
/// assert_eq!(placed.compactions[0].first, Place::Message("a".into()));
/// assert_eq!(placed.compactions[0].last, Place::Tombstone(0));
/// assert_eq!(placed.tombstones[0].parent, Some(Place::Message("a".into())));
/// assert_eq!(placed.tombstones[0].children[0], "c");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlacedCompactions {
    /// The compactions, oldest first.
    pub compactions: Vec<PlacedCompaction>,
    /// The deleted messages at which one of them starts or ends; parents come before their children.
    pub tombstones: Vec<Tombstone>,
}

/// A compaction with its places.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedCompaction {
    /// The compaction.
    pub compaction: Compaction,
    /// Where its range starts.
    pub first: Place,
    /// Where its range ends.
    pub last: Place,
}

/// A place in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The message with this id.
    Message(MessageId),
    /// The tombstone at this index of [`PlacedCompactions::tombstones`].
    Tombstone(usize),
}

/// A deleted message at which a compaction starts or ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tombstone {
    /// The nearest place above; `None` if there is none.
    pub parent: Option<Place>,
    /// The messages of which it is the nearest place above, in order of creation.
    pub children: Vec<MessageId>,
}
