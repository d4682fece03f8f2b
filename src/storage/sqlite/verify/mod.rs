//! Checking every invariant, and reporting what breaks one.
//!
//! Most invariants are one query that finds violations. The others are checked row by row: JSON can be parsed,
//! compactions are on paths, the schema is that of this build, the search index matches the messages.

mod index;
mod queries;
mod rows;

use rusqlite::ErrorCode;

use super::backup::PartialFile;
use super::connection::{Config, Database, prepare};
use super::interrupt::{Watch, interruptible};
use super::row::message::StoredMessage;
use super::{schema, transaction};
use crate::error::{Error, Result};
use crate::id::MessageId;
use crate::report::{Damage, Progress, Verified};
use crate::sql::{BackendError, BackendResult, Bind, Connection, Row, corrupt};
use crate::tree::Address;
#[cfg(test)]
pub(super) use index::damages as index_damages;
use queries::{CHECKS, Check};

/// How many damages of one kind are reported at most.
const MAX_OF_A_KIND: usize = 100;
/// The remedy where only a copy helps.
const RESTORE: &str = "restore a backup, or export the sessions that can still be read";
/// The remedy for a table or an index that a server lacks.
#[cfg(feature = "postgres")]
const CREATE: &str =
    "create it as schema.postgres.sql does, after dropping an index that is not valid";
/// The remedy for a damaged compaction.
const REMOVE: &str = "remove the compaction";
/// The remedy for an index that differs from the messages.
const REBUILD: &str =
    "rebuild the search index: `rebuild_search`, or `talktree verify --rebuild-index`";

/// The remedy for a damaged message.
const UPDATE: &str = "update or delete the message";
/// The remedy for a message that nobody can name.
const NAME_MESSAGE: &str = "give it another id with the sqlite3 shell: UPDATE message SET id = 'NEW' WHERE address = \
                            SESSION * 4294967296 + MESSAGE; or restore a backup, or export the other sessions";

/// The remedy for wrong counts, or counts of an unknown counter.
const RECOUNT: &str =
    "count the tokens again: `recount_tokens`, or `talktree verify --recount-tokens`";

impl Database {
    pub(crate) fn verify(&self, mut progress: impl FnMut(Progress)) -> Result<Verified> {
        let watch = self.watch();
        let mut damages = self.read_long(|conn| {
            let mut found = Vec::new();
            run_check("damaged-page", RESTORE, &mut found, |found| damaged_pages(conn, found))?;
            run_check("schema", RESTORE, &mut found, |found| differences(conn, found))?;
            for check in CHECKS {
                run_check(check.kind, check.remedy, &mut found, |found| run(conn, check, found))?;
            }
            run_check("lost-compaction", REMOVE, &mut found, |found| {
                rows::compactions(conn, found)
            })?;
            run_check("broken-session", RESTORE, &mut found, |found| rows::read_all(conn, found))?;
            run_check("broken-context", RESTORE, &mut found, |found| {
                rows::read_context(conn, found)
            })?;
            run_check("broken-entry", RESTORE, &mut found, |found| {
                rows::read_transcripts(conn, found)
            })?;
            run_check("wrong-tokens", RECOUNT, &mut found, |found| {
                rows::compare_tokens(conn, found)
            })?;
            Ok(found)
        })?;
        let messages = self.check_messages(&watch, &mut damages, &mut progress)?;
        match self.check_index(&watch) {
            Err(Error::Storage { source }) if is_schema_damaged(&damages) => {
                let what = source.to_string();
                damages.push(Damage { kind: "search-index", what, remedy: RESTORE });
            }
            answer => damages.extend(answer?),
        }
        Ok(Verified { messages, damages })
    }

    /// Reads every message and returns how many there are. Reads a batch at a time, so that no callback runs inside a
    /// read.
    fn check_messages(
        &self,
        watch: &Watch,
        damages: &mut Vec<Damage>,
        progress: &mut impl FnMut(Progress),
    ) -> Result<u64> {
        let (mut count, mut total, mut after) = (0, 0, Address::from_raw(i64::MIN));
        loop {
            watch.check()?;
            let batch = self.read_long(|conn| {
                let mut batch = Batch::default();
                run_check("broken-message", RESTORE, damages, |found| {
                    batch.read(conn, after, found)
                })?;
                Ok(batch)
            })?;
            count += batch.count;
            total = total.max(batch.total);
            progress(Progress::new(count, total.max(count)));
            match batch.last.filter(|_| batch.count == BATCH) {
                Some(last) => after = last,
                None => return Ok(count),
            }
        }
    }

    /// Checks that the search index matches the messages.
    ///
    /// For SQLite this check is a write. A large, busy or read-only store is copied and the copy is checked, so that
    /// nobody waits. A small copy is in memory, a large one beside the store, because the temporary folder is often in
    /// memory; it is the choice only where the store's folder is read-only.
    fn check_index(&self, watch: &Watch) -> Result<Vec<Damage>> {
        #[cfg(feature = "postgres")]
        if self.server.is_some() {
            return self.read_watched(watch.clone(), index::damages);
        }
        let size = self.path().and_then(|path| std::fs::metadata(path).ok()).map_or(0, |m| m.len());
        let copied = match self.path() {
            Some(path) if size > MAX_SMALL => {
                let folder = path.parent().unwrap_or(path);
                let file = PartialFile::create(folder)
                    .or_else(|_| PartialFile::create(&std::env::temp_dir()))?;
                let copy = self.copy_to(|| file.open(), watch, |_| {})?;
                check_copy(copy, &self.config, watch)
            }
            _ => {
                if let Some(damages) = self.try_write(index::damages)? {
                    return Ok(damages);
                }
                let copy = self.copy_to(rusqlite::Connection::open_in_memory, watch, |_| {})?;
                check_copy(copy, &self.config, watch)
            }
        };
        copied.map_err(|error| error.into_error(0))
    }
}

fn check_copy(
    mut copy: rusqlite::Connection,
    config: &Config,
    watch: &Watch,
) -> BackendResult<Vec<Damage>> {
    prepare(&copy, config)?;
    interruptible(&mut copy, watch.clone(), |conn| {
        transaction::write(conn, config, config.busy_timeout, |conn| index::damages(&conn.into()))
    })
}

/// The most tokens that one message can have.
const MAX_TOKENS: i64 = u32::MAX as i64;
/// How many messages one read checks.
const BATCH: u64 = 10_000;
/// The largest file whose index is checked in place while writers wait, a few tenths of a second, or in memory.
const MAX_SMALL: u64 = 32 << 20;

/// Reports a damage, unless enough of its kind are reported.
fn report(found: &mut Vec<Damage>, damage: Damage) {
    if found.iter().filter(|known| known.kind == damage.kind).count() < MAX_OF_A_KIND {
        found.push(damage);
    }
}

/// Runs a check and reports an error that is damage; returns any other error.
fn run_check(
    kind: &'static str,
    remedy: &'static str,
    found: &mut Vec<Damage>,
    check: impl FnOnce(&mut Vec<Damage>) -> BackendResult<()>,
) -> BackendResult<()> {
    let Err(error) = check(found) else { return Ok(()) };
    if error.is_of_system() || error.is_busy() {
        return Err(error);
    }
    match error.into_error(0) {
        Error::Corrupt { what } => {
            found.push(Damage { kind, what, remedy });
            Ok(())
        }
        Error::Storage { source } if is_schema_damaged(found) => {
            found.push(Damage { kind, what: source.to_string(), remedy });
            Ok(())
        }
        error => Err(BackendError::Own(error)),
    }
}

/// Returns whether the schema differs: then any query may fail.
fn is_schema_damaged(found: &[Damage]) -> bool {
    found.iter().any(|damage| damage.kind == "schema")
}

/// Returns what an error says about the damage, without the advice to verify.
fn description(error: BackendError) -> String {
    match error.into_error(0) {
        Error::Corrupt { what } => what,
        error => error.to_string(),
    }
}

fn run(conn: &Connection, check: &Check, found: &mut Vec<Damage>) -> BackendResult<()> {
    let mut count = 0;
    conn.each(check.sql, (), |row| {
        found.push(Damage { kind: check.kind, what: row.get(0)?, remedy: check.remedy });
        count += 1;
        Ok(count < MAX_OF_A_KIND)
    })
}

fn damaged_pages(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    // A server looks after its own pages.
    let Ok(sqlite) = conn.sqlite() else { return Ok(()) };
    // A query makes FTS5 load what others have written: its integrity check uses the connection's cached state.
    // Errors are found by the check itself.
    for sql in [
        "SELECT EXISTS (SELECT 1 FROM search WHERE rowid = 0)",
        "SELECT EXISTS (SELECT 1 FROM context_search WHERE rowid = 0)",
    ] {
        let _ = sqlite.query_row(sql, [], |_| Ok(()));
    }
    let mut statement = sqlite.prepare("SELECT integrity_check FROM pragma_integrity_check")?;
    for line in statement.query_map([], |row| row.get::<_, String>(0))? {
        let what = line?;
        if let Some(error) = failed_read(&what) {
            return Err(BackendError::Sqlite(error));
        }
        if what != "ok" {
            found.push(Damage { kind: "damaged-page", what, remedy: RESTORE });
        }
    }
    Ok(())
}

/// Returns the I/O error if SQLite's check could not read a page: that is not damage.
fn failed_read(found: &str) -> Option<rusqlite::Error> {
    let told = |line: &str| {
        let (_, code) = line.rsplit_once("unable to get the page. error code=")?;
        let error = rusqlite::ffi::Error::new(code.trim().parse().ok()?);
        let is_failure = matches!(error.code, ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory);
        is_failure.then(|| rusqlite::Error::SqliteFailure(error, Some(line.to_owned())))
    };
    found.lines().find_map(told)
}

/// Calls `check` with each row of a query.
fn each(
    conn: &Connection,
    sql: &'static str,
    values: impl Bind,
    mut check: impl FnMut(&Row<'_>) -> BackendResult<()>,
) -> BackendResult<()> {
    conn.each(sql, values, |row| check(row).map(|()| true))
}

/// Reads a message and the columns that a history does not read.
fn read_whole(row: &Row<'_>) -> BackendResult<()> {
    let address = StoredMessage::read(row)?.address;
    let (hidden, tokens): (i64, i64) =
        (row.get(StoredMessage::WIDTH)?, row.get(StoredMessage::WIDTH + 1)?);
    let wrong = match (hidden, tokens) {
        (0 | 1, 0..=MAX_TOKENS) => return Ok(()),
        (0 | 1, tokens) => format!("{tokens} tokens"),
        (hidden, _) => format!("{hidden} as its hidden flag"),
    };
    Err(corrupt(format!("message {} of session {} has {wrong}", address.n(), address.session())))
}

/// Returns the ids of a message and its session, if they can be read.
fn names(conn: &Connection, row: &Row<'_>) -> BackendResult<Option<(String, String)>> {
    let address: Address = row.get(0)?;
    let session: Option<String> =
        conn.first("SELECT id FROM session WHERE key = ?1", address.session())?;
    Ok(session.zip(row.get(StoredMessage::ID).ok()))
}

#[derive(Default)]
struct Batch {
    count: u64,
    last: Option<Address>,
    /// How many messages there are in all; the first batch counts them.
    total: u64,
}

impl Batch {
    fn read(
        &mut self,
        conn: &Connection,
        after: Address,
        found: &mut Vec<Damage>,
    ) -> BackendResult<()> {
        // Once per check: counting reads an index entry per message.
        if after == Address::from_raw(i64::MIN) {
            self.total = conn.one("SELECT count(*) FROM message WHERE id IS NOT NULL", ())?;
        }
        let counters = rows::counters(conn)?;
        conn.each(MESSAGES, (after, BATCH), |row| {
            self.last = Some(row.get(0)?);
            self.count += 1;
            rows::check_counter(row.get(0)?, row.get(StoredMessage::WIDTH + 2)?, &counters, found);
            if let Err(error) = read_whole(row) {
                let what = match names(conn, row)? {
                    Some((session, id)) => {
                        format!("{} (message {id:?} of {session:?})", description(error))
                    }
                    None => description(error),
                };
                let is_named = row
                    .get::<String>(StoredMessage::ID)
                    .is_ok_and(|id| MessageId::from(id).check_for_writing().is_ok());
                let remedy = if is_named { UPDATE } else { NAME_MESSAGE };
                report(found, Damage { kind: "broken-message", what, remedy });
            }
            Ok(true)
        })
    }
}

const MESSAGES: &str = concat!(
    "SELECT ",
    stored_columns!(),
    ", hidden, tokens, counter
   FROM message
  WHERE address > ?1 AND id IS NOT NULL
  ORDER BY address
  LIMIT ?2"
);

/// Reports each definition that is missing or differs.
fn differences(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    #[cfg(feature = "postgres")]
    if conn.sqlite().is_err() {
        let missing = crate::sql::postgres::missing(conn)?.into_iter();
        let damage = |name| format!("{name} is missing or not valid");
        found.extend(missing.map(|it| Damage { kind: "schema", what: damage(it), remedy: CREATE }));
        return Ok(());
    }
    let mut report = |what: String| found.push(Damage { kind: "schema", what, remedy: RESTORE });
    let fresh = rusqlite::Connection::open_in_memory()?;
    schema::create(&fresh, &Config::default())?;
    let (expected, present) = (definitions(&(&fresh).into())?, definitions(conn)?);
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
    let mut statement = conn
        .sqlite()?
        .prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
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
