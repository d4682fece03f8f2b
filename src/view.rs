//! What a read covers, and where a write is attached.

use crate::id::MessageId;

/// A path to read: to which leaf, and with or without summaries.
///
/// ```
/// use talktree::{Message, Store, View};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let question = chat.append(Message::user("2 + 2?"))?.id;
/// chat.append(Message::assistant("4"))?;
///
/// assert_eq!(chat.iter().count(), 2);
/// assert_eq!(chat.at(&question).raw().iter().count(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    leaf: Option<MessageId>,
    is_raw: bool,
}

impl View {
    /// Returns the view of the path to the head, as a model should see it.
    #[must_use]
    pub fn head() -> Self {
        Self::default()
    }

    /// Returns the view of the path to this message, as a model should see it.
    #[must_use]
    pub fn at(leaf: &MessageId) -> Self {
        Self { leaf: Some(leaf.clone()), is_raw: false }
    }

    /// Returns the view of the stored messages, without summaries and with hidden.
    #[must_use]
    pub fn raw(mut self) -> Self {
        self.is_raw = true;
        self
    }

    /// Returns the message the path leads to; `None` for the head.
    #[must_use]
    pub fn leaf(&self) -> Option<&MessageId> {
        self.leaf.as_ref()
    }

    /// Returns whether summaries are left off.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.is_raw
    }
}

/// The direction of a read along a path.
///
/// ```
/// use talktree::{Message, Order, SessionProvider, Store, View};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all([Message::user("hello"), Message::assistant("hi")])?;
///
/// let mut cursor = chat.provider().cursor(&View::head(), Order::NewestFirst)?;
/// assert_eq!(cursor.next(1)?[0].text(), "hi");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the root to the leaf.
    OldestFirst,
    /// From the leaf to the root.
    NewestFirst,
}

/// The message that an appended message becomes a child of.
///
/// ```
/// use talktree::{Message, Parent, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append_all_to(&Parent::Root, [Message::user("hello")])?[0].id.clone();
/// chat.append_all_to(&Parent::Message(hello), [Message::assistant("hi")])?;
/// chat.append_all_to(&Parent::Head, [Message::user("bye")])?;
/// assert_eq!(chat.history()?.len(), 3);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parent {
    /// The head.
    Head,
    /// None: the message begins a tree of its own.
    Root,
    /// This message.
    Message(MessageId),
}

/// Where the head must be for an append to happen.
///
/// A storage compares it with the head inside the append's transaction and answers
/// [`Error::HeadMoved`](crate::Error::HeadMoved) if they differ, unless all messages are already
/// stored: a retry after a lost answer is a no-op.
///
/// ```
/// use talktree::{Error, ExpectedHead, Message, Parent, SessionProvider, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let storage = chat.provider();
/// storage.append(&Parent::Head, &ExpectedHead::Any, &[Message::user("hello")])?;
///
/// let empty = ExpectedHead::At(None); // the head is before the first message
/// let late = storage.append(&Parent::Head, &empty, &[Message::user("hi")]);
/// assert!(matches!(late, Err(Error::HeadMoved { .. })));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectedHead {
    /// Anywhere.
    Any,
    /// At this message; `None`: before the first message.
    At(Option<MessageId>),
}

/// How much of the end of a conversation to read.
///
/// ```
/// use talktree::Budget;
///
/// assert_eq!(Budget::tokens(8_000), Budget::Tokens(8_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Budget {
    /// This many tokens, by the counter of the session.
    Tokens(u64),
    /// This many bytes of the messages' JSON.
    Bytes(u64),
    /// This many messages.
    Messages(u64),
}

impl Budget {
    /// Returns a budget of estimated tokens.
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
