//! Reads: each in a transaction, on a connection that is kept for the next one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::connection::{Database, busy_ms, lock};
use super::encryption::Beginning;
use super::interrupt::{Watch, interruptible};
use super::transaction;
use crate::error::Result;
use crate::sql::{self, BackendError, BackendResult};

impl Database {
    /// Runs a read; it sees one snapshot.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            return server.read(None, work).map_err(|error| error.into_error(0));
        }
        self.with_reader(|conn, beginning| self.read_on(conn, beginning, work))
    }

    /// Runs a long read, which an interrupt stops.
    pub(crate) fn read_long<T>(
        &self,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        self.read_watched(self.watch(), work)
    }

    /// Runs a long read, which this watch stops.
    pub(crate) fn read_watched<T>(
        &self,
        watch: Watch,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            let stop = move || watch.is_raised();
            let answer = server.read(Some(Box::new(stop)), work);
            return answer.map_err(|error| error.into_error(0));
        }
        self.with_reader(|conn, beginning| {
            interruptible(conn, watch, |conn| self.read_on(conn, beginning, work))
        })
    }

    fn read_on<T>(
        &self,
        conn: &Connection,
        beginning: Beginning<'_>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        match self.pinned {
            Some(_) => work(&conn.into()),
            None => transaction::read(conn, |conn| {
                self.check_version(conn)?;
                // From here on the read has its snapshot.
                drop(beginning);
                work(&conn.into())
            }),
        }
    }

    fn with_reader<T>(
        &self,
        work: impl FnOnce(&mut Connection, Beginning<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        let answer = match (&self.pinned, &self.file, self.writer.get()) {
            (Some(pinned), ..) => pinned.read(|conn| work(conn, Beginning::default())),
            (None, None, Some(writer)) => {
                self.check_not_importing()?;
                work(&mut lock(writer), Beginning::default())
            }
            _ => self.read_idle(self.begin_read(), work),
        };
        answer.map_err(|error| self.public_error(error, busy_ms(&self.config)))
    }

    /// Runs a read on an idle connection, or on a new one, and keeps it.
    fn read_idle<T>(
        &self,
        beginning: Beginning<'_>,
        work: impl FnOnce(&mut Connection, Beginning<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        // Before a connection leaves its place, so that an error does not close it.
        self.check_file()?;
        let idle = lock(&self.idle).pop();
        let mut conn = idle.map_or_else(|| self.open_reader(), Ok)?;
        let generation = beginning.generation;
        let answer = catch_unwind(AssertUnwindSafe(|| work(&mut conn, beginning)));
        let error = answer.as_ref().map(|answer| answer.as_ref().err());
        self.keep(conn, || {
            error.is_ok_and(|error| {
                !error.is_some_and(BackendError::is_of_system)
                    && self.is_usable_after(error, generation)
            })
        });
        let answer = answer.unwrap_or_else(|panic| resume_unwind(panic));
        // Without locks others may have written under the read.
        if self.is_without_locks() { self.check_file().and(answer) } else { answer }
    }

    /// Keeps a connection after a read, unless there are enough; it is not sound if a system call failed under it.
    fn keep(&self, conn: Connection, is_sound: impl FnOnce() -> bool) {
        let mut idle = lock(&self.idle);
        // Asked while nobody else can forget the idle ones: a connection with the former key is not kept after that.
        let is_sound = is_sound();
        let is_last = idle.is_empty() && self.writer.get().is_none() && !self.is_read_only();
        if is_sound && conn.is_autocommit() {
            if is_last || idle.len() < self.config.idle_readers {
                idle.push(conn);
            }
        } else if is_last {
            // It is replaced before the next write.
            self.is_suspect.store(true, Ordering::Relaxed);
            let _ = self.writer.set(Mutex::new(conn));
        }
    }

    /// Closes the idle connections.
    pub(super) fn forget_readers(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle));
        drop(idle);
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

    fn count(conn: &sql::Connection<'_>) -> BackendResult<i64> {
        conn.one("SELECT count(*) FROM setting", ())
    }

    fn insert(conn: &sql::Connection<'_>) -> BackendResult<usize> {
        conn.run("INSERT INTO setting (name, value) VALUES ('test', '')", ())
    }

    #[test]
    fn reads_before_the_first_write_use_the_connection_that_opened_the_store() -> Result<()> {
        let (_folder, database) = opened()?;
        for _ in 0..3 {
            database.read(count)?;
        }
        assert!(lock(&database.idle).len() == 1 && database.writer.get().is_none());
        assert_eq!(database.write(insert)?, 1);
        assert!(lock(&database.idle).is_empty() && database.writer.get().is_some());
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
            // Not the same text: a server is asked each question once in a transaction.
            Ok((before, conn.one::<i64>("SELECT count(name) FROM setting", ())?))
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
