//! The records of a session, in the order of an export.
//!
//! A tombstone at which a compaction starts or ends is a record with a number, which comes before the messages below it.
//! So the places of compactions survive a copy, and with them what each path shows.

use std::collections::HashMap;

use crate::compaction::{Compaction, Place, PlacedCompaction, PlacedCompactions};
use crate::error::Result;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::outcome::{Label, MessageTag};
use crate::session::Session;
use crate::storage::context::Elision;

/// The number of a tombstone within an export, from 1.
pub(super) type Number = usize;

/// A record of a session.
pub(super) enum Record<'a> {
    Tombstone {
        number: Number,
        /// The nearest message above.
        parent: Option<&'a MessageId>,
        /// The tombstone between it and this one.
        below: Option<Number>,
        /// The compactions that start here, and those that end here.
        starts: Vec<&'a CompactionId>,
        ends: Vec<&'a CompactionId>,
    },
    Message {
        message: &'a Message,
        /// The tombstone between the message and its parent.
        below: Option<Number>,
    },
    Compaction {
        compaction: &'a Compaction,
        /// The tombstones at its ends.
        first: Option<Number>,
        last: Option<Number>,
    },
    Elision(&'a Elision),
    Label(&'a Label),
    Tag(&'a MessageTag),
    Head(Option<&'a MessageId>),
}

/// Calls `with` once for each record after that of the session itself.
pub(super) fn each_record(
    session: &Session,
    with: &mut dyn FnMut(Record<'_>) -> Result<()>,
) -> Result<()> {
    // Read before the messages, so each refers to messages that are exported.
    let placed = session.storage().placed_compactions()?;
    let labels = session.labels()?;
    let tags = session.all_tags()?;
    let elisions = session.context().store().elisions()?;
    let head = session.head()?;

    let mut tombstones = Tombstones::of(&placed);
    for message in session.all_messages() {
        let message = message?;
        let below = match tombstones.above.get(&message.id) {
            Some(at) => Some(tombstones.number(*at, message.parent.as_ref(), with)?),
            None => None,
        };
        with(Record::Message { message: &message, below })?;
    }
    for PlacedCompaction { compaction, first, last } in &placed.compactions {
        let (first, last) = (tombstones.number_of(first), tombstones.number_of(last));
        with(Record::Compaction { compaction, first, last })?;
    }
    for elision in &elisions {
        with(Record::Elision(elision))?;
    }
    for label in &labels {
        with(Record::Label(label))?;
    }
    for tag in &tags {
        with(Record::Tag(tag))?;
    }
    with(Record::Head(head.as_ref()))
}

/// The tombstones of a session, which are numbered in the order of the messages below them.
struct Tombstones<'a> {
    placed: &'a PlacedCompactions,
    /// The tombstone above a message.
    above: HashMap<&'a MessageId, usize>,
    numbers: HashMap<usize, Number>,
    /// The compactions that start at a tombstone, and those that end there.
    compactions: HashMap<usize, (Vec<&'a CompactionId>, Vec<&'a CompactionId>)>,
}

impl<'a> Tombstones<'a> {
    fn of(placed: &'a PlacedCompactions) -> Self {
        let above = placed.tombstones.iter().enumerate();
        let above = above.flat_map(|(at, found)| found.children.iter().map(move |id| (id, at)));
        let mut compactions: HashMap<_, (Vec<_>, Vec<_>)> = HashMap::new();
        for PlacedCompaction { compaction, first, last } in &placed.compactions {
            if let Place::Tombstone(at) = first {
                compactions.entry(*at).or_default().0.push(&compaction.id);
            }
            if let Place::Tombstone(at) = last {
                compactions.entry(*at).or_default().1.push(&compaction.id);
            }
        }
        Self { placed, above: above.collect(), numbers: HashMap::new(), compactions }
    }

    fn number_of(&self, place: &Place) -> Option<Number> {
        match place {
            Place::Message(_) => None,
            Place::Tombstone(at) => self.numbers.get(at).copied(),
        }
    }

    /// Returns the number of a tombstone, and writes those that have none yet, parents first. `parent` is the nearest
    /// message above.
    fn number(
        &mut self,
        at: usize,
        parent: Option<&MessageId>,
        with: &mut dyn FnMut(Record<'_>) -> Result<()>,
    ) -> Result<Number> {
        let mut missing = Vec::new();
        let mut next = Some(at);
        while let Some(at) = next.filter(|at| !self.numbers.contains_key(at)) {
            missing.push(at);
            next = match self.placed.tombstones[at].parent {
                Some(Place::Tombstone(above)) => Some(above),
                _ => None,
            };
        }
        let mut below = next.and_then(|at| self.numbers.get(&at).copied());
        for at in missing.into_iter().rev() {
            let number = self.numbers.len() + 1;
            self.numbers.insert(at, number);
            let (starts, ends) = self.compactions.get(&at).cloned().unwrap_or_default();
            with(Record::Tombstone { number, parent, below, starts, ends })?;
            below = Some(number);
        }
        Ok(self.numbers[&at])
    }
}
