//! Reading the messages of a plan, in either direction, a batch at a time.
//!
//! Stretches that are close together are read by one statement that steps over the rows between them; a seek costs
//! about as much as eight steps.

use super::context::elision;
use super::message::nearest_living;
use super::row::message::StoredMessage;
use super::{compaction, message};
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::sql::{BackendResult, Connection, Read};
use crate::tree::{Address, Plan, PlanPart};
use crate::view::Order;

/// How many rows are stepped over before a seek is cheaper.
const MAX_GAP: i64 = 8;
/// A batch ends after this many bytes of content, which limits the memory that long messages take.
const BATCH_BYTES: usize = 4 << 20;
/// How many messages memory is reserved for at most; a damaged plan may promise more.
const MAX_RESERVED: usize = 1 << 16;

/// A plan that is being read.
pub(crate) struct PlanReader {
    /// In reading order.
    planned_parts: Vec<PlanPart>,
    order: Order,
    /// The range to read next.
    at: usize,
    /// The next address in that range, if part of it was read.
    from: Option<Address>,
    /// Whether the messages are read as a model should see them: without hidden ones, with elisions applied.
    is_shown: bool,
    /// Whether the session has elisions: most have none.
    has_elisions: bool,
}

/// A message, or the summary of a compaction by its key.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Message(Address),
    Summary(i64),
}

impl Place {
    /// Returns the place of a message or a summary of a session; `None` if the id is unknown.
    pub(crate) fn find(
        conn: &Connection,
        session: i64,
        id: &MessageId,
    ) -> BackendResult<Option<Self>> {
        Ok(match CompactionId::from_message(id) {
            None => message::find(conn, session, id)?.map(Self::Message),
            Some(id) => compaction::find(conn, session, &id)?.map(|span| Self::Summary(span.key)),
        })
    }
}

/// Messages as they are read, each with its parent's id. The parent is usually the row read just before or just
/// after.
struct Collected {
    messages: Vec<Message>,
    order: Order,
    /// Oldest first: the address of the previous row, and the id that its children have as parent.
    before: Option<(Address, Option<MessageId>)>,
    /// Newest first: the place of the message whose parent id is not known yet, and the parent's address.
    waiting: Option<(usize, Address)>,
}

impl PlanReader {
    pub(crate) fn new(mut plan: Plan, order: Order, is_shown: bool) -> Self {
        if order == Order::OldestFirst {
            plan.reverse();
        }
        Self { planned_parts: plan, order, at: 0, from: None, is_shown, has_elisions: false }
    }

    pub(super) fn push(&mut self, planned: PlanPart) {
        self.planned_parts.push(planned);
    }

    pub(super) fn len(&self) -> usize {
        self.planned_parts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.planned_parts.is_empty()
    }

    /// Returns whether the whole plan was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.planned_parts.len()
    }

    /// Returns how many messages and summaries of the whole plan are still stored.
    pub(super) fn count_stored(&self, conn: &Connection) -> BackendResult<u64> {
        let mut total = 0;
        for planned in &self.planned_parts {
            total += match *planned {
                PlanPart::Messages { first, last } => {
                    conn.one::<u64>(STORED, (first, last, self.is_shown))?
                }
                PlanPart::Summary(span) => u64::from(compaction::by_key(conn, span.key)?.is_some()),
            };
        }
        Ok(total)
    }

    /// Returns everything that is left.
    pub(crate) fn rest(&mut self, conn: &Connection) -> BackendResult<Vec<Message>> {
        self.look_for_elisions(conn)?;
        self.ask_ahead(conn)?;
        let mut read = Collected::new(self.order, self.width(MAX_RESERVED));
        while self.at < self.planned_parts.len() {
            self.read_some(conn, usize::MAX, usize::MAX, &mut read)?;
        }
        read.done(conn)
    }

    /// Returns the next messages, at most `limit`; none only at the end.
    pub(crate) fn next(&mut self, conn: &Connection, limit: usize) -> BackendResult<Vec<Message>> {
        self.look_for_elisions(conn)?;
        let (mut count, mut bytes) = (0, 0);
        let mut read = Collected::new(self.order, self.width(limit.min(MAX_RESERVED)));
        while count < limit && bytes < BATCH_BYTES && self.at < self.planned_parts.len() {
            let (more, more_bytes) =
                self.read_some(conn, limit - count, BATCH_BYTES - bytes, &mut read)?;
            count += more;
            bytes += more_bytes;
        }
        read.done(conn)
    }

    /// Asks for the first parts of what is left, all at once.
    fn ask_ahead(&mut self, conn: &Connection) -> BackendResult<()> {
        let begin = (self.at, self.from);
        let until = self.planned_parts.len().min(self.at + conn.read_ahead());
        while self.at < until {
            let (first, _) = self.ends(self.at);
            match self.planned_parts[self.at] {
                PlanPart::Summary(span) => {
                    conn.ask_ahead(compaction::BY_KEY, span.key)?;
                    conn.ask_ahead(message::PARENT, first)?;
                    self.at += 1;
                }
                PlanPart::Messages { .. } => {
                    let (low, high) = self.group(usize::MAX);
                    conn.ask_ahead(self.rows(), (low, high, with_gap(usize::MAX)))?;
                    self.pass(if self.order == Order::OldestFirst { high } else { low });
                }
            }
            // The message above it, whose id the part's first message shows.
            conn.ask_ahead(message::ID_AND_PARENT, first.before())?;
        }
        (self.at, self.from) = begin;
        Ok(())
    }

    /// Returns the statement that reads messages.
    fn rows(&self) -> &'static str {
        match self.order {
            Order::OldestFirst => FORWARD,
            Order::NewestFirst => BACKWARD,
        }
    }

    /// Asks once per read whether the session has any elision.
    fn look_for_elisions(&mut self, conn: &Connection) -> BackendResult<()> {
        self.has_elisions = self.is_shown
            && self.at < self.planned_parts.len()
            && elision::has_any(conn, self.ends(self.at).0.session())?;
        Ok(())
    }

    /// Returns how many addresses and summaries are left to read, at most `max`.
    fn width(&self, max: usize) -> usize {
        let mut total = 0;
        for planned in &self.planned_parts[self.at..] {
            total += match planned {
                PlanPart::Messages { first, last } => (last.raw() - first.raw()) as usize + 1,
                PlanPart::Summary(_) => 1,
            };
            if total >= max {
                return max;
            }
        }
        total
    }

    /// Continues after this place; `false` if the plan does not contain it.
    pub(crate) fn skip_past(&mut self, place: Place) -> bool {
        let holds = |planned: &PlanPart| match (*planned, place) {
            (PlanPart::Messages { first, last }, Place::Message(at)) => first <= at && at <= last,
            (PlanPart::Summary(span), Place::Summary(key)) => span.key == key,
            _ => false,
        };
        let Some(at) = self.planned_parts.iter().position(holds) else { return false };
        (self.at, self.from) = (at, None);
        match (place, self.order) {
            (Place::Summary(_), _) => self.at += 1,
            (Place::Message(address), Order::OldestFirst) => self.set_from(address.after()),
            (Place::Message(address), Order::NewestFirst) => self.set_from(address.before()),
        }
        true
    }

    /// Reads one summary or one group of ranges; returns how many messages and bytes that were.
    fn read_some(
        &mut self,
        conn: &Connection,
        limit: usize,
        max_bytes: usize,
        read: &mut Collected,
    ) -> BackendResult<(usize, usize)> {
        if let PlanPart::Summary(span) = self.planned_parts[self.at] {
            self.at += 1;
            // Removed since the plan was made: skipped, as a deleted message is.
            let Some(compaction) = compaction::by_key(conn, span.key)? else {
                return Ok((0, 0));
            };
            let parent = message::parent(conn, span.first)?;
            read.add_summary(conn, compaction.to_message(None), parent)?;
            return Ok((1, 0));
        }
        let (low, high) = self.group(limit);
        let mut left = with_gap(limit);
        let (mut count, mut bytes, mut last, mut is_full) = (0, 0, None, false);
        if left as usize <= conn.read_ahead() {
            // As one, not in portions.
            conn.ask_ahead(self.rows(), (low, high, left))?;
        }
        conn.each(self.rows(), (low, high, left), |row| {
            let address = Address::read(row, 0)?;
            (left, last) = (left - 1, Some(address));
            if !self.reaches(address) {
                return Ok(true);
            }
            let mut stored = StoredMessage::read(row)?;
            if self.has_elisions
                && let Some(message) = &mut stored.message
            {
                elision::apply(conn, address, message)?;
            }
            let is_hidden = stored.message.as_ref().is_some_and(|message| message.is_hidden);
            let is_hidden = self.is_shown && is_hidden;
            // Hidden messages do not count: otherwise a batch could end with nothing in it.
            if stored.message.is_some() && !is_hidden {
                count += 1;
                bytes += stored.bytes;
            }
            read.add(conn, stored, is_hidden)?;
            self.set_from(match self.order {
                Order::OldestFirst => address.after(),
                Order::NewestFirst => address.before(),
            });
            is_full = count >= limit || bytes >= max_bytes;
            Ok(!is_full)
        })?;
        if is_full {
            return Ok((count, bytes));
        }
        let next = match (self.order, last.filter(|_| left == 0)) {
            (Order::OldestFirst, Some(last)) => last.after(),
            (Order::NewestFirst, Some(last)) => last.before(),
            // The group is done, even if its last messages were deleted since.
            (Order::OldestFirst, None) => high.after(),
            (Order::NewestFirst, None) => low.before(),
        };
        if self.reaches(next) {
            self.set_from(next);
        }
        Ok((count, bytes))
    }

    /// Returns the range of addresses that one statement reads: the current range and close ones after it.
    fn group(&self, limit: usize) -> (Address, Address) {
        let (mut low, mut high) = self.ends(self.at);
        match (self.order, self.from) {
            (Order::OldestFirst, Some(from)) => low = from,
            (Order::NewestFirst, Some(from)) => high = from,
            _ => {}
        }
        let mut next = self.at + 1;
        let mut width = high.raw() - low.raw() + 1;
        while usize::try_from(width).is_ok_and(|width| width < limit)
            && matches!(self.planned_parts.get(next), Some(PlanPart::Messages { .. }))
        {
            let (first, last) = self.ends(next);
            let gap = match self.order {
                Order::OldestFirst => first.raw() - high.raw(),
                Order::NewestFirst => low.raw() - last.raw(),
            };
            if gap > MAX_GAP + 1 {
                break;
            }
            (low, high) = (low.min(first), high.max(last));
            width += last.raw() - first.raw() + 1;
            next += 1;
        }
        (low, high)
    }

    fn ends(&self, at: usize) -> (Address, Address) {
        match self.planned_parts[at] {
            PlanPart::Messages { first, last } => (first, last),
            PlanPart::Summary(span) => (span.first, span.last),
        }
    }

    /// Moves to the range that may contain the address; returns whether it does.
    fn reaches(&mut self, address: Address) -> bool {
        self.pass(match self.order {
            Order::OldestFirst => address.before(),
            Order::NewestFirst => address.after(),
        });
        match self.planned_parts.get(self.at) {
            Some(PlanPart::Messages { first, last }) => *first <= address && address <= *last,
            _ => false,
        }
    }

    /// Skips the ranges of messages that end at this address or before it in reading order.
    fn pass(&mut self, address: Address) {
        while let Some(PlanPart::Messages { first, last }) = self.planned_parts.get(self.at) {
            let is_over = match self.order {
                Order::OldestFirst => *last <= address,
                Order::NewestFirst => *first >= address,
            };
            if !is_over {
                break;
            }
            self.at += 1;
            self.from = None;
        }
    }

    fn set_from(&mut self, from: Address) {
        let (first, last) = self.ends(self.at);
        if from < first || from > last {
            (self.at, self.from) = (self.at + 1, None);
        } else {
            self.from = Some(from);
        }
    }
}

impl Collected {
    fn new(order: Order, capacity: usize) -> Self {
        Self { messages: Vec::with_capacity(capacity), order, before: None, waiting: None }
    }

    /// Adds a row. A tombstone or a hidden message only provides the parent of its children.
    fn add(&mut self, conn: &Connection, row: StoredMessage, is_hidden: bool) -> BackendResult<()> {
        let StoredMessage { address, parent, message, .. } = row;
        if let Some((place, _)) = self.waiting.filter(|(_, sought)| *sought == address) {
            self.waiting = None;
            match &message {
                Some(message) => self.messages[place].parent = Some(message.id.clone()),
                None => self.waiting = parent.map(|parent| (place, parent)),
            }
        }
        let above = match self.order {
            Order::OldestFirst => self.parent_id(conn, parent)?,
            Order::NewestFirst => None,
        };
        if self.order == Order::OldestFirst {
            let name = message.as_ref().map_or_else(|| above.clone(), |it| Some(it.id.clone()));
            self.before = Some((address, name));
        }
        match message.filter(|_| !is_hidden) {
            Some(message) => self.push(conn, Message { parent: above, ..message }, parent),
            None => Ok(()),
        }
    }

    fn add_summary(
        &mut self,
        conn: &Connection,
        summary: Message,
        parent: Option<Address>,
    ) -> BackendResult<()> {
        let above = match self.order {
            Order::OldestFirst => self.parent_id(conn, parent)?,
            Order::NewestFirst => None,
        };
        self.push(conn, Message { parent: above, ..summary }, parent)
    }

    fn push(
        &mut self,
        conn: &Connection,
        message: Message,
        parent: Option<Address>,
    ) -> BackendResult<()> {
        if self.order == Order::NewestFirst {
            self.name_waiting_parent(conn)?;
            self.waiting = parent.map(|parent| (self.messages.len(), parent));
        }
        self.messages.push(message);
        Ok(())
    }

    /// Returns the parent's id: from the previous row if that is the parent, otherwise by a query.
    fn parent_id(
        &mut self,
        conn: &Connection,
        parent: Option<Address>,
    ) -> BackendResult<Option<MessageId>> {
        match (parent, self.before.take()) {
            (None, _) => Ok(None),
            (Some(parent), Some((before, name))) if before == parent => Ok(name),
            (parent, _) => living_id(conn, parent),
        }
    }

    /// Looks up a parent that was not read.
    fn name_waiting_parent(&mut self, conn: &Connection) -> BackendResult<()> {
        if let Some((place, sought)) = self.waiting.take() {
            self.messages[place].parent = living_id(conn, Some(sought))?;
        }
        Ok(())
    }

    fn done(mut self, conn: &Connection) -> BackendResult<Vec<Message>> {
        self.name_waiting_parent(conn)?;
        Ok(self.messages)
    }
}

/// Returns how many rows are read for so many messages: some may be hidden, or between two ranges of the plan.
fn with_gap(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(MAX_GAP)
}

fn living_id(conn: &Connection, address: Option<Address>) -> BackendResult<Option<MessageId>> {
    Ok(nearest_living(conn, address)?.map(|(_, id)| id))
}

const STORED: &str = "SELECT count(*)
   FROM message
  WHERE address BETWEEN ?1 AND ?2
    AND id IS NOT NULL
    AND (hidden <> 1 OR CAST(?3 AS BIGINT) = 0)";

pub(super) const FORWARD: &str = concat!(
    "SELECT ",
    stored_columns!(),
    " FROM message WHERE address BETWEEN ?1 AND ?2 ORDER BY address LIMIT ?3"
);

pub(super) const BACKWARD: &str = concat!(
    "SELECT ",
    stored_columns!(),
    " FROM message WHERE address BETWEEN ?1 AND ?2 ORDER BY address DESC LIMIT ?3"
);
