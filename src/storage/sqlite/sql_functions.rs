//! The SQL functions that the schema calls: the text of a message or of a document, segmented for the index.

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};

use super::error::BackendResult;
use crate::message::parts_from_text;
use crate::search::{indexed_text, script};

pub(super) fn register(conn: &Connection) -> BackendResult<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    conn.create_scalar_function("talktree_text", 1, flags, |context| {
        Ok(parts(context).map(|parts| indexed_text::text(&parts)))
    })?;
    conn.create_scalar_function("talktree_tools", 1, flags, |context| {
        Ok(parts(context).map(|parts| indexed_text::tools(&parts)))
    })?;
    conn.create_scalar_function("talktree_cut", 1, flags, |context| {
        // A value that is not text has none; `verify` reports it.
        let text = context.get_raw(0).as_str().ok();
        Ok(text.map(|text| script::segment(text).into_owned()))
    })?;
    Ok(())
}

/// Damaged parts have no text; `verify` reports them.
fn parts(context: &Context<'_>) -> Option<Vec<crate::message::Part>> {
    let text = context.get_raw(0).as_str().ok()?;
    parts_from_text(text).ok()
}
