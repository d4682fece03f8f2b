//! Errors inside the backend, before they become the public error.

use rusqlite::ErrorCode;

use crate::error::Error;

/// The result of a function inside the backend.
pub(crate) type BackendResult<T> = Result<T, BackendError>;

/// An error of SQLite or of talktree.
///
/// `?` converts both, and no type of rusqlite is in the public API.
#[derive(Debug)]
pub(crate) enum BackendError {
    Sqlite(rusqlite::Error),
    #[cfg(feature = "postgres")]
    Postgres(tokio_postgres::Error),
    Own(Error),
}

impl BackendError {
    /// Returns the public error; `busy_ms` is how long the write waited for a busy database.
    pub(crate) fn into_error(self, busy_ms: u64) -> Error {
        let error = match self {
            Self::Own(error) => return error,
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => return super::postgres::public(error, busy_ms),
            Self::Sqlite(error) => error,
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Error::Busy { waited_ms: busy_ms }
            }
            Some(ErrorCode::DiskFull) => Error::DiskFull,
            Some(ErrorCode::ReadOnly) => Error::ReadOnly,
            Some(ErrorCode::OperationInterrupted) => Error::Interrupted,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Error::Corrupt { what: error.to_string() }
            }
            _ => match error {
                // Queries that may find nothing handle that themselves; here a row is missing that another one refers
                // to.
                rusqlite::Error::QueryReturnedNoRows => Error::Corrupt {
                    what: "a row that another one refers to is missing".to_owned(),
                },
                error if is_of_value(&error) => Error::Corrupt { what: error.to_string() },
                error => Error::Storage { source: Box::new(error) },
            },
        }
    }

    /// Returns the same error once more, for another write of the same transaction.
    pub(crate) fn again(&self) -> Self {
        let text = match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(error, text)) => {
                return rusqlite::Error::SqliteFailure(*error, text.clone()).into();
            }
            Self::Own(Error::StoreMoved { path }) => {
                return Error::StoreMoved { path: path.clone() }.into();
            }
            Self::Sqlite(error) => error.to_string(),
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => error.to_string(),
            Self::Own(error) => error.to_string(),
        };
        let aborted = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT);
        rusqlite::Error::SqliteFailure(aborted, Some(text)).into()
    }

    /// Returns whether a system call failed: an I/O error, a full disk or no memory.
    pub(crate) fn is_of_system(&self) -> bool {
        matches!(self, Self::Sqlite(error) if matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory | ErrorCode::DiskFull)
        ))
    }

    /// Returns whether what is stored is damaged.
    pub(crate) fn is_corrupt(&self) -> bool {
        matches!(self, Self::Own(Error::Corrupt { .. }))
            || matches!(self, Self::Sqlite(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) || is_of_value(error))
    }

    /// Returns whether a file could not be opened or locked for reading.
    pub(crate) fn is_of_opening(&self) -> bool {
        matches!(self, Self::Sqlite(error) if matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure)
        ))
    }

    /// Returns whether SQLite could not write one of its files.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Self::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly))
    }

    /// Returns whether a row with the same address exists.
    pub(crate) fn is_of_key(&self) -> bool {
        use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID};
        #[cfg(feature = "postgres")]
        if let Self::Postgres(error) = self {
            return error.code() == Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION);
        }
        matches!(self, Self::Sqlite(rusqlite::Error::SqliteFailure(error, _))
            if [SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID].contains(&error.extended_code))
    }

    /// Returns whether another row has what only one may have. A server runs the write again.
    pub(crate) fn is_of_unique(&self) -> bool {
        matches!(self, Self::Sqlite(rusqlite::Error::SqliteFailure(error, _))
            if error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE)
    }

    /// Returns whether the store refuses what it was given: whoever leaves that out may go on.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Own(error) if !matches!(
            error,
            Error::Corrupt { .. }
                | Error::Interrupted
                | Error::Storage { .. }
                | Error::Busy { .. }
                | Error::ReadOnly
                | Error::DiskFull
                | Error::NewerStore { .. }
        ))
    }

    /// Returns whether the work was stopped on purpose.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self, Self::Own(Error::Interrupted))
            || matches!(self, Self::Sqlite(error)
                if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted))
    }

    /// Returns whether another connection held the lock.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(error) if matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        ))
    }
}

/// Returns whether a stored value is invalid for its column.
fn is_of_value(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => true,
        // An overflow in a sum: the counts that talktree writes never add up to this.
        rusqlite::Error::SqliteFailure(error, text) => {
            error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_DATATYPE
                || text.as_deref() == Some("integer overflow")
        }
        _ => false,
    }
}

impl From<rusqlite::Error> for BackendError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

#[cfg(feature = "postgres")]
impl From<tokio_postgres::Error> for BackendError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<rusqlite::types::FromSqlError> for BackendError {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Own(Error::Corrupt {
            what: format!("a value has another type than its column: {error}"),
        })
    }
}

impl From<Error> for BackendError {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

/// Adds the name of the row to the error of a damaged row.
pub(crate) fn damaged(row: impl std::fmt::Display) -> impl FnOnce(BackendError) -> BackendError {
    move |error| match error {
        BackendError::Own(Error::Corrupt { what }) => corrupt(format!("{row}: {what}")),
        BackendError::Own(error @ Error::Json { .. }) => corrupt(format!("{row}: {error}")),
        BackendError::Sqlite(error) if is_of_value(&error) => corrupt(format!("{row}: {error}")),
        error => error,
    }
}

/// Returns the error for data that breaks an invariant.
pub(crate) fn corrupt(what: impl Into<String>) -> BackendError {
    BackendError::Own(Error::Corrupt { what: what.into() })
}
