//! The nodes of one conversation during its import: their order, and what the store has of each.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::path::Path;

use crate::report::ImportReport;
use talktree::{Error, Json, Message, MessageId, Record as Stored, Result, Session, SessionId};

use crate::draft::{Body, Node, Orphans, Reader, with_source};
use crate::fields::Fields;
use crate::order::arrange;
use crate::records::{Place, Records};
use crate::redact;

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
    pub(crate) statuses: Vec<Status>,
    /// Whether keys and tokens are replaced.
    pub(crate) is_redacted: bool,
    /// Whether it comes from an export of talktree.
    pub(crate) is_exact: bool,
    /// How many of its records are no messages.
    pub(crate) attached: u64,
    /// Whether the session had messages before.
    pub(crate) has_messages: bool,
}

/// Where records are read again.
pub(crate) struct Source<'a, 'b> {
    pub(crate) path: &'a Path,
    pub(crate) records: &'a mut Records<'b>,
    pub(crate) reader: &'a dyn Reader,
}

/// What the store has of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Nothing: it is stored.
    Added,
    /// It was imported before.
    Known,
    /// A message of its id, with the same content or with another one.
    Same,
    Differs,
    /// It was imported before and deleted since.
    Deleted,
    /// Not to be stored: a repetition, or no longer in the file.
    Lost,
}

impl Status {
    pub(crate) fn is_gone(self) -> bool {
        matches!(self, Self::Deleted | Self::Lost)
    }
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
            statuses: vec![Status::Added; count],
            is_redacted: false,
            is_exact: false,
            attached: 0,
            has_messages,
        }
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
            self.statuses[at] = Status::Lost;
            if first.fingerprint == node.fingerprint {
                self.report.leave_out(line, format!("repeats the record of line {before}"));
            } else {
                let why = format!("id {:?} is on line {before} with other content", node.id);
                self.report.lose(line, why);
            }
        }
        // One for the main chain, one for side chains.
        let mut before = [None, None];
        for at in 0..self.nodes.len() as u32 {
            if self.statuses[at as usize] == Status::Lost {
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
        if matches!(body, Body::Tombstone(_)) {
            return Ok(None);
        }
        let missing = format!("parent {parent:?} of message {id:?} is missing");
        let before = before.filter(|_| orphans == Orphans::FollowTheNodeBefore);
        let instead = match before.map(|before| &self.nodes[before as usize].id) {
            Some(id) => format!("it follows {id:?}, the one before it"),
            None => {
                self.orphans.insert(at);
                "it begins a tree of its own".to_owned()
            }
        };
        self.report.fault(*line, format!("{missing}; {instead}"));
        Ok(before)
    }

    /// Finds out what the store has of each node, if it has the session.
    pub(crate) fn judge(&mut self, source: &mut Source<'_, '_>) -> Result<()> {
        for at in 0..self.nodes.len() as u32 {
            let node = &self.nodes[at as usize];
            if self.statuses[at as usize] == Status::Lost || matches!(node.body, Body::Tombstone(_))
            {
                continue;
            }
            if self.session.is_imported(&node.record())? {
                self.statuses[at as usize] = Status::Known;
            } else if self.has_messages
                && let Some(stored) = self.session.message(&node.id)?
            {
                let found = self.peek(at, source)?;
                let is_same =
                    |found: Message| stored.role == found.role && stored.parts == found.parts;
                let is_same = found.is_none_or(is_same);
                self.statuses[at as usize] = if is_same { Status::Same } else { Status::Differs };
            }
        }
        for at in 0..self.nodes.len() as u32 {
            let Some(parent) = self.parents[at as usize] else { continue };
            let is_new = |at: u32| self.statuses[at as usize] == Status::Added;
            if is_new(at) {
                if self.is_there(parent)? || !self.has_deleted_parent(at) {
                    continue;
                }
                let why = match self.living_parent(at) {
                    Some(_) => "it follows the nearest one above that is left",
                    None => "none above is left; it begins a tree of its own",
                };
                let why = format!("the message it follows was deleted; {why}");
                self.report.remark(self.nodes[at as usize].line, why);
            } else if is_new(parent)
                && matches!(self.statuses[at as usize], Status::Known | Status::Same)
                && !matches!(self.nodes[parent as usize].body, Body::Tombstone(_))
            {
                let Node { id, line, .. } = &self.nodes[at as usize];
                let why = format!(
                    "message {id:?} was imported before its parent came, and stays where it is"
                );
                self.report.remark(*line, why);
            }
        }
        Ok(())
    }

    /// Returns whether a node is in the store or will be; looks for the nearest one above that is, too.
    pub(crate) fn is_there(&mut self, at: u32) -> Result<bool> {
        let mut next = Some(at);
        while let Some(at) = next {
            let status = &mut self.statuses[at as usize];
            if *status == Status::Known
                && self.session.message(&self.nodes[at as usize].id)?.is_none()
            {
                *status = Status::Deleted;
            }
            if !status.is_gone() {
                break;
            }
            next = self.parents[at as usize];
        }
        Ok(next == Some(at))
    }

    fn has_deleted_parent(&self, at: u32) -> bool {
        let mut next = self.parents[at as usize];
        while let Some(at) = next {
            match self.statuses[at as usize] {
                Status::Deleted => return true,
                Status::Lost => next = self.parents[at as usize],
                _ => return false,
            }
        }
        false
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
            Body::Tombstone(_) => return Ok(None),
            Body::Here(message) => {
                return Ok(Some(std::mem::replace(&mut **message, Message::new("", Vec::new()))));
            }
        };
        let Some((mut message, record)) = read_again(node, &place, source)? else {
            self.statuses[at as usize] = Status::Lost;
            self.report.lose(node.line, CHANGED);
            return Ok(None);
        };
        message.is_hidden |= node.is_hidden;
        let keeps_source = keeps_source && !self.is_exact;
        let record = Some(record).filter(|_| keeps_source).and_then(|it| Json::parse(&it).ok());
        Ok(Some(with_source(message, record.as_ref())))
    }

    pub(crate) fn peek(&self, at: u32, source: &mut Source<'_, '_>) -> Result<Option<Message>> {
        let node = &self.nodes[at as usize];
        let mut message = match &node.body {
            Body::Here(message) => Some((**message).clone()),
            Body::Tombstone(_) => None,
            // The reader of whole conversations keeps its own position; that of several records has none.
            Body::There(place) => read_again(node, place, source)?.map(|(message, _)| message),
        };
        if let Some(message) = message.as_mut().filter(|_| self.is_redacted) {
            redact::message(message, &mut redact::Counts::new());
        }
        Ok(message)
    }

    /// Returns the nearest message above a node that is in the store or will be.
    pub(crate) fn living_parent(&self, node: u32) -> Option<MessageId> {
        let mut at = node;
        loop {
            if let Some(outside) = self.outside.get(&at) {
                return Some(outside.clone());
            }
            at = self.parents[at as usize]?;
            let is_message = !matches!(self.nodes[at as usize].body, Body::Tombstone(_));
            if is_message && !self.statuses[at as usize].is_gone() {
                return Some(self.nodes[at as usize].id.clone());
            }
        }
    }

    /// Returns the number of the tombstone between a node and the nearest message above it.
    pub(crate) fn tombstone_above(&self, node: u32) -> Option<u64> {
        let mut at = self.parents[node as usize]?;
        while self.statuses[at as usize].is_gone() {
            at = self.parents[at as usize]?;
        }
        match &self.nodes[at as usize].body {
            Body::Tombstone(tombstone) => match **tombstone {
                Stored::Tombstone { number, .. } => Some(number),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn status_of(&self, id: &MessageId) -> Option<Status> {
        self.index.get(id).map(|at| self.statuses[*at as usize])
    }

    /// Counts all nodes of a session that must not come back as dropped.
    pub(crate) fn leave_out_erased(&mut self, line: u64, why: impl Display) {
        let id = self.session.id();
        if !self.report.erased.contains(id) {
            self.report.erased.push(id.clone());
        }
        self.leave_out_all(line, why);
    }

    /// Counts all nodes of a conversation as dropped.
    pub(crate) fn leave_out_all(&mut self, line: u64, why: impl Display) {
        let nodes = self.drop_all();
        self.report.remark(line, format!("{why}: {nodes} messages left out"));
    }

    /// Counts all nodes of a conversation as dropped whose session is another one.
    pub(crate) fn refuse(&mut self, line: u64, why: &str) {
        self.drop_all();
        self.report.fault(line, another_conversation(self.session.id(), why));
    }

    fn drop_all(&mut self) -> usize {
        let is_message = |(node, status): &(&Node, &Status)| {
            **status != Status::Lost && !matches!(node.body, Body::Tombstone(_))
        };
        let nodes = self.nodes.iter().zip(&self.statuses).filter(is_message).count();
        self.report.dropped += nodes as u64 + self.attached;
        self.report.converted -= self.attached;
        nodes
    }
}

/// Returns why a conversation is left out whose session is another one.
pub(crate) fn another_conversation(id: &SessionId, why: &str) -> String {
    format!(
        "session {id:?} already holds another conversation ({why}): its messages are left out; \
         import them into a session of another id"
    )
}

impl Node {
    /// Returns the record name of this node in the store.
    pub(crate) fn record(&self) -> String {
        format!("{}#{:016x}", self.id, self.fingerprint)
    }

    /// Returns how many bytes are read when its message is.
    pub(crate) fn bytes(&self) -> usize {
        match self.body {
            Body::Here(_) | Body::Tombstone(_) => 0,
            Body::There(place) => place.bytes,
        }
    }
}

/// Reads the record of a node again, and returns its message and its text. The file may be rewritten meanwhile: then another text must not come under the id
/// of the first.
pub(crate) fn read_again(
    node: &Node,
    place: &Place,
    source: &mut Source<'_, '_>,
) -> Result<Option<(Message, String)>> {
    let record = source.records.record_at(node.line, place);
    let failed = |error| Error::Io { path: source.path.to_owned(), source: error };
    let Some(record) = record.map_err(failed)? else { return Ok(None) };
    // It was parsed when it was read first.
    let Ok(fields) = Fields::parse(&record.text) else { return Ok(None) };
    let message = source.reader.message(&record, fields, &node.id);
    Ok(message.map(|message| (message.with_id(node.id.clone()), record.text)))
}
