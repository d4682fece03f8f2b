//! Paths: reading what leads to one message.
//!
//! A [`Path`] is a cheap handle that names a session and a leaf. [`Session::at`] returns the path to
//! any message, [`Session::path`] the path to the head, wherever the head is at the time of each read.
//! The reads of [`Session`] itself are those of the path to the head.
//!
//! A path is read as a model should see it, with compactions applied and hidden messages left out;
//! [`Path::raw`] reads the stored messages instead.

use std::fmt;

use super::Session;
use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;
use crate::outcome::RowStat;
use crate::search::Search;
use crate::view::View;

/// The path from a root of a session to one message.
///
/// Creating one reads nothing: an unknown message is the error of the first read.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let question = chat.append(Message::user("Name a colour"))?.id;
/// let red = chat.append(Message::assistant("red"))?.id;
/// chat.append_to(&question, Message::assistant("cyan"))?; // the head is on this branch now
///
/// let path = chat.at(&red);
/// assert_eq!(path.history()?[1].text(), "red");
/// assert_eq!(path.iter_rev().next().transpose()?.unwrap().text(), "red");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct Path {
    pub(super) session: Session,
    pub(super) view: View,
}

impl Session {
    /// Returns the path to a message, on any branch.
    ///
    /// [`Path`] has an example.
    #[must_use]
    pub fn at(&self, leaf: &MessageId) -> Path {
        Path { session: self.clone(), view: View::at(leaf) }
    }

    /// Returns the path to the head; it follows the head.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let path = chat.path();
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.add_compaction("A greeting.", &hello, &hello)?;
    ///
    /// assert_eq!(path.history()?[0].text(), "A greeting.");
    /// assert_eq!(path.raw().history()?[0].text(), "hello");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn path(&self) -> Path {
        Path { session: self.clone(), view: View::head() }
    }
}

impl Path {
    /// Returns this path with reads of the stored messages: without compactions and elisions, hidden
    /// messages included.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.add_compaction("A greeting.", &hello, &hello)?;
    ///
    /// assert_eq!(chat.path().page().run()?.messages[0].text(), "A greeting.");
    /// assert_eq!(chat.path().raw().page().run()?.messages[0].text(), "hello");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn raw(mut self) -> Self {
        self.view = self.view.raw();
        self
    }

    /// Returns the message the path leads to; `None`: the head.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// assert_eq!(chat.at(&hello).leaf(), Some(&hello));
    /// assert_eq!(chat.path().leaf(), None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn leaf(&self) -> Option<&MessageId> {
        self.view.leaf()
    }

    /// Returns the session the path belongs to.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// assert_eq!(chat.path().session().id(), chat.id());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the path as it is now.
    pub(crate) fn snapshot(&self) -> Result<Self> {
        Ok(Self { session: self.session.snapshot()?, view: self.view.clone() })
    }

    /// Returns the messages of the path, oldest first, as a model should see them; the stored ones
    /// on a [`raw`](Self::raw) path.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// assert_eq!(chat.at(&question).history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if the leaf is not in this session; as
    /// every read.
    pub fn history(&self) -> Result<Vec<Message>> {
        match self.view.is_raw() {
            true => self.raw_history(),
            false => self.session.storage.history(self.leaf()),
        }
    }

    /// Returns the stored messages of the path, oldest first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.add_compaction("A greeting.", &hello, &hello)?;
    /// assert_eq!(chat.at(&hello).raw_history()?[0].text(), "hello");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn raw_history(&self) -> Result<Vec<Message>> {
        self.session.storage.raw_history(self.leaf())
    }

    /// Returns the statistics of each stored message of the path, oldest first, without content.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// assert_eq!(chat.at(&question).row_stats()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn row_stats(&self) -> Result<Vec<RowStat>> {
        self.session.storage.row_stats(self.leaf())
    }

    /// Returns how many messages the path holds: hidden ones count, summaries do not.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// assert_eq!(chat.at(&question).path_length()?, 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn path_length(&self) -> Result<u64> {
        self.session.storage.path_length(self.leaf())
    }

    /// Returns a builder of a search within this path.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Which colour?"))?.id;
    /// chat.append(Message::assistant("A red colour."))?;
    /// assert_eq!(chat.at(&question).search("colour").run()?.hits.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn search(&self, text: impl Into<String>) -> Search {
        self.session.search_within(text.into(), self.leaf())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path")
            .field("session", self.session.id())
            .field("view", &self.view)
            .finish()
    }
}
