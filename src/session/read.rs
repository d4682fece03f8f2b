//! The verbs that read: messages, branches, the tree, and the path to one message.
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
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::outcome::RowStat;
use crate::search::Search;
use crate::storage::sqlite::{children, message, path};
use crate::tree::{Address, Tree};
use crate::view::View;

impl Session {
    /// Returns the message under this id; a summary's id reads as its summary.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let compaction = chat.add_compaction("A greeting.", &hello, &hello)?.id;
    ///
    /// assert_eq!(chat.message(&hello)?.unwrap().text(), "hello");
    /// assert_eq!(chat.message(&compaction.as_message())?.unwrap().text(), "A greeting.");
    /// assert_eq!(chat.message(&"other".into())?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn message(&self, id: &MessageId) -> Result<Option<Message>> {
        self.storage.message(id)
    }

    /// Returns the path to the head as a model should see it, oldest first: summaries replace the
    /// ranges they cover, and hidden messages are left out.
    ///
    /// The read costs what is visible, not what was ever said.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.append(Message::system("seen at noon").hidden())?;
    /// chat.append(Message::assistant("hi"))?;
    /// chat.add_compaction("A greeting.", &hello, &hello)?;
    ///
    /// let texts: Vec<String> = chat.history()?.iter().map(Message::text).collect();
    /// assert_eq!(texts, ["A greeting.", "hi"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn history(&self) -> Result<Vec<Message>> {
        self.storage.history(None, false)
    }

    /// Returns the stored messages of the path to the head, oldest first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let reply = chat.append(Message::assistant("hi"))?.id;
    /// chat.add_compaction("They greeted.", &hello, &reply)?;
    ///
    /// assert_eq!(chat.history()?.len(), 1);
    /// assert_eq!(chat.raw_history()?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn raw_history(&self) -> Result<Vec<Message>> {
        self.storage.history(None, true)
    }

    /// Returns the statistics of each stored message on the path to the head, oldest first, without
    /// content.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = Message::user("Hello world");
    /// chat.append(hello.clone())?;
    ///
    /// let stats = chat.row_stats()?;
    /// assert_eq!((&stats[0].id, stats[0].tokens), (&hello.id, hello.tokens()));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn row_stats(&self) -> Result<Vec<RowStat>> {
        self.path().row_stats()
    }

    /// Returns how many messages the path to the head holds: hidden ones count, summaries do not.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let reply = chat.append(Message::assistant("hi"))?.id;
    /// chat.append(Message::system("seen at noon").hidden())?;
    /// chat.add_compaction("They greeted.", &hello, &reply)?;
    ///
    /// assert_eq!(chat.path_length()?, 3);
    /// assert_eq!(chat.at(&reply).path_length()?, 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn path_length(&self) -> Result<u64> {
        self.storage.path_length(None)
    }

    /// Returns whether the path to the head holds the message.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// let red = chat.append(Message::assistant("red"))?.id;
    /// chat.append_to(&question, Message::assistant("cyan"))?;
    ///
    /// assert!(chat.is_on_path(&question)?);
    /// assert!(!chat.is_on_path(&red)?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `id` is not in this session.
    pub fn is_on_path(&self, id: &MessageId) -> Result<bool> {
        self.storage.is_on_path(id, None)
    }

    /// Returns whether `ancestor` is `id` or one of its ancestors.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// let red = chat.append(Message::assistant("red"))?.id;
    ///
    /// assert!(chat.is_ancestor(&question, &red)?);
    /// assert!(chat.is_ancestor(&red, &red)?);
    /// assert!(!chat.is_ancestor(&red, &question)?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if one is not in this session.
    pub fn is_ancestor(&self, ancestor: &MessageId, id: &MessageId) -> Result<bool> {
        self.storage.is_on_path(ancestor, Some(id))
    }

    /// Returns the newest message; it has no children.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// chat.checkout(&question)?;
    ///
    /// assert_eq!(chat.latest_leaf()?.unwrap().text(), "red"); // wherever the head is
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn latest_leaf(&self) -> Result<Option<Message>> {
        self.storage.read(|conn, session| match children::latest(conn, session.key)? {
            Some(address) => message::read(conn, address),
            None => Ok(None),
        })
    }

    /// Returns the ids of the leaves, in order of creation.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// let red = chat.append(Message::assistant("red"))?.id;
    /// let cyan = chat.append_to(&question, Message::assistant("cyan"))?.id;
    ///
    /// assert_eq!(chat.leaves()?, [red, cyan]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn leaves(&self) -> Result<Vec<MessageId>> {
        self.storage.read(|conn, session| children::leaves(conn, session.key))
    }

    /// Returns the children of a message, in order of creation.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// chat.append_to(&question, Message::assistant("cyan"))?;
    ///
    /// let answers: Vec<String> = chat.branches(&question)?.iter().map(Message::text).collect();
    /// assert_eq!(answers, ["red", "cyan"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `id` is not in this session.
    pub fn branches(&self, id: &MessageId) -> Result<Vec<Message>> {
        self.storage.branches(Some(id))
    }

    /// Returns at most `limit` of the messages that [`branches`](Self::branches) returns, or of the
    /// [`roots`](Self::roots) for `None`: the first ones, or those after the branch `after`.
    ///
    /// Costs what it returns, however many branches there are.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// for colour in ["red", "green", "blue"] {
    ///     chat.append_to(&question, Message::assistant(colour).with_id(colour))?;
    /// }
    /// assert_eq!(chat.branches_page(Some(&question), None, 2)?[1].text(), "green");
    /// let rest = chat.branches_page(Some(&question), Some(&"green".into()), 2)?;
    /// assert_eq!(rest.iter().map(Message::text).collect::<Vec<_>>(), ["blue"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `id` or `after` is not in this session.
    pub fn branches_page(
        &self,
        id: Option<&MessageId>,
        after: Option<&MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>> {
        self.storage.read_at([id, after], |conn, session, [parent, after]| {
            let after = after.unwrap_or(Address::range_of(session.key).0.before());
            children::page(conn, session.key, parent, after, limit)
        })
    }

    /// Returns the roots, in order of creation.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("About the door"))?;
    /// chat.append(Message::assistant("Which one?"))?;
    /// chat.append_root(Message::user("About the roof"))?;
    ///
    /// let roots: Vec<String> = chat.roots()?.iter().map(Message::text).collect();
    /// assert_eq!(roots, ["About the door", "About the roof"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn roots(&self) -> Result<Vec<Message>> {
        self.storage.branches(None)
    }

    /// Returns the children of a message's parent, in order of creation: the message itself and its
    /// alternatives.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// let red = chat.append(Message::assistant("red"))?.id;
    /// let cyan = chat.append_to(&question, Message::assistant("cyan"))?.id;
    ///
    /// let ids: Vec<_> = chat.siblings(&cyan)?.into_iter().map(|message| message.id).collect();
    /// assert_eq!(ids, [red, cyan]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `id` is not in this session.
    pub fn siblings(&self, id: &MessageId) -> Result<Vec<Message>> {
        let message = match CompactionId::from_message(id) {
            None => self.storage.message(id)?,
            Some(summary) => match self.storage.expand_raw(&summary) {
                Err(crate::Error::UnknownCompaction { .. }) => None,
                covered => covered?.pop(),
            },
        };
        let message = message.ok_or_else(|| self.unknown(id))?;
        self.storage.branches(message.parent.as_ref())
    }

    /// Returns the outline of the whole tree; its `Display` draws it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour").with_id("q"))?.id;
    /// chat.append(Message::assistant("red").with_id("a1"))?;
    /// chat.append_to(&question, Message::assistant("cyan").with_id("a2"))?;
    ///
    /// let tree = chat.tree()?;
    /// assert_eq!((tree.messages, tree.segments.len()), (3, 3));
    /// assert!(tree.to_string().starts_with("o user q  Name a colour\n"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn tree(&self) -> Result<Tree> {
        self.storage.tree()
    }

    pub(in crate::session) fn unknown(&self, id: &MessageId) -> crate::Error {
        crate::Error::UnknownMessage { session: self.id().clone(), id: id.clone() }
    }
}

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
        self.session.storage.history(self.leaf(), self.view.is_raw())
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
        self.session.storage.history(self.leaf(), true)
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
        self.session.storage.read_path(self.leaf(), |conn, session, leaf| {
            path::row_stats(conn, &path::plan(conn, session.key, leaf, true)?)
        })
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
