//! The doorway to one session of a database: each verb is one read or one write, which [`access`] runs.

mod access;

use std::sync::Arc;

use rusqlite::Connection;

use super::catalog;
use super::connection::Database;
use super::context::SqliteContext;
use super::cursor::{PathCursor, SessionCursor};
use super::error::{BackendError, BackendResult};
use super::handle::Handle;
use super::plan_reader::PlanReader;
use super::row::session as session_row;
use super::tokens::CountedMessages;
use super::{
    append, children, compaction, delete, fork, head, import, label, message, message_tag, outline,
    path, placed, unfinished, update, usage,
};
use crate::compaction::{Compaction, CompactionStatus, PlacedCompactions, Seen, Stale};
use crate::erasure::{Erased, Erasure};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{
    Appended, CountedAppend, Deleted, HeadEntry, ImportRecord, Imported, Label, MessageTag,
    RowStat, SessionDetails, SessionInfo, Updated, Upserted,
};
use crate::search::{Found, SearchRequest, SessionsFound};
use crate::storage::{Cursor, SessionProvider};
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
    pub(super) fn of_handle(database: &Arc<Database>, handle: &Arc<Handle>) -> Self {
        let (database, handle) = (Arc::clone(database), Arc::clone(handle));
        Self { database, handle, counter: Counter::default() }
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
    fn sibling(&self, id: &SessionId, key: i64) -> Arc<dyn SessionProvider> {
        let (database, counter) = (Arc::clone(&self.database), self.counter.clone());
        Arc::new(Self { database, handle: Arc::new(Handle::bound_to(id.clone(), key)), counter })
    }
}

impl SessionProvider for SqliteSession {
    fn id(&self) -> &SessionId {
        self.handle.id()
    }

    fn message(&self, id: &MessageId) -> Result<Option<Message>> {
        self.read(|conn, session| match message::find(conn, session.key, id)? {
            Some(address) => message::read(conn, address),
            None => Ok(None),
        })
    }

    fn history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        self.read_messages(leaf, false)
    }

    fn raw_history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        self.read_messages(leaf, true)
    }

    fn latest_leaf(&self) -> Result<Option<Message>> {
        self.read(|conn, session| match children::latest(conn, session.key)? {
            Some(address) => message::read(conn, address),
            None => Ok(None),
        })
    }

    fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>> {
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

    fn branches_page(
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

    fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64> {
        self.read_path(leaf, |conn, session, leaf| {
            path::count(conn, &path::plan(conn, session.key, leaf, true)?, false)
        })
    }

    fn append(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<Vec<Appended>> {
        Ok(self.append_counted(parent, expected, messages)?.appended)
    }

    fn append_counted(
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

    fn append_summary(
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

    fn update(&self, message: &Message) -> Result<Updated> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, [message]);
        let messages = std::slice::from_ref(message);
        self.write_messages(messages, |conn, name| {
            update::update(conn, name, message, &counted, max_bytes)
        })
    }

    fn upsert(&self, message: &Message) -> Result<Upserted> {
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

    fn erase(&self, ids: &[MessageId]) -> Result<Erased> {
        // The id may belong to another session by now.
        self.database.read(|conn| self.handle.key(conn))?;
        self.database.erase(&Erasure::messages(self.id(), ids), &mut |_| {})
    }

    fn unfinished(&self) -> Result<Vec<Message>> {
        self.read(unfinished::all)
    }

    fn settle(&self, id: &MessageId, content: Option<&Message>) -> Result<()> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, content);
        let messages = content.map(std::slice::from_ref).unwrap_or_default();
        self.write_messages(messages, |conn, name| {
            unfinished::settle(conn, name, id, content, &counted, max_bytes)
        })
    }

    fn delete(&self, ids: &[MessageId]) -> Result<Deleted> {
        self.write_as(|conn, name| delete::delete(conn, name, ids))
    }

    fn clear(&self) -> Result<()> {
        self.write_as(|conn, name| match name.find(conn)? {
            Some(session) => catalog::clear(conn, session.key),
            None => Ok(()),
        })
    }

    fn add_compaction(&self, compaction: &Compaction) -> Result<CompactionStatus> {
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

    fn commit_compaction(
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

    fn compactions(&self) -> Result<Vec<Compaction>> {
        self.read(|conn, session| {
            let all = compaction::all(conn, session.key)?;
            Ok(all.into_iter().map(|(_, compaction)| compaction).collect())
        })
    }

    fn compaction(&self, id: &CompactionId) -> Result<Option<Compaction>> {
        self.read(|conn, session| match compaction::find(conn, session.key, id)? {
            Some(span) => compaction::by_key(conn, span.key),
            None => Ok(None),
        })
    }

    fn placed_compactions(&self) -> Result<PlacedCompactions> {
        self.read(|conn, session| placed::compactions(conn, session.key))
    }

    fn restore_compaction(
        &self,
        compaction: &Compaction,
        first: &MessageId,
        last: &MessageId,
    ) -> Result<()> {
        let after = self.counter.message(&compaction.to_message(None));
        self.write_compaction(compaction, |conn, session| {
            let Some(session) = session else {
                return message::require(conn, None, self.id(), first).map(|_| ());
            };
            compaction::restore(conn, &session, self.id(), compaction, (first, last), after)
        })
    }

    fn search(&self, request: &SearchRequest) -> Result<Found> {
        self.check_scope(&request.scope)?;
        self.database.search(request)
    }

    fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        self.check_scope(&request.scope)?;
        self.database.search_sessions(request)
    }

    fn info(&self) -> Result<Option<SessionInfo>> {
        self.read(|conn, _| session_row::info(conn, self.id()))
    }

    fn add_usage(&self, message: Option<&MessageId>, of: &Usage) -> Result<()> {
        self.write_short(|conn, session| usage::add_to(conn, session.key, self.id(), message, of))
    }

    fn usage(&self) -> Result<UsageTotal> {
        self.read(|conn, session| usage::of_session(conn, session.key))
    }

    fn path_usage(&self, leaf: Option<&MessageId>) -> Result<UsageTotal> {
        self.read_path(leaf, |conn, session, leaf| usage::of_path(conn, session.key, leaf))
    }

    fn set_details(&self, details: &SessionDetails) -> Result<()> {
        let max = self.database.config.max_message_bytes;
        self.write_short(|conn, session| catalog::set_details(conn, session.key, details, max))
    }

    fn cursor(&self, view: &View, order: Order) -> Result<Box<dyn Cursor>> {
        let cursor = PathCursor::open(&self.database, order, |conn| self.path_of(conn, view))?;
        Ok(Box::new(cursor))
    }

    fn newest(&self, view: &View, count: usize) -> Result<Box<dyn Cursor>> {
        let path = |conn: &Connection| self.path_of(conn, view);
        Ok(Box::new(PathCursor::open_at_newest(&self.database, count, path)?))
    }

    fn all_messages(&self) -> Result<Box<dyn Cursor>> {
        let (session, plan) = self
            .read(|conn, session| Ok((Some(session.key), path::everything(conn, session.key)?)))?;
        let reader = PlanReader::new(plan, Order::OldestFirst, false);
        Ok(Box::new(SessionCursor { database: Arc::clone(&self.database), session, reader }))
    }

    fn row_stats(&self, leaf: Option<&MessageId>) -> Result<Vec<RowStat>> {
        self.read_path(leaf, |conn, session, leaf| {
            path::row_stats(conn, &path::plan(conn, session.key, leaf, true)?)
        })
    }

    fn is_on_path(&self, id: &MessageId, leaf: Option<&MessageId>) -> Result<bool> {
        self.database.read(|conn| {
            let session = self.handle.find(conn)?;
            let address = message::place(conn, session.map(|s| s.key), self.id(), id)?;
            path::holds(conn, self.leaf(conn, session.as_ref(), leaf)?, address)
        })
    }

    fn head(&self) -> Result<Option<MessageId>> {
        self.read(|conn, session| message::id_of_place(conn, session.head))
    }

    fn checkout(&self, id: Option<&MessageId>) -> Result<()> {
        self.checkout_if_head(&ExpectedHead::Any, id)
    }

    fn checkout_if_head(&self, expected: &ExpectedHead, id: Option<&MessageId>) -> Result<()> {
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

    fn undo_head(&self) -> Result<bool> {
        self.step_head(-1)
    }

    fn redo_head(&self) -> Result<bool> {
        self.step_head(1)
    }

    fn head_log(&self) -> Result<Vec<HeadEntry>> {
        self.read(head::log)
    }

    fn label(&self, name: &str, id: Option<&MessageId>) -> Result<()> {
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

    fn labels(&self) -> Result<Vec<Label>> {
        self.read(|conn, session| {
            let all = label::all(conn, session.key)?;
            Ok(all.into_iter().map(|(label, _)| label).collect())
        })
    }

    fn labelled(&self, name: &str) -> Result<Option<MessageId>> {
        self.read(|conn, session| label::find(conn, session.key, name))
    }

    fn tag(&self, id: &MessageId, tag: &str) -> Result<()> {
        self.change_tag(id, |conn, address| message_tag::add(conn, address, tag))
    }

    fn untag(&self, id: &MessageId, tag: &str) -> Result<()> {
        self.change_tag(id, |conn, address| message_tag::remove(conn, address, tag))
    }

    fn tags(&self, id: Option<&MessageId>) -> Result<Vec<MessageTag>> {
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

    fn leaves(&self) -> Result<Vec<MessageId>> {
        self.read(|conn, session| children::leaves(conn, session.key))
    }

    fn tree(&self) -> Result<Tree> {
        self.read(outline::tree)
    }

    fn delete_branch(&self, id: &MessageId) -> Result<Deleted> {
        self.write_as(|conn, name| delete::delete_branch(conn, name, id))
    }

    fn remove_compaction(&self, id: &CompactionId) -> Result<()> {
        self.write_as(|conn, name| {
            let session = name.find(conn)?.map(|session| session.key);
            let span = compaction::require(conn, session, name, id)?;
            compaction::remove(conn, span.key)?;
            catalog::touch_view(conn, span.last.session())
        })
    }

    fn summary(&self, id: &CompactionId) -> Result<Option<Message>> {
        self.read(|conn, session| match compaction::find(conn, session.key, id)? {
            Some(span) => compaction::summary(conn, span),
            None => Ok(None),
        })
    }

    fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.read_range(id, |conn, span| {
            let plan = compaction::below(conn, span)?;
            PlanReader::new(plan, Order::OldestFirst, true).rest(conn)
        })
    }

    fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.read_range(id, |conn, span| {
            let plan = path::between(conn, span.first, span.last)?;
            PlanReader::new(plan, Order::OldestFirst, false).rest(conn)
        })
    }

    fn compaction_status(&self, id: &CompactionId) -> Result<CompactionStatus> {
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

    fn identity(&self) -> Result<String> {
        let key = self.database.read(|conn| self.handle.key(conn))?;
        Ok(format!("{} session {}", self.database.identity(), key.unwrap_or_default()))
    }

    fn visible_tokens(&self) -> Result<Option<u64>> {
        self.database.visible_tokens(&self.handle, &self.counter)
    }

    fn counted_by(&self, counter: &Arc<dyn TokenCounter>) -> Option<Arc<dyn SessionProvider>> {
        let counter = Counter::new(Arc::clone(counter));
        let (database, handle) = (Arc::clone(&self.database), Arc::clone(&self.handle));
        Some(Arc::new(Self { database, handle, counter }))
    }

    fn import(&self, records: &[ImportRecord]) -> Result<Vec<Imported>> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted =
            CountedMessages::of(&self.counter, records.iter().map(|record| &record.message));
        let imported =
            self.write_as(|conn, name| import::import(conn, name, records, &counted, max_bytes))?;
        self.database.appended(imported.len() as u64);
        Ok(imported)
    }

    fn is_imported(&self, record: &str) -> Result<bool> {
        self.read(|conn, session| import::is_imported(conn, session, record))
    }

    fn fork(
        &self,
        at: &MessageId,
        id: &SessionId,
        details: &SessionDetails,
    ) -> Result<Arc<dyn SessionProvider>> {
        // The copies stay pending until a search needs them: few forks are searched.
        let key = self.write_as(|conn, name| fork::fork(conn, name, at, id, details))?;
        Ok(self.sibling(id, key))
    }

    fn split(
        &self,
        id: &SessionId,
        opening: &Message,
        end_reason: &str,
    ) -> Result<Arc<dyn SessionProvider>> {
        let max_bytes = self.database.config.max_message_bytes;
        let counted = CountedMessages::of(&self.counter, [opening]);
        let key = self.write_as(|conn, name| {
            fork::split(conn, name, id, opening, &counted, end_reason, max_bytes)
        })?;
        self.database.appended(1);
        Ok(self.sibling(id, key))
    }
}
