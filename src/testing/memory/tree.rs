//! The tree of a session in memory: nodes with the index of their parent, and the spans that compactions replace.

use crate::compaction::{Compaction, CompactionStatus};
use crate::id::MessageId;
use crate::message::Message;

#[derive(Debug, Default)]
pub(super) struct MemoryTree {
    pub(super) nodes: Vec<Node>,
    pub(super) head: Option<usize>,
    pub(super) spans: Vec<Span>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<usize>,
    /// `None` for a tombstone and for a removed node.
    pub(super) message: Option<Message>,
    pub(super) is_removed: bool,
}

#[derive(Debug)]
pub(super) struct Span {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) compaction: Compaction,
}

/// A message or summary of a history.
pub(super) enum Item {
    Node(usize),
    /// An index in `spans`.
    Span(usize),
}

impl MemoryTree {
    pub(super) fn find(&self, id: &MessageId) -> Option<usize> {
        self.nodes.iter().position(|node| node.message.as_ref().is_some_and(|m| m.id == *id))
    }

    /// Returns the path to a node, newest first, including tombstones.
    pub(super) fn path(&self, leaf: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(leaf, |at| self.nodes[*at].parent)
    }

    fn nearest(&self, at: Option<usize>) -> Option<&MessageId> {
        self.path(at).find_map(|at| self.nodes[at].message.as_ref().map(|message| &message.id))
    }

    /// Returns an id for a place: of the message, or of the item that the history of a tombstone ends with.
    pub(super) fn id_of_place(&self, at: Option<usize>) -> Option<MessageId> {
        let living = self.path(at).find(|at| self.nodes[*at].message.is_some());
        if living != at {
            for item in self.items(at) {
                match item {
                    Item::Node(at) if Some(at) == living => break,
                    Item::Span(span) if Some(self.spans[span].last) == living => break,
                    Item::Span(span) => return Some(self.spans[span].compaction.id.as_message()),
                    Item::Node(_) => {}
                }
            }
        }
        self.nearest(at).cloned()
    }

    /// Returns whether the nearest place above a node that is not a tombstone, or `parent` itself, is `parent`.
    pub(super) fn is_child(&self, at: usize, parent: Option<usize>) -> bool {
        let is_passed = |at: &usize| Some(*at) != parent && self.nodes[*at].message.is_none();
        let mut above = self.path(self.nodes[at].parent).skip_while(is_passed);
        above.next() == parent
    }

    /// Returns the message of a node with its nearest living parent; `None` for a tombstone.
    pub(super) fn read(&self, at: usize) -> Option<Message> {
        let node = &self.nodes[at];
        let mut message = node.message.clone()?;
        message.parent = self.nearest(node.parent).cloned();
        Some(message)
    }

    /// Returns the history of a node, newest first.
    pub(super) fn items(&self, leaf: Option<usize>) -> Vec<Item> {
        self.items_with(leaf, |_| true)
    }

    /// Returns the history of a node, newest first, with some of the compactions applied.
    pub(super) fn items_with(
        &self,
        leaf: Option<usize>,
        counts: impl Fn(usize) -> bool,
    ) -> Vec<Item> {
        let (mut items, mut at) = (Vec::new(), leaf);
        while let Some(node) = at {
            let ending = (0..self.spans.len())
                .filter(|span| self.spans[*span].last == node && counts(*span));
            // The longest, of equals the newest.
            match ending.min_by_key(|span| (self.spans[*span].first, std::cmp::Reverse(*span))) {
                Some(span) => {
                    at = self.nodes[self.spans[span].first].parent;
                    items.push(Item::Span(span));
                }
                None => {
                    at = self.nodes[node].parent;
                    items.push(Item::Node(node));
                }
            }
        }
        items
    }

    pub(super) fn show(&self, item: &Item) -> Option<Message> {
        match item {
            Item::Node(at) => self.read(*at).filter(|message| !message.is_hidden),
            Item::Span(span) => {
                let Span { first, compaction, .. } = &self.spans[*span];
                let parent = self.nearest(self.nodes[*first].parent);
                Some(compaction.to_message(parent.cloned()))
            }
        }
    }

    /// Returns the number of messages in `first ..= last`, where `first` is on the path to `last`.
    pub(super) fn count(&self, first: usize, last: usize) -> usize {
        let range = self.path(Some(last)).take_while(|at| *at >= first);
        range.filter(|at| self.nodes[*at].message.is_some()).count()
    }

    /// Returns whether the range has a message that is not hidden.
    pub(super) fn has_visible(&self, first: usize, last: usize) -> bool {
        let mut range = self.path(Some(last)).take_while(|at| *at >= first);
        range.any(|at| self.nodes[at].message.as_ref().is_some_and(|m| !m.is_hidden))
    }

    pub(super) fn covering(&self, at: usize) -> impl Iterator<Item = &Span> {
        let covers = move |span: &&Span| {
            span.first <= at && self.path(Some(span.last)).any(|on_path| on_path == at)
        };
        self.spans.iter().filter(covers)
    }

    /// Returns the status of a compaction as seen from the head.
    pub(super) fn status(&self, span: usize) -> CompactionStatus {
        let last = self.spans[span].last;
        if !self.path(self.head).any(|at| at == last) {
            return CompactionStatus::OffPath;
        }
        let covers = |item: &Item| match item {
            Item::Span(shown) if self.spans[*shown].first <= last => Some(*shown),
            _ => None,
        };
        match self.items(self.head).iter().find_map(covers) {
            Some(shown) if shown != span => {
                CompactionStatus::Under { id: self.spans[shown].compaction.id.clone() }
            }
            _ => CompactionStatus::Shown,
        }
    }

    /// Removes tombstones without children, newest first, so that a chain of them is removed in one pass.
    pub(super) fn prune(&mut self) {
        let mut children = vec![0; self.nodes.len()];
        for node in self.nodes.iter().filter(|node| !node.is_removed) {
            if let Some(parent) = node.parent {
                children[parent] += 1;
            }
        }
        for at in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[at];
            if node.message.is_none() && !node.is_removed && children[at] == 0 {
                node.is_removed = true;
                if let Some(parent) = node.parent {
                    children[parent] -= 1;
                }
            }
        }
    }

    /// Returns the node or its nearest ancestor that was not removed.
    pub(super) fn survivor(&self, at: Option<usize>) -> Option<usize> {
        self.path(at).find(|at| !self.nodes[*at].is_removed)
    }
}
