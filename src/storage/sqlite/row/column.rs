//! The values of single columns.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use rusqlite::types::{FromSql, FromSqlResult, Null, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, Statement};
use serde::de::DeserializeOwned;

use super::super::error::{BackendResult, corrupt};
use super::{Bind, Read};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Json;
use crate::tree::Address;

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
                    Ok(row.get(at)?)
                }
            }

            impl Bind for $type {
                fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
                    statement.raw_bind_parameter(at, self)?;
                    Ok(at + 1)
                }
            }
        )+
    };
}

plain!(i64, u64, bool, Address, String);

/// Ids are text. One that talktree would refuse was written by another program.
macro_rules! id {
    ($($type:ty),+) => {
        $(
            impl Read<'_> for $type {
                fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
                    let id = Self::from(row.get_ref(at)?.as_str()?);
                    id.check().map_err(|error| corrupt(error.to_string()))?;
                    Ok(id)
                }
            }

            impl Bind for $type {
                fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
                    self.as_str().bind(statement, at)
                }
            }
        )+
    };
}

id!(SessionId, MessageId, CompactionId);

impl Bind for str {
    fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
        statement.raw_bind_parameter(at, self)?;
        Ok(at + 1)
    }
}

impl<'r> Read<'r> for Cow<'r, str> {
    fn read(row: &'r Row<'_>, at: usize) -> BackendResult<Self> {
        Ok(Cow::Borrowed(row.get_ref(at)?.as_str()?))
    }
}

impl Bind for Cow<'_, str> {
    fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
        (**self).bind(statement, at)
    }
}

impl<'r, T: Read<'r>> Read<'r> for Option<T> {
    fn read(row: &'r Row<'_>, at: usize) -> BackendResult<Self> {
        match row.get_ref(at)? {
            ValueRef::Null => Ok(None),
            _ => T::read(row, at).map(Some),
        }
    }
}

impl<T: Bind> Bind for Option<T> {
    fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
        match self {
            Some(value) => value.bind(statement, at),
            None => {
                statement.raw_bind_parameter(at, Null)?;
                Ok(at + 1)
            }
        }
    }
}

impl<T: Bind + ?Sized> Bind for &T {
    fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
        (**self).bind(statement, at)
    }
}

impl Read<'_> for DateTime<Utc> {
    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        time(row.get(at)?)
    }
}

impl Bind for DateTime<Utc> {
    fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
        self.timestamp_micros().bind(statement, at)
    }
}

impl Read<'_> for Json {
    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        Ok(Self::parse(row.get_ref(at)?.as_str()?)?)
    }
}

impl Bind for Json {
    fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
        self.as_str().bind(statement, at)
    }
}

/// As a JSON array; NULL if it is empty.
impl<T: DeserializeOwned> Read<'_> for Vec<T> {
    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        match row.get_ref(at)?.as_str_or_null()? {
            Some(text) => {
                serde_json::from_str(text).map_err(|error| corrupt(format!("a list: {error}")))
            }
            None => Ok(Self::new()),
        }
    }
}

impl Bind for Vec<CompactionId> {
    fn bind(&self, statement: &mut Statement<'_>, at: usize) -> rusqlite::Result<usize> {
        let text = (!self.is_empty()).then(|| serde_json::to_string(self)).transpose();
        let to_sql = |error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
        text.map_err(to_sql)?.bind(statement, at)
    }
}

/// Returns the time of a column in microseconds.
pub(in super::super) fn time(micros: i64) -> BackendResult<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| corrupt(format!("{micros} is not a time in microseconds")))
}
