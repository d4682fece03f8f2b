//! The verbs that read messages and the tree.

use super::Session;
use crate::error::Result;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::outcome::RowStat;
use crate::tree::Tree;

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
        match CompactionId::from_message(id) {
            None => self.storage.message(id),
            Some(compaction) => self.storage.summary(&compaction),
        }
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
        self.storage.history(None)
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
        self.storage.raw_history(None)
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
        self.storage.row_stats(None)
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
        self.storage.latest_leaf()
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
        self.storage.leaves()
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
        self.storage.branches_page(id, after, limit)
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
