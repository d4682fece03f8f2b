//! What a worker's log says the store has to hold: a tree of its own, without SQL.
//!
//! Only what a caller can see is modelled. A deleted message stays as a dead node, and whatever hangs from it is seen
//! under its nearest living ancestor; so the model does not care what the store keeps of it.

use std::collections::{BTreeMap, BTreeSet};

use super::deed::{Deed, Line};
use super::state::{State, short};
use crate::Result;
use crate::text::{Said, Text};

/// A message of the model.
#[derive(Debug, Clone)]
struct Node {
    parent: Option<String>,
    text: Text,
    is_dead: bool,
    /// Whether its id is one that the library made up: nobody can ask for it.
    is_nameless: bool,
}

/// A compaction of the model.
#[derive(Debug, Clone)]
pub(crate) struct CompactionMark {
    pub(crate) id: String,
    pub(crate) first: String,
    pub(crate) last: String,
}

/// A fork as it was made: nobody writes to it.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub(crate) raw: Vec<(String, String)>,
    pub(crate) view: Vec<String>,
}

/// Returns the text of a summary; it names the compaction, whose id the library may make up.
pub(crate) fn summary_of(id: &str) -> String {
    format!("summary {id}")
}

/// What one worker has written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    nodes: BTreeMap<String, Node>,
    order: Vec<String>,
    head: Option<String>,
    labels: BTreeMap<String, String>,
    pub(crate) compactions: Vec<CompactionMark>,
    /// Which places a compaction covers; what is covered is never deleted.
    covered: BTreeSet<String>,
    pub(crate) forks: BTreeMap<String, Copy>,
    /// Imported sessions with their counts; those of a killed import may be there in part.
    pub(crate) imports: BTreeMap<String, u32>,
    /// The sessions that this one goes on in.
    pub(crate) splits: BTreeSet<String>,
    pub(crate) shared: Vec<Said>,
    /// The last copy, with what it has to hold.
    pub(crate) backup: Option<(String, State)>,
    pub(crate) created: Vec<(String, Said)>,
    /// How often the store was opened.
    pub(crate) openings: u32,
}

/// Where a log ends.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) model: Model,
    /// The deed that nobody knows the end of.
    pub(crate) pending: Option<Deed>,
    pub(crate) acknowledged: u64,
    /// What verbs returned that they should not.
    pub(crate) wrong: Vec<String>,
}

impl Replay {
    /// Replays a log.
    pub(crate) fn of(lines: &[Line]) -> Result<Self> {
        let mut replay = Self::default();
        for line in lines {
            match line {
                Line::Begin(deed) => replay.pending = Some(deed.clone()),
                Line::Done | Line::Undone => {
                    let deed = replay.pending.take().ok_or("an end without a beginning")?;
                    replay.settle(&deed, *line == Line::Done);
                    replay.acknowledged += u64::from(*line == Line::Done);
                }
                Line::Wrong(what) => {
                    let deed = replay.pending.take();
                    replay.wrong.push(format!("{}: {what}", short(&deed)));
                }
            }
        }
        Ok(replay)
    }

    /// Takes a deed into the model, as one that was done or was not.
    pub(crate) fn settle(&mut self, deed: &Deed, is_done: bool) {
        // Opening and importing may have begun all the same.
        if is_done || matches!(deed, Deed::Open | Deed::Import { .. }) {
            self.model.apply(deed);
        }
    }
}

impl Model {
    /// Applies a deed that was done.
    pub(crate) fn apply(&mut self, deed: &Deed) {
        match deed {
            Deed::Open => self.openings += 1,
            Deed::Append { to, messages } => self.append(to.as_ref(), messages),
            Deed::AppendAndCompact { message } => self.append(None, std::slice::from_ref(message)),
            Deed::Leave { to, message } => {
                self.append(Some(to), std::slice::from_ref(message));
                if let Some(node) = self.nodes.get_mut(&message.id) {
                    node.is_nameless = true;
                }
            }
            Deed::Update { message } | Deed::StaleCompaction { message } => {
                if let Some(node) = self.nodes.get_mut(&message.id) {
                    node.text = message.text.clone();
                }
            }
            Deed::Delete { id } => {
                if let Some(node) = self.nodes.get_mut(id) {
                    node.is_dead = true;
                }
                self.labels.retain(|_, target| target != id);
            }
            Deed::Compact { id, first, last } | Deed::CommitPlan { id, first, last } => {
                let places = self.places(first, last);
                self.covered.extend(places);
                self.compactions.push(CompactionMark {
                    id: id.clone(),
                    first: first.clone(),
                    last: last.clone(),
                });
            }
            Deed::RemoveCompaction { id } => {
                self.compactions.retain(|compaction| compaction.id != *id)
            }
            Deed::Split { session } => {
                self.splits.insert(session.clone());
            }
            Deed::Label { name, id } => {
                self.labels.insert(name.clone(), id.clone());
            }
            Deed::Checkout { id } => self.head = Some(id.clone()),
            Deed::Fork { session, at } => {
                let raw = self.raw(Some(at));
                let view = self.view(Some(at));
                self.forks.insert(session.clone(), Copy { raw, view });
            }
            Deed::Share { message } => self.shared.push(message.clone()),
            Deed::Search { .. } | Deed::Tokens { .. } => {}
            Deed::Import { session, count } => {
                self.imports.insert(session.clone(), *count);
            }
            Deed::Backup { file } => self.backup = Some((file.clone(), self.state())),
            Deed::Create { file, message } => self.created.push((file.clone(), message.clone())),
        }
    }

    fn append(&mut self, to: Option<&String>, messages: &[Said]) {
        let mut parent = to.cloned().or_else(|| self.head.clone());
        for Said { id, text } in messages {
            let text = text.clone();
            let node = Node { parent, text, is_dead: false, is_nameless: false };
            self.nodes.insert(id.clone(), node);
            self.order.push(id.clone());
            parent = Some(id.clone());
        }
        self.head = parent;
    }

    /// Returns the places from a message up to its root.
    fn up<'a>(&'a self, from: Option<&'a String>) -> impl Iterator<Item = (&'a String, &'a Node)> {
        let mut at = from;
        std::iter::from_fn(move || {
            let (id, node) = self.nodes.get_key_value(at?)?;
            at = node.parent.as_ref();
            Some((id, node))
        })
    }

    /// Returns the places from `last` up to `first`, dead ones included.
    fn places(&self, first: &String, last: &String) -> Vec<String> {
        let mut places: Vec<String> = Vec::new();
        for (id, _) in self.up(Some(last)) {
            places.push(id.clone());
            if id == first {
                break;
            }
        }
        places
    }

    fn living(&self, from: Option<&String>) -> Option<String> {
        self.up(from).find(|(_, node)| !node.is_dead).map(|(id, _)| id.clone())
    }

    /// Returns the stored messages of a path, oldest first.
    fn raw(&self, leaf: Option<&String>) -> Vec<(String, String)> {
        let living = self.up(leaf).filter(|(_, node)| !node.is_dead);
        let mut path: Vec<_> = living.map(|(id, node)| (id.clone(), node.text.tell())).collect();
        path.reverse();
        path
    }

    /// Returns the ids that a history shows, oldest first.
    pub(crate) fn view(&self, leaf: Option<&String>) -> Vec<String> {
        let mut ends: BTreeMap<&String, Vec<&CompactionMark>> = BTreeMap::new();
        for compaction in &self.compactions {
            ends.entry(&compaction.last).or_default().push(compaction);
        }
        let mut view = Vec::new();
        let mut at = leaf;
        while let Some((id, node)) = at.and_then(|id| self.nodes.get_key_value(id)) {
            at = node.parent.as_ref();
            let reach = |compaction: &&&CompactionMark| {
                self.places(&compaction.first, &compaction.last).len()
            };
            match ends.get(id).and_then(|compactions| compactions.iter().max_by_key(reach)) {
                Some(compaction) => {
                    view.push(summary_of(&compaction.id));
                    at = self.nodes.get(&compaction.first).and_then(|node| node.parent.as_ref());
                }
                None if !node.is_dead => view.push(id.clone()),
                None => {}
            }
        }
        view.reverse();
        view
    }

    /// Returns what a reader of the worker's session has to see.
    pub(crate) fn state(&self) -> State {
        let living = self.order.iter().filter_map(|id| {
            let node = self.nodes.get(id).filter(|node| !node.is_dead)?;
            Some((id.clone(), self.living(node.parent.as_ref()), node.text.tell()))
        });
        let compactions = self.compactions.iter().map(|compaction| {
            (summary_of(&compaction.id), compaction.first.clone(), compaction.last.clone())
        });
        State {
            messages: living.collect(),
            head: self.living(self.head.as_ref()),
            labels: self.labels.clone().into_iter().collect(),
            compactions: compactions.collect(),
            view: self.view(self.head.as_ref()),
            raw: self.raw(self.head.as_ref()).into_iter().map(|(id, _)| id).collect(),
        }
    }

    /// Returns the ids of the living messages that have one, in order of creation.
    pub(crate) fn ids(&self) -> Vec<&String> {
        self.order.iter().filter(|id| self.word(id).is_some()).collect()
    }

    /// Returns the ids of the living messages that no compaction covers.
    pub(crate) fn bare_ids(&self) -> Vec<&String> {
        self.ids().into_iter().filter(|id| !self.covered.contains(*id)).collect()
    }

    /// Returns the ids of what the path to the head shows, oldest first.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.view(self.head.as_ref())
    }

    /// Returns the word of a living message that can be asked for.
    pub(crate) fn word(&self, id: &str) -> Option<&str> {
        let node = self.nodes.get(id).filter(|node| !node.is_dead && !node.is_nameless)?;
        Some(node.text.word.as_str())
    }

    /// Returns the words that were said and are gone: of deleted messages.
    pub(crate) fn dead_words(&self) -> Vec<&str> {
        self.nodes
            .values()
            .filter(|node| node.is_dead)
            .map(|node| node.text.word.as_str())
            .collect()
    }
}
