//! Removes sessions for good, and deletes what removals and erasures leave over.
//!
//! A session vanishes from every read in one transaction, which deletes its row and all that is few. Its messages may be many:
//! one transaction deleted 20 000, for which others waited 276 ms. So they become *leftovers*, as the entries of a transcript
//! do, and are deleted a batch at a time. The table of the leftovers is all that is known of them: after a crash any removal
//! or erasure goes on with it.
//!
//! Invariant: no read finds a leftover. Reads begin with the row of a session; those over all messages leave out the sessions
//! in `leftover`.

use super::super::connection::Database;
use super::super::context::{self, elision, entry};
use super::super::head;
use super::super::index::{self, Index};
use super::super::row::session as row;
use super::super::transcript;
use super::{put_into_trash, touch};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::SessionInfo;
use crate::retention::RetentionAction;
use crate::sql::{BackendResult, Connection, Read};
use crate::tree::Address;

/// The most messages that one transaction deletes: about ten milliseconds.
const MAX_MESSAGES: usize = 256;
/// About how many bytes of messages one transaction deletes at most.
const MAX_BYTES: usize = 4 << 20;

/// Removes a session and all that belongs to it, with the transcript that it shows. Its messages are left over.
pub(in super::super) fn take_out(conn: &Connection, key: i64) -> BackendResult<()> {
    if let Some(shown) = transcript::of_session(conn, key)? {
        take_out_transcript(conn, shown)?;
    }
    context::thaw(conn, key)?;
    entry::remove_blocks(conn, key)?;
    for sql in OF_SESSION {
        conn.run(sql, key)?;
    }
    Ok(())
}

/// Removes a transcript; the session that shows it stays. Its entries are left over.
pub(in super::super) fn take_out_transcript(conn: &Connection, key: i64) -> BackendResult<()> {
    for sql in [
        transcript::KEEP_TIME,
        "INSERT INTO leftover (transcript) VALUES (?1)",
        "DELETE FROM transcript WHERE key = ?1",
    ] {
        conn.run(sql, key)?;
    }
    Ok(())
}

const OF_SESSION: &[&str] = &[
    "INSERT INTO leftover (session) VALUES (?1)",
    "DELETE FROM compaction WHERE session = ?1",
    "DELETE FROM label WHERE session = ?1",
    "DELETE FROM head_log WHERE session = ?1",
    "DELETE FROM imported WHERE session = ?1",
    "DELETE FROM session_tag WHERE session = ?1",
    "DELETE FROM binding WHERE session = ?1",
    // What was paid for stays in the totals.
    "UPDATE usage SET session = NULL, address = NULL WHERE session = ?1",
    "DELETE FROM session WHERE key = ?1",
];

/// What one transaction has deleted of the leftovers.
#[derive(Debug, Default, Clone, Copy)]
struct Batch {
    /// How many messages and entries.
    count: u64,
    is_last: bool,
}

/// Deletes a batch of the leftovers up to a number, the newest message or entry of each first: so parents are there until
/// their children are gone.
fn delete_batch(conn: &Connection, up_to: i64) -> BackendResult<Batch> {
    let (mut rows, mut bytes, mut batch, mut done) = (0, 0, Batch::default(), 0);
    loop {
        let leftover: Option<(i64, i64, i64)> = conn.first(LEFTOVER, (up_to, done))?;
        let Some((number, session, transcript)) = leftover else {
            return Ok(Batch { is_last: true, ..batch });
        };
        let (key, newest) = match session {
            0 => (transcript, NEWEST_ENTRIES),
            key => (key, NEWEST_MESSAGES),
        };
        let (first, last) = Address::range_of(key);
        let (mut lowest, mut is_full) = (None, false);
        // One more than may be deleted says that there is more.
        conn.each(newest, (first, last, MAX_MESSAGES + 1), |row| {
            is_full = rows >= MAX_MESSAGES || bytes >= MAX_BYTES;
            if !is_full {
                let (address, count, size): (Address, u64, usize) = Read::read(row, 0)?;
                lowest = Some(address);
                batch.count += count;
                bytes += size;
                rows += 1;
            }
            Ok(!is_full)
        })?;
        match lowest {
            None => {}
            Some(lowest) if session == 0 => {
                conn.run(transcript::DELETE_ENTRIES, (lowest, last))?;
            }
            Some(lowest) => index::without_merges(conn, || {
                Index::Messages.remove(conn, lowest, last)?;
                elision::remove_range(conn, lowest, last)?;
                head::remove_tags(conn, lowest, last)?;
                conn.run("DELETE FROM message WHERE address BETWEEN ?1 AND ?2", (lowest, last))?;
                Ok(())
            })?,
        }
        if is_full {
            return Ok(batch);
        }
        conn.run("DELETE FROM leftover WHERE number = ?1", number)?;
        // A server would read what this transaction has deleted again, each time.
        done = number;
    }
}

const LEFTOVER: &str = "SELECT number, session, transcript
   FROM leftover
  WHERE number <= ?1 AND number > ?2 AND (session <> 0 OR transcript <> 0)
  ORDER BY number
  LIMIT 1";
const NEWEST_MESSAGES: &str = "SELECT address, id IS NOT NULL, octet_length(parts)
   FROM message
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address DESC
  LIMIT ?3";
const NEWEST_ENTRIES: &str = "SELECT address, 1, octet_length(entry)
   FROM transcript_entry
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address DESC
  LIMIT ?3";

impl Database {
    /// Removes a session and everything that belongs to it.
    pub(crate) fn remove(&self, id: &SessionId) -> Result<()> {
        self.removing(|conn| {
            let session = row::find(conn, id)?.ok_or_else(|| super::unknown(id))?;
            take_out(conn, session.key)
        })
    }

    /// Runs a write that leaves something over, and deletes that and what others have left: what is short, in the same
    /// transaction. If a later one fails or is interrupted, the next removal goes on: the answer is that of the first, which is
    /// committed.
    pub(in super::super) fn removing<T>(
        &self,
        write: impl Fn(&Connection) -> BackendResult<T>,
    ) -> Result<T> {
        let watch = self.watch();
        let (answer, batch) =
            self.write(|conn| Ok((write(conn)?, delete_batch(conn, i64::MAX)?)))?;
        let after = |_| watch.check();
        if !batch.is_last
            && let Err(error @ Error::Corrupt { .. }) = self.delete_leftovers(i64::MAX, after)
        {
            return Err(error);
        }
        Ok(answer)
    }

    /// Deletes the leftovers up to a number; calls `after` with how many messages and entries each batch had.
    pub(in super::super) fn delete_leftovers(
        &self,
        up_to: i64,
        mut after: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        loop {
            let batch = self.write(|conn| delete_batch(conn, up_to))?;
            after(batch.count)?;
            if batch.is_last {
                return Ok(());
            }
        }
    }

    /// Removes sessions that have not changed, or puts them into the trash; returns for each whether it was done.
    pub(crate) fn discard(
        &self,
        sessions: &[SessionInfo],
        action: RetentionAction,
    ) -> Result<Vec<bool>> {
        let discard = |conn: &Connection| -> BackendResult<Vec<bool>> {
            sessions.iter().map(|known| discard(conn, known, action)).collect()
        };
        match action {
            RetentionAction::Remove => self.removing(discard),
            RetentionAction::Trash | RetentionAction::Erase => self.write(discard),
        }
    }

    /// Returns the size of all messages of a session.
    pub(crate) fn bytes(&self, id: &SessionId) -> Result<u64> {
        self.read(|conn| {
            let Some(session) = row::find(conn, id)? else { return Ok(0) };
            let (first, last) = Address::range_of(session.key);
            let bytes: i64 = conn.one(BYTES, (first, last))?;
            Ok(u64::try_from(bytes).unwrap_or_default())
        })
    }
}

/// Returns whether a session is as it was read. A parent that was removed since is none any more.
pub(in super::super) fn is_unchanged(
    conn: &Connection,
    known: &SessionInfo,
) -> BackendResult<bool> {
    Ok(row::info(conn, &known.id)?.is_some_and(|found| {
        let (parent_session, fork_point) = (known.parent_session.clone(), known.fork_point.clone());
        SessionInfo { parent_session, fork_point, ..found } == *known
    }))
}

fn discard(conn: &Connection, known: &SessionInfo, action: RetentionAction) -> BackendResult<bool> {
    if !is_unchanged(conn, known)? {
        return Ok(false);
    }
    let Some(session) = row::find(conn, &known.id)? else { return Ok(false) };
    match action {
        RetentionAction::Remove => take_out(conn, session.key)?,
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

    fn rows(database: &Database, sql: &'static str) -> Result<i64> {
        database.read(|conn| conn.one(sql, ()))
    }

    /// One transaction removed 20 000 messages, for which others waited 276 ms.
    #[test]
    fn no_batch_deletes_more_than_its_share_and_no_read_finds_the_rest() -> Result<()> {
        let database = filled(&[("short", 256), ("long", 1_000)])?;
        let take_out = |id: &str| -> Result<Batch> {
            database.write(|conn| {
                let found = row::find(conn, &id.into())?.expect("it is there");
                take_out(conn, found.key)?;
                delete_batch(conn, i64::MAX)
            })
        };
        let batch = take_out("short")?;
        assert_eq!((batch.count, batch.is_last), (256, true));
        let batch = take_out("long")?;
        assert_eq!((batch.count, batch.is_last), (256, false));
        // As after a kill.
        assert_eq!(database.session_ids()?.len(), 0);
        let stats = database.stats()?;
        assert_eq!((stats.messages, stats.max_depth, stats.max_children), (0, 0, 0));
        assert_eq!(rows(&database, "SELECT count(*) FROM message")?, 744);
        assert_eq!(database.verify(|_| {})?.damages, []);
        // Another removal goes on.
        let again = SqliteSession::new(Arc::clone(&database), SessionId::from("long"));
        again.append(&Parent::Head, &ExpectedHead::Any, &[Message::user("hello")], None)?;
        database.remove(&"long".into())?;
        assert_eq!(rows(&database, "SELECT count(*) FROM message")?, 0);
        assert_eq!(rows(&database, "SELECT count(*) FROM leftover")?, 0);
        Ok(())
    }

    /// A server read again what the transaction had deleted, for each that it deleted next.
    #[test]
    fn a_batch_of_empty_sessions_reads_each_of_them_once() -> Result<()> {
        let steps = |count: i64| -> Result<u64> {
            let database = Database::open_in_memory(Config::default())?;
            let insert = "INSERT INTO leftover (session) VALUES (?1)";
            database.write(|conn| (1..=count).try_for_each(|key| conn.send(insert, key)))?;
            Ok(database.steps_of_write(|conn| delete_batch(conn, i64::MAX))?.0)
        };
        let (few, many) = (steps(100)?, steps(400)?);
        assert!(many < 6 * few, "{few} steps, and {many} for four times as much");
        Ok(())
    }

    #[test]
    fn an_interrupt_ends_the_deletion_of_what_a_removal_leaves_over() -> Result<()> {
        let database = filled(&[("a", 1_000)])?;
        database.removing(|conn| {
            let found = row::find(conn, &"a".into())?.expect("it is there");
            take_out(conn, found.key)?;
            database.watch().raise();
            Ok(())
        })?;
        assert_eq!(database.session_ids()?.len(), 0);
        assert_eq!(rows(&database, "SELECT count(*) FROM message")?, 1_000 - 2 * 256);
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
