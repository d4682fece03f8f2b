//! The database: its file and its connections.
//!
//! Invariant: every write uses the one writing connection. Threads of this process queue for it (`commit_group`), and
//! only processes compete for SQLite's lock.
//!
//! To open a connection takes as long as to read a hundred messages: SQLite parses the whole schema. So opening a store
//! opens one connection, which serves reads until the first write takes it, and the next read opens its own.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::catch_up::Deferred;
use super::commit_group::Writers;
use super::encryption::{Beginning, Encryption};
use super::error::{BackendError, BackendResult};
use super::file::{self, StoreFile};
use super::interrupt::{InterruptSignal, Watch, interruptible};
use super::snapshot::Pinned;
use super::transcript::projection::Projectors;
use super::vocabulary::KnownWords;
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
    /// `None` if the file is not encrypted.
    pub(crate) encryption: Option<Arc<Encryption>>,
    /// The size, in bytes, up to which an erasure always rewrites the file.
    pub(crate) rewritten_up_to: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            is_synchronous: true,
            busy_timeout: Duration::from_secs(30),
            cache_kib: 2048,
            max_message_bytes: 64 << 20,
            idle_readers: 4,
            encryption: None,
            rewritten_up_to: 64 << 20,
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
    /// The connection that the store was opened with, unless it is the writer or a read has it. It can write, so it is
    /// never closed before there is a writer.
    first: Mutex<Option<Connection>>,
    /// Empty until the first write, and always if the database is read-only.
    writer: OnceLock<Mutex<Connection>>,
    /// Who uses the writer, and in which order.
    pub(super) writers: Writers,
    is_read_only: bool,
    /// Whether a system call failed under the writer, which is then reopened before its next write.
    pub(super) is_suspect: AtomicBool,
    /// The number of this handle in this process.
    serial: u64,
    /// `None` for a database in memory: there is one connection, and readers use it, too. Declared after the
    /// connections, so that the file is known as open until they are closed.
    pub(super) file: Option<StoreFile>,
    pub(super) log: Wal,
    pub(super) signal: InterruptSignal,
    /// Set in a snapshot, which has no other connection.
    pinned: Option<Pinned>,
    /// The work on the search index that appends have put off.
    pub(super) deferred: Deferred,
    pub(super) known_words: KnownWords,
    /// What is known of the transcripts that were projected last.
    pub(super) projectors: Projectors,
}

impl Drop for Database {
    /// Runs before the connections are closed.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            file.forget_removed();
        }
    }
}

impl Database {
    /// Opens the database in a file, creating the file if it does not exist.
    pub(crate) fn open(path: &Path, config: Config) -> Result<Self> {
        let (busy_ms, is_encrypted) = (busy_ms(&config), config.encryption.is_some());
        if path.as_os_str() == ":memory:" {
            let why = "SQLite gives this name to a database in memory; use `Store::open_in_memory`";
            return Err(Error::NotAStore { path: path.to_owned(), why: why.to_owned() });
        }
        file::make_private(path)?;
        let file = StoreFile::of(path)?;
        let opened = open_writer(file.path(), &config)
            .and_then(|conn| make_current(&conn, file.path(), &config).map(|()| conn));
        match opened {
            Ok(first) => {
                file.remember_log();
                let mut database = Self::new(config, Some(file));
                database.first = Mutex::new(Some(first));
                Ok(database)
            }
            Err(error) => {
                let path = file.path().to_owned();
                drop(file);
                Err(not_a_store(error, &path, busy_ms, is_encrypted))
            }
        }
    }

    /// Opens a database in memory.
    pub(crate) fn open_in_memory(config: Config) -> Result<Self> {
        let open = || -> BackendResult<Connection> {
            let conn = Connection::open_in_memory()?;
            unlock(&conn, &config)?;
            prepare(&conn, &config)?;
            schema::create(&conn, &config)?;
            Ok(conn)
        };
        let writer = open().map_err(|error| error.into_error(0))?;
        let mut database = Self::new(config, None);
        database.writer = OnceLock::from(Mutex::new(writer));
        Ok(database)
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
        opened.map_err(|error| {
            not_a_store(error, &path, busy_ms(&config), config.encryption.is_some())
        })
    }

    fn over_readers(file: StoreFile, config: Config) -> BackendResult<Self> {
        let mut database = Self::new(config, Some(file));
        database.is_read_only = true;
        let reader = database.open_reader()?;
        if let Some(file) = &database.file {
            transaction::read(&reader, |conn| schema::check(conn, file.path()))?;
        }
        database.keep_reader(reader, false, true);
        Ok(database)
    }

    fn new(config: Config, file: Option<StoreFile>) -> Self {
        Self {
            config,
            idle_readers: Mutex::new(Vec::new()),
            first: Mutex::new(None),
            writer: OnceLock::new(),
            writers: Writers::default(),
            is_read_only: false,
            is_suspect: AtomicBool::new(false),
            file,
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            log: Wal::default(),
            signal: InterruptSignal::default(),
            pinned: None,
            deferred: Deferred::default(),
            known_words: KnownWords::default(),
            projectors: Projectors::default(),
        }
    }

    /// Returns the snapshot that a connection reads.
    pub(super) fn pinned_at(&self, pinned: Pinned) -> Self {
        let mut snapshot = Self::new(self.config.clone(), None);
        snapshot.pinned = Some(pinned);
        snapshot.signal = self.signal.clone();
        snapshot.is_read_only = true;
        snapshot
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
        self.is_read_only
    }

    /// Runs a read; it sees one snapshot.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> BackendResult<T>) -> Result<T> {
        self.with_reader(|conn, beginning| self.read_on(conn, beginning, work))
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
            (None, Some(writer)) => work(&mut lock(writer), Beginning::default()),
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

    /// Returns an error unless the format is still that of this build: another process may have raised it.
    pub(super) fn check_version(&self, conn: &Connection) -> BackendResult<()> {
        self.path().map_or(Ok(()), |path| schema::check_version(conn, path))
    }

    /// Returns the writing connection; `None` if the database is read-only. The first call chooses it.
    pub(super) fn writing_connection(&self) -> BackendResult<Option<&Mutex<Connection>>> {
        if let (None, Some(path), false) = (self.writer.get(), self.path(), self.is_read_only) {
            let mut first = lock(&self.first);
            // Another thread may have chosen it meanwhile.
            if self.writer.get().is_none() {
                let conn = match first.take() {
                    Some(conn) => conn,
                    None => self.in_same_file(|| open_writer(path, &self.config))?,
                };
                let _ = self.writer.set(Mutex::new(conn));
            }
        }
        Ok(self.writer.get())
    }

    /// Opens the writing connection anew if a system call has failed under it.
    pub(super) fn reopen_if_suspect(&self, conn: &mut Connection) -> BackendResult<()> {
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
    fn keep_reader(&self, conn: Connection, is_first: bool, is_sound: bool) {
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
    pub(super) fn check_file(&self) -> BackendResult<()> {
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
        unlock(&conn, &self.config)?;
        prepare(&conn, &self.config)?;
        Ok(conn)
    }
}

/// A thread that panicked leaves no connection in a transaction.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn open_writer(path: &Path, config: &Config) -> BackendResult<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    unlock(&conn, config)?;
    prepare(&conn, config)?;
    Ok(conn)
}

/// Brings the format and the search index of a file to those of this build.
fn make_current(conn: &Connection, path: &Path, config: &Config) -> BackendResult<()> {
    // Most files are current. Outside of a transaction each read would lock the file again.
    let is_current = transaction::read(conn, |conn| {
        Ok(schema::is_current(conn)? && search_index::has_current_version(conn)?)
    })?;
    if !is_current {
        schema::create_or_migrate(conn, path, config)?;
        search_index::empty_if_outdated(conn, config)?;
    }
    Ok(())
}

/// Gives a new connection the key of the database, if it has one.
pub(super) fn unlock(conn: &Connection, config: &Config) -> BackendResult<()> {
    config.encryption.as_ref().map_or(Ok(()), |encryption| encryption.unlock(conn))
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
    // Deleted rows and freed pages are overwritten with zeros; no figure of an append or a delete shows a difference.
    conn.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
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
fn not_a_store(error: BackendError, path: &Path, busy_ms: u64, is_encrypted: bool) -> Error {
    match error {
        error if error.is_not_a_database() && is_encrypted => {
            let why = match file::has_header(path) {
                true => "it is not encrypted; open it without a key",
                false => "the key is wrong, or the file is not an encrypted store",
            };
            Error::WrongKey { path: path.to_owned(), why: why.to_owned() }
        }
        error if error.is_not_a_database() && file::looks_encrypted(path) => Error::WrongKey {
            path: path.to_owned(),
            why: "no key was given, and it looks encrypted".to_owned(),
        },
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
                // The first bytes of an encrypted file look random.
                let told = if is_encrypted { None } else { file::cut_off(path) };
                let what = told.unwrap_or(what);
                Error::Corrupt { what: format!("{}: {what}", crate::foreign::path(path)) }
            }
            error => error,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A store with one message, opened again, and its folder.
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

    /// The system gave the number of the removed log to a file that another thread wrote to import it: the import was refused.
    #[cfg(unix)]
    #[test]
    fn a_new_file_with_the_number_of_the_removed_log_does_not_belong_to_the_store() -> Result<()> {
        /// Looks at new files when the connection is closed: SQLite drops its functions after it has removed the log.
        struct AtClose(PathBuf, std::sync::mpsc::Sender<Option<PathBuf>>);

        impl AtClose {
            fn path(&self) -> &Path {
                &self.0
            }
        }

        impl Drop for AtClose {
            fn drop(&mut self) {
                let mut new = (0..100).map(|n| self.0.join(format!("{n}.json")));
                let refused = new.find(|path| {
                    std::fs::write(path, "{}").unwrap();
                    file::is_open(path)
                });
                self.1.send(refused).unwrap();
            }
        }

        let (folder, database) = opened()?;
        let (sender, refused) = std::sync::mpsc::channel();
        let at_close = AtClose(folder.path().to_owned(), sender);
        database.write(|conn| {
            let flags = rusqlite::functions::FunctionFlags::default();
            let look = move |_: &rusqlite::functions::Context<'_>| Ok(at_close.path().exists());
            Ok(conn.create_scalar_function("at_close", 0, flags, look)?)
        })?;
        assert!(folder.path().join("bot.db-wal").exists());
        drop(database);
        assert_eq!(refused.recv().unwrap(), None);
        assert!(!folder.path().join("bot.db-wal").exists());
        Ok(())
    }
}
