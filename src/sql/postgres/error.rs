//! What an error of the server means to a caller.

use std::time::Instant;

use tokio_postgres::error::SqlState;

use crate::error::Error;
use crate::sql::BackendError;

impl BackendError {
    /// Returns whether the server gave a transaction up that succeeds when it runs again: one of two that wait for each other, or that
    /// add the same row: then the next attempt finds the row of the other.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self, Self::Postgres(error) if matches!(error.code(), Some(
            &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::UNIQUE_VIOLATION
        )))
    }
}

/// Returns the public error; `busy_ms` is how long the write waited.
pub(in crate::sql) fn public(error: tokio_postgres::Error, busy_ms: u64) -> Error {
    match error.code() {
        // The last two: it was run again until the time was over.
        Some(
            &SqlState::LOCK_NOT_AVAILABLE
            | &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED,
        ) => Error::Busy { waited_ms: busy_ms },
        Some(&SqlState::DISK_FULL) => Error::DiskFull,
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::INSUFFICIENT_PRIVILEGE) => {
            Error::ReadOnly
        }
        Some(
            &SqlState::DATA_CORRUPTED
            | &SqlState::INDEX_CORRUPTED
            // The keys of a table are used up.
            | &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
        ) => Error::Corrupt {
            what: error.as_db_error().map_or_else(|| error.to_string(), |it| it.message().to_owned()),
        },
        _ => failed(error),
    }
}

pub(super) fn too_long(what: &str, began: Instant) -> BackendError {
    let source = format!("{what} for {} ms", began.elapsed().as_millis()).into();
    BackendError::Own(Error::Storage { source })
}

pub(super) fn failed(error: tokio_postgres::Error) -> Error {
    Error::Storage { source: with_cause(&error).into() }
}

/// Returns an error with its cause: by itself it says `db error`.
pub(super) fn with_cause(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
