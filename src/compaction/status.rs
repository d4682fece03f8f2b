//! Where a summary stands, as seen from the head.

use serde::Serialize;

use crate::id::CompactionId;

/// What has become of a compaction, as seen from the head.
///
/// ```
/// use talktree::{CompactionStatus, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello"))?.id;
/// let reply = chat.append(Message::assistant("hi"))?.id;
/// let inner = chat.add_compaction("A greeting.", &hello, &hello)?;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Shown);
///
/// let outer = chat.add_compaction("They greeted.", &hello, &reply)?;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Under { id: outer });
/// chat.checkout(&hello)?;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Shown);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionStatus {
    /// A model sees its summary.
    Shown,
    /// It was compacted: a model sees a later summary in its place.
    Under {
        /// The later one.
        id: CompactionId,
    },
    /// It lies on another branch.
    OffPath,
}
