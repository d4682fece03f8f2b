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
const TABLES: [&str; 2] = ["CREATE TABLE IF NOT EXISTS ", "CREATE TABLE "];
/// The beginning of the statements that create its search indexes.
const INDEX: &str = "CREATE VIRTUAL TABLE ";
/// The ends of the names of the tables in which SQLite keeps a search index.
const PARTS_OF_INDEX: [&str; 5] = ["_data", "_idx", "_content", "_docsize", "_config"];

/// The number of a schema in which no triggers were looked for: SQLite has none below 0.
pub(super) const NOT_CHECKED: i64 = -1;

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
    let text = sql.split_once(" begin select raise(abort,");
    is_single && text.and_then(|(_, rest)| after_text(rest)).is_some_and(|end| end == ");end")
}

/// Returns what follows a text in quotes, without blanks.
fn after_text(sql: &str) -> Option<String> {
    let mut rest = sql.trim_start().strip_prefix('\'')?;
    loop {
        rest = rest.split_once('\'')?.1;
        match rest.strip_prefix('\'') {
            // Two quotes are one in the text.
            Some(text) => rest = text,
            None => return Some(rest.replace(' ', "")),
        }
    }
}

/// Returns whether a table is talktree's, or one in which SQLite keeps the content of a search index.
fn is_of_talktree(table: &str) -> bool {
    let table = table.to_ascii_lowercase();
    let mut lines = [schema::SCHEMA, embedding::TABLES].iter().flat_map(|sql| sql.lines());
    let name = |rest: &'static str| rest.split([' ', '(']).next().unwrap_or(rest);
    lines.any(|line| match line.strip_prefix(INDEX).map(name) {
        Some(index) => table
            .strip_prefix(index)
            .is_some_and(|part| part.is_empty() || PARTS_OF_INDEX.contains(&part)),
        None => {
            let created = TABLES.iter().find_map(|begin| line.strip_prefix(begin));
            created.is_some_and(|rest| table == name(rest))
        }
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

    /// Makes the next write look for foreign triggers. What was rolled back may have changed the schema, and another change can
    /// raise the number to the same value.
    pub(super) fn forget_checked_schema(&self) {
        self.checked_schema.store(NOT_CHECKED, Ordering::Relaxed);
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
            ("BEGIN SELECT RAISE(ABORT, 'it''s; END, ); END'); END", true),
            ("BEGIN SELECT RAISE(IGNORE); END", false),
            ("BEGIN SELECT RAISE(ABORT, 'no') WHERE 0 UNION ALL SELECT RAISE(IGNORE); END", false),
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
        for table in ["message_notes", "search_words", "messages", "sqlite_stat1"] {
            assert!(!is_of_talktree(table), "{table}");
        }
    }
}
