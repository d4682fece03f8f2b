//! Reading the messages of a planned history, in either direction, a batch at a time.
//!
//! Stretches that lie close together are read with one statement that steps over the rows between
//! them; a seek costs about as much as eight steps.

use rusqlite::{Connection, Row};

use super::fault::Outcome;
use super::message::{StoredMessage, nearest_living};
use super::{compaction, message};
use crate::id::MessageId;
use crate::message::Message;
use crate::tree::{Address, Plan, Stretch};
use crate::view::Order;

/// How many rows are stepped over rather than sought past.
const MAX_GAP: i64 = 8;
/// A batch ends after this many bytes of content, so that long messages do not pile up.
const BATCH_BYTES: usize = 4 << 20;

/// A plan being read.
pub(super) struct PlanReader {
    /// In the order of reading.
    stretches: Vec<Stretch>,
    order: Order,
    /// The stretch to read next ..
    at: usize,
    /// .. and the address in it, if it was begun.
    from: Option<Address>,
    /// Whether asides are left out.
    hides_asides: bool,
}

/// One item as read, before its parent is named.
struct Item {
    /// `None` for a summary.
    address: Option<Address>,
    parent: Option<Address>,
    /// What the next item's parent is called, if it hangs from this one.
    name: Option<MessageId>,
    message: Option<Message>,
}

impl PlanReader {
    pub(super) fn new(mut plan: Plan, order: Order, hides_asides: bool) -> Self {
        if order == Order::OldestFirst {
            plan.reverse();
        }
        Self { stretches: plan, order, at: 0, from: None, hides_asides }
    }

    /// Adds a stretch to the end of what is to be read.
    pub(super) fn push(&mut self, stretch: Stretch) {
        self.stretches.push(stretch);
    }

    /// Returns how many stretches were planned.
    pub(super) fn len(&self) -> usize {
        self.stretches.len()
    }

    /// Returns whether nothing was planned.
    pub(super) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Returns whether everything planned was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.stretches.len()
    }

    /// Returns everything that is left.
    pub(super) fn rest(&mut self, conn: &Connection) -> Outcome<Vec<Message>> {
        let mut items = Vec::new();
        while self.at < self.stretches.len() {
            self.read_some(conn, usize::MAX, usize::MAX, &mut items)?;
        }
        self.name_parents(conn, items)
    }

    /// Returns the next messages, `limit` at the most; none only at the end.
    pub(super) fn next(&mut self, conn: &Connection, limit: usize) -> Outcome<Vec<Message>> {
        let (mut items, mut count, mut bytes) = (Vec::new(), 0, 0);
        while count < limit && bytes < BATCH_BYTES && self.at < self.stretches.len() {
            let (more, more_bytes) =
                self.read_some(conn, limit - count, BATCH_BYTES - bytes, &mut items)?;
            count += more;
            bytes += more_bytes;
        }
        self.name_parents(conn, items)
    }

    /// Goes on after this address, if the plan holds it.
    pub(super) fn skip_past(&mut self, address: Address) -> bool {
        let holds = |stretch: &Stretch| matches!(*stretch, Stretch::Messages { first, last } if first <= address && address <= last);
        let Some(at) = self.stretches.iter().position(holds) else { return false };
        self.at = at;
        self.set_from(match self.order {
            Order::OldestFirst => address.after(),
            Order::NewestFirst => address.before(),
        });
        true
    }

    /// Goes on after the summary of this compaction, if the plan holds it.
    pub(super) fn skip_past_summary(&mut self, key: i64) -> bool {
        let holds =
            |stretch: &Stretch| matches!(stretch, Stretch::Summary(overlay) if overlay.key == key);
        let Some(at) = self.stretches.iter().position(holds) else { return false };
        (self.at, self.from) = (at + 1, None);
        true
    }

    /// Reads one summary or one group of stretches; returns how many messages and bytes it gave.
    fn read_some(
        &mut self,
        conn: &Connection,
        limit: usize,
        max_bytes: usize,
        items: &mut Vec<Item>,
    ) -> Outcome<(usize, usize)> {
        if let Stretch::Summary(overlay) = self.stretches[self.at] {
            self.at += 1;
            // Taken off since the plan was made: then it is skipped, as a deleted message is.
            let Some(compaction) = compaction::by_key(conn, overlay.key)? else {
                return Ok((0, 0));
            };
            items.push(Item {
                address: None,
                parent: message::parent(conn, overlay.first)?,
                name: None,
                message: Some(compaction.to_message(None)),
            });
            return Ok((1, 0));
        }
        let (low, high) = self.group(limit);
        let sql = match self.order {
            Order::OldestFirst => FORWARD,
            Order::NewestFirst => BACKWARD,
        };
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query((low, high))?;
        let (mut count, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            let address: Address = row.get(0)?;
            if !self.reaches(address) {
                continue;
            }
            let item = self.item(row)?;
            // What is not shown is not kept: counting it could end a batch with nothing in it.
            if item.message.is_some() {
                count += 1;
                bytes += row.get_ref(4)?.as_bytes_or_null()?.map_or(0, <[u8]>::len);
            }
            items.push(item);
            self.set_from(match self.order {
                Order::OldestFirst => address.after(),
                Order::NewestFirst => address.before(),
            });
            if count >= limit || bytes >= max_bytes {
                return Ok((count, bytes));
            }
        }
        // The group is read to its end, though its last messages may have been deleted since.
        self.pass(match self.order {
            Order::OldestFirst => high,
            Order::NewestFirst => low,
        });
        Ok((count, bytes))
    }

    fn item(&self, row: &Row<'_>) -> Outcome<Item> {
        let stored = StoredMessage::read(row)?;
        let name = stored.message.as_ref().map(|message| message.id.clone());
        let message = stored.message.filter(|message| !(self.hides_asides && message.is_aside));
        Ok(Item { address: Some(stored.address), parent: stored.parent, name, message })
    }

    /// Returns the addresses of the stretches from here on that are read with one statement.
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
            && matches!(self.stretches.get(next), Some(Stretch::Messages { .. }))
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
        match self.stretches[at] {
            Stretch::Messages { first, last } => (first, last),
            Stretch::Summary(overlay) => (overlay.first, overlay.last),
        }
    }

    /// Returns whether the plan holds the address, having gone on to the stretch that may.
    fn reaches(&mut self, address: Address) -> bool {
        self.pass(match self.order {
            Order::OldestFirst => address.before(),
            Order::NewestFirst => address.after(),
        });
        match self.stretches.get(self.at) {
            Some(Stretch::Messages { first, last }) => *first <= address && address <= *last,
            _ => false,
        }
    }

    /// Leaves the stretches of messages that end at this address or were passed before it.
    fn pass(&mut self, address: Address) {
        while let Some(Stretch::Messages { first, last }) = self.stretches.get(self.at) {
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

    /// Names each message's parent: mostly the item before it on the path.
    fn name_parents(&self, conn: &Connection, mut items: Vec<Item>) -> Outcome<Vec<Message>> {
        if self.order == Order::NewestFirst {
            items.reverse();
        }
        let mut messages = Vec::with_capacity(items.len());
        let mut before: Option<(Address, Option<MessageId>)> = None;
        for item in items {
            let parent = match (item.parent, before) {
                (None, _) => None,
                (Some(parent), Some((address, name))) if address == parent => name,
                (parent, _) => nearest_living(conn, parent)?.map(|(_, id)| id),
            };
            before = item.address.map(|address| (address, item.name.or_else(|| parent.clone())));
            if let Some(mut message) = item.message {
                message.parent = parent;
                messages.push(message);
            }
        }
        if self.order == Order::NewestFirst {
            messages.reverse();
        }
        Ok(messages)
    }
}

pub(super) const FORWARD: &str =
    "SELECT address, parent, id, role, parts, metadata, extra, aside, created_at
   FROM message
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address";

pub(super) const BACKWARD: &str =
    "SELECT address, parent, id, role, parts, metadata, extra, aside, created_at
   FROM message
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address DESC";
