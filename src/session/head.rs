//! The head, its log, labels, and tags of messages.

use super::Session;
use crate::error::Result;
use crate::event::Change;
use crate::id::{MessageId, check_label, check_name};
use crate::outcome::{HeadEntry, Label, MessageTag};
use crate::storage::sqlite::{head, message};
use crate::tree::Address;
use crate::view::ExpectedHead;

impl Session {
    /// Returns the message that the next one is appended to; `None` before the first.
    ///
    /// The head is stored, so it survives a restart. If its message was deleted, this is the item that the history ends
    /// with: the nearest ancestor that was not deleted, or the summary that covers it. So
    /// [`append_to`](Self::append_to) this id and [`append`](Self::append) do the same.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// assert_eq!(chat.head()?, None);
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let reply = chat.append(Message::assistant("hi"))?.id;
    /// assert_eq!(chat.head()?, Some(reply.clone()));
    ///
    /// chat.delete([&reply])?;
    /// assert_eq!(chat.head()?, Some(hello));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn head(&self) -> Result<Option<MessageId>> {
        self.storage.head()
    }

    /// Moves the head to any message of the session, or to the end of a summary.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    ///
    /// chat.checkout(&question)?;
    /// chat.append(Message::assistant("cyan"))?; // a branch
    /// assert_eq!(chat.branches(&question)?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `id` is not in this session.
    pub fn checkout(&self, id: &MessageId) -> Result<()> {
        self.move_head(&ExpectedHead::Any, Some(id))
    }

    /// Moves the head before the first message: the next one begins a tree.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("About the door"))?;
    /// chat.checkout_start()?;
    /// assert!(chat.history()?.is_empty());
    ///
    /// chat.append(Message::user("About the roof"))?;
    /// assert_eq!(chat.roots()?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn checkout_start(&self) -> Result<()> {
        self.move_head(&ExpectedHead::Any, None)
    }

    /// Moves the head back to where it was before its last move; `false` if no move is left.
    ///
    /// An append at the head is not a move: undo reverts checkouts, and appends below other messages.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("?"))?.id;
    /// let answer = chat.append(Message::assistant("!"))?.id;
    /// chat.checkout(&question)?;
    ///
    /// assert!(chat.undo_head()?);
    /// assert_eq!(chat.head()?, Some(answer));
    /// assert!(chat.redo_head()?);
    /// assert_eq!(chat.head()?, Some(question));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn undo_head(&self) -> Result<bool> {
        self.step_head(-1)
    }

    /// Reverts the last undo; `false` if there is none, or if the head moved since.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("?"))?.id;
    /// chat.append(Message::assistant("!"))?;
    /// chat.checkout(&question)?;
    /// assert!(!chat.redo_head()?); // nothing was undone
    ///
    /// chat.undo_head()?;
    /// assert!(chat.redo_head()?);
    /// assert_eq!(chat.head()?, Some(question));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn redo_head(&self) -> Result<bool> {
        self.step_head(1)
    }

    fn step_head(&self, by: i64) -> Result<bool> {
        let is_moved = self.storage.write_short(|conn, name| head::step(conn, name, by))?;
        if is_moved {
            // The move is committed: a failed read of the new head must not make it look failed.
            self.emit_changed(|| Change::Head { id: self.storage.head().ok().flatten() });
        }
        Ok(is_moved)
    }

    pub(super) fn move_head(&self, expected: &ExpectedHead, id: Option<&MessageId>) -> Result<()> {
        self.storage.write_short(|conn, name| head::checkout(conn, name, expected, id))?;
        self.emit_changed(|| Change::Head { id: id.cloned() });
        Ok(())
    }

    /// Returns the positions of the head, oldest first.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("?"))?.id;
    /// let answer = chat.append(Message::assistant("!"))?.id;
    /// chat.checkout(&question)?;
    /// chat.undo_head()?;
    ///
    /// let log = chat.head_log()?;
    /// let present = log.iter().find(|entry| entry.is_present).unwrap();
    /// assert_eq!(present.id, Some(answer));
    /// assert_eq!(log.last().unwrap().id, Some(question)); // can be redone
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn head_log(&self) -> Result<Vec<HeadEntry>> {
        self.storage.read(head::log)
    }

    /// Sets a label on a message; an existing label of this name moves there.
    ///
    /// A label cannot be called `head`, nor as a message or a summary of this session: who types it would get that. If a
    /// message with the name of a label is appended later, both stay; the command then takes the name as the id.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let first = chat.append(Message::assistant("Draft 1"))?.id;
    /// let second = chat.append(Message::assistant("Draft 2"))?.id;
    /// chat.label("best", &first)?;
    /// chat.label("best", &second)?; // moved
    ///
    /// assert_eq!(chat.labelled("best")?, Some(second));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the name is empty, too long or means something else,
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `id` is not in this session.
    pub fn label(&self, name: &str, id: &MessageId) -> Result<()> {
        check_label(name)?;
        self.storage.write_short(|conn, this| head::label(conn, this, name, Some(id)))
    }

    /// Removes a label; an unknown one is a no-op.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let draft = chat.append(Message::assistant("Draft 1"))?.id;
    /// chat.label("best", &draft)?;
    /// chat.unlabel("best")?;
    /// chat.unlabel("best")?; // no error
    ///
    /// assert_eq!(chat.labelled("best")?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn unlabel(&self, name: &str) -> Result<()> {
        self.storage.write_short(|conn, this| head::label(conn, this, name, None))
    }

    /// Returns all labels, by name.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let draft = chat.append(Message::assistant("Draft 1"))?.id;
    /// chat.label("sent", &draft)?;
    /// chat.label("best", &draft)?;
    ///
    /// let labels = chat.labels()?;
    /// assert_eq!(labels.iter().map(|label| &*label.name).collect::<Vec<_>>(), ["best", "sent"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn labels(&self) -> Result<Vec<Label>> {
        self.storage.read(|conn, session| {
            let all = head::labels(conn, session.key)?;
            Ok(all.into_iter().map(|(label, _)| label).collect())
        })
    }

    /// Returns the message that a label names.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let draft = chat.append(Message::assistant("Draft 1"))?.id;
    /// chat.label("best", &draft)?;
    ///
    /// assert_eq!(chat.labelled("best")?, Some(draft));
    /// assert_eq!(chat.labelled("worst")?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn labelled(&self, name: &str) -> Result<Option<MessageId>> {
        self.storage.read(|conn, session| head::labelled(conn, session.key, name))
    }

    /// Adds a tag to a message: a flag of a moderator, the state of a review. One that it has is a no-op.
    ///
    /// A fork copies the tags of its messages, an update keeps them, and they go with the message.
    /// [`Store::list_messages`](crate::Store::list_messages) lists the messages with a tag,
    /// [`Search::tag`](crate::Search::tag) searches them, and [`SessionManager::tag`](crate::SessionManager::tag) tags a
    /// session.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let bad = chat.append(Message::user("Buy now!"))?.id;
    /// chat.tag(&bad, "spam")?;
    /// chat.tag(&bad, "reported")?;
    /// assert_eq!(chat.tags(&bad)?, ["reported", "spam"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the tag is empty or too long, or if the message has 100 tags;
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage).
    pub fn tag(&self, id: &MessageId, tag: &str) -> Result<()> {
        check_name("tag", tag)?;
        self.storage.write_short(|conn, name| head::tag(conn, name, id, tag))
    }

    /// Removes a tag of a message; one that it does not have is a no-op.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let bad = chat.append(Message::user("Buy now!"))?.id;
    /// chat.tag(&bad, "spam")?;
    /// chat.untag(&bad, "spam")?;
    /// assert!(chat.tags(&bad)?.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage); as every write.
    pub fn untag(&self, id: &MessageId, tag: &str) -> Result<()> {
        self.storage.write_short(|conn, name| head::untag(conn, name, id, tag))
    }

    /// Returns the tags of a message, sorted.
    ///
    /// [`tag`](Self::tag) has an example.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage); as every read.
    pub fn tags(&self, id: &MessageId) -> Result<Vec<String>> {
        let found = self.storage.read(|conn, session| {
            let Some(at) = message::find(conn, session.key, id)? else { return Ok(None) };
            head::tags_of(conn, at, at).map(Some)
        })?;
        let found = found.ok_or_else(|| self.unknown(id))?;
        Ok(found.into_iter().map(|found| found.tag).collect())
    }

    /// Returns the tags of all messages, in the order in which the messages were appended.
    ///
    /// [`MessageTag`] has an example.
    ///
    /// # Errors
    /// As every read.
    pub fn all_tags(&self) -> Result<Vec<MessageTag>> {
        self.storage.read(|conn, session| {
            let (first, last) = Address::range_of(session.key);
            head::tags_of(conn, first, last)
        })
    }
}
