//! The results of reads of a path.

use serde::Serialize;

use crate::id::MessageId;
use crate::message::{Message, Role};

/// The newest messages that fit a budget.
///
/// ```
/// use talktree::{Budget, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all([Message::user("hello"), Message::assistant("hi")])?;
///
/// let recent = chat.recent(Budget::messages(1))?;
/// assert_eq!((recent.messages[0].text().as_str(), recent.left_out), ("hi", 1));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recent {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The number of older messages and summaries that were left out.
    pub left_out: u64,
}

/// One page of a history.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=5).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
///
/// let page = chat.page().limit(2).run()?; // the last one
/// assert_eq!((page.before.clone(), page.after), (Some("4".into()), None));
/// let earlier = chat.page().before(&page.before.unwrap()).run()?;
/// assert_eq!((earlier.messages.len(), earlier.before), (3, None));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The argument of `before` for the previous page; `None` if this is the first one.
    pub before: Option<MessageId>,
    /// The argument of `after` for the next page; `None` if this is the last one.
    pub after: Option<MessageId>,
}

/// The statistics of one stored message, without its content.
///
/// ```
/// use talktree::{Message, Role, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("hi"))?;
///
/// let stat = &chat.row_stats()?[0];
/// assert_eq!(stat.role, Role::User);
/// assert_eq!(stat.bytes, r#"[{"type":"text","text":"hi"}]"#.len() as u64);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowStat {
    /// The id of the message.
    pub id: MessageId,
    /// The role of the message.
    pub role: Role,
    /// The size of the stored parts, metadata and extra fields, in bytes.
    pub bytes: u64,
    /// The estimated tokens, counted when the message was written.
    pub tokens: u64,
}
