//! Databases of other programs, and folders with a file for each message, as lines of JSON.
//!
//! Each row becomes a line, so a reader sees no difference between a database and an export. A line is made when it is read,
//! and again when it is read again: nothing is copied.
//!
//! A database is opened read-only beside the program that writes it, and never `immutable`: then SQLite would not look into the
//! write-ahead log. No transaction is held from one line to the next, so the other program can always write.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde::de::IgnoredAny;

use super::detect::{DATABASE, DATABASES};
use super::{Format, Sign, cursor, goose, open_webui, opencode};
use crate::records::ReadSeek;

/// How long a reader waits for a program that is just writing.
const BUSY: Duration = Duration::from_secs(5);

/// The columns that hold JSON.
const JSON: &[&str] = &[
    "chat",
    "content",
    "content_json",
    "data",
    "files",
    "meta",
    "metadata_json",
    "model",
    "model_config_json",
    "output",
    "revert",
    "sources",
    "usage",
    "value",
];

/// How the rows of a program's database become lines.
pub(super) struct Layout {
    /// Which kind each line is of, and its rowid, in order.
    pub(super) lines: &'static str,
    pub(super) kinds: &'static [Kind],
}

/// A kind of lines: `{"FIELD": ROW}`, or `{"FIELD": ROW, "LIST": [ROW, ..]}`.
pub(super) struct Kind {
    /// The field, and the row by its rowid.
    pub(super) row: (&'static str, &'static str),
    /// The list, its table, and its rows by the rowid of the first; without the table it is empty.
    pub(super) list: Option<(&'static str, &'static str, &'static str)>,
}

/// What is at a path.
pub(crate) enum Found {
    Lines(Lines),
    /// A database whose rows are not read, and what its tables say.
    Database(Option<Sign>),
    /// A file of records, or of nothing that is known.
    File,
}

/// Looks for a database, or a session in files of its own.
pub(crate) fn look(path: &Path, source: &mut dyn ReadSeek) -> io::Result<Found> {
    let mut start = Vec::new();
    source.seek(SeekFrom::Start(0))?;
    (&mut *source).take(DATABASE.len() as u64).read_to_end(&mut start)?;
    // An entry of an archive has a name, but is no file that SQLite could open.
    if !path.is_file() {
        return Ok(Found::File);
    }
    if start != DATABASE {
        return Ok(opencode::session(path).map_or(Found::File, Found::Lines));
    }
    let size = source.seek(SeekFrom::End(0))?;
    of_database(path, size).map_err(io::Error::other)
}

fn of_database(path: &Path, size: u64) -> rusqlite::Result<Found> {
    let conn = open(path)?;
    let sign = sign(&conn)?;
    let layout = match sign {
        Some(Sign::Of(Format::OpenCode)) => &opencode::LAYOUT,
        Some(Sign::Of(Format::Goose)) => &goose::LAYOUT,
        Some(Sign::Of(Format::OpenWebUi)) => &open_webui::LAYOUT,
        Some(Sign::Of(Format::Cursor)) if has(&conn, "blobs", "data")? => {
            return Ok(cursor::chat(conn, path, size)?.map_or(Found::Database(None), Found::Lines));
        }
        Some(Sign::Of(Format::Cursor)) => &cursor::LAYOUT,
        other => return Ok(Found::Database(other)),
    };
    Ok(Found::Lines(rows(conn, layout, size)?))
}

/// Opens a database of another program.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY)?;
    Ok(conn)
}

/// Returns what the tables of a database say about its format.
fn sign(conn: &Connection) -> rusqlite::Result<Option<Sign>> {
    for (sign, tables) in DATABASES {
        let mut is_it = true;
        for (table, columns) in *tables {
            is_it = is_it && has(conn, table, "rowid")?;
            for column in *columns {
                is_it = is_it && has(conn, table, column)?;
            }
        }
        if is_it {
            return Ok(Some(*sign));
        }
    }
    Ok(None)
}

/// Returns whether a database has a table, and that a column.
fn has(conn: &Connection, table: &str, column: &str) -> rusqlite::Result<bool> {
    const HAS: &str = "SELECT count(*) FROM pragma_table_xinfo(?1) WHERE name = ?2 OR ?2 = 'rowid'";
    conn.query_row(HAS, (table, column), |row| row.get::<_, i64>(0)).map(|found| found > 0)
}

fn rows(conn: Connection, layout: &'static Layout, size: u64) -> rusqlite::Result<Lines> {
    let mut statement = conn.prepare(layout.lines)?;
    let lines = statement.query_map([], |row| Ok((row.get::<_, usize>(0)?, row.get(1)?)))?;
    let lines: Vec<(usize, i64)> = lines.collect::<rusqlite::Result<_>>()?;
    drop(statement);
    let count = lines.len();
    Ok(Lines::new(count, size, move |number| {
        let (kind, rowid) = lines[number];
        line(&conn, &layout.kinds[kind], rowid).map_err(io::Error::other)
    }))
}

fn line(conn: &Connection, kind: &Kind, rowid: i64) -> rusqlite::Result<String> {
    let (field, sql) = kind.row;
    // It may be deleted by now.
    let row = objects(conn, sql, rowid)?.pop().unwrap_or_else(|| "null".to_owned());
    let Some((list, table, sql)) = kind.list else {
        return Ok(format!(r#"{{"{field}":{row}}}"#));
    };
    let rows = match has(conn, table, "rowid")? {
        true => objects(conn, sql, rowid)?.join(","),
        false => String::new(),
    };
    Ok(format!(r#"{{"{field}":{row},"{list}":[{rows}]}}"#))
}

/// Returns rows as JSON objects.
fn objects(conn: &Connection, sql: &str, rowid: i64) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare_cached(sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let rows = statement.query_map([rowid], |row| object(row, &columns))?;
    rows.collect()
}

fn object(row: &Row<'_>, columns: &[String]) -> rusqlite::Result<String> {
    let mut fields = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let value = match row.get_ref(at)? {
            ValueRef::Null => continue,
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => serde_json::Value::from(number).to_string(),
            ValueRef::Text(text) | ValueRef::Blob(text) => {
                let text = String::from_utf8_lossy(text);
                if JSON.contains(&column.as_str()) { json(&text) } else { quoted(&text) }
            }
        };
        fields.push(format!("{}:{value}", quoted(column)));
    }
    Ok(format!("{{{}}}", fields.join(",")))
}

/// Returns JSON on one line; a text that is not JSON as a string.
pub(super) fn json(text: &str) -> String {
    match serde_json::from_str::<IgnoredAny>(text) {
        // A string of JSON has no line break.
        Ok(_) => text.trim().replace(['\n', '\r'], " "),
        Err(_) => quoted(text),
    }
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Makes the line of a number.
type Make = Box<dyn FnMut(usize) -> io::Result<String>>;

/// Lines that are made when they are read.
pub(crate) struct Lines {
    count: usize,
    make: Make,
    /// About how many bytes there are.
    size: u64,
    /// Where each line ends that was read so far.
    ends: Vec<u64>,
    at: u64,
    /// The line that was made last, with its number.
    line: Option<(usize, Vec<u8>)>,
}

impl Lines {
    pub(super) fn new(
        count: usize,
        size: u64,
        make: impl FnMut(usize) -> io::Result<String> + 'static,
    ) -> Self {
        Self { count, make: Box::new(make), size, ends: Vec::new(), at: 0, line: None }
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let number = self.ends.partition_point(|end| *end <= self.at);
        if number == self.count {
            return Ok(0);
        }
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let line = match &mut self.line {
            Some((known, line)) if *known == number => line,
            other => {
                let mut line = (self.make)(number)?.into_bytes();
                line.push(b'\n');
                match self.ends.get(number) {
                    // One that has changed since keeps its place; the hash of the record shows that it is another one.
                    Some(end) => line.resize((end - start) as usize, b' '),
                    None => self.ends.push(start + line.len() as u64),
                }
                &mut other.insert((number, line)).1
            }
        };
        let rest = line.get((self.at - start) as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Lines {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let out = || io::Error::new(io::ErrorKind::InvalidInput, "before the first line");
        self.at = match to {
            SeekFrom::Start(at) => {
                // A file that is read from the start again may have changed.
                if at == 0 {
                    (self.ends, self.line) = (Vec::new(), None);
                }
                at
            }
            SeekFrom::End(by) => self.size.checked_add_signed(by).ok_or_else(out)?,
            SeekFrom::Current(by) => self.at.checked_add_signed(by).ok_or_else(out)?,
        };
        Ok(self.at)
    }
}
