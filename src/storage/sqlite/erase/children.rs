//! Which sessions name another one as their parent.
//!
//! An index finds those that are not in the trash. No index finds those in the trash, and an erasure puts all its sessions
//! there: so the trash is read once for all.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::sessions::keys;
use super::targets::newest;
use crate::id::SessionId;

#[derive(Debug, Default)]
pub(super) struct Children {
    /// The keys of sessions by the ids of their parents.
    known: HashMap<SessionId, BTreeSet<i64>>,
    /// The newest session. Later ones are found by their keys.
    newest: i64,
}

impl Children {
    /// Reads which sessions of the trash have a parent.
    pub(super) fn in_trash(conn: &Connection) -> BackendResult<Self> {
        let mut children =
            Self { newest: newest(conn, "SELECT max(key) FROM session")?, ..Self::default() };
        let mut statement = conn.prepare_cached(IN_TRASH)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let parent = SessionId::from(row.get_ref(1)?.as_str()?);
            children.known.entry(parent).or_default().insert(row.get(0)?);
        }
        Ok(children)
    }

    /// Notes the children of a session, which may be put into the trash later.
    pub(super) fn note(&mut self, conn: &Connection, parent: &SessionId) -> BackendResult<()> {
        let found = keys(conn, CHILDREN, params![parent.as_str(), self.newest])?;
        if !found.is_empty() {
            self.known.entry(parent.clone()).or_default().extend(found);
        }
        Ok(())
    }

    /// Returns the keys of the sessions that name one as their parent, or did when they were read.
    pub(super) fn of(&self, conn: &Connection, parent: &SessionId) -> BackendResult<BTreeSet<i64>> {
        let mut found = self.known.get(parent).cloned().unwrap_or_default();
        found.extend(keys(conn, CHILDREN, params![parent.as_str(), self.newest])?);
        Ok(found)
    }
}

pub(in super::super) const IN_TRASH: &str = "SELECT key, parent_session
   FROM session
  WHERE deleted_at IS NOT NULL AND parent_session IS NOT NULL";
/// Those that are not in the trash, and those that were created later.
pub(in super::super) const CHILDREN: &str = "SELECT key
   FROM session
  WHERE parent_session = ?1 AND deleted_at IS NULL
 UNION ALL
 SELECT key
   FROM session
  WHERE key > ?2 AND parent_session = ?1 AND +deleted_at IS NOT NULL";
