//! Streams: a conversation as an iterator that reads only what is taken.

use std::collections::VecDeque;
use std::fmt;

use super::{Path, Session};
use crate::error::Result;
use crate::message::Message;
use crate::storage::Cursor;
use crate::view::Order;

/// The number of messages in a stream's first batch. Each later one is twice as large, up to [`LAST_BATCH`].
const FIRST_BATCH: usize = 16;
/// The maximum number of messages in a batch.
const LAST_BATCH: usize = 512;

impl Session {
    /// Returns the history as a stream, oldest first.
    ///
    /// What it covers is fixed when it is opened, by this call; messages deleted since are skipped.
    /// It holds nothing open between messages, so it may be kept as long as you like. An error is the
    /// last item.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=1000).map(|n| Message::user(n.to_string())))?;
    ///
    /// let mut tokens = 0;
    /// for message in chat.iter() {
    ///     tokens += message?.tokens();
    /// }
    /// assert_eq!(tokens, chat.row_stats()?.iter().map(|stat| stat.tokens).sum::<u64>());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn iter(&self) -> Messages {
        self.path().iter()
    }

    /// Returns the history as a stream, newest first; what is not taken is not read.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=1000).map(|n| Message::user(format!("{n}"))))?;
    /// let newest: Vec<Message> = chat.iter_rev().take(2).collect::<Result<_, _>>()?;
    /// assert_eq!(newest[1].text(), "999");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn iter_rev(&self) -> Messages {
        self.path().iter_rev()
    }

    /// Returns every stored message, all branches, as a stream in order of creation.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// chat.append_to(&question, Message::assistant("cyan"))?;
    ///
    /// let all: Vec<Message> = chat.all_messages().collect::<Result<_, _>>()?;
    /// let texts: Vec<String> = all.iter().map(Message::text).collect();
    /// assert_eq!(texts, ["Name a colour", "red", "cyan"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn all_messages(&self) -> Messages {
        Messages::new(self.storage.all_messages())
    }
}

impl Path {
    /// Returns this path as a stream, oldest first, as [`Session::iter`] does.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.add_compaction("A greeting.", &hello, &hello)?;
    ///
    /// assert_eq!(chat.path().iter().next().unwrap()?.text(), "A greeting.");
    /// assert_eq!(chat.path().raw().iter().next().unwrap()?.text(), "hello");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn iter(&self) -> Messages {
        Messages::new(self.session.storage.cursor(&self.view, Order::OldestFirst))
    }

    /// Returns this path as a stream, newest first; what is not taken is not read.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    ///
    /// let newest = chat.at(&question).iter_rev().next().unwrap()?;
    /// assert_eq!(newest.id, question);
    /// assert!(chat.at(&"other".into()).iter_rev().next().unwrap().is_err());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn iter_rev(&self) -> Messages {
        Messages::new(self.session.storage.cursor(&self.view, Order::NewestFirst))
    }
}

/// A stream of messages.
///
/// ```
/// use talktree::{Message, Messages, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all([Message::user("hello"), Message::assistant("hi")])?;
///
/// let mut messages: Messages = chat.iter();
/// assert_eq!(messages.next().unwrap()?.text(), "hello");
/// assert_eq!(messages.count(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
pub struct Messages {
    /// `None` after an error, which ends the stream.
    cursor: Option<Result<Box<dyn Cursor>>>,
    batch: VecDeque<Message>,
    batch_size: usize,
}

impl Messages {
    fn new(cursor: Result<Box<dyn Cursor>>) -> Self {
        Self { cursor: Some(cursor), batch: VecDeque::new(), batch_size: FIRST_BATCH }
    }

    fn read(&mut self) -> Result<()> {
        match self.cursor.take() {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(mut cursor)) => {
                self.batch = cursor.next(self.batch_size)?.into();
                self.batch_size = LAST_BATCH.min(self.batch_size * 2);
                if !self.batch.is_empty() {
                    self.cursor = Some(Ok(cursor));
                }
                Ok(())
            }
        }
    }
}

impl Iterator for Messages {
    type Item = Result<Message>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty()
            && let Err(error) = self.read()
        {
            return Some(Err(error));
        }
        self.batch.pop_front().map(Ok)
    }
}

impl std::iter::FusedIterator for Messages {}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("read_ahead", &self.batch.len()).finish_non_exhaustive()
    }
}
