//! Writes: whose turn it is, one transaction for each or one for several short ones, and the care after a commit.
//!
//! A long write is a transaction of its own. A short one runs in the transaction that the queue hands to it, in a
//! savepoint, or begins one; see [`commit_group`](super::commit_group). If it fails, it is rolled back alone. If a system
//! call fails below it, the connection's state may be wrong, so the whole transaction is rolled back, and every write in
//! it fails with that error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::commit_group::{Length, Outcome, Turn, millis_since};
use super::connection::Database;
use super::interrupt::{Watch, interruptible};
use super::schema;
use super::transaction::{self, run};
use crate::error::{Error, Result};
use crate::sql::{self, BackendError, BackendResult};

/// What a write returned; the outer error is the payload of its panic.
type Answer<T> = std::result::Result<BackendResult<T>, Box<dyn Any + Send>>;

/// How long a step waits for others on a server.
#[cfg(feature = "postgres")]
const STEP: Duration = Duration::from_secs(1);

/// What a write in a group has left behind.
enum Left {
    /// The transaction.
    Open,
    /// Nothing: the transaction was rolled back. The write has failed, and the others in it fail with this error.
    Nothing(BackendError),
}

/// Asks a server how many rows and entries of indexes this transaction has read.
#[cfg(all(test, feature = "postgres"))]
macro_rules! rows_read {
    () => {
        "SELECT CAST(sum(pg_stat_get_xact_tuples_returned(oid)) AS BIGINT) FROM pg_class
          WHERE relnamespace = CAST(current_schema() AS REGNAMESPACE)"
    };
}

impl Database {
    /// Runs a write in a transaction of its own: all of it or nothing. On a server it may run several times.
    pub(crate) fn write<T>(
        &self,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            return self.write_there(server, self.config.busy_timeout, None, work);
        }
        let writer = self.writer()?;
        self.write_alone(writer, None, work)
    }

    /// Runs a write that takes well under a millisecond: all of it or nothing. Other short ones may share its commit.
    pub(crate) fn write_short<T>(
        &self,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        // A database in memory has one connection, whose readers must not find a transaction open; its commits are
        // cheap.
        if self.file.is_none() {
            return self.write(work);
        }
        let writer = self.writer()?;
        let turn = self.writers.ask(Length::Short);
        let asked = turn.asked();
        self.write_in_group(writer, turn, self.config.busy_timeout, work)
            .map_err(|error| self.public_error(error, millis_since(asked)))
    }

    /// Runs a step of deferred work unless a long write or another process has the lock: `None` then, or if the database is
    /// read-only.
    ///
    /// It waits behind other short writes, but is never refused because of them, however many there are.
    pub(super) fn write_step<T>(
        &self,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<Option<T>> {
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            return self.try_there(server, STEP, work);
        }
        if self.file.is_none() {
            return self.try_write(work);
        }
        let writer = self.writing_connection().map_err(|error| self.public_error(error, 0))?;
        let Some(writer) = writer else { return Ok(None) };
        let Some(turn) = self.writers.ask_unless_long() else { return Ok(None) };
        let step = |conn: &sql::Connection<'_>| {
            self.log.note_step();
            work(conn)
        };
        self.unless_busy(self.write_in_group(writer, turn, Duration::ZERO, step))
    }

    /// Runs a long write, which an interrupt stops.
    pub(crate) fn write_long<T>(
        &self,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        self.write_watched(self.watch(), work)
    }

    /// Runs a write that this watch stops.
    pub(super) fn write_watched<T>(
        &self,
        watch: Watch,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            return self.write_there(server, self.config.busy_timeout, Some(watch), work);
        }
        let writer = self.writer()?;
        self.write_alone(writer, Some(watch), work)
    }

    /// Runs a write if the write lock is free now; `None` if it is held, or if the database is read-only.
    pub(crate) fn try_write<T>(
        &self,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<Option<T>> {
        #[cfg(feature = "postgres")]
        if let Some(server) = &self.server {
            return self.try_there(server, Duration::ZERO, work);
        }
        let writer = self.writing_connection().map_err(|error| self.public_error(error, 0))?;
        let Some(writer) = writer else { return Ok(None) };
        let Some(mut turn) = self.writers.try_ask() else { return Ok(None) };
        let Some(mut conn) = try_lock(writer) else { return Ok(None) };
        self.reopen_if_suspect(&mut conn).map_err(|error| self.public_error(error, 0))?;
        self.unless_busy(self.write_on(&mut conn, &mut turn, Duration::ZERO, None, work))
    }

    /// Runs a write on a server, where writes of several connections run at once.
    #[cfg(feature = "postgres")]
    fn write_there<T>(
        &self,
        server: &sql::postgres::Server,
        timeout: Duration,
        watch: Option<Watch>,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        self.check_not_importing()?;
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let is_stopped = watch.map(|watch| move || watch.is_raised());
        let began = Instant::now();
        let answer = server.write(timeout, is_stopped, work);
        answer.map_err(|error| self.public_error(error, millis_since(began)))
    }

    /// The same, unless others have locked what it writes for so long.
    #[cfg(feature = "postgres")]
    fn try_there<T>(
        &self,
        server: &sql::postgres::Server,
        timeout: Duration,
        work: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<Option<T>> {
        match self.write_there(server, timeout, None, work) {
            Err(Error::Busy { .. } | Error::ReadOnly) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Runs work on the writing connection that must not be in a transaction, such as a checkpoint.
    pub(super) fn with_writer<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> BackendResult<T>,
    ) -> Result<T> {
        let writer = self.writer()?;
        // Declared first, so that the connection is free before the turn is the next one's.
        let turn = self.writers.ask(Length::Long);
        let mut conn = lock(writer);
        let answer = self
            .reopen_if_suspect(&mut conn)
            .and_then(|()| self.check_file())
            .and_then(|()| self.check_version(&conn))
            .and_then(|()| work(&mut conn));
        self.reopen_after(answer.as_ref().err(), &mut conn);
        answer.map_err(|error| error.into_error(turn.waited_ms()))
    }

    /// Returns how many steps of SQLite's virtual machine a write takes; on a server, how many rows and entries of indexes it reads.
    #[cfg(test)]
    pub(super) fn steps_of_write<T>(
        &self,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<(u64, T)> {
        use std::sync::atomic::AtomicU64;
        #[cfg(feature = "postgres")]
        if self.server.is_some() {
            let work = std::cell::Cell::new(Some(work));
            return self.write(|conn| {
                let before: u64 = conn.one(concat!(rows_read!(), " -- before"), ())?;
                let work = work.take().ok_or(Error::Interrupted)?;
                let answer = work(conn)?;
                let after: u64 = conn.one(rows_read!(), ())?;
                Ok((after - before, answer))
            });
        }
        let steps = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&steps);
        let _turn = self.writers.ask(Length::Long);
        let mut conn = lock(self.writer()?);
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        let answer =
            conn.progress_handler(1, Some(count)).map_err(BackendError::from).and_then(|()| {
                transaction::write(&conn, &self.config, Duration::ZERO, |conn| work(&conn.into()))
            });
        let answer = answer.map_err(|error| self.public_error(error, 0))?;
        conn.progress_handler(0, None::<fn() -> bool>)
            .map_err(|error| BackendError::from(error).into_error(0))?;
        Ok((steps.load(Ordering::Relaxed), answer))
    }

    /// Counts the steps that SQLite's virtual machine takes for later writes.
    #[cfg(test)]
    pub(super) fn count_steps(&self) -> Result<Arc<std::sync::atomic::AtomicU64>> {
        let steps = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let counter = Arc::clone(&steps);
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        lock(self.writer()?)
            .progress_handler(1, Some(count))
            .map_err(|error| BackendError::from(error).into_error(0))?;
        Ok(steps)
    }

    fn writer(&self) -> Result<&Mutex<Connection>> {
        self.check_not_importing()?;
        let writer = self.writing_connection().map_err(|error| self.public_error(error, 0))?;
        writer.ok_or(Error::ReadOnly)
    }

    fn write_alone<T>(
        &self,
        writer: &Mutex<Connection>,
        watch: Option<Watch>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        // Declared first, so that the connection is free before the turn is the next one's.
        let mut turn = self.writers.ask(Length::Long);
        let mut conn = lock(writer);
        let timeout = turn.left_of(self.config.busy_timeout);
        self.reopen_if_suspect(&mut conn)
            .and_then(|()| self.write_on(&mut conn, &mut turn, timeout, watch, work))
            .map_err(|error| self.public_error(error, turn.waited_ms()))
    }

    fn write_on<T>(
        &self,
        conn: &mut Connection,
        turn: &mut Turn<'_>,
        timeout: Duration,
        watch: Option<Watch>,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        let refused_since = turn.refused_since();
        let write = |conn: &Connection| {
            transaction::write_after(conn, &self.config, timeout, refused_since, |conn| {
                self.log.note_begin();
                self.check_version(conn)?;
                let answer = work(&conn.into())?;
                // As late as possible, and early enough to write nothing.
                self.check_file()?;
                Ok(answer)
            })
        };
        let answer = match watch {
            Some(watch) => interruptible(conn, watch, write),
            None => write(conn),
        };
        let answer = match answer {
            Ok(answer) => self.check_after_commit().map(|()| answer),
            Err(error) => Err(schema::used_up_keys(conn, &error).unwrap_or(error)),
        };
        self.reopen_after(answer.as_ref().err(), conn);
        if answer.is_ok() {
            self.log.keep_short(conn, self.config.busy_timeout);
        }
        answer
    }

    /// Runs a short write in the open transaction, or in a new one, and waits for its commit.
    fn write_in_group<T>(
        &self,
        writer: &Mutex<Connection>,
        mut turn: Turn<'_>,
        timeout: Duration,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> BackendResult<T> {
        if !turn.is_in_group() {
            turn.gather();
        }
        let mut conn = lock(writer);
        let (answer, left) = match turn.is_in_group() {
            true => {
                turn.wake_next();
                join(&conn, work)
            }
            false => self.begin_group(&mut conn, &mut turn, timeout, work),
        };
        let outcome = match left {
            Left::Open => match turn.next() {
                Some(next) => {
                    drop(conn);
                    turn.hand_over(next)
                }
                None => self.commit_group(conn, turn),
            }
            .map_err(|error| error.again()),
            // The answer says why.
            Left::Nothing(error) => {
                self.give_up_group(conn, turn, error);
                Ok(())
            }
        };
        let answer = answer.unwrap_or_else(|panic| resume_unwind(panic));
        // Also if this write failed: it has read what the others wrote, so its error is true only if they are committed.
        outcome.and(answer)
    }

    /// Begins a transaction and runs the first write in it.
    ///
    /// It needs no savepoint: if it fails, the transaction is rolled back, and the next write begins another.
    fn begin_group<T>(
        &self,
        conn: &mut Connection,
        turn: &mut Turn<'_>,
        timeout: Duration,
        work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
    ) -> (Answer<T>, Left) {
        let timeout = turn.left_of(timeout);
        let begun = self.reopen_if_suspect(conn).and_then(|()| {
            // A group whose turn was lost in a panic of talktree's own code has left its transaction.
            transaction::rollback(conn);
            transaction::begin(conn, &self.config, timeout, turn.refused_since())
        });
        if let Err(error) = begun {
            let left = Left::Nothing(error.again());
            return (Ok(Err(error)), left);
        }
        turn.begin();
        self.log.note_begin();
        turn.wake_next();
        let answer = catch_unwind(AssertUnwindSafe(|| {
            self.check_version(conn)?;
            let answer = work(&(&*conn).into())?;
            match conn.is_autocommit() {
                true => Err(transaction::rolled_back()),
                false => Ok(answer),
            }
        }));
        if let Ok(Ok(_)) = answer {
            return (answer, Left::Open);
        }
        transaction::rollback(conn);
        let answer = answer.map(|answer| {
            answer.map_err(|error| schema::used_up_keys(conn, &error).unwrap_or(error))
        });
        let error = answer.as_ref().ok().and_then(|answer| answer.as_ref().err());
        let left = Left::Nothing(error.map_or_else(transaction::rolled_back, BackendError::again));
        (answer, left)
    }

    /// Commits the open transaction and tells all whose writes are in it.
    fn commit_group(&self, mut conn: MutexGuard<'_, Connection>, mut turn: Turn<'_>) -> Outcome {
        let began = Instant::now();
        let committed = self
            .check_file()
            .inspect_err(|_| transaction::rollback(&conn))
            .and_then(|()| transaction::commit(&conn))
            .and_then(|()| self.check_after_commit());
        self.reopen_after(committed.as_ref().err(), &mut conn);
        let outcome = committed.map_err(Arc::new);
        turn.end(&outcome, began.elapsed());
        if outcome.is_ok() {
            self.log.keep_short(&mut conn, self.config.busy_timeout);
        }
        // Before the turn is the next one's.
        drop(conn);
        outcome
    }

    /// Tells the others of a transaction that was rolled back.
    fn give_up_group(
        &self,
        mut conn: MutexGuard<'_, Connection>,
        mut turn: Turn<'_>,
        error: BackendError,
    ) {
        self.reopen_after(Some(&error), &mut conn);
        drop(conn);
        turn.end(&Err(Arc::new(error)), Duration::ZERO);
    }

    /// Checks the file once more: it may be moved while the commit waits for the disk.
    fn check_after_commit(&self) -> BackendResult<()> {
        if self.config.is_synchronous { self.check_file() } else { Ok(()) }
    }

    /// Returns the answer of a write that does not wait for other writers; `None` if one has the lock or the file is
    /// read-only.
    fn unless_busy<T>(&self, answer: BackendResult<T>) -> Result<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_busy() || error.is_read_only() => Ok(None),
            Err(error) => match self.public_error(error, 0) {
                Error::ReadOnly => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Reopens the writing connection after a failed system call.
    ///
    /// The connection's cached state may be wrong: FTS5 keeps totals that it failed to read, and would write them
    /// with the next commit.
    fn reopen_after(&self, error: Option<&BackendError>, conn: &mut Connection) {
        let may_be_of_key =
            |error| self.config.encryption.is_some() && BackendError::may_be_of_key(error);
        if error.is_some_and(|error| error.is_of_system() || may_be_of_key(error)) {
            self.is_suspect.store(true, Ordering::Relaxed);
            // If this fails, the next write tries again.
            let _ = self.reopen_if_suspect(conn);
        }
    }
}

/// Runs a write in the open transaction, in a savepoint.
fn join<T>(
    conn: &Connection,
    work: impl FnOnce(&sql::Connection<'_>) -> BackendResult<T>,
) -> (Answer<T>, Left) {
    let answer = match run(conn, "SAVEPOINT write") {
        Ok(()) => catch_unwind(AssertUnwindSafe(|| work(&conn.into()))),
        Err(error) => Ok(Err(error)),
    };
    let (answer, ended) = match answer {
        Ok(Ok(answer)) => match released(conn) {
            Ok(()) => (Ok(Ok(answer)), Ok(())),
            Err(error) => (Ok(Err(error.again())), Err(error)),
        },
        Ok(Err(error)) => {
            let error = schema::used_up_keys(conn, &error).unwrap_or(error);
            let ended = match error.is_of_system() || error.is_busy() || conn.is_autocommit() {
                true => Err(error.again()),
                false => undo(conn),
            };
            (Ok(Err(error)), ended)
        }
        Err(panic) => (Err(panic), undo(conn)),
    };
    match ended {
        Ok(()) => (answer, Left::Open),
        Err(error) => {
            transaction::rollback(conn);
            (answer, Left::Nothing(error))
        }
    }
}

/// Ends the savepoint of a write that succeeded.
fn released(conn: &Connection) -> BackendResult<()> {
    if conn.is_autocommit() { Err(transaction::rolled_back()) } else { run(conn, "RELEASE write") }
}

/// Undoes what a write has done since its savepoint.
fn undo(conn: &Connection) -> BackendResult<()> {
    run(conn, "ROLLBACK TO write")?;
    run(conn, "RELEASE write")
}

/// If a thread panicked in a write, the transaction was rolled back.
fn lock(writer: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same if nobody uses it: a database in memory is read with it, too.
pub(super) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    use std::sync::TryLockError;
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::Config;
    use super::*;

    #[test]
    fn a_write_that_panics_is_rolled_back_and_later_writes_work() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        const INSERT: &str = "INSERT INTO setting (name, value) VALUES (?1, '')";
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            database.write(|conn| -> BackendResult<()> {
                conn.run(INSERT, "panicked")?;
                panic!("in a write");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(database.try_write(|conn| conn.run(INSERT, "later"))?, Some(1));
        let delete = "DELETE FROM setting WHERE name IN ('panicked', 'later')";
        assert_eq!(database.write(|conn| conn.run(delete, ()))?, 1);
        Ok(())
    }
}
