//! One session of a database, and the handle that says which one an id means.
//!
//! A handle is bound to the first session that it finds or creates under its id. When that session is removed, the
//! handle reads as empty and refuses to write, even if the id belongs to another session by then. Keys of sessions are
//! never reused, so comparing keys is enough, and the key is read with the session's row anyway.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::connection::Database;
use super::context::{SqliteContext, elision};
use super::cursor::{Cursor, Path};
use super::plan_reader::PlanReader;
use super::row::session as row;
use super::row::session::SessionRow;
use super::snapshot::Spool;
use super::tokens::CountedMessages;
use super::{append, catalog, children, compaction, delete, fork, message, path};
use crate::compaction::{Compaction, CompactionStatus, Seen};
use crate::erasure::{Erased, Erasure};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Message, Question, Role, WayUp};
use crate::outcome::{CountedAppend, Deleted, SessionDetails, SessionInfo};
use crate::sql::{BackendError, BackendResult, Connection};
use crate::tokens::{Counter, TokenCounter};
use crate::tree::{Address, Span, Tree};
use crate::view::{ExpectedHead, Order, Parent, View};

/// How many messages are read at once on the way up to a question.
const QUESTION_BATCH: usize = 16;

/// How many messages the open question may be above the head: every search of a model looks for it.
const MAX_OPEN: usize = 1_024;

/// A session of a database.
pub(crate) struct SqliteSession {
    database: Arc<Database>,
    handle: Arc<Handle>,
    counter: Counter,
}

impl SqliteSession {
    pub(crate) fn new(database: Arc<Database>, id: SessionId) -> Self {
        Self { database, handle: Arc::new(Handle::new(id)), counter: Counter::default() }
    }

    /// Returns the session as it is now, for many reads of one state.
    pub(crate) fn snapshot(&self) -> Result<Self> {
        let (database, handle) = (self.database.snapshot()?, Arc::clone(&self.handle));
        Ok(Self { database, handle, counter: Counter::default() })
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

    /// Returns another session of the same database with the same counter.
    pub(crate) fn sibling(&self, id: &SessionId, key: i64) -> Self {
        let (database, counter) = (Arc::clone(&self.database), self.counter.clone());
        Self { database, handle: Arc::new(Handle::bound_to(id.clone(), key)), counter }
    }

    /// Returns the session with another token counter.
    pub(crate) fn counted_by(&self, counter: &Arc<dyn TokenCounter>) -> Self {
        let counter = Counter::new(Arc::clone(counter));
        let (database, handle) = (Arc::clone(&self.database), Arc::clone(&self.handle));
        Self { database, handle, counter }
    }

    pub(crate) fn id(&self) -> &SessionId {
        self.handle.id()
    }

    /// Returns what tells this session from every other one: of another id, in another file, and of one of this id that
    /// was removed before. A plan is committed only where it was made.
    pub(crate) fn identity(&self) -> Result<String> {
        let key = self.database.read(|conn| self.handle.key(conn))?;
        Ok(format!("{} session {}", self.database.identity(), key.unwrap_or_default()))
    }
}

/// How the verbs reach their rows.
impl SqliteSession {
    /// Reads from the session; a session that does not exist reads as empty.
    pub(crate) fn read<T: Default>(
        &self,
        work: impl FnOnce(&Connection, &SessionRow) -> BackendResult<T>,
    ) -> Result<T> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => work(conn, &session),
            None => Ok(T::default()),
        })
    }

    /// Reads at the places of these messages and summaries.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if one of them is not in the session.
    pub(crate) fn read_at<T: Default, const N: usize>(
        &self,
        ids: [Option<&MessageId>; N],
        work: impl FnOnce(&Connection, &SessionRow, [Option<Address>; N]) -> BackendResult<T>,
    ) -> Result<T> {
        self.database.read(|conn| {
            let session = self.handle.find(conn)?;
            let key = session.as_ref().map(|session| session.key);
            let mut places = [None; N];
            for (place, id) in places.iter_mut().zip(ids) {
                *place = id.map(|id| message::place(conn, key, self.id(), id)).transpose()?;
            }
            session.map_or_else(|| Ok(T::default()), |session| work(conn, &session, places))
        })
    }

    /// Reads the path to a leaf; `None` is the head.
    pub(crate) fn read_path<T: Default>(
        &self,
        leaf: Option<&MessageId>,
        work: impl FnOnce(&Connection, &SessionRow, Option<Address>) -> BackendResult<T>,
    ) -> Result<T> {
        self.read_at([leaf], |conn, session, [leaf]| work(conn, session, leaf.or(session.head)))
    }

    /// Reads at a compaction.
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if it is not in the session.
    pub(crate) fn read_compaction<T>(
        &self,
        id: &CompactionId,
        work: impl FnOnce(&Connection, &SessionRow, Span) -> BackendResult<T>,
    ) -> Result<T> {
        let found = self.read(|conn, session| {
            let span = compaction::find(conn, session.key, id)?;
            span.map(|span| work(conn, session, span)).transpose()
        })?;
        found.ok_or_else(|| self.unknown_compaction(id))
    }

    /// Writes under the session's name, which says whether the session exists.
    pub(crate) fn write<T>(
        &self,
        work: impl Fn(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        self.handle.write(&self.database, work)
    }

    /// The same for a write that takes well under a millisecond; it may share its commit.
    pub(crate) fn write_short<T>(
        &self,
        work: impl Fn(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        self.handle.write_short(&self.database, work)
    }

    /// Writes messages with their token counts, and the size that each may have. A few short messages share their commit
    /// with other writes.
    pub(crate) fn write_messages<T>(
        &self,
        messages: &[Message],
        work: impl Fn(&Connection, &Named<'_>, &CountedMessages<'_>, usize) -> BackendResult<T>,
    ) -> Result<T> {
        let max_bytes = self.max_message_bytes();
        let counted = self.counted(messages);
        let work = |conn: &Connection, name: &Named<'_>| work(conn, name, &counted, max_bytes);
        match append::are_short(messages) {
            true => self.write_short(work),
            false => self.write(work),
        }
    }

    /// Adds a compaction that is within the size limit.
    pub(crate) fn write_compaction<T>(
        &self,
        compaction: &Compaction,
        work: impl Fn(&Connection, Option<SessionRow>) -> BackendResult<T>,
    ) -> Result<T> {
        self.write(|conn, name| {
            compaction::check_size(compaction, self.max_message_bytes())?;
            let session = name.find(conn)?;
            let answer = work(conn, session)?;
            if let Some(session) = session {
                catalog::touch_view(conn, session.key)?;
            }
            Ok(answer)
        })
    }

    /// Counts the tokens of messages, before a transaction begins: the counter may be code of the program.
    pub(crate) fn counted<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
    ) -> CountedMessages<'_> {
        CountedMessages::of(&self.counter, messages)
    }

    pub(crate) fn max_message_bytes(&self) -> usize {
        self.database.config.max_message_bytes
    }

    /// Notes that messages were appended, which are indexed from time to time.
    pub(crate) fn appended(&self, messages: usize) {
        self.database.appended(messages as u64);
    }
}

/// The verbs that not only [`Session`](crate::Session) has a use for.
impl SqliteSession {
    /// Returns the message with this id, or the summary as it reads in a history. Its `parent` is the nearest one that is
    /// not deleted.
    pub(crate) fn message(&self, id: &MessageId) -> Result<Option<Message>> {
        self.read(|conn, session| match CompactionId::from_message(id) {
            None => message::find(conn, session.key, id)?
                .map_or(Ok(None), |address| message::read(conn, address)),
            Some(id) => compaction::find(conn, session.key, &id)?
                .map_or(Ok(None), |span| compaction::summary(conn, span)),
        })
    }

    /// Returns the path to `leaf` (`None`: the head), oldest first: as a model should see it, or the stored messages.
    pub(crate) fn history(&self, leaf: Option<&MessageId>, is_raw: bool) -> Result<Vec<Message>> {
        self.read_path(leaf, |conn, session, leaf| {
            if !is_raw {
                conn.ask_ahead(elision::HAS_ANY, Address::range_of(session.key))?;
            }
            let plan = path::plan(conn, session.key, leaf, is_raw)?;
            PlanReader::new(plan, Order::OldestFirst, !is_raw).rest(conn)
        })
    }

    pub(crate) fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64> {
        self.read_path(leaf, |conn, session, leaf| {
            path::count(conn, &path::plan(conn, session.key, leaf, true)?, false)
        })
    }

    /// Opens a stream over a view.
    pub(crate) fn cursor(&self, view: &View, order: Order) -> Result<Cursor> {
        Cursor::open(&self.database, order, |conn| self.path_of(conn, view))
    }

    /// Returns the question that a message answers, or that it is, if it is among so many messages.
    pub(crate) fn question_above(
        &self,
        leaf: &MessageId,
        mut limit: usize,
    ) -> Result<Option<Question>> {
        let mut cursor = self.cursor(&View::at(leaf).raw(), Order::NewestFirst)?;
        let mut way = WayUp::default();
        loop {
            let batch = cursor.next(QUESTION_BATCH.min(limit))?;
            limit -= batch.len();
            if batch.is_empty() {
                return Ok(way.nearest());
            }
            for message in batch {
                if let Some(question) = way.take(message) {
                    return Ok(Some(question));
                }
            }
        }
    }

    /// Returns the question that is being answered; `None` if the head is a whole answer.
    pub(crate) fn open_question(&self) -> Result<Option<MessageId>> {
        let Some(head) = self.head()? else { return Ok(None) };
        let is_whole = self.message(&head)?.is_some_and(|message| {
            message.role == Role::Assistant
                && !message.parts.iter().any(|part| part.tool().is_some())
        });
        let question = if is_whole { None } else { self.question_above(&head, MAX_OPEN)? };
        Ok(question.map(|question| question.id))
    }

    /// Opens a stream newest first that has counted the view and read its first messages, all of one state.
    pub(crate) fn newest(&self, view: &View, count: usize) -> Result<Cursor> {
        Cursor::open_at_newest(&self.database, count, |conn| self.path_of(conn, view))
    }

    fn path_of(&self, conn: &Connection, view: &View) -> BackendResult<Option<Path>> {
        let session = self.handle.find(conn)?;
        let key = session.as_ref().map(|session| session.key);
        let leaf = view.leaf().map(|id| message::place(conn, key, self.id(), id)).transpose()?;
        let is_raw = view.is_raw();
        Ok(session.map(|session| Path {
            session: session.key,
            leaf: leaf.or(session.head),
            is_raw,
        }))
    }

    /// Opens a stream over every message of the session.
    pub(crate) fn all_messages(&self) -> Result<Cursor> {
        let plan = self.read(|conn, session| path::everything(conn, session.key))?;
        Ok(Cursor::over(&self.database, plan))
    }

    /// Returns the children of a message, or the roots for `None`, in order of creation. A deleted child is replaced
    /// by its own children.
    pub(crate) fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>> {
        self.read_at([id], |conn, session, [parent]| children::children(conn, session.key, parent))
    }

    pub(crate) fn is_on_path(&self, id: &MessageId, leaf: Option<&MessageId>) -> Result<bool> {
        self.read_at([Some(id), leaf], |conn, session, [address, leaf]| match address {
            Some(address) => path::holds(conn, leaf.or(session.head), address),
            None => Ok(false),
        })
    }

    /// Returns the outline of the whole tree.
    pub(crate) fn tree(&self) -> Result<Tree> {
        self.read(children::tree)
    }

    pub(crate) fn head(&self) -> Result<Option<MessageId>> {
        self.read(|conn, session| message::id_of_place(conn, session.head))
    }

    pub(crate) fn info(&self) -> Result<Option<SessionInfo>> {
        self.database.read(|conn| {
            let found = row::info_and_key(conn, self.id())?;
            Ok(found.filter(|(_, key)| self.handle.bind(*key) == *key).map(|found| found.0))
        })
    }

    /// Returns how many tokens a model sees on the path to the head; `None` if they are not counted yet.
    pub(crate) fn visible_tokens(&self) -> Result<Option<u64>> {
        self.database.visible_tokens(&self.handle, &self.counter)
    }

    /// Returns the stored messages in the range of a compaction, oldest first.
    pub(crate) fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.read_compaction(id, |conn, _, span| {
            let plan = path::between(conn, span.first, span.last)?;
            PlanReader::new(plan, Order::OldestFirst, false).rest(conn)
        })
    }

    pub(crate) fn unknown_compaction(&self, id: &CompactionId) -> Error {
        Error::UnknownCompaction { session: self.id().clone(), id: id.clone() }
    }

    /// Appends messages, each the child of the one before. With `seen`, only if what it saw still reads the same; otherwise
    /// [`Error::Stale`].
    pub(crate) fn append(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
        seen: Option<&Seen>,
    ) -> Result<CountedAppend> {
        let counted_append = self.write_messages(messages, |conn, name, counted, max_bytes| {
            if let Some(seen) = seen {
                append::check_seen(conn, name, seen)?;
            }
            append::append(conn, name, parent, expected, messages, counted, max_bytes)
        })?;
        self.appended(messages.len());
        Ok(counted_append)
    }

    pub(crate) fn delete(&self, ids: &[MessageId]) -> Result<Deleted> {
        self.write(|conn, name| delete::delete(conn, name, ids))
    }

    pub(crate) fn erase(&self, ids: &[MessageId], vanished: impl FnMut(&Erased)) -> Result<Erased> {
        self.database.read(|conn| self.handle.key(conn))?;
        let erasure = Erasure::messages(self.id(), ids);
        self.database.erase(&[erasure], vanished, &mut |_| {})
    }

    pub(crate) fn add_compaction(
        &self,
        compaction: &Compaction,
    ) -> Result<(Compaction, CompactionStatus)> {
        let after = self.counter.message(&compaction.to_message(None));
        self.write_compaction(compaction, |conn, session| {
            let Some(session) = session else {
                let id = compaction.first.clone();
                let unknown = Error::UnknownMessage { session: self.id().clone(), id };
                return Err(BackendError::Own(unknown));
            };
            compaction::add(conn, &session, self.id(), compaction, after)?;
            compaction::stored(conn, &session, self.id(), &compaction.id)
        })
    }

    /// Creates a new session from the path to `at`, with its messages, compactions and labels.
    pub(crate) fn fork(
        &self,
        at: &MessageId,
        id: &SessionId,
        details: &SessionDetails,
    ) -> Result<Self> {
        // The copies stay pending until a search needs them: few forks are searched.
        let key = self.write(|conn, name| fork::fork(conn, name, at, id, details))?;
        Ok(self.sibling(id, key))
    }
}

/// Verbs for the tests of the storage, which is below [`Session`](crate::Session).
#[cfg(test)]
impl SqliteSession {
    pub(super) fn update(&self, message: &Message) -> Result<crate::outcome::Updated> {
        self.write_messages(std::slice::from_ref(message), |conn, name, counted, max_bytes| {
            append::update(conn, name, message, counted, max_bytes)
        })
    }

    pub(super) fn delete_branch(&self, id: &MessageId) -> Result<Deleted> {
        self.write(|conn, name| delete::delete_branch(conn, name, id))
    }

    pub(super) fn clear(&self) -> Result<()> {
        self.write(delete::clear)
    }
}

/// The key of a handle that is not bound yet. Keys begin at 1.
const UNBOUND: i64 = 0;

pub(crate) struct Handle {
    id: SessionId,
    key: AtomicI64,
}

impl Handle {
    pub(super) fn new(id: SessionId) -> Self {
        Self::bound_to(id, UNBOUND)
    }

    pub(super) fn bound_to(id: SessionId, key: i64) -> Self {
        Self { id, key: AtomicI64::new(key) }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the session as a read sees it; `None` before its first write and after its removal.
    pub(crate) fn find(&self, conn: &Connection) -> BackendResult<Option<SessionRow>> {
        let found = row::find(conn, &self.id)?;
        Ok(found.filter(|session| self.bind(session.key) == session.key))
    }

    /// Returns the key of the session; `None` before its first write.
    ///
    /// # Errors
    /// If it was removed.
    pub(super) fn key(&self, conn: &Connection) -> BackendResult<Option<i64>> {
        let found = self.find(conn)?.map(|session| session.key);
        match self.key.load(Ordering::Relaxed) {
            bound if bound != UNBOUND && found.is_none() => {
                Err(BackendError::Own(Error::SessionRemoved { id: self.id.clone() }))
            }
            _ => Ok(found),
        }
    }

    /// Runs a write of this session. A session that it creates is bound when the write is committed.
    pub(super) fn write<T>(
        &self,
        database: &Database,
        work: impl Fn(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        let (answer, found) = database.write(|conn| {
            let named = self.named();
            Ok((work(conn, &named)?, named.found.get()))
        })?;
        self.bind(found);
        Ok(answer)
    }

    /// The same for a write that takes well under a millisecond.
    pub(super) fn write_short<T>(
        &self,
        database: &Database,
        work: impl Fn(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        let (answer, found) = database.write_short(|conn| {
            let named = self.named();
            Ok((work(conn, &named)?, named.found.get()))
        })?;
        self.bind(found);
        Ok(answer)
    }

    fn named(&self) -> Named<'_> {
        Named { id: &self.id, bound: self.key.load(Ordering::Relaxed), found: Cell::new(UNBOUND) }
    }

    /// Binds the handle unless it is bound, and returns the key that it is bound to.
    fn bind(&self, key: i64) -> i64 {
        let bound = self.key.load(Ordering::Relaxed);
        if bound != UNBOUND || key == UNBOUND {
            return bound;
        }
        let order = Ordering::Relaxed;
        self.key.compare_exchange(UNBOUND, key, order, order).map_or_else(|bound| bound, |_| key)
    }
}

/// The id of a session within one write.
pub(crate) struct Named<'h> {
    id: &'h SessionId,
    bound: i64,
    found: Cell<i64>,
}

impl<'h> Named<'h> {
    /// Returns the name of a session that no handle is bound to.
    pub(super) fn unbound(id: &'h SessionId) -> Self {
        Self { id, bound: UNBOUND, found: Cell::new(UNBOUND) }
    }

    /// Returns the session; `None` before its first write.
    ///
    /// # Errors
    /// If it was removed.
    pub(crate) fn find(&self, conn: &Connection) -> BackendResult<Option<SessionRow>> {
        let found = row::find(conn, self.id)?;
        let key = found.map_or(UNBOUND, |session| session.key);
        if self.bound != UNBOUND && key != self.bound {
            return Err(BackendError::Own(Error::SessionRemoved { id: self.id.clone() }));
        }
        if found.is_some_and(|session| session.deleted_at.is_some()) {
            return Err(BackendError::Own(Error::SessionInTrash { id: self.id.clone() }));
        }
        self.found.set(key);
        Ok(found)
    }

    /// Returns the session, creating it before its first write.
    ///
    /// # Errors
    /// If it was removed.
    pub(crate) fn find_or_create(&self, conn: &Connection) -> BackendResult<SessionRow> {
        if let Some(session) = self.find(conn)? {
            return Ok(session);
        }
        let created = catalog::create(conn, self.id)?;
        self.found.set(created.key);
        Ok(created)
    }
}

impl Deref for Named<'_> {
    type Target = SessionId;

    fn deref(&self) -> &SessionId {
        self.id
    }
}
