//! A session's tree in the database, as the walk reads it.
//!
//! Runs come from the partial index of breaks. Short runs come in series, so breaks are read a buffer at a time, and
//! the buffer grows while the walk uses its content.

use rusqlite::{Connection, OptionalExtension};

use super::error::{BackendError, BackendResult, corrupt};
use crate::tree::{Address, Run, Span, TreeSource};

/// How many breaks are read at a time at most.
const MAX_BUFFER: usize = 256;

/// A session's tree, as the walk reads it.
pub(super) struct SessionTree<'c> {
    conn: &'c Connection,
    /// The first address of the session.
    floor: Address,
    /// Consecutive breaks in descending order, complete up to `ceiling`.
    runs: Vec<Run>,
    ceiling: Address,
    buffer: usize,
    /// How many lookups the current buffer has answered.
    answers: usize,
    /// Newer compactions are ignored.
    newest_compaction: i64,
}

impl<'c> SessionTree<'c> {
    pub(super) fn new(conn: &'c Connection, session: i64) -> Self {
        let (floor, _) = Address::range_of(session);
        Self {
            conn,
            floor,
            runs: Vec::new(),
            ceiling: floor,
            buffer: 1,
            answers: 0,
            newest_compaction: i64::MAX,
        }
    }

    /// Returns the tree without the compactions that are newer than this one.
    pub(super) fn before_compaction(
        conn: &'c Connection,
        session: i64,
        newest_compaction: i64,
    ) -> Self {
        Self { newest_compaction, ..Self::new(conn, session) }
    }

    /// Returns the run of an address, if the buffer has it.
    fn buffered(&self, at: Address) -> Option<Run> {
        let place = self.runs.partition_point(|run| run.start > at);
        self.runs.get(place).filter(|_| at <= self.ceiling).copied()
    }

    fn fill(&mut self, at: Address) -> BackendResult<()> {
        // If most of the buffer was not used, a seek is cheaper.
        let is_used = self.answers * 4 >= self.buffer;
        self.buffer = if is_used { MAX_BUFFER.min(self.buffer * 2) } else { 1 };
        self.answers = 0;
        self.ceiling = at;
        self.runs.clear();
        let mut statement = self.conn.prepare_cached(BREAKS_BEFORE)?;
        let mut rows = statement.query((at, self.floor, self.buffer))?;
        while let Some(row) = rows.next()? {
            self.runs.push(Run { start: row.get(0)?, parent: row.get(1)? });
        }
        Ok(())
    }

    fn find_run(&mut self, at: Address) -> BackendResult<Run> {
        if self.buffered(at).is_none() {
            self.fill(at)?;
        }
        self.answers += 1;
        self.buffered(at).ok_or_else(|| {
            corrupt(format!("message {} of session {} is in no run", at.n(), at.session()))
        })
    }

    fn find_span(&self, at: Address) -> BackendResult<Option<Span>> {
        let found = self
            .conn
            .prepare_cached(SPAN_BEFORE)?
            .query_row((at, self.floor, self.newest_compaction), |row| {
                Ok(Span { key: row.get(0)?, first: row.get(1)?, last: row.get(2)? })
            })
            .optional()?;
        Ok(found)
    }
}

pub(super) const BREAKS_BEFORE: &str = "SELECT address, parent
   FROM message
  WHERE parent IS NOT address - 1
    AND address <= ?1
    AND address >= ?2
  ORDER BY address DESC
  LIMIT ?3";

pub(super) const SPAN_BEFORE: &str = "SELECT key, first, last
   FROM compaction
  WHERE last <= ?1
    AND last >= ?2
    AND key <= ?3
  ORDER BY last DESC, first, key DESC
  LIMIT 1";

impl TreeSource for SessionTree<'_> {
    type Error = BackendError;

    fn run_of(&mut self, at: Address) -> BackendResult<Run> {
        self.find_run(at)
    }

    fn span_ending_at_or_before(&mut self, at: Address) -> BackendResult<Option<Span>> {
        self.find_span(at)
    }
}

/// A session's tree with only the summaries that become visible if one compaction is removed.
///
/// Invariant: they are within its range, and of those over exactly that range only older ones count. So descending
/// from summary to summary ends.
pub(super) struct WithoutCompaction<'c> {
    shape: SessionTree<'c>,
    over: Span,
}

impl<'c> WithoutCompaction<'c> {
    pub(super) fn new(conn: &'c Connection, over: Span) -> Self {
        Self { shape: SessionTree::new(conn, over.last.session()), over }
    }

    fn find_span(&self, at: Address) -> BackendResult<Option<Span>> {
        let found = self
            .shape
            .conn
            .prepare_cached(SPAN_BELOW)?
            .query_row((at, self.over.first, self.over.last, self.over.key), |row| {
                Ok(Span { key: row.get(0)?, first: row.get(1)?, last: row.get(2)? })
            })
            .optional()?;
        Ok(found)
    }
}

pub(super) const SPAN_BELOW: &str = "SELECT key, first, last
   FROM compaction
  WHERE last <= ?1
    AND last >= ?2
    AND first >= ?2
    AND (last < ?3 OR first > ?2 OR key < ?4)
  ORDER BY last DESC, first, key DESC
  LIMIT 1";

impl TreeSource for WithoutCompaction<'_> {
    type Error = BackendError;

    fn run_of(&mut self, at: Address) -> BackendResult<Run> {
        self.shape.run_of(at)
    }

    fn span_ending_at_or_before(&mut self, at: Address) -> BackendResult<Option<Span>> {
        self.find_span(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::storage::sqlite::path;

    /// A walk converted the error of the storage to the public one and back. So nobody saw that a system call had
    /// failed, and a busy database was reported as one that nobody had waited for.
    #[test]
    fn an_error_inside_a_walk_stays_the_one_of_the_storage() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old.db");
        let [conn, other] = [&file; 2].map(|file| Connection::open(file).unwrap());
        conn.execute_batch(
            include_str!("../../../schema.sql").split("CREATE VIEW").next().unwrap(),
        )
        .unwrap();
        conn.busy_timeout(std::time::Duration::ZERO).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let leaf = Some(Address::new(1, 1));
        for is_raw in [true, false] {
            let error = path::plan(&conn, 1, leaf, is_raw).unwrap_err();
            assert!(error.is_busy(), "{error:?}");
            assert!(matches!(error.into_error(1_234), Error::Busy { waited_ms: 1_234 }));
        }
    }
}
