//! The frozen prompt of a session.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::append::check_size;
use super::super::error::{BackendResult, corrupt};
use crate::error::Error;
use crate::message::now;
use crate::storage::context::PromptSection;

/// Returns the sections as the text of a row, if they are within the limit.
pub(super) fn to_text(sections: &[PromptSection], max: usize) -> BackendResult<String> {
    let text = serde_json::to_string(sections)
        .map_err(|source| Error::Json { what: "a frozen prompt", source })?;
    check_size("a frozen prompt", text.len(), max)?;
    Ok(text)
}

pub(in super::super) fn read(
    conn: &Connection,
    session: i64,
) -> BackendResult<Option<Vec<PromptSection>>> {
    let text: Option<String> =
        conn.prepare_cached(FROZEN)?.query_row([session], |row| row.get(0)).optional()?;
    let parse = |text: String| {
        serde_json::from_str(&text).map_err(|error| {
            corrupt(format!("the frozen prompt of session key {session}: {error}"))
        })
    };
    text.map(parse).transpose()
}

pub(in super::super) const FROZEN: &str = "SELECT sections FROM frozen_prompt WHERE session = ?1";

/// Freezes a prompt, replacing one that is frozen.
pub(super) fn set(conn: &Connection, session: i64, sections: &str) -> BackendResult<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO frozen_prompt (session, sections, frozen_at) VALUES (?1, ?2, ?3)",
    )?
    .execute(params![session, sections, now().timestamp_micros()])?;
    Ok(())
}

/// Thaws the prompt if this owner is another one than the session's, whose texts it holds. Called before the change.
pub(in super::super) fn thaw_for_owner(
    conn: &Connection,
    session: i64,
    owner: Option<&str>,
) -> BackendResult<()> {
    conn.prepare_cached(
        "DELETE FROM frozen_prompt
          WHERE session = ?1
            AND EXISTS (SELECT 1 FROM session WHERE key = ?1 AND owner IS NOT ?2)",
    )?
    .execute(params![session, owner])?;
    Ok(())
}

pub(in super::super) fn thaw(conn: &Connection, session: i64) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM frozen_prompt WHERE session = ?1")?.execute([session])?;
    Ok(())
}
