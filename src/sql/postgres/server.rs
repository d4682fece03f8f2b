//! A server: its connections, and transactions on them.
//!
//! A read sees one snapshot, and so does a write (REPEATABLE READ): if others changed a row that it writes or locks, or added the row
//! that it adds, the server refuses, and the write runs again on a newer one. So no write is made from what is not true any more. If
//! the connection is lost while a write commits, the server is asked what became of it.
//!
//! Each transaction names the schema, so that a pooler may give it any connection.

#[cfg(test)]
mod tests;

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::SqlState;

use super::address::Address;
use super::{Connection, LATER, SAVEPOINT, too_long};
use crate::error::{Error, Result};
use crate::sql::{self, BackendError, BackendResult};

/// The tables.
const SCHEMA: &str = include_str!("../../../schema.postgres.sql");
/// The version of them without the migrations.
const FIRST: u32 = 1;
/// The migrations: the first takes a store from version [`FIRST`] to the next, and so on. A migration is never edited after its release;
/// together they lead to `schema.postgres.sql`.
const MIGRATIONS: &[Migration] = &[];
/// The version that this build reads and writes.
pub(super) const VERSION: u32 = FIRST + MIGRATIONS.len() as u32;
/// The lock of those who create or migrate a schema: "talktree".
const LOCK: i64 = 0x7461_6c6b_7472_6565;

/// What leads from one version to the next. Each statement says `IF NOT EXISTS` or the like: if a host dies in a migration, the next one
/// runs it from the beginning.
struct Migration {
    /// What others wait for.
    tables: &'static str,
    /// Indexes that are built while others write: `CREATE INDEX CONCURRENTLY IF NOT EXISTS .. ON {schema}.message ..`.
    indexes: &'static [&'static str],
}

/// What differs after a crash or a failover: since when the server counts.
macro_rules! life {
    () => {
        "extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time())"
    };
}
const LIFE: &str = life!();
/// After a crash the numbers of transactions that were lost are given again.
const OUTCOME: &str = concat!(
    "SELECT pg_xact_status(CAST(CAST(?1 AS TEXT) AS xid8)), CAST(",
    life!(),
    " AS TEXT) = ?2"
);

/// What long work begins with. If its host is gone, others wait for its locks for a minute, not for hours. Addresses are sorted, not hashed:
/// PostgreSQL's hash of a number mixes its halves, so a thousand sessions of a thousand messages have a thousand hashes, and it would read
/// for minutes. What is read in portions is read to its end.
const LONG: &str = "; SET LOCAL tcp_keepalives_idle = 30; SET LOCAL tcp_keepalives_interval = 10; SET LOCAL tcp_keepalives_count = 3;
             SET LOCAL enable_hashagg = off; SET LOCAL enable_hashjoin = off; SET LOCAL cursor_tuple_fraction = 1";

/// Says whether work must stop.
pub(crate) type IsStopped = Box<dyn Fn() -> bool + Send>;

/// A store on a server.
pub(crate) struct Server {
    address: Address,
    /// What tells the store from every other one.
    id: String,
    idle: Mutex<Vec<Connection>>,
    max_idle: usize,
    /// How long a write waits for others.
    timeout: Duration,
    /// In a snapshot the connection of all reads, whose transaction is open.
    pinned: Option<Mutex<Connection>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("schema", &self.address.schema).finish_non_exhaustive()
    }
}

impl Server {
    /// Connects to a store, and creates it if it does not exist.
    ///
    /// The address is one of PostgreSQL's, with `schema=NAME` among the parameters: the store's own schema, or `talktree`.
    pub(crate) fn connect(url: &str, timeout: Duration, max_idle: usize) -> Result<Self> {
        let mut server = Self {
            address: Address::parse(url, timeout)?,
            id: String::new(),
            idle: Mutex::default(),
            max_idle,
            timeout,
            pinned: None,
        };
        let began = Instant::now();
        server.id = server.open(MIGRATIONS).map_err(|error| of_rights(error, began))?;
        Ok(server)
    }

    /// Returns what tells the store from every other one.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of the lock under which the tables of this store are made: others need not wait for them.
    fn lock(&self) -> String {
        format!("hashtextextended('{}', {LOCK})", self.address.schema.replace('\'', "''"))
    }

    /// Returns the id of the store. Creates it if it is not there, and brings an older one to the newest version: of many hosts that come
    /// at once one does it, and the others wait.
    fn open(&self, migrations: &[Migration]) -> BackendResult<String> {
        let conn = self.connection()?;
        conn.is_writing.set(true);
        let newest = FIRST + migrations.len() as u32;
        let mut found = self.alone(&conn, "", || self.found(&conn))?;
        let lock = format!("; SELECT pg_advisory_xact_lock({})", self.lock());
        if found.is_none() {
            found = self.alone(&conn, &lock, || match self.found(&conn)? {
                // Another host was first.
                Some(found) => Ok(Some(found)),
                None => self.fill(&conn, newest).map(Some),
            })?;
        }
        let (version, id) = found.unwrap_or_default();
        if !(FIRST..=newest).contains(&version) {
            let error = Error::NewerStore { found: version, supported: newest };
            return Err(BackendError::Own(error));
        }
        self.keep(conn);
        if version < newest {
            self.migrate(version, migrations)?;
        }
        Ok(id)
    }

    /// Runs the migrations from a version on, unless another host does.
    ///
    /// Nobody waits for the lock in a statement: an index that is built while others write waits for all statements that began before.
    fn migrate(&self, version: u32, migrations: &[Migration]) -> BackendResult<()> {
        let began = Instant::now();
        let begin = self.begin("READ COMMITTED", Some(self.timeout), true);
        let try_lock = format!("{begin}; SELECT pg_try_advisory_xact_lock({})", self.lock());
        let lock = self.connection()?;
        let conn = &self.unlimited()?;
        loop {
            let row = lock.ask(lock.client.simple_query(&try_lock))?;
            if row
                .iter()
                .any(|it| matches!(it, SimpleQueryMessage::Row(row) if row.get(0) == Some("t")))
            {
                break;
            }
            lock.batch("ROLLBACK")?;
            if began.elapsed() > self.timeout {
                return Err(too_long("another host has migrated the store", began));
            }
            thread::sleep(Duration::from_millis(100));
        }
        let found = self.alone(conn, "", || self.found(conn))?;
        let mut version = found.map_or(version, |found| found.0);
        for migration in migrations.iter().skip((version - FIRST) as usize) {
            self.alone(conn, "", || conn.batch(migration.tables))?;
            for index in migration.indexes {
                // It must be a statement of its own, outside of a transaction.
                conn.batch(&index.replace("{schema}", &self.address.schema))?;
            }
            version += 1;
            let raise =
                format!("UPDATE setting SET value = '{version}' WHERE name = 'schema_version'");
            self.alone(conn, "", || conn.batch(&raise))?;
        }
        lock.batch("COMMIT")
    }

    /// Returns the version and the id of the store, if it is there.
    fn found(&self, conn: &Connection) -> BackendResult<Option<(u32, String)>> {
        let conn = sql::Connection::Postgres(conn);
        // A statement that reads no table, such as one with `to_regclass`, may not see what others made while this host waited.
        let is_there = "SELECT EXISTS (SELECT FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'value'
                             WHERE relname = 'setting' AND relpersistence <> 't' AND pg_table_is_visible(pg_class.oid)),
                    current_setting('server_encoding')";
        let (is_there, encoding): (bool, String) = conn.one(is_there, ())?;
        if encoding != "UTF8" {
            let (what, why) =
                ("encoding of a database", "a store is in one whose encoding is UTF8");
            return Err(Error::InvalidValue { what, given: encoding, why: why.to_owned() }.into());
        }
        if !is_there {
            return Ok(None);
        }
        let setting = |name: &str| -> BackendResult<Option<String>> {
            conn.first("SELECT value FROM setting WHERE name = ?1", name)
        };
        let version = setting("schema_version")?.and_then(|version| version.parse().ok());
        let version = version.ok_or_else(|| self.is_of_another())?;
        Ok(Some((version, setting("store")?.unwrap_or_default())))
    }

    fn is_of_another(&self) -> Error {
        let why = "its tables are those of another program".to_owned();
        Error::NotAStore { path: self.address.schema.clone().into(), why }
    }

    fn fill(&self, conn: &Connection, version: u32) -> BackendResult<(u32, String)> {
        let schema = &self.address.schema;
        let of_schema = "SELECT to_regnamespace(CAST(?1 AS TEXT)) IS NOT NULL,
                    EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace(CAST(?1 AS TEXT)))";
        let (has_schema, has_tables): (bool, bool) =
            sql::Connection::Postgres(conn).one(of_schema, &**schema)?;
        if has_tables {
            return Err(self.is_of_another().into());
        }
        // Who may not create a schema may be given one.
        if !has_schema {
            conn.batch(&format!("CREATE SCHEMA {schema}"))?;
        }
        // Who may not use the schema must not make temporary tables.
        conn.batch(&format!("SET LOCAL search_path TO {schema}; {SCHEMA}; SET LOCAL search_path TO {schema}, pg_temp"))?;
        let id = uuid::Uuid::now_v7().to_string();
        conn.run(
            "INSERT INTO setting (name, value) VALUES ('schema_version', ?1), ('store', ?2)",
            (version.to_string(), &*id),
        )?;
        Ok((version, id))
    }

    /// Runs what finds or changes the tables in a transaction that begins so.
    fn alone<T>(
        &self,
        conn: &Connection,
        beginning: &str,
        work: impl FnOnce() -> BackendResult<T>,
    ) -> BackendResult<T> {
        let is_long = conn.limit.get().is_none();
        conn.batch(&(self.begin("READ COMMITTED", Some(self.timeout), is_long) + beginning))?;
        let answer = work()?;
        conn.batch("COMMIT")?;
        Ok(answer)
    }

    /// Runs a read; it sees one snapshot. That of a snapshot is stopped by what stops the snapshot.
    pub(crate) fn read<T>(
        &self,
        is_stopped: Option<IsStopped>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        if let Some(pinned) = &self.pinned {
            let conn = pinned.lock().unwrap_or_else(PoisonError::into_inner);
            if conn.is_stopped.borrow().as_ref().is_some_and(|is_stopped| is_stopped()) {
                return Err(Error::Interrupted.into());
            }
            let answer = work(&sql::Connection::Postgres(&conn));
            conn.known.take();
            return answer;
        }
        let conn = self.connection()?;
        let begin = self.begin_read(is_stopped.is_some());
        let answer = self.in_transaction(&conn, begin, false, is_stopped, work);
        if conn.begin.take().is_none() {
            conn.end_read();
        }
        self.keep(conn);
        answer
    }

    /// Returns the store as it is now, to be read only, until it is stopped.
    pub(crate) fn snapshot(&self, is_stopped: IsStopped) -> BackendResult<Self> {
        let conn = self.connection()?;
        // The snapshot is that of the first read.
        let begin = self.begin_read(true);
        self.in_transaction(&conn, begin, false, None, |conn| conn.has("SELECT 1", ()))?;
        conn.limit.set(None);
        conn.is_stopped.replace(Some(is_stopped));
        Ok(Self {
            address: self.address.clone(),
            id: self.id.clone(),
            idle: Mutex::default(),
            max_idle: 0,
            timeout: self.timeout,
            pinned: Some(Mutex::new(conn)),
        })
    }

    /// Returns what begins a transaction that waits for locks up to `timeout`. It names all limits: those of the role and of the database
    /// do not count. A short one is over soon also if its host is cut off; a long one lasts as long as its host is there.
    fn begin(&self, mode: &str, timeout: Option<Duration>, is_long: bool) -> String {
        let (schema, timeout) = (&self.address.schema, timeout.map_or(0, millis));
        let (limit, long) = match is_long {
            true => (0, LONG),
            false => (millis(self.limit()), ""),
        };
        // Another program behind the same pooler may have left temporary tables.
        format!(
            "BEGIN ISOLATION LEVEL {mode}; SET LOCAL search_path TO {schema}, pg_temp; SET LOCAL lock_timeout = {timeout};
             SET LOCAL statement_timeout = {limit}; SET LOCAL idle_in_transaction_session_timeout = {limit}{long}"
        )
    }

    /// Returns what begins a read. A long one can be stopped, and goes on: its statements are planned for their values, because how common
    /// a word is decides how it is found.
    fn begin_read(&self, is_long: bool) -> String {
        let begin =
            self.begin("REPEATABLE READ READ ONLY", None, is_long) + &self.of_store("NULL, NULL");
        match is_long {
            true => format!("{begin}; SET LOCAL plan_cache_mode = force_custom_plan; {SAVEPOINT}"),
            false => begin,
        }
    }

    /// Returns a question that has no answer if another store has the name by now.
    fn of_store(&self, columns: &str) -> String {
        let id = self.id.replace('\'', "''");
        format!("; SELECT {columns} FROM setting WHERE name = 'store' AND value = '{id}'")
    }

    /// Returns how long a statement of a short call may take: longer than it may wait for a lock, which is another error.
    fn limit(&self) -> Duration {
        self.timeout + LATER
    }

    /// Runs a write: all of it or nothing. It may run several times, and waits for others up to `timeout`.
    pub(crate) fn write<T>(
        &self,
        timeout: Duration,
        is_stopped: Option<impl Fn() -> bool + Send + Clone + 'static>,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        let began = Instant::now();
        let mut attempts = 0;
        loop {
            let stop = is_stopped.clone().map(|stop| Box::new(stop) as IsStopped);
            match self.write_once(timeout.saturating_sub(began.elapsed()), stop, &work) {
                Err(error) if error.is_given_up() && began.elapsed() < timeout => {
                    attempts += 1;
                    let most = Duration::from_millis(1 << attempts.min(8));
                    thread::sleep(sql::jitter(most));
                }
                answer => return answer,
            }
        }
    }

    fn write_once<T>(
        &self,
        timeout: Duration,
        is_stopped: Option<IsStopped>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        let columns = format!(
            "(SELECT value FROM setting WHERE name = 'schema_version'), concat_ws(' ', pg_current_xact_id(), {LIFE})"
        );
        let begin = self.begin("REPEATABLE READ", Some(timeout), is_stopped.is_some())
            + &self.of_store(&columns);
        let conn = self.connection()?;
        let answer = self.in_transaction(&conn, begin, true, is_stopped, work);
        if conn.begin.take().is_some() {
            self.keep(conn);
            return answer;
        }
        let failed = || {
            let source = "a statement failed, and the server rolls the transaction back".into();
            BackendError::Own(Error::Storage { source })
        };
        let answer = match answer {
            Ok(answer) if !conn.has_failed.get() => answer,
            answer => {
                let error = answer.err().unwrap_or_else(failed);
                conn.forget();
                conn.limit.set(Some(self.limit()));
                if conn.batch("ROLLBACK").is_ok() {
                    self.keep(conn);
                }
                return Err(error);
            }
        };
        match conn.batch("COMMIT") {
            Ok(()) => self.keep(conn),
            Err(error) => {
                let id = conn.transaction.take();
                drop(conn);
                match id {
                    Some(id) if self.is_committed(&id)? => {}
                    _ => return Err(error),
                }
            }
        }
        Ok(answer)
    }

    /// Removes deleted rows from all tables, and builds the indexes of words again: GIN keeps the words of rows that are gone. Rows that
    /// a transaction of others may still read stay until the server's own vacuum.
    ///
    /// Hosts vacuum one after the other: two would wait for each other at each table. Who waits is done when another one has done it.
    pub(crate) fn vacuum(&self, is_done: impl Fn() -> Result<bool>) -> Result<()> {
        let began = Instant::now();
        self.vacuum_all(is_done).map_err(|error| match of_rights(error, began) {
            Error::Storage { source } => Error::Storage {
                source: format!("what was erased is deleted, but not vacuumed; the next erasure of the owner of the tables finishes it: {source}").into(),
            },
            error => error,
        })
    }

    fn vacuum_all(&self, is_done: impl Fn() -> Result<bool>) -> BackendResult<()> {
        let (began, lock) = (Instant::now(), self.connection()?);
        lock.is_writing.set(true);
        let schema = &self.address.schema;
        let begin = self.begin("READ COMMITTED", Some(self.timeout), true);
        let try_lock =
            format!("{begin}; SELECT FROM setting WHERE name = 'store' FOR UPDATE NOWAIT");
        // Who waited in a statement would keep deleted rows from the vacuum.
        while let Err(error) = lock.batch(&try_lock) {
            lock.batch("ROLLBACK")?;
            if is_done()? {
                self.keep(lock);
                return Ok(());
            }
            let is_taken = matches!(&error, BackendError::Postgres(error)
                if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE));
            if !is_taken || began.elapsed() >= self.timeout {
                return Err(error);
            }
            thread::sleep(sql::jitter(Duration::from_millis(100)));
        }
        let conn = self.unlimited()?;
        let tables = "SELECT CAST(relname AS TEXT)
               FROM pg_class
              WHERE relkind = 'r' AND relnamespace = CAST(CAST(?1 AS TEXT) AS regnamespace)";
        let tables: Vec<String> = sql::Connection::Postgres(&conn).rows(tables, &**schema)?;
        for table in tables {
            // It must be a statement of its own, outside of a transaction.
            // Otherwise a page that another reads keeps its dead rows, and so do indexes their entries if these are few.
            conn.batch(&format!("VACUUM (FREEZE, INDEX_CLEANUP ON) {schema}.{table}"))?;
        }
        for table in ["search", "context_search", "term"] {
            let table = format!("{schema}.{table}");
            // Locked first: who has read the table, and now writes it, would wait for this, and this for the index that was read.
            conn.batch(&format!("{begin}; LOCK TABLE {table}; REINDEX TABLE {table}; COMMIT"))?;
        }
        lock.batch("COMMIT")?;
        self.keep(lock);
        Ok(())
    }

    /// Asks whether a transaction was committed, which was not answered: its id, and the life of the server.
    fn is_committed(&self, id: &str) -> BackendResult<bool> {
        let (number, life) = id.split_once(' ').unwrap_or((id, ""));
        let began = Instant::now();
        loop {
            let status = self.connection().and_then(|conn| {
                // What was answered before is no answer now.
                conn.known.take();
                let status: Option<(Option<String>, bool)> =
                    sql::Connection::Postgres(&conn).first(OUTCOME, (number, life))?;
                self.keep(conn);
                Ok(status)
            });
            match &status {
                Ok(Some((Some(status), is_same))) => match (&**status, is_same) {
                    ("committed", true) => return Ok(true),
                    // The number may be that of another transaction, which came after a crash.
                    ("committed", false) => break,
                    ("aborted", _) => return Ok(false),
                    _ => {}
                },
                // After a crash, in which it was lost, nobody has this number.
                Err(BackendError::Postgres(error))
                    if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) =>
                {
                    return Ok(false);
                }
                _ => {}
            }
            // The server does not know yet that the connection is lost, or it restarts.
            if began.elapsed() >= self.timeout {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err(too_long("whether the write was committed is not known", began))
    }

    fn in_transaction<T>(
        &self,
        conn: &Connection,
        begin: String,
        is_writing: bool,
        is_stopped: Option<IsStopped>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        conn.forget();
        conn.begin.replace(Some(begin));
        conn.has_failed.set(false);
        conn.is_writing.set(is_writing);
        if is_stopped.is_some() {
            conn.limit.set(None);
        }
        conn.is_stopped.replace(is_stopped);
        // A connection whose work panics is dropped, and the server rolls its transaction back.
        let answer = catch_unwind(AssertUnwindSafe(|| work(&sql::Connection::Postgres(conn))));
        conn.is_stopped.replace(None);
        answer.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Returns a connection for a short call.
    fn connection(&self) -> BackendResult<Connection> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let conn = match idle {
                // To drop it would tell a thread that is not there.
                Some(conn) if conn.process != std::process::id() => {
                    mem::forget(conn);
                    continue;
                }
                Some(conn) if conn.client.is_closed() => continue,
                Some(conn) => conn,
                None => Connection::open(&self.address)?,
            };
            conn.limit.set(Some(self.limit()));
            return Ok(conn);
        }
    }

    /// Returns a connection for long statements that must not be in a transaction, to be used once.
    fn unlimited(&self) -> BackendResult<Connection> {
        let mut address = self.address.clone();
        for host in &mut address.hosts {
            let given = host.get_options().unwrap_or_default();
            host.options(format!("{given} -c statement_timeout=0 -c lock_timeout=0"));
        }
        // A pooler may refuse that; then the limits of the role count.
        let conn = Connection::open(&address).or_else(|_| self.connection())?;
        conn.is_writing.set(true);
        conn.limit.set(None);
        Ok(conn)
    }

    fn keep(&self, conn: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_sound = !conn.client.is_closed() && !conn.is_canceled.get() && !conn.is_lost.get();
        if is_sound && idle.len() < self.max_idle {
            idle.push(conn);
        }
    }
}

/// Returns a time as the server takes it, where 0 is no limit.
fn millis(time: Duration) -> u128 {
    time.as_millis().clamp(1, 1 << 30)
}

/// Returns the tables and indexes that are not there, and the indexes that no read may use: building one beside writes has failed.
pub(crate) fn missing(conn: &sql::Connection<'_>) -> BackendResult<Vec<&'static str>> {
    let usable = "SELECT CAST(relname AS TEXT)
                    FROM pg_class
                    LEFT JOIN pg_index ON indexrelid = pg_class.oid
                   WHERE pg_table_is_visible(pg_class.oid)
                     AND coalesce(indisvalid, TRUE)";
    let usable: Vec<String> = conn.rows(usable, ())?;
    let defined = SCHEMA.lines().filter_map(|line| {
        let definition = line.strip_prefix("CREATE ")?;
        let mut words = definition.trim_start_matches("UNIQUE ").split(' ');
        matches!(words.next(), Some("TABLE" | "INDEX")).then(|| words.next()).flatten()
    });
    Ok(defined.filter(|name| !usable.iter().any(|it| it == name)).collect())
}

/// Returns the error of a role that may not do what only the owner of the tables, or of the database, may: it says what.
fn of_rights(error: BackendError, began: Instant) -> Error {
    let waited = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let BackendError::Postgres(error) = error else { return error.into_error(waited) };
    match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => super::failed(error),
        // A schema that the role may not use is none.
        Some(&SqlState::INVALID_SCHEMA_NAME) => {
            let source =
                "permission denied: the role may neither use the schema nor create tables there"
                    .into();
            Error::Storage { source }
        }
        _ => BackendError::Postgres(error).into_error(waited),
    }
}
