//! A connection to a PostgreSQL server, as a verb uses it: statements that SQLite reads, too, and typed rows.
//!
//! The client is asynchronous. One thread of the engine's own drives all connections, and a call waits for its answer without
//! a runtime: so it may be made inside of another runtime, where it blocks as every call of this library does.
//!
//! The statement that begins a transaction is sent together with the first statement in it.

mod dialect;
mod server;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rusqlite::types::Value;
use tokio::runtime::{Builder, Handle};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{CancelToken, Client, NoTls, SimpleQueryMessage, Statement};

pub(crate) use self::server::Server;
pub(crate) use self::values::owned;
use super::{BackendError, BackendResult, Bind, Parameters, Row};
use crate::error::{Error, Result};

/// How often work that can be interrupted looks whether it is.
const LOOK: Duration = Duration::from_millis(10);

/// A connection, in a transaction.
pub(crate) struct Connection {
    client: Client,
    /// By the text, and whether the transaction writes.
    statements: RefCell<HashMap<(&'static str, bool), Statement>>,
    /// What begins the transaction, until it is sent.
    begin: RefCell<Option<String>>,
    is_writing: Cell<bool>,
    /// The id of the transaction, if it writes.
    transaction: RefCell<Option<String>>,
    /// Whether the work is to stop.
    is_stopped: RefCell<Option<Box<dyn Fn() -> bool + Send>>>,
    /// Whether a statement failed: then the server commits nothing, and says so by no error.
    has_failed: Cell<bool>,
    /// Whether the server was asked to stop, which may reach it late.
    is_canceled: Cell<bool>,
}

impl Connection {
    /// Connects to a server.
    fn open(config: &tokio_postgres::Config) -> BackendResult<Self> {
        let runtime = runtime()?;
        let config = config.clone();
        let connected = runtime.spawn(async move {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok::<_, tokio_postgres::Error>(client)
        });
        let client = wait(connected, || false).map_err(|error| Error::Io {
            path: "the thread of the client of PostgreSQL".into(),
            source: std::io::Error::other(error),
        })??;
        Ok(Self {
            client,
            statements: RefCell::default(),
            begin: RefCell::default(),
            is_writing: Cell::new(false),
            transaction: RefCell::default(),
            is_stopped: RefCell::default(),
            has_failed: Cell::new(false),
            is_canceled: Cell::new(false),
        })
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) fn run(&self, sql: &'static str, values: impl Bind) -> BackendResult<usize> {
        let (statement, values) = self.bound(sql, values)?;
        let values: Vec<_> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        let changed = self.ask(self.client.execute(&statement, &values))?;
        if sql.starts_with("ROLLBACK TO ") {
            self.has_failed.set(false);
        }
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// Calls `take` with each row until it returns `false`.
    pub(super) fn each(
        &self,
        sql: &'static str,
        values: impl Bind,
        mut take: impl FnMut(&Row<'_>) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        for row in self.rows(sql, values)? {
            if !take(&Row::Postgres(&values::of_row(&row)?))? {
                break;
            }
        }
        Ok(())
    }

    /// Returns what `read` makes of the first row.
    pub(super) fn first_with<T>(
        &self,
        sql: &'static str,
        values: impl Bind,
        read: impl FnOnce(&Row<'_>) -> BackendResult<T>,
    ) -> BackendResult<Option<T>> {
        let rows = self.rows(sql, values)?;
        rows.first().map(|row| read(&Row::Postgres(&values::of_row(row)?))).transpose()
    }

    fn rows(
        &self,
        sql: &'static str,
        values: impl Bind,
    ) -> BackendResult<Vec<tokio_postgres::Row>> {
        let (statement, values) = self.bound(sql, values)?;
        let values: Vec<_> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        self.ask(self.client.query(&statement, &values))
    }

    /// Returns the prepared statement and its parameters.
    fn bound(
        &self,
        sql: &'static str,
        values: impl Bind,
    ) -> BackendResult<(Statement, Vec<Box<dyn ToSql + Sync + Send>>)> {
        let mut bound: Vec<Value> = Vec::new();
        values.bind(&mut Parameters::Postgres(&mut bound), 1)?;
        let statement = self.prepared(sql)?;
        let values = bound.into_iter().zip(statement.params());
        let values = values.map(|(value, of)| values::parameter(value, of));
        let values = values.collect::<BackendResult<_>>()?;
        Ok((statement, values))
    }

    fn prepared(&self, sql: &'static str) -> BackendResult<Statement> {
        let key = (sql, self.is_writing.get());
        if let Some(statement) = self.statements.borrow().get(&key) {
            return Ok(statement.clone());
        }
        let text = dialect::translated(sql, key.1);
        let statement = self.ask(self.client.prepare(&text))?;
        self.statements.borrow_mut().insert(key, statement.clone());
        Ok(statement)
    }

    /// Sends what begins the transaction, if that was not sent, and a request; returns the answer.
    fn ask<T>(
        &self,
        request: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> BackendResult<T> {
        let begin = self.begin.take();
        let both = async {
            let Some(begin) = begin else { return request.await };
            // Both are sent at once. The second fails if the first one does.
            let (begun, answer) = join(self.client.simple_query(&begin), request).await;
            let id = begun?.into_iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            self.transaction.replace(id);
            answer
        };
        let is_stopped = self.is_stopped.borrow();
        let answer = wait(both, || {
            let Some(is_stopped) = &*is_stopped else { return false };
            if !self.is_canceled.get() && is_stopped() {
                self.is_canceled.set(true);
                cancel(self.client.cancel_token());
            }
            true
        });
        if answer.is_err() {
            self.has_failed.set(true);
        }
        Ok(answer?)
    }

    /// Runs commands without values.
    fn batch(&self, sql: &str) -> BackendResult<()> {
        self.ask(self.client.batch_execute(sql))
    }
}

impl BackendError {
    /// Returns whether the server gave a transaction up that succeeds when it runs again: one of two that wait for each other, or that
    /// add the same row.
    fn is_given_up(&self, attempts: u32) -> bool {
        let Self::Postgres(error) = self else { return false };
        match error.code() {
            Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => true,
            // The next attempt finds the row of the other.
            Some(&SqlState::UNIQUE_VIOLATION) => attempts < 4,
            _ => false,
        }
    }
}

/// Returns the public error; `busy_ms` is how long the write waited.
pub(super) fn public(error: tokio_postgres::Error, busy_ms: u64) -> Error {
    match error.code() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => Error::Busy { waited_ms: busy_ms },
        Some(&SqlState::QUERY_CANCELED) => Error::Interrupted,
        Some(&SqlState::DISK_FULL) => Error::DiskFull,
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::INSUFFICIENT_PRIVILEGE) => {
            Error::ReadOnly
        }
        Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => {
            Error::Corrupt { what: error.to_string() }
        }
        _ => failed(error),
    }
}

/// Returns an error with its cause: by itself it says `db error`.
fn failed(error: tokio_postgres::Error) -> Error {
    let source = match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}").into(),
        None => error.into(),
    };
    Error::Storage { source }
}

/// Waits for two requests, which are sent in this order.
async fn join<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut a, mut b) = (None, None);
    std::future::poll_fn(|context| {
        if a.is_none() {
            a = ready(first.as_mut().poll(context));
        }
        if b.is_none() {
            b = ready(second.as_mut().poll(context));
        }
        match (a.take(), b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (one, other) => {
                (a, b) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

fn ready<T>(polled: Poll<T>) -> Option<T> {
    match polled {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Asks the server to stop what a connection is doing. The answer of that tells whether it did.
fn cancel(token: CancelToken) {
    if let Ok(runtime) = runtime() {
        runtime.spawn(async move { token.cancel_query(NoTls).await });
    }
}

/// Returns the runtime that drives all connections of this process. One that was forked has no thread of its parent's.
fn runtime() -> Result<Handle> {
    static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
    let start = || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("talktree-postgres".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
        Ok(handle)
    };
    let mut started = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match &*started {
        Some((process, handle)) if *process == std::process::id() => Ok(handle.clone()),
        _ => {
            let handle = start().map_err(|source| Error::Io {
                path: "the thread of the client of PostgreSQL".into(),
                source,
            })?;
            *started = Some((std::process::id(), handle.clone()));
            Ok(handle)
        }
    }
}

/// Waits for a future that another thread drives; `look` is called now and then as long as it returns true.
fn wait<F: Future>(future: F, mut look: impl FnMut() -> bool) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return answer;
        }
        match look() {
            true => thread::park_timeout(LOOK),
            false => thread::park(),
        }
    }
}
