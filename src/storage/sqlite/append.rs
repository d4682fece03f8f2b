//! Writing messages: appends, updates in place, and replies that are streamed.
//!
//! A reply that is streamed is hidden, and its metadata has a mark. Whoever settles one checks in the same transaction that it still has the mark:
//! so of two that finish or discard it, the second gets [`Error::Finished`], or [`Error::UnknownMessage`] after a discard.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use super::context::elision;
use super::row::message::Content;
use super::row::session::SessionRow;
use super::row::{message as message_row, session as session_row};
use super::session::Named;
use super::tokens::{CountedMessages, TokenCount, counter_key};
use super::{children, compaction, delete, head, index, message, usage};
use crate::compaction::Seen;
use crate::error;
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId, check_name_length};
use crate::message::{Extra, Json, Message, Part, check_shape, extra_to_text, parts_to_text};
use crate::outcome::{Appended, CountedAppend, Updated};
use crate::sql::{BackendError, BackendResult, Connection, corrupt};
use crate::tree::{Address, MAX_MESSAGES};
use crate::view::{ExpectedHead, Parent};

/// Returns the content of a message as text.
///
/// # Errors
/// If it is over the limit or contains a field twice.
pub(super) fn content(message: &Message, max_bytes: usize) -> BackendResult<Content<'_>> {
    check_name_length("role", message.role.as_str())?;
    check_shape(message)?;
    let content = Content {
        role: Cow::Borrowed(message.role.as_str()),
        parts: parts_to_text(&message.parts)?.into(),
        metadata: message.metadata.as_ref().map(|json| json.as_str().into()),
        extra: extra_to_text(&message.extra)?.map(Cow::Owned),
    };
    let length = |text: &Option<Cow<'_, str>>| text.as_ref().map_or(0, |text| text.len());
    let bytes = content.parts.len() + length(&content.extra) + length(&content.metadata);
    if bytes > max_bytes {
        let id = message.id.clone();
        return Err(BackendError::Own(Error::MessageTooLarge { id, bytes, max: max_bytes }));
    }
    Ok(content)
}

pub(super) fn check_size(what: &'static str, bytes: usize, max: usize) -> BackendResult<()> {
    error::check_size(what, bytes, max).map_err(BackendError::Own)
}

/// How many messages a short write holds at most.
const MAX_FEW: usize = 16;
/// About how many bytes a short write holds at most.
const MAX_SHORT: usize = 64 << 10;

/// Returns whether messages are few and short enough to be written well within a millisecond.
pub(crate) fn are_short(messages: &[Message]) -> bool {
    messages.len() <= MAX_FEW && messages.iter().map(bytes).sum::<usize>() <= MAX_SHORT
}

/// Returns about how many bytes the content of a message has.
fn bytes(message: &Message) -> usize {
    let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.as_str().len());
    let extra = |extra: &Extra| extra.values().map(|json| json.as_str().len()).sum::<usize>();
    let part = |part: &Part| match part {
        Part::Text(it) => it.text.len() + extra(&it.extra),
        Part::Reasoning(it) => it.text.len() + extra(&it.extra),
        Part::Tool(it) => {
            let error = it.error_text.as_ref().map_or(0, String::len);
            json(&it.input) + json(&it.output) + error + extra(&it.extra)
        }
        Part::File(it) => it.url.len() + extra(&it.extra),
        Part::Other(json) => json.as_str().len(),
    };
    message.parts.iter().map(part).sum::<usize>() + json(&message.metadata) + extra(&message.extra)
}

/// Appends messages, each the child of the one before.
pub(crate) fn append(
    conn: &Connection,
    name: &Named<'_>,
    parent: &Parent,
    expected: &ExpectedHead,
    messages: &[Message],
    counted: &CountedMessages<'_>,
    max_bytes: usize,
) -> BackendResult<CountedAppend> {
    if messages.is_empty() {
        return Ok(CountedAppend::default());
    }
    let mut session = name.find_or_create(conn)?;
    let mut parent = find_parent(conn, name, &session, parent)?;
    if let ExpectedHead::At(expected) = expected {
        check_head(conn, &session, name, expected.as_ref(), messages)?;
    }
    let mut appended = Vec::with_capacity(messages.len());
    let first_new = session.next;
    // Where the head would be if every new message so far had been appended at it.
    let (mut new_head, mut is_branching) = (session.head, false);
    // Of many a server is asked once which are known: if none is, the answers to the inserts say nothing.
    let are_new = conn.is_far() && messages.len() > 1 && are_new(conn, &session, messages)?;
    for (message, count) in messages.iter().zip(counted.token_counts(conn)?) {
        let content = content(message, max_bytes)?;
        match insert(conn, &mut session, name, parent, message, (&content, count), are_new)? {
            Some(address) => {
                is_branching |= new_head != parent;
                count_in(&mut session, message, count);
                session.note_message_at(message.created_at.timestamp_micros());
                usage::record(conn, address, message)?;
                new_head = Some(address);
                parent = new_head;
                appended.push(Appended::new(message.id.clone()));
            }
            None => {
                let (address, differs) = compare(conn, &session, message)?;
                parent = Some(address);
                appended.push(Appended::known(message.id.clone(), differs));
            }
        }
    }
    index::make_pending(conn, &mut session, first_new)?;
    if new_head != session.head {
        // An append that is not at the head moves it, and that can be undone.
        match is_branching {
            true => head::move_to(conn, &mut session, new_head)?,
            false => session.head = new_head,
        }
        session_row::store(conn, &session)?;
        session_row::store_listed_at(conn, &mut session)?;
    }
    // If no message was new, the stored count may be another counter's.
    let is_own = counter_key(conn, counted.counter())? == Some(session.counter);
    Ok(CountedAppend { appended, visible_tokens: session.visible_tokens.0.filter(|_| is_own) })
}

/// Returns an error unless these messages and summaries still read as they were seen.
pub(crate) fn check_seen(conn: &Connection, name: &Named<'_>, seen: &Seen) -> BackendResult<()> {
    let Some(session) = name.find(conn)? else { return seen.check_each(|_| Ok(None)) };
    seen.check_each(|id| {
        if let Some(summary) = CompactionId::from_message(id) {
            let Some(span) = compaction::find(conn, session.key, &summary)? else {
                return Ok(None);
            };
            let found = compaction::by_key(conn, span.key)?;
            return Ok(found.map(|summary| summary.to_message(None)));
        }
        let Some(address) = message::find(conn, session.key, id)? else { return Ok(None) };
        let mut found = message::stored(conn, address)?.message;
        if let Some(message) = &mut found {
            elision::apply(conn, address, message)?;
        }
        Ok(found)
    })
}

/// Adds the tokens of a message appended at the head to the session's count.
fn count_in(session: &mut SessionRow, message: &Message, count: TokenCount) {
    if session.head.is_none() && session.visible_tokens.0 == Some(0) {
        session.counter = count.counter;
    }
    let before = session.visible_tokens.0.filter(|_| session.counter == count.counter);
    let added = if message.is_hidden { 0 } else { count.tokens };
    session.set_visible_tokens(before.and_then(|tokens| tokens.checked_add(added)));
}

/// Returns the address of the parent; `None` for a root.
fn find_parent(
    conn: &Connection,
    name: &SessionId,
    session: &SessionRow,
    parent: &Parent,
) -> BackendResult<Option<Address>> {
    match parent {
        Parent::Head => Ok(session.head),
        Parent::Root => Ok(None),
        Parent::Message(id) => message::place(conn, Some(session.key), name, id).map(Some),
        Parent::SiblingOf(id) => {
            let sibling = message::require(conn, Some(session.key), name, id)?;
            message::parent(conn, sibling)
        }
    }
}

/// Returns an error unless the head is where the caller saw it.
fn check_head(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    expected: Option<&MessageId>,
    messages: &[Message],
) -> BackendResult<()> {
    match head_moved(conn, session, name, expected)? {
        // A retry after a lost answer finds its own message at the head: that is no conflict.
        Some(moved) if !are_known(conn, session, messages)? => Err(BackendError::Own(moved)),
        _ => Ok(()),
    }
}

/// Returns [`Error::HeadMoved`] if the head is not where the caller saw it.
pub(super) fn head_moved(
    conn: &Connection,
    session: &SessionRow,
    name: &SessionId,
    expected: Option<&MessageId>,
) -> BackendResult<Option<Error>> {
    let found = message::id_of_place(conn, session.head)?;
    if found.as_ref() == expected {
        return Ok(None);
    }
    // The head's message may also be named by the summary that ends with it.
    let expected_place = match expected.and_then(CompactionId::from_message) {
        Some(_) => {
            let place = expected.map(|id| message::place(conn, Some(session.key), name, id));
            place.and_then(BackendResult::ok)
        }
        None => None,
    };
    let is_at_head = expected_place.is_some() && expected_place == session.head;
    Ok((!is_at_head).then(|| Error::HeadMoved { expected: expected.cloned(), found }))
}

/// Returns whether no message is known, or is there twice.
fn are_new(conn: &Connection, session: &SessionRow, messages: &[Message]) -> BackendResult<bool> {
    for message in messages {
        conn.ask_ahead(message::BY_ID, (session.key, message.id.as_str()))?;
    }
    let mut ids = HashSet::new();
    for message in messages {
        if !ids.insert(&message.id) || message::find(conn, session.key, &message.id)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether all these ids are known.
fn are_known(conn: &Connection, session: &SessionRow, messages: &[Message]) -> BackendResult<bool> {
    for message in messages {
        if message::find(conn, session.key, &message.id)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Stores a message at the session's next address; `None` if its id is known, which the caller may have asked before. The caller makes it
/// pending.
pub(super) fn insert(
    conn: &Connection,
    session: &mut SessionRow,
    name: &SessionId,
    parent: Option<Address>,
    message: &Message,
    (content, count): (&Content<'_>, TokenCount),
    is_new: bool,
) -> BackendResult<Option<Address>> {
    let number = u32::try_from(session.next).ok().filter(|_| session.next <= MAX_MESSAGES);
    let Some(number) = number else {
        // In a full session a known id is still a no-op.
        return match message::find(conn, session.key, &message.id)? {
            Some(_) => Ok(None),
            None => {
                let session = name.clone();
                Err(BackendError::Own(Error::SessionFull { session, max: MAX_MESSAGES }))
            }
        };
    };
    if number == 0 {
        return Err(next_in_use(name, number));
    }
    let address = Address::new(session.key, number);
    let is_new = message_row::insert(conn, address, parent, message, content, count, is_new);
    if !is_new.map_err(|error| if error.is_of_key() { next_in_use(name, number) } else { error })? {
        return Ok(None);
    }
    session.next += 1;
    session.messages += 1;
    Ok(Some(address))
}

/// Returns the address of the message with this id, and whether its content differs.
pub(super) fn compare(
    conn: &Connection,
    session: &SessionRow,
    message: &Message,
) -> BackendResult<(Address, bool)> {
    let address = message::find(conn, session.key, &message.id)?;
    let address = address.ok_or_else(|| lost(&message.id))?;
    let stored = message::stored(conn, address)?.message.ok_or_else(|| lost(&message.id))?;
    Ok((address, !stored.says_the_same(message)))
}

/// Returns the error of a next number that talktree did not write.
fn next_in_use(session: &SessionId, number: u32) -> BackendError {
    corrupt(format!(
        "the next number of session {session:?} is {number}, which is in use or below 1"
    ))
}

fn lost(id: &MessageId) -> BackendError {
    corrupt(format!("message {id:?} is in the index of ids but not in the table"))
}

/// Replaces the content of a message, or appends it to the head if its id is unknown.
pub(crate) fn upsert(
    conn: &Connection,
    name: &Named<'_>,
    message: &Message,
    counted: &CountedMessages<'_>,
    max_bytes: usize,
) -> BackendResult<Updated> {
    let session = name.find(conn)?;
    let known = session.map(|session| message::find(conn, session.key, &message.id));
    if known.transpose()?.flatten().is_some() {
        return update(conn, name, message, counted, max_bytes);
    }
    let messages = std::slice::from_ref(message);
    append(conn, name, &Parent::Head, &ExpectedHead::Any, messages, counted, max_bytes)?;
    Ok(Updated { is_new: true, is_changed: true, covered_by: Vec::new() })
}

/// Replaces role, parts, metadata and extra fields; parent, time and hidden flag do not change, nor does the mark of an unfinished
/// message, which only [`settle`] removes.
pub(crate) fn update(
    conn: &Connection,
    name: &Named<'_>,
    message: &Message,
    counted: &CountedMessages<'_>,
    max_bytes: usize,
) -> BackendResult<Updated> {
    let session = name.find(conn)?;
    let address = message::require(conn, session.map(|session| session.key), name, &message.id)?;
    let message = match is_unfinished(conn, address)? {
        true => Cow::Owned(message.clone().unfinished()),
        false => Cow::Borrowed(message),
    };
    let spans = compaction::covering(conn, &BTreeSet::from([address]))?;
    let covered_by =
        spans.iter().map(|span| compaction::id_of(conn, span.key)).collect::<BackendResult<_>>()?;
    let content = content(&message, max_bytes)?;
    if is_stored(conn, address, &content)? {
        return Ok(Updated { is_new: false, is_changed: false, covered_by });
    }
    let (Some(mut session), Some(count)) = (session, counted.token_counts(conn)?.next()) else {
        return Err(corrupt(format!("message {:?} belongs to no session", message.id)));
    };
    let is_indexed = index::remove_to_update(conn, &mut session, address)?;
    let had_elisions = elision::has_of(conn, address)?;
    elision::remove_changed(conn, address, &message)?;
    let is_plain = covered_by.is_empty() && !had_elisions && session.head == Some(address);
    recount(conn, &mut session, address, count, is_plain)?;
    message::rename_mentions(conn, address, &message)?;
    conn.run(REPLACE, (&content, count, address))?;
    usage::record_changed(conn, address, &message)?;
    session_row::store(conn, &session)?;
    if is_indexed {
        index::add(conn, address)?;
    }
    Ok(Updated { is_new: false, is_changed: true, covered_by })
}

const REPLACE: &str = concat!(
    "UPDATE message SET ",
    content_columns!(assign),
    ", ",
    token_columns!(assign),
    " WHERE address = ?"
);

/// Keeps the session's count up to date, if the change alone determines it.
///
/// A message that is streamed grows at the head; counting the whole path on each update would be too slow.
fn recount(
    conn: &Connection,
    session: &mut SessionRow,
    address: Address,
    after: TokenCount,
    is_plain: bool,
) -> BackendResult<()> {
    let (is_hidden, before): (bool, TokenCount) = conn.one(COUNT_BEFORE, address)?;
    let is_known =
        is_plain && before.counter == session.counter && after.counter == session.counter;
    let changed = |tokens: u64| match is_hidden {
        true => Some(tokens),
        false => tokens.checked_sub(before.tokens)?.checked_add(after.tokens),
    };
    // A concurrent count must not store an older total.
    session.changes = session.changes.wrapping_add(1);
    session.set_visible_tokens(session.visible_tokens.0.filter(|_| is_known).and_then(changed));
    Ok(())
}

const COUNT_BEFORE: &str =
    concat!("SELECT hidden", token_columns!(names), " FROM message WHERE address = ?1");

/// Returns whether the row holds exactly this content.
///
/// Text is compared, not values: two JSON texts that are equal as `f64` may hold different numbers.
fn is_stored(conn: &Connection, address: Address, content: &Content<'_>) -> BackendResult<bool> {
    conn.one(IS_STORED, (address, content, address))
}

const IS_STORED: &str = concat!(
    "SELECT (address",
    content_columns!(names),
    ") IS NOT DISTINCT FROM (?",
    content_columns!(values),
    ") FROM message WHERE address = ?"
);

/// Returns those of a session, in order of creation.
pub(crate) fn unfinished(conn: &Connection, session: &SessionRow) -> BackendResult<Vec<Message>> {
    let mut found = Vec::new();
    for address in children::addresses(conn, UNFINISHED, session.key)? {
        found.extend(message::read(conn, address)?.filter(Message::is_unfinished));
    }
    Ok(found)
}

pub(super) const UNFINISHED: &str = "SELECT address
   FROM message
  WHERE hidden = 1 AND address BETWEEN ?1 AND ?2 AND metadata LIKE '%unfinished%'
  ORDER BY address";

/// Returns whether the message at an address is unfinished.
pub(super) fn is_unfinished(conn: &Connection, address: Address) -> BackendResult<bool> {
    // Parsing costs more, and few messages are hidden.
    let is_hidden = conn.has(IS_HIDDEN, address)?;
    Ok(is_hidden && message::read(conn, address)?.is_some_and(|it| it.is_unfinished()))
}

const IS_HIDDEN: &str = "SELECT 1 FROM message WHERE address = ?1 AND hidden = 1";

/// Replaces an unfinished message, or deletes it.
pub(crate) fn settle(
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
        conn.run(SHOW, address)?;
        session.invalidate_visible_tokens();
        session_row::store(conn, &session)?;
    }
    update(conn, name, content, counted, max_bytes).map(drop)
}

const SHOW: &str = "UPDATE message SET hidden = 0 WHERE address = ?1";
