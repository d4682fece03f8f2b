//! How the verbs of a session reach its rows: a read or a write of the session that its handle means.

use rusqlite::Connection;

use super::super::cursor::Path;
use super::super::error::BackendResult;
use super::super::handle::Named;
use super::super::plan_reader::PlanReader;
use super::super::row::session::SessionRow;
use super::super::{append, catalog, compaction, head, message, path};
use super::SqliteSession;
use crate::compaction::Compaction;
use crate::error::Result;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::tree::{Address, Span};
use crate::view::{Order, View};

impl SqliteSession {
    /// Reads from the session; a session that does not exist reads as empty.
    pub(super) fn read<T: Default>(
        &self,
        work: impl FnOnce(&Connection, &SessionRow) -> BackendResult<T>,
    ) -> Result<T> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => work(conn, &session),
            None => Ok(T::default()),
        })
    }

    /// Reads the path to a leaf; `None` is the head.
    pub(super) fn read_path<T: Default>(
        &self,
        leaf: Option<&MessageId>,
        work: impl FnOnce(&Connection, &SessionRow, Option<Address>) -> BackendResult<T>,
    ) -> Result<T> {
        self.database.read(|conn| {
            let session = self.handle.find(conn)?;
            let leaf = self.leaf(conn, session.as_ref(), leaf)?;
            session.map_or_else(|| Ok(T::default()), |session| work(conn, &session, leaf))
        })
    }

    pub(super) fn leaf(
        &self,
        conn: &Connection,
        session: Option<&SessionRow>,
        leaf: Option<&MessageId>,
    ) -> BackendResult<Option<Address>> {
        match leaf {
            None => Ok(session.and_then(|session| session.head)),
            Some(id) => {
                message::place(conn, session.map(|session| session.key), self.id(), id).map(Some)
            }
        }
    }

    pub(super) fn path_of(&self, conn: &Connection, view: &View) -> BackendResult<Option<Path>> {
        let session = self.handle.find(conn)?;
        let leaf = self.leaf(conn, session.as_ref(), view.leaf())?;
        let is_raw = view.is_raw();
        Ok(session.map(|session| Path { session: session.key, leaf, is_raw }))
    }

    pub(super) fn read_messages(
        &self,
        leaf: Option<&MessageId>,
        is_raw: bool,
    ) -> Result<Vec<Message>> {
        self.read_path(leaf, |conn, session, leaf| {
            let plan = path::plan(conn, session.key, leaf, is_raw)?;
            PlanReader::new(plan, Order::OldestFirst, !is_raw).rest(conn)
        })
    }

    /// Runs a short write of the session, creating it if it does not exist.
    pub(super) fn write_short<T>(
        &self,
        work: impl FnOnce(&Connection, &mut SessionRow) -> BackendResult<T>,
    ) -> Result<T> {
        self.write_short_as(|conn, name| work(conn, &mut name.find_or_create(conn)?))
    }

    /// Writes under the session's name, which says whether the session exists.
    pub(super) fn write_as<T>(
        &self,
        work: impl FnOnce(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        self.handle.write(&self.database, work)
    }

    /// The same for a write that takes well under a millisecond; it may share its commit.
    pub(super) fn write_short_as<T>(
        &self,
        work: impl FnOnce(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        self.handle.write_short(&self.database, work)
    }

    /// Writes messages under the session's name: a few short ones share their commit with other writes.
    pub(super) fn write_messages<T>(
        &self,
        messages: &[Message],
        work: impl FnOnce(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        match append::are_short(messages) {
            true => self.write_short_as(work),
            false => self.write_as(work),
        }
    }

    /// Adds a compaction that is within the size limit.
    pub(super) fn write_compaction<T>(
        &self,
        compaction: &Compaction,
        work: impl FnOnce(&Connection, Option<SessionRow>) -> BackendResult<T>,
    ) -> Result<T> {
        let max = self.database.config.max_message_bytes;
        self.write_as(|conn, name| {
            compaction::check_size(compaction, max)?;
            let session = name.find(conn)?;
            let answer = work(conn, session)?;
            if let Some(session) = session {
                catalog::touch_view(conn, session.key)?;
            }
            Ok(answer)
        })
    }

    /// Reads the range of a compaction.
    pub(super) fn read_range(
        &self,
        id: &CompactionId,
        work: impl FnOnce(&Connection, Span) -> BackendResult<Vec<Message>>,
    ) -> Result<Vec<Message>> {
        self.database.read(|conn| {
            let session = self.handle.find(conn)?.map(|session| session.key);
            work(conn, compaction::require(conn, session, self.id(), id)?)
        })
    }

    pub(super) fn step_head(&self, by: i64) -> Result<bool> {
        self.write_short_as(|conn, name| match name.find(conn)? {
            Some(mut session) => head::step(conn, &mut session, by),
            None => Ok(false),
        })
    }
}
