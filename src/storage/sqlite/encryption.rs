//! Encryption: gives each connection the key of the database, and changes the key.
//!
//! SQLCipher encrypts each page as it is written to the file or the log, and decrypts it as it is read.
//!
//! A change of the key encrypts every page again, in one transaction. A read before its commit needs the old key, and a
//! read after it the new one; a connection has only one key. So no read begins while the key is changed (the *gate*). A
//! read that has begun continues: its snapshot and its connection have the old key. Once the key has changed, the
//! connection is not used for another read (the *generation*).
//!
//! Invariant: the gate is never held while code of a caller runs.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError, RwLock, RwLockReadGuard};

use rusqlite::{Connection, ErrorCode};

use super::commit_group::Length;
use super::connection::{Database, busy_ms};
use super::{transaction, wal};
use crate::error::{Error, Result};
use crate::sql::{BackendError, BackendResult};

/// The key of a database and those of its connections that have it.
pub(crate) struct Encryption {
    key: Mutex<[u8; 32]>,
    gate: RwLock<()>,
    generation: AtomicU64,
}

/// A read that is about to begin: no key changes before it is dropped.
#[derive(Default)]
pub(super) struct Beginning<'e> {
    _gate: Option<RwLockReadGuard<'e, ()>>,
    /// The number of the key that the read begins with.
    pub(super) generation: u64,
}

impl Encryption {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self { key: Mutex::new(key), gate: RwLock::default(), generation: AtomicU64::new(0) }
    }

    /// Returns the same key for another store.
    pub(crate) fn renewed(&self) -> Self {
        Self::new(self.key())
    }

    /// Gives a new connection the key, before it reads or writes anything.
    pub(super) fn unlock(&self, conn: &Connection) -> BackendResult<()> {
        static QUIET: Once = Once::new();
        // SQLCipher would print each failed attempt. Set once, so that a program can choose otherwise.
        QUIET.call_once(|| drop(conn.pragma_update(None, "cipher_log_level", "NONE")));
        give(conn, "key", &self.key())
    }

    fn key(&self) -> [u8; 32] {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, key: [u8; 32]) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encryption").finish_non_exhaustive()
    }
}

/// Passes a key to SQLCipher. No error has its text.
fn give(conn: &Connection, pragma: &str, key: &[u8; 32]) -> BackendResult<()> {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let given = conn.pragma_update(None, pragma, format!("x'{hex}'"));
    given.map_err(|error| {
        let code = error.sqlite_error().copied();
        let code = code.unwrap_or(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR));
        let what = "SQLCipher did not take the key".to_owned();
        BackendError::Sqlite(rusqlite::Error::SqliteFailure(code, Some(what)))
    })
}

impl Database {
    /// Waits until no key is being changed.
    pub(super) fn begin_read(&self) -> Beginning<'_> {
        let Some(encryption) = &self.config.encryption else { return Beginning::default() };
        let gate = encryption.gate.read().unwrap_or_else(PoisonError::into_inner);
        Beginning { generation: encryption.generation.load(Ordering::Acquire), _gate: Some(gate) }
    }

    /// Returns whether a connection may be used for another read, after one that began with the key of this number and
    /// perhaps failed.
    pub(super) fn is_usable_after(&self, error: Option<&BackendError>, generation: u64) -> bool {
        self.config.encryption.as_ref().is_none_or(|encryption| {
            // After one page that cannot be decrypted, SQLCipher returns only zeros.
            let has_failed = error.is_some_and(BackendError::may_be_of_key);
            encryption.generation.load(Ordering::Acquire) == generation && !has_failed
        })
    }

    /// Returns the public error; a file that the key does not decrypt has a name of its own.
    pub(super) fn public_error(&self, error: BackendError, waited_ms: u64) -> Error {
        match (self.path(), &self.config.encryption) {
            (Some(path), Some(_)) if error.is_not_a_database() => Error::WrongKey {
                path: path.to_owned(),
                why: "it was given another key since it was opened; open it again with that"
                    .to_owned(),
            },
            _ => error.into_error(waited_ms),
        }
    }

    /// Encrypts every page with a new key, in one transaction.
    pub(crate) fn rekey(&self, key: [u8; 32]) -> Result<()> {
        let Some(encryption) = &self.config.encryption else {
            return Err(Error::Unsupported { what: "another key for a store that has none" });
        };
        if self.path().is_none() {
            encryption.set(key);
            return Ok(());
        }
        let failed = |error| self.public_error(error, busy_ms(&self.config));
        let writer = self.writing_connection().map_err(failed)?.ok_or(Error::ReadOnly)?;
        // Declared first, so that the connection is free before the turn is the next one's.
        let _turn = self.writers.ask(Length::Long);
        let mut conn = writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.reopen_if_suspect(&mut conn).map_err(failed)?;
        transaction::read(&conn, |conn| self.check_version(conn)).map_err(failed)?;
        self.check_file().map_err(failed)?;

        let gate = encryption.gate.write().unwrap_or_else(PoisonError::into_inner);
        // SQLCipher does not report a failed commit, and the connection then writes with a key that the file does not
        // have. So it is used no more, and a new one tells which key the file has.
        self.is_suspect.store(true, Ordering::Relaxed);
        let given = give(&conn, "rekey", &key);
        let former = encryption.key();
        let changed = self.reopen_with(encryption, &mut conn, key).map_err(|error| {
            // If this fails, too, the next write tries again.
            let _ = self.reopen_with(encryption, &mut conn, former);
            given.err().unwrap_or(error)
        });
        if changed.is_ok() {
            encryption.generation.fetch_add(1, Ordering::Release);
            // Before another read begins: they have the old key.
            self.forget_readers();
        }
        drop(gate);
        changed.map_err(failed)?;
        wal::empty(&mut conn, self.config.busy_timeout);
        self.check_file().map_err(failed)
    }

    /// Replaces the writing connection by one with this key, if the file has that key.
    fn reopen_with(
        &self,
        encryption: &Encryption,
        conn: &mut Connection,
        key: [u8; 32],
    ) -> BackendResult<()> {
        encryption.set(key);
        let mut opened = self.open_writer()?;
        opened.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        self.log.install_hook(&mut opened)?;
        *conn = opened;
        self.is_suspect.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl BackendError {
    /// Returns whether SQLite found no database in the file. With a wrong key the decrypted pages look random.
    pub(super) fn is_not_a_database(&self) -> bool {
        matches!(self, Self::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase))
    }

    /// Returns whether a page may not have been decrypted.
    pub(super) fn may_be_of_key(&self) -> bool {
        self.is_not_a_database() || self.is_corrupt()
    }
}
