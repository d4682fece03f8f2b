//! The verbs that write messages: append, import, update, delete.

use super::Session;
use crate::compaction::Seen;
use crate::erasure::Erased;
use crate::error::Result;
use crate::event::Change;
use crate::id::MessageId;
use crate::message::Message;
use crate::outcome::{Appended, CountedAppend, Deleted, Updated};
use crate::storage::sqlite::{append, delete, import};
use crate::view::{ExpectedHead, Parent};

impl Session {
    /// Appends a message to the head and moves the head to it.
    ///
    /// When it returns, the message is committed, and every handle and process can read and search
    /// it. A known id is a no-op: the result says so and whether the content differs; the head stays.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = Message::user("hello");
    /// assert!(chat.append(hello.clone())?.is_new);
    /// assert!(!chat.append(hello)?.is_new);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) for an invalid id, or for an
    /// extra field whose name is that of a field of the message or part,
    /// [`Error::MessageTooLarge`](crate::Error::MessageTooLarge) over the store's limit,
    /// [`Error::SessionFull`](crate::Error::SessionFull); as every write:
    /// [`Error::Busy`](crate::Error::Busy), [`Error::ReadOnly`](crate::Error::ReadOnly),
    /// [`Error::DiskFull`](crate::Error::DiskFull).
    pub fn append(&self, message: Message) -> Result<Appended> {
        self.append_one(&Parent::Head, &ExpectedHead::Any, message)
    }

    /// Appends a message to another message and moves the head to it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// let other = chat.append_to(&question, Message::assistant("cyan"))?.id;
    ///
    /// assert_eq!(chat.branches(&question)?.len(), 2);
    /// assert_eq!(chat.head()?, Some(other));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `parent` is not in this session;
    /// as [`append`](Self::append).
    pub fn append_to(&self, parent: &MessageId, message: Message) -> Result<Appended> {
        self.append_one(&Parent::Message(parent.clone()), &ExpectedHead::Any, message)
    }

    /// Appends a message without a parent, which begins another tree, and moves the head to it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("About the door"))?;
    /// chat.append_root(Message::user("About the roof"))?;
    ///
    /// assert_eq!(chat.roots()?.len(), 2);
    /// assert_eq!(chat.history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_root(&self, message: Message) -> Result<Appended> {
        self.append_one(&Parent::Root, &ExpectedHead::Any, message)
    }

    /// Appends a message to the head if the head is at `expected`; `None`: before the first message.
    ///
    /// Of two writers who answer the same message, only one succeeds.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_if_head(None, Message::user("first"))?;
    /// let late = chat.append_if_head(None, Message::user("also first"));
    /// assert!(matches!(late, Err(Error::HeadMoved { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::HeadMoved`](crate::Error::HeadMoved) with the expected and the actual head; as
    /// [`append`](Self::append).
    pub fn append_if_head(
        &self,
        expected: Option<&MessageId>,
        message: Message,
    ) -> Result<Appended> {
        self.append_one(&Parent::Head, &ExpectedHead::At(expected.cloned()), message)
    }

    pub(super) fn append_one(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        message: Message,
    ) -> Result<Appended> {
        self.append_message(parent, expected, message, None)
    }

    /// Appends a message; with the summary of a branch, subscribers get its change, too.
    pub(super) fn append_message(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        message: Message,
        summary: Option<(Change, &Seen)>,
    ) -> Result<Appended> {
        let mut appended = self.append_chain(parent, expected, &[message], summary)?;
        appended.pop().ok_or(crate::Error::Corrupt {
            what: "the storage did not answer for an appended message".to_owned(),
        })
    }

    /// Appends messages as a chain below the head, in one transaction.
    ///
    /// A known id is a no-op, and the chain continues from that message.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let turn = [Message::user("2 + 2?").with_id("q"), Message::assistant("4").with_id("a")];
    /// let answers = chat.append_all(turn)?;
    ///
    /// assert!(answers.iter().all(|answer| answer.is_new));
    /// assert!(chat.is_ancestor(&"q".into(), &"a".into())?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`append`](Self::append); no message is stored then.
    pub fn append_all(&self, messages: impl IntoIterator<Item = Message>) -> Result<Vec<Appended>> {
        self.append_all_to(&Parent::Head, messages)
    }

    /// Appends messages as a chain below a parent, in one transaction.
    ///
    /// ```
    /// use talktree::{Message, Parent, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("2 + 2?"))?.id;
    /// chat.append(Message::assistant("5"))?;
    /// let retry = [Message::assistant("4"), Message::user("Right.")];
    /// chat.append_all_to(&Parent::Message(question), retry)?;
    ///
    /// assert_eq!(chat.history()?[1].text(), "4");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`append`](Self::append); no message is stored then.
    pub fn append_all_to(
        &self,
        parent: &Parent,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Appended>> {
        let messages: Vec<Message> = messages.into_iter().collect();
        self.append_chain(parent, &ExpectedHead::Any, &messages, None)
    }

    /// Appends messages as a chain below the head, in one transaction, if the head is at
    /// `expected`; `None`: before the first message.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let turn = || [Message::user("hello"), Message::assistant("hi")];
    /// chat.append_all_if_head(None, turn())?;
    /// assert!(matches!(chat.append_all_if_head(None, turn()), Err(Error::HeadMoved { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::HeadMoved`](crate::Error::HeadMoved) if the head is elsewhere; nothing is stored. As
    /// [`append_all`](Self::append_all).
    pub fn append_all_if_head(
        &self,
        expected: Option<&MessageId>,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Appended>> {
        self.append_all_to_if_head(&Parent::Head, expected, messages)
    }

    /// Appends messages as a chain below a parent, in one transaction, if the head is at `expected`; `None`: before the first
    /// message. So the end of a conversation is replaced: what was there stays, as a branch.
    ///
    /// ```
    /// use talktree::{Error, Message, Parent, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// let red = chat.append(Message::assistant("red"))?.id;
    /// let cyan = || [Message::assistant("cyan")];
    /// chat.append_all_to_if_head(&Parent::Message(question.clone()), Some(&red), cyan())?;
    ///
    /// assert_eq!(chat.history()?[1].text(), "cyan");
    /// let late = chat.append_all_to_if_head(&Parent::Message(question), Some(&red), cyan());
    /// assert!(matches!(late, Err(Error::HeadMoved { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`append_all_to`](Self::append_all_to) and [`append_all_if_head`](Self::append_all_if_head).
    pub fn append_all_to_if_head(
        &self,
        parent: &Parent,
        expected: Option<&MessageId>,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Appended>> {
        let messages: Vec<Message> = messages.into_iter().collect();
        self.append_chain(parent, &ExpectedHead::At(expected.cloned()), &messages, None)
    }

    /// Appends messages, or one that is a summary of what was seen: this change is sent to subscribers after the append.
    fn append_chain(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
        summary: Option<(Change, &Seen)>,
    ) -> Result<Vec<Appended>> {
        for message in messages {
            message.id.check_for_writing()?;
        }
        let seen = summary.as_ref().map(|(_, seen)| *seen);
        let CountedAppend { appended, visible_tokens } =
            self.storage.append(parent, expected, messages, seen)?;
        let added = appended.iter().filter(|appended| appended.is_new);
        let count = added.clone().count();
        if count > 0 {
            if *parent != Parent::Head {
                // The head has moved to another branch.
                self.compaction.note_change();
            }
            self.emit(|| Change::Append { ids: added.map(|it| it.id.clone()).collect() });
            if let Some((summary, _)) = summary {
                self.emit(|| summary);
            }
            self.keep_within(visible_tokens, count);
        }
        Ok(appended)
    }

    /// Stores a message from elsewhere unchanged, with its time.
    ///
    /// A message that was imported before is not imported again, even if it was deleted since; if it is there, the result says
    /// whether its content differs. The head moves to a new message if the head is at `parent`, and stays otherwise.
    ///
    /// ```
    /// use chrono::DateTime;
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let then = DateTime::UNIX_EPOCH;
    /// let old = Message::user("hello").with_id("m1").at(then);
    ///
    /// assert!(chat.import_message(None, old.clone())?.is_new);
    /// assert!(!chat.import_message(None, old)?.is_new);
    /// assert_eq!(chat.history()?[0].created_at, then);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `parent` is not in this session;
    /// as [`append`](Self::append).
    pub fn import_message(&self, parent: Option<&MessageId>, message: Message) -> Result<Appended> {
        let id = message.id.clone();
        let imported = self.import_messages([(parent.cloned(), message)])?;
        Ok(imported.into_iter().next().unwrap_or_else(|| Appended::known(id, false)))
    }

    /// Stores messages from elsewhere unchanged, each with its parent, in one transaction, and returns the outcome of each. A
    /// parent comes before its children.
    ///
    /// [`Store::import`](crate::Store::import) imports all that sessions are.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = Message::user("2 + 2?").with_id("q");
    /// let answer = Message::assistant("4").with_id("a");
    /// let messages = [(None, question), (Some("q".into()), answer)];
    /// assert!(chat.import_messages(messages.clone())?.iter().all(|imported| imported.is_new));
    ///
    /// chat.delete([&"a".into()])?;
    /// assert!(!chat.import_messages(messages)?[1].is_new); // it stays deleted
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`import_message`](Self::import_message); no message is stored then.
    pub fn import_messages(
        &self,
        messages: impl IntoIterator<Item = (Option<MessageId>, Message)>,
    ) -> Result<Vec<Appended>> {
        let placed = |(parent, message)| Message { parent, ..message };
        let messages: Vec<Message> = messages.into_iter().map(placed).collect();
        for message in &messages {
            message.id.check_for_writing()?;
        }
        let counted = self.storage.counted(&messages);
        let max_bytes = self.storage.max_message_bytes();
        let imported = self
            .storage
            .write(|conn, name| import::import(conn, name, &messages, &counted, max_bytes))?;
        self.storage.appended(imported.len());
        let added = imported.iter().filter(|imported| imported.is_new).count();
        if added > 0 {
            self.emit_changed(|| Change::Import { messages: added as u64 });
        }
        Ok(imported)
    }

    /// Returns whether a record of this name was imported, even if its message was deleted since. The name is the id of the
    /// message, or what [`Record::Message`](crate::Record::Message) gives.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.import_message(None, Message::user("hello").with_id("m1"))?;
    /// assert!(chat.is_imported("m1")?);
    /// assert!(!chat.is_imported("m2")?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every
    /// read.
    pub fn is_imported(&self, record: &str) -> Result<bool> {
        self.storage.read(|conn, session| import::is_imported(conn, session, record))
    }

    /// Replaces the content of a message in place: role, parts, metadata, extra fields.
    ///
    /// Equal content is a no-op. The result lists the compactions that cover the message. An unfinished message stays unfinished
    /// until [`finish`](Self::finish) shows it. If the session, or one that continues it, has the name that
    /// [`Title`](crate::records::Title) makes from the message, the name becomes that of the new content.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::assistant("The an").with_id("reply"))?;
    /// chat.update(Message::assistant("The answer is 4.").with_id("reply"))?;
    /// assert_eq!(chat.history()?[0].text(), "The answer is 4.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if its id is unknown; as
    /// [`append`](Self::append).
    pub fn update(&self, message: Message) -> Result<Updated> {
        let messages = std::slice::from_ref(&message);
        let updated = self.storage.write_messages(messages, |conn, name, counted, max_bytes| {
            append::update(conn, name, &message, counted, max_bytes)
        })?;
        if updated.is_changed {
            self.emit_changed(|| Change::Update { id: message.id });
        }
        Ok(updated)
    }

    /// Replaces the content of a message, or appends it if its id is unknown. A reply that streams in is for
    /// [`begin`](Self::begin): a request has what was upserted.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// for text in ["Milk", "Milk, bread"] {
    ///     chat.upsert(Message::user(text).with_id("list"))?;
    /// }
    /// let history = chat.history()?;
    /// assert_eq!((history.len(), history[0].text().as_str()), (1, "Milk, bread"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn upsert(&self, message: Message) -> Result<Updated> {
        message.id.check_for_writing()?;
        let messages = std::slice::from_ref(&message);
        let updated = self.storage.write_messages(messages, |conn, name, counted, max_bytes| {
            append::upsert(conn, name, &message, counted, max_bytes)
        })?;
        self.storage.appended(1);
        if updated.is_new {
            self.emit(|| Change::Append { ids: vec![message.id] });
            self.keep_within(None, 1);
        } else if updated.is_changed {
            self.emit_changed(|| Change::Update { id: message.id });
        }
        Ok(updated)
    }

    /// Deletes messages.
    ///
    /// A message with children leaves a tombstone, so the tree keeps its shape. The result lists the
    /// compactions that cover a deleted message, that disappeared, or that are visible again. A name that
    /// [`Title`](crate::records::Title) makes from the message goes with it, and so does a fork point, in the session and in
    /// those that continue it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let secret = chat.append(Message::user("My password is ..."))?.id;
    /// let reply = chat.append(Message::assistant("Noted."))?.id;
    /// chat.delete([&secret])?;
    /// assert_eq!(chat.raw_history()?.iter().map(|m| &m.id).collect::<Vec<_>>(), [&reply]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if one is not in this session; no
    /// message is deleted then.
    pub fn delete<'a>(&self, ids: impl IntoIterator<Item = &'a MessageId>) -> Result<Deleted> {
        let ids: Vec<MessageId> = ids.into_iter().cloned().collect();
        let deleted = self.storage.delete(&ids)?;
        self.emit_deleted(&deleted);
        Ok(deleted)
    }

    /// Erases messages: no byte of them is left in the file, in its log or in a later backup.
    ///
    /// [`Store::erase`](crate::Store::erase) describes the cost, and also erases branches, sessions, owners and keys.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let chat = Store::open(&path)?.session("s")?;
    /// let secret = chat.append(Message::user("My password is 7-1-9-4-2."))?.id;
    /// let reply = chat.append(Message::assistant("Noted."))?.id;
    /// chat.erase([&secret])?.prove()?;
    /// assert_eq!(chat.raw_history()?.iter().map(|m| &m.id).collect::<Vec<_>>(), [&reply]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if one is not in this session; no message is erased then.
    /// As every write.
    pub fn erase<'a>(&self, ids: impl IntoIterator<Item = &'a MessageId>) -> Result<Erased> {
        let ids: Vec<MessageId> = ids.into_iter().cloned().collect();
        self.storage.erase(&ids, |erased| {
            let own = erased.messages.iter().filter(|(session, _)| session == self.id());
            self.emit_changed(|| Change::Delete { ids: own.map(|(_, id)| id.clone()).collect() });
        })
    }

    /// Deletes a message and everything below it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Shall we?"))?.id;
    /// let answer = chat.append(Message::assistant("No."))?.id;
    /// let reply = chat.append(Message::user("Why not?"))?.id;
    ///
    /// assert_eq!(chat.delete_branch(&answer)?.messages.len(), 2);
    /// assert_eq!(chat.message(&reply)?, None);
    /// assert_eq!(chat.head()?, Some(question));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if it is not in this session.
    pub fn delete_branch(&self, id: &MessageId) -> Result<Deleted> {
        let deleted = self.storage.write(|conn, name| delete::delete_branch(conn, name, id))?;
        self.emit_deleted(&deleted);
        Ok(deleted)
    }

    fn emit_deleted(&self, deleted: &Deleted) {
        if !deleted.messages.is_empty() {
            self.emit_changed(|| Change::Delete { ids: deleted.messages.clone() });
        }
    }

    /// Deletes all messages, compactions and labels of the session; the session itself stays.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("s")?;
    /// chat.append(Message::user("hello"))?;
    /// chat.clear()?;
    ///
    /// assert!(chat.history()?.is_empty());
    /// assert_eq!(store.sessions()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn clear(&self) -> Result<()> {
        self.storage.write(delete::clear)?;
        self.emit_changed(|| Change::Clear);
        Ok(())
    }
}
