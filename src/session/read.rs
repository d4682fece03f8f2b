//! The verbs that read messages and the tree.

use super::Session;
use crate::error::Result;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::outcome::{Page, RowStat};
use crate::storage::Cursor;
use crate::tree::Tree;
use crate::view::{Order, View};

/// How many messages a page holds when no limit is given.
const DEFAULT_PAGE: usize = 50;

impl Session {
    /// Returns the message under this id; a summary's id reads as its summary.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let compaction = chat.add_compaction("A greeting.", &hello, &hello)?;
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
            None => self.provider.message(id),
            Some(compaction) => self.provider.summary(&compaction),
        }
    }

    /// Returns the path to the head as a model should see it, oldest first: summaries in place of
    /// what they cover, hidden left out.
    ///
    /// Costs what is visible, not what was ever said.
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
        self.provider.history(None)
    }

    /// Returns the path to a message as a model should see it, oldest first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// let red = chat.append(Message::assistant("red"))?.id;
    /// chat.append_to(&question, Message::assistant("cyan"))?;
    ///
    /// assert_eq!(chat.history_at(&red)?[1].text(), "red");
    /// assert_eq!(chat.history()?[1].text(), "cyan"); // the head stays
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `leaf` is not in this session.
    pub fn history_at(&self, leaf: &MessageId) -> Result<Vec<Message>> {
        self.provider.history(Some(leaf))
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
        self.provider.raw_history(None)
    }

    /// Returns the stored messages of the path to a message, oldest first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.append(Message::assistant("hi"))?;
    /// chat.add_compaction("A greeting.", &hello, &hello)?;
    ///
    /// assert_eq!(chat.raw_history_at(&hello)?[0].text(), "hello");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `leaf` is not in this session.
    pub fn raw_history_at(&self, leaf: &MessageId) -> Result<Vec<Message>> {
        self.provider.raw_history(Some(leaf))
    }

    /// Returns a builder of one page of the conversation.
    ///
    /// Pages go by message, not by number: they hold still while others append.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user(format!("{n}"))))?;
    ///
    /// let last = chat.page().limit(4).run()?;
    /// let earlier = chat.page().before(last.before.as_ref().unwrap()).limit(4).run()?;
    /// assert_eq!(earlier.messages.iter().map(Message::text).collect::<String>(), "2345");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn page(&self) -> PageBuilder<'_> {
        PageBuilder { session: self, view: View::head(), from: From::End, limit: DEFAULT_PAGE }
    }

    /// Returns the figures of each stored message of the path to the head, oldest first, without
    /// reading content.
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
        self.provider.row_stats(None)
    }

    /// Returns the figures of each stored message of the path to a message, oldest first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    ///
    /// assert_eq!(chat.row_stats()?.len(), 2);
    /// assert_eq!(chat.row_stats_at(&question)?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `leaf` is not in this session.
    pub fn row_stats_at(&self, leaf: &MessageId) -> Result<Vec<RowStat>> {
        self.provider.row_stats(Some(leaf))
    }

    /// Returns how many messages the path to the head holds, hidden included, summaries ignored.
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
    /// assert_eq!(chat.path_length_at(&reply)?, 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn path_length(&self) -> Result<u64> {
        self.provider.path_length(None)
    }

    /// Returns how many messages the path to a message holds, itself included.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.append(Message::assistant("hi"))?;
    ///
    /// assert_eq!(chat.path_length_at(&hello)?, 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `leaf` is not in this session.
    pub fn path_length_at(&self, leaf: &MessageId) -> Result<u64> {
        self.provider.path_length(Some(leaf))
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
        self.provider.is_on_path(id, None)
    }

    /// Returns whether `ancestor` is `id` or lies on the path to it.
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
        self.provider.is_on_path(ancestor, Some(id))
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
        self.provider.latest_leaf()
    }

    /// Returns the ids of the messages without children, in order of creation.
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
        self.provider.leaves()
    }

    /// Returns the messages that follow a message directly, in order of creation.
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
        self.provider.branches(Some(id))
    }

    /// Returns the messages that begin a tree, in order of creation.
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
        self.provider.branches(None)
    }

    /// Returns the messages that follow the same message as this one, itself included, in order of
    /// creation.
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
        let message = self.provider.message(id)?.ok_or_else(|| self.unknown(id))?;
        self.provider.branches(message.parent.as_ref())
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
        self.provider.tree()
    }

    pub(in crate::session) fn unknown(&self, id: &MessageId) -> crate::Error {
        crate::Error::UnknownMessage { session: self.id().clone(), id: id.clone() }
    }
}

/// A page to read.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
///
/// let page = chat.page().after(&"3".into()).limit(2).run()?;
/// assert_eq!(page.messages.iter().map(Message::text).collect::<String>(), "45");
/// assert_eq!(page.after, Some("5".into()));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a page is read by `run`"]
pub struct PageBuilder<'a> {
    session: &'a Session,
    view: View,
    from: From,
    limit: usize,
}

#[derive(Debug, Clone)]
enum From {
    End,
    Before(MessageId),
    After(MessageId),
}

impl PageBuilder<'_> {
    /// Reads the messages that come before this message or summary.
    pub fn before(mut self, id: &MessageId) -> Self {
        self.from = From::Before(id.clone());
        self
    }

    /// Reads the messages that come after this message or summary, on the way to the leaf.
    pub fn after(mut self, id: &MessageId) -> Self {
        self.from = From::After(id.clone());
        self
    }

    /// Reads this view instead of the one to the head.
    ///
    /// ```
    /// use talktree::{Message, Store, View};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    ///
    /// let page = chat.page().of(View::at(&question)).run()?;
    /// assert_eq!(page.messages.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn of(mut self, view: View) -> Self {
        self.view = view;
        self
    }

    /// Reads the stored messages, without summaries.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.add_compaction("A greeting.", &hello, &hello)?;
    ///
    /// assert_eq!(chat.page().run()?.messages[0].text(), "A greeting.");
    /// assert_eq!(chat.page().raw().run()?.messages[0].text(), "hello");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn raw(mut self) -> Self {
        self.view = self.view.raw();
        self
    }

    /// Reads this many messages at the most; 50 if it is not called.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Returns the page.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if the message given is not in this
    /// session or, for `after`, not on the view's path.
    pub fn run(self) -> Result<Page> {
        match &self.from {
            From::End => {
                let cursor = self.session.provider.cursor(&self.view, Order::NewestFirst)?;
                self.run_before(Some(cursor), false)
            }
            From::Before(id) => self.run_before(self.cursor_before(id)?, true),
            From::After(id) => self.run_after(id),
        }
    }

    /// Opens a stream over what comes before a message or summary.
    fn cursor_before(&self, id: &MessageId) -> Result<Option<Box<dyn Cursor>>> {
        let message = self.session.message(id)?.ok_or_else(|| self.session.unknown(id))?;
        let at = |leaf: &MessageId| match self.view.is_raw() {
            true => View::at(leaf).raw(),
            false => View::at(leaf),
        };
        // What comes before a message is its own path: that holds whatever the head does. A summary
        // has none of its own: it shows on the view, or where it stood there is its parent.
        let own = match CompactionId::from_message(id) {
            None => at(id),
            Some(_) => self.view.clone(),
        };
        let mut cursor = self.session.provider.cursor(&own, Order::NewestFirst)?;
        if cursor.skip_past(id)? {
            return Ok(Some(cursor));
        }
        let parent = message.parent.map(|parent| at(&parent));
        parent.map(|view| self.session.provider.cursor(&view, Order::NewestFirst)).transpose()
    }

    fn run_before(&self, cursor: Option<Box<dyn Cursor>>, has_after: bool) -> Result<Page> {
        let mut messages = Vec::new();
        let mut is_start = true;
        if let Some(mut cursor) = cursor {
            messages = fill(&mut *cursor, self.limit)?;
            is_start = cursor.next(1)?.is_empty();
        }
        messages.reverse();
        Ok(Page {
            before: messages.first().filter(|_| !is_start).map(|message| message.id.clone()),
            after: messages.last().filter(|_| has_after).map(|message| message.id.clone()),
            messages,
        })
    }

    fn run_after(&self, id: &MessageId) -> Result<Page> {
        let mut cursor = self.session.provider.cursor(&self.view, Order::OldestFirst)?;
        if !cursor.skip_past(id)? {
            return Err(self.session.unknown(id));
        }
        let messages = fill(&mut *cursor, self.limit)?;
        let is_end = cursor.next(1)?.is_empty();
        Ok(Page {
            before: messages.first().map(|message| message.id.clone()),
            after: messages.last().filter(|_| !is_end).map(|message| message.id.clone()),
            messages,
        })
    }
}

/// Reads until the page is full: a batch of a cursor may be shorter than asked for.
fn fill(cursor: &mut dyn Cursor, limit: usize) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    while messages.len() < limit {
        let batch = cursor.next(limit - messages.len())?;
        if batch.is_empty() {
            break;
        }
        messages.extend(batch);
    }
    Ok(messages)
}
