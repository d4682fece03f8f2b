//! The owners of sessions and transcripts, by name, from the indexes of their lists.

use rusqlite::params;

use super::super::connection::Database;
use super::super::row::time;
use crate::catalog::OwnerInfo;
use crate::error::Result;

/// The most owners that one call returns.
const MAX_PAGE: usize = 1_000;

impl Database {
    /// Returns the owners after a name, by name.
    pub(crate) fn owners(&self, after: Option<&str>, limit: usize) -> Result<Vec<OwnerInfo>> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(OWNERS)?;
            let limit = i64::try_from(limit.min(MAX_PAGE)).unwrap_or_default();
            // No owner is empty.
            let mut rows = statement.query(params![after.unwrap_or_default(), limit])?;
            let mut owners = Vec::new();
            while let Some(row) = rows.next()? {
                let number = |at: usize| -> rusqlite::Result<u64> {
                    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or_default())
                };
                owners.push(OwnerInfo {
                    sessions: number(1)?,
                    messages: number(2)?,
                    last_message_at: row.get::<_, Option<i64>>(3)?.map(time).transpose()?,
                    ..OwnerInfo::new(row.get(0)?)
                });
            }
            let mut statement = conn.prepare_cached(OF_TRANSCRIPTS)?;
            let mut rows = statement.query(params![after.unwrap_or_default(), limit])?;
            while let Some(row) = rows.next()? {
                let name: String = row.get(0)?;
                let place =
                    owners.binary_search_by(|of| of.owner.cmp(&name)).unwrap_or_else(|place| {
                        owners.insert(place, OwnerInfo::new(name));
                        place
                    });
                owners[place].transcripts =
                    u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default();
            }
            // Both lists have all owners up to the last one that is kept.
            owners.truncate(usize::try_from(limit).unwrap_or_default());
            Ok(owners)
        })
    }
}

pub(in super::super) const OWNERS: &str =
    "SELECT owner, count(*), sum(messages), max(last_message_at)
   FROM session
  WHERE owner > ?1
    AND deleted_at IS NULL
  GROUP BY owner
  ORDER BY owner
  LIMIT ?2";

pub(in super::super) const OF_TRANSCRIPTS: &str = "SELECT owner, count(*)
   FROM transcript
  WHERE owner > ?1
  GROUP BY owner
  ORDER BY owner
  LIMIT ?2";
