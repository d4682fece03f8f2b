//! Unfinished messages: replies that are streamed, or were when their process died.
//!
//! Each is hidden, and its metadata has a mark. Whoever settles one checks in the same transaction that it still has the mark:
//! so of two that finish or discard it, the second gets [`Error::Finished`], or [`Error::UnknownMessage`] after a discard.

use rusqlite::Connection;

use super::error::{BackendError, BackendResult};
use super::handle::Named;
use super::row::session::{self as session_row, SessionRow};
use super::tokens::CountedMessages;
use super::{delete, message, outline, update};
use crate::error::Error;
use crate::id::{MessageId, SessionId};
use crate::message::Message;
use crate::tree::Address;

/// Returns those of a session, in order of creation.
pub(super) fn all(conn: &Connection, session: &SessionRow) -> BackendResult<Vec<Message>> {
    let mut found = Vec::new();
    for address in outline::addresses(conn, UNFINISHED, session.key)? {
        found.extend(message::read(conn, address)?.filter(Message::is_unfinished));
    }
    Ok(found)
}

pub(super) const UNFINISHED: &str = "SELECT address
   FROM message
  WHERE hidden = 1 AND address BETWEEN ?1 AND ?2 AND instr(metadata, 'unfinished')
  ORDER BY address";

/// Returns whether the message at an address is unfinished.
pub(super) fn is_unfinished(conn: &Connection, address: Address) -> BackendResult<bool> {
    // Parsing costs more, and few messages are hidden.
    let is_hidden = conn.prepare_cached(IS_HIDDEN)?.exists([address])?;
    Ok(is_hidden && message::read(conn, address)?.is_some_and(|it| it.is_unfinished()))
}

const IS_HIDDEN: &str = "SELECT 1 FROM message WHERE address = ?1 AND hidden = 1";

/// Replaces an unfinished message, or deletes it.
pub(super) fn settle(
    conn: &Connection,
    name: &Named<'_>,
    id: &MessageId,
    content: Option<&Message>,
    counted: &CountedMessages<'_>,
    max_bytes: usize,
) -> BackendResult<()> {
    let session = name.find(conn)?;
    let address = message::require(conn, session.map(|session| session.key), name, id)?;
    let is_unfinished = is_unfinished(conn, address)?;
    let Some(mut session) = session.filter(|_| is_unfinished) else {
        let (session, id) = (SessionId::clone(name), id.clone());
        return Err(BackendError::Own(Error::Finished { session, id }));
    };
    let Some(content) = content else {
        return delete::delete(conn, name, std::slice::from_ref(id)).map(drop);
    };
    if !content.is_unfinished() {
        conn.prepare_cached(SHOW)?.execute([address])?;
        session.invalidate_visible_tokens();
        session_row::store(conn, &session)?;
    }
    update::update(conn, name, content, counted, max_bytes).map(drop)
}

const SHOW: &str = "UPDATE message SET hidden = 0 WHERE address = ?1";
