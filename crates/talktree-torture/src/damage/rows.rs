//! The file as SQLite sees it: the table of each page, and the values of each column.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::Result;

/// The tables with stored data, without the search index.
const TABLES: &[&str] = &[
    "session",
    "session_tag",
    "binding",
    "usage",
    "message",
    "message_tag",
    "token_counter",
    "compaction",
    "label",
    "head_log",
    "imported",
    "context_block",
    "context_entry",
    "context_version",
    "frozen_prompt",
    "elision",
    "transcript",
    "transcript_entry",
    "inbox_source",
    "inbox_item",
    "setting",
    "erased_session",
    "leftover",
    "term",
];

/// Opens a file without talktree.
pub(super) fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(path, flags)?)
}

/// Returns the table or index of each page, counted from 1; free pages are missing.
pub(super) fn pages(path: &Path) -> Result<BTreeMap<usize, String>> {
    let conn = open(path)?;
    let mut statement = conn.prepare("SELECT pageno, name, pagetype FROM dbstat")?;
    let mut rows = statement.query([])?;
    let mut pages = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (name, kind): (String, String) = (row.get(1)?, row.get(2)?);
        pages.insert(row.get(0)?, format!("{name} {kind}"));
    }
    Ok(pages)
}

/// The digests of all values, by table, row and column.
pub(super) struct Rows(BTreeMap<&'static str, Vec<Vec<u64>>>);

impl Rows {
    /// Reads every row of a file.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let conn = open(path)?;
        let mut tables = BTreeMap::new();
        for table in TABLES {
            let mut statement = conn.prepare(&format!("SELECT * FROM {table}"))?;
            let width = statement.column_count();
            let mut rows = statement.query([])?;
            let mut read = Vec::new();
            while let Some(row) = rows.next()? {
                let digests = (0..width).map(|at| Ok(digest(row.get_ref(at)?)));
                read.push(digests.collect::<rusqlite::Result<_>>()?);
            }
            tables.insert(*table, read);
        }
        Ok(Self(tables))
    }

    /// Returns the columns in which a file differs.
    pub(super) fn different(&self, path: &Path) -> Result<Vec<String>> {
        let (conn, other) = (open(path)?, Self::of(path)?);
        let mut columns = BTreeSet::new();
        for (table, sound) in &self.0 {
            let found = &other.0[table];
            if sound.len() != found.len() {
                columns.insert(format!("{table} (number of rows)"));
            }
            let statement = conn.prepare(&format!("SELECT * FROM {table}"))?;
            let names: Vec<_> = statement.column_names().collect();
            for (row, other) in sound.iter().zip(found) {
                let differing = (0..names.len()).filter(|at| row[*at] != other[*at]);
                columns.extend(differing.map(|at| format!("{table}.{}", names[at])));
            }
        }
        // It changes when the index catches up.
        columns.remove("session.unindexed");
        // It is made of the messages, and grows then.
        columns.retain(|column| !column.starts_with("term"));
        Ok(columns.into_iter().collect())
    }
}

fn digest(value: ValueRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        ValueRef::Null => 0.hash(&mut hasher),
        ValueRef::Integer(number) => (1, number).hash(&mut hasher),
        ValueRef::Real(number) => (2, number.to_bits()).hash(&mut hasher),
        ValueRef::Text(bytes) => (3, bytes).hash(&mut hasher),
        ValueRef::Blob(bytes) => (4, bytes).hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table that is missing in the list is not compared.
    #[test]
    fn every_table_is_listed() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("store.db");
        talktree::Store::open(&path)?.session("s")?.append(talktree::Message::user("hello"))?;
        let conn = open(&path)?;
        let mut statement = conn.prepare(
            "SELECT name FROM pragma_table_list
              WHERE schema = 'main' AND type = 'table' AND NOT name GLOB 'sqlite_*'",
        )?;
        let names = statement.query_map([], |row| row.get(0))?;
        let names = names.collect::<rusqlite::Result<BTreeSet<String>>>()?;
        assert_eq!(names, TABLES.iter().map(|name| (*name).to_owned()).collect());
        Ok(())
    }
}
