//! Values of rows and of parameters, and structs of them, whose columns are listed once.
//!
//! `columns!` takes the fields of a struct. From that one list come the text of the SQL and the positions at which
//! values are read and bound, so a column that is added cannot be read as another one. The text is a literal: statements
//! stay constants, which a connection finds without any formatting.

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

        impl<'r> $crate::sql::Read<'r> for $row {
            const WIDTH: usize =
                [$($(stringify!($key),)+)? $(stringify!($field)),+].len();

            fn read(
                row: &'r $crate::sql::Row<'_>,
                at: usize,
            ) -> $crate::sql::BackendResult<Self> {
                let mut positions = at..;
                let mut next = || positions.next().unwrap_or(at);
                Ok(Self {
                    $($($key: $crate::sql::Read::read(row, next())?,)+)?
                    $($field: $crate::sql::Read::read(row, next())?),+
                })
            }
        }

        impl<'r> $crate::sql::Bind for $row {
            fn bind(
                &self,
                parameters: &mut $crate::sql::Parameters<'_, '_>,
                at: usize,
            ) -> $crate::sql::BackendResult<usize> {
                // Names every field: a new one that is not listed does not compile.
                let Self { $($($key: _,)+)? $($field),+ } = self;
                $(let at = $field.bind(parameters, at)?;)+
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

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use rusqlite::types::{FromSql, FromSqlResult, Null, ToSql, ToSqlOutput, ValueRef};

use super::{BackendResult, Parameters, Row, corrupt};
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Json;
use crate::tree::Address;

/// A value of one or several adjacent columns.
pub(crate) trait Read<'r>: Sized {
    /// How many columns it takes.
    const WIDTH: usize = 1;

    /// Reads it from the columns that begin at this position.
    fn read(row: &'r Row<'_>, at: usize) -> BackendResult<Self>;
}

/// A value that is bound to one or several adjacent parameters.
pub(crate) trait Bind {
    /// Binds it to the parameters that begin at this number, and returns the number after them.
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize>;
}

impl ToSql for Address {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.raw()))
    }
}

impl FromSql for Address {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self::from_raw)
    }
}

/// Types that rusqlite can read and bind.
macro_rules! plain {
    ($($type:ty),+) => {
        $(
            impl Read<'_> for $type {
                fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
                    row.get(at)
                }
            }

            impl Bind for $type {
                fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
                    parameters.set(at, self)
                }
            }
        )+
    };
}

plain!(i64, u64, usize, bool, Address, String);

/// Several values, one after the other.
macro_rules! tuples {
    ($(($($name:ident)+))+) => {
        $(
            impl<'r, $($name: Read<'r>),+> Read<'r> for ($($name,)+) {
                const WIDTH: usize = 0 $(+ $name::WIDTH)+;

                fn read(row: &'r Row<'_>, at: usize) -> BackendResult<Self> {
                    let mut next = at;
                    let mut step = |width| {
                        next += width;
                        next - width
                    };
                    Ok(($($name::read(row, step($name::WIDTH))?,)+))
                }
            }

            impl<$($name: Bind),+> Bind for ($($name,)+) {
                #[expect(non_snake_case, reason = "a value is called as its type")]
                fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
                    let ($($name,)+) = self;
                    $(let at = $name.bind(parameters, at)?;)+
                    Ok(at)
                }
            }
        )+
    };
}

tuples! {
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
}

impl<T: Bind, const N: usize> Bind for [T; N] {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        self.iter().try_fold(at, |at, value| value.bind(parameters, at))
    }
}

impl Bind for () {
    fn bind(&self, _: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        Ok(at)
    }
}

/// Ids are text. One that talktree would refuse was written by another program.
macro_rules! id {
    ($($type:ty),+) => {
        $(
            impl Read<'_> for $type {
                fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
                    let id = Self::from(row.value(at)?.as_str()?);
                    id.check().map_err(|error| corrupt(error.to_string()))?;
                    Ok(id)
                }
            }

            impl Bind for $type {
                fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
                    self.as_str().bind(parameters, at)
                }
            }
        )+
    };
}

id!(SessionId, MessageId, CompactionId);

impl Bind for str {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        parameters.set(at, self)
    }
}

impl Bind for [u8] {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        parameters.set(at, self)
    }
}

impl<'r> Read<'r> for Cow<'r, str> {
    fn read(row: &'r Row<'_>, at: usize) -> BackendResult<Self> {
        Ok(Cow::Borrowed(row.value(at)?.as_str()?))
    }
}

impl Bind for Cow<'_, str> {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        (**self).bind(parameters, at)
    }
}

impl<'r, T: Read<'r>> Read<'r> for Option<T> {
    fn read(row: &'r Row<'_>, at: usize) -> BackendResult<Self> {
        match row.value(at)? {
            ValueRef::Null => Ok(None),
            _ => T::read(row, at).map(Some),
        }
    }
}

impl<T: Bind> Bind for Option<T> {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        match self {
            Some(value) => value.bind(parameters, at),
            None => parameters.set(at, Null),
        }
    }
}

impl<T: Bind + ?Sized> Bind for &T {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        (**self).bind(parameters, at)
    }
}

impl Read<'_> for DateTime<Utc> {
    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        time(row.get(at)?)
    }
}

impl Bind for DateTime<Utc> {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        self.timestamp_micros().bind(parameters, at)
    }
}

impl Read<'_> for Json {
    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        Ok(Self::parse(row.value(at)?.as_str()?)?)
    }
}

impl Bind for Json {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        self.as_str().bind(parameters, at)
    }
}

/// The texts of several rows, each with its length in bytes before it: `3:one5:three`. NULL if there are none.
impl Read<'_> for Vec<String> {
    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        let mut rest = row.value(at)?.as_str_or_null()?.unwrap_or_default();
        let mut texts = Self::new();
        while !rest.is_empty() {
            let next = rest
                .split_once(':')
                .and_then(|(bytes, after)| after.split_at_checked(bytes.parse().ok()?));
            let (text, after) = next.ok_or_else(|| corrupt("a list has no length of a text"))?;
            texts.push(text.to_owned());
            rest = after;
        }
        texts.sort_unstable();
        Ok(texts)
    }
}

/// As a JSON array; NULL if it is empty.
impl Read<'_> for Vec<CompactionId> {
    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        match row.value(at)?.as_str_or_null()? {
            Some(text) => {
                serde_json::from_str(text).map_err(|error| corrupt(format!("a list: {error}")))
            }
            None => Ok(Self::new()),
        }
    }
}

impl Bind for Vec<CompactionId> {
    fn bind(&self, parameters: &mut Parameters<'_, '_>, at: usize) -> BackendResult<usize> {
        let text = (!self.is_empty()).then(|| serde_json::to_string(self)).transpose();
        let text = text.map_err(|source| Error::Json { what: "the ids of compactions", source })?;
        text.bind(parameters, at)
    }
}

/// Returns the time of a column in microseconds.
pub(crate) fn time(micros: i64) -> BackendResult<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| corrupt(format!("{micros} is not a time in microseconds")))
}
