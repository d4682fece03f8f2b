//! Reading every session, compaction and binding, and every row of the usage: each must be one that talktree could have
//! written.

use std::collections::BTreeSet;

use super::super::catalog::binding;
use super::super::context::{self, elision, entry};
use super::super::row::{message as compaction_row, session as session_row};
use super::super::transcript::stored_json;
use super::super::{compaction, message, path, tokens, usage};
use super::queries::HARMLESS;
use super::{RECOUNT, REMOVE, RESTORE, description, each, report};
use crate::error::Error;
use crate::id::SessionId;
use crate::report::Damage;
use crate::sql::{BackendError, BackendResult, Connection, Row, corrupt};
use crate::transcript::uuid_of;
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
    each(conn, "SELECT id, first, last FROM compaction WHERE first <= last", (), |row| {
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
    each(conn, session_row::EVERY, (), |row| {
        let is_named = session_row::read_id(row, 0, row.get(1)?).is_ok();
        let remedy = if is_named { RESTORE } else { NAME_SESSION };
        check_row("broken-session", remedy, session_row::read_info(row, 0).map(|_| ()));
        Ok(())
    })?;
    each(conn, compaction::EVERY, (), |row| {
        check_row("broken-compaction", REMOVE, compaction_row::read_compaction(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, binding::ALL, (i64::MAX, i64::MAX), |row| {
        check_row("broken-binding", CORRECT_BINDING, binding::read(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, usage::EVERY, (), |row| {
        check_row("wrong-usage", CORRECT_USAGE, usage::check_row(row));
        Ok(())
    })
}

/// The remedy for a damaged text.
const PUT_AGAIN: &str = "put the text again, or restore a backup";
/// The remedy for a block that nobody can name.
const NAME_BLOCK: &str = "give it another label with the sqlite3 shell: UPDATE context_block SET label = 'NEW' WHERE key = \
                          KEY";
/// The remedy for a damaged prompt.
const THAW: &str = "refresh the session's prompt";

/// Reads every version of every text, every frozen prompt, and the message of every elision.
pub(super) fn read_context(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    let mut check_row = |kind, remedy, answer: BackendResult<()>| {
        if let Err(error) = answer {
            report(found, Damage { kind, what: description(error), remedy });
        }
    };
    each(conn, "SELECT key, label FROM context_block", (), |row| {
        check_row("broken-context", NAME_BLOCK, entry::read_label(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, ENTRIES, (), |row| {
        check_row("broken-context", PUT_AGAIN, read_entry(row));
        Ok(())
    })?;
    each(conn, VERSIONS, (), |row| {
        check_row("broken-context", PUT_AGAIN, entry::read_row(row).map(|_| ()));
        Ok(())
    })?;
    each(conn, "SELECT session FROM frozen_prompt", (), |row| {
        check_row("broken-prompt", THAW, context::frozen(conn, row.get(0)?).map(|_| ()));
        Ok(())
    })?;
    each(conn, "SELECT address, call FROM elision", (), |row| {
        check_row("lost-elision", HARMLESS, check_elision(conn, row));
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
    let wrong = match (version, row.get::<i64>(7)?) {
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

/// The remedy for a damaged summary.
const APPEND_AGAIN: &str = "delete the transcript and append its entries again";

/// Reads every entry and every summary.
pub(super) fn read_transcripts(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    let mut check_row = |kind, remedy, answer: BackendResult<()>| {
        if let Err(error) = answer {
            report(found, Damage { kind, what: description(error), remedy });
        }
    };
    each(conn, "SELECT address, entry, uuid FROM transcript_entry", (), |row| {
        check_row("broken-entry", RESTORE, check_entry(row));
        Ok(())
    })?;
    each(conn, "SELECT key, summary FROM transcript WHERE summary IS NOT NULL", (), |row| {
        check_row("broken-summary", APPEND_AGAIN, check_summary(row));
        Ok(())
    })
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

/// Compares each session's count with the counts in the rows on the path to its head, where that is possible without
/// a caller's own counter.
pub(super) fn compare_tokens(conn: &Connection, found: &mut Vec<Damage>) -> BackendResult<()> {
    let sql = "SELECT id FROM session WHERE visible_tokens >= 0 ORDER BY key";
    let ids = conn.rows_with(sql, (), |row| Ok(row.get::<String>(0).ok()))?;
    for id in ids.into_iter().flatten() {
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
    let (Some(kept), Some(seen)) = (session.visible_tokens.0, tokens::from_rows(conn, &session)?)
    else {
        return Ok(None);
    };
    let what = || format!("session {id} stores {kept} visible tokens, and its path has {seen}");
    Ok((kept != seen).then(what))
}

pub(super) fn counters(conn: &Connection) -> BackendResult<BTreeSet<i64>> {
    Ok(conn.rows("SELECT key FROM token_counter", ())?.into_iter().collect())
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
