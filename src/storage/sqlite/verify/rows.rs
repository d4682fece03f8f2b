//! Reading every session, compaction and binding, and every row of the usage: each must be one that talktree could have
//! written.

use rusqlite::Connection;

use super::super::catalog::binding;
use super::super::error::BackendResult;
use super::super::row::compaction as compaction_row;
use super::super::row::session as session_row;
use super::super::{compaction, path, usage};
use super::{REMOVE, RESTORE, description, each, report};
use crate::report::Damage;
use crate::tree::Address;

/// The remedy for a session that nobody can name.
const NAME_SESSION: &str = "give it another id with the sqlite3 shell: UPDATE session SET id = 'NEW' WHERE key = KEY; or \
                            restore a backup, or export the other sessions";
/// The remedy for a damaged binding.
const CORRECT_BINDING: &str = "correct the row with the sqlite3 shell, or remove it: DELETE FROM binding WHERE number = NUMBER";
/// The remedy for a row of the usage with an impossible number.
const CORRECT_USAGE: &str =
    "correct the row with the sqlite3 shell, or remove it: DELETE FROM usage WHERE number = NUMBER";

/// Checks that each compaction's first message is on the path to its last.
pub(super) fn compactions(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    each(conn, "SELECT id, first, last FROM compaction WHERE first <= last", [], |row| {
        let (id, first, last): (String, Address, Address) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if first.session() == last.session() && !path::holds(conn, Some(last), first)? {
            let what =
                format!("the first message of compaction {id} is not on the path to its last");
            report(found, Damage { kind: "lost-compaction", what, remedy: REMOVE });
        }
        Ok(())
    })
}

/// Reads every session, compaction and binding, and every row of the usage.
pub(super) fn read_all(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    let mut check_row = |kind, remedy, answer: BackendResult<()>| {
        if let Err(error) = answer {
            report(found, Damage { kind, what: description(error), remedy });
        }
    };
    each(conn, session_row::EVERY, [], |row| {
        let is_named = session_row::read_id(row, 0, row.get(1)?).is_ok();
        let remedy = if is_named { RESTORE } else { NAME_SESSION };
        check_row("broken-session", remedy, session_row::read_info(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, compaction::EVERY, [], |row| {
        check_row("broken-compaction", REMOVE, compaction_row::read(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, binding::ALL, (i64::MAX, None::<&str>), |row| {
        check_row("broken-binding", CORRECT_BINDING, binding::read(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, usage::EVERY, [], |row| {
        check_row("wrong-usage", CORRECT_USAGE, usage::check_row(row));
        Ok(())
    })
}
