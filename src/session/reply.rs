//! Answers: another one to the same question, another wording of a message, and replies that are stored while they are
//! streamed.

use super::Session;
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::MessageId;
use crate::message::{Message, Question};
use crate::outcome::Appended;
use crate::storage::sqlite::append;
use crate::view::{ExpectedHead, Parent};

impl Session {
    /// Moves the head back to the question that was answered last, so that the next answer is a sibling of the old one;
    /// returns the question.
    ///
    /// The question is the nearest user message above the head. Hidden messages are no questions, nor are those that
    /// hold only results of tools, nor what a user said between a call and its result: the whole tool round is the
    /// answer. Without an answer between the question and the head this is a no-op that returns
    /// `None`.
    ///
    /// The old answer keeps its place, and [`undo_head`](Self::undo_head) returns to it. A summary that ends below the
    /// question is not visible on the path to it, and is visible again on that of the old answer.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    ///
    /// assert_eq!(chat.retry()?, Some(question.clone()));
    /// chat.append(Message::assistant("cyan"))?;
    /// assert_eq!(chat.branches(&question)?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn retry(&self) -> Result<Option<MessageId>> {
        loop {
            let head = self.storage.head()?;
            let question = match &head {
                Some(head) => self.storage.question_above(head, usize::MAX)?,
                None => None,
            };
            let Some(Question { id, is_answered: true }) = question else { return Ok(None) };
            match self.move_head(&ExpectedHead::At(head), Some(&id)) {
                Err(Error::HeadMoved { .. }) => {}
                moved => {
                    moved?;
                    return Ok(Some(id));
                }
            }
        }
    }

    /// Returns the question that the head answers, or the unanswered one at the head; `None` if there is none.
    ///
    /// It is the one that [`retry`](Self::retry) goes back to; the head is not moved.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// let red = chat.append(Message::assistant("red"))?.id;
    /// assert_eq!(chat.question()?, Some(question));
    /// assert_eq!(chat.head()?, Some(red));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn question(&self) -> Result<Option<MessageId>> {
        let Some(head) = self.storage.head()? else { return Ok(None) };
        Ok(self.storage.question_above(&head, usize::MAX)?.map(|question| question.id))
    }
}

impl Session {
    /// Appends a message as a sibling of another, with the same parent, and moves the head to it.
    ///
    /// The edited message and all below it keep their place; [`update`](Self::update) replaces a content in place. The
    /// sibling of a root is a root. The message needs an id of its own: a known id is a no-op that says so, as in
    /// [`append`](Self::append).
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name three colours"))?.id;
    /// chat.append(Message::assistant("red, green, blue"))?;
    ///
    /// chat.edit(&question, Message::user("Name four colours"))?;
    /// assert_eq!(chat.history()?.len(), 1); // not answered yet
    /// assert_eq!(chat.roots()?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if `id` is not a message of this session; the id of a
    /// summary is not, because a summary is not written by anyone in the conversation. As [`append`](Self::append).
    pub fn edit(&self, id: &MessageId, message: Message) -> Result<Appended> {
        self.append_one(&Parent::SiblingOf(id.clone()), &ExpectedHead::Any, message)
    }
}

impl Session {
    /// Appends a message as an [unfinished](Message::unfinished) one, and moves the head to it.
    ///
    /// Histories for models, and so requests, token counts and compactions, leave it out; raw histories, searches, exports and
    /// forks have it, as every hidden message. It follows the head; if that is unfinished, what that follows: so replies
    /// that are streamed at the same time are siblings, and one that a dead process left is not continued. Only
    /// [`append`](Self::append) goes below it, as below any head. A usage in its metadata
    /// counts at once.
    ///
    /// [`save`](Self::save) replaces its content, [`finish`](Self::finish) shows it, [`discard`](Self::discard) deletes it, and
    /// [`unfinished`](Self::unfinished) lists those that wait for one of these.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("2 + 2?"))?;
    /// let reply = chat.begin(Message::assistant(""))?.id;
    /// chat.save(Message::assistant("It is").with_id(reply.clone()))?;
    /// assert_eq!((chat.history()?.len(), chat.unfinished()?[0].text().as_str()), (1, "It is"));
    ///
    /// chat.finish(Message::assistant("It is 4.").with_id(reply))?;
    /// assert_eq!((chat.history()?.len(), chat.unfinished()?.len()), (2, 0));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn begin(&self, message: Message) -> Result<Appended> {
        let message = message.unfinished();
        loop {
            let head = self.head()?;
            let parent = self.before_unfinished(head.clone())?;
            let parent = parent.map_or(Parent::Root, Parent::Message);
            match self.append_one(&parent, &ExpectedHead::At(head), message.clone()) {
                // Another writer came between.
                Err(Error::HeadMoved { .. }) => {}
                appended => return appended,
            }
        }
    }

    /// Returns the nearest place above that is not unfinished.
    fn before_unfinished(&self, mut place: Option<MessageId>) -> Result<Option<MessageId>> {
        while let Some(id) = &place {
            match self.message(id)?.filter(Message::is_unfinished) {
                Some(unfinished) => place = unfinished.parent,
                None => break,
            }
        }
        Ok(place)
    }

    /// Replaces the content of an unfinished message, which stays unfinished. [`begin`](Self::begin) has an example.
    ///
    /// # Errors
    /// [`Error::Finished`] if someone finished it meanwhile,
    /// [`Error::UnknownMessage`] if it was discarded; nothing is changed then.
    pub fn save(&self, message: Message) -> Result<()> {
        let message = message.unfinished();
        self.settle(&message.id, Some(&message))?;
        self.emit_changed(|| Change::Update { id: message.id });
        Ok(())
    }

    /// Replaces the content of an unfinished message, and shows it from then on. Its usage is recorded in the same
    /// transaction. Its place and its time stay.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.begin(Message::assistant("It is").with_id("reply"))?;
    /// // After a restart: what is there is the reply.
    /// for reply in chat.unfinished()? {
    ///     chat.finish(reply)?;
    /// }
    /// assert_eq!(chat.history()?[0].text(), "It is");
    /// assert!(matches!(chat.discard(&"reply".into()), Err(Error::Finished { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn finish(&self, message: Message) -> Result<()> {
        let message = message.finished();
        self.settle(&message.id, Some(&message))?;
        self.emit_changed(|| Change::Update { id: message.id });
        self.keep_within(None, 1);
        Ok(())
    }

    /// Deletes an unfinished message. If it is the head, the head moves to the message above, also where another reply to that
    /// message was finished meanwhile: [`checkout`](Self::checkout) that one to go on from it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let reply = chat.begin(Message::assistant("It is"))?.id;
    /// chat.discard(&reply)?;
    /// assert_eq!((chat.message(&reply)?, chat.head()?), (None, None));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`save`](Self::save): one that someone finished stays, and one that was discarded is unknown.
    pub fn discard(&self, id: &MessageId) -> Result<()> {
        self.settle(id, None)?;
        self.emit_changed(|| Change::Delete { ids: vec![id.clone()] });
        Ok(())
    }

    /// Returns the unfinished messages of all branches, in order of creation: replies that are streamed now, and those of
    /// processes that died. [`finish`](Self::finish) has an example.
    ///
    /// The library cannot know whether a process still streams into one. If it does, and another one settles it, its next write is
    /// refused.
    ///
    /// # Errors
    /// As every read.
    pub fn unfinished(&self) -> Result<Vec<Message>> {
        self.storage.read(append::unfinished)
    }

    fn settle(&self, id: &MessageId, content: Option<&Message>) -> Result<()> {
        let messages = content.map(std::slice::from_ref).unwrap_or_default();
        self.storage.write_messages(messages, |conn, name, counted, max_bytes| {
            append::settle(conn, name, id, content, counted, max_bytes)
        })
    }
}
