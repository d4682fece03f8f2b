//! Forking: a new session from a copy of a path.

use super::catalog;
use super::context::{elision, entry};
use super::row::message as compaction_row;
use super::row::session::{self as session_row, SessionRow};
use super::session::Named;
use super::tokens::CountedMessages;
use super::{append, compaction, head, index, message, path};
use crate::error::Error;
use crate::id::{MessageId, SessionId};
use crate::message::Message;
use crate::outcome::SessionDetails;
use crate::sql::{BackendError, BackendResult, Connection};
use crate::tree::{Address, PlanPart, Span};
use crate::view::{ExpectedHead, Parent};

/// A range of the path, and the number at which its copy starts.
struct Copy {
    first: Address,
    last: Address,
    start: u32,
}

/// Copies the path to a message into a new session: messages with their tags, compactions, labels, elisions, and the texts of
/// the session's own blocks.
///
/// Tombstones are copied too, except those at the end. Without them, compactions that end at different tombstones would
/// end at the same message, and the fork could show another one than its source.
pub(crate) fn fork(
    conn: &Connection,
    from: &Named<'_>,
    at: &MessageId,
    id: &SessionId,
    details: &SessionDetails,
) -> BackendResult<i64> {
    let source = from.find(conn)?;
    let leaf = message::place(conn, source.map(|source| source.key), from, at)?;
    if session_row::find(conn, id)?.is_some() {
        return Err(BackendError::Own(Error::SessionExists { id: id.clone() }));
    }
    session_row::claim(conn, leaf.session())?;
    let mut target = catalog::create(conn, id)?;
    inherit(conn, leaf.session(), &target, from, Some(at))?;
    session_row::set_details(conn, target.key, details)?;

    let end = End::of(conn, leaf, || {
        BackendError::Own(Error::UnknownMessage { session: SessionId::clone(from), id: at.clone() })
    })?;
    let copies = plan_copies(conn, end.at)?;
    let messages = copy_messages(conn, &target, &copies)?;
    let count = copies.last().map_or(0, |copy| copy.start + copy.width() - 1);
    target.next = u64::from(count) + 1;
    target.head = Some(Address::new(target.key, count));
    target.invalidate_visible_tokens();
    index::make_pending(conn, &mut target, 1)?;
    target.messages = messages;
    let last: i64 = conn.one("SELECT created_at FROM message WHERE address = ?1", end.at)?;
    target.note_message_at(last);
    session_row::store(conn, &target)?;
    session_row::store_listed_at(conn, &mut target)?;
    copy_compactions(conn, leaf, &target, &copies, &end)?;
    copy_labels(conn, leaf.session(), &target, &copies)?;
    copy_elisions(conn, leaf.session(), &target, &copies)?;
    copy_tags(conn, &target, &copies)?;
    entry::copy(conn, leaf.session(), target.key)?;
    Ok(target.key)
}

/// Ends a session with a reason and creates the one that continues it: it starts with one message and copies of the
/// texts of the session's own blocks.
pub(crate) fn split(
    conn: &Connection,
    from: &Named<'_>,
    id: &SessionId,
    opening: &Message,
    counted: &CountedMessages<'_>,
    end_reason: &str,
    max_bytes: usize,
) -> BackendResult<i64> {
    let unknown = || BackendError::Own(Error::UnknownSession { id: SessionId::clone(from) });
    let source = from.find(conn)?.ok_or_else(unknown)?;
    if session_row::find(conn, id)?.is_some() {
        return Err(BackendError::Own(Error::SessionExists { id: id.clone() }));
    }
    let info = session_row::info(conn, from)?.ok_or_else(unknown)?;
    info.check_split(end_reason)?;
    let target = catalog::create(conn, id)?;
    let head = message::id_of_place(conn, source.head)?;
    inherit(conn, source.key, &target, from, head.as_ref())?;
    session_row::set_details(
        conn,
        target.key,
        &SessionDetails { name: info.name, ..SessionDetails::default() },
    )?;
    let opening = std::slice::from_ref(opening);
    let to = Named::unbound(id);
    append::append(conn, &to, &Parent::Head, &ExpectedHead::Any, opening, counted, max_bytes)?;
    entry::copy(conn, source.key, target.key)?;
    let end_reason = Some(end_reason.to_owned());
    session_row::set_details(
        conn,
        source.key,
        &SessionDetails { end_reason, ..SessionDetails::default() },
    )?;
    catalog::binding::continue_in(conn, source.key, target.key)?;
    Ok(target.key)
}

/// Copies the details of the source, and records where it was forked.
fn inherit(
    conn: &Connection,
    source: i64,
    target: &SessionRow,
    from: &SessionId,
    at: Option<&MessageId>,
) -> BackendResult<()> {
    conn.run(
        "UPDATE session
            SET (model, source, metadata, owner) =
                (SELECT model, source, metadata, owner FROM session WHERE key = ?2),
                parent_session = ?3, fork_point = ?4
          WHERE key = ?1",
        (target.key, source, from.as_str(), at.map(MessageId::as_str)),
    )?;
    Ok(())
}

/// Returns the ranges to copy, oldest first.
fn plan_copies(conn: &Connection, leaf: Address) -> BackendResult<Vec<Copy>> {
    let mut copies: Vec<Copy> = Vec::new();
    let mut start = 1;
    for planned in path::plan(conn, leaf.session(), Some(leaf), true)?.iter().rev() {
        let PlanPart::Messages { first, last } = *planned else { continue };
        let copy = Copy { first, last, start };
        start += copy.width();
        copies.push(copy);
    }
    Ok(copies)
}

/// Returns how many messages were copied, tombstones not counted.
fn copy_messages(conn: &Connection, target: &SessionRow, copies: &[Copy]) -> BackendResult<i64> {
    let mut messages = 0;
    for copy in copies {
        let start = Address::new(target.key, copy.start);
        let shift = start.raw() - copy.first.raw();
        let first = Address::new(target.key, 1);
        let rows = conn.run(COPY, (copy.first, copy.last, shift, first))?;
        let dead: i64 = conn.one(TOMBSTONES, (copy.first, copy.last))?;
        messages += rows as i64 - dead;
    }
    Ok(messages)
}

const TOMBSTONES: &str = "SELECT count(*)
   FROM message
  WHERE address BETWEEN ?1 AND ?2 AND id IS NULL";

pub(super) const COPY: &str = concat!(
    "INSERT INTO message (address, parent, origin",
    identity_columns!(names),
    content_columns!(names),
    token_columns!(names),
    ")
 SELECT address + ?3, CASE WHEN address + ?3 = ?4 THEN NULL ELSE address + ?3 - 1 END,
        coalesce(origin, address)",
    identity_columns!(names),
    content_columns!(names),
    token_columns!(names),
    "
   FROM message
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address"
);

/// Makes the copies of a session's messages, which were written again, those of the new ones.
pub(super) fn follow(conn: &Connection, session: i64) -> BackendResult<()> {
    conn.run(FOLLOW, (Address::range_of(session), session))?;
    Ok(())
}

pub(super) const FOLLOW: &str = "UPDATE message
    SET origin = (SELECT present.address
                    FROM message AS present
                   WHERE present.session = ?3 AND present.id = message.id)
  WHERE origin BETWEEN ?1 AND ?2
    AND EXISTS (SELECT 1
                  FROM message AS present
                 WHERE present.session = ?3 AND present.id = message.id)";

/// The last message of the copy.
///
/// A fork at a summary whose last message is deleted would end with tombstones, which no message keeps. So it ends at the
/// nearest message above them, and so do the copies of the compactions that end at these tombstones.
struct End {
    at: Address,
    /// The id of that message, and the summary that the source shows last; `None` if there are no such tombstones.
    moved: Option<(MessageId, Span)>,
}

impl End {
    /// # Errors
    /// `unknown` if all messages of the summary are deleted.
    fn of(
        conn: &Connection,
        leaf: Address,
        unknown: impl Fn() -> BackendError,
    ) -> BackendResult<Self> {
        let (at, id) = message::nearest_living(conn, Some(leaf))?.ok_or_else(&unknown)?;
        if at == leaf {
            return Ok(Self { at, moved: None });
        }
        match path::plan(conn, leaf.session(), Some(leaf), false)?.first() {
            Some(PlanPart::Summary(shown)) if shown.first <= at => {
                Ok(Self { at, moved: Some((id, *shown)) })
            }
            _ => Err(unknown()),
        }
    }
}

/// Copies the compactions whose last message is on the path; then their first one is, too.
fn copy_compactions(
    conn: &Connection,
    leaf: Address,
    target: &SessionRow,
    copies: &[Copy],
    end: &End,
) -> BackendResult<()> {
    let mut all = compaction::all(conn, leaf.session())?;
    if let Some((id, shown)) = &end.moved {
        let ends = plan_copies(conn, leaf)?;
        // One that reaches further back would be shown instead, if both end at the same message.
        all.retain(|(span, _)| span.last < end.at || span.first >= shown.first);
        // Of two with the same range the later copy is shown.
        all.sort_by_key(|(span, _)| (span.last, span.key));
        for (span, compaction) in &mut all {
            if span.last > end.at && number(&ends, span.last).is_some() {
                span.last = end.at;
                compaction.last = id.clone();
            }
        }
    }
    for (span, compaction) in all {
        let first = number(copies, span.first);
        let last = number(copies, span.last);
        if let (Some(first), Some(last)) = (first, last) {
            let copy = Span {
                key: 0,
                first: Address::new(target.key, first),
                last: Address::new(target.key, last),
            };
            compaction_row::insert_compaction(conn, target.key, copy, &compaction)?;
        }
    }
    Ok(())
}

fn copy_labels(
    conn: &Connection,
    source: i64,
    target: &SessionRow,
    copies: &[Copy],
) -> BackendResult<()> {
    for (found, address) in head::labels(conn, source)? {
        if let Some(number) = number(copies, address) {
            head::copy_label(conn, target.key, &found.name, Address::new(target.key, number))?;
        }
    }
    Ok(())
}

fn copy_elisions(
    conn: &Connection,
    source: i64,
    target: &SessionRow,
    copies: &[Copy],
) -> BackendResult<()> {
    if !elision::has_any(conn, source)? {
        return Ok(());
    }
    for copy in copies {
        let start = Address::new(target.key, copy.start);
        elision::copy(conn, copy.first, copy.last, start.raw() - copy.first.raw())?;
    }
    Ok(())
}

fn copy_tags(conn: &Connection, target: &SessionRow, copies: &[Copy]) -> BackendResult<()> {
    for copy in copies {
        let start = Address::new(target.key, copy.start);
        head::copy_tags(conn, copy.first, copy.last, start.raw() - copy.first.raw())?;
    }
    Ok(())
}

/// Returns the number of an address's copy, if the address is on the path.
fn number(copies: &[Copy], address: Address) -> Option<u32> {
    let place = copies.partition_point(|copy| copy.last < address);
    copies.get(place).filter(|copy| copy.first <= address).map(|copy| copy.number(address))
}

impl Copy {
    fn width(&self) -> u32 {
        (self.last.raw() - self.first.raw()) as u32 + 1
    }

    fn number(&self, address: Address) -> u32 {
        self.start + (address.raw() - self.first.raw()) as u32
    }
}
