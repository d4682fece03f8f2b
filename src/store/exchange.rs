//! What leaves a store and comes into it: sessions record by record; also all other data of a person, and snapshots to write
//! from.

use std::io::Write;

use super::Store;
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::{SessionId, check_name};
use crate::message::Json;
use crate::outcome::Record;
use crate::session::{Path, Session};
use crate::storage::sqlite::{PersonalData, placed};

impl Store {
    /// Calls `write` with the store as it is now, to be read only, and writes to `output` what it wrote.
    ///
    /// Others write meanwhile, and nothing of that is read. `output` receives its first byte when `write` is done, and may take
    /// its time: no snapshot is open then. What exceeds 1 MiB is in a temporary file meanwhile, which has no name and the
    /// encryption of the store. A snapshot of a store in memory is a copy.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("hi"))?;
    /// let mut page = Vec::new();
    /// store.export(&mut page, |snapshot, page| {
    ///     store.session("s")?.append(Message::user("too late"))?;
    ///     page.write_all(snapshot.session("s")?.history()?[0].text().as_bytes()).unwrap();
    ///     assert_eq!(snapshot.session("s")?.path_length()?, 1);
    ///     Ok(())
    /// })?;
    /// assert_eq!(page, b"hi");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `write`; [`Error::Io`] if a write to `output` fails; [`Error::Interrupted`]. An interrupt ends the reads of the
    /// snapshot, too.
    pub fn export<T>(
        &self,
        output: &mut impl Write,
        write: impl FnOnce(&Self, &mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        self.database.spool().collect(output, |spool| write(&self.snapshot()?, spool))
    }

    /// Stores sessions from elsewhere as they are, in one transaction: all of it or, after an error, nothing.
    ///
    /// The record of a session comes before the others of it; another one of the same session sets more of its details. A session
    /// that is there is continued. A record that was imported before is passed over, even if its message was deleted since, or
    /// its compaction, label, tag or elision removed. A message whose id is known stays as it is, and so does a label. The
    /// children of a message that is not stored follow the nearest one above. The head moves to a message that is added below
    /// it, and where a record says. What the store refuses is left out.
    ///
    /// Returns how many messages were added, and the numbers of the records that were refused, from 0, with the reasons. Of a
    /// session that is refused this is the record of the session alone. The records are read inside the transaction, so that a
    /// long session need not be in memory. Meanwhile other writes wait; one by what reads the records is
    /// [`Error::InvalidValue`].
    ///
    /// ```
    /// use talktree::{Message, Record, SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let question = Message::user("2 + 2?").with_id("q");
    /// let mut answer = Message::assistant("4").with_id("a");
    /// answer.parent = Some("q".into());
    /// let records = || [
    ///     Ok(Record::Session { id: "s".into(), details: SessionDetails::named("Sums") }),
    ///     Ok(Record::Message { below: None, message: question.clone(), name: None }),
    ///     Ok(Record::Message { below: None, message: answer.clone(), name: None }),
    /// ];
    /// assert_eq!(store.import(records())?.0, 2);
    ///
    /// let chat = store.session("s")?;
    /// chat.delete([&"a".into()])?;
    /// assert_eq!(store.import(records())?.0, 0); // it stays deleted
    /// assert_eq!(chat.history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the records; [`Error::Interrupted`]; as every write. Refused are a session that was erased so that it
    /// [cannot be imported](crate::Erasure::forbid_import), or that is in the trash; what names a message that is not there; a
    /// message that is too large; and what [`Session::import_compaction`], [`Session::label`] and [`Session::set_details`]
    /// refuse.
    pub fn import(
        &self,
        records: impl IntoIterator<Item = Result<Record>>,
    ) -> Result<(u64, Vec<(u64, Error)>)> {
        let (sessions, refused) = self.database.import(&mut records.into_iter())?;
        let mut added = 0;
        for (id, messages) in sessions.into_iter().filter(|(_, added)| *added > 0) {
            added += messages;
            // A store has no error handler.
            self.events.emit(&id, || Change::Import { messages }, |_| {});
        }
        Ok((added, refused))
    }

    /// Returns the ids of all sessions, those in the trash included, each with the damage if its row cannot be read: for the
    /// rescue of a damaged store.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("hi"))?;
    /// assert!(store.session_ids()?[0].1.is_ok());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read, but not for damaged rows.
    pub fn session_ids(&self) -> Result<Vec<(SessionId, Result<()>)>> {
        self.database.session_ids()
    }

    /// Reads the data of an owner besides sessions, each piece as its kind and a JSON object: `text` (a version of a text of
    /// the owner's context blocks), `usage`, `item` (that waits in an inbox), `transcript`, and after each its `entry` objects.
    ///
    /// ```
    /// use talktree::{InboxItem, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.inbox("mail").receive(&[InboxItem::new("7", "ann", "Hello.").owner("ann")], None)?;
    /// let mut kinds = Vec::new();
    /// store.data_of_owner("ann", |kind, data| {
    ///     kinds.push((kind, data.value()["body"].clone()));
    ///     Ok(())
    /// })?;
    /// assert_eq!(kinds, [("item", "Hello.".into())]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the owner is empty; those of `with`, and of every read.
    pub fn data_of_owner(
        &self,
        owner: &str,
        mut with: impl FnMut(&'static str, Json) -> Result<()>,
    ) -> Result<()> {
        check_name("owner", owner)?;
        self.database.personal_data(PersonalData::Owner(owner), &mut with)
    }

    /// Reads the usage of the answers to an author, as [`data_of_owner`](Self::data_of_owner) reads that of an owner.
    /// [`list_messages`](Self::list_messages) finds what the author wrote.
    ///
    /// ```
    /// use talktree::{Author, Message, Store, Usage};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("group")?;
    /// chat.append(Message::user("hi").from(&Author::new("ann")))?;
    /// let usage = Usage { output: 5, ..Usage::default() };
    /// chat.append(Message::assistant("ho").with_usage(&usage))?;
    /// let mut tokens = 0;
    /// store.data_of_author("ann", |_, usage| {
    ///     tokens += usage.value()["output"].as_u64().unwrap_or(0);
    ///     Ok(())
    /// })?;
    /// assert_eq!(tokens, 5);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`data_of_owner`](Self::data_of_owner).
    pub fn data_of_author(
        &self,
        author: &str,
        mut with: impl FnMut(&'static str, Json) -> Result<()>,
    ) -> Result<()> {
        check_name("author", author)?;
        self.database.personal_data(PersonalData::Author(author), &mut with)
    }
}

impl Path {
    /// Calls `write` with the path as it is now, as [`Store::export`] does with a store.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("hi"))?;
    /// let mut page = Vec::new();
    /// let count = chat.path().export(&mut page, |path, _| Ok(path.iter().count()))?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::export`].
    pub fn export<T>(
        &self,
        output: &mut impl Write,
        write: impl FnOnce(&Self, &mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        self.session().spool().collect(output, |spool| write(&self.snapshot()?, spool))
    }
}

impl Session {
    /// Calls `write` with the session as it is now, as [`Store::export`] does with a store.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("hi"))?;
    /// let mut page = Vec::new();
    /// let head = chat.export(&mut page, |chat, _| chat.head())?;
    /// assert_eq!(head, chat.head()?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::export`].
    pub fn export<T>(
        &self,
        output: &mut impl Write,
        write: impl FnOnce(&Self, &mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        self.spool().collect(output, |spool| write(&self.snapshot()?, spool))
    }

    /// Calls `with` for each record of the session: its details, every branch in order of creation, hidden messages,
    /// compactions, elisions, labels, tags of messages, and the head.
    ///
    /// Two sessions with equal records show the same on every path. They do not have the content of context blocks, the frozen
    /// prompt, the log of the head and what was imported. If others write meanwhile, read the records of a snapshot:
    /// [`export`](Self::export).
    ///
    /// ```
    /// use talktree::{Message, Record, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all([Message::user("hi"), Message::assistant("ho")])?;
    /// let mut messages = 0;
    /// chat.records(|record| {
    ///     messages += u32::from(matches!(record, Record::Message { .. }));
    ///     Ok(())
    /// })?;
    /// assert_eq!(messages, 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if the session was never written to; those of `with`, and of every read.
    pub fn records(&self, mut with: impl FnMut(Record) -> Result<()>) -> Result<()> {
        let unknown = || Error::UnknownSession { id: self.id().clone() };
        let info = self.info()?.ok_or_else(unknown)?;
        // Read before the messages, so each refers to messages that are read.
        let placed = self.storage().read(|conn, session| placed::compactions(conn, session.key))?;
        let labels = self.labels()?;
        let tags = self.all_tags()?;
        let elisions = self.context().store().elisions()?;
        let head = self.head()?;

        with(Record::Session { id: info.id.clone(), details: info.details() })?;
        let mut tombstones = placed.tombstones.into_iter();
        let mut last = 0;
        for message in self.all_messages() {
            let message = message?;
            let below = placed.above.get(&message.id).copied();
            // They are in the order of creation, as the messages are.
            while last < below.unwrap_or(0) {
                tombstones.next().map_or(Ok(()), &mut with)?;
                last += 1;
            }
            with(Record::Message { below, message, name: None })?;
        }
        placed.compactions.into_iter().try_for_each(&mut with)?;
        for elision in elisions {
            let (message, call, marker) = (elision.message, elision.call, elision.marker);
            with(Record::Elision { message, call, marker })?;
        }
        labels.into_iter().try_for_each(|label| with(Record::Label(label)))?;
        tags.into_iter().try_for_each(|tag| with(Record::Tag(tag)))?;
        with(Record::Head { id: head })
    }

    /// Reads the data of the session besides its records, as [`Store::data_of_owner`] does: `text` (a version of a text of its
    /// own context blocks), `prompt` (the frozen one), and `imported` (the name of an imported record).
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.context().add("notes", Block::stored())?;
    /// chat.context().set("notes", "Likes tea.")?;
    /// chat.data(|kind, data| {
    ///     assert_eq!((kind, data.value()["content"].as_str()), ("text", Some("Likes tea.")));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `with`, and of every read.
    pub fn data(&self, mut with: impl FnMut(&'static str, Json) -> Result<()>) -> Result<()> {
        self.storage().database().personal_data(PersonalData::Session(self.id()), &mut with)
    }
}
