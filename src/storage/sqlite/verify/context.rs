//! Checking the context: the texts of blocks, frozen prompts, elisions.

use rusqlite::{Connection, Row};

use super::super::context::{self, elision, entry};
use super::super::error::{BackendResult, corrupt};
use super::super::message;
use super::{Check, RESTORE, description, each, report};
use crate::report::Damage;
use crate::tree::Address;

/// The remedy for a damaged text.
const PUT_AGAIN: &str = "put the text again, or restore a backup";
/// The remedy for a block that nobody can name.
const NAME_BLOCK: &str = "give it another label with the sqlite3 shell: UPDATE context_block SET label = 'NEW' WHERE key = \
                          KEY";
/// The remedy for a damaged prompt.
const THAW: &str = "refresh the session's prompt";
/// The remedy for an elision without an output.
const UPDATE: &str = "harmless: it is removed when the message is updated or deleted";

pub(super) const CHECKS: &[Check] = &[
    Check {
        kind: "stray-context",
        sql: "SELECT format('context block %s belongs to session key %d, which does not exist', label, session)
                FROM context_block
               WHERE session <> 0
                 AND NOT EXISTS (SELECT 1 FROM session WHERE session.key = context_block.session)",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-context",
        sql: "SELECT format('context block %s belongs to both session key %d and owner %s', label, session, owner)
                FROM context_block
               WHERE session <> 0 AND owner <> ''",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-context",
        sql: "SELECT format('texts are stored under context block %d, which does not exist', key)
                FROM (SELECT DISTINCT address >> 32 AS key
                        FROM context_entry
                      EXCEPT SELECT key FROM context_block)",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-context",
        sql: "SELECT format('a frozen prompt belongs to session key %d, which does not exist', session)
                FROM frozen_prompt
               WHERE NOT EXISTS (SELECT 1 FROM session WHERE session.key = frozen_prompt.session)",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-context",
        sql: "SELECT format('a text of context block %d has the number 0, which no read finds', block)
                FROM context_entry
               WHERE address & 4294967295 = 0",
        remedy: RESTORE,
    },
    Check {
        kind: "number-in-use",
        sql: "SELECT format('the next number of context block %d is %d, which is in use', key, next)
                FROM context_block
               WHERE next < 1
                  OR EXISTS (SELECT 1
                               FROM context_entry
                              WHERE address BETWEEN (context_block.key << 32 | context_block.next)
                                                AND (context_block.key << 32 | 4294967295))",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-version",
        sql: "SELECT format('version %d of text %d of context block %d is not before its current one',
                            version, entry & 4294967295, entry >> 32)
                FROM context_version
               WHERE version < 1
                  OR NOT EXISTS (SELECT 1
                                   FROM context_entry
                                  WHERE context_entry.address = context_version.entry
                                    AND context_entry.version > context_version.version)",
        remedy: RESTORE,
    },
    Check {
        kind: "lost-elision",
        sql: "SELECT format('message %d of session %d has an elision and does not exist',
                            address & 4294967295, address >> 32)
                FROM elision
               WHERE NOT EXISTS (SELECT 1
                                   FROM message
                                  WHERE message.address = elision.address AND message.id IS NOT NULL)",
        remedy: UPDATE,
    },
];

/// Reads every version of every text, every frozen prompt, and the message of every elision.
pub(super) fn read_all(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    let mut check_row = |kind, remedy, answer: BackendResult<()>| {
        if let Err(error) = answer {
            report(found, Damage { kind, what: description(error), remedy });
        }
    };
    each(conn, "SELECT key, label FROM context_block", [], |row| {
        check_row("broken-context", NAME_BLOCK, entry::read_label(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, ENTRIES, [], |row| {
        check_row("broken-context", PUT_AGAIN, read_entry(row));
        Ok(())
    })?;
    each(conn, VERSIONS, [], |row| {
        check_row("broken-context", PUT_AGAIN, entry::read_row(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, "SELECT session FROM frozen_prompt", [], |row| {
        check_row("broken-prompt", THAW, context::frozen(conn, row.get(0)?).map(|_| ()));
        Ok(())
    })?;
    each(conn, "SELECT address, call FROM elision", [], |row| {
        check_row("lost-elision", UPDATE, check_elision(conn, row));
        Ok(())
    })
}

const ENTRIES: &str =
    "SELECT address, key, title, description, version, changed_at, content, searchable
   FROM context_entry";
const VERSIONS: &str = "SELECT entry, '', title, description, version, changed_at, content
   FROM context_version";

fn read_entry(row: &Row<'_>) -> BackendResult<()> {
    let version = entry::read_row(row)?.version;
    let wrong = match (version, row.get::<_, i64>(7)?) {
        (1.., 0 | 1) => return Ok(()),
        (0, _) => "no version".to_owned(),
        (_, mark) => format!("{mark} as its searchable flag"),
    };
    Err(corrupt(format!("{} has {wrong}", entry::named(row.get(0)?))))
}

/// Damage of the message itself is reported elsewhere.
fn check_elision(conn: &Connection, row: &Row<'_>) -> BackendResult<()> {
    let (address, call): (Address, String) = (row.get(0)?, row.get(1)?);
    let Some(message) = message::stored(conn, address).ok().and_then(|stored| stored.message)
    else {
        return Ok(());
    };
    if elision::answers(&message, &call) {
        return Ok(());
    }
    Err(corrupt(format!(
        "message {} of session {} has an elision and no result of tool call {call:?}",
        address.n(),
        address.session()
    )))
}
