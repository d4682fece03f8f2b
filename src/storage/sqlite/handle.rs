//! Handles: which session an id means.
//!
//! A handle is bound to the first session that it finds or creates under its id. When that session is removed, the
//! handle reads as empty and refuses to write, even if the id belongs to another session by then. Keys of sessions are
//! never reused, so comparing keys is enough, and the key is read with the session's row anyway.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::Connection;

use super::catalog;
use super::connection::Database;
use super::error::{BackendError, BackendResult};
use super::row::session::{self as row, SessionRow};
use crate::error::{Error, Result};
use crate::id::SessionId;

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
    pub(super) fn find(&self, conn: &Connection) -> BackendResult<Option<SessionRow>> {
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
        work: impl FnOnce(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        let named = self.named();
        let answer = database.write(|conn| work(conn, &named))?;
        self.bind(named.found.get());
        Ok(answer)
    }

    /// The same for a write that takes well under a millisecond.
    pub(super) fn write_short<T>(
        &self,
        database: &Database,
        work: impl FnOnce(&Connection, &Named<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        let named = self.named();
        let answer = database.write_short(|conn| work(conn, &named))?;
        self.bind(named.found.get());
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
pub(super) struct Named<'h> {
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
    pub(super) fn find(&self, conn: &Connection) -> BackendResult<Option<SessionRow>> {
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
    pub(super) fn find_or_create(&self, conn: &Connection) -> BackendResult<SessionRow> {
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
