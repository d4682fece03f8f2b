//! The connections that read: the idle ones, and that which opened the store.
//!
//! To open a connection takes as long as to read a hundred messages: SQLite parses the whole schema. So opening a store
//! opens one connection, which serves reads until the first write takes it, and the next read opens its own. After a read
//! its connection is kept for the next one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, OpenFlags};

use super::connection::{Database, busy_ms, lock, prepare, unlock};
use super::encryption::Beginning;
use super::error::{BackendError, BackendResult};
use super::file;
use super::interrupt::{Watch, interruptible};
use super::transaction;
use crate::error::{Error, Result};

impl Database {
    /// Runs a read; it sees one snapshot.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> BackendResult<T>) -> Result<T> {
        self.with_reader(|conn, beginning| self.read_on(conn, beginning, work))
    }

    /// Runs a long read, which an interrupt stops.
    pub(crate) fn read_long<T>(
        &self,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<T> {
        self.read_watched(self.watch(), work)
    }

    /// Runs a long read, which this watch stops.
    pub(crate) fn read_watched<T>(
        &self,
        watch: Watch,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<T> {
        self.with_reader(|conn, beginning| {
            interruptible(conn, watch, |conn| self.read_on(conn, beginning, work))
        })
    }

    fn read_on<T>(
        &self,
        conn: &Connection,
        beginning: Beginning<'_>,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> BackendResult<T> {
        match self.pinned {
            Some(_) => work(conn),
            None => transaction::read(conn, |conn| {
                self.check_version(conn)?;
                // From here on the read has its snapshot.
                drop(beginning);
                work(conn)
            }),
        }
    }

    fn with_reader<T>(
        &self,
        work: impl FnOnce(&mut Connection, Beginning<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        let public = |error| self.public_error(error, busy_ms(&self.config));
        if let Some(pinned) = &self.pinned {
            return pinned.read(|conn| work(conn, Beginning::default())).map_err(public);
        }
        let beginning = self.begin_read();
        let answer = match (&self.file, self.writer.get()) {
            (None, Some(writer)) => {
                self.check_not_importing()?;
                work(&mut lock(writer), Beginning::default())
            }
            _ => self.reader().and_then(|(mut conn, is_first)| {
                let generation = beginning.generation;
                let answer = catch_unwind(AssertUnwindSafe(|| work(&mut conn, beginning)));
                let is_sound = match &answer {
                    Ok(Err(error)) => {
                        !error.is_of_system() && self.is_usable_after(Some(error), generation)
                    }
                    answer => answer.is_ok() && self.is_usable_after(None, generation),
                };
                self.keep_reader(conn, is_first, is_sound);
                let answer = answer.unwrap_or_else(|panic| resume_unwind(panic));
                // Without locks others may have written under the read.
                match &self.file {
                    Some(file) if file.is_without_locks() => file.check().and(answer),
                    _ => answer,
                }
            }),
        };
        answer.map_err(public)
    }

    /// Returns an idle reading connection, or a new one, and whether it is the one that opened the store.
    fn reader(&self) -> BackendResult<(Connection, bool)> {
        // Before a connection leaves its place, so that an error does not close it.
        self.check_file()?;
        let idle = lock(&self.idle_readers).pop();
        if let Some(conn) = idle {
            return Ok((conn, false));
        }
        let first = lock(&self.first).take();
        match first {
            Some(conn) => Ok((conn, true)),
            None => self.open_reader().map(|conn| (conn, false)),
        }
    }

    /// Takes a connection back after a read; it is not sound if a system call failed under it.
    pub(super) fn keep_reader(&self, conn: Connection, is_first: bool, is_sound: bool) {
        let is_sound = is_sound && conn.is_autocommit();
        if is_first && self.writer.get().is_none() {
            let mut first = lock(&self.first);
            if is_sound {
                *first = Some(conn);
                return;
            }
            // If it were the last connection, closing it would remove the log.
            self.is_suspect.store(true, Ordering::Relaxed);
            let _ = self.writer.set(Mutex::new(conn));
            return;
        }
        let mut idle = lock(&self.idle_readers);
        if is_sound && idle.len() < self.config.idle_readers {
            idle.push(conn);
        }
    }

    /// Closes the idle reading connections.
    pub(super) fn forget_readers(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle_readers));
        drop(idle);
    }

    pub(super) fn open_reader(&self) -> BackendResult<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let Some(file) = &self.file else {
            return Err(BackendError::Own(Error::Unsupported {
                what: "a second connection to a database in memory",
            }));
        };
        let conn = self.in_same_file(|| {
            Ok(match file.is_without_locks() {
                false => Connection::open_with_flags(file.path(), flags)?,
                true => Connection::open_with_flags(
                    file::immutable_uri(file.path()),
                    flags | OpenFlags::SQLITE_OPEN_URI,
                )?,
            })
        })?;
        unlock(&conn, &self.config)?;
        prepare(&conn, &self.config)?;
        Ok(conn)
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::Config;
    use super::*;

    /// A store that was opened again, and its folder.
    fn opened() -> Result<(tempfile::TempDir, Database)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bot.db");
        drop(Database::open(&path, Config::default())?);
        let database = Database::open(&path, Config::default())?;
        Ok((folder, database))
    }

    fn count(conn: &Connection) -> BackendResult<i64> {
        Ok(conn.query_row("SELECT count(*) FROM setting", [], |row| row.get(0))?)
    }

    fn insert(conn: &Connection) -> BackendResult<usize> {
        Ok(conn.execute("INSERT INTO setting (name, value) VALUES ('test', '')", [])?)
    }

    #[test]
    fn reads_before_the_first_write_use_the_connection_that_opened_the_store() -> Result<()> {
        let (_folder, database) = opened()?;
        for _ in 0..3 {
            database.read(count)?;
        }
        assert!(lock(&database.first).is_some());
        assert!(lock(&database.idle_readers).is_empty() && database.writer.get().is_none());
        assert_eq!(database.write(insert)?, 1);
        assert!(lock(&database.first).is_none() && database.writer.get().is_some());
        assert_eq!(database.read(count)?, 2);
        Ok(())
    }

    #[test]
    fn a_write_during_the_first_read_does_not_wait_for_it() -> Result<()> {
        let (_folder, database) = opened()?;
        let seen = database.read(|conn| {
            let before = count(conn)?;
            assert_eq!(database.write(insert).unwrap(), 1);
            assert_eq!(database.read(count).unwrap(), before + 1);
            Ok((before, count(conn)?))
        })?;
        assert_eq!(seen.0, seen.1, "one snapshot");
        assert_eq!(database.read(count)?, seen.0 + 1);
        Ok(())
    }

    /// If the only connection were closed, it would remove the log, and the store would take itself for moved.
    #[test]
    fn a_first_read_that_fails_or_panics_closes_nothing() -> Result<()> {
        let failed = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
        for is_panic in [false, true] {
            let (folder, database) = opened()?;
            let answer = catch_unwind(AssertUnwindSafe(|| {
                database.read(|conn| -> BackendResult<()> {
                    count(conn)?;
                    assert!(!is_panic, "in a read");
                    Err(rusqlite::Error::SqliteFailure(failed, None).into())
                })
            }));
            assert_eq!(answer.is_err(), is_panic);
            assert!(folder.path().join("bot.db-wal").exists());
            let before = database.read(count)?;
            assert_eq!(database.write(insert)?, 1);
            assert_eq!(database.read(count)?, before + 1);
        }
        Ok(())
    }

    #[test]
    fn a_store_without_idle_readers_keeps_its_only_connection() -> Result<()> {
        let (folder, database) = opened()?;
        let config = Config { idle_readers: 0, ..database.config.clone() };
        let path = folder.path().join("bot.db");
        drop(database);
        let database = Database::open(&path, config)?;
        for _ in 0..3 {
            database.read(count)?;
        }
        assert_eq!(database.write(insert)?, 1);
        drop(database);
        assert!(!folder.path().join("bot.db-wal").exists());
        Ok(())
    }
}
