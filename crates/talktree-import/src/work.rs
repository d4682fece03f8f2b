//! The nodes of one conversation during its import: their order, and the result for each.

use std::collections::{HashMap, HashSet};

use crate::report::ImportReport;
use talktree::{
    Error, ImportRecord, Imported, Json, Message, MessageId, Result, Session, SessionDetails,
};

use crate::details::Derived;
use crate::draft::{Body, DraftCompaction, DraftLabel, Node, Orphans, Reader, with_source};
use crate::exact::Exact;
use crate::fields::Fields;
use crate::order::arrange;
use crate::records::{Place, Records};

/// The metadata key under which a root that lost its parent keeps the parent's id, so that a later file with the parent
/// is recognised as a part of the same conversation.
pub(crate) const MISSING_PARENT: &str = "missing_parent";

/// Why a record is dropped that is not there when it is read again.
const CHANGED: &str = "the file was changed while it was imported; this record is not stored";

/// One conversation during its import.
pub(crate) struct Work<'a> {
    pub(crate) session: &'a Session,
    pub(crate) report: &'a mut ImportReport,
    pub(crate) nodes: Vec<Node>,
    pub(crate) index: HashMap<MessageId, u32>,
    pub(crate) parents: Vec<Option<u32>>,
    /// Nodes whose parent is a message of the store.
    pub(crate) outside: HashMap<u32, MessageId>,
    /// Roots whose parent is missing.
    pub(crate) orphans: HashSet<u32>,
    pub(crate) order: Vec<u32>,
    pub(crate) fates: Vec<Fate>,
    /// Whether a message was added that is not hidden.
    pub(crate) has_shown: bool,
    /// The details that are derived from the messages.
    pub(crate) derived: Derived,
    /// Whether it comes from an export of talktree.
    pub(crate) is_exact: bool,
    /// How many of its records are no messages.
    pub(crate) attached: u64,
    /// Whether the session had messages before.
    pub(crate) has_messages: bool,
    /// Whether the session existed before, so that record names can be stored in it.
    pub(crate) has_past: bool,
    /// Whether the session is new, or an interrupted import created it.
    pub(crate) is_new: bool,
    /// The record names to store with the first messages.
    pub(crate) opening: Vec<String>,
    /// The record names to store at the end.
    pub(crate) record_names: Vec<String>,
}

/// Messages to be stored, with their nodes.
pub(crate) type Batch = Vec<(u32, ImportRecord)>;

/// What a draft has in addition to its nodes.
pub(crate) struct Remainder {
    pub(crate) details: SessionDetails,
    pub(crate) compactions: Vec<DraftCompaction>,
    pub(crate) labels: Vec<DraftLabel>,
    pub(crate) head: Option<MessageId>,
    /// What only an export of talktree has.
    pub(crate) exact: Option<Exact>,
    /// More record names to store with the session.
    pub(crate) record_names: Vec<String>,
    /// The line it begins on.
    pub(crate) line: u64,
}

/// The work on a new session that waits to be stored with others.
pub(crate) struct Waiting {
    pub(crate) nodes: Vec<Node>,
    /// The nodes of the messages that wait.
    pub(crate) batch: Vec<u32>,
    pub(crate) remainder: Remainder,
    index: HashMap<MessageId, u32>,
    parents: Vec<Option<u32>>,
    orphans: HashSet<u32>,
    order: Vec<u32>,
    fates: Vec<Fate>,
    derived: Derived,
}

/// Where records are read again.
pub(crate) struct Source<'a, 'b> {
    pub(crate) records: &'a mut Records<'b>,
    pub(crate) reader: &'a dyn Reader,
}

/// The result for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Added,
    Kept,
    /// Not in the store: a repetition, too large, or deleted since it was imported.
    Gone,
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        session: &'a Session,
        report: &'a mut ImportReport,
        nodes: Vec<Node>,
        has_messages: bool,
    ) -> Self {
        let count = nodes.len();
        Self {
            session,
            report,
            nodes,
            index: HashMap::with_capacity(count),
            parents: vec![None; count],
            outside: HashMap::new(),
            orphans: HashSet::new(),
            order: Vec::new(),
            fates: vec![Fate::Open; count],
            has_shown: false,
            derived: Derived::default(),
            is_exact: false,
            attached: 0,
            has_messages,
            has_past: false,
            is_new: false,
            opening: Vec::new(),
            record_names: Vec::new(),
        }
    }

    /// Lets the session wait.
    pub(crate) fn wait(self, batch: Vec<u32>, remainder: Remainder) -> Waiting {
        let Self { nodes, index, parents, orphans, order, fates, derived, .. } = self;
        Waiting { nodes, batch, remainder, index, parents, orphans, order, fates, derived }
    }

    /// Goes on with a session that waited.
    pub(crate) fn resume(
        session: &'a Session,
        report: &'a mut ImportReport,
        waiting: Waiting,
        has_messages: bool,
    ) -> (Self, Remainder) {
        let Waiting { nodes, remainder, index, parents, orphans, order, fates, derived, .. } =
            waiting;
        let work = Self {
            index,
            parents,
            orphans,
            order,
            fates,
            derived,
            is_exact: remainder.exact.is_some(),
            attached: remainder.exact.as_ref().map_or(0, |exact| exact.records),
            ..Self::new(session, report, nodes, has_messages)
        };
        (work, remainder)
    }

    /// Finds each node's parent, and sorts the nodes.
    pub(crate) fn connect(&mut self, orphans: Orphans) -> Result<()> {
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let Some(&first) = self.index.get(&node.id) else {
                self.index.insert(node.id.clone(), at as u32);
                continue;
            };
            let first = &self.nodes[first as usize];
            let (line, before) = (node.line, first.line);
            self.fates[at] = Fate::Gone;
            match first.fingerprint == node.fingerprint {
                true => {
                    self.report.leave_out(line, format!("repeats the record of line {before}"));
                }
                false => {
                    let why = format!("id {:?} is on line {before} with other content", node.id);
                    self.report.lose(line, why);
                }
            }
        }
        // One for the main chain, one for side chains.
        let mut before = [None, None];
        for at in 0..self.nodes.len() as u32 {
            if self.fates[at as usize] == Fate::Gone {
                continue;
            }
            let chain = usize::from(self.nodes[at as usize].is_side);
            self.parents[at as usize] = self.parent_of(at, orphans, before[chain])?;
            before[chain] = Some(at);
        }
        let (order, broken) = arrange(&mut self.parents);
        for at in broken {
            let Node { id, line, .. } = &self.nodes[at as usize];
            let why = format!("message {id:?} is its own ancestor; it begins a tree of its own");
            self.report.fault(*line, why);
        }
        self.order = order;
        Ok(())
    }

    fn parent_of(&mut self, at: u32, orphans: Orphans, before: Option<u32>) -> Result<Option<u32>> {
        let Node { id, parent, line, body, .. } = &self.nodes[at as usize];
        let Some(parent) = parent else { return Ok(None) };
        if let Some(&found) = self.index.get(parent) {
            return Ok(Some(found));
        }
        if self.has_messages && self.session.message(parent)?.is_some() {
            self.outside.insert(at, parent.clone());
            return Ok(None);
        }
        if matches!(body, Body::Tombstone) {
            return Ok(None);
        }
        let missing = format!("parent {parent:?} of message {id:?} is missing");
        let line = *line;
        match before.filter(|_| orphans == Orphans::FollowTheNodeBefore) {
            Some(before) => {
                let id = &self.nodes[before as usize].id;
                self.report.fault(line, format!("{missing}; it follows {id:?}, the one before it"));
                Ok(Some(before))
            }
            None => {
                self.report.fault(line, format!("{missing}; it begins a tree of its own"));
                self.orphans.insert(at);
                Ok(None)
            }
        }
    }

    /// Takes the message of a node out of memory and returns it; `None` if its record is no longer in the file.
    pub(crate) fn message(
        &mut self,
        at: u32,
        source: &mut Source<'_, '_>,
        keeps_source: bool,
    ) -> Result<Option<Message>> {
        let node = &mut self.nodes[at as usize];
        let place = match &mut node.body {
            Body::There(place) => *place,
            Body::Tombstone => {
                let place = Message::new("", Vec::new()).with_id(node.id.clone());
                return Ok(Some(place.hidden()));
            }
            Body::Here(message) => {
                return Ok(Some(std::mem::replace(&mut **message, Message::new("", Vec::new()))));
            }
        };
        let Some((mut message, record)) = read_again(node, &place, source)? else {
            self.fates[at as usize] = Fate::Gone;
            self.report.lose(self.nodes[at as usize].line, CHANGED);
            return Ok(None);
        };
        message.is_hidden |= self.nodes[at as usize].is_hidden;
        Ok(Some(if keeps_source { with_source(message, &record) } else { message }))
    }

    pub(crate) fn peek(
        &self,
        at: u32,
        source: Option<&mut Source<'_, '_>>,
    ) -> Result<Option<Message>> {
        let node = &self.nodes[at as usize];
        match &node.body {
            Body::Here(message) => Ok(Some((**message).clone())),
            Body::Tombstone => Ok(None),
            Body::There(place) => {
                let Some(source) = source else { return Ok(None) };
                // The reader of whole conversations keeps its own position; that of several records has none.
                let read = read_again(node, place, source)?;
                Ok(read.map(|(message, _)| message))
            }
        }
    }

    /// Stores a batch; drops messages that cannot be stored.
    pub(crate) fn store(&mut self, mut batch: Batch) -> Result<()> {
        while !batch.is_empty() {
            let (nodes, records): (Vec<u32>, Vec<ImportRecord>) = batch.into_iter().unzip();
            let mut records: Vec<ImportRecord> = nodes
                .iter()
                .zip(records)
                .map(|(node, record)| ImportRecord { parent: self.living_parent(*node), ..record })
                .collect();
            records.extend(self.opening(&records)?);
            let stored = self.session.import_messages(&records);
            records.truncate(nodes.len());
            match stored {
                Ok(imported) => {
                    self.opening.clear();
                    for ((node, record), imported) in nodes.iter().zip(&records).zip(imported) {
                        self.settle(*node, imported, record.message.is_hidden);
                    }
                    return Ok(());
                }
                Err(error @ Error::MessageTooLarge { .. }) => {
                    let Error::MessageTooLarge { id, .. } = &error else { return Err(error) };
                    let Some(at) = records.iter().position(|record| record.message.id == *id)
                    else {
                        return Err(error);
                    };
                    let node = nodes[at];
                    self.fates[node as usize] = Fate::Gone;
                    self.report.lose(self.nodes[node as usize].line, error.to_string());
                    batch = nodes.into_iter().zip(records).filter(|(n, _)| *n != node).collect();
                }
                // The message to store the names with was deleted: the messages matter more.
                Err(Error::UnknownMessage { .. }) if !self.opening.is_empty() => {
                    self.opening.clear();
                    batch = nodes.into_iter().zip(records).collect();
                }
                // A parent was imported before and deleted since: store one by one to find it.
                Err(Error::UnknownMessage { .. }) => {
                    for (node, record) in nodes.into_iter().zip(records) {
                        self.store_one(node, record)?;
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn store_one(&mut self, node: u32, mut record: ImportRecord) -> Result<()> {
        let wanted = self.living_parent(node);
        loop {
            record.parent = self.living_parent(node);
            match self.session.import_messages(std::slice::from_ref(&record)) {
                Ok(imported) => {
                    let imported = imported.first().copied().unwrap_or(Imported::Known);
                    if imported == Imported::Added && record.parent != wanted {
                        let line = self.nodes[node as usize].line;
                        let why = match record.parent {
                            Some(_) => {
                                "the message it follows was deleted; it follows the nearest one \
                                 above that is left"
                            }
                            None => {
                                "the message it follows was deleted; none above is left; it begins \
                                 a tree of its own"
                            }
                        };
                        self.report.remark(line, why);
                    }
                    self.settle(node, imported, record.message.is_hidden);
                    return Ok(());
                }
                Err(error @ Error::UnknownMessage { .. }) => {
                    let Some(parent) = &record.parent else { return Err(error) };
                    match self.index.get(parent) {
                        Some(at) if self.fates[*at as usize] != Fate::Gone => {
                            self.fates[*at as usize] = Fate::Gone;
                        }
                        // It was in the store when this import began.
                        _ if self.outside.values().any(|id| id == parent) => {
                            self.outside.retain(|_, id| id != parent);
                        }
                        _ => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Predicts the result of storing a batch, for a dry run.
    pub(crate) fn rehearse(&mut self, batch: Batch) -> Result<()> {
        for (node, record) in batch {
            let message = record.message;
            let stored = match self.has_messages {
                true => self.session.message(&message.id)?,
                false => None,
            };
            let imported = match stored {
                None => Imported::Added,
                Some(stored) if stored.role == message.role && stored.text() == message.text() => {
                    Imported::Known
                }
                Some(_) => Imported::Differs,
            };
            self.settle(node, imported, message.is_hidden);
        }
        Ok(())
    }

    /// Counts the result for a node.
    fn settle(&mut self, node: u32, imported: Imported, is_hidden: bool) {
        let Node { id, line, body, .. } = &self.nodes[node as usize];
        if matches!(body, Body::Tombstone) {
            self.fates[node as usize] = Fate::Kept;
            return;
        }
        self.fates[node as usize] = Fate::Kept;
        match imported {
            Imported::Added => {
                self.fates[node as usize] = Fate::Added;
                self.has_shown |= !is_hidden || self.is_exact;
                self.report.added += 1;
            }
            Imported::Known => {
                self.report.known += 1;
                let parent = self.parents[node as usize];
                if parent.is_some_and(|parent| self.fates[parent as usize] == Fate::Added) {
                    let why = format!(
                        "message {id:?} was imported before its parent came, and stays where it is"
                    );
                    self.report.remark(*line, why);
                }
            }
            // `Imported::Differs`.
            _ => {
                let why = format!("message {id:?} is there with other content, which was left");
                self.report.lose(*line, why);
                return;
            }
        }
        match is_hidden {
            true => self.report.converted += 1,
            false => self.report.kept += 1,
        }
    }

    /// Returns the nearest ancestor of a node that is in the store.
    pub(crate) fn living_parent(&self, node: u32) -> Option<MessageId> {
        let mut at = node;
        loop {
            if let Some(outside) = self.outside.get(&at) {
                return Some(outside.clone());
            }
            at = self.parents[at as usize]?;
            if self.fates[at as usize] != Fate::Gone {
                return Some(self.nodes[at as usize].id.clone());
            }
        }
    }

    /// Returns the nearest ancestor of a node in the file that is not gone.
    pub(crate) fn living_place(&self, node: u32) -> Option<u32> {
        let mut at = self.parents[node as usize]?;
        while self.fates[at as usize] == Fate::Gone {
            at = self.parents[at as usize]?;
        }
        Some(at)
    }

    pub(crate) fn fate_of(&self, id: &MessageId) -> Option<Fate> {
        self.index.get(id).map(|at| self.fates[*at as usize])
    }
}

impl Node {
    /// Returns the record name of this node in the store.
    pub(crate) fn record(&self) -> String {
        format!("{}#{:016x}", self.id, self.fingerprint)
    }

    pub(crate) fn bytes(&self) -> usize {
        match self.body {
            Body::Here(_) | Body::Tombstone => 0,
            Body::There(place) => place.bytes,
        }
    }
}

/// Reads the record of a node again. The file may be rewritten meanwhile: then another text must not come under the id
/// of the first.
pub(crate) fn read_again(
    node: &Node,
    place: &Place,
    source: &mut Source<'_, '_>,
) -> Result<Option<(Message, Json)>> {
    let failed = |source| Error::Io { path: std::path::PathBuf::new(), source };
    let Some(record) = source.records.record_at(node.line, place).map_err(failed)? else {
        return Ok(None);
    };
    // It was parsed when it was read first.
    let (Ok(fields), Ok(json)) = (Fields::parse(&record.text), Json::parse(&record.text)) else {
        return Ok(None);
    };
    Ok(Some((source.reader.message(&record, fields, node), json)))
}

pub(crate) fn with_missing_parent(mut message: Message, node: &Node) -> Message {
    let Some(parent) = &node.parent else { return message };
    let known = match &message.metadata {
        None => Fields::default(),
        Some(metadata) => match Fields::of(metadata) {
            Some(fields) => fields,
            None => return message,
        },
    };
    let parent = serde_json::Value::String(parent.to_string());
    message.metadata = known.with(MISSING_PARENT, Some(parent)).into_json();
    message
}
