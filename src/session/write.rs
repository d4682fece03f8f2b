//! The verbs that write messages.

use super::Session;
use crate::error::Result;
use crate::event::Change;
use crate::id::MessageId;
use crate::message::Message;
use crate::outcome::{Appended, CountedAppend, Deleted, ImportRecord, Imported, Updated, Upserted};
use crate::view::{ExpectedHead, Parent};

impl Session {
    /// Attaches a message to the head and moves the head to it.
    ///
    /// Committed, readable and searchable by every handle and process when it returns. A message
    /// whose id stands already is left as it is, and the answer says so; the head stays.
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
    /// [`Error::InvalidName`](crate::Error::InvalidName) for an id that may not be used, or a
    /// further field with the name of one that the message or its part has itself,
    /// [`Error::MessageTooLarge`](crate::Error::MessageTooLarge) over the store's limit,
    /// [`Error::SessionFull`](crate::Error::SessionFull); as every write:
    /// [`Error::Busy`](crate::Error::Busy), [`Error::ReadOnly`](crate::Error::ReadOnly),
    /// [`Error::DiskFull`](crate::Error::DiskFull).
    pub fn append(&self, message: Message) -> Result<Appended> {
        self.append_one(&Parent::Head, &ExpectedHead::Any, message)
    }

    /// Attaches a message to another and moves the head to it.
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

    /// Begins a further tree in the session and moves the head to it.
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

    /// Attaches a message to the head if the head is where the caller believes it to be.
    ///
    /// So that two writers who both answer one message do not chain their answers.
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
    /// [`Error::HeadMoved`](crate::Error::HeadMoved) with both places; as [`append`](Self::append).
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
        let mut appended = self.append_chain(parent, expected, &[message])?;
        appended.pop().ok_or(crate::Error::Corrupt {
            what: "the storage did not answer for an appended message".to_owned(),
        })
    }

    /// Attaches messages one below the other, beginning at the head, in one transaction.
    ///
    /// Over a message that stands already the chain goes on from it.
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
    /// As [`append`](Self::append); then none of them is stored.
    pub fn append_all(&self, messages: impl IntoIterator<Item = Message>) -> Result<Vec<Appended>> {
        self.append_all_to(&Parent::Head, messages)
    }

    /// Attaches messages one below the other, beginning at a place, in one transaction.
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
    /// As [`append`](Self::append); then none of them is stored.
    pub fn append_all_to(
        &self,
        parent: &Parent,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Appended>> {
        let messages: Vec<Message> = messages.into_iter().collect();
        self.append_chain(parent, &ExpectedHead::Any, &messages)
    }

    /// Appends messages in one transaction, chained below the head, if the head is still at
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
        let messages: Vec<Message> = messages.into_iter().collect();
        self.append_chain(&Parent::Head, &ExpectedHead::At(expected.cloned()), &messages)
    }

    fn append_chain(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<Vec<Appended>> {
        for message in messages {
            message.id.check_for_writing()?;
        }
        let CountedAppend { appended, visible_tokens } =
            self.provider.append_counted(parent, expected, messages)?;
        if appended.iter().any(|appended| appended.is_new) {
            self.tell(|| Change::Append {
                ids: appended.iter().filter(|a| a.is_new).map(|a| a.id.clone()).collect(),
            });
            self.keep_within(visible_tokens);
        }
        Ok(appended)
    }

    /// Stores one historical message as it is, its time included.
    ///
    /// The head follows if it stands at `parent`, and stays otherwise.
    ///
    /// ```
    /// use chrono::DateTime;
    /// use talktree::{Imported, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let then = DateTime::UNIX_EPOCH;
    /// let old = Message::user("hello").with_id("m1").at(then);
    ///
    /// assert_eq!(chat.import_message(None, old.clone())?, Imported::Added);
    /// assert_eq!(chat.import_message(None, old)?, Imported::Known);
    /// assert_eq!(chat.history()?[0].created_at, then);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if `parent` is not in this session;
    /// as [`append`](Self::append).
    pub fn import_message(&self, parent: Option<&MessageId>, message: Message) -> Result<Imported> {
        let record = message.id.to_string();
        let record = ImportRecord { record, parent: parent.cloned(), message };
        let imported = self.import_messages(&[record])?;
        Ok(imported.first().copied().unwrap_or(Imported::Known))
    }

    /// Stores historical messages as they are, in one transaction, and answers for each.
    ///
    /// A record that was imported before is not imported again, also when its message was deleted
    /// since. Parents come before their children. The head follows what is attached where it
    /// stands.
    ///
    /// ```
    /// use talktree::{Imported, ImportRecord, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = Message::user("2 + 2?").with_id("q");
    /// let answer = Message::assistant("4").with_id("a");
    /// let records = [
    ///     ImportRecord { record: "line 1".to_owned(), parent: None, message: question },
    ///     ImportRecord { record: "line 2".to_owned(), parent: Some("q".into()), message: answer },
    /// ];
    /// assert_eq!(chat.import_messages(&records)?, [Imported::Added; 2]);
    ///
    /// chat.delete([&"a".into()])?;
    /// assert_eq!(chat.import_messages(&records)?, [Imported::Known; 2]); // it stays deleted
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`import_message`](Self::import_message); then none of them is stored.
    pub fn import_messages(&self, records: &[ImportRecord]) -> Result<Vec<Imported>> {
        for record in records {
            record.message.id.check_for_writing()?;
        }
        let imported = self.provider.import(records)?;
        let added = imported.iter().filter(|imported| **imported == Imported::Added).count();
        if added > 0 {
            self.tell(|| Change::Import { messages: added as u64 });
        }
        Ok(imported)
    }

    /// Returns whether a record of this name was imported, also when its message was deleted since.
    ///
    /// ```
    /// use talktree::{ImportRecord, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let message = Message::user("hello");
    /// let record = ImportRecord { record: "line 1".to_owned(), parent: None, message };
    /// chat.import_messages(&[record])?;
    /// assert!(chat.is_imported("line 1")?);
    /// assert!(!chat.is_imported("line 2")?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) if the storage imports nothing; as every
    /// read.
    pub fn is_imported(&self, record: &str) -> Result<bool> {
        self.provider.is_imported(record)
    }

    /// Replaces the content of a message in place: role, parts, metadata, further fields.
    ///
    /// What is the same is not written. The answer names the summaries that cover the message.
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
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if no message of its id stands; as
    /// [`append`](Self::append).
    pub fn update(&self, message: Message) -> Result<Updated> {
        let updated = self.provider.update(&message)?;
        if updated.is_changed {
            self.tell(|| Change::Update { id: message.id });
        }
        Ok(updated)
    }

    /// Replaces the content of a message, or appends it if no message of its id stands.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// for text in ["The an", "The answer is 4."] {
    ///     chat.upsert(Message::assistant(text).with_id("reply"))?;
    /// }
    /// let history = chat.history()?;
    /// assert_eq!((history.len(), history[0].text().as_str()), (1, "The answer is 4."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn upsert(&self, message: Message) -> Result<Upserted> {
        message.id.check_for_writing()?;
        let upserted = self.provider.upsert(&message)?;
        match &upserted {
            Upserted::Appended(_) => {
                self.tell(|| Change::Append { ids: vec![message.id] });
                self.keep_within(None);
            }
            Upserted::Updated(updated) if updated.is_changed => {
                self.tell(|| Change::Update { id: message.id });
            }
            Upserted::Updated(_) => {}
        }
        Ok(upserted)
    }

    /// Deletes messages.
    ///
    /// A message with children leaves a tombstone, so the tree stays as it is and what hangs below
    /// it keeps its whole history. The answer names the compactions this touches.
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
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if one is not in this session; then
    /// none is deleted.
    pub fn delete<'a>(&self, ids: impl IntoIterator<Item = &'a MessageId>) -> Result<Deleted> {
        let ids: Vec<MessageId> = ids.into_iter().cloned().collect();
        let deleted = self.provider.delete(&ids)?;
        self.tell_deleted(&deleted);
        Ok(deleted)
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
        let deleted = self.provider.delete_branch(id)?;
        self.tell_deleted(&deleted);
        Ok(deleted)
    }

    fn tell_deleted(&self, deleted: &Deleted) {
        if !deleted.messages.is_empty() {
            self.tell(|| Change::Delete { ids: deleted.messages.clone() });
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
        self.provider.clear()?;
        self.tell(|| Change::Clear);
        Ok(())
    }
}
