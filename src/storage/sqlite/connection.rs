//! The database: its file and its connections.
//!
//! Invariant: every write holds the one writing connection. Threads of this process queue on its mutex, and only
//! processes compete for SQLite's lock.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::catch_up::Deferred;
use super::error::{BackendError, BackendResult};
use super::file::{self, StoreFile};
use super::interrupt::{InterruptSignal, Watch, interruptible};
use super::snapshot::Pinned;
use super::wal::{self, Wal};
use super::{schema, search_index, sql_functions, transaction};
use crate::error::{Error, Result};

/// How many prepared statements a connection caches; there are fewer.
const CACHED_STATEMENTS: usize = 128;

/// How a database is opened.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Whether a commit waits for the disk.
    pub(crate) is_synchronous: bool,
    pub(crate) busy_timeout: Duration,
    pub(crate) cache_kib: u32,
    pub(crate) max_message_bytes: usize,
    pub(crate) idle_readers: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            is_synchronous: true,
            busy_timeout: Duration::from_secs(30),
            cache_kib: 2048,
            max_message_bytes: 64 << 20,
            idle_readers: 4,
        }
    }
}

/// The number of the next handle.
static SERIALS: AtomicU64 = AtomicU64::new(0);

/// One database and its connections.
pub(crate) struct Database {
    pub(super) config: Config,
    /// Declared before the writer, so that the writer is dropped last: only a connection that can write checkpoints
    /// the write-ahead log and removes it.
    idle_readers: Mutex<Vec<Connection>>,
    /// `None` if the database is read-only.
    writer: Option<Mutex<Connection>>,
    /// Whether a system call failed under the writer, which is then reopened before its next write.
    is_suspect: AtomicBool,
    /// The number of this handle in this process.
    serial: u64,
    /// `None` for a database in memory: there is one connection, and readers use it, too. Declared after the
    /// connections, so that the file is known as open until they are closed.
    file: Option<StoreFile>,
    log: Wal,
    signal: InterruptSignal,
    /// Set in a snapshot, which has no other connection.
    pinned: Option<Pinned>,
    /// The work on the search index that appends have put off.
    pub(super) deferred: Deferred,
}

impl Database {
    /// Opens the database in a file, creating the file if it does not exist.
    pub(crate) fn open(path: &Path, config: Config) -> Result<Self> {
        let busy_ms = busy_ms(&config);
        if path.as_os_str() == ":memory:" {
            let why = "SQLite gives this name to a database in memory; use `Store::open_in_memory`";
            return Err(Error::NotAStore { path: path.to_owned(), why: why.to_owned() });
        }
        file::make_private(path)?;
        let file = StoreFile::of(path)?;
        let opened = open_writer(file.path(), &config)
            .and_then(|conn| schema::create_or_migrate(&conn, file.path(), &config).map(|()| conn))
            .and_then(|conn| search_index::empty_if_outdated(&conn, &config).map(|()| conn));
        match opened {
            Ok(writer) => {
                file.remember_log();
                Ok(Self::new(config, Some(file), Some(writer)))
            }
            Err(error) => {
                let path = file.path().to_owned();
                drop(file);
                Err(not_a_store(error, &path, busy_ms))
            }
        }
    }

    /// Opens a database in memory.
    pub(crate) fn open_in_memory(config: Config) -> Result<Self> {
        let open = || -> BackendResult<Connection> {
            let conn = Connection::open_in_memory()?;
            prepare(&conn, &config)?;
            schema::create(&conn, &config)?;
            Ok(conn)
        };
        let writer = open().map_err(|error| error.into_error(0))?;
        Ok(Self::new(config, None, Some(writer)))
    }

    /// Opens the database in a file for reading only.
    pub(crate) fn open_read_only(path: &Path, config: Config) -> Result<Self> {
        let file = StoreFile::of(path)?;
        let path = file.path().to_owned();
        let opened = match Self::over_readers(file, config.clone()) {
            // The log needs lock files. Where they cannot be created, a file without a log is read without locks.
            Err(error) if error.is_of_opening() => StoreFile::of(&path)?
                .without_locks()
                .and_then(|file| Self::over_readers(file, config.clone())),
            answer => answer,
        };
        opened.map_err(|error| not_a_store(error, &path, busy_ms(&config)))
    }

    fn over_readers(file: StoreFile, config: Config) -> BackendResult<Self> {
        let database = Self::new(config, Some(file), None);
        let reader = database.open_reader()?;
        if let Some(file) = &database.file {
            transaction::read(&reader, |conn| schema::check(conn, file.path()))?;
        }
        database.keep_reader(reader);
        Ok(database)
    }

    fn new(config: Config, file: Option<StoreFile>, writer: Option<Connection>) -> Self {
        Self {
            config,
            idle_readers: Mutex::new(Vec::new()),
            writer: writer.map(Mutex::new),
            is_suspect: AtomicBool::new(false),
            file,
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            log: Wal::default(),
            signal: InterruptSignal::default(),
            pinned: None,
            deferred: Deferred::default(),
        }
    }

    /// Returns the snapshot that a connection reads.
    pub(super) fn pinned_at(&self, pinned: Pinned) -> Self {
        Self {
            pinned: Some(pinned),
            signal: self.signal.clone(),
            ..Self::new(self.config.clone(), None, None)
        }
    }

    /// Returns the file; `None` for a database in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(StoreFile::path)
    }

    /// Returns what tells this store from every other one that this process has opened.
    pub(super) fn identity(&self) -> String {
        match &self.file {
            Some(file) => file.identity(),
            None => format!("memory {}", self.serial),
        }
    }

    pub(crate) fn interrupt_signal(&self) -> InterruptSignal {
        self.signal.clone()
    }

    pub(super) fn is_without_locks(&self) -> bool {
        self.file.as_ref().is_some_and(StoreFile::is_without_locks)
    }

    /// Returns whether the database was opened for reading only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// Runs a read; it sees one snapshot.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> BackendResult<T>) -> Result<T> {
        self.with_reader(|conn| self.read_on(conn, work))
    }

    /// Runs a long read, which an interrupt stops.
    pub(crate) fn read_long<T>(
        &self,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<T> {
        self.read_watched(self.signal.watch(), work)
    }

    /// Runs a long read, which this watch stops.
    pub(crate) fn read_watched<T>(
        &self,
        watch: Watch,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<T> {
        self.with_reader(|conn| interruptible(conn, watch, |conn| self.read_on(conn, work)))
    }

    fn read_on<T>(
        &self,
        conn: &Connection,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> BackendResult<T> {
        match self.pinned {
            Some(_) => work(conn),
            None => transaction::read(conn, |conn| {
                self.check_version(conn)?;
                work(conn)
            }),
        }
    }

    fn with_reader<T>(&self, work: impl FnOnce(&mut Connection) -> BackendResult<T>) -> Result<T> {
        if let Some(pinned) = &self.pinned {
            return pinned.read(work).map_err(|error| error.into_error(busy_ms(&self.config)));
        }
        let answer = match (&self.file, &self.writer) {
            (None, Some(writer)) => {
                work(&mut writer.lock().unwrap_or_else(PoisonError::into_inner))
            }
            _ => self.reader().and_then(|mut conn| {
                let answer = work(&mut conn);
                if !answer.as_ref().is_err_and(BackendError::is_of_system) {
                    self.keep_reader(conn);
                }
                // Without locks others may have written under the read.
                match &self.file {
                    Some(file) if file.is_without_locks() => file.check().and(answer),
                    _ => answer,
                }
            }),
        };
        answer.map_err(|error| error.into_error(busy_ms(&self.config)))
    }

    /// Runs a write: all of it or nothing.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&Connection) -> BackendResult<T>) -> Result<T> {
        let mut conn = self.writer()?;
        self.write_on(&mut conn, self.config.busy_timeout, None, work)
            .map_err(|error| error.into_error(busy_ms(&self.config)))
    }

    /// Returns how many steps of SQLite's virtual machine a write takes.
    #[cfg(test)]
    pub(super) fn steps_of_write<T>(
        &self,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<(u64, T)> {
        let steps = std::sync::Arc::new(AtomicU64::new(0));
        let counter = std::sync::Arc::clone(&steps);
        let mut conn = self.writer()?;
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        let answer = conn
            .progress_handler(1, Some(count))
            .map_err(BackendError::from)
            .and_then(|()| transaction::write(&conn, &self.config, Duration::ZERO, work));
        let answer = answer.map_err(|error| error.into_error(0))?;
        conn.progress_handler(0, None::<fn() -> bool>)
            .map_err(|error| BackendError::from(error).into_error(0))?;
        Ok((steps.load(Ordering::Relaxed), answer))
    }

    /// Runs a long write, which an interrupt stops.
    pub(crate) fn write_long<T>(
        &self,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<T> {
        self.write_watched(self.signal.watch(), work)
    }

    /// Runs a write that this watch stops.
    pub(super) fn write_watched<T>(
        &self,
        watch: Watch,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<T> {
        let mut conn = self.writer()?;
        self.write_on(&mut conn, self.config.busy_timeout, Some(watch), work)
            .map_err(|error| error.into_error(busy_ms(&self.config)))
    }

    /// Runs a write if the write lock is free now; `None` if it is held or the database is read-only.
    pub(crate) fn try_write<T>(
        &self,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<Option<T>> {
        let Some(writer) = &self.writer else { return Ok(None) };
        let mut conn = match writer.try_lock() {
            Ok(conn) => conn,
            // If a thread panicked in a write, the transaction was rolled back.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        self.reopen_if_suspect(&mut conn).map_err(|error| error.into_error(0))?;
        match self.write_on(&mut conn, Duration::ZERO, None, work) {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_busy() => Ok(None),
            Err(error) => match error.into_error(0) {
                Error::ReadOnly => Ok(None),
                error => Err(error),
            },
        }
    }

    fn write_on<T>(
        &self,
        conn: &mut Connection,
        timeout: Duration,
        watch: Option<Watch>,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> BackendResult<T> {
        let mut is_long = false;
        let write = |conn: &Connection| {
            transaction::write(conn, &self.config, timeout, |conn| {
                let began = Instant::now();
                self.check_version(conn)?;
                let answer = work(conn)?;
                // As late as possible, and early enough to write nothing.
                self.check_file()?;
                is_long = began.elapsed() >= wal::LONG_WRITE;
                Ok(answer)
            })
        };
        let answer = match watch {
            Some(watch) => interruptible(conn, watch, write),
            None => write(conn),
        };
        // The file may be moved while the commit waits for the disk.
        let answer = match answer {
            Ok(answer) if self.config.is_synchronous => self.check_file().map(|()| answer),
            Err(error) => Err(schema::used_up_keys(conn, &error).unwrap_or(error)),
            answer => answer,
        };
        self.reopen_after(&answer, conn);
        if let Some(file) =
            self.file.as_ref().filter(|_| answer.is_ok() && self.log.is_due(is_long))
        {
            self.log.keep_short(conn, file.log_bytes(), self.config.busy_timeout);
        }
        answer
    }

    /// Returns an error unless the format is still that of this build: another process may have raised it.
    pub(super) fn check_version(&self, conn: &Connection) -> BackendResult<()> {
        self.path().map_or(Ok(()), |path| schema::check_version(conn, path))
    }

    fn writer(&self) -> Result<MutexGuard<'_, Connection>> {
        let writer = self.writer.as_ref().ok_or(Error::ReadOnly)?;
        // If a thread panicked in a write, the transaction was rolled back.
        let mut conn = writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.reopen_if_suspect(&mut conn).map_err(|error| error.into_error(0))?;
        Ok(conn)
    }

    /// Reopens the writing connection after a failed system call.
    ///
    /// The connection's cached state may be wrong: FTS5 keeps totals that it failed to read, and would write them
    /// with the next commit.
    fn reopen_after<T>(&self, answer: &BackendResult<T>, conn: &mut Connection) {
        if answer.as_ref().is_err_and(BackendError::is_of_system) {
            self.is_suspect.store(true, Ordering::Relaxed);
            // If this fails, the next write tries again.
            let _ = self.reopen_if_suspect(conn);
        }
    }

    fn reopen_if_suspect(&self, conn: &mut Connection) -> BackendResult<()> {
        if let Some(path) = self.path()
            && self.is_suspect.load(Ordering::Relaxed)
        {
            // The new connection is opened before the old one is closed: the last close would checkpoint and remove
            // the log.
            *conn = self.in_same_file(|| open_writer(path, &self.config))?;
            self.is_suspect.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns an idle reading connection, or a new one.
    fn reader(&self) -> BackendResult<Connection> {
        let idle = self.idle_readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(conn) => self.check_file().map(|()| conn),
            None => self.open_reader(),
        }
    }

    fn keep_reader(&self, conn: Connection) {
        let mut idle = self.idle_readers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.config.idle_readers && conn.is_autocommit() {
            idle.push(conn);
        }
    }

    /// Opens a further connection, if the path still leads to the file that the first one opened.
    ///
    /// Checked before, so that nothing is written to another file, and after, because the file may be replaced between the
    /// check and the opening.
    fn in_same_file(
        &self,
        open: impl FnOnce() -> BackendResult<Connection>,
    ) -> BackendResult<Connection> {
        self.check_file()?;
        let conn = open()?;
        self.check_file()?;
        Ok(conn)
    }

    /// Checks that the path leads to the file of this database.
    fn check_file(&self) -> BackendResult<()> {
        self.file.as_ref().map_or(Ok(()), StoreFile::check)
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
        prepare(&conn, &self.config)?;
        Ok(conn)
    }
}

fn open_writer(path: &Path, config: &Config) -> BackendResult<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    prepare(&conn, config)?;
    Ok(conn)
}

/// Configures a connection.
pub(super) fn prepare(conn: &Connection, config: &Config) -> BackendResult<()> {
    conn.busy_timeout(config.busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    sql_functions::register(conn)?;
    // Otherwise a statement with a bound LIMIT is recompiled on each run.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let synchronous = if config.is_synchronous { "FULL" } else { "NORMAL" };
    conn.pragma_update(None, "synchronous", synchronous)?;
    conn.pragma_update(None, "cache_size", -i64::from(config.cache_kib))?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "journal_size_limit", wal::LIMIT)?;
    // Compiled now: after an allocation failure it could not be, and the transaction would keep its lock.
    conn.prepare_cached("ROLLBACK")?;
    Ok(())
}

pub(super) fn busy_ms(config: &Config) -> u64 {
    u64::try_from(config.busy_timeout.as_millis()).unwrap_or(u64::MAX)
}

/// SQLite reports another kind of file, or a damaged header, as "not a database", and a file that was cut off as
/// "malformed"; the error here names the file.
fn not_a_store(error: BackendError, path: &Path, busy_ms: u64) -> Error {
    match error {
        BackendError::Sqlite(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) =>
        {
            let why = match file::has_other_header(path) {
                true => "its header is not that of an SQLite database".to_owned(),
                false => error.to_string(),
            };
            Error::NotAStore { path: path.to_owned(), why }
        }
        error => match error.into_error(busy_ms) {
            Error::Corrupt { what } => {
                let what = file::cut_off(path).unwrap_or(what);
                Error::Corrupt { what: format!("{}: {what}", crate::foreign::path(path)) }
            }
            error => error,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_panics_is_rolled_back_and_later_writes_work() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        let insert = |conn: &Connection| -> BackendResult<usize> {
            Ok(conn.execute("INSERT INTO setting (name, value) VALUES ('test', '')", [])?)
        };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            database.write(|conn| -> BackendResult<()> {
                insert(conn)?;
                panic!("in a write");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(database.try_write(insert)?, Some(1));
        assert_eq!(
            database
                .write(|conn| Ok(conn.execute("DELETE FROM setting WHERE name = 'test'", [])?))?,
            1
        );
        Ok(())
    }
}
