//! A connection to a PostgreSQL server, as a verb uses it: statements that SQLite reads, too, and typed rows.
//!
//! The client is asynchronous. One thread of the engine's own drives all connections, and a call waits for its answer without
//! a runtime: so it may be made inside of another runtime, where it blocks as every call of this library does.
//!
//! A call to the server takes as long as it is away, so few are made. What begins a transaction is sent together with the first statement
//! in it; a change whose answer says nothing goes with the next statement; the end of a read is not waited for. In one transaction the same
//! question is asked once, until something changes, and a verb may ask ahead. What is sent in a row by one statement with other values, rows
//! to insert and questions asked ahead, is gathered and sent as one.
//!
//! A call has an answer within a limit, or its connection counts as lost. The server has the same limits a little earlier, so that it
//! gives up first and says why.

mod address;
mod dialect;
mod error;
mod gathered;
mod runtime;
mod server;
mod values;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, SimpleQueryMessage, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) use self::error::public;
use self::error::{failed, too_long, with_cause};
use self::gathered::{Answers, Gathered};
use self::runtime::{runtime, sent, wait};
pub(crate) use self::server::{Server, missing};
pub(crate) use self::values::owned;
use super::{BackendError, BackendResult, Bind, Parameters, Row};
use crate::error::Error;

/// How often work that can be interrupted looks whether it is.
const LOOK: Duration = Duration::from_millis(10);
/// After how long the server is asked again to stop.
const AGAIN: Duration = Duration::from_millis(200);
/// How much later than the server a call gives up, and how long after it was to stop.
const LATER: Duration = Duration::from_secs(5);
/// To this point a read goes back after a statement that failed: otherwise the server would refuse all later ones.
const SAVEPOINT: &str = "SAVEPOINT talktree_read";

/// How many answers a transaction remembers, and how many rows of each.
const MAX_KNOWN: usize = 16;
const MAX_ROWS: usize = 4;

/// How many rows a portion of an answer has at first, and later: about so many bytes of them, if they are as long as those before.
const FIRST_PORTION: usize = 16;
const MAX_PORTION: usize = 1_000;
const PORTION_BYTES: usize = 1 << 20;

type Answer<T> = std::result::Result<T, tokio_postgres::Error>;
/// A request that was sent.
type Sent<T> = Pin<Box<dyn Future<Output = Answer<T>> + Send>>;
type Rows = Arc<Vec<tokio_postgres::Row>>;
/// A request that was sent, and what becomes of its answer.
type Awaited = Pin<Box<dyn Future<Output = BackendResult<()>> + Send>>;
/// The text of a statement, whether the transaction writes, and the types of what is gathered.
type FormKey = (&'static str, bool, Vec<&'static str>);
type Bound = Vec<(Box<dyn ToSql + Sync + Send>, Type)>;

/// A statement as it is sent.
#[derive(Clone)]
enum Form {
    /// Prepared on this connection.
    Prepared(Statement),
    /// Its text. Behind a pooler what another one has prepared may have the same name.
    Text(Arc<str>),
}

/// A question to the server.
struct Question {
    sql: &'static str,
    values: Vec<Value>,
    answer: Known,
}

enum Known {
    /// With others, as which of them.
    Asked(Arc<Mutex<Answers>>, usize),
    Read(Rows),
}

/// A connection, in a transaction.
pub(crate) struct Connection {
    client: Arc<Client>,
    tls: MakeRustlsConnect,
    /// The quoted name of the schema.
    schema: String,
    /// The process that connected. Nobody drives the connection in one that was forked.
    process: u32,
    forms: RefCell<HashMap<FormKey, Form>>,
    is_preparing: bool,
    /// What begins the transaction, until it is sent.
    begin: RefCell<Option<String>>,
    /// The same, once it is sent.
    begun: RefCell<Option<Sent<Vec<SimpleQueryMessage>>>>,
    /// What is not sent yet.
    gathered: RefCell<Option<Gathered>>,
    /// The changes that were sent and the questions that were asked ahead, in their order, until the answers are read.
    awaited: RefCell<Vec<Awaited>>,
    /// What was asked in this transaction, or is asked ahead, since its last change.
    known: RefCell<VecDeque<Question>>,
    is_writing: Cell<bool>,
    /// The id of the transaction, if it writes.
    transaction: RefCell<Option<String>>,
    /// Whether the work is to stop.
    is_stopped: RefCell<Option<Box<dyn Fn() -> bool + Send>>>,
    /// Whether a statement failed: then the server commits nothing, and says so by no error.
    has_failed: Cell<bool>,
    /// Whether the server was asked to stop: behind a pooler that may reach it late.
    is_canceled: Cell<bool>,
    /// How long a statement may take.
    limit: Cell<Option<Duration>>,
    /// Whether no answer came within the limit.
    is_lost: Cell<bool>,
    /// How many cursors it has had.
    cursors: Cell<u64>,
    /// For temporary tables: who may only read has none on the server.
    beside: OnceCell<rusqlite::Connection>,
}

impl Connection {
    /// Connects to the first host that answers.
    fn open(address: &address::Address) -> BackendResult<Self> {
        let runtime = runtime()?;
        let (hosts, tls) = (address.hosts.clone(), address.tls.clone());
        let connected = runtime.spawn(async move {
            let mut refused = Vec::new();
            for host in hosts {
                // The client's own limit is for each address of a name, and ends when a connection is taken.
                let limit = host.get_connect_timeout().copied().unwrap_or_default() + LATER;
                let why = match timeout(limit, host.connect(tls.clone())).await {
                    Ok(Ok((client, connection))) => {
                        tokio::spawn(connection);
                        return Ok(client);
                    }
                    Ok(Err(error)) => with_cause(&error),
                    Err(_) => format!("no answer for {} ms", limit.as_millis()),
                };
                refused.push(format!("{}: {why}", address::named(&host)));
            }
            Err(BackendError::Own(Error::Storage { source: refused.join("; ").into() }))
        });
        let connected = wait(connected, None).transpose();
        let client = connected.map_err(|error| Error::Io {
            path: "the thread of the client of PostgreSQL".into(),
            source: std::io::Error::other(error),
        })?;
        let client = client.ok_or(Error::Interrupted)??;
        Ok(Self {
            client: Arc::new(client),
            tls: address.tls.clone(),
            schema: address.schema.clone(),
            process: std::process::id(),
            forms: RefCell::default(),
            is_preparing: address.is_preparing,
            begin: RefCell::default(),
            begun: RefCell::default(),
            gathered: RefCell::default(),
            awaited: RefCell::default(),
            known: RefCell::default(),
            is_writing: Cell::new(false),
            transaction: RefCell::default(),
            is_stopped: RefCell::default(),
            has_failed: Cell::new(false),
            is_canceled: Cell::new(false),
            limit: Cell::new(None),
            is_lost: Cell::new(false),
            cursors: Cell::new(0),
            beside: OnceCell::new(),
        })
    }

    /// Returns a database in memory, for temporary tables.
    pub(super) fn beside(&self) -> BackendResult<&rusqlite::Connection> {
        if self.beside.get().is_none() {
            let _ = self.beside.set(rusqlite::Connection::open_in_memory()?);
        }
        self.beside.get().ok_or_else(|| Error::Interrupted.into())
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) fn run(&self, sql: &'static str, values: impl Bind) -> BackendResult<usize> {
        self.known.take();
        let changed = self.change(self.bound(sql, bind(values)?)?);
        let changed = self.ask(changed)?;
        if sql.starts_with("ROLLBACK TO ") {
            self.has_failed.set(false);
        }
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// Sends a change. If it fails, so does the transaction.
    pub(super) fn send(&self, sql: &'static str, values: impl Bind) -> BackendResult<()> {
        if self.begin.borrow().is_some() {
            return self.run(sql, values).map(drop);
        }
        self.known.take();
        self.gather(sql, bind(values)?).map(drop)
    }

    /// Asks a question now that will be asked later.
    pub(super) fn ask_ahead(&self, sql: &'static str, values: impl Bind) -> BackendResult<()> {
        let values = bind(values)?;
        let (answers, at) = self.gather(sql, values.clone())?;
        let answer = Known::Asked(answers, at);
        self.known.borrow_mut().push_back(Question { sql, values, answer });
        Ok(())
    }

    /// Adds what is to be sent; returns where its answer will be.
    fn gather(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> BackendResult<(Arc<Mutex<Answers>>, usize)> {
        if !self.gathered.borrow().as_ref().is_some_and(|it| it.takes(sql, &values)) {
            self.send_gathered()?;
        }
        Ok(self.gathered.borrow_mut().get_or_insert_with(|| Gathered::new(sql)).add(values))
    }

    /// Sends what is gathered.
    fn send_gathered(&self) -> BackendResult<()> {
        let Some(Gathered { sql, mut rows, types, answers, .. }) = self.gathered.take() else {
            return Ok(());
        };
        let bound = match rows.pop() {
            Some(row) if rows.is_empty() => self.bound(sql, row),
            last => {
                rows.extend(last);
                let form = self.form(sql, gathered::names(&types));
                form.map(|form| (form, gathered::columns(rows, &types)))
            }
        };
        // Without these rows the transaction must not be committed.
        let bound = bound.inspect_err(|_| self.has_failed.set(true))?;
        self.begin();
        if !is_question(sql) {
            self.send_change(bound);
            return Ok(());
        }
        let rows = sent(self.query(bound));
        self.awaited.borrow_mut().push(Box::pin(async move {
            let rows = rows.await?;
            answers.lock().unwrap_or_else(PoisonError::into_inner).put(rows)
        }));
        Ok(())
    }

    fn send_change(&self, change: (Form, Bound)) {
        let changed = sent(self.change(change));
        self.awaited.borrow_mut().push(Box::pin(async move { Ok(changed.await.map(drop)?) }));
    }

    /// Sends what begins the transaction.
    fn begin(&self) {
        if let Some(begin) = self.begin.take() {
            let client = Arc::clone(&self.client);
            let begun = Box::pin(async move { client.simple_query(&begin).await });
            self.begun.replace(Some(sent(begun)));
        }
    }

    fn change(&self, (form, values): (Form, Bound)) -> Sent<u64> {
        let client = Arc::clone(&self.client);
        match form {
            Form::Prepared(statement) => {
                Box::pin(async move { client.execute(&statement, &as_dyn(&values)).await })
            }
            Form::Text(text) => {
                Box::pin(async move { client.execute_typed(&text, &typed(&values)).await })
            }
        }
    }

    fn query(&self, (form, values): (Form, Bound)) -> Sent<Vec<tokio_postgres::Row>> {
        let client = Arc::clone(&self.client);
        match form {
            Form::Prepared(statement) => {
                Box::pin(async move { client.query(&statement, &as_dyn(&values)).await })
            }
            Form::Text(text) => {
                Box::pin(async move { client.query_typed(&text, &typed(&values)).await })
            }
        }
    }

    /// Calls `take` with each row until it returns `false`. They are read in portions, between which it may ask something else.
    pub(super) fn each(
        &self,
        sql: &'static str,
        values: impl Bind,
        mut take: impl FnMut(&Row<'_>) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        let values = bind(values)?;
        if self.known.borrow().iter().any(|it| it.sql == sql && it.values == values) {
            return take_each(&self.rows(sql, values)?, take).map(drop);
        }
        self.send_gathered()?;
        self.begin();
        let cursor = format!("cursor{}", self.cursors.replace(self.cursors.get() + 1));
        let text = dialect::translated(sql, self.is_writing.get());
        let declare = format!("DECLARE {cursor} NO SCROLL CURSOR FOR {text}");
        let declare = with_values(Form::Text(declare.into()), values);
        self.send_change(declare);
        let mut count = FIRST_PORTION;
        loop {
            let fetch = Form::Text(format!("FETCH {count} FROM {cursor}").into());
            let rows = self.ask(self.query((fetch, Vec::new())))?;
            if !take_each(&rows, &mut take)? || rows.len() < count {
                break;
            }
            let bytes: usize = rows.iter().map(tokio_postgres::Row::raw_size_bytes).sum();
            count = (count * PORTION_BYTES / bytes.max(1)).clamp(1, MAX_PORTION);
        }
        if !self.has_failed.get() {
            let close = Form::Text(format!("CLOSE {cursor}").into());
            self.send_change((close, Vec::new()));
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
        let rows = self.rows(sql, bind(values)?)?;
        // All of them were sent.
        debug_assert!(rows.len() <= 1, "{sql}");
        rows.first().map(|row| read(&Row::Postgres(&values::of_row(row)?))).transpose()
    }

    /// Returns what `read` makes of each row.
    pub(super) fn rows_with<T>(
        &self,
        sql: &'static str,
        values: impl Bind,
        mut read: impl FnMut(&Row<'_>) -> BackendResult<T>,
    ) -> BackendResult<Vec<T>> {
        let rows = self.rows(sql, bind(values)?)?;
        rows.iter().map(|row| read(&Row::Postgres(&values::of_row(row)?))).collect()
    }

    fn rows(&self, sql: &'static str, values: Vec<Value>) -> BackendResult<Rows> {
        let is_question = is_question(sql);
        if !is_question {
            self.known.take();
        }
        self.send_gathered()?;
        let at = self.known.borrow().iter().position(|it| it.sql == sql && it.values == values);
        let known = at.and_then(|at| self.known.borrow_mut().remove(at)).map(|it| it.answer);
        let rows = match known {
            Some(Known::Read(rows)) => rows,
            Some(Known::Asked(answers, at)) => {
                if !self.awaited.borrow().is_empty() {
                    self.ask(std::future::ready(Ok(())))?;
                }
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::new(mem::take(&mut answers.of_each[at]))
            }
            None => Arc::new(self.ask(self.query(self.bound(sql, values.clone())?))?),
        };
        let mut known = self.known.borrow_mut();
        if is_question && rows.len() <= MAX_ROWS && known.len() < MAX_KNOWN {
            known.push_back(Question { sql, values, answer: Known::Read(Arc::clone(&rows)) });
        }
        Ok(rows)
    }

    /// Returns the statement and its parameters.
    fn bound(&self, sql: &'static str, values: Vec<Value>) -> BackendResult<(Form, Bound)> {
        Ok(with_values(self.form(sql, Vec::new())?, values))
    }

    /// Returns a statement for one row, or for many with columns of these types.
    fn form(&self, sql: &'static str, types: Vec<&'static str>) -> BackendResult<Form> {
        let key = (sql, self.is_writing.get(), types);
        if let Some(form) = self.forms.borrow().get(&key) {
            return Ok(form.clone());
        }
        let text = match key.2.is_empty() {
            true => dialect::translated(sql, key.1),
            false => dialect::of_many(sql, &key.2),
        };
        let form = match self.is_preparing {
            true => Form::Prepared(self.ask(self.client.prepare(&text))?),
            false => Form::Text(text.into()),
        };
        self.forms.borrow_mut().insert(key, form.clone());
        Ok(form)
    }

    /// Sends what begins the transaction, if that was not sent, and a request; returns the answer.
    fn ask<T>(&self, request: impl Future<Output = Answer<T>>) -> BackendResult<T> {
        let began = Instant::now();
        if self.is_lost.get() {
            return Err(too_long("the server has not answered", began));
        }
        self.send_gathered()?;
        self.begin();
        let mut until = self.limit.get().map(|limit| began + limit + LATER);
        let (mut canceling, mut asked): (_, Option<Instant>) = (None, None);
        let answer = {
            let is_stopped = self.is_stopped.borrow();
            let mut answer = pin!(self.all_and(request));
            loop {
                let look = is_stopped.as_ref().map(|_| Instant::now() + LOOK);
                let answer = wait(answer.as_mut(), until.into_iter().chain(look).min());
                let now = Instant::now();
                if answer.is_some() || until.is_some_and(|until| until <= now) {
                    break answer;
                }
                // A request that comes before the statement began is lost.
                if asked.is_none_or(|asked| asked + AGAIN < now)
                    && is_stopped.as_ref().is_some_and(|is_stopped| is_stopped())
                {
                    self.is_canceled.set(true);
                    until.get_or_insert(now + LATER);
                    asked = Some(now);
                    canceling = self.cancel();
                }
            }
        };
        if let Some(canceling) = canceling {
            // Until it has reached the server: it must not stop what comes next.
            wait(canceling, Some(Instant::now() + LATER));
        }
        if !matches!(answer, Some(Ok(_))) {
            // What was asked ahead may have no answer.
            self.known.take();
            self.awaited.take();
        }
        let error = match answer {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(BackendError::Postgres(error))) => error,
            Some(Err(error)) => {
                self.has_failed.set(true);
                return Err(error);
            }
            None => {
                self.is_lost.set(true);
                self.has_failed.set(true);
                return Err(match self.is_canceled.get() {
                    true => Error::Interrupted.into(),
                    false => too_long("the server has not answered", began),
                });
            }
        };
        self.has_failed.set(true);
        if !self.is_writing.get() && !self.client.is_closed() {
            // A transaction without the savepoint ends with its first failure.
            let back = self.client.batch_execute("ROLLBACK TO talktree_read");
            wait(back, Some(Instant::now() + LATER));
        }
        Err(match error.code() {
            // It may have stopped a question that was asked ahead of this one.
            Some(&SqlState::QUERY_CANCELED | &SqlState::IN_FAILED_SQL_TRANSACTION)
                if self.is_canceled.get() =>
            {
                Error::Interrupted.into()
            }
            Some(&SqlState::QUERY_CANCELED) => {
                too_long("the server has not finished a statement", began)
            }
            _ => error.into(),
        })
    }

    /// Sends a request at once; returns its answer. Those to what was sent before it are read first: an answer that nobody takes holds up
    /// those after it.
    async fn all_and<T>(&self, request: impl Future<Output = Answer<T>>) -> BackendResult<T> {
        let mut request = pin!(request);
        let polled = std::future::poll_fn(|context| Poll::Ready(request.as_mut().poll(context)));
        let polled = polled.await;
        let begun = self.begun.take();
        if let Some(begun) = begun {
            let begun = match begun.await {
                // The schema is gone.
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Vec::new(),
                begun => begun?,
            };
            if let Err(error) = self.note_begun(&begun) {
                // For whoever goes on after an error.
                self.begun.replace(Some(Box::pin(std::future::ready(Ok(begun)))));
                return Err(error);
            }
        }
        let mut errors = Vec::new();
        for awaited in self.awaited.take() {
            errors.extend(awaited.await.err());
        }
        let answer = match polled {
            Poll::Ready(answer) => answer,
            Poll::Pending => request.await,
        };
        if errors.is_empty() {
            return Ok(answer?);
        }
        errors.extend(answer.err().map(BackendError::from));
        // What comes after the statement that failed says only that one before it has failed.
        let is_cause = |error: &BackendError| match error {
            BackendError::Postgres(error) => {
                error.code() != Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
            }
            _ => true,
        };
        let cause = errors.iter().position(is_cause).unwrap_or_default();
        Err(errors.swap_remove(cause))
    }

    /// Takes the version of the tables from the answer to what began a transaction, and the id of one that writes. There is no answer
    /// from another store.
    fn note_begun(&self, begun: &[SimpleQueryMessage]) -> BackendResult<()> {
        let row = begun.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let row = row.ok_or_else(|| Error::StoreMoved { path: self.schema.clone().into() })?;
        self.transaction.replace(row.get(1).map(str::to_owned));
        match row.get(0).and_then(|version| version.parse().ok()) {
            Some(found) if found != server::VERSION => {
                Err(Error::NewerStore { found, supported: server::VERSION }.into())
            }
            _ => Ok(()),
        }
    }

    /// Ends a read without waiting for the answer.
    fn end_read(&self) {
        let client = Arc::clone(&self.client);
        drop(sent(Box::pin(async move { client.batch_execute("COMMIT").await })));
        self.forget();
    }

    /// Asks the server to stop what it is doing. The answer of that tells whether it did.
    fn cancel(&self) -> Option<JoinHandle<()>> {
        let (token, tls) = (self.client.cancel_token(), self.tls.clone());
        let cancel = async move { drop(timeout(LATER, token.cancel_query(tls)).await) };
        runtime().ok().map(|runtime| runtime.spawn(cancel))
    }

    /// Forgets what belongs to a transaction that is over.
    fn forget(&self) {
        self.known.take();
        self.gathered.take();
        self.begun.take();
        self.awaited.take();
        self.transaction.take();
    }

    /// Returns the plan of a statement for any values, and as if its tables were large: what reads or sorts more than is asked for is in
    /// it only if no index can replace it.
    #[cfg(test)]
    pub(super) fn plan(&self, sql: &str) -> BackendResult<Vec<String>> {
        let sql = dialect::translated(sql, self.is_writing.get());
        let count = self.ask(self.client.prepare(&sql))?.params().len();
        let values = match count {
            0 => String::new(),
            _ => format!("({})", vec!["NULL"; count].join(", ")),
        };
        let explain = format!(
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_material = off;
             SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_hashagg = off;
             SET LOCAL plan_cache_mode = force_generic_plan;
             PREPARE planned AS {sql}; EXPLAIN (COSTS OFF) EXECUTE planned {values}; DEALLOCATE planned"
        );
        let answer = self.ask(self.client.simple_query(&explain))?;
        let lines = answer.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(lines.collect())
    }

    /// Runs commands without values.
    pub(super) fn batch(&self, sql: &str) -> BackendResult<()> {
        self.known.take();
        self.ask(self.client.batch_execute(sql))
    }
}

fn is_question(sql: &str) -> bool {
    sql.starts_with("SELECT ")
}

fn bind(values: impl Bind) -> BackendResult<Vec<Value>> {
    let mut bound = Vec::new();
    values.bind(&mut Parameters::Postgres(&mut bound), 1)?;
    Ok(bound)
}

fn with_values(form: Form, values: Vec<Value>) -> (Form, Bound) {
    let bound = values.into_iter().enumerate().map(|(at, value)| {
        let of = match &form {
            Form::Prepared(statement) => statement.params().get(at).cloned(),
            Form::Text(_) => None,
        };
        let of = of.unwrap_or_else(|| values::type_of(&value));
        (values::parameter(value, &of), of)
    });
    let bound = bound.collect();
    (form, bound)
}

/// Calls `take` with each row until it returns `false`; returns whether it did not.
fn take_each(
    rows: &[tokio_postgres::Row],
    mut take: impl FnMut(&Row<'_>) -> BackendResult<bool>,
) -> BackendResult<bool> {
    for row in rows {
        if !take(&Row::Postgres(&values::of_row(row)?))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn as_dyn(values: &Bound) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|(value, _)| &**value as &(dyn ToSql + Sync)).collect()
}

fn typed(values: &Bound) -> Vec<(&(dyn ToSql + Sync), Type)> {
    values.iter().map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone())).collect()
}
