//! What an export has written while its snapshot is open.
//!
//! A caller's output may be slow, or take nothing more, and while a snapshot is open the log cannot be emptied. So an export
//! writes here, and to the output once the snapshot is closed. What is short stays in memory. The rest is in a database of its
//! own that has the key of the store. Its file has lost its name: nothing is left of it when the process is killed.

use std::io::{self, Write};
use std::sync::Arc;

use rusqlite::Connection;

use super::connection::{Database, busy_ms, unlock};
use super::interrupt::Watch;
use super::partial_file::PartialFile;
use crate::error::Result;

/// How many bytes are kept in memory, and in each row.
const CHUNK: usize = 1 << 20;
/// How many bytes an output is given at a time. Between two of them an interrupt is looked for.
const PIECE: usize = 1 << 16;

/// Nothing of it has to survive.
const CREATE: &str = "PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
BEGIN;
CREATE TABLE spool (n INTEGER PRIMARY KEY, bytes BLOB)";

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
        let watch = self.interrupt_signal().watch();
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
        let Some(folder) = self.database.path().and_then(std::path::Path::parent) else {
            return Ok(None);
        };
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

    /// Calls `with` with all that was written, piece by piece.
    pub(crate) fn each_piece(&self, with: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
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

    fn public(&self, error: impl Into<super::error::BackendError>) -> crate::error::Error {
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
