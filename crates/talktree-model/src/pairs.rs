//! Which results of a list of messages belong to which calls.

use std::collections::{BTreeMap, BTreeSet};

use talktree::{Message, Pairing, ToolPairs};

/// A part, by the number of its message and its place in the message.
pub(super) type Spot = (usize, usize);

/// Returns what each tool part is to those before it, and the calls that wait for a result at the end.
pub(super) fn paired<'m>(
    messages: impl Iterator<Item = (usize, &'m Message)>,
) -> (BTreeMap<Spot, Pairing<Spot>>, BTreeSet<Spot>) {
    let mut pairs = ToolPairs::default();
    let mut found = BTreeMap::new();
    for (at, message) in messages {
        for (place, part) in message.parts.iter().enumerate() {
            if let Some(tool) = part.tool() {
                found.insert((at, place), pairs.take(at, &tool, (at, place)));
            }
        }
    }
    (found, pairs.waiting().collect())
}
