//! Checking token counts and their counters.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::super::error::{BackendError, BackendResult};
use super::super::row::session as session_row;
use super::super::tokens::visible;
use super::{Check, RECOUNT, report};
use crate::error::Error;
use crate::id::SessionId;
use crate::report::Damage;
use crate::tree::Address;

pub(super) const CHECKS: &[Check] = &[
    Check {
        kind: "wrong-tokens",
        sql: "SELECT format('session %s stores %d visible tokens', id, visible_tokens)
                FROM session
               WHERE visible_tokens < 0",
        remedy: RECOUNT,
    },
    Check {
        kind: "lost-counter",
        sql: "SELECT format('the tokens of session %s were counted by counter %d, which does not exist',
                            id, counter)
                FROM session
               WHERE counter > 0
                 AND counter NOT IN (SELECT key FROM token_counter)",
        remedy: RECOUNT,
    },
];

/// Compares each session's count with the counts in the rows on the path to its head, where that is possible without
/// a caller's own counter.
pub(super) fn compare(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    let mut statement =
        conn.prepare("SELECT id FROM session WHERE visible_tokens >= 0 ORDER BY key")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Ok(id) = row.get::<_, String>(0) else { continue };
        let answer = compare_one(conn, &SessionId::from(id.as_str()));
        match answer {
            Ok(Some(what)) => {
                report(found, Damage { kind: "wrong-tokens", what, remedy: RECOUNT });
            }
            Ok(None) => {}
            Err(error) if error.is_of_system() || error.is_busy() => return Err(error),
            Err(error) => match error.into_error(0) {
                // Damage on the path is reported for its messages and compactions.
                Error::Corrupt { .. } => {}
                error => return Err(BackendError::Own(error)),
            },
        }
    }
    Ok(())
}

/// Returns what is wrong with a session's count.
fn compare_one(conn: &Connection, id: &SessionId) -> BackendResult<Option<String>> {
    let Some(session) = session_row::find(conn, id)? else { return Ok(None) };
    let (Some(kept), Some(seen)) = (session.visible_tokens.0, visible::from_rows(conn, &session)?)
    else {
        return Ok(None);
    };
    let what = || format!("session {id} stores {kept} visible tokens, and its path has {seen}");
    Ok((kept != seen).then(what))
}

pub(super) fn counters(conn: &Connection) -> BackendResult<BTreeSet<i64>> {
    let mut statement = conn.prepare_cached("SELECT key FROM token_counter")?;
    let keys = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(keys)
}

/// Checks that a message's counter exists. Those up to 0 are versions of talktree's own estimate.
pub(super) fn check_counter(
    address: Address,
    counter: i64,
    known: &BTreeSet<i64>,
    found: &mut Vec<Damage>,
) {
    if counter > 0 && !known.contains(&counter) {
        let (n, session) = (address.n(), address.session());
        let what = format!(
            "message {n} of session {session} was counted by counter {counter}, which does not exist"
        );
        report(found, Damage { kind: "lost-counter", what, remedy: RECOUNT });
    }
}
