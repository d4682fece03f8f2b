//! Triggers of other programs. A *foreign trigger* is one on a table of talktree that talktree did not make. It may change
//! what is written after it was checked, so nothing is written while there is one.
//!
//! A trigger that does nothing but refuse writes is none: what is acknowledged beside it is stored.

use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::connection::Database;
use super::error::{BackendResult, corrupt};
use super::{embedding, schema, verify};

/// The beginnings of the statements that create the tables of talktree.
const TABLES: [&str; 3] = ["CREATE TABLE IF NOT EXISTS ", "CREATE TABLE ", "CREATE VIRTUAL TABLE "];

/// A trigger on a table of talktree that talktree did not make.
pub(super) struct ForeignTrigger {
    name: String,
    table: String,
}

impl ForeignTrigger {
    /// Returns the name of the trigger, its table, and the statement that removes it.
    pub(super) fn description(&self) -> String {
        let name = format!("\"{}\"", self.name.replace('"', "\"\""));
        format!(
            "trigger {name} on {} was made by another program and changes what is written; `DROP TRIGGER {name}` removes it",
            self.table
        )
    }
}

/// Returns the foreign triggers on talktree's tables.
pub(super) fn foreign(conn: &Connection) -> BackendResult<Vec<ForeignTrigger>> {
    let mut statement = conn.prepare_cached(ALL)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let trigger = ForeignTrigger { name: row.get(0)?, table: row.get(1)? };
        let sql: String = row.get(2)?;
        let is_own = embedding::triggers().any(|own| verify::is_same(Some(&own), Some(&sql)));
        if !is_own && is_of_talktree(&trigger.table) && !only_refuses(&sql) {
            found.push(trigger);
        }
    }
    Ok(found)
}

const ALL: &str = "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger'";

/// Returns whether a trigger does nothing but refuse writes with an error.
fn only_refuses(sql: &str) -> bool {
    let sql = sql.to_ascii_lowercase();
    let words: Vec<&str> = sql.split_whitespace().collect();
    let sql = words.join(" ");
    // Of two, one may be in a text or a comment, and it is not known which one begins the trigger.
    let is_single = sql.matches("begin").count() == 1;
    let body = sql.split_once(" begin select raise(abort,");
    let end = body.and_then(|(_, rest)| rest.split_once(';'));
    is_single && end.is_some_and(|(_, end)| end.trim() == "end")
}

/// Returns whether a table is talktree's, or one in which SQLite keeps the content of a search index.
fn is_of_talktree(table: &str) -> bool {
    let table = table.to_ascii_lowercase();
    [schema::SCHEMA, embedding::TABLES]
        .iter()
        .flat_map(|sql| sql.lines())
        .filter_map(|line| TABLES.iter().find_map(|begin| line.strip_prefix(begin)))
        .filter_map(|rest| rest.split([' ', '(']).next())
        .any(|own| {
            table == own || table.strip_prefix(own).is_some_and(|rest| rest.starts_with('_'))
        })
}

/// Returns an error if there is a foreign trigger.
pub(super) fn refuse_foreign(conn: &Connection) -> BackendResult<()> {
    match foreign(conn)?.first() {
        Some(trigger) => Err(corrupt(trigger.description())),
        None => Ok(()),
    }
}

impl Database {
    /// Returns an error if a foreign trigger was made since the last write. Inside a transaction that writes, none can be made
    /// after this check.
    pub(super) fn refuse_new_triggers(&self, conn: &Connection) -> BackendResult<()> {
        let schema: i64 =
            conn.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0))?;
        // Each change of the schema raises this number.
        if self.checked_schema.load(Ordering::Relaxed) != schema {
            refuse_foreign(conn)?;
            self.checked_schema.store(schema, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_that_only_refuses_writes_changes_nothing() {
        let on = "CREATE TRIGGER t BEFORE UPDATE ON message";
        for (body, expected) in [
            ("BEGIN SELECT RAISE(ABORT, 'no'); END", true),
            ("WHEN new.id = 'x'\n  begin select  raise(abort, 'no');\nend", true),
            ("BEGIN SELECT RAISE(IGNORE); END", false),
            ("BEGIN SELECT RAISE(ABORT, 'no') WHERE 0; DELETE FROM message; END", false),
            ("BEGIN DELETE FROM message; SELECT RAISE(ABORT, 'no'); END", false),
            ("BEGIN DELETE FROM message; END", false),
            ("BEGIN DELETE FROM message; SELECT ' begin select raise(abort,'; END", false),
            ("WHEN 'x' <> ' begin select raise(abort,' BEGIN DELETE FROM message; END", false),
        ] {
            assert_eq!(only_refuses(&format!("{on} {body}")), expected, "{body}");
        }
    }

    #[test]
    fn the_tables_of_talktree_are_known_in_any_case() {
        for table in ["message", "MESSAGE", "context_entry", "search_data", "embedding", "setting"]
        {
            assert!(is_of_talktree(table), "{table}");
        }
        for table in ["foreign_notes", "messages", "sqlite_stat1"] {
            assert!(!is_of_talktree(table), "{table}");
        }
    }
}
