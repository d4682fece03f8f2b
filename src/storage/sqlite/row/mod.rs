//! The rows of the tables for sessions, messages and compactions, each column listed once.
//!
//! `columns!` takes the fields of a struct. From that one list come the text of the SQL and the positions at which
//! values are read and bound, so a column that is added cannot be read as another one. The text is a literal: statements
//! stay constants, and `prepare_cached` finds them without any formatting.

/// Returns the name of the column that a field is stored in: the field's own, unless another one is given.
macro_rules! column {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident = $column:ident) => {
        stringify!($column)
    };
}

/// Lists the columns of a struct: `sql_macro[key, ..]: Struct { field, field = column, .. }`.
///
/// Implements [`Read`] and [`Bind`] for the struct, and defines a macro for parts of SQL statements:
///
/// - `names`: `, a, b`, for `SELECT` and `INSERT`; a key or an address always comes before it,
/// - `values`: `, ?, ?`, for `VALUES`,
/// - `assign`: `a = ?, b = ?`, for `SET`,
/// - `assign_given`: `a = coalesce(?, a), b = coalesce(?, b), `, for a `SET` where NULL keeps the stored value.
///
/// The fields in brackets are read from the columns before the list, and are not part of it.
macro_rules! columns {
    ($sql:ident$([$($key:ident),+])?: $row:ty {
        $($field:ident $(= $column:ident)?),+ $(,)?
    }) => {
        macro_rules! $sql {
            (names) => { concat!($(", ", column!($field $(= $column)?)),+) };
            (values) => { concat!($(first!(", ?", $field)),+) };
            (assign) => { assign!($($field $(= $column)?),+) };
            (assign_given) => {
                concat!($(column!($field $(= $column)?), " = coalesce(?, ",
                          column!($field $(= $column)?), "), "),+)
            };
        }

        impl<'r> $crate::storage::sqlite::row::Read<'r> for $row {
            const WIDTH: usize =
                [$($(stringify!($key),)+)? $(stringify!($field)),+].len();

            fn read(
                row: &'r rusqlite::Row<'_>,
                at: usize,
            ) -> $crate::storage::sqlite::error::BackendResult<Self> {
                let mut positions = at..;
                let mut next = || positions.next().unwrap_or(at);
                Ok(Self {
                    $($($key: $crate::storage::sqlite::row::Read::read(row, next())?,)+)?
                    $($field: $crate::storage::sqlite::row::Read::read(row, next())?),+
                })
            }
        }

        impl<'r> $crate::storage::sqlite::row::Bind for $row {
            fn bind(
                &self,
                statement: &mut rusqlite::Statement<'_>,
                at: usize,
            ) -> rusqlite::Result<usize> {
                // Names every field: a new one that is not listed does not compile.
                let Self { $($($key: _,)+)? $($field),+ } = self;
                $(let at = $field.bind(statement, at)?;)+
                Ok(at)
            }
        }
    };
}

/// Returns the assignments of a list of columns.
macro_rules! assign {
    ($first:ident $(= $first_column:ident)? $(, $field:ident $(= $column:ident)?)*) => {
        concat!(
            column!($first $(= $first_column)?), " = ?"
            $(, ", ", column!($field $(= $column)?), " = ?")*
        )
    };
}

/// Returns the first of two.
macro_rules! first {
    ($first:literal, $second:ident) => {
        $first
    };
}

mod column;
#[macro_use]
pub(super) mod compaction;
#[macro_use]
pub(super) mod message;
#[macro_use]
pub(super) mod session;

use rusqlite::{Connection, Row, Statement};

pub(super) use self::column::time;
use super::error::BackendResult;

/// A value of one or several adjacent columns.
pub(super) trait Read<'r>: Sized {
    /// How many columns it takes.
    const WIDTH: usize = 1;

    /// Reads it from the columns that begin at this position.
    fn read(row: &'r Row<'_>, at: usize) -> BackendResult<Self>;
}

/// A value that is bound to one or several adjacent parameters.
pub(super) trait Bind {
    /// Binds it to the parameters that begin at this number, and returns the number after them.
    fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize>;
}

/// Runs a statement with these values, in the order of its parameters; returns how many rows it changed.
pub(super) fn execute(
    conn: &Connection,
    sql: &str,
    values: &[&dyn Bind],
) -> rusqlite::Result<usize> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut at = 1;
    for value in values {
        at = value.bind(&mut statement, at)?;
    }
    statement.raw_execute()
}

/// Runs a query with these values, and returns what `read` makes of its first row.
pub(super) fn first_row<T>(
    conn: &Connection,
    sql: &str,
    values: &[&dyn Bind],
    read: impl FnOnce(&Row<'_>) -> BackendResult<T>,
) -> BackendResult<Option<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut at = 1;
    for value in values {
        at = value.bind(&mut statement, at)?;
    }
    let mut rows = statement.raw_query();
    rows.next()?.map(read).transpose()
}
