//! A server: its connections, and transactions on them.
//!
//! A read sees one snapshot, and so does a write (REPEATABLE READ): if others changed a row that it writes or locks, or added the row
//! that it adds, the server refuses, and the write runs again on a newer one. So no write is made from what is not true any more. If
//! the connection is lost while a write commits, the server is asked what became of it.
//!
//! Each transaction names the schema, so that a pooler may give it any connection.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use super::Connection;
use crate::error::{Error, Result};
use crate::sql::{self, BackendError, BackendResult, Sql};

/// The tables.
const SCHEMA: &str = include_str!("../../../schema.postgres.sql");
/// The version of them. A build refuses another one.
const VERSION: u32 = 1;
/// The lock of those who create or migrate a schema: "talktree".
const MIGRATION: i64 = 0x7461_6c6b_7472_6565;

/// Says whether work must stop.
pub(crate) type IsStopped = Box<dyn Fn() -> bool + Send>;

/// A store on a server.
pub(crate) struct Server {
    config: tokio_postgres::Config,
    /// The quoted name of the schema.
    schema: String,
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
        f.debug_struct("Server").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Server {
    /// Connects to a store, and creates it if it does not exist.
    ///
    /// The address is one of PostgreSQL's, with `schema=NAME` among the parameters: the store's own schema, or `talktree`.
    pub(crate) fn connect(url: &str, timeout: Duration, max_idle: usize) -> Result<Self> {
        let (url, schema) = schema_of(url);
        // Its error may quote a password.
        let config = url.parse().map_err(|_| Error::InvalidValue {
            what: "address of a store",
            given: "postgresql://..".to_owned(),
            why: "expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME; what is special in a part is written as %3F"
                .to_owned(),
        })?;
        let schema = format!("\"{}\"", schema.replace('"', "\"\""));
        let idle = Mutex::default();
        let id = String::new();
        let mut server = Self { config, schema, id, idle, max_idle, timeout, pinned: None };
        server.id = server.create().map_err(|error| match error {
            // A role that may not create it, or not use it.
            BackendError::Postgres(error)
                if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) =>
            {
                super::failed(error)
            }
            error => error.into_error(0),
        })?;
        Ok(server)
    }

    /// Returns what tells the store from every other one.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Creates what is missing, and returns the id of the store. Of many that come at once one does it.
    fn create(&self) -> BackendResult<String> {
        let conn = self.connection()?;
        let schema = &self.schema;
        conn.is_writing.set(true);
        conn.batch(&format!("BEGIN; SET LOCAL search_path TO {schema}"))?;
        let found =
            conn.first_with("SELECT to_regclass('setting') IS NULL", (), |row| row.get(0))?;
        if found.unwrap_or(true) {
            conn.batch(&format!(
                "SELECT pg_advisory_xact_lock({MIGRATION}); CREATE SCHEMA IF NOT EXISTS {schema}"
            ))?;
            let is_new =
                conn.first_with("SELECT to_regclass('setting') IS NULL", (), |row| row.get(0))?;
            if is_new.unwrap_or(true) {
                conn.batch(SCHEMA)?;
                conn.run(
                    "INSERT INTO setting (name, value) VALUES ('schema_version', ?1), ('store', ?2)",
                    (VERSION.to_string(), uuid::Uuid::now_v7().to_string()),
                )?;
            }
        }
        let setting = |name: &str| -> BackendResult<Option<String>> {
            let sql = "SELECT value FROM setting WHERE name = ?1";
            conn.first_with(sql, name, |row| row.get(0))
        };
        let (version, id) = (setting("schema_version")?, setting("store")?);
        match version.and_then(|version| version.parse().ok()) {
            Some(VERSION) => {}
            Some(found) => {
                return Err(BackendError::Own(Error::NewerStore { found, supported: VERSION }));
            }
            None => {
                return Err(BackendError::Own(Error::NotAStore {
                    path: schema.into(),
                    why: "its tables are those of another program".to_owned(),
                }));
            }
        }
        conn.batch("COMMIT")?;
        self.keep(conn);
        Ok(id.unwrap_or_default())
    }

    /// Runs a read; it sees one snapshot.
    pub(crate) fn read<T>(
        &self,
        is_stopped: Option<IsStopped>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        if let Some(pinned) = &self.pinned {
            let conn = pinned.lock().unwrap_or_else(PoisonError::into_inner);
            return self.in_transaction(&conn, None, false, is_stopped, work);
        }
        let conn = self.connection()?;
        let answer = self.in_transaction(&conn, Some(self.beginning()), false, is_stopped, work);
        let sent = conn.begin.take().is_none();
        let ended = if sent { conn.batch("COMMIT") } else { Ok(()) };
        if ended.is_ok() {
            self.keep(conn);
        }
        answer
    }

    /// Returns the store as it is now, to be read only.
    pub(crate) fn snapshot(&self) -> BackendResult<Self> {
        let conn = self.connection()?;
        conn.is_writing.set(false);
        conn.batch(&self.beginning())?;
        // The snapshot is that of the first read.
        conn.first_with("SELECT 1", (), |_| Ok(()))?;
        Ok(Self {
            config: self.config.clone(),
            schema: self.schema.clone(),
            id: self.id.clone(),
            idle: Mutex::default(),
            max_idle: 0,
            timeout: self.timeout,
            pinned: Some(Mutex::new(conn)),
        })
    }

    /// Returns what begins a read.
    fn beginning(&self) -> String {
        let schema = &self.schema;
        format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO {schema}"
        )
    }

    /// Runs a write: all of it or nothing. It may run several times.
    pub(crate) fn write<T>(
        &self,
        is_stopped: Option<impl Fn() -> bool + Send + Clone + 'static>,
        mut work: impl FnMut(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        let began = Instant::now();
        let mut attempts = 0;
        loop {
            let stop = is_stopped.clone().map(|stop| Box::new(stop) as IsStopped);
            match self.write_once(stop, &mut work) {
                Err(error) if error.is_given_up(attempts) && began.elapsed() < self.timeout => {
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
        is_stopped: Option<IsStopped>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        let (schema, timeout) = (&self.schema, self.timeout.as_millis().clamp(1, 1 << 30));
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL search_path TO {schema}; SET LOCAL lock_timeout = {timeout};
             SELECT pg_current_xact_id()"
        );
        let conn = self.connection()?;
        let answer = self.in_transaction(&conn, Some(begin), true, is_stopped, work);
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
                let is_lost = conn.client.is_closed();
                drop(conn);
                match id.filter(|_| is_lost) {
                    Some(id) if self.is_committed(&id)? => {}
                    _ => return Err(error),
                }
            }
        }
        Ok(answer)
    }

    /// Removes deleted rows from all tables, and builds the indexes of words again: GIN keeps the words of rows that are gone. Rows that
    /// a transaction of others may still read stay until the server's own vacuum.
    pub(crate) fn vacuum(&self) -> BackendResult<()> {
        let conn = self.connection()?;
        conn.is_writing.set(false);
        let schema = &self.schema;
        let tables = "SELECT CAST(relname AS TEXT)
               FROM pg_class
              WHERE relkind = 'r' AND relnamespace = CAST(CAST(?1 AS TEXT) AS regnamespace)";
        let tables: Vec<String> = sql::Connection::Postgres(&conn).rows(tables, &**schema)?;
        for table in tables {
            // It must be a statement of its own, outside of a transaction.
            conn.batch(&format!("VACUUM {schema}.{table}"))?;
        }
        let timeout = self.timeout.as_millis().clamp(1, 1 << 30);
        for table in ["search", "context_search", "term"] {
            conn.batch(&format!(
                "BEGIN; SET LOCAL lock_timeout = {timeout}; REINDEX TABLE {schema}.{table}; COMMIT"
            ))?;
        }
        self.keep(conn);
        Ok(())
    }

    /// Asks whether a transaction was committed whose connection was lost.
    fn is_committed(&self, id: &str) -> BackendResult<bool> {
        let began = Instant::now();
        loop {
            let status = self.connection().and_then(|conn| {
                let status: Option<Option<String>> = conn.first_with(
                    "SELECT pg_xact_status(CAST(CAST(?1 AS TEXT) AS xid8))",
                    id,
                    |row| row.get(0),
                )?;
                self.keep(conn);
                Ok(status.flatten())
            });
            match status.as_ref().map(Option::as_deref) {
                Ok(Some("committed")) => return Ok(true),
                Ok(Some("aborted")) => return Ok(false),
                // The server does not know yet that the connection is lost, or it restarts.
                _ if began.elapsed() < self.timeout => thread::sleep(Duration::from_millis(100)),
                Ok(_) => return Ok(false),
                Err(_) => return status.map(|_| false),
            }
        }
    }

    fn in_transaction<T>(
        &self,
        conn: &Connection,
        begin: Option<String>,
        is_writing: bool,
        is_stopped: Option<IsStopped>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        conn.begin.replace(begin);
        conn.has_failed.set(false);
        conn.is_writing.set(is_writing);
        conn.is_stopped.replace(is_stopped);
        // A connection whose work panics is dropped, and the server rolls its transaction back.
        let answer = catch_unwind(AssertUnwindSafe(|| work(&sql::Connection::Postgres(conn))));
        conn.is_stopped.replace(None);
        answer.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn connection(&self) -> BackendResult<Connection> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(conn) if conn.client.is_closed() => {}
                Some(conn) => return Ok(conn),
                None => return Connection::open(&self.config),
            }
        }
    }

    fn keep(&self, conn: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.max_idle && !conn.client.is_closed() && !conn.is_canceled.get() {
            idle.push(conn);
        }
    }
}

/// Returns an address without `schema=NAME`, and that name.
fn schema_of(url: &str) -> (String, String) {
    let Some((before, parameters)) = url.split_once('?') else {
        return (url.to_owned(), "talktree".to_owned());
    };
    let (named, others): (Vec<&str>, Vec<&str>) =
        parameters.split('&').partition(|parameter| parameter.starts_with("schema="));
    let schema = named.last().map_or("talktree", |named| &named["schema=".len()..]);
    let url = if others.is_empty() {
        before.to_owned()
    } else {
        format!("{before}?{}", others.join("&"))
    };
    (url, schema.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_taken_out_of_the_address() {
        let of = |url| schema_of(url);
        let pair = |url: &str, schema: &str| (url.to_owned(), schema.to_owned());
        assert_eq!(of("postgresql://a@h/db"), pair("postgresql://a@h/db", "talktree"));
        assert_eq!(of("postgresql://a@h/db?schema=x"), pair("postgresql://a@h/db", "x"));
        assert_eq!(
            of("postgresql://a@h/db?host=/tmp&schema=x&port=1"),
            pair("postgresql://a@h/db?host=/tmp&port=1", "x")
        );
    }
}
