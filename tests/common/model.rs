//! A plain model of a store: a list of messages with parent pointers, searched by brute force. Slow, but simple enough to
//! trust.

use std::collections::{BTreeMap, BTreeSet};

/// One message of a history, in a form that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub id: String,
    pub parent: Option<String>,
    pub role: String,
    pub text: String,
    pub is_hidden: bool,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub id: String,
    pub parent: Option<usize>,
    pub role: &'static str,
    pub text: String,
    pub is_hidden: bool,
    pub state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Living,
    Tombstone,
    Removed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    pub id: String,
    pub first: usize,
    pub last: usize,
    pub first_id: String,
    pub last_id: String,
    pub count: u64,
    pub summary: String,
}

/// An item of a view, newest first: a node, living or not, or a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Node(usize),
    /// The index of the compaction in `compactions`.
    Compaction(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    NotAncestor,
    /// The id of the compaction that contains one of the ends.
    Inside(String),
    /// Nothing in the range is visible to a model.
    Nothing,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gone {
    pub messages: Vec<String>,
    pub covered_by: BTreeSet<String>,
    pub gone: BTreeSet<String>,
    pub back: BTreeSet<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub exists: bool,
    pub nodes: Vec<Node>,
    pub head: Option<usize>,
    pub log: Vec<Option<usize>>,
    /// The index of the current entry in `log`; that entry equals the head.
    pub position: usize,
    /// In the order in which they were created.
    pub compactions: Vec<Compaction>,
    pub labels: BTreeMap<String, usize>,
    pub imported: BTreeSet<String>,
}

impl Model {
    pub fn new() -> Self {
        Self { log: vec![None], ..Self::default() }
    }

    pub fn living(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|at| self.nodes[*at].state == State::Living)
    }

    pub fn find(&self, id: &str) -> Option<usize> {
        self.living().find(|at| self.nodes[*at].id == id)
    }

    /// Returns the node, or its nearest living ancestor.
    pub fn nearest(&self, mut at: Option<usize>) -> Option<usize> {
        while let Some(node) = at {
            if self.nodes[node].state == State::Living {
                return at;
            }
            at = self.nodes[node].parent;
        }
        None
    }

    pub fn id_of(&self, at: Option<usize>) -> Option<String> {
        self.nearest(at).map(|at| self.nodes[at].id.clone())
    }

    /// Returns the id of the item that the view at a place ends with, hidden messages included; a summary that ends at a
    /// living message has that message's id.
    pub fn id_of_place(&self, at: Option<usize>) -> Option<String> {
        if at.is_some_and(|at| self.is_living(&at)) {
            return self.id_of(at);
        }
        self.items(at).iter().find_map(|item| match item {
            Item::Node(at) => self.is_living(at).then(|| self.nodes[*at].id.clone()),
            Item::Compaction(compaction) => {
                let compaction = &self.compactions[*compaction];
                Some(match self.is_living(&compaction.last) {
                    true => self.nodes[compaction.last].id.clone(),
                    false => format!("compaction_{}", compaction.id),
                })
            }
        })
    }

    /// Returns the path to a node, oldest first, with tombstones.
    pub fn path(&self, mut at: Option<usize>) -> Vec<usize> {
        let mut path = Vec::new();
        while let Some(node) = at {
            path.push(node);
            at = self.nodes[node].parent;
        }
        path.reverse();
        path
    }

    fn is_living(&self, at: &usize) -> bool {
        self.nodes[*at].state == State::Living
    }

    pub fn line(&self, at: usize) -> Line {
        let node = &self.nodes[at];
        Line {
            id: node.id.clone(),
            parent: self.id_of(node.parent),
            role: node.role.to_owned(),
            text: node.text.clone(),
            is_hidden: node.is_hidden,
        }
    }

    fn compaction_line(&self, compaction: &Compaction) -> Line {
        Line {
            id: format!("compaction_{}", compaction.id),
            parent: self.id_of(self.nodes[compaction.first].parent),
            role: "assistant".to_owned(),
            text: compaction.summary.clone(),
            is_hidden: false,
        }
    }

    pub fn raw(&self, at: Option<usize>) -> Vec<Line> {
        self.path(at).iter().filter(|at| self.is_living(at)).map(|at| self.line(*at)).collect()
    }

    /// Returns the view at a node, newest first, with tombstones and hidden messages.
    pub fn items(&self, at: Option<usize>) -> Vec<Item> {
        self.items_of(at, |_| true)
    }

    /// Returns the view with only some of the compactions.
    fn items_of(&self, mut at: Option<usize>, counts: impl Fn(usize) -> bool) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(node) = at {
            let ending = (0..self.compactions.len()).filter(|compaction| {
                self.compactions[*compaction].last == node && counts(*compaction)
            });
            match ending.min_by_key(|compaction| {
                (self.compactions[*compaction].first, std::cmp::Reverse(*compaction))
            }) {
                Some(compaction) => {
                    items.push(Item::Compaction(compaction));
                    at = self.nodes[self.compactions[compaction].first].parent;
                }
                None => {
                    items.push(Item::Node(node));
                    at = self.nodes[node].parent;
                }
            }
        }
        items
    }

    pub fn is_shown(&self, item: &Item) -> bool {
        match item {
            Item::Compaction(_) => true,
            Item::Node(at) => self.is_living(at) && !self.nodes[*at].is_hidden,
        }
    }

    pub fn history(&self, at: Option<usize>) -> Vec<Line> {
        self.lines(self.items(at).iter().rev())
    }

    /// Returns the living children of a node; those of a tombstone count as children of its parent.
    pub fn children(&self, at: Option<usize>) -> Vec<usize> {
        self.living()
            .filter(|child| {
                let mut parent = self.nodes[*child].parent;
                while let Some(node) = parent.filter(|parent| Some(*parent) != at) {
                    if self.is_living(&node) {
                        return false;
                    }
                    parent = self.nodes[node].parent;
                }
                parent == at
            })
            .collect()
    }

    pub fn leaves(&self) -> Vec<usize> {
        self.living().filter(|at| self.children(Some(*at)).is_empty()).collect()
    }

    /// Adds a node; `None` if its id is known.
    pub fn add(&mut self, parent: Option<usize>, node: Node) -> Option<usize> {
        if self.find(&node.id).is_some() {
            return None;
        }
        self.exists = true;
        self.nodes.push(Node { parent, ..node });
        Some(self.nodes.len() - 1)
    }

    fn set_head(&mut self, head: Option<usize>) {
        self.head = head;
        self.log[self.position] = head;
    }

    pub fn move_head(&mut self, head: Option<usize>) {
        if self.head != head {
            self.log.truncate(self.position + 1);
            self.log.push(head);
            self.position += 1;
            self.head = head;
        }
    }

    /// Appends nodes as a chain.
    pub fn append(&mut self, mut parent: Option<usize>, nodes: Vec<Node>) {
        self.exists |= !nodes.is_empty();
        let (mut head, mut is_branching) = (self.head, false);
        for node in nodes {
            let id = node.id.clone();
            match self.add(parent, node) {
                Some(at) => {
                    is_branching |= head != parent;
                    head = Some(at);
                    parent = head;
                }
                None => parent = self.find(&id),
            }
        }
        match is_branching {
            true => self.move_head(head),
            false => self.set_head(head),
        }
    }

    pub fn import(&mut self, parent: Option<usize>, node: Node) {
        self.exists = true;
        if !self.imported.insert(node.id.clone()) {
            return;
        }
        let is_at_head = self.head == parent;
        if let Some(at) = self.add(parent, node)
            && is_at_head
        {
            self.set_head(Some(at));
        }
    }

    pub fn step_head(&mut self, by: isize) -> bool {
        let target = self.position.checked_add_signed(by).filter(|at| *at < self.log.len());
        let Some(target) = target else { return false };
        self.position = target;
        self.head = self.log[target];
        true
    }

    fn covers(&self, compaction: &Compaction, at: usize) -> bool {
        compaction.first <= at && self.path(Some(compaction.last)).contains(&at)
    }

    pub fn covered_by(&self, at: usize) -> BTreeSet<String> {
        let compactions = self.compactions.iter().filter(|compaction| self.covers(compaction, at));
        compactions.map(|compaction| compaction.id.clone()).collect()
    }

    /// Returns the living nodes in a compaction's range.
    pub fn under(&self, first: usize, last: usize) -> Vec<usize> {
        let path = self.path(Some(last));
        path.into_iter().filter(|at| *at >= first && self.is_living(at)).collect()
    }

    /// Returns the items that become visible when a compaction is removed, oldest first. Only compactions inside its range
    /// apply, and of those with the same range only older ones.
    pub fn below(&self, over: usize) -> Vec<Item> {
        let Compaction { first, last, .. } = self.compactions[over];
        let is_below = |compaction: usize| {
            let inner = &self.compactions[compaction];
            inner.first >= first && (inner.first > first || inner.last < last || compaction < over)
        };
        let mut items = self.items_of(Some(last), is_below);
        items.retain(|item| self.start(item) >= first);
        items.reverse();
        items
    }

    /// Returns the first node of an item.
    pub fn start(&self, item: &Item) -> usize {
        match item {
            Item::Node(at) => *at,
            Item::Compaction(compaction) => self.compactions[*compaction].first,
        }
    }

    /// Returns the visible items as lines.
    pub fn lines<'a>(&self, items: impl IntoIterator<Item = &'a Item>) -> Vec<Line> {
        let shown = items.into_iter().filter(|item| self.is_shown(item));
        shown
            .map(|item| match item {
                Item::Node(at) => self.line(*at),
                Item::Compaction(compaction) => {
                    self.compaction_line(&self.compactions[*compaction])
                }
            })
            .collect()
    }

    pub fn check_compaction(&self, first: usize, last: usize) -> Result<(), Refusal> {
        if !self.path(Some(last)).contains(&first) {
            return Err(Refusal::NotAncestor);
        }
        let mut is_shown = false;
        for item in self.items(Some(last)) {
            is_shown |= self.is_shown(&item);
            let start = self.start(&item);
            match item {
                _ if start == first && !is_shown => return Err(Refusal::Nothing),
                _ if start == first => return Ok(()),
                Item::Compaction(compaction) if start < first => {
                    return Err(Refusal::Inside(self.compactions[compaction].id.clone()));
                }
                _ => {}
            }
        }
        Err(Refusal::NotAncestor)
    }

    pub fn delete(&mut self, targets: &[usize]) -> Gone {
        let mut gone = Gone::default();
        let touched: BTreeSet<String> =
            targets.iter().flat_map(|target| self.covered_by(*target)).collect();
        for target in targets {
            if self.is_living(target) {
                gone.messages.push(self.nodes[*target].id.clone());
                self.nodes[*target].state = State::Tombstone;
                self.labels.retain(|_, at| at != target);
            }
        }
        // A tombstone without children is removed; newest first, so that whole chains are removed.
        for at in (0..self.nodes.len()).rev() {
            let has_children = self
                .nodes
                .iter()
                .any(|node| node.parent == Some(at) && node.state != State::Removed);
            if self.nodes[at].state == State::Tombstone && !has_children {
                self.nodes[at].state = State::Removed;
            }
        }
        let compactions = std::mem::take(&mut self.compactions);
        let (kept, lost): (Vec<Compaction>, Vec<Compaction>) =
            compactions.into_iter().partition(|compaction| {
                self.nodes[compaction.last].state != State::Removed
                    && self
                        .under(compaction.first, compaction.last)
                        .iter()
                        .any(|at| !self.nodes[*at].is_hidden)
            });
        self.compactions = kept;
        let kept = self.compactions.iter().map(|compaction| compaction.id.clone());
        gone.covered_by = kept.filter(|id| touched.contains(id)).collect();
        for compaction in &lost {
            gone.gone.insert(compaction.id.clone());
            for item in self.items(self.survivor(Some(compaction.last))) {
                match item {
                    Item::Node(at) if at > compaction.first => {}
                    Item::Compaction(shown)
                        if self.compactions[shown].first >= compaction.first =>
                    {
                        gone.back.insert(self.compactions[shown].id.clone());
                    }
                    _ => break,
                }
            }
        }
        self.relocate();
        gone
    }

    fn survivor(&self, mut at: Option<usize>) -> Option<usize> {
        while let Some(node) = at.filter(|at| self.nodes[*at].state == State::Removed) {
            at = self.nodes[node].parent;
        }
        at
    }

    fn relocate(&mut self) {
        let places: Vec<_> = self.log.iter().map(|place| self.survivor(*place)).collect();
        if places == self.log {
            return;
        }
        let (mut kept, mut present) = (Vec::new(), 0);
        for (at, place) in places.into_iter().enumerate() {
            if kept.last() != Some(&place) {
                kept.push(place);
            }
            if at == self.position {
                present = kept.len() - 1;
            }
        }
        (self.log, self.position) = (kept, present);
        self.head = self.log[self.position];
    }

    pub fn subtree(&self, top: usize) -> Vec<usize> {
        self.living().filter(|at| self.path(Some(*at)).contains(&top)).collect()
    }

    pub fn clear(&mut self) {
        for node in &mut self.nodes {
            node.state = State::Removed;
        }
        self.compactions.clear();
        self.labels.clear();
        self.head = None;
        self.log = vec![None];
        self.position = 0;
    }

    /// Returns a model of the session that a fork at this node creates.
    pub fn fork(&self, at: usize) -> Self {
        let path = self.path(Some(at));
        let place = |node: usize| path.iter().position(|at| *at == node);
        let mut fork = Self { exists: true, ..Self::new() };
        for (number, node) in path.iter().enumerate() {
            let parent = number.checked_sub(1);
            fork.nodes.push(Node { parent, ..self.nodes[*node].clone() });
        }
        for compaction in &self.compactions {
            if let (Some(first), Some(last)) = (place(compaction.first), place(compaction.last)) {
                fork.compactions.push(Compaction { first, last, ..compaction.clone() });
            }
        }
        for (name, at) in &self.labels {
            fork.labels.extend(place(*at).map(|at| (name.clone(), at)));
        }
        fork.set_head(Some(path.len() - 1));
        fork
    }
}
