//! One session as a plain list in which each message names its parent.
//!
//! A deleted message with children stays as a slot without content (a tombstone). A tombstone without children is
//! removed, and so on upward.

use std::collections::BTreeMap;

/// A position in the list.
pub(super) type Slot = usize;

/// One message or tombstone.
#[derive(Debug, Clone)]
struct Node {
    parent: Option<Slot>,
    /// The id and the text; `None` in a tombstone.
    content: Option<(String, String)>,
    is_removed: bool,
}

/// The expected state of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    nodes: Vec<Node>,
    head: Option<Slot>,
    labels: BTreeMap<String, Slot>,
}

impl Model {
    /// Returns the slot of the message with this id.
    pub(super) fn find(&self, id: &str) -> Option<Slot> {
        self.nodes
            .iter()
            .position(|node| node.content.as_ref().is_some_and(|(known, _)| known == id))
    }

    /// Returns the text of a message.
    pub(super) fn text(&self, id: &str) -> Option<&str> {
        let content = self.nodes[self.find(id)?].content.as_ref();
        content.map(|(_, text)| text.as_str())
    }

    /// Returns the slot of the head, which may be a tombstone.
    pub(super) fn head_slot(&self) -> Option<Slot> {
        self.head
    }

    /// Returns the id of the head, or of its nearest ancestor if it is a tombstone.
    pub(super) fn head(&self) -> Option<&str> {
        self.path(self.head).pop()
    }

    /// Returns the ids from the root to a slot, without tombstones.
    pub(super) fn path(&self, from: Option<Slot>) -> Vec<&str> {
        let mut ids = Vec::new();
        let mut at = from;
        while let Some(slot) = at {
            let node = &self.nodes[slot];
            ids.extend(node.content.as_ref().map(|(id, _)| id.as_str()));
            at = node.parent;
        }
        ids.reverse();
        ids
    }

    /// Returns the ids of the messages without children, oldest first.
    pub(super) fn leaves(&self) -> Vec<&str> {
        let is_leaf = |slot: &Slot| !self.has_children(*slot);
        let slots = (0..self.nodes.len()).filter(is_leaf);
        slots
            .filter_map(|slot| self.nodes[slot].content.as_ref().map(|(id, _)| id.as_str()))
            .collect()
    }

    /// Returns the labels with the ids of their messages, by name.
    pub(super) fn labels(&self) -> Vec<(&str, &str)> {
        let id = |slot: &Slot| self.nodes[*slot].content.as_ref().map(|(id, _)| id.as_str());
        self.labels
            .iter()
            .filter_map(|(name, slot)| id(slot).map(|id| (name.as_str(), id)))
            .collect()
    }

    /// Appends a message and moves the head to it.
    pub(super) fn append(&mut self, parent: Option<Slot>, id: &str, text: &str) {
        let content = Some((id.to_owned(), text.to_owned()));
        self.nodes.push(Node { parent, content, is_removed: false });
        self.head = Some(self.nodes.len() - 1);
    }

    /// Replaces the text of a message.
    pub(super) fn update(&mut self, slot: Slot, text: &str) {
        if let Some(content) = &mut self.nodes[slot].content {
            text.clone_into(&mut content.1);
        }
    }

    /// Moves the head.
    pub(super) fn checkout(&mut self, slot: Option<Slot>) {
        self.head = slot;
    }

    /// Sets a label, or removes it if there is no slot.
    pub(super) fn label(&mut self, name: &str, slot: Option<Slot>) {
        match slot {
            Some(slot) => self.labels.insert(name.to_owned(), slot),
            None => self.labels.remove(name),
        };
    }

    /// Deletes messages.
    pub(super) fn delete(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.nodes[*slot].content = None;
            self.labels.retain(|_, labelled| labelled != slot);
        }
        // Children come after their parents, so one backward pass removes whole chains of tombstones.
        for slot in (0..self.nodes.len()).rev() {
            let node = &self.nodes[slot];
            if node.content.is_some() || node.is_removed || self.has_children(slot) {
                continue;
            }
            let parent = node.parent;
            self.nodes[slot].is_removed = true;
            if self.head == Some(slot) {
                self.head = parent;
            }
        }
    }

    /// Deletes a message and its descendants.
    pub(super) fn delete_branch(&mut self, slot: Slot) {
        let mut below = vec![slot];
        for other in slot + 1..self.nodes.len() {
            let node = &self.nodes[other];
            if !node.is_removed && node.parent.is_some_and(|parent| below.contains(&parent)) {
                below.push(other);
            }
        }
        self.delete(&below);
    }

    /// Returns the model of a fork at this slot.
    pub(super) fn fork(&self, slot: Slot) -> Self {
        let mut fork = Self::default();
        for id in self.path(Some(slot)) {
            fork.append(fork.head, id, self.text(id).unwrap_or_default());
        }
        for (name, id) in self.labels() {
            if let Some(slot) = fork.find(id) {
                fork.label(name, Some(slot));
            }
        }
        fork
    }

    fn has_children(&self, slot: Slot) -> bool {
        self.nodes[slot + 1..].iter().any(|node| !node.is_removed && node.parent == Some(slot))
    }
}
