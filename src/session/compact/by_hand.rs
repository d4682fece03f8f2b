//! Compactions by hand: adding, removing, listing and expanding them.

use super::{Compacted, Session, compacted};
use crate::compaction::{Compaction, CompactionStatus, SummaryRefused, is_blank};
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::{CompactionId, MessageId};
use crate::message::{Json, Message};
use crate::storage::sqlite::{Place, PlanReader, catalog, compaction};
use crate::view::Order;

impl Session {
    /// Replaces the range from `first` to `last` by a summary when a history is read. The result says whether the history
    /// shows it.
    ///
    /// Right after it was added, `at(last)` shows the summary. So does every path that holds `last`, unless a
    /// compaction that ends further down covers that message. Stored messages do not change. The range
    /// may contain summaries: as an end, the id of a summary includes its whole range, and the new
    /// compaction then contains the older one. So adding a compaction never lengthens a history.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Can we deploy on Friday?"))?.id;
    /// let answer = chat.append(Message::assistant("Yes, after the backup."))?.id;
    /// let thanks = chat.append(Message::user("Thanks!"))?.id;
    ///
    /// let compaction = chat.add_compaction("They deploy on Friday.", &question, &answer)?.id;
    /// assert_eq!(chat.history()?[0].text(), "They deploy on Friday.");
    /// chat.add_compaction("All is settled.", &compaction.as_message(), &thanks)?; // nests
    /// assert_eq!(chat.history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SummaryRefused`] if it is blank; [`Error::UnknownMessage`] or
    /// [`Error::UnknownCompaction`] if an end is not in this session; [`Error::NotAncestor`] if `first`
    /// is not on the path to `last`; [`Error::InsideSummary`] if a shown summary covers an end;
    /// [`Error::NothingVisible`] if no message of the range is visible to a model.
    pub fn add_compaction(
        &self,
        summary: impl Into<String>,
        first: &MessageId,
        last: &MessageId,
    ) -> Result<Compacted> {
        self.add(summary.into(), first, last, None)
    }

    /// Adds a compaction, as [`add_compaction`](Self::add_compaction) does, with details to store with
    /// it.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let maker = json!({"model": "small"});
    /// let compaction = chat.add_compaction_with("A greeting.", &hello, &hello, maker)?.id;
    ///
    /// let details = chat.compaction(&compaction)?.details.unwrap();
    /// assert_eq!(details.value()["model"], "small");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`add_compaction`](Self::add_compaction).
    pub fn add_compaction_with(
        &self,
        summary: impl Into<String>,
        first: &MessageId,
        last: &MessageId,
        details: impl Into<Json>,
    ) -> Result<Compacted> {
        self.add(summary.into(), first, last, Some(details.into()))
    }

    fn add(
        &self,
        summary: String,
        first: &MessageId,
        last: &MessageId,
        details: Option<Json>,
    ) -> Result<Compacted> {
        self.store(&Compaction { details, ..Compaction::new(summary, first.clone(), last.clone()) })
    }

    fn store(&self, compaction: &Compaction) -> Result<Compacted> {
        check(compaction)?;
        let (stored, status) = self.storage.add_compaction(compaction)?;
        self.emit_changed(|| compacted(&stored));
        Ok(Compacted {
            messages: stored.count as usize,
            tokens_before: stored.tokens_before,
            tokens_after: stored.tokens_after,
            id: stored.id,
            status,
        })
    }

    /// Adds a compaction from elsewhere with its id and time; a known id is a no-op.
    ///
    /// Figures of 0 are computed; with a `count` of 0, so is `nested`.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let (here, there) = (store.session("here")?, store.session("there")?);
    /// let hello = Message::user("hello").with_id("m1");
    /// here.append(hello.clone())?;
    /// there.append(hello)?;
    ///
    /// let compaction = there.add_compaction("A greeting.", &"m1".into(), &"m1".into())?.id;
    /// here.import_compaction(&there.compaction(&compaction)?)?;
    /// assert_eq!(here.compaction(&compaction)?, there.compaction(&compaction)?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`add_compaction`](Self::add_compaction).
    pub fn import_compaction(&self, compaction: &Compaction) -> Result<()> {
        self.store(compaction).map(drop)
    }

    /// Removes a compaction; the range it covered shows again.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let compaction = chat.add_compaction("A greeting.", &hello, &hello)?.id;
    ///
    /// chat.remove_compaction(&compaction)?;
    /// assert_eq!(chat.history()?[0].text(), "hello");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session.
    pub fn remove_compaction(&self, id: &CompactionId) -> Result<()> {
        self.storage.write(|conn, name| {
            let session = name.find(conn)?.map(|session| session.key);
            let span = compaction::require(conn, session, name, id)?;
            compaction::remove(conn, span.key)?;
            catalog::touch_view(conn, span.last.session())
        })?;
        self.emit_changed(|| Change::RemoveCompaction { id: id.clone() });
        Ok(())
    }

    /// Returns all compactions of the session, in order of creation.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let reply = chat.append(Message::assistant("hi"))?.id;
    /// let inner = chat.add_compaction("A greeting.", &hello, &hello)?.id;
    /// let outer = chat.add_compaction("They greeted.", &hello, &reply)?.id;
    ///
    /// let ids: Vec<_> = chat.compactions()?.into_iter().map(|compaction| compaction.id).collect();
    /// assert_eq!(ids, [inner, outer]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn compactions(&self) -> Result<Vec<Compaction>> {
        self.storage.read(|conn, session| {
            let all = compaction::all(conn, session.key)?;
            Ok(all.into_iter().map(|(_, compaction)| compaction).collect())
        })
    }

    /// Returns one compaction.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let reply = chat.append(Message::assistant("hi"))?.id;
    /// let id = chat.add_compaction("They greeted.", &hello, &reply)?.id;
    ///
    /// let compaction = chat.compaction(&id)?;
    /// assert_eq!((compaction.first, compaction.last, compaction.count), (hello, reply, 2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session.
    pub fn compaction(&self, id: &CompactionId) -> Result<Compaction> {
        self.storage
            .read_compaction(id, |conn, _, span| compaction::by_key(conn, span.key))?
            .ok_or_else(|| self.storage.unknown_compaction(id))
    }

    /// Returns what would show if the compaction were removed, oldest first: messages, and the
    /// summaries nested in it, which can be expanded in turn.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let reply = chat.append(Message::assistant("hi"))?.id;
    /// let inner = chat.add_compaction("A greeting.", &hello, &hello)?.id;
    /// let outer = chat.add_compaction("They greeted.", &inner.as_message(), &reply)?.id;
    ///
    /// let texts = |messages: Vec<Message>| messages.iter().map(Message::text).collect::<Vec<_>>();
    /// assert_eq!(texts(chat.history()?), ["They greeted."]);
    /// assert_eq!(texts(chat.expand(&outer)?), ["A greeting.", "hi"]);
    /// assert_eq!(texts(chat.expand(&inner)?), ["hello"]);
    /// assert_eq!(texts(chat.expand_raw(&outer)?), ["hello", "hi"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session.
    pub fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.storage.read_compaction(id, |conn, _, span| {
            let plan = compaction::below(conn, span)?;
            PlanReader::new(plan, Order::OldestFirst, true).rest(conn)
        })
    }

    /// Returns a page of what [`expand`](Self::expand) returns: at most `limit` items, those after this message or summary, or the
    /// first ones. It is empty at the end.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user("word").with_id(n.to_string())))?;
    /// let compaction = chat.add_compaction("Nine words.", &"1".into(), &"9".into())?.id;
    ///
    /// let page = chat.expand_page(&compaction, Some(&"3".into()), 2)?;
    /// assert_eq!(page[0].id.as_str(), "4");
    /// assert_eq!(page.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session; [`Error::UnknownMessage`] if the compaction does not show
    /// `after`.
    pub fn expand_page(
        &self,
        id: &CompactionId,
        after: Option<&MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>> {
        self.storage.read_compaction(id, |conn, session, span| {
            let plan = compaction::below(conn, span)?;
            let mut reader = PlanReader::new(plan, Order::OldestFirst, true);
            if let Some(id) = after
                && !Place::find(conn, session.key, id)?.is_some_and(|place| reader.skip_past(place))
            {
                return Err(self.unknown(id).into());
            }
            reader.next(conn, limit)
        })
    }

    /// Returns the stored messages that a compaction covers, oldest first, at any depth of nesting.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// let reply = chat.append(Message::assistant("hi"))?.id;
    /// let compaction = chat.add_compaction("They greeted.", &hello, &reply)?.id;
    ///
    /// let texts: Vec<String> = chat.expand_raw(&compaction)?.iter().map(Message::text).collect();
    /// assert_eq!(texts, ["hello", "hi"]);
    /// assert_eq!(chat.history()?.len(), 1); // still compacted
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session.
    pub fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.storage.expand_raw(id)
    }

    /// Returns whether the history shows a compaction, or why not.
    ///
    /// [`CompactionStatus`] has an example.
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session.
    pub fn compaction_status(&self, id: &CompactionId) -> Result<CompactionStatus> {
        self.storage.read_compaction(id, compaction::status)
    }
}

/// Checks what an added compaction has of its own.
fn check(compaction: &Compaction) -> Result<()> {
    compaction.id.check()?;
    match is_blank(&compaction.summary) {
        true => Err(Error::SummaryRefused { why: SummaryRefused::Blank }),
        false => Ok(()),
    }
}
