//! The database as a verb sees it: a connection in a transaction, which runs statements and reads typed rows.
//!
//! A statement is a literal, and its values are bound in the order of the numbers `?1`, `?2`, .. A value may take several
//! adjacent parameters or columns, as a tuple does, and a struct whose fields `columns!` lists. A statement is prepared once
//! for each connection.
//!
//! A statement that reads the row which is the lock of a write says so: `/*LOCK session*/`. An engine with several writers locks
//! that row; SQLite has one writer.

#[macro_use]
mod value;
pub(crate) mod error;
mod jitter;

#[cfg(feature = "postgres")]
pub(crate) mod postgres;

use rusqlite::CachedStatement;
use rusqlite::types::{FromSql, ToSql, ValueRef};

pub(crate) use error::{BackendError, BackendResult, corrupt, damaged};
pub(crate) use jitter::jitter;
pub(crate) use value::{Bind, Read, time};

/// A connection to the database, in a transaction.
#[derive(Clone, Copy)]
pub(crate) enum Connection<'c> {
    Sqlite(&'c rusqlite::Connection),
    #[cfg(feature = "postgres")]
    Postgres(&'c postgres::Connection),
}

impl<'c> Connection<'c> {
    /// Runs a statement; returns how many rows it changed.
    pub(crate) fn run(&self, sql: &'static str, values: impl Bind) -> BackendResult<usize> {
        match self {
            Self::Sqlite(conn) => Ok(prepared(conn, sql, values)?.raw_execute()?),
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.run(sql, values),
        }
    }

    /// Calls `take` with each row until it returns `false`. A server sends them in portions, so the answer may be of any size.
    pub(crate) fn each(
        &self,
        sql: &'static str,
        values: impl Bind,
        mut take: impl FnMut(&Row<'_>) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        match self {
            Self::Sqlite(conn) => {
                let mut statement = prepared(conn, sql, values)?;
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next()? {
                    if !take(&Row::Sqlite(row))? {
                        break;
                    }
                }
                Ok(())
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.each(sql, values, take),
        }
    }

    /// Returns what `read` makes of the first row.
    pub(crate) fn first_with<T>(
        &self,
        sql: &'static str,
        values: impl Bind,
        read: impl FnOnce(&Row<'_>) -> BackendResult<T>,
    ) -> BackendResult<Option<T>> {
        match self {
            Self::Sqlite(conn) => {
                let mut statement = prepared(conn, sql, values)?;
                let mut rows = statement.raw_query();
                rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.first_with(sql, values, read),
        }
    }

    /// Returns what `read` makes of each row. A server sends them all at once.
    pub(crate) fn rows_with<T>(
        &self,
        sql: &'static str,
        values: impl Bind,
        mut read: impl FnMut(&Row<'_>) -> BackendResult<T>,
    ) -> BackendResult<Vec<T>> {
        match self {
            Self::Sqlite(conn) => {
                let mut statement = prepared(conn, sql, values)?;
                let (mut rows, mut found) = (statement.raw_query(), Vec::new());
                while let Some(row) = rows.next()? {
                    found.push(read(&Row::Sqlite(row))?);
                }
                Ok(found)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.rows_with(sql, values, read),
        }
    }

    /// Returns the rows.
    pub(crate) fn rows<T: for<'r> Read<'r>>(
        &self,
        sql: &'static str,
        values: impl Bind,
    ) -> BackendResult<Vec<T>> {
        self.rows_with(sql, values, |row| T::read(row, 0))
    }

    /// Returns the first row, if there is one.
    pub(crate) fn first<T: for<'r> Read<'r>>(
        &self,
        sql: &'static str,
        values: impl Bind,
    ) -> BackendResult<Option<T>> {
        self.first_with(sql, values, |row| T::read(row, 0))
    }

    /// Returns the row that every answer to this statement has.
    ///
    /// # Errors
    /// [`Corrupt`](crate::Error::Corrupt) if another row refers to one that is not there.
    pub(crate) fn one<T: for<'r> Read<'r>>(
        &self,
        sql: &'static str,
        values: impl Bind,
    ) -> BackendResult<T> {
        let found = self.first(sql, values)?;
        found.ok_or_else(|| corrupt("a row that another one refers to is missing"))
    }

    /// Returns whether there is a row.
    pub(crate) fn has(&self, sql: &'static str, values: impl Bind) -> BackendResult<bool> {
        Ok(self.first_with(sql, values, |_| Ok(()))?.is_some())
    }

    /// Runs a command that has no values and no rows.
    pub(crate) fn command(&self, sql: &'static str) -> BackendResult<()> {
        self.run(sql, ()).map(drop)
    }

    /// Runs a change whose answer says nothing: a server is not waited for.
    pub(crate) fn send(&self, sql: &'static str, values: impl Bind) -> BackendResult<()> {
        match self {
            Self::Sqlite(_) => self.run(sql, values).map(drop),
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.send(sql, values),
        }
    }

    /// Returns whether it is a server, which is far away: few statements and many rows take less time than many statements.
    pub(crate) fn is_far(&self) -> bool {
        !matches!(self, Self::Sqlite(_))
    }

    /// Returns what is for a file, or what is for a server.
    pub(crate) fn by_engine<T>(&self, file: T, server: T) -> T {
        if self.is_far() { server } else { file }
    }

    /// Returns how many rows are read at first where more may be wanted.
    pub(crate) fn read_ahead(&self) -> usize {
        self.by_engine(1, 64)
    }

    /// Asks a server a question that will come: the next one need not wait for its answer.
    pub(crate) fn ask_ahead(&self, sql: &'static str, values: impl Bind) -> BackendResult<()> {
        match self {
            Self::Sqlite(_) => {
                let _ = (sql, values);
                Ok(())
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.ask_ahead(sql, values),
        }
    }

    /// Runs several commands that have no values and no rows.
    pub(crate) fn script(&self, sql: &'static str) -> BackendResult<()> {
        match self {
            Self::Sqlite(conn) => Ok(conn.execute_batch(sql)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.batch(sql),
        }
    }

    /// Changes the row that is the lock of a write, so that who waits for it begins again at once: what they have read is not true
    /// any more. SQLite has one writer.
    pub(crate) fn claim(&self, sql: &'static str, key: i64) -> BackendResult<()> {
        if self.is_far() {
            self.send(sql, key)?;
        }
        Ok(())
    }

    /// Returns whether the transaction is open: SQLite rolls it back by itself after some errors of the system.
    pub(crate) fn is_in_transaction(&self) -> bool {
        match self {
            Self::Sqlite(conn) => !conn.is_autocommit(),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => true,
        }
    }

    /// Returns the connection to a file.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on a server.
    pub(crate) fn sqlite(&self) -> BackendResult<&'c rusqlite::Connection> {
        match self {
            Self::Sqlite(conn) => Ok(conn),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Err(BackendError::Own(crate::Error::Unsupported {
                what: "this: it is about files, and the store is on a server",
            })),
        }
    }

    /// Returns the plan of a statement for any values, a line each; on a server as if its tables were large.
    #[cfg(test)]
    pub(crate) fn plan(&self, sql: &str) -> BackendResult<Vec<String>> {
        match self {
            Self::Sqlite(conn) => {
                let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                // An unbound parameter is NULL, which a LIMIT does not accept.
                for at in 1..=statement.parameter_count() {
                    statement.raw_bind_parameter(at, 1)?;
                }
                let lines = statement.raw_query().mapped(|row| row.get(3));
                Ok(lines.collect::<rusqlite::Result<_>>()?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.plan(sql),
        }
    }

    /// Returns where temporary tables are: beside a server in memory, because who may only read has none there.
    pub(crate) fn temporary(&self) -> BackendResult<Self> {
        match self {
            Self::Sqlite(_) => Ok(*self),
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.beside().map(Self::Sqlite),
        }
    }
}

impl<'c> From<&'c rusqlite::Connection> for Connection<'c> {
    fn from(conn: &'c rusqlite::Connection) -> Self {
        Self::Sqlite(conn)
    }
}

/// A row of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    #[cfg(feature = "postgres")]
    Postgres(&'r [rusqlite::types::Value]),
}

impl Row<'_> {
    /// Returns the value of a column.
    pub(crate) fn value(&self, at: usize) -> BackendResult<ValueRef<'_>> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(at)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(values) => Ok(ValueRef::from(&values[at])),
        }
    }

    /// Returns the value of a column as this type.
    pub(crate) fn get<T: FromSql>(&self, at: usize) -> BackendResult<T> {
        Ok(T::column_result(self.value(at)?)?)
    }
}

/// The parameters of a statement.
pub(crate) enum Parameters<'p, 'c> {
    Sqlite(&'p mut rusqlite::Statement<'c>),
    #[cfg(feature = "postgres")]
    Postgres(&'p mut Vec<rusqlite::types::Value>),
}

impl Parameters<'_, '_> {
    /// Binds a value to the parameter with this number, and returns the next number.
    fn set(&mut self, at: usize, value: impl ToSql) -> BackendResult<usize> {
        match self {
            Self::Sqlite(statement) => statement.raw_bind_parameter(at, value)?,
            #[cfg(feature = "postgres")]
            Self::Postgres(values) => values.push(postgres::owned(value.to_sql()?)),
        }
        Ok(at + 1)
    }
}

/// Prepares a statement and binds its values.
fn prepared<'c>(
    conn: &'c rusqlite::Connection,
    sql: &'static str,
    values: impl Bind,
) -> BackendResult<CachedStatement<'c>> {
    let mut statement = conn.prepare_cached(sql)?;
    let next = values.bind(&mut Parameters::Sqlite(&mut statement), 1)?;
    debug_assert_eq!(next - 1, statement.parameter_count(), "values of {sql}");
    Ok(statement)
}
