//! Unfinished messages: replies while they are streamed.

use super::Session;
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::MessageId;
use crate::message::Message;
use crate::outcome::Appended;
use crate::view::{ExpectedHead, Parent};

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
        self.storage.settle(&message.id, Some(&message))?;
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
        self.storage.settle(&message.id, Some(&message))?;
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
        self.storage.settle(id, None)?;
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
        self.storage.unfinished()
    }
}
