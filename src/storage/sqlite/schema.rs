//! The file format: creating it, checking it, migrating an older one.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::Config;
use super::transaction;
use crate::error::Error;
use crate::sql::{BackendError, BackendResult, corrupt};

/// Marks a talktree store in the header of its file: "talk".
const APPLICATION_ID: i64 = 0x7461_6c6b;

/// The current format.
pub(super) const SCHEMA: &str = include_str!("../../../schema.sql");

/// The oldest version that this build reads: that of `schema.sql` without the migrations.
const FIRST: u32 = 7;

/// The migrations: the first takes a store from version [`FIRST`] to the next, and so on. A migration is never
/// edited after its release; together they lead to `schema.sql`.
const MIGRATIONS: &[&str] = &[];

/// The version that this build writes.
const VERSION: u32 = FIRST + MIGRATIONS.len() as u32;

enum Found {
    Nothing,
    Store { version: u32 },
    SomethingElse,
}

/// Returns whether a file has the current format and the write-ahead log.
pub(super) fn is_current(conn: &Connection) -> BackendResult<bool> {
    Ok(matches!(identify(conn)?, Found::Store { version: VERSION }) && is_wal(conn)?)
}

/// Creates the format in a new file, or migrates an older one.
pub(super) fn create_or_migrate(
    conn: &Connection,
    path: &Path,
    config: &Config,
) -> BackendResult<()> {
    let found = transaction::read(conn, identify)?;
    if let Found::Store { version: VERSION } = found {
        // Another program may have changed the mode since; readers and durability rest on it.
        return if is_wal(conn)? { Ok(()) } else { use_wal(conn, config) };
    }
    refuse(&found, path)?;
    use_wal(conn, config)?;
    transaction::write(conn, config, config.busy_timeout, |conn| {
        // Another process may have done it meanwhile.
        match identify(conn)? {
            Found::Nothing => fill(conn),
            Found::Store { version } => migrate(conn, version, MIGRATIONS),
            found @ Found::SomethingElse => refuse(&found, path),
        }
    })
}

/// Returns an error unless a file that is opened read-only has the current format.
pub(super) fn check(conn: &Connection, path: &Path) -> BackendResult<()> {
    let found = identify(conn)?;
    refuse(&found, path)?;
    match found {
        Found::Store { version: VERSION } => Ok(()),
        Found::Store { version } => {
            Err(BackendError::Own(Error::OlderStore { found: version, current: VERSION }))
        }
        _ => Err(BackendError::Own(Error::NotAStore {
            path: path.to_owned(),
            why: "it is empty".to_owned(),
        })),
    }
}

/// Returns an error unless the file still has the format that it was opened with.
///
/// Inside a transaction: another process may migrate the file between two of them.
pub(super) fn check_version(conn: &Connection, path: &Path) -> BackendResult<()> {
    let found: i64 = conn.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    if found == i64::from(VERSION) { Ok(()) } else { check(conn, path) }
}

/// Returns the error of a table whose keys are used up, which SQLite reports as a full disk.
pub(super) fn used_up_keys(conn: &Connection, error: &BackendError) -> Option<BackendError> {
    let is_full = matches!(error, BackendError::Sqlite(error)
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull));
    let tables: Option<String> =
        is_full.then(|| conn.query_row(USED_UP, [i64::MAX], |row| row.get(0)).ok()).flatten()?;
    tables.map(|tables| {
        let max = i64::MAX;
        corrupt(format!(
            "the keys of {tables} are used up: another program stored the key {max}, the greatest there is"
        ))
    })
}

const USED_UP: &str = "SELECT group_concat(name, ' and ')
   FROM (SELECT name FROM sqlite_sequence WHERE seq = ?1
         UNION SELECT 'session' FROM session WHERE key = ?1
         UNION SELECT 'compaction' FROM compaction WHERE key = ?1
         UNION SELECT 'context_block' FROM context_block WHERE key = ?1
         UNION SELECT 'binding' FROM binding WHERE number = ?1
         UNION SELECT 'usage' FROM usage WHERE number = ?1
         UNION SELECT 'transcript' FROM transcript WHERE key = ?1
         UNION SELECT 'inbox_item' FROM inbox_item WHERE number = ?1)";

pub(super) fn create(conn: &Connection, config: &Config) -> BackendResult<()> {
    transaction::write(conn, config, config.busy_timeout, fill)
}

fn fill(conn: &Connection) -> BackendResult<()> {
    conn.execute_batch(SCHEMA)?;
    super::index::store_version(&conn.into())?;
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    conn.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

/// Runs the migrations from a version on, in the transaction of the caller.
fn migrate(conn: &Connection, version: u32, migrations: &[&str]) -> BackendResult<()> {
    for migration in migrations.iter().skip((version - FIRST) as usize) {
        conn.execute_batch(migration)?;
    }
    conn.pragma_update(None, "user_version", FIRST + migrations.len() as u32)?;
    Ok(())
}

/// Tells what a file is. Inside a transaction: another process may create the store between two reads.
fn identify(conn: &Connection) -> BackendResult<Found> {
    let application_id: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application_id == APPLICATION_ID {
        let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        return Ok(Found::Store { version });
    }
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if tables == 0 && application_id == 0 { Found::Nothing } else { Found::SomethingElse })
}

/// Returns an error for a file that this build cannot read, before anything is written to it.
fn refuse(found: &Found, path: &Path) -> BackendResult<()> {
    match *found {
        Found::Store { version } if version > VERSION => {
            Err(BackendError::Own(Error::NewerStore { found: version, supported: VERSION }))
        }
        Found::Store { version } if version < FIRST => {
            Err(BackendError::Own(Error::OlderStore { found: version, current: VERSION }))
        }
        Found::SomethingElse => Err(BackendError::Own(Error::NotAStore {
            path: path.to_owned(),
            why: "it is an SQLite database of another program".to_owned(),
        })),
        _ => Ok(()),
    }
}

fn is_wal(conn: &Connection) -> BackendResult<bool> {
    let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    Ok(mode == "wal")
}

/// Switches to the write-ahead log.
fn use_wal(conn: &Connection, config: &Config) -> BackendResult<()> {
    let until = Instant::now() + config.busy_timeout;
    loop {
        let answer = conn
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match answer.map_err(BackendError::from) {
            // SQLite's busy handler is not called for this lock.
            Err(error) if error.is_busy() && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
            Ok(mode) if mode == "wal" => return Ok(()),
            // SQLite keeps the old mode where there is no shared memory.
            Ok(_) => {
                return Err(BackendError::Own(Error::Unsupported {
                    what: "a write-ahead log on this file system",
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::OpenFlags;
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

    use super::*;

    /// SQLite answers with the mode that it keeps, and writers in that mode would block every reader.
    #[cfg(unix)]
    #[test]
    fn a_file_system_without_shared_memory_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bot.db");
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        // This layer locks by files, and has no shared memory.
        let conn = Connection::open_with_flags_and_vfs(&path, flags, c"unix-dotfile").unwrap();
        let refused = create_or_migrate(&conn, &path, &Config::default());
        let text = refused.map_err(|error| error.into_error(0)).unwrap_err().to_string();
        assert_eq!(text, "this storage does not support a write-ahead log on this file system");
        // Nothing was written.
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }

    #[test]
    fn a_migration_raises_the_version_with_what_it_changes_or_changes_nothing() {
        let conn = Connection::open_in_memory().unwrap();
        create(&conn, &Config::default()).unwrap();
        let version =
            || -> u32 { conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap() };
        let tables = || -> i64 {
            let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('first', 'second')";
            conn.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        let migrate = |migrations: &[&str]| {
            let from = version();
            transaction::write(&conn, &Config::default(), Duration::ZERO, |conn| {
                migrate(conn, from, migrations)
            })
        };
        assert!(migrate(&["CREATE TABLE first (a)", "CREATE TABLE message (a)"]).is_err());
        assert_eq!((version(), tables()), (FIRST, 0));
        migrate(&["CREATE TABLE first (a)"]).unwrap();
        assert_eq!((version(), tables()), (FIRST + 1, 1));
        migrate(&["CREATE TABLE first (a)", "CREATE TABLE second (a)"]).unwrap();
        assert_eq!((version(), tables()), (FIRST + 2, 2));
    }

    /// An opener took a store for a database of another program: it had read the id of the program before another opener
    /// created the store, and counted the tables after that.
    #[test]
    fn a_store_that_another_creates_meanwhile_is_no_database_of_another_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bot.db");
        let config = Config { busy_timeout: Duration::ZERO, ..Config::default() };
        let open = || {
            let conn = Connection::open(&path).unwrap();
            conn.busy_timeout(Duration::ZERO).unwrap();
            conn
        };
        let (mut conn, other) = (open(), open());
        let (to_create, other_config) = (path.clone(), config.clone());
        conn.authorizer(Some(move |context: AuthContext<'_>| {
            // The statement that counts the tables is prepared.
            if matches!(context.action, AuthAction::Select) {
                // It may be locked out by the first one.
                let _ = create_or_migrate(&other, &to_create, &other_config);
            }
            Authorization::Allow
        }))
        .unwrap();
        create_or_migrate(&conn, &path, &config).map_err(|error| error.into_error(0)).unwrap();
        assert!(is_current(&conn).unwrap());
    }
}
