//! Adds to the ledger the usage of messages that were stored before there was a ledger.

use rusqlite::{Connection, Row};

use super::super::connection::Database;
use super::super::error::BackendResult;
use super::add;
use crate::error::Result;
use crate::message::{Json, Message, Role};
use crate::tree::Address;
use crate::usage::Usage;

impl Database {
    /// Adds the usage of all messages without a row in the ledger, some messages in each transaction.
    pub(crate) fn recount_usage(&self) -> Result<()> {
        let (mut after, watch) = (Address::from_raw(i64::MIN), self.interrupt_signal().watch());
        loop {
            watch.check()?;
            let last = self.write_watched(watch.clone(), |conn| {
                let last: Option<Address> =
                    conn.prepare_cached(LAST_OF_BATCH)?.query_row([after], |row| row.get(0))?;
                last.map_or(Ok(()), |last| add_missing(conn, after, last))?;
                Ok(last)
            })?;
            match last {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }
}

/// Half of them are answers. Adding the usage of one takes about 16 µs, and other writers wait for all of a batch.
const LAST_OF_BATCH: &str = "SELECT max(address)
   FROM (SELECT address FROM message WHERE address > ?1 ORDER BY address LIMIT 1024)";

/// Adds the usage of a range of messages. What a fork copied counts where it was written.
///
/// A message whose metadata cannot be read has no usage: `verify` reports it.
fn add_missing(conn: &Connection, after: Address, last: Address) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(MISSING)?;
    let mut rows = statement.query([after, last])?;
    while let Some(row) = rows.next()? {
        let (address, used_at): (Address, i64) = (row.get(0)?, row.get(2)?);
        let Some(message) = read(row) else { continue };
        if let Some(usage) = Usage::of(&message) {
            let answer = Usage::answer_of(&message);
            add(conn, address.session(), Some(address), &usage, used_at, answer.as_deref())?;
        }
    }
    Ok(())
}

/// Returns a message with the metadata of a row.
fn read(row: &Row<'_>) -> Option<Message> {
    let metadata = Json::parse(row.get_ref(1).ok()?.as_str().ok()?).ok()?;
    Some(Message::new(Role::Assistant, Vec::new()).with_metadata(metadata))
}

pub(in super::super) const MISSING: &str = "SELECT address, metadata, created_at
   FROM message
  WHERE address > ?1
    AND address <= ?2
    AND role = 'assistant'
    AND id IS NOT NULL
    AND origin IS NULL
    AND instr(metadata, '\"usage\"')
    AND NOT EXISTS (SELECT 1 FROM usage WHERE usage.address = message.address)
  ORDER BY address";
