//! The arguments of reads and writes: the path to read, the parent to append to, budgets.

use crate::id::MessageId;

/// A path to read: its leaf, and whether compactions are applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct View {
    leaf: Option<MessageId>,
    is_raw: bool,
}

impl View {
    /// Returns the view of the path to the head, with compactions applied.
    #[must_use]
    pub(crate) fn head() -> Self {
        Self::default()
    }

    /// Returns the view of the path to this message, with compactions applied.
    #[must_use]
    pub(crate) fn at(leaf: &MessageId) -> Self {
        Self { leaf: Some(leaf.clone()), is_raw: false }
    }

    /// Returns the view of the stored messages, including hidden ones, without compactions applied.
    #[must_use]
    pub(crate) fn raw(mut self) -> Self {
        self.is_raw = true;
        self
    }

    /// Returns the leaf of the path; `None` for the head.
    #[must_use]
    pub(crate) fn leaf(&self) -> Option<&MessageId> {
        self.leaf.as_ref()
    }

    /// Returns whether compactions are not applied.
    #[must_use]
    pub(crate) fn is_raw(&self) -> bool {
        self.is_raw
    }
}

/// The direction of a read along a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// From the root to the leaf.
    OldestFirst,
    /// From the leaf to the root.
    NewestFirst,
}

/// The parent of an appended message.
///
/// ```
/// use talktree::{Message, Parent, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append_all_to(&Parent::Root, [Message::user("hello")])?[0].id.clone();
/// chat.append_all_to(&Parent::Message(hello), [Message::assistant("hi")])?;
/// let bye = chat.append_all_to(&Parent::Head, [Message::user("bye")])?[0].id.clone();
/// chat.append_all_to(&Parent::SiblingOf(bye), [Message::user("one more question")])?;
/// assert_eq!(chat.history()?.len(), 3);
/// assert_eq!(chat.history()?[2].text(), "one more question");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parent {
    /// The head.
    Head,
    /// None: the message is the root of a new tree.
    Root,
    /// This message.
    Message(MessageId),
    /// The parent of this message, so that the new one is its sibling; none if this message is a root. The id of a
    /// summary is unknown here.
    SiblingOf(MessageId),
}

/// The head that an append requires.
///
/// A storage compares it with the head inside the append's transaction and answers
/// [`Error::HeadMoved`](crate::Error::HeadMoved) if they differ, unless all messages are already
/// stored: a retry after a lost answer is a no-op.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum ExpectedHead {
    /// Any head.
    Any,
    /// This message; `None` before the first message.
    At(Option<MessageId>),
}

/// The budget of a read of the newest messages.
///
/// ```
/// use talktree::Budget;
///
/// assert_eq!(Budget::tokens(8_000), Budget::Tokens(8_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Budget {
    /// A number of tokens, by the counter of the session.
    Tokens(u64),
    /// A number of bytes of the messages' JSON.
    Bytes(u64),
    /// A number of messages.
    Messages(u64),
}

impl Budget {
    /// Returns a budget of tokens.
    #[must_use]
    pub fn tokens(max: u64) -> Self {
        Self::Tokens(max)
    }

    /// Returns a budget of bytes of the messages' JSON.
    #[must_use]
    pub fn bytes(max: u64) -> Self {
        Self::Bytes(max)
    }

    /// Returns a budget of messages.
    #[must_use]
    pub fn messages(max: u64) -> Self {
        Self::Messages(max)
    }
}
