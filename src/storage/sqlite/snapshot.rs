//! A snapshot: the database as it is now, for reads that take long; and the spool, for what is written of it.
//!
//! Every read of a snapshot runs on one connection, inside one transaction. Others write meanwhile; the log grows until the
//! snapshot is dropped. A database in memory has one connection, so its snapshot is a copy. An interrupt ends all reads of a
//! snapshot that was made before it, so an export needs no watch of its own.
//!
//! A caller's output may be slow, or take nothing more. So an export writes to a spool, and to the output once the snapshot is
//! closed. What is short stays in memory. The rest is in a database of its own that has the key of the store. Its file has lost
//! its name: nothing is left of it when the process is killed.
//!
//! Invariant: no code of a caller runs while the connection is locked.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::backup::PartialFile;
use super::connection::{Database, busy_ms, prepare, unlock};
use super::interrupt::Watch;
use super::transaction;
use crate::error::{Error, Result};
use crate::sql::{BackendError, BackendResult};

/// How many bytes are kept in memory, and in each row.
const CHUNK: usize = 1 << 20;
/// How many bytes an output is given at a time. Between two of them an interrupt is looked for.
const PIECE: usize = 1 << 16;

/// Nothing of it has to survive.
const CREATE: &str = "PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
BEGIN;
CREATE TABLE spool (n INTEGER PRIMARY KEY, bytes BLOB)";

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
        let watch = self.watch();
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            let server = server.snapshot(Box::new(move || watch.is_raised()));
            let server = server.map_err(|error| error.into_error(0))?;
            return Ok(Arc::new(self.on_snapshot(server)));
        }
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

/// What an export has written, before it is written to the output of the caller.
pub(crate) struct Spool {
    database: Arc<Database>,
    watch: Watch,
    /// Closed before the file is removed, where an open file cannot lose its name.
    file: Option<(Connection, PartialFile)>,
    rows: u64,
    /// What follows the rows.
    memory: Vec<u8>,
}

impl Database {
    /// Returns an empty spool; an interrupt from now on ends it.
    pub(crate) fn spool(self: &Arc<Self>) -> Spool {
        let watch = self.watch();
        let database = Arc::clone(self);
        Spool { database, watch, file: None, rows: 0, memory: Vec::new() }
    }
}

impl Spool {
    /// Moves what is in memory to the file.
    fn spill(&mut self) -> Result<()> {
        if self.file.is_none() {
            self.file = self.create()?;
        }
        // What was written by a store in memory stays there.
        let Some((conn, _)) = &self.file else { return Ok(()) };
        conn.prepare_cached("INSERT INTO spool (bytes) VALUES (?1)")
            .and_then(|mut insert| insert.execute([&self.memory]))
            .map_err(|error| self.public(error))?;
        self.rows += 1;
        self.memory.clear();
        Ok(())
    }

    fn create(&self) -> Result<Option<(Connection, PartialFile)>> {
        #[cfg(feature = "postgres")]
        let temporary = self.database.server.as_ref().map(|_| std::env::temp_dir());
        #[cfg(not(feature = "postgres"))]
        let temporary: Option<std::path::PathBuf> = None;
        let own = self.database.path().and_then(std::path::Path::parent);
        let Some(folder) = temporary.as_deref().or(own) else { return Ok(None) };
        // A store that is only read may be in a folder that cannot be written.
        let file =
            PartialFile::create(folder).or_else(|_| PartialFile::create(&std::env::temp_dir()))?;
        let conn = file.open().map_err(|error| self.public(error))?;
        #[cfg(unix)]
        std::fs::remove_file(file.path()).map_err(|source| super::file::io(file.path(), source))?;
        unlock(&conn, &self.database.config).map_err(|error| self.public(error))?;
        conn.execute_batch(CREATE).map_err(|error| self.public(error))?;
        Ok(Some((conn, file)))
    }

    /// Calls `write` with the spool, and writes to the output what it wrote.
    pub(crate) fn collect<T>(
        mut self,
        output: &mut impl Write,
        write: impl FnOnce(&mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        let failed = |source| Error::Io { path: "the output of an export".into(), source };
        let written = write(&mut self)?;
        self.each_piece(&mut |bytes| output.write_all(bytes).map_err(failed))?;
        output.flush().map_err(failed)?;
        Ok(written)
    }

    /// Calls `with` with all that was written, piece by piece.
    fn each_piece(&self, with: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some((conn, _)) = &self.file {
            for row in 1..=self.rows {
                let bytes: Vec<u8> = conn
                    .prepare_cached("SELECT bytes FROM spool WHERE n = ?1")
                    .and_then(|mut select| select.query_row([row as i64], |row| row.get(0)))
                    .map_err(|error| self.public(error))?;
                self.give(&bytes, with)?;
            }
        }
        self.give(&self.memory, with)
    }

    fn give(&self, bytes: &[u8], with: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        bytes.chunks(PIECE).try_for_each(|piece| self.watch.check().and_then(|()| with(piece)))
    }

    fn public(&self, error: impl Into<BackendError>) -> Error {
        self.database.public_error(error.into(), busy_ms(&self.database.config))
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.memory.len() >= CHUNK {
            self.spill().map_err(io::Error::other)?;
        }
        self.memory.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
