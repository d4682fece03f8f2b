//! SQLite databases of other programs: how they are opened, and which program's one is.
//!
//! A program may write its database while it is read here. Nothing is written to it, and no file is created beside it but by
//! SQLite itself, for a database in WAL mode.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::Sign;
use super::detect::DATABASES;

/// Opens a database for reading.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

/// Returns what the tables of a database say about its format.
pub(crate) fn sign(path: &Path) -> Option<Sign> {
    let conn = open(path).ok()?;
    let columns = |table: &str| -> Vec<String> {
        let columns = || {
            let mut columns = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
            columns.query_map([table], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
        };
        columns().unwrap_or_default()
    };
    let has = |(table, wanted): &(&str, &[&str])| {
        let columns = columns(table);
        !columns.is_empty() && wanted.iter().all(|name| columns.iter().any(|has| has == name))
    };
    DATABASES.iter().find(|(_, tables)| tables.iter().all(has)).map(|(sign, _)| *sign)
}
