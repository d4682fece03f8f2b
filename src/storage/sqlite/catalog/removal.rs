//! Removes sessions for good: a short one in one transaction, a long one in several, so that others can write meanwhile.
//!
//! A long session is first put into the trash, and noted in the settings. Then its messages are deleted from the newest to
//! the oldest, and its row at the end. If a process is killed meanwhile, the next removal of any session finishes it.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::super::connection::Database;
use super::super::context::{self, elision};
use super::super::error::BackendResult;
use super::super::index::Index;
use super::super::row::session as row;
use super::super::row::session::SessionRow;
use super::super::{delete, head};
use super::{put_into_trash, remove, touch};
use crate::error::Result;
use crate::id::SessionId;
use crate::outcome::SessionInfo;
use crate::retention::RetentionAction;
use crate::tree::Address;

/// The most messages that one transaction deletes.
pub(in super::super) const MAX_MESSAGES: usize = 256;
/// About how many bytes of messages one transaction deletes at most.
pub(in super::super) const MAX_BYTES: usize = 4 << 20;
/// How the name of the note of a removal begins; then comes the key of the session.
const NOTE: &str = "removal:";

/// Removes a session, or begins to; returns whether it is removed.
pub(super) fn begin(conn: &Connection, session: &SessionRow) -> BackendResult<bool> {
    let key = session.key;
    let (first, _) = Address::range_of(key);
    let lowest = newest(conn, key)?.last().map_or(first, |(address, _)| *address);
    if !conn.prepare_cached(OLDER)?.exists([first, lowest])? {
        remove(conn, key)?;
        return Ok(true);
    }
    put_into_trash(conn, key)?;
    context::thaw(conn, key)?;
    for sql in FORGET {
        conn.prepare_cached(sql)?.execute([key])?;
    }
    conn.prepare_cached(
        "INSERT INTO setting (name, value) VALUES (?1, '') ON CONFLICT DO NOTHING",
    )?
    .execute([note(key)])?;
    touch(conn, key)?;
    Ok(false)
}

/// Returns the newest messages of a session that one transaction deletes, and whether they are no tombstones.
pub(in super::super) fn newest(conn: &Connection, key: i64) -> BackendResult<Vec<(Address, bool)>> {
    let (first, last) = Address::range_of(key);
    let (mut newest, mut bytes) = (Vec::new(), 0);
    let mut statement = conn.prepare_cached(NEWEST)?;
    let mut rows = statement.query(params![first, last, MAX_MESSAGES])?;
    while bytes < MAX_BYTES
        && let Some(row) = rows.next()?
    {
        newest.push((row.get(0)?, row.get(1)?));
        bytes += usize::try_from(row.get::<_, i64>(2)?).unwrap_or_default();
    }
    Ok(newest)
}

/// Deletes the messages of a session from an address on, of which so many are no tombstones.
pub(in super::super) fn delete_from(
    conn: &Connection,
    lowest: Address,
    living: usize,
) -> BackendResult<()> {
    let key = lowest.session();
    let (_, last) = Address::range_of(key);
    Index::Messages.remove(conn, lowest, last)?;
    elision::remove_range(conn, lowest, last)?;
    head::remove_tags(conn, lowest, last)?;
    let above: Vec<Address> = conn
        .prepare_cached(ABOVE)?
        .query_map([lowest, last], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    conn.prepare_cached("DELETE FROM message WHERE address BETWEEN ?1 AND ?2")?
        .execute([lowest, last])?;
    // Tombstones that have lost their last child.
    for parent in above {
        delete::prune(conn, Some(parent), &mut HashMap::new())?;
    }
    conn.prepare_cached(
        "UPDATE session
            SET messages = CASE WHEN messages < ?2 THEN 0 ELSE messages - ?2 END
          WHERE key = ?1",
    )?
    .execute(params![key, living])?;
    Ok(())
}

fn note(key: i64) -> String {
    format!("{NOTE}{key}")
}

fn is_in_trash(conn: &Connection, key: i64) -> BackendResult<bool> {
    let found = conn
        .prepare_cached("SELECT 1 FROM session WHERE key = ?1 AND deleted_at IS NOT NULL")?
        .exists([key])?;
    Ok(found)
}

impl Database {
    /// Finishes the removals that were begun.
    pub(super) fn finish_removals(&self) -> Result<()> {
        let keys: Vec<i64> = self.read(|conn| {
            let mut statement = conn.prepare_cached(NOTES)?;
            let keys = statement.query_map([], |row| row.get(0))?;
            Ok(keys.collect::<rusqlite::Result<_>>()?)
        })?;
        keys.into_iter().try_for_each(|key| self.finish_removal(key))
    }

    fn finish_removal(&self, key: i64) -> Result<()> {
        while self.in_step(key, |conn| {
            let newest = newest(conn, key)?;
            let Some((lowest, _)) = newest.last() else { return Ok(false) };
            let (_, last) = Address::range_of(key);
            conn.prepare_cached(KEEP_USAGE)?.execute([*lowest, last])?;
            let living = newest.iter().filter(|(_, is_living)| *is_living).count();
            delete_from(conn, *lowest, living)?;
            Ok(true)
        })? {}
        self.write(|conn| {
            // One that was restored meanwhile keeps what it has.
            if is_in_trash(conn, key)? {
                remove(conn, key)?;
            }
            conn.prepare_cached("DELETE FROM setting WHERE name = ?1")?.execute([note(key)])?;
            Ok(())
        })
    }

    /// Runs a step of a removal; `false` if the session is not in the trash any more.
    fn in_step(
        &self,
        key: i64,
        step: impl FnOnce(&Connection) -> BackendResult<bool>,
    ) -> Result<bool> {
        self.write(|conn| Ok(is_in_trash(conn, key)? && step(conn)?))
    }
}

/// What refers to the messages.
const FORGET: &[&str] = &[
    "DELETE FROM compaction WHERE session = ?1",
    "DELETE FROM label WHERE session = ?1",
    "DELETE FROM head_log WHERE session = ?1",
    "UPDATE session
        SET head = NULL, head_position = 0, visible_tokens = 0, changes = changes + 1
      WHERE key = ?1",
];
const NEWEST: &str = "SELECT address, id IS NOT NULL, octet_length(parts)
   FROM message
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address DESC
  LIMIT ?3";
/// The parents of messages that stay when the messages are deleted.
const ABOVE: &str = "SELECT DISTINCT parent
   FROM message
  WHERE address BETWEEN ?1 AND ?2 AND parent < ?1
  ORDER BY parent DESC";
const OLDER: &str = "SELECT 1 FROM message WHERE address >= ?1 AND address < ?2";
/// What was paid for stays in the totals.
const KEEP_USAGE: &str = "UPDATE usage SET session = NULL, address = NULL WHERE session = CAST(?1 AS BIGINT) >> 32 AND address BETWEEN ?1 AND ?2";
/// `;` is the character after `:`.
const NOTES: &str = "SELECT CAST(substr(name, 9) AS BIGINT)
   FROM setting
  WHERE name >= 'removal:' AND name < 'removal;'";

impl Database {
    /// Removes sessions that have not changed, or puts them into the trash; returns for each whether it was done.
    ///
    /// One transaction, and some more for long sessions that are removed.
    pub(crate) fn discard(
        &self,
        sessions: &[SessionInfo],
        action: RetentionAction,
    ) -> Result<Vec<bool>> {
        let discard = |conn: &Connection| -> BackendResult<Vec<bool>> {
            sessions.iter().map(|known| discard(conn, known, action)).collect()
        };
        let done = self.write(discard)?;
        if action == RetentionAction::Remove {
            self.finish_removals()?;
        }
        Ok(done)
    }

    /// Returns the size of all messages of a session.
    pub(crate) fn bytes(&self, id: &SessionId) -> Result<u64> {
        self.read(|conn| {
            let Some(session) = row::find(conn, id)? else { return Ok(0) };
            let (first, last) = Address::range_of(session.key);
            let bytes: i64 =
                conn.prepare_cached(BYTES)?.query_row([first, last], |row| row.get(0))?;
            Ok(u64::try_from(bytes).unwrap_or_default())
        })
    }
}

fn discard(conn: &Connection, known: &SessionInfo, action: RetentionAction) -> BackendResult<bool> {
    if row::info(conn, &known.id)?.as_ref() != Some(known) {
        return Ok(false);
    }
    let Some(session) = row::find(conn, &known.id)? else { return Ok(false) };
    match action {
        RetentionAction::Remove => _ = begin(conn, &session)?,
        RetentionAction::Trash | RetentionAction::Erase => {
            put_into_trash(conn, session.key)?;
            touch(conn, session.key)?;
        }
    }
    Ok(true)
}

/// The lengths are in the headers of the rows, so no content is read.
pub(in super::super) const BYTES: &str =
    "SELECT CAST(coalesce(sum(octet_length(parts) + coalesce(octet_length(metadata), 0)
                     + coalesce(octet_length(extra), 0)), 0) AS BIGINT)
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::connection::Config;
    use super::super::super::row::session as row;
    use super::super::super::session::SqliteSession;
    use super::*;
    use crate::id::SessionId;
    use crate::message::Message;
    use crate::outcome::SessionInfo;
    use crate::retention::RetentionAction;
    use crate::view::{ExpectedHead, Parent};

    fn filled(sessions: &[(&str, usize)]) -> Result<Arc<Database>> {
        let database = Arc::new(Database::open_in_memory(Config::default())?);
        for (id, count) in sessions {
            let session = SqliteSession::new(Arc::clone(&database), SessionId::from(*id));
            let messages: Vec<Message> = (0..*count).map(|_| Message::user("hello")).collect();
            session.append(&Parent::Head, &ExpectedHead::Any, &messages, None)?;
        }
        Ok(database)
    }

    fn rows(database: &Database, sql: &str) -> Result<i64> {
        database.read(|conn| Ok(conn.query_row(sql, [], |row| row.get(0))?))
    }

    /// One transaction removed 20 000 messages, for which others waited 276 ms.
    #[test]
    fn no_step_of_a_removal_deletes_more_than_its_share() -> Result<()> {
        let database = filled(&[("short", 256), ("long", 1_000)])?;
        let begun = |id: &str| -> Result<(bool, i64)> {
            let done = database.write(|conn| {
                let found = row::find(conn, &id.into())?.expect("it is there");
                begin(conn, &found)
            })?;
            Ok((done, rows(&database, "SELECT count(*) FROM message")?))
        };
        assert_eq!(begun("short")?, (true, 1_000));
        assert_eq!(begun("long")?, (false, 1_000));
        // As after a kill: another removal finishes it.
        assert!(database.session_ids()?.iter().any(|(id, _)| *id == "long"));
        database.finish_removals()?;
        assert_eq!(rows(&database, "SELECT count(*) FROM message")?, 0);
        assert_eq!(rows(&database, "SELECT count(*) FROM session")?, 0);
        assert_eq!(rows(&database, "SELECT count(*) FROM setting WHERE name LIKE 'removal%'")?, 0);
        Ok(())
    }

    #[test]
    fn a_session_that_is_restored_while_it_is_removed_stays() -> Result<()> {
        let database = filled(&[("long", 1_000)])?;
        database.write(|conn| {
            let found = row::find(conn, &"long".into())?.expect("it is there");
            begin(conn, &found)
        })?;
        database.change_session(&"long".into(), &crate::catalog::SessionChange::Restore)?;
        database.finish_removals()?;
        assert_eq!(rows(&database, "SELECT count(*) FROM message")?, 1_000);
        assert_eq!(rows(&database, "SELECT count(*) FROM setting WHERE name LIKE 'removal%'")?, 0);
        Ok(())
    }

    #[test]
    fn long_sessions_are_discarded_if_they_have_not_changed() -> Result<()> {
        let database = filled(&[("a", 600), ("b", 600)])?;
        let info = |id: &str| -> Result<SessionInfo> {
            Ok(database.read(|conn| row::info(conn, &id.into()))?.expect("it is there"))
        };
        let known = [info("a")?, info("b")?];
        let changed = SqliteSession::new(Arc::clone(&database), "b".into());
        changed.append(&Parent::Head, &ExpectedHead::Any, &[Message::user("more")], None)?;
        assert_eq!(database.discard(&known, RetentionAction::Remove)?, [true, false]);
        let ids: Vec<_> = database.session_ids()?.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [SessionId::from("b")]);
        assert_eq!(rows(&database, "SELECT count(*) FROM message")?, 601);
        Ok(())
    }
}
