//! One session of a database: each verb is one read or one write, which [`access`] runs.

mod access;

use std::sync::Arc;

use rusqlite::Connection;

use super::catalog;
use super::connection::Database;
use super::context::SqliteContext;
use super::cursor::{PathCursor, SessionCursor};
use super::error::{BackendError, BackendResult};
use super::handle::Handle;
use super::placed::Placed;
use super::plan_reader::PlanReader;
use super::row::session as session_row;
use super::snapshot::Spool;
use super::tokens::CountedMessages;
use super::{
    append, children, compaction, delete, fork, head, import, label, mention, message, message_tag,
    outline, path, placed, unfinished, update, usage,
};
use crate::compaction::{Compaction, CompactionStatus, Seen, Stale};
use crate::erasure::{Erased, Erasure};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{
    Appended, CountedAppend, Deleted, HeadEntry, Label, MessageTag, RowStat, SessionDetails,
    SessionInfo, Updated, Upserted,
};
use crate::storage::Cursor;
use crate::tokens::{Counter, TokenCounter};
use crate::tree::{Address, Tree};
use crate::usage::{Usage, UsageTotal};
use crate::view::{ExpectedHead, Order, Parent, View};

pub(crate) struct SqliteSession {
    database: Arc<Database>,
    handle: Arc<Handle>,
    counter: Counter,
}

impl SqliteSession {
    pub(crate) fn new(database: Arc<Database>, id: SessionId) -> Self {
        Self { database, handle: Arc::new(Handle::new(id)), counter: Counter::default() }
    }

    /// Returns the session of a handle in another database with the same content.
    fn of_handle(database: &Arc<Database>, handle: &Arc<Handle>) -> Self {
        let (database, handle) = (Arc::clone(database), Arc::clone(handle));
        Self { database, handle, counter: Counter::default() }
    }

    /// Returns the session as it is now, for many reads of one state.
    pub(crate) fn snapshot(&self) -> Result<Self> {
        Ok(Self::of_handle(&self.database.snapshot()?, &self.handle))
    }

    /// Returns where an export of a snapshot is kept until the snapshot is closed.
    pub(crate) fn spool(&self) -> Spool {
        self.database.spool()
    }

    pub(crate) fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Returns the storage of this session's context, bound to the same session.
    pub(crate) fn context(&self) -> SqliteContext {
        self.database.context_of(&self.handle)
    }

    /// Changes the tags of a message.
    fn change_tag(
        &self,
        id: &MessageId,
        change: impl FnOnce(&Connection, Address) -> BackendResult<()>,
    ) -> Result<()> {
        self.write_short_as(|conn, name| {
            let session = name.find(conn)?.map(|session| session.key);
            let address = message::require(conn, session, name, id)?;
            change(conn, address)?;
            catalog::touch(conn, address.session())
        })
    }

    /// Returns another session of the same database with the same counter.
    fn sibling(&self, id: &SessionId, key: i64) -> Self {
        let (database, counter) = (Arc::clone(&self.database), self.counter.clone());
        Self { database, handle: Arc::new(Handle::bound_to(id.clone(), key)), counter }
    }
}

impl SqliteSession {
    pub(crate) fn id(&self) -> &SessionId {
        self.handle.id()
    }

    /// Returns the message with this id; its `parent` is the nearest ancestor that is not deleted.
    pub(crate) fn message(&self, id: &MessageId) -> Result<Option<Message>> {
        self.read(|conn, session| match message::find(conn, session.key, id)? {
            Some(address) => message::read(conn, address),
            None => Ok(None),
        })
    }

    /// Returns the path to `leaf` (`None`: the head), oldest first, as a model should see it: each compacted range is
    /// its summary, hidden messages are left out.
    pub(crate) fn history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        self.read_messages(leaf, false)
    }

    /// Returns the stored messages of the path to `leaf` (`None`: the head), oldest first.
    pub(crate) fn raw_history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        self.read_messages(leaf, true)
    }

    /// Returns the newest message, which never has children.
    pub(crate) fn latest_leaf(&self) -> Result<Option<Message>> {
        self.read(|conn, session| match children::latest(conn, session.key)? {
            Some(address) => message::read(conn, address),
            None => Ok(None),
        })
    }

    /// Returns the children of a message, or the roots for `None`, in order of creation. A deleted child is replaced
    /// by its own children.
    pub(crate) fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>> {
        self.database.read(|conn| {
            let session = self.handle.find(conn)?;
            let parent = match id {
                None => None,
                Some(_) => self.leaf(conn, session.as_ref(), id)?,
            };
            match session {
                Some(session) => children::children(conn, session.key, parent),
                None => Ok(Vec::new()),
            }
        })
    }

    /// Returns at most `limit` of the messages that [`branches`](Self::branches) returns: the first ones, or those created
    /// after `after`, which is a message of the session.
    pub(crate) fn branches_page(
        &self,
        id: Option<&MessageId>,
        after: Option<&MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>> {
        self.database.read(|conn| {
            let session = self.handle.find(conn)?;
            let place = |id: Option<&MessageId>| {
                id.map_or(Ok(None), |id| self.leaf(conn, session.as_ref(), Some(id)))
            };
            let (parent, after) = (place(id)?, place(after)?);
            let Some(session) = session else { return Ok(Vec::new()) };
            let after = after.unwrap_or(Address::range_of(session.key).0.before());
            children::page(conn, session.key, parent, after, limit)
        })
    }

    /// Returns how many messages are on the path to `leaf` (`None`: the head), hidden ones included.
    pub(crate) fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64> {
        self.read_path(leaf, |conn, session, leaf| {
            path::count(conn, &path::plan(conn, session.key, leaf, true)?, false)
        })
    }

    /// Appends as [`append`](Self::append) does, and returns how many tokens a model then sees at the head, if that
    /// is known without counting.
    pub(crate) fn append(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<CountedAppend> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, messages);
        let counted_append = self.write_messages(messages, |conn, name| {
            append::append(conn, name, parent, expected, messages, &counted, max_bytes)
        })?;
        self.database.appended(counted_append.appended.len() as u64);
        Ok(counted_append)
    }

    /// Appends the summary of a branch as [`append`](Self::append) does, if the messages and summaries that
    /// it was made from still read as they were seen; otherwise [`Error::Stale`].
    pub(crate) fn append_summary(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        summary: &Message,
        seen: &Seen,
    ) -> Result<CountedAppend> {
        let max_bytes = self.database.config.max_message_bytes;
        let messages = std::slice::from_ref(summary);
        let counted = CountedMessages::of(&self.counter, messages);
        let counted_append = self.write_messages(messages, |conn, name| {
            append::check_seen(conn, name, seen)?;
            append::append(conn, name, parent, expected, messages, &counted, max_bytes)
        })?;
        self.database.appended(1);
        Ok(counted_append)
    }

    /// Replaces the content of the message with this id: role, parts, metadata, extra fields. Its parent, time and
    /// hidden flag do not change.
    pub(crate) fn update(&self, message: &Message) -> Result<Updated> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, [message]);
        let messages = std::slice::from_ref(message);
        self.write_messages(messages, |conn, name| {
            update::update(conn, name, message, &counted, max_bytes)
        })
    }

    pub(crate) fn upsert(&self, message: &Message) -> Result<Upserted> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, [message]);
        let messages = std::slice::from_ref(message);
        let upserted = self.write_messages(messages, |conn, name| {
            let session = name.find(conn)?;
            let known = session.map(|session| message::find(conn, session.key, &message.id));
            if known.transpose()?.flatten().is_some() {
                let updated = update::update(conn, name, message, &counted, max_bytes)?;
                return Ok(Upserted::Updated(updated));
            }
            let (parent, expected) = (Parent::Head, ExpectedHead::Any);
            append::append(conn, name, &parent, &expected, messages, &counted, max_bytes)?;
            Ok(Upserted::Appended(Appended::new(message.id.clone())))
        })?;
        self.database.appended(1);
        Ok(upserted)
    }

    /// Erases messages: no byte of them is left in the storage, as [`Store::erase`](crate::Store::erase) describes.
    pub(crate) fn erase(&self, ids: &[MessageId]) -> Result<Erased> {
        // The id may belong to another session by now.
        self.database.read(|conn| self.handle.key(conn))?;
        self.database.erase(&Erasure::messages(self.id(), ids), &mut |_| {})
    }

    /// Returns the [unfinished](Message::unfinished) messages, in order of creation.
    pub(crate) fn unfinished(&self) -> Result<Vec<Message>> {
        self.read(unfinished::all)
    }

    /// Replaces the content of an unfinished message, in one transaction; it is shown from then on, unless the new content is
    /// unfinished, too. Without content the message is deleted.
    ///
    /// # Errors
    /// [`Error::Finished`] if the message is not unfinished.
    pub(crate) fn settle(&self, id: &MessageId, content: Option<&Message>) -> Result<()> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, content);
        let messages = content.map(std::slice::from_ref).unwrap_or_default();
        self.write_messages(messages, |conn, name| {
            unfinished::settle(conn, name, id, content, &counted, max_bytes)
        })
    }

    /// Deletes messages; a message with children becomes a tombstone, so the tree keeps its shape.
    pub(crate) fn delete(&self, ids: &[MessageId]) -> Result<Deleted> {
        self.write_as(|conn, name| delete::delete(conn, name, ids))
    }

    /// Deletes all messages, compactions, labels and the head's log.
    pub(crate) fn clear(&self) -> Result<()> {
        self.write_as(|conn, name| match name.find(conn)? {
            Some(session) => {
                mention::forget(conn, session.key, &[Address::range_of(session.key)])?;
                catalog::clear(conn, session.key)
            }
            None => Ok(()),
        })
    }

    /// Adds a summary that replaces the range `first ..= last`. The range must be made of whole items of the view at
    /// `last`; as an end, a summary's id means its first or last message. A known compaction id is a no-op. Returns the status  as
    /// seen from the head.
    pub(crate) fn add_compaction(&self, compaction: &Compaction) -> Result<CompactionStatus> {
        let after = self.counter.message(&compaction.to_message(None));
        self.write_compaction(compaction, |conn, session| {
            let Some(session) = session else {
                let id = compaction.first.clone();
                let unknown = Error::UnknownMessage { session: self.id().clone(), id };
                return Err(BackendError::Own(unknown));
            };
            compaction::add(conn, &session, self.id(), compaction, after)?;
            let key = Some(session.key);
            let span = compaction::require(conn, key, self.id(), &compaction.id)?;
            compaction::status(conn, &session, span)
        })
    }

    /// Adds a compaction if the view of its range is still what was seen; otherwise [`Error::Stale`]. The view is
    /// that at the head if the head's path contains `leaf`. If `leaf` was deleted, it is the head's if that contains
    /// the range, and otherwise the one at the range's end. Returns whether the summary is visible at the head.
    pub(crate) fn commit_compaction(
        &self,
        compaction: &Compaction,
        leaf: &MessageId,
        seen: &Seen,
    ) -> Result<bool> {
        self.write_compaction(compaction, |conn, session| {
            let Some(session) = session else {
                let why = Stale::Deleted { id: compaction.first.clone() };
                return Err(BackendError::Own(Error::Stale { why }));
            };
            compaction::commit::commit(conn, &session, self.id(), compaction, leaf, seen)
        })
    }

    pub(crate) fn compactions(&self) -> Result<Vec<Compaction>> {
        self.read(|conn, session| {
            let all = compaction::all(conn, session.key)?;
            Ok(all.into_iter().map(|(_, compaction)| compaction).collect())
        })
    }

    pub(crate) fn compaction(&self, id: &CompactionId) -> Result<Option<Compaction>> {
        self.read(|conn, session| match compaction::find(conn, session.key, id)? {
            Some(span) => compaction::by_key(conn, span.key),
            None => Ok(None),
        })
    }

    /// Returns the compactions with the places where they start and end. A copy of the session needs these places.
    pub(crate) fn placed_compactions(&self) -> Result<Placed> {
        self.read(|conn, session| placed::compactions(conn, session.key))
    }

    pub(crate) fn info(&self) -> Result<Option<SessionInfo>> {
        self.read(|conn, _| session_row::info(conn, self.id()))
    }

    pub(crate) fn add_usage(&self, message: Option<&MessageId>, of: &Usage) -> Result<()> {
        self.write_short(|conn, session| usage::add_to(conn, session.key, self.id(), message, of))
    }

    pub(crate) fn usage(&self) -> Result<UsageTotal> {
        self.read(|conn, session| usage::of_session(conn, session.key))
    }

    pub(crate) fn path_usage(&self, leaf: Option<&MessageId>) -> Result<UsageTotal> {
        self.read_path(leaf, |conn, session, leaf| usage::of_path(conn, session.key, leaf))
    }

    pub(crate) fn set_details(&self, details: &SessionDetails) -> Result<()> {
        let max = self.database.config.max_message_bytes;
        self.write_short(|conn, session| catalog::set_details(conn, session.key, details, max))
    }

    /// Opens a stream over a view.
    pub(crate) fn cursor(&self, view: &View, order: Order) -> Result<Box<dyn Cursor>> {
        let cursor = PathCursor::open(&self.database, order, |conn| self.path_of(conn, view))?;
        Ok(Box::new(cursor))
    }

    /// Opens a stream over a view, newest first, that knows its [total](Cursor::total) and its first `count` messages.
    ///
    /// Both are of one state, the one in which it was opened.
    pub(crate) fn newest(&self, view: &View, count: usize) -> Result<Box<dyn Cursor>> {
        let path = |conn: &Connection| self.path_of(conn, view);
        Ok(Box::new(PathCursor::open_at_newest(&self.database, count, path)?))
    }

    /// Opens a stream over every stored message of all branches, in order of creation.
    pub(crate) fn all_messages(&self) -> Result<Box<dyn Cursor>> {
        let (session, plan) = self
            .read(|conn, session| Ok((Some(session.key), path::everything(conn, session.key)?)))?;
        let reader = PlanReader::new(plan, Order::OldestFirst, false);
        Ok(Box::new(SessionCursor { database: Arc::clone(&self.database), session, reader }))
    }

    pub(crate) fn row_stats(&self, leaf: Option<&MessageId>) -> Result<Vec<RowStat>> {
        self.read_path(leaf, |conn, session, leaf| {
            path::row_stats(conn, &path::plan(conn, session.key, leaf, true)?)
        })
    }

    pub(crate) fn is_on_path(&self, id: &MessageId, leaf: Option<&MessageId>) -> Result<bool> {
        self.database.read(|conn| {
            let session = self.handle.find(conn)?;
            let address = message::place(conn, session.map(|s| s.key), self.id(), id)?;
            path::holds(conn, self.leaf(conn, session.as_ref(), leaf)?, address)
        })
    }

    /// Returns the head. If that message was deleted, it is the item that the history ends with: the nearest ancestor
    /// that was not deleted, or the summary that covers it.
    pub(crate) fn head(&self) -> Result<Option<MessageId>> {
        self.read(|conn, session| message::id_of_place(conn, session.head))
    }

    /// Moves the head to a message if it is where the caller saw it, else answers [`Error::HeadMoved`].
    pub(crate) fn checkout(&self, expected: &ExpectedHead, id: Option<&MessageId>) -> Result<()> {
        self.write_short_as(|conn, name| {
            let session = name.find(conn)?;
            if let ExpectedHead::At(expected) = expected {
                let moved = match &session {
                    Some(session) => append::head_moved(conn, session, name, expected.as_ref())?,
                    None => expected
                        .clone()
                        .map(|expected| Error::HeadMoved { expected: Some(expected), found: None }),
                };
                if let Some(moved) = moved {
                    return Err(BackendError::Own(moved));
                }
            }
            let target = match id {
                None => None,
                Some(_) => self.leaf(conn, session.as_ref(), id)?,
            };
            let Some(mut session) = session else { return Ok(()) };
            head::move_to(conn, &mut session, target)?;
            session_row::store(conn, &session)
        })
    }

    pub(crate) fn undo_head(&self) -> Result<bool> {
        self.step_head(-1)
    }

    pub(crate) fn redo_head(&self) -> Result<bool> {
        self.step_head(1)
    }

    pub(crate) fn head_log(&self) -> Result<Vec<HeadEntry>> {
        self.read(head::log)
    }

    pub(crate) fn label(&self, name: &str, id: Option<&MessageId>) -> Result<()> {
        self.write_short_as(|conn, this| {
            let session = this.find(conn)?;
            let target = id.map(|id| self.leaf(conn, session.as_ref(), Some(id))).transpose()?;
            let Some(session) = session else { return Ok(()) };
            // A label is on a message: for a summary whose last one is deleted, on the nearest above.
            match message::nearest_living(conn, target.flatten())?.map(|(address, _)| address) {
                Some(address) => label::set(conn, session.key, name, address)?,
                None => label::remove(conn, session.key, name)?,
            }
            catalog::touch(conn, session.key)
        })
    }

    pub(crate) fn labels(&self) -> Result<Vec<Label>> {
        self.read(|conn, session| {
            let all = label::all(conn, session.key)?;
            Ok(all.into_iter().map(|(label, _)| label).collect())
        })
    }

    pub(crate) fn labelled(&self, name: &str) -> Result<Option<MessageId>> {
        self.read(|conn, session| label::find(conn, session.key, name))
    }

    pub(crate) fn tag(&self, id: &MessageId, tag: &str) -> Result<()> {
        self.change_tag(id, |conn, address| message_tag::add(conn, address, tag))
    }

    pub(crate) fn untag(&self, id: &MessageId, tag: &str) -> Result<()> {
        self.change_tag(id, |conn, address| message_tag::remove(conn, address, tag))
    }

    /// Returns the tags of a message, or of all messages in the order in which they were appended; those of one message are
    /// sorted.
    pub(crate) fn tags(&self, id: Option<&MessageId>) -> Result<Vec<MessageTag>> {
        self.database.read(|conn| {
            let key = self.handle.find(conn)?.map(|session| session.key);
            let (first, last) = match (id, key) {
                (Some(id), _) => {
                    let at = message::require(conn, key, self.id(), id)?;
                    (at, at)
                }
                (None, Some(key)) => Address::range_of(key),
                (None, None) => return Ok(Vec::new()),
            };
            message_tag::of_range(conn, first, last)
        })
    }

    pub(crate) fn leaves(&self) -> Result<Vec<MessageId>> {
        self.read(|conn, session| children::leaves(conn, session.key))
    }

    pub(crate) fn tree(&self) -> Result<Tree> {
        self.read(outline::tree)
    }

    pub(crate) fn delete_branch(&self, id: &MessageId) -> Result<Deleted> {
        self.write_as(|conn, name| delete::delete_branch(conn, name, id))
    }

    pub(crate) fn remove_compaction(&self, id: &CompactionId) -> Result<()> {
        self.write_as(|conn, name| {
            let session = name.find(conn)?.map(|session| session.key);
            let span = compaction::require(conn, session, name, id)?;
            compaction::remove(conn, span.key)?;
            catalog::touch_view(conn, span.last.session())
        })
    }

    /// Returns a summary as it reads in a history. Its parent is the nearest message before its range that is not
    /// deleted.
    pub(crate) fn summary(&self, id: &CompactionId) -> Result<Option<Message>> {
        self.read(|conn, session| match compaction::find(conn, session.key, id)? {
            Some(span) => compaction::summary(conn, span),
            None => Ok(None),
        })
    }

    /// Returns the items that a summary replaces, oldest first: messages and nested summaries.
    pub(crate) fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.read_range(id, |conn, span| {
            let plan = compaction::below(conn, span)?;
            PlanReader::new(plan, Order::OldestFirst, true).rest(conn)
        })
    }

    /// Returns the stored messages in the range of a compaction, oldest first.
    pub(crate) fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.read_range(id, |conn, span| {
            let plan = path::between(conn, span.first, span.last)?;
            PlanReader::new(plan, Order::OldestFirst, false).rest(conn)
        })
    }

    pub(crate) fn compaction_status(&self, id: &CompactionId) -> Result<CompactionStatus> {
        self.database.read(|conn| {
            let session = self.handle.find(conn)?;
            let key = session.map(|session| session.key);
            let span = compaction::require(conn, key, self.id(), id)?;
            match session {
                Some(session) => compaction::status(conn, &session, span),
                None => Ok(CompactionStatus::OffPath),
            }
        })
    }

    /// Returns what tells this session from every other one: of another id, of another storage, and of one of this id
    /// that was removed before. Two providers of one session return the same. A plan is committed only where it was
    /// made.
    pub(crate) fn identity(&self) -> Result<String> {
        let key = self.database.read(|conn| self.handle.key(conn))?;
        Ok(format!("{} session {}", self.database.identity(), key.unwrap_or_default()))
    }

    /// Returns how many tokens a model sees on the path to the head; `None` if the storage keeps no count.
    pub(crate) fn visible_tokens(&self) -> Result<Option<u64>> {
        self.database.visible_tokens(&self.handle, &self.counter)
    }

    /// Returns this session's storage with another token counter; `None` if the storage keeps no counts.
    pub(crate) fn counted_by(&self, counter: &Arc<dyn TokenCounter>) -> Self {
        let counter = Counter::new(Arc::clone(counter));
        let (database, handle) = (Arc::clone(&self.database), Arc::clone(&self.handle));
        Self { database, handle, counter }
    }

    /// Stores historical messages as they are, in one transaction; returns one result per message.
    ///
    /// The head moves only to a message whose parent is the head.
    pub(crate) fn import(&self, messages: &[Message]) -> Result<Vec<Appended>> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, messages);
        let imported =
            self.write_as(|conn, name| import::import(conn, name, messages, &counted, max_bytes))?;
        self.database.appended(imported.len() as u64);
        Ok(imported)
    }

    pub(crate) fn is_imported(&self, record: &str) -> Result<bool> {
        self.read(|conn, session| import::is_imported(conn, session, record))
    }

    /// Creates a new session from the path to `at`, with its messages, compactions and labels.
    pub(crate) fn fork(
        &self,
        at: &MessageId,
        id: &SessionId,
        details: &SessionDetails,
    ) -> Result<Self> {
        // The copies stay pending until a search needs them: few forks are searched.
        let key = self.write_as(|conn, name| fork::fork(conn, name, at, id, details))?;
        Ok(self.sibling(id, key))
    }

    /// Ends this session with a reason and creates the one that continues it, starting with one message.
    ///
    /// In this order: [`Error::SessionExists`] if the id of the new one is taken; [`Error::InvalidValue`] if this session is
    /// ended with this reason, so that it has one continuation, whoever splits it at the same time.
    pub(crate) fn split(
        &self,
        id: &SessionId,
        opening: &Message,
        end_reason: &str,
    ) -> Result<Self> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, [opening]);
        let key = self.write_as(|conn, name| {
            fork::split(conn, name, id, opening, &counted, end_reason, max_bytes)
        })?;
        self.database.appended(1);
        Ok(self.sibling(id, key))
    }
}
