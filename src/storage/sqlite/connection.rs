//! The database: how it and its connections are opened, and with which settings.
//!
//! To open a connection takes as long as to read a hundred messages, because SQLite parses the whole schema. So opening a
//! store opens one connection, which reads until the first write takes it as the writer. Then reads have
//! [connections of their own](super::readers).
//!
//! Invariant: every write uses the one writing connection. Threads of this process queue for it (`commit_group`), and
//! only processes compete for SQLite's lock.
//!
//! Invariant: until there is a writer, a connection that can write is open. The close of the last one would remove the log,
//! and the store would take itself for moved; a read-only one would leave the log behind.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::commit_group::Writers;
use super::encryption::Encryption;
use super::file::{self, StoreFile};
use super::index::Deferred;
use super::interrupt::Watch;
use super::snapshot::Pinned;
use super::wal::{self, Wal};
use super::{header, index, schema, transaction};
use crate::error::{Error, Result};
use crate::sql::{BackendError, BackendResult};
use crate::storage::DEFAULT_BUSY_TIMEOUT;
use crate::transcript::StoredTranscript;

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
            busy_timeout: DEFAULT_BUSY_TIMEOUT,
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
    /// The connections that read and are not in use; before there is a writer, they can write. Declared before the writer,
    /// so that one that can write is dropped last: it checkpoints the write-ahead log and removes it.
    pub(super) idle: Mutex<Vec<Connection>>,
    /// Empty until the first write, and always if the database is read-only.
    pub(super) writer: OnceLock<Mutex<Connection>>,
    /// Who uses the writer, and in which order.
    pub(super) writers: Writers,
    is_read_only: bool,
    /// The server, if the database is on one: then it has no other connection.
    #[cfg(feature = "postgres")]
    pub(super) server: Option<crate::sql::postgres::Server>,
    /// Whether a system call failed under the writer, which is then reopened before its next write.
    pub(super) is_suspect: AtomicBool,
    /// The number of this handle in this process.
    pub(super) serial: u64,
    /// `None` for a database in memory: there is one connection, and readers use it, too. Declared after the
    /// connections, so that the file is known as open until they are closed.
    pub(super) file: Option<StoreFile>,
    pub(super) log: Wal,
    /// How often long work was interrupted.
    pub(super) interrupts: Arc<AtomicU64>,
    /// Set in a snapshot, which has no other connection.
    pub(super) pinned: Option<Pinned>,
    /// The work on the search index that appends have put off.
    pub(super) deferred: Deferred,
    /// The transcript that was appended to last, as that left it.
    pub(super) last_transcript: Mutex<Option<StoredTranscript>>,
    /// The time of the last append to a transcript on a server.
    pub(super) last_entry_at: AtomicI64,
    /// The URL of the schema that tests on a server use in place of a database in memory.
    #[cfg(talktree_on_postgres)]
    in_memory: Option<String>,
}

impl Drop for Database {
    /// Runs before the connections are closed.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            file.forget_removed();
        }
        #[cfg(talktree_on_postgres)]
        on_postgres::give_back(self.in_memory.take());
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database in a file, creating the file if it does not exist.
    pub(crate) fn open(path: &Path, config: Config) -> Result<Self> {
        #[cfg(talktree_on_postgres)]
        if let Some(url) = on_postgres::of_path(path) {
            return Self::on_server(&url, config);
        }
        let (busy_ms, is_encrypted) = (busy_ms(&config), config.encryption.is_some());
        if path.as_os_str() == ":memory:" {
            let why =
                "SQLite gives this name to a database in memory; a store in memory has no path";
            return Err(Error::NotAStore { path: path.to_owned(), why: why.to_owned() });
        }
        file::make_private(path)?;
        let file = StoreFile::of(path)?;
        let path = file.path().to_owned();
        let opened = Self::over(file, config, false);
        opened.map_err(|error| not_a_store(error, &path, busy_ms, is_encrypted))
    }

    /// Opens a database in memory.
    pub(crate) fn open_in_memory(config: Config) -> Result<Self> {
        #[cfg(talktree_on_postgres)]
        if let Some(database) = on_postgres::in_memory(&config) {
            return database;
        }
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

    /// Connects to a database on a server, creating its tables if they do not exist.
    #[cfg(feature = "postgres")]
    pub(crate) fn on_server(url: &str, config: Config) -> Result<Self> {
        use crate::sql::postgres::Server;
        let server = Server::connect(url, config.busy_timeout, config.idle_readers)?;
        let mut database = Self::new(config, None);
        database.server = Some(server);
        if !database.read(index::has_current_version)? {
            match database.write_long(index::make_current) {
                // Who may only read searches what is there, as in a file.
                Ok(()) | Err(Error::ReadOnly) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(database)
    }

    /// Opens the database in a file for reading only.
    pub(crate) fn open_read_only(path: &Path, config: Config) -> Result<Self> {
        #[cfg(talktree_on_postgres)]
        if let Some(url) = on_postgres::of_path(path) {
            let mut database = Self::on_server(&url, config)?;
            database.is_read_only = true;
            return Ok(database);
        }
        let (busy_ms, is_encrypted) = (busy_ms(&config), config.encryption.is_some());
        let file = StoreFile::of(path)?;
        let path = file.path().to_owned();
        let opened = match Self::over(file, config.clone(), true) {
            // The log needs lock files. Where they cannot be created, a file without a log is read without locks.
            Err(error) if error.is_of_opening() => StoreFile::of(&path)
                .map_err(BackendError::Own)
                .and_then(|file| Self::over(file.without_locks()?, config, true)),
            answer => answer,
        };
        opened.map_err(|error| not_a_store(error, &path, busy_ms, is_encrypted))
    }

    /// Opens the first connection, and checks the file or makes it current.
    fn over(file: StoreFile, config: Config, is_read_only: bool) -> BackendResult<Self> {
        let mut database = Self::new(config, Some(file));
        database.is_read_only = is_read_only;
        let first = database.open_reader()?;
        if let Some(file) = &database.file {
            match is_read_only {
                true => transaction::read(&first, |conn| schema::check(conn, file.path()))?,
                false => {
                    make_current(&first, file.path(), &database.config)?;
                    file.remember_log();
                }
            }
        }
        database.idle = Mutex::new(vec![first]);
        Ok(database)
    }

    fn new(config: Config, file: Option<StoreFile>) -> Self {
        Self {
            config,
            idle: Mutex::default(),
            writer: OnceLock::new(),
            writers: Writers::default(),
            is_read_only: false,
            #[cfg(feature = "postgres")]
            server: None,
            is_suspect: AtomicBool::new(false),
            file,
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            log: Wal::default(),
            interrupts: Arc::default(),
            pinned: None,
            deferred: Deferred::default(),
            last_transcript: Mutex::default(),
            last_entry_at: AtomicI64::default(),
            #[cfg(talktree_on_postgres)]
            in_memory: None,
        }
    }

    /// Returns a snapshot of a server.
    #[cfg(feature = "postgres")]
    pub(super) fn on_snapshot(&self, server: crate::sql::postgres::Server) -> Self {
        let mut snapshot = Self::new(self.config.clone(), None);
        snapshot.server = Some(server);
        snapshot.interrupts = Arc::clone(&self.interrupts);
        snapshot.is_read_only = true;
        snapshot
    }

    /// Returns the snapshot that a connection reads.
    pub(super) fn pinned_at(&self, pinned: Pinned) -> Self {
        let mut snapshot = Self::new(self.config.clone(), None);
        snapshot.pinned = Some(pinned);
        snapshot.interrupts = Arc::clone(&self.interrupts);
        snapshot.is_read_only = true;
        snapshot
    }

    /// Returns the file; `None` for a database in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(StoreFile::path)
    }

    /// Returns what tells this store from every other one that this process has opened.
    pub(super) fn identity(&self) -> String {
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            return format!("server {}", server.id());
        }
        match &self.file {
            Some(file) => file.identity(),
            None => format!("memory {}", self.serial),
        }
    }

    /// Returns a watch for long work that begins now.
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(Arc::clone(&self.interrupts))
    }

    pub(super) fn is_without_locks(&self) -> bool {
        self.file.as_ref().is_some_and(StoreFile::is_without_locks)
    }

    /// Returns whether the database was opened for reading only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Returns an error unless the format is still that of this build: another process may have raised it.
    pub(super) fn check_version(&self, conn: &Connection) -> BackendResult<()> {
        self.path().map_or(Ok(()), |path| schema::check_version(conn, path))
    }

    /// Returns the writing connection; `None` if the database is read-only. The first call chooses it.
    pub(super) fn writing_connection(&self) -> BackendResult<Option<&Mutex<Connection>>> {
        if self.writer.get().is_none() && !self.is_read_only {
            let mut idle = lock(&self.idle);
            // Another thread may have chosen it meanwhile.
            if self.writer.get().is_none() {
                let mut conn = idle.pop().map_or_else(|| self.open_writer(), Ok)?;
                if let Err(error) = self.log.install_hook(&mut conn) {
                    idle.push(conn);
                    return Err(error);
                }
                let _ = self.writer.set(Mutex::new(conn));
            }
        }
        Ok(self.writer.get())
    }

    /// Reopens the writing connection if a system call has failed under it.
    pub(super) fn reopen_if_suspect(&self, conn: &mut Connection) -> BackendResult<()> {
        if self.file.is_some() && self.is_suspect.load(Ordering::Relaxed) {
            // The new connection is opened before the old one is closed.
            *conn = self.open_writer()?;
            self.log.install_hook(conn)?;
            self.is_suspect.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn open_writer(&self) -> BackendResult<Connection> {
        self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    pub(super) fn open_reader(&self) -> BackendResult<Connection> {
        self.connect(match self.is_read_only || self.writer.get().is_some() {
            true => OpenFlags::SQLITE_OPEN_READ_ONLY,
            false => OpenFlags::SQLITE_OPEN_READ_WRITE,
        })
    }

    /// Opens a connection, if the path still leads to the file of this database.
    fn connect(&self, access: OpenFlags) -> BackendResult<Connection> {
        let Some(file) = &self.file else {
            return Err(BackendError::Own(Error::Unsupported {
                what: "a second connection to a database in memory",
            }));
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Checked before, so that nothing is written to another file, and after, because the file may be replaced between
        // the check and the opening.
        file.check()?;
        let conn = match file.is_without_locks() {
            false => Connection::open_with_flags(file.path(), flags)?,
            true => Connection::open_with_flags(
                file::immutable_uri(file.path()),
                flags | OpenFlags::SQLITE_OPEN_URI,
            )?,
        };
        file.check()?;
        unlock(&conn, &self.config)?;
        prepare(&conn, &self.config)?;
        Ok(conn)
    }

    /// Checks that the path leads to the file of this database.
    pub(super) fn check_file(&self) -> BackendResult<()> {
        self.file.as_ref().map_or(Ok(()), StoreFile::check)
    }
}

/// A thread that panicked leaves no connection in a transaction.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings the format and the search index of a file to those of this build.
fn make_current(conn: &Connection, path: &Path, config: &Config) -> BackendResult<()> {
    // Most files are current. Outside of a transaction each read would lock the file again.
    let is_current = transaction::read(conn, |conn| {
        Ok(schema::is_current(conn)? && index::has_current_version(&conn.into())?)
    })?;
    if !is_current {
        schema::create_or_migrate(conn, path, config)?;
        index::empty_if_outdated(conn, config)?;
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
    if error.is_of_opening()
        && let Some(error) = file::unreadable(path)
    {
        return error;
    }
    match error {
        error if error.is_not_a_database() && is_encrypted => {
            let why = match header::is_of_database(path) {
                true => "it is not encrypted; open it without a key",
                false => "the key is wrong, or the file is not an encrypted store",
            };
            Error::WrongKey { path: path.to_owned(), why: why.to_owned() }
        }
        error if error.is_not_a_database() && header::looks_encrypted(path) => Error::WrongKey {
            path: path.to_owned(),
            why: "no key was given, and it looks encrypted; or it is not a store".to_owned(),
        },
        BackendError::Sqlite(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) =>
        {
            let why = match header::is_other(path) {
                true => "its header is not that of an SQLite database".to_owned(),
                false => error.to_string(),
            };
            Error::NotAStore { path: path.to_owned(), why }
        }
        // SQLite's text names the URI by which a file is read without locks, which no user gave.
        BackendError::Sqlite(rusqlite::Error::SqliteFailure(code, Some(text)))
            if text.contains(&file::immutable_uri(path)) =>
        {
            let text = format!("SQLite cannot open {}: {code}", talktree_text::foreign::path(path));
            BackendError::Sqlite(rusqlite::Error::SqliteFailure(code, Some(text)))
                .into_error(busy_ms)
        }
        error => match error.into_error(busy_ms) {
            Error::Corrupt { what } => {
                // The first bytes of an encrypted file look random.
                let told = if is_encrypted { None } else { header::cut_off(path) };
                let what = told.unwrap_or(what);
                Error::Corrupt { what: format!("{}: {what}", talktree_text::foreign::path(path)) }
            }
            error => error,
        },
    }
}

/// The stores of tests that run on a server: compiled with `--cfg talktree_on_postgres`, they have a schema each, but for files whose
/// names say that they are SQLite's. To make a schema takes a server a tenth of a second, so one that stood for a database in memory
/// is emptied for the next one.
#[cfg(talktree_on_postgres)]
mod on_postgres {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    use std::path::Path;
    use std::sync::Mutex;

    use super::{Config, Database, lock};
    use crate::error::Result;

    /// The schemas that are free.
    static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// Removes all that is in a store. One with vectors is not used again.
    const EMPTY: &str = "DO $$
        DECLARE
            its_table REGCLASS;
        BEGIN
            IF to_regclass('embedder') IS NOT NULL THEN
                RAISE EXCEPTION 'it has vectors';
            END IF;
            DELETE FROM setting WHERE name NOT IN ('schema_version', 'store', 'index_version');
            FOR its_table IN SELECT oid FROM pg_class
                         WHERE relnamespace = CAST(current_schema() AS REGNAMESPACE) AND relkind = 'r' AND relname <> 'setting'
            LOOP
                EXECUTE format('DELETE FROM %s', its_table);
            END LOOP;
            PERFORM setval(CAST(oid AS REGCLASS), 1, FALSE) FROM pg_class
              WHERE relnamespace = CAST(current_schema() AS REGNAMESPACE) AND relkind = 'S';
        END $$";

    /// Returns the address of the schema of a file.
    pub(super) fn of_path(path: &Path) -> Option<String> {
        let url = std::env::var("TALKTREE_TEST_POSTGRES").ok()?;
        let path = std::path::absolute(path).ok()?;
        if path.extension().is_some_and(|extension| extension == "sqlite") {
            return None;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(path);
        // By that name the server lists who has it open.
        Some(format!("{url}schema=t{hash:016x}&application_name=t{hash:016x}"))
    }

    /// Opens the schema that tests on a server use in place of a database in memory.
    pub(super) fn in_memory(config: &Config) -> Option<Result<Database>> {
        let server = std::env::var("TALKTREE_TEST_POSTGRES").ok()?;
        let open = |url: String| -> Result<Database> {
            let mut database = Database::on_server(&url, config.clone())?;
            database.in_memory = Some(url);
            Ok(database)
        };
        let free = lock(&FREE).pop();
        let emptied = free.and_then(|url| {
            let mut database = open(url).ok()?;
            let emptied = database.write(|conn| conn.script(EMPTY));
            if emptied.is_err() {
                database.in_memory = None;
            }
            emptied.ok().map(|()| database)
        });
        Some(match emptied {
            Some(database) => Ok(database),
            None => open(format!("{server}schema=t{}", uuid::Uuid::now_v7().simple())),
        })
    }

    /// Takes back the schema of a database that is closed.
    pub(super) fn give_back(in_memory: Option<String>) {
        lock(&FREE).extend(in_memory);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// The system gave the number of the removed log to a file that another thread wrote to import it: the import was refused.
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

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bot.db");
        drop(Database::open(&path, Config::default())?);
        let database = Database::open(&path, Config::default())?;
        let (sender, refused) = std::sync::mpsc::channel();
        let at_close = std::cell::Cell::new(Some(AtClose(folder.path().to_owned(), sender)));
        database.write(|conn| {
            let at_close = at_close.take().unwrap();
            let flags = rusqlite::functions::FunctionFlags::default();
            let look = move |_: &rusqlite::functions::Context<'_>| Ok(at_close.path().exists());
            Ok(conn.sqlite()?.create_scalar_function("at_close", 0, flags, look)?)
        })?;
        assert!(folder.path().join("bot.db-wal").exists());
        drop(database);
        assert_eq!(refused.recv().unwrap(), None);
        assert!(!folder.path().join("bot.db-wal").exists());
        Ok(())
    }
}
