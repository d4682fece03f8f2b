//! The status of a compaction, as seen from the head.

use serde::Serialize;

use crate::id::CompactionId;

/// Whether a compaction is visible on the path to the head.
///
/// ```
/// use talktree::{CompactionStatus, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello"))?.id;
/// let reply = chat.append(Message::assistant("hi"))?.id;
/// let inner = chat.add_compaction("A greeting.", &hello, &hello)?.id;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Shown);
///
/// let outer = chat.add_compaction("They greeted.", &hello, &reply)?.id;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Under { id: outer });
/// chat.checkout(&hello)?;
/// assert_eq!(chat.compaction_status(&inner)?, CompactionStatus::Shown);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionStatus {
    /// Its summary is visible.
    Shown,
    /// Its range was compacted again: a later summary is visible instead.
    Under {
        /// The later compaction.
        id: CompactionId,
    },
    /// Its last message is not on the path to the head.
    OffPath,
}
