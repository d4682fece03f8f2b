//! Checks transcripts: their entries, and the summaries of their sessions.

use rusqlite::{Connection, Row};

use super::super::error::{BackendResult, corrupt};
use super::super::transcript::stored_json;
use super::{Check, RESTORE, description, report};
use crate::report::Damage;
use crate::transcript::uuid_of;

/// The remedy for a damaged summary.
const APPEND_AGAIN: &str = "delete the transcript and append its entries again";

pub(super) const CHECKS: &[Check] = &[
    Check {
        kind: "stray-entry",
        sql: "SELECT format('entries are stored under transcript %d, which does not exist', key)
                FROM (SELECT DISTINCT address >> 32 AS key
                        FROM transcript_entry
                      EXCEPT SELECT key FROM transcript)",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-entry",
        sql: "SELECT format('an entry of transcript %d has the number 0, which no read finds', transcript)
                FROM transcript_entry
               WHERE address & 4294967295 = 0",
        remedy: RESTORE,
    },
    Check {
        kind: "number-in-use",
        sql: "SELECT format('the next number of transcript %d is %d, which is in use', key, next)
                FROM transcript
               WHERE next < 1
                  OR EXISTS (SELECT 1
                               FROM transcript_entry
                              WHERE address BETWEEN (transcript.key << 32 | transcript.next)
                                                AND (transcript.key << 32 | 4294967295))",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-transcript",
        sql: "SELECT format('transcript %d is shown by session %d, which does not exist', key, shown_by)
                FROM transcript
               WHERE shown_by IS NOT NULL AND shown_by NOT IN (SELECT key FROM session)",
        remedy: RESTORE,
    },
];

/// Reads every entry and every summary.
pub(super) fn read_all(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    let mut check_row = |kind, remedy, answer: BackendResult<()>| {
        if let Err(error) = answer {
            report(found, Damage { kind, what: description(error), remedy });
        }
    };
    let mut statement = conn.prepare("SELECT address, entry, uuid FROM transcript_entry")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        check_row("broken-entry", RESTORE, check_entry(row));
    }
    let mut statement =
        conn.prepare("SELECT key, summary FROM transcript WHERE summary IS NOT NULL")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        check_row("broken-summary", APPEND_AGAIN, check_summary(row));
    }
    Ok(())
}

fn check_entry(row: &Row<'_>) -> BackendResult<()> {
    let address: i64 = row.get(0)?;
    let name = || format!("entry {} of transcript {}", address & 0xFFFF_FFFF, address >> 32);
    let entry = stored_json(row, 1)
        .map_err(|error| corrupt(format!("{}: {}", name(), description(error))))?;
    let uuid = uuid_of(&entry).map_err(|error| corrupt(format!("{}: {error}", name())))?;
    match uuid == row.get(2)? {
        true => Ok(()),
        false => Err(corrupt(format!("{} is stored under another uuid than its own", name()))),
    }
}

fn check_summary(row: &Row<'_>) -> BackendResult<()> {
    let key: i64 = row.get(0)?;
    let name = |why| corrupt(format!("the summary of transcript {key}: {why}"));
    stored_json(row, 1).map(drop).map_err(|error| name(description(error)))
}
