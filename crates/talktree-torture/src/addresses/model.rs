//! One session as a plain list: each message names its parent, and that is all.
//!
//! A deleted message with something below it stays as a nameless place; a nameless place with nothing below it goes,
//! and so on upward.

use std::collections::BTreeMap;

/// A place in the list.
pub(super) type Slot = usize;

/// One message, or what is left of it.
#[derive(Debug, Clone)]
struct Node {
    parent: Option<Slot>,
    /// The id and the text; `None` once it was deleted.
    said: Option<(String, String)>,
    is_removed: bool,
}

/// A session as it should be.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    nodes: Vec<Node>,
    head: Option<Slot>,
    labels: BTreeMap<String, Slot>,
}

impl Model {
    /// Returns where the message of this id is.
    pub(super) fn find(&self, id: &str) -> Option<Slot> {
        self.nodes.iter().position(|node| node.said.as_ref().is_some_and(|(known, _)| known == id))
    }

    /// Returns the text of a message.
    pub(super) fn text(&self, id: &str) -> Option<&str> {
        let said = self.nodes[self.find(id)?].said.as_ref();
        said.map(|(_, text)| text.as_str())
    }

    /// Returns where the head stands, a nameless place included.
    pub(super) fn head_place(&self) -> Option<Slot> {
        self.head
    }

    /// Returns the id of the head: that of the nearest message there or above.
    pub(super) fn head(&self) -> Option<&str> {
        self.path(self.head).pop()
    }

    /// Returns the ids from the root to a place, without nameless places.
    pub(super) fn path(&self, from: Option<Slot>) -> Vec<&str> {
        let mut ids = Vec::new();
        let mut at = from;
        while let Some(place) = at {
            let node = &self.nodes[place];
            ids.extend(node.said.as_ref().map(|(id, _)| id.as_str()));
            at = node.parent;
        }
        ids.reverse();
        ids
    }

    /// Returns the ids of messages with nothing below them, oldest first.
    pub(super) fn leaves(&self) -> Vec<&str> {
        let is_leaf = |place: &Slot| !self.has_children(*place);
        let places = (0..self.nodes.len()).filter(is_leaf);
        places
            .filter_map(|place| self.nodes[place].said.as_ref().map(|(id, _)| id.as_str()))
            .collect()
    }

    /// Returns the labels with the ids of their messages, by name.
    pub(super) fn labels(&self) -> Vec<(&str, &str)> {
        let id = |place: &Slot| self.nodes[*place].said.as_ref().map(|(id, _)| id.as_str());
        self.labels
            .iter()
            .filter_map(|(name, place)| id(place).map(|id| (name.as_str(), id)))
            .collect()
    }

    /// Attaches a message and moves the head to it.
    pub(super) fn append(&mut self, parent: Option<Slot>, id: &str, text: &str) {
        let said = Some((id.to_owned(), text.to_owned()));
        self.nodes.push(Node { parent, said, is_removed: false });
        self.head = Some(self.nodes.len() - 1);
    }

    /// Replaces the text of a message.
    pub(super) fn update(&mut self, place: Slot, text: &str) {
        if let Some(said) = &mut self.nodes[place].said {
            text.clone_into(&mut said.1);
        }
    }

    /// Moves the head.
    pub(super) fn checkout(&mut self, place: Option<Slot>) {
        self.head = place;
    }

    /// Names a message, or takes the name off.
    pub(super) fn label(&mut self, name: &str, place: Option<Slot>) {
        match place {
            Some(place) => self.labels.insert(name.to_owned(), place),
            None => self.labels.remove(name),
        };
    }

    /// Deletes messages.
    pub(super) fn delete(&mut self, places: &[Slot]) {
        for place in places {
            self.nodes[*place].said = None;
            self.labels.retain(|_, labelled| labelled != place);
        }
        // Children come after their parents, so one way back takes whole chains of nameless places.
        for place in (0..self.nodes.len()).rev() {
            let node = &self.nodes[place];
            if node.said.is_some() || node.is_removed || self.has_children(place) {
                continue;
            }
            let parent = node.parent;
            self.nodes[place].is_removed = true;
            if self.head == Some(place) {
                self.head = parent;
            }
        }
    }

    /// Deletes a message and all below it.
    pub(super) fn delete_branch(&mut self, place: Slot) {
        let mut below = vec![place];
        for other in place + 1..self.nodes.len() {
            let node = &self.nodes[other];
            if !node.is_removed && node.parent.is_some_and(|parent| below.contains(&parent)) {
                below.push(other);
            }
        }
        self.delete(&below);
    }

    /// Returns what a fork at this place begins with.
    pub(super) fn fork(&self, place: Slot) -> Self {
        let mut fork = Self::default();
        for id in self.path(Some(place)) {
            fork.append(fork.head, id, self.text(id).unwrap_or_default());
        }
        for (name, id) in self.labels() {
            if let Some(place) = fork.find(id) {
                fork.label(name, Some(place));
            }
        }
        fork
    }

    fn has_children(&self, place: Slot) -> bool {
        self.nodes[place + 1..].iter().any(|node| !node.is_removed && node.parent == Some(place))
    }
}
