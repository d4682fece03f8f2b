//! Comparing the schema of a store with that of this build.

use rusqlite::Connection;

use super::super::connection::Config;
use super::super::error::BackendResult;
use super::super::schema;
use super::RESTORE;
use crate::report::Damage;

/// Reports each definition that is missing or differs.
pub(super) fn differences(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    let fresh = Connection::open_in_memory()?;
    schema::create(&fresh, &Config::default())?;
    let (expected, present) = (definitions(&fresh)?, definitions(conn)?);
    let mut report = |what: String| found.push(Damage { kind: "schema", what, remedy: RESTORE });
    for (name, sql) in &expected {
        match present.iter().find(|(other, _)| other == name) {
            None => report(format!("{name} is missing")),
            Some((_, other)) if !is_same(other.as_deref(), sql.as_deref()) => {
                report(format!("{name} has another definition"))
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Returns whether two definitions differ in comments and spaces at most.
fn is_same(one: Option<&str>, other: Option<&str>) -> bool {
    canonical(one) == canonical(other)
}

/// Returns a definition without comments and without the spaces that SQLite may write otherwise.
///
/// A migrated store differs from a new one in both: `ALTER TABLE` keeps the old comments, and puts other spaces around a
/// column that it adds.
fn canonical(sql: Option<&str>) -> String {
    let uncommented = |line: &str| line.split("--").next().unwrap_or_default().to_owned();
    let text: Vec<String> = sql.unwrap_or_default().lines().map(uncommented).collect();
    let text = text.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let without_spaces_around =
        |text: String, mark: &str| text.split(mark).map(str::trim).collect::<Vec<_>>().join(mark);
    [",", "(", ")"].into_iter().fold(text, without_spaces_around)
}

/// Returns the name and the SQL of all that the schema defines.
fn definitions(conn: &Connection) -> BackendResult<Vec<(String, Option<String>)>> {
    let mut statement =
        conn.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn a_column_added_by_a_migration_reads_like_one_in_the_schema() {
        let migrated = "CREATE TABLE t (\n a INTEGER NOT NULL -- first\n, b TEXT) STRICT";
        let new = "CREATE TABLE t (\n a INTEGER NOT NULL, -- first\n b TEXT -- second\n) STRICT";
        assert_eq!(canonical(Some(migrated)), canonical(Some(new)));
        assert_ne!(canonical(Some(new)), canonical(Some("CREATE TABLE t (a INTEGER, b TEXT)")));
    }
}
