//! Elisions: markers laid over the outputs of tools when a history is read.

use rusqlite::{Connection, params};
use serde_json::Value;

use super::super::append::check_size;
use super::super::catalog;
use super::super::fault::{Fault, Outcome};
use super::super::message;
use crate::error::Error;
use crate::id::{MessageId, SessionId, shorten};
use crate::message::{Json, Message, Part, Tool, output_of, tool_of};
use crate::tree::Address;

/// Lays a marker over the output of a tool call.
pub(super) fn add(
    conn: &Connection,
    name: &SessionId,
    id: &MessageId,
    call: &str,
    marker: &str,
    max: usize,
) -> Outcome<()> {
    check_size("an elision's marker", marker.len(), max)?;
    let session = catalog::find(conn, name)?.map(|session| session.key);
    let address = message::require(conn, session, name, id)?;
    let stored = message::stored(conn, address)?.message;
    if !stored.is_some_and(|message| answers(&message, call)) {
        let call = shorten(call).into_owned();
        return Err(Fault::Own(Error::UnknownCall { message: id.clone(), call }));
    }
    conn.prepare_cached(
        "INSERT OR REPLACE INTO elision (address, call, marker) VALUES (?1, ?2, ?3)",
    )?
    .execute(params![address, call, marker])?;
    catalog::touch_view(conn, address.session())
}

/// Returns whether a message holds the result of a tool call.
pub(in super::super) fn answers(message: &Message, call: &str) -> bool {
    message.parts.iter().any(|part| result_of(part, call).is_some())
}

/// Returns the part as the result of this call, if it is that.
///
/// A call without a result has nothing to lay a marker over: it may stand beside its result.
fn result_of(part: &Part, call: &str) -> Option<Tool> {
    let tool = tool_of(part)?;
    (tool.call_id == call && output_of(&tool).is_some()).then(|| tool.into_owned())
}

/// Returns whether any elision lies on a session's messages: one look, so that reading costs
/// nothing where there are none.
pub(in super::super) fn has_any(conn: &Connection, session: i64) -> Outcome<bool> {
    let (first, last) = Address::range_of(session);
    Ok(conn.prepare_cached(HAS_ANY)?.query_row([first, last], |row| row.get(0))?)
}

pub(in super::super) const HAS_ANY: &str =
    "SELECT EXISTS (SELECT 1 FROM elision WHERE address BETWEEN ?1 AND ?2)";

/// Returns whether a marker lies over the output of a tool call; not over one of a message that went.
pub(super) fn is_there(
    conn: &Connection,
    name: &SessionId,
    id: &MessageId,
    call: &str,
) -> Outcome<bool> {
    let Some(session) = catalog::find(conn, name)? else { return Ok(false) };
    let Some(address) = message::find(conn, session.key, id)? else { return Ok(false) };
    Ok(conn.prepare_cached(OF_CALL)?.query_row(params![address, call], |row| row.get(0))?)
}

pub(in super::super) const OF_CALL: &str =
    "SELECT EXISTS (SELECT 1 FROM elision WHERE address = ?1 AND call = ?2)";

/// Returns whether any elision lies on a message.
pub(in super::super) fn has_of(conn: &Connection, address: Address) -> Outcome<bool> {
    Ok(conn.prepare_cached(HAS_ANY)?.query_row([address, address], |row| row.get(0))?)
}

/// Returns the messages of a stretch that an elision lies on.
pub(in super::super) fn messages_with(
    conn: &Connection,
    first: Address,
    last: Address,
) -> Outcome<Vec<Address>> {
    let mut statement = conn.prepare_cached(MESSAGES_WITH)?;
    let found = statement.query_map([first, last], |row| row.get(0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

pub(in super::super) const MESSAGES_WITH: &str =
    "SELECT DISTINCT address FROM elision WHERE address BETWEEN ?1 AND ?2";

/// Lays the elisions of a message over it.
pub(in super::super) fn apply(
    conn: &Connection,
    address: Address,
    message: &mut Message,
) -> Outcome<()> {
    if !message.parts.iter().any(|part| tool_of(part).is_some()) {
        return Ok(());
    }
    let mut statement = conn.prepare_cached(OF_MESSAGE)?;
    let mut rows = statement.query([address])?;
    while let Some(row) = rows.next()? {
        let (call, marker) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
        for part in &mut message.parts {
            if let Some(mut tool) = result_of(part, call) {
                tool.extra.remove("result");
                tool.output = Some(Json::from(Value::from(marker)));
                *part = Part::Tool(tool);
            }
        }
    }
    Ok(())
}

pub(in super::super) const OF_MESSAGE: &str = "SELECT call, marker FROM elision WHERE address = ?1";

/// Takes the elisions of a stretch of messages away.
pub(in super::super) fn forget(conn: &Connection, first: Address, last: Address) -> Outcome<()> {
    conn.prepare_cached(FORGET)?.execute([first, last])?;
    Ok(())
}

pub(in super::super) const FORGET: &str = "DELETE FROM elision WHERE address BETWEEN ?1 AND ?2";

/// Takes away the elisions of a message whose outputs a new content of it changes.
///
/// A marker stands for the output that was there. What else a message comes to hold does not matter:
/// a program may write one message anew with every step of a turn, also after an unloading.
pub(in super::super) fn forget_changed(
    conn: &Connection,
    address: Address,
    new: &Message,
) -> Outcome<()> {
    let calls: Vec<String> = conn
        .prepare_cached(OF_MESSAGE)?
        .query_map([address], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if calls.is_empty() {
        return Ok(());
    }
    // What cannot be read can be written anew; nothing is known of its outputs.
    let was = message::stored(conn, address).ok().and_then(|stored| stored.message);
    for call in calls {
        let now = outputs(new, &call);
        if now.is_empty() || was.as_ref().is_none_or(|was| outputs(was, &call) != now) {
            conn.prepare_cached("DELETE FROM elision WHERE address = ?1 AND call = ?2")?
                .execute(params![address, call])?;
        }
    }
    Ok(())
}

/// Returns what a tool call was answered with.
fn outputs(message: &Message, call: &str) -> Vec<(Option<Json>, Option<Json>)> {
    let results = message.parts.iter().filter_map(|part| result_of(part, call));
    results.map(|mut tool| (tool.output, tool.extra.remove("result"))).collect()
}

/// Copies the elisions of a stretch of messages to the copies of these, `by` further on.
pub(in super::super) fn copy(
    conn: &Connection,
    first: Address,
    last: Address,
    by: i64,
) -> Outcome<()> {
    conn.prepare_cached(COPY)?.execute(params![first, last, by])?;
    Ok(())
}

pub(in super::super) const COPY: &str = "INSERT INTO elision (address, call, marker)
 SELECT address + ?3, call, marker
   FROM elision
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address, call";
