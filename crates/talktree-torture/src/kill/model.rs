//! What the store must hold according to a worker's log.
//!
//! The model holds only what a caller can see. A deleted message stays as a dead node, and its children count as
//! children of the nearest living ancestor; so the model does not depend on how the store keeps deleted messages.

use std::collections::{BTreeMap, BTreeSet};

use super::operation::{Line, Operation};
use super::state::{State, short};
use super::transcripts::Transcripts;
use crate::Result;
use crate::text::{MessageSpec, TextSpec};

/// A message.
#[derive(Debug, Clone)]
struct Node {
    parent: Option<String>,
    text: TextSpec,
    is_dead: bool,
    /// Whether the library generated its id, so that no operation can name it.
    is_nameless: bool,
}

/// A compaction.
#[derive(Debug, Clone)]
pub(crate) struct CompactionMark {
    pub(crate) id: String,
    pub(crate) first: String,
    pub(crate) last: String,
}

/// A fork as it was created; nothing writes to it afterwards.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub(crate) raw: Vec<(String, String)>,
    pub(crate) view: Vec<String>,
}

/// Returns the text of a summary. It contains the id, because the library may generate another one.
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
    /// The messages that a compaction covers; they are never deleted.
    covered: BTreeSet<String>,
    pub(crate) forks: BTreeMap<String, Copy>,
    /// Imported sessions with their counts; a killed import may have stored none of one.
    pub(crate) imports: BTreeMap<String, u32>,
    /// The sessions in which this one continues after a split.
    pub(crate) splits: BTreeSet<String>,
    pub(crate) shared: Vec<MessageSpec>,
    /// The last backup and the state it must hold.
    pub(crate) backup: Option<(String, State)>,
    pub(crate) created: Vec<(String, MessageSpec)>,
    pub(crate) transcripts: Transcripts,
    /// How often the store was opened.
    pub(crate) openings: u32,
}

/// The state at the end of a log.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) model: Model,
    /// The last operation, if nothing says how it ended.
    pub(crate) pending: Option<Operation>,
    pub(crate) acknowledged: u64,
    /// The wrong results that verbs returned.
    pub(crate) wrong: Vec<String>,
}

impl Replay {
    /// Replays a log.
    pub(crate) fn of(lines: &[Line]) -> Result<Self> {
        let mut replay = Self::default();
        for line in lines {
            match line {
                Line::Begin(operation) => replay.pending = Some(operation.clone()),
                Line::Done | Line::Undone => {
                    let operation = replay.pending.take().ok_or("an end without a beginning")?;
                    replay.settle(&operation, *line == Line::Done);
                    replay.acknowledged += u64::from(*line == Line::Done);
                }
                Line::Wrong(what) => {
                    let operation = replay.pending.take();
                    replay.wrong.push(format!("{}: {what}", short(&operation)));
                }
            }
        }
        Ok(replay)
    }

    /// Applies an operation to the model if it was done.
    pub(crate) fn settle(&mut self, operation: &Operation, is_done: bool) {
        // An opening, an import or an erasure may have had effects without being done.
        let may_be_half = matches!(
            operation,
            Operation::Open | Operation::Import { .. } | Operation::EraseOwner { .. }
        );
        if is_done || may_be_half {
            self.model.apply(operation);
        }
        if !is_done && let Operation::EraseOwner { .. } = operation {
            self.model.transcripts.is_erasure_unfinished = true;
        }
    }
}

impl Model {
    /// Applies an operation.
    pub(crate) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Open => self.openings += 1,
            Operation::Append { to, messages } => self.append(to.as_ref(), messages),
            Operation::AppendAndCompact { message } => {
                self.append(None, std::slice::from_ref(message))
            }
            Operation::BranchSummary { to, message } => {
                self.append(Some(to), std::slice::from_ref(message));
                if let Some(node) = self.nodes.get_mut(&message.id) {
                    node.is_nameless = true;
                }
            }
            Operation::Update { message } | Operation::CommitStalePlan { message } => {
                if let Some(node) = self.nodes.get_mut(&message.id) {
                    node.text = message.text.clone();
                }
            }
            Operation::Delete { id } => {
                if let Some(node) = self.nodes.get_mut(id) {
                    node.is_dead = true;
                }
                self.labels.retain(|_, target| target != id);
            }
            Operation::ImportCompaction { id, first, last }
            | Operation::CommitPlan { id, first, last } => {
                let range = self.range_of(first, last);
                self.covered.extend(range);
                self.compactions.push(CompactionMark {
                    id: id.clone(),
                    first: first.clone(),
                    last: last.clone(),
                });
            }
            Operation::RemoveCompaction { id } => {
                self.compactions.retain(|compaction| compaction.id != *id)
            }
            Operation::Split { session } => {
                self.splits.insert(session.clone());
            }
            Operation::Label { name, id } => {
                self.labels.insert(name.clone(), id.clone());
            }
            Operation::Checkout { id } => self.head = Some(id.clone()),
            Operation::Fork { session, at } => {
                let raw = self.raw(Some(at));
                let view = self.view(Some(at));
                self.forks.insert(session.clone(), Copy { raw, view });
            }
            Operation::AppendShared { message } => self.shared.push(message.clone()),
            Operation::Search { .. } | Operation::VisibleTokens { .. } => {}
            Operation::Import { session, count } => {
                self.imports.insert(session.clone(), *count);
            }
            Operation::AppendEntries { entries, .. } => {
                self.transcripts.entries.push(entries.clone())
            }
            Operation::EraseOwner { transcript } => self.transcripts.erase(transcript),
            Operation::Backup { file } => self.backup = Some((file.clone(), self.state())),
            Operation::Create { file, message } => {
                self.created.push((file.clone(), message.clone()))
            }
        }
    }

    fn append(&mut self, to: Option<&String>, messages: &[MessageSpec]) {
        let mut parent = to.cloned().or_else(|| self.head.clone());
        for MessageSpec { id, text } in messages {
            let text = text.clone();
            let node = Node { parent, text, is_dead: false, is_nameless: false };
            self.nodes.insert(id.clone(), node);
            self.order.push(id.clone());
            parent = Some(id.clone());
        }
        self.head = parent;
    }

    /// Returns the nodes from a message up to its root.
    fn up<'a>(&'a self, from: Option<&'a String>) -> impl Iterator<Item = (&'a String, &'a Node)> {
        let mut at = from;
        std::iter::from_fn(move || {
            let (id, node) = self.nodes.get_key_value(at?)?;
            at = node.parent.as_ref();
            Some((id, node))
        })
    }

    /// Returns the ids from `last` up to `first`, dead nodes included.
    fn range_of(&self, first: &String, last: &String) -> Vec<String> {
        let mut range: Vec<String> = Vec::new();
        for (id, _) in self.up(Some(last)) {
            range.push(id.clone());
            if id == first {
                break;
            }
        }
        range
    }

    fn living(&self, from: Option<&String>) -> Option<String> {
        self.up(from).find(|(_, node)| !node.is_dead).map(|(id, _)| id.clone())
    }

    /// Returns the stored messages of a path, oldest first.
    fn raw(&self, leaf: Option<&String>) -> Vec<(String, String)> {
        let living = self.up(leaf).filter(|(_, node)| !node.is_dead);
        let mut path: Vec<_> = living.map(|(id, node)| (id.clone(), node.text.render())).collect();
        path.reverse();
        path
    }

    /// Returns the ids in a history, oldest first.
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
                self.range_of(&compaction.first, &compaction.last).len()
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

    /// Returns what a reader of the worker's session must see.
    pub(crate) fn state(&self) -> State {
        let living = self.order.iter().filter_map(|id| {
            let node = self.nodes.get(id).filter(|node| !node.is_dead)?;
            Some((id.clone(), self.living(node.parent.as_ref()), node.text.render()))
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

    /// Returns the living messages that an operation can name, in order of creation.
    pub(crate) fn ids(&self) -> Vec<&String> {
        self.order.iter().filter(|id| self.word(id).is_some()).collect()
    }

    /// Returns the living messages that no compaction covers.
    pub(crate) fn bare_ids(&self) -> Vec<&String> {
        self.ids().into_iter().filter(|id| !self.covered.contains(*id)).collect()
    }

    /// Returns the ids in the history of the head, oldest first.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.view(self.head.as_ref())
    }

    /// Returns the first word of a living message that an operation can name.
    pub(crate) fn word(&self, id: &str) -> Option<&str> {
        let node = self.nodes.get(id).filter(|node| !node.is_dead && !node.is_nameless)?;
        Some(node.text.word.as_str())
    }

    /// Returns the first words of deleted messages.
    pub(crate) fn dead_words(&self) -> Vec<&str> {
        self.nodes
            .values()
            .filter(|node| node.is_dead)
            .map(|node| node.text.word.as_str())
            .collect()
    }
}
