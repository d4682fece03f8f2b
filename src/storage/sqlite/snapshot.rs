//! A snapshot: the database as it is now, for reads that take long.
//!
//! Every read of it runs on one connection, inside one transaction. Others write meanwhile; the log grows until the
//! snapshot is dropped, so what an export reads goes to a `spool` first, not to the caller. A database in memory has one
//! connection, so its snapshot is a copy. An interrupt ends all reads of a snapshot that was made before it, so an export or a
//! hash needs no watch of its own.
//!
//! Invariant: no code of a caller runs while the connection is locked.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::connection::{Database, busy_ms, prepare};
use super::error::BackendResult;
use super::interrupt::Watch;
use super::transaction;
use crate::error::Result;

/// The connection of a snapshot, in an open transaction.
pub(super) struct Pinned {
    conn: Mutex<Connection>,
    watch: Watch,
}

impl Pinned {
    /// Begins the transaction and fixes what it reads.
    fn begin(conn: Connection, watch: Watch) -> BackendResult<Self> {
        transaction::run(&conn, "BEGIN")?;
        // The snapshot is that of the first read.
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(Self { conn: Mutex::new(conn), watch })
    }

    /// Runs a read.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> BackendResult<T>,
    ) -> BackendResult<T> {
        self.watch.check()?;
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = work(&mut conn)?;
        // After some failed system calls SQLite rolls back, and a next read would see another state.
        match conn.is_autocommit() {
            false => Ok(answer),
            true => Err(transaction::rolled_back()),
        }
    }
}

impl Database {
    /// Returns the database as it is now, to be read only. It must not outlive this one, which has the file open.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Result<Arc<Self>> {
        let watch = self.interrupt_signal().watch();
        let pinned = match self.path() {
            // Without locks every read fails once another program has written.
            Some(_) if self.is_without_locks() => return Ok(Arc::clone(self)),
            Some(_) => self.pin(watch),
            None => {
                let copy = self.copy_to(Connection::open_in_memory, &watch, |_| {})?;
                prepare(&copy, &self.config).and_then(|()| Pinned::begin(copy, watch))
            }
        };
        let pinned = pinned.map_err(|error| self.public_error(error, busy_ms(&self.config)))?;
        Ok(Arc::new(self.pinned_at(pinned)))
    }

    fn pin(&self, watch: Watch) -> BackendResult<Pinned> {
        let _beginning = self.begin_read();
        let conn = self.open_reader()?;
        let mut pinned = Pinned::begin(conn, watch)?;
        let conn = pinned.conn.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.check_version(conn)?;
        Ok(pinned)
    }
}
