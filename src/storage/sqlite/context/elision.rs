//! Elisions: markers that replace the outputs of tools when a history is read.

use serde_json::Value;

use super::super::append::check_size;
use super::super::catalog;
use super::super::message;
use crate::error::Error;
use crate::id::{MessageId, shorten};
use crate::message::{Json, Message, Part, Tool};
use crate::sql::{BackendError, BackendResult, Connection};
use crate::storage::context::Elision;
use crate::storage::sqlite::session::Named;
use crate::tree::Address;

/// Replaces the output of a tool call by a marker.
pub(in super::super) fn add(
    conn: &Connection,
    name: &Named<'_>,
    id: &MessageId,
    call: &str,
    marker: &str,
    max: usize,
) -> BackendResult<()> {
    check_size("an elision's marker", marker.len(), max)?;
    let session = name.find(conn)?.map(|session| session.key);
    let address = message::require(conn, session, name, id)?;
    let stored = message::stored(conn, address)?.message;
    if !stored.is_some_and(|message| answers(&message, call)) {
        let call = shorten(call).into_owned();
        return Err(BackendError::Own(Error::UnknownCall { message: id.clone(), call }));
    }
    conn.run(REMOVE, (address, call))?;
    let sql = "INSERT INTO elision (address, call, marker) VALUES (?1, ?2, ?3)";
    conn.run(sql, (address, call, marker))?;
    catalog::touch_view(conn, address.session())
}

/// Returns whether a message contains the result of a tool call.
pub(in super::super) fn answers(message: &Message, call: &str) -> bool {
    message.parts.iter().any(|part| result_of(part, call).is_some())
}

/// Returns the part as a tool if it is the result of this call.
///
/// A call without a result does not count; a message may contain both the call and its result.
fn result_of(part: &Part, call: &str) -> Option<Tool> {
    let tool = part.tool()?;
    (tool.call_id == call && tool.effective_output().is_some()).then(|| tool.into_owned())
}

/// Returns whether a session has any elision. Asked once per read, so that reading costs nothing where there are
/// none.
pub(in super::super) fn has_any(conn: &Connection, session: i64) -> BackendResult<bool> {
    let (first, last) = Address::range_of(session);
    conn.one(HAS_ANY, (first, last))
}

pub(in super::super) const HAS_ANY: &str =
    "SELECT EXISTS (SELECT 1 FROM elision WHERE address BETWEEN ?1 AND ?2)";

/// Returns whether the output of a tool call is elided; `false` for a deleted message.
pub(super) fn is_there(
    conn: &Connection,
    session: i64,
    id: &MessageId,
    call: &str,
) -> BackendResult<bool> {
    let Some(address) = message::find(conn, session, id)? else { return Ok(false) };
    conn.one(OF_CALL, (address, call))
}

pub(in super::super) const OF_CALL: &str =
    "SELECT EXISTS (SELECT 1 FROM elision WHERE address = ?1 AND call = ?2)";

/// Returns all elisions of a session, in the order of their messages.
pub(super) fn all(conn: &Connection, session: i64) -> BackendResult<Vec<Elision>> {
    let (first, last) = Address::range_of(session);
    let found: Vec<(String, String, String)> = conn.rows(OF_SESSION, (first, last))?;
    let elision = |(id, call, marker)| Elision { message: MessageId::from(id), call, marker };
    Ok(found.into_iter().map(elision).collect())
}

const OF_SESSION: &str = "SELECT message.id, elision.call, elision.marker
   FROM elision
   JOIN message ON message.address = elision.address
  WHERE elision.address BETWEEN ?1 AND ?2
    AND message.id IS NOT NULL
  ORDER BY elision.address, elision.call";

/// Returns whether a message has an elision.
pub(in super::super) fn has_of(conn: &Connection, address: Address) -> BackendResult<bool> {
    conn.one(HAS_ANY, (address, address))
}

/// Returns the messages of a range that have elisions.
pub(in super::super) fn messages_with(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<Vec<Address>> {
    conn.rows(MESSAGES_WITH, (first, last))
}

pub(in super::super) const MESSAGES_WITH: &str =
    "SELECT DISTINCT address FROM elision WHERE address BETWEEN ?1 AND ?2";

/// Applies the elisions of a message to it.
pub(in super::super) fn apply(
    conn: &Connection,
    address: Address,
    message: &mut Message,
) -> BackendResult<()> {
    if !message.parts.iter().any(|part| part.tool().is_some()) {
        return Ok(());
    }
    for (call, marker) in conn.rows::<(String, String)>(OF_MESSAGE, address)? {
        for part in &mut message.parts {
            if let Some(mut tool) = result_of(part, &call) {
                tool.extra.remove("result");
                tool.output = Some(Json::from(Value::from(&*marker)));
                *part = Part::Tool(tool);
            }
        }
    }
    Ok(())
}

pub(in super::super) const OF_MESSAGE: &str = "SELECT call, marker FROM elision WHERE address = ?1";

/// Removes the elisions of a range of messages.
pub(in super::super) fn remove_range(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<()> {
    conn.run(REMOVE_RANGE, (first, last))?;
    Ok(())
}

pub(in super::super) const REMOVE_RANGE: &str =
    "DELETE FROM elision WHERE address BETWEEN ?1 AND ?2";

/// Removes the elisions of outputs that an update changes.
///
/// A marker is valid only for the output that it replaced. Other changes to the message keep it: a program may rewrite
/// a message at every step of a turn, also after a skill was unloaded.
pub(in super::super) fn remove_changed(
    conn: &Connection,
    address: Address,
    new: &Message,
) -> BackendResult<()> {
    let calls: Vec<(String, String)> = conn.rows(OF_MESSAGE, address)?;
    if calls.is_empty() {
        return Ok(());
    }
    // A damaged message can still be replaced; its old outputs are unknown.
    let was = message::stored(conn, address).ok().and_then(|stored| stored.message);
    for (call, _) in calls {
        let now = outputs(new, &call);
        if now.is_empty() || was.as_ref().is_none_or(|was| outputs(was, &call) != now) {
            conn.run(REMOVE, (address, call))?;
        }
    }
    Ok(())
}

const REMOVE: &str = "DELETE FROM elision WHERE address = ?1 AND call = ?2";

/// Returns the outputs of a tool call in a message.
fn outputs(message: &Message, call: &str) -> Vec<(Option<Json>, Option<Json>)> {
    let results = message.parts.iter().filter_map(|part| result_of(part, call));
    results.map(|mut tool| (tool.output, tool.extra.remove("result"))).collect()
}

/// Copies the elisions of a range of messages to addresses that are `by` higher.
pub(in super::super) fn copy(
    conn: &Connection,
    first: Address,
    last: Address,
    by: i64,
) -> BackendResult<()> {
    conn.run(COPY, (first, last, by))?;
    Ok(())
}

pub(in super::super) const COPY: &str = "INSERT INTO elision (address, call, marker)
 SELECT address + ?3, call, marker
   FROM elision
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address, call";
