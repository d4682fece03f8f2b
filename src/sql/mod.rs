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

use rusqlite::CachedStatement;

pub(crate) use error::{BackendError, BackendResult, corrupt, damaged};
pub(crate) use value::{Bind, Read, time};

/// A connection to the database.
pub(crate) type Connection = rusqlite::Connection;
/// A row of an answer.
pub(crate) type Row<'r> = rusqlite::Row<'r>;

/// A prepared statement, to which values are bound.
pub(crate) type Statement<'c> = rusqlite::Statement<'c>;

/// What a verb does with its connection.
pub(crate) trait Sql {
    /// Runs a statement; returns how many rows it changed.
    fn run(&self, sql: &'static str, values: impl Bind) -> BackendResult<usize>;

    /// Calls `take` with each row until it returns `false`.
    fn each(
        &self,
        sql: &'static str,
        values: impl Bind,
        take: impl FnMut(&Row<'_>) -> BackendResult<bool>,
    ) -> BackendResult<()>;

    /// Returns what `read` makes of the first row.
    fn first_with<T>(
        &self,
        sql: &'static str,
        values: impl Bind,
        read: impl FnOnce(&Row<'_>) -> BackendResult<T>,
    ) -> BackendResult<Option<T>>;

    /// Returns what `read` makes of each row.
    fn rows_with<T>(
        &self,
        sql: &'static str,
        values: impl Bind,
        mut read: impl FnMut(&Row<'_>) -> BackendResult<T>,
    ) -> BackendResult<Vec<T>> {
        let mut rows = Vec::new();
        self.each(sql, values, |row| {
            rows.push(read(row)?);
            Ok(true)
        })?;
        Ok(rows)
    }

    /// Returns the rows.
    fn rows<T: for<'r> Read<'r>>(
        &self,
        sql: &'static str,
        values: impl Bind,
    ) -> BackendResult<Vec<T>> {
        self.rows_with(sql, values, |row| T::read(row, 0))
    }

    /// Returns the first row, if there is one.
    fn first<T: for<'r> Read<'r>>(
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
    fn one<T: for<'r> Read<'r>>(&self, sql: &'static str, values: impl Bind) -> BackendResult<T> {
        let found = self.first(sql, values)?;
        found.ok_or_else(|| corrupt("a row that another one refers to is missing"))
    }

    /// Returns whether there is a row.
    fn has(&self, sql: &'static str, values: impl Bind) -> BackendResult<bool> {
        Ok(self.first_with(sql, values, |_| Ok(()))?.is_some())
    }
}

/// Prepares a statement and binds its values.
fn prepared<'c>(
    conn: &'c Connection,
    sql: &'static str,
    values: impl Bind,
) -> BackendResult<CachedStatement<'c>> {
    let mut statement = conn.prepare_cached(sql)?;
    let next = values.bind(&mut statement, 1)?;
    debug_assert_eq!(next - 1, statement.parameter_count(), "values of {sql}");
    Ok(statement)
}

impl Sql for Connection {
    fn run(&self, sql: &'static str, values: impl Bind) -> BackendResult<usize> {
        Ok(prepared(self, sql, values)?.raw_execute()?)
    }

    fn each(
        &self,
        sql: &'static str,
        values: impl Bind,
        mut take: impl FnMut(&Row<'_>) -> BackendResult<bool>,
    ) -> BackendResult<()> {
        let mut statement = prepared(self, sql, values)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if !take(row)? {
                break;
            }
        }
        Ok(())
    }

    fn first_with<T>(
        &self,
        sql: &'static str,
        values: impl Bind,
        read: impl FnOnce(&Row<'_>) -> BackendResult<T>,
    ) -> BackendResult<Option<T>> {
        prepared(self, sql, values)?.raw_query().next()?.map(read).transpose()
    }
}
