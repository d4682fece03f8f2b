//! Streams over a path. Opening one fixes what it covers; each batch is a separate read.
//!
//! Oldest first, the whole plan is made at once. Newest first, it is made while it is read, so that the end of a long
//! path costs only what is read. That is safe: addresses and parents never change, and compactions added since have
//! greater keys.

use std::collections::VecDeque;
use std::sync::Arc;

use super::connection::Database;
use super::path::SessionTree;
use super::plan_reader::{Place, PlanReader};
use super::{compaction, message, path};
use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;
use crate::sql::{BackendResult, Connection};
use crate::tree::{Address, Plan, Walk};
use crate::view::Order;

/// How many ranges are planned when a stream is opened newest first; the rest is planned when it is needed.
const AHEAD: usize = 128;

#[derive(Clone, Copy)]
pub(super) struct Path {
    pub(super) session: i64,
    pub(super) leaf: Option<Address>,
    pub(super) is_raw: bool,
}

/// An open stream over a view, in one direction.
///
/// Opening it fixes what it covers; messages deleted since are skipped. It holds no transaction between calls.
pub(crate) struct Cursor {
    database: Arc<Database>,
    /// `None` for a session that does not exist.
    path: Option<Path>,
    reader: PlanReader,
    /// Where planning continues; `None` when the plan is complete.
    at: Option<Address>,
    /// The newest compaction when the stream was opened.
    newest_compaction: i64,
    /// Messages that were read when the stream was opened, and not returned yet.
    ahead: VecDeque<Message>,
    /// The total, if it was counted when the stream was opened.
    total: Option<u64>,
}

impl Cursor {
    /// Opens a stream over a plan, oldest first.
    pub(super) fn over(database: &Arc<Database>, plan: Plan) -> Self {
        Self {
            database: Arc::clone(database),
            path: None,
            reader: PlanReader::new(plan, Order::OldestFirst, false),
            at: None,
            newest_compaction: 0,
            ahead: VecDeque::new(),
            total: None,
        }
    }

    /// Opens a stream; `path` returns what to read.
    pub(super) fn open(
        database: &Arc<Database>,
        order: Order,
        path: impl FnOnce(&Connection) -> BackendResult<Option<Path>>,
    ) -> Result<Self> {
        database.read(|conn| Self::open_on(database, order, path(conn)?, conn))
    }

    /// Opens a stream newest first, counts it, and reads its first messages, all in one transaction.
    pub(super) fn open_at_newest(
        database: &Arc<Database>,
        count: usize,
        path: impl FnOnce(&Connection) -> BackendResult<Option<Path>>,
    ) -> Result<Self> {
        database.read(|conn| {
            let mut cursor = Self::open_on(database, Order::NewestFirst, path(conn)?, conn)?;
            cursor.total = Some(cursor.count(conn)?);
            cursor.ahead = cursor.read(conn, count)?.into();
            Ok(cursor)
        })
    }

    fn open_on(
        database: &Arc<Database>,
        order: Order,
        path: Option<Path>,
        conn: &Connection,
    ) -> BackendResult<Self> {
        let is_raw = path.is_some_and(|path| path.is_raw);
        let mut cursor = Self {
            database: Arc::clone(database),
            path,
            reader: PlanReader::new(Plan::new(), order, !is_raw),
            at: path.and_then(|path| path.leaf),
            newest_compaction: compaction::newest(conn)?,
            ahead: VecDeque::new(),
            total: None,
        };
        if order == Order::NewestFirst {
            cursor.plan_ahead(conn)?;
        }
        if let (Order::OldestFirst, Some(path)) = (order, path) {
            let plan = path::plan(conn, path.session, path.leaf, is_raw)?;
            cursor.reader = PlanReader::new(plan, order, !is_raw);
            cursor.at = None;
        }
        Ok(cursor)
    }

    /// Plans the next ranges.
    fn plan_ahead(&mut self, conn: &Connection) -> BackendResult<()> {
        let (Some(path), Some(at)) = (self.path, self.at) else { return Ok(()) };
        if !message::is_there(conn, at)? {
            // The branch was deleted while it was read, so its parent is not known any more.
            self.at = None;
            return Ok(());
        }
        let mut tree = SessionTree::before_compaction(conn, path.session, self.newest_compaction);
        let mut walk = match path.is_raw {
            true => Walk::raw(&mut tree, Some(at)),
            false => Walk::visible(&mut tree, Some(at)),
        };
        let is_first = self.reader.is_empty();
        while let Some(planned) = walk.next()? {
            self.reader.push(planned);
            if is_first && self.reader.len() == AHEAD {
                break;
            }
        }
        self.at = walk.position();
        Ok(())
    }

    fn read(&mut self, conn: &Connection, limit: usize) -> BackendResult<Vec<Message>> {
        loop {
            if self.reader.is_at_end() {
                self.plan_ahead(conn)?;
            }
            let messages = self.reader.next(conn, limit)?;
            if !messages.is_empty() || (self.reader.is_at_end() && self.at.is_none()) {
                return Ok(messages);
            }
        }
    }

    fn skip(&mut self, conn: &Connection, session: i64, id: &MessageId) -> BackendResult<bool> {
        let Some(place) = Place::find(conn, session, id)? else { return Ok(false) };
        loop {
            let is_found = self.reader.skip_past(place);
            if is_found || self.at.is_none() {
                return Ok(is_found);
            }
            self.plan_ahead(conn)?;
        }
    }

    /// Returns how many messages and summaries the stream covers, without those deleted since it was opened.
    fn count(&mut self, conn: &Connection) -> BackendResult<u64> {
        let Some(Path { session, leaf: Some(leaf), is_raw }) = self.path else { return Ok(0) };
        if !message::is_there(conn, leaf)? {
            // Others may have deleted the rest of the path, too, so the runs do not tell how long it is.
            while self.at.is_some() {
                self.plan_ahead(conn)?;
            }
            return self.reader.count_stored(conn);
        }
        let mut tree = SessionTree::before_compaction(conn, session, self.newest_compaction);
        let walk = match is_raw {
            true => Walk::raw(&mut tree, Some(leaf)),
            false => Walk::visible(&mut tree, Some(leaf)),
        };
        path::count(conn, &walk.plan()?, !is_raw)
    }
}

impl Cursor {
    /// Returns the next messages, at most `limit`; none only at the end.
    pub(crate) fn next(&mut self, limit: usize) -> Result<Vec<Message>> {
        if !self.ahead.is_empty() {
            return Ok(self.ahead.drain(..limit.min(self.ahead.len())).collect());
        }
        let database = Arc::clone(&self.database);
        database.read(|conn| self.read(conn, limit))
    }

    /// Continues after this message or summary. Returns `false`, and stays where it is, if the view does not contain it.
    pub(crate) fn skip_past(&mut self, id: &MessageId) -> Result<bool> {
        let Some(path) = self.path else { return Ok(false) };
        let database = Arc::clone(&self.database);
        let is_found = database.read(|conn| self.skip(conn, path.session, id))?;
        if is_found {
            self.ahead.clear();
        }
        Ok(is_found)
    }

    /// Returns how many messages and summaries the view contains, without those deleted since. A stream that was opened by
    /// [`open_at_newest`](Self::open_at_newest) counted when it was opened.
    pub(crate) fn total(&mut self) -> Result<u64> {
        if let Some(total) = self.total {
            return Ok(total);
        }
        let database = Arc::clone(&self.database);
        database.read(|conn| self.count(conn))
    }
}
