//! Erases pending items of inboxes.
//!
//! The id of an item stays, as that of a handled one: otherwise the source could deliver the item again.

use rusqlite::{Connection, params};

use super::super::catalog::removal::{MAX_BYTES, MAX_MESSAGES};
use super::super::error::BackendResult;
use super::super::inbox::end;
use super::Work;
use crate::error::Result;

/// The pending items of an owner, up to the newest that the erasure names.
pub(in super::super) const OF_OWNER: &str =
    "SELECT number, key, owner, note, body FROM inbox_item WHERE owner = ?1 AND number <= ?2";
/// Those of a key in any source.
pub(in super::super) const OF_KEY: &str = "SELECT number, inbox_item.key, owner, note, body
   FROM inbox_source
  CROSS JOIN inbox_item ON inbox_item.source = inbox_source.key
  WHERE inbox_item.key = ?1 AND number <= ?2";

impl Work<'_> {
    /// Erases the pending items of the owners and keys.
    pub(super) fn erase_items(&mut self) -> Result<()> {
        let targets = self.targets;
        for (names, sql) in [(&targets.owners, OF_OWNER), (&targets.item_keys, OF_KEY)] {
            for name in names {
                loop {
                    self.check()?;
                    if !self.write(|conn, work| work.erase_some_items(conn, sql, name))? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Erases some items that a statement finds; `false` if there are none.
    fn erase_some_items(
        &mut self,
        conn: &Connection,
        sql: &str,
        name: &str,
    ) -> BackendResult<bool> {
        let (mut numbers, mut bytes) = (Vec::new(), 0);
        {
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query(params![name, self.targets.newest_item])?;
            while numbers.len() < MAX_MESSAGES
                && bytes < MAX_BYTES
                && let Some(row) = rows.next()?
            {
                numbers.push(row.get::<_, i64>(0)?);
                for column in 1..5 {
                    // Damaged texts may be none.
                    if let Ok(Some(text)) = row.get_ref(column)?.as_str_or_null() {
                        self.texts.add_name(text);
                        bytes += text.len();
                    }
                }
            }
        }
        for number in &numbers {
            end(conn, *number)?;
        }
        self.out.extent.items += numbers.len() as u64;
        Ok(!numbers.is_empty())
    }
}
