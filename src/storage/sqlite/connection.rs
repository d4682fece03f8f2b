//! The database: its file and its connections.
//!
//! Invariant: every write holds the one writing connection. Threads of this process queue on its mutex, and only
//! processes compete for SQLite's lock.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::{BackendError, BackendResult};
use super::interrupt::{InterruptSignal, Watch, interruptible};
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

/// One database and its connections.
pub(crate) struct Database {
    pub(super) config: Config,
    location: Location,
    /// Declared before the writer, so that the writer is dropped last: only a connection that can write checkpoints
    /// the write-ahead log and removes it.
    idle_readers: Mutex<Vec<Connection>>,
    /// `None` if the database is read-only.
    writer: Option<Mutex<Connection>>,
    /// Whether a system call failed under the writer, which is then reopened before its next write.
    is_suspect: AtomicBool,
    /// The file that the first connection opened.
    file: Option<FileId>,
    /// The number of this handle in this process.
    serial: u64,
    /// `None` for a database in memory.
    log: Option<Wal>,
    signal: InterruptSignal,
    /// How many messages this handle has appended since it last indexed the pending messages.
    pub(super) unindexed: AtomicU64,
}

/// The number of the next handle.
static SERIALS: AtomicU64 = AtomicU64::new(0);

enum Location {
    /// There is one connection, and readers use it, too.
    Memory,
    File(PathBuf),
    /// A file in a location where SQLite cannot create its lock files.
    Immutable(PathBuf),
}

impl Database {
    /// Opens the database in a file, creating the file if it does not exist.
    pub(crate) fn open(path: &Path, config: Config) -> Result<Self> {
        let busy_ms = busy_ms(&config);
        if path.as_os_str() == ":memory:" {
            let why = "SQLite gives this name to a database in memory; use `Store::open_in_memory`";
            return Err(Error::NotAStore { path: path.to_owned(), why: why.to_owned() });
        }
        make_private_file(path)?;
        require_regular_file(path)?;
        let path = &resolve(path)?;
        let writer = open_writer(path, &config)
            .and_then(|conn| schema::create_or_migrate(&conn, path, &config).map(|()| conn))
            .and_then(|conn| search_index::empty_if_outdated(&conn, &config).map(|()| conn))
            .map_err(|error| not_a_store(error, path, busy_ms))?;
        Ok(Self::new(config, Location::File(path.to_owned()), Some(writer)))
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
        Ok(Self::new(config, Location::Memory, Some(writer)))
    }

    /// Opens the database in a file for reading only.
    pub(crate) fn open_read_only(path: &Path, config: Config) -> Result<Self> {
        require_regular_file(path)?;
        let path = &resolve(path)?;
        let open = |location: Location| -> Result<Self> {
            let database = Self::new(config.clone(), location, None);
            let reader = database
                .open_reader()
                .and_then(|conn| {
                    transaction::read(&conn, |conn| schema::check(conn, path))?;
                    Ok(conn)
                })
                .map_err(|error| not_a_store(error, path, busy_ms(&config)))?;
            database.keep_reader(reader);
            Ok(database)
        };
        // WAL mode needs lock files. Where they cannot be created nobody can write, so the file is read as immutable.
        match open(Location::File(path.to_owned())) {
            Err(Error::ReadOnly | Error::Storage { .. }) if Wal::of(path).size() == 0 => {
                open(Location::Immutable(path.to_owned()))
            }
            answer => answer,
        }
    }

    fn new(config: Config, location: Location, writer: Option<Connection>) -> Self {
        let (log, file) = match &location {
            Location::Memory => (None, None),
            Location::File(path) | Location::Immutable(path) => {
                (Some(Wal::of(path)), FileId::of(path))
            }
        };
        Self {
            config,
            location,
            log,
            idle_readers: Mutex::new(Vec::new()),
            writer: writer.map(Mutex::new),
            is_suspect: AtomicBool::new(false),
            file,
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            signal: InterruptSignal::default(),
            unindexed: AtomicU64::new(0),
        }
    }

    /// Returns the file; `None` for a database in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.location {
            Location::Memory => None,
            Location::File(path) | Location::Immutable(path) => Some(path),
        }
    }

    /// Returns what tells this store from every other one that this process has opened.
    pub(super) fn identity(&self) -> String {
        match (self.path(), self.file) {
            (Some(_), Some(FileId { device, inode })) => format!("file {device}:{inode}"),
            (Some(path), None) => format!("file {}", path.display()),
            (None, _) => format!("memory {}", self.serial),
        }
    }

    pub(crate) fn interrupt_signal(&self) -> InterruptSignal {
        self.signal.clone()
    }

    /// Returns whether the database was opened for reading only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// Runs a read; it sees one snapshot.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> BackendResult<T>) -> Result<T> {
        self.with_reader(|conn| transaction::read(conn, work))
    }

    /// Runs a long read, which an interrupt stops.
    pub(crate) fn read_long<T>(
        &self,
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> Result<T> {
        let watch = self.signal.watch();
        self.with_reader(|conn| interruptible(conn, watch, |conn| transaction::read(conn, work)))
    }

    fn with_reader<T>(&self, work: impl FnOnce(&mut Connection) -> BackendResult<T>) -> Result<T> {
        let answer = match (&self.location, &self.writer) {
            (Location::Memory, Some(writer)) => {
                work(&mut writer.lock().unwrap_or_else(PoisonError::into_inner))
            }
            _ => self.reader().and_then(|mut conn| {
                let answer = work(&mut conn);
                if !answer.as_ref().is_err_and(BackendError::is_of_system) {
                    self.keep_reader(conn);
                }
                answer
            }),
        };
        answer.map_err(|error| error.into_error(busy_ms(&self.config)))
    }

    /// Runs a write: all of it or nothing.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&Connection) -> BackendResult<T>) -> Result<T> {
        let mut conn = self.writer()?;
        self.write_on(&mut conn, self.config.busy_timeout, work)
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
        let answer = interruptible(&mut conn, watch, |conn| {
            transaction::write(conn, &self.config, self.config.busy_timeout, work)
        });
        self.after_write(&answer, &mut conn);
        answer.map_err(|error| error.into_error(busy_ms(&self.config)))
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
        match self.write_on(&mut conn, Duration::ZERO, work) {
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
        work: impl FnOnce(&Connection) -> BackendResult<T>,
    ) -> BackendResult<T> {
        let answer = transaction::write(conn, &self.config, timeout, work);
        self.after_write(&answer, conn);
        answer
    }

    fn after_write<T>(&self, answer: &BackendResult<T>, conn: &mut Connection) {
        self.reopen_after(answer, conn);
        if let Some(log) = self.log.as_ref().filter(|_| answer.is_ok()) {
            log.keep_short(conn, self.config.busy_timeout);
        }
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
        if let Location::File(path) = &self.location
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
        idle.map_or_else(|| self.open_reader(), Ok)
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

    fn check_file(&self) -> BackendResult<()> {
        match self.path() {
            Some(path) if FileId::of(path) != self.file => {
                Err(BackendError::Own(Error::StoreMoved { path: path.to_owned() }))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn open_reader(&self) -> BackendResult<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = match &self.location {
            Location::Memory => {
                return Err(BackendError::Own(Error::Unsupported {
                    what: "a second connection to a database in memory",
                }));
            }
            Location::File(path) => {
                self.in_same_file(|| Ok(Connection::open_with_flags(path, flags)?))?
            }
            Location::Immutable(path) => Connection::open_with_flags(
                immutable_uri(path),
                flags | OpenFlags::SQLITE_OPEN_URI,
            )?,
        };
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
fn prepare(conn: &Connection, config: &Config) -> BackendResult<()> {
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

fn busy_ms(config: &Config) -> u64 {
    u64::try_from(config.busy_timeout.as_millis()).unwrap_or(u64::MAX)
}

/// Creates a file that only its owner can read; `false` if it exists.
pub(super) fn make_private_file(path: &Path) -> Result<bool> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

/// Returns the absolute path of a file, without symbolic links.
///
/// A store keeps this path: a later change of the current folder or of a link must not lead a new connection to another
/// file, and SQLite must not read a name as a URI. SQLite also puts the write-ahead log beside the resolved file.
fn resolve(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// Identifies a file while it exists, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the id of the file at a path; `None` if there is none, or if the system has no such ids.
    fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let file = std::fs::metadata(path).ok()?;
            Some(Self { device: file.dev(), inode: file.ino() })
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            None
        }
    }
}

/// Returns an error unless the path is a regular file. SQLite checks its content.
///
/// Invariant: nothing but SQLite opens the file of a database. On POSIX, closing any descriptor of a file drops all
/// locks that this process holds on it, those of other stores included.
fn require_regular_file(path: &Path) -> Result<()> {
    let file =
        std::fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let why = match file.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "it is a directory",
        // Opening a pipe blocks until someone writes into it.
        _ => "it is not a regular file",
    };
    Err(Error::NotAStore { path: path.to_owned(), why: why.to_owned() })
}

/// Returns whether a file has another header than SQLite's. Opening it is safe: SQLite refused it, so no store of
/// this process has it open.
fn has_other_header(path: &Path) -> bool {
    use std::io::Read;
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(16).read_to_end(&mut start));
    read.is_ok() && start != b"SQLite format 3\0"
}

/// SQLite reports another kind of file, or a damaged header, as "not a database"; the error here names the file.
fn not_a_store(error: BackendError, path: &Path, busy_ms: u64) -> Error {
    match error {
        BackendError::Sqlite(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) =>
        {
            let why = match has_other_header(path) {
                true => "its header is not that of an SQLite database".to_owned(),
                false => error.to_string(),
            };
            Error::NotAStore { path: path.to_owned(), why }
        }
        error => error.into_error(busy_ms),
    }
}

/// Returns the URI that makes SQLite treat the file as immutable.
fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for c in path.to_string_lossy().chars() {
        match c {
            '%' => uri.push_str("%25"),
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            c => uri.push(c),
        }
    }
    uri.push_str("?immutable=1");
    uri
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
