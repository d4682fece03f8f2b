//! How entries are connected, besides by their parents.

use std::collections::{HashMap, HashSet};

use talktree::MessageId;
use talktree::records::fields::Fields;
use talktree::records::ids::message_id;

use super::{kind_of, uuid_of};

/// The `progress` entries, which only link others: the parent of each.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    parents: HashMap<MessageId, Option<MessageId>>,
}

impl Progress {
    /// Reads an entry; returns its id if it only links others.
    pub fn read(&mut self, entry: &Fields) -> Option<MessageId> {
        let uuid = uuid_of(entry).filter(|_| kind_of(entry) == "progress")?;
        self.parents.insert(uuid.clone(), entry.text("parentUuid").map(message_id));
        Some(uuid)
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.parents.len()
    }

    /// Returns the first entry from this parent upwards that is more than a link. If the links are a cycle, that is the least
    /// of them, wherever the cycle is entered: a session must not depend on the order in which its entries came.
    pub fn pass(&mut self, mut parent: Option<MessageId>) -> Option<MessageId> {
        let mut way = Vec::new();
        while let Some(link) = parent.take_if(|id| self.parents.contains_key(id)) {
            // Removed while it is followed, so a cycle of links ends.
            parent = self.parents.remove(&link).flatten();
            way.push(link);
        }
        if let Some(entry) = way.iter().position(|link| parent.as_ref() == Some(link)) {
            parent = way[entry..].iter().min().cloned();
        }
        // Path compression: the next entry below the same links finds their end at once.
        for link in way {
            self.parents.insert(link, parent.clone());
        }
        parent
    }
}

/// Which entries say how the entries of a session are connected.
///
/// Some tools write transcripts in which no entry names its parent. Then each entry is the child of the one before. Entries
/// of other programs say nothing about how the others are connected.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// The parents that messages name.
    pub(super) named: HashSet<MessageId>,
    /// Entries without a `uuid`, which were placed after the entry before them.
    pub(super) placed: HashSet<MessageId>,
    /// Entries with a `uuid` that are of no type of Claude Code.
    pub(super) foreign: HashSet<MessageId>,
}

impl Chain {
    pub(super) fn extend(&mut self, other: Self) {
        self.named.extend(other.named);
        self.placed.extend(other.placed);
        self.foreign.extend(other.foreign);
    }

    /// Returns whether an entry names this one as its parent.
    pub fn is_named(&self, id: &MessageId) -> bool {
        self.named.contains(id)
    }

    /// Returns whether an entry names one as its parent that is here.
    pub fn is_connected(&self, is_here: impl FnMut(&MessageId) -> bool) -> bool {
        self.named.iter().any(is_here)
    }

    /// Returns whether of this many entries there are enough to be connected.
    pub fn is_long(&self, entries: usize) -> bool {
        entries >= self.placed.len() + self.foreign.len() + 2
    }

    /// Returns the parent of an entry where no entry names its parent. `before` is the entry before it.
    pub fn follow(
        &self,
        id: &MessageId,
        parent: Option<MessageId>,
        before: &mut Option<MessageId>,
    ) -> Option<MessageId> {
        if self.foreign.contains(id) && parent.is_some() {
            return parent;
        }
        let before = before.replace(id.clone());
        let is_placed = self.placed.contains(id);
        match parent {
            // A parent that is missing is reported later; the entry follows the one before, too.
            Some(parent) if !is_placed && !self.placed.contains(&parent) => Some(parent),
            _ => before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(drawn: &[[&str; 2]]) -> Progress {
        let parents = drawn.iter().map(|[id, parent]| (message_id(*id), Some(message_id(*parent))));
        Progress { parents: parents.collect() }
    }

    /// The end of a cycle was the link that was asked for first: a session depended on the order in which its entries came.
    #[test]
    fn a_cycle_of_links_ends_at_the_same_link_wherever_it_is_entered() {
        let drawn = [["a", "c"], ["c", "d"], ["d", "b"], ["b", "c"]];
        for first in ["a", "b", "c", "d"] {
            let mut links = links(&drawn);
            for next in [first, "a", "b", "c", "d"] {
                assert_eq!(links.pass(Some(message_id(next))), Some(message_id("b")), "{first}");
            }
        }
    }

    #[test]
    fn a_chain_of_links_ends_at_the_entry_above_it() {
        let mut links = links(&[["a", "b"], ["b", "x"]]);
        for _ in 0..2 {
            assert_eq!(links.pass(Some(message_id("a"))), Some(message_id("x")));
        }
        assert_eq!(links.pass(Some(message_id("y"))), Some(message_id("y")));
        assert_eq!(links.pass(None), None);
    }
}
