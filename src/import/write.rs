//! Storing one conversation: in order, in bounded transactions, and what belongs to it after it.

use std::collections::{HashMap, HashSet};

use super::ImportOptions;
use super::draft::{
    Body, Draft, DraftHead, DraftLabel, Node, Orphans, Overlay, OverlayEnd, Reader, with_source,
};
use super::fields::Fields;
use super::order::{Shape, arrange};
use super::records::{Record, Records, changed};
use super::report::ImportReport;
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::id::{MessageId, check_name};
use crate::message::{Json, Message};
use crate::outcome::{Arrival, Incoming, SessionDetails, SessionInfo};
use crate::session::Session;
use crate::store::Store;
use crate::view::View;

/// How many messages go into one transaction ..
const MAX_BATCH: usize = 1_000;
/// .. and how many bytes of records, so that long messages do not pile up in memory.
const MAX_BATCH_BYTES: usize = 8 << 20;
/// How many messages that stand are compared to tell whether a session is the same conversation.
const MAX_COMPARED: usize = 64;
/// Under which metadata key a root that lost its parent keeps the parent's id, so that a later file
/// that brings the parent is known as a piece of the same conversation.
const MISSING_PARENT: &str = "missing_parent";

/// Stores conversations, or finds out what storing them would do.
pub(super) struct Writer<'a> {
    pub(super) store: &'a Store,
    pub(super) options: &'a ImportOptions,
    pub(super) is_dry: bool,
    /// Fails when the import is to stop.
    pub(super) check: &'a dyn Fn() -> Result<()>,
}

/// One conversation while it is stored.
struct Work<'a> {
    session: &'a Session,
    report: &'a mut ImportReport,
    nodes: Vec<Node>,
    index: HashMap<MessageId, u32>,
    parents: Vec<Option<u32>>,
    /// Nodes that hang from a message of the store.
    outside: HashMap<u32, MessageId>,
    /// Roots whose parent is nowhere.
    orphans: HashSet<u32>,
    order: Vec<u32>,
    fates: Vec<Fate>,
    /// Whether the session had messages before.
    has_messages: bool,
}

/// What became of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Added,
    Stands,
    /// Not in the store: a repetition, too large, or deleted since it was imported.
    Gone,
}

impl Writer<'_> {
    /// Stores a conversation; `hear` is told how many nodes are done.
    pub(super) fn write(
        &mut self,
        draft: Draft,
        records: &mut Records<'_>,
        reader: &dyn Reader,
        report: &mut ImportReport,
        hear: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let id = self.options.session.as_ref().unwrap_or(&draft.session).clone();
        let session = self.store.session(&id)?;
        if !report.sessions.contains(&id) {
            report.sessions.push(id);
        }
        let info = session.info()?;
        let has_messages = info.is_some() && session.latest_leaf()?.is_some();
        let Draft { details, nodes, overlays, labels, head, line, orphans, is_own, .. } = draft;
        let mut work = Work::new(&session, report, nodes, has_messages);
        work.connect(orphans)?;
        if has_messages
            && self.options.session.is_none()
            && let Some(why) = work.conflict(records, reader)?
        {
            work.refuse(line, &why, &overlays, &labels);
            return Ok(());
        }
        self.write_messages(&mut work, records, reader, is_own, hear)?;

        let has_added = work.fates.contains(&Fate::Added);
        let is_fresh = match is_own {
            true => info.is_none(),
            // The source is set last: without it an earlier import was cut off.
            false => info.as_ref().is_none_or(|info| info.source.is_none()),
        };
        self.lay_overlays(&mut work, overlays, is_fresh)?;
        self.set_labels(&mut work, labels, is_own || is_fresh || has_added)?;
        if self.is_dry {
            return Ok(());
        }
        if has_added || is_fresh {
            work.move_head(head)?;
        }
        if let Some(why) = set_missing_details(&session, details, info.as_ref())? {
            work.report.fault(line, why);
        }
        Ok(())
    }

    fn write_messages(
        &mut self,
        work: &mut Work<'_>,
        records: &mut Records<'_>,
        reader: &dyn Reader,
        is_own: bool,
        hear: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let order = std::mem::take(&mut work.order);
        let mut at = 0;
        while at < order.len() {
            (self.check)()?;
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while at < order.len() && batch.len() < MAX_BATCH && bytes < MAX_BATCH_BYTES {
                let node = order[at];
                at += 1;
                if work.fates[node as usize] == Fate::Gone {
                    continue;
                }
                bytes += work.nodes[node as usize].bytes();
                let keeps_source = self.options.keeps_source && !is_own;
                let mut message = work.message(node, records, reader, keeps_source)?;
                if work.orphans.contains(&node) && !is_own {
                    message = with_missing_parent(message, &work.nodes[node as usize]);
                }
                let Node { id, mark, .. } = &work.nodes[node as usize];
                let record = format!("{id}#{mark:016x}");
                batch.push((node, Incoming { record, parent: None, message }));
            }
            match self.is_dry {
                true => work.rehearse(batch)?,
                false => work.store(batch)?,
            }
            hear(at as u64, order.len() as u64);
        }
        work.order = order;
        Ok(())
    }

    fn lay_overlays(
        &mut self,
        work: &mut Work<'_>,
        overlays: Vec<Overlay>,
        is_fresh: bool,
    ) -> Result<()> {
        if overlays.is_empty() {
            return Ok(());
        }
        let shape = Shape::new(&work.parents, &work.order);
        let standing = work.session.compactions()?;
        let standing: HashSet<_> = standing.into_iter().map(|compaction| compaction.id).collect();
        for overlay in overlays {
            (self.check)()?;
            let (line, is_record) = (overlay.line, overlay.marker.is_none());
            // One that was taken off since it was imported stays off.
            let is_known = standing.contains(&overlay.id)
                || overlay.marker.as_ref().is_some_and(|marker| {
                    !is_fresh && work.fate_of(marker).is_none_or(|fate| fate != Fate::Added)
                });
            let laid = match is_known {
                true => Ok(()),
                false => work.lay(overlay, &shape, self.is_dry)?,
            };
            match (laid, is_record) {
                (Ok(()), true) => work.report.converted += 1,
                (Ok(()), false) => {}
                (Err(why), true) => work.report.lose(line, format!("compaction left out: {why}")),
                (Err(why), false) => {
                    let why = format!("compaction not laid, kept as an aside: {why}");
                    work.report.fault(line, why);
                }
            }
        }
        Ok(())
    }

    fn set_labels(
        &mut self,
        work: &mut Work<'_>,
        labels: Vec<DraftLabel>,
        is_new: bool,
    ) -> Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        let standing = work.session.labels()?;
        let mut seen: HashMap<String, MessageId> = HashMap::new();
        for DraftLabel { name, target, line, is_record } in labels {
            let stands = standing.iter().find(|label| label.name == name);
            if let Some(other) = seen.insert(name.clone(), target.clone())
                && other != target
            {
                let why = format!("label {name:?} stood on {other:?} before; it is moved");
                work.report.remark(line, why);
            }
            let is_known_target = work.fate_of(&target).is_some();
            let result = match stands {
                _ if !is_known_target => Err("the message it names is not in the file".to_owned()),
                Some(stands) if stands.id == target => Ok(()),
                Some(stands) => {
                    let why = format!("label {name:?} stands on {:?}; it is left there", stands.id);
                    work.report.remark(line, why);
                    Ok(())
                }
                None if self.is_dry || !is_new => Ok(()),
                None => forgive(work.session.label(&name, &target))?,
            };
            match (result, is_record) {
                (Ok(()), true) => work.report.converted += 1,
                (Ok(()), false) => {}
                (Err(why), true) => work.report.lose(line, format!("label {name:?}: {why}")),
                (Err(why), false) => work.report.fault(line, format!("label {name:?}: {why}")),
            }
        }
        Ok(())
    }
}

impl<'a> Work<'a> {
    fn new(
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
            has_messages,
        }
    }

    /// Finds each node's parent, and puts the nodes in order.
    fn connect(&mut self, orphans: Orphans) -> Result<()> {
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let Some(&first) = self.index.get(&node.id) else {
                self.index.insert(node.id.clone(), at as u32);
                continue;
            };
            let first = &self.nodes[first as usize];
            let (line, before) = (node.line, first.line);
            self.fates[at] = Fate::Gone;
            match first.mark == node.mark {
                true => {
                    self.report.leave_out(line, format!("repeats the record of line {before}"));
                }
                false => {
                    let why =
                        format!("id {:?} stands on line {before} with other content", node.id);
                    self.report.lose(line, why);
                }
            }
        }
        // Of each chain, the main one and the side ones.
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
        let Node { id, parent, line, .. } = &self.nodes[at as usize];
        let Some(parent) = parent else { return Ok(None) };
        if let Some(&found) = self.index.get(parent) {
            return Ok(Some(found));
        }
        if self.has_messages && self.session.message(parent)?.is_some() {
            self.outside.insert(at, parent.clone());
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

    /// Returns why the session that stands is another conversation than this, if it is.
    fn conflict(
        &mut self,
        records: &mut Records<'_>,
        reader: &dyn Reader,
    ) -> Result<Option<String>> {
        let (mut equal, mut other) = (0_usize, 0_usize);
        for at in 0..self.order.len() {
            let node = self.order[at];
            if self.fates[node as usize] == Fate::Gone {
                continue;
            }
            let Some(stored) = self.session.message(&self.nodes[node as usize].id)? else {
                continue;
            };
            let incoming = self.peek(node, records, reader)?;
            match stored.role == incoming.role && stored.text() == incoming.text() {
                true => equal += 1,
                false => other += 1,
            }
            if equal + other == MAX_COMPARED {
                break;
            }
        }
        if other > equal {
            return Ok(Some(format!("{other} of {} messages differ", equal + other)));
        }
        if equal > 0 || !self.outside.is_empty() || self.nodes.is_empty() {
            return Ok(None);
        }
        let brings_a_parent = self.session.roots()?.iter().any(|root| {
            let metadata = root.metadata.as_ref().and_then(Fields::of);
            let missing = metadata.and_then(|metadata| metadata.text(MISSING_PARENT));
            missing.is_some_and(|parent| self.index.contains_key(parent.as_str()))
        });
        Ok((!brings_a_parent).then(|| "no message is in both".to_owned()))
    }

    /// Counts everything as dropped.
    fn refuse(&mut self, line: u64, why: &str, overlays: &[Overlay], labels: &[DraftLabel]) {
        let nodes = self.fates.iter().filter(|fate| **fate != Fate::Gone).count();
        let overlays = overlays.iter().filter(|overlay| overlay.marker.is_none()).count();
        let labels = labels.iter().filter(|label| label.is_record).count();
        self.report.dropped += (nodes + overlays + labels) as u64;
        self.report.fault(
            line,
            format!(
                "session {:?} already holds another conversation ({why}): {nodes} messages left \
                 out; import them into a session of another id",
                self.session.id()
            ),
        );
    }

    /// Returns the message of a node, and gives up what is held of it.
    fn message(
        &mut self,
        at: u32,
        records: &mut Records<'_>,
        reader: &dyn Reader,
        keeps_source: bool,
    ) -> Result<Message> {
        let node = &mut self.nodes[at as usize];
        let (offset, bytes) = match &mut node.body {
            Body::There { offset, bytes } => (*offset, *bytes),
            Body::Here(message) => {
                return Ok(std::mem::replace(&mut **message, Message::new("", Vec::new())));
            }
        };
        let (message, source) = read_again(node, offset, bytes, records, reader)?;
        Ok(if keeps_source { with_source(message, &source) } else { message })
    }

    fn peek(&self, at: u32, records: &mut Records<'_>, reader: &dyn Reader) -> Result<Message> {
        let node = &self.nodes[at as usize];
        match &node.body {
            Body::Here(message) => Ok((**message).clone()),
            Body::There { offset, bytes } => {
                // The reading of whole conversations goes on at its own place; pieces have none.
                read_again(node, *offset, *bytes, records, reader).map(|(message, _)| message)
            }
        }
    }

    /// Stores a batch, leaving out what cannot be stored.
    fn store(&mut self, mut batch: Vec<(u32, Incoming)>) -> Result<()> {
        while !batch.is_empty() {
            let (nodes, records): (Vec<u32>, Vec<Incoming>) = batch.into_iter().unzip();
            let records: Vec<Incoming> = nodes
                .iter()
                .zip(records)
                .map(|(node, record)| Incoming { parent: self.living_parent(*node), ..record })
                .collect();
            match self.session.import_messages(&records) {
                Ok(arrivals) => {
                    for ((node, record), arrival) in nodes.iter().zip(&records).zip(arrivals) {
                        self.settle(*node, arrival, record.message.is_aside);
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
                // A parent was imported before and deleted since: find out which, one by one.
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

    fn store_one(&mut self, node: u32, mut record: Incoming) -> Result<()> {
        let wanted = self.living_parent(node);
        loop {
            record.parent = self.living_parent(node);
            match self.session.import_messages(std::slice::from_ref(&record)) {
                Ok(arrivals) => {
                    let arrival = arrivals.first().copied().unwrap_or(Arrival::Known);
                    if arrival == Arrival::Added && record.parent != wanted {
                        let line = self.nodes[node as usize].line;
                        let why = "the message it follows was deleted; it hangs from the nearest \
                                   one above that stands";
                        self.report.remark(line, why);
                    }
                    self.settle(node, arrival, record.message.is_aside);
                    return Ok(());
                }
                Err(error @ Error::UnknownMessage { .. }) => {
                    let parent = record.parent.as_ref().and_then(|id| self.index.get(id)).copied();
                    let Some(parent) = parent.filter(|p| self.fates[*p as usize] != Fate::Gone)
                    else {
                        return Err(error);
                    };
                    self.fates[parent as usize] = Fate::Gone;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Finds out what storing a batch would do.
    fn rehearse(&mut self, batch: Vec<(u32, Incoming)>) -> Result<()> {
        for (node, record) in batch {
            let message = record.message;
            let stored = match self.has_messages {
                true => self.session.message(&message.id)?,
                false => None,
            };
            let arrival = match stored {
                None => Arrival::Added,
                Some(stored) if stored.role == message.role && stored.text() == message.text() => {
                    Arrival::Known
                }
                Some(_) => Arrival::Differs,
            };
            self.settle(node, arrival, message.is_aside);
        }
        Ok(())
    }

    /// Counts what became of a node.
    fn settle(&mut self, node: u32, arrival: Arrival, is_aside: bool) {
        let Node { id, line, .. } = &self.nodes[node as usize];
        self.fates[node as usize] = Fate::Stands;
        match arrival {
            Arrival::Added => {
                self.fates[node as usize] = Fate::Added;
                self.report.added += 1;
            }
            Arrival::Known => {
                self.report.known += 1;
                let parent = self.parents[node as usize];
                if parent.is_some_and(|parent| self.fates[parent as usize] == Fate::Added) {
                    let why = format!(
                        "message {id:?} was imported before its parent came, and stays where it is"
                    );
                    self.report.remark(*line, why);
                }
            }
            Arrival::Differs => {
                let why = format!("message {id:?} stands with other content, which was left");
                self.report.lose(*line, why);
                return;
            }
        }
        match is_aside {
            true => self.report.converted += 1,
            false => self.report.kept += 1,
        }
    }

    /// Returns the nearest ancestor of a node that is in the store.
    fn living_parent(&self, node: u32) -> Option<MessageId> {
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

    fn fate_of(&self, id: &MessageId) -> Option<Fate> {
        self.index.get(id).map(|at| self.fates[*at as usize])
    }

    /// Lays a summary; the inner error says why that could not be done.
    fn lay(
        &mut self,
        overlay: Overlay,
        shape: &Shape,
        is_dry: bool,
    ) -> Result<std::result::Result<(), String>> {
        let find = |id: &MessageId| {
            let missing = || format!("message {id:?} is not in the file");
            self.index.get(id).copied().ok_or_else(missing)
        };
        let marker = match overlay.marker.as_ref().map(find).transpose() {
            Ok(marker) => marker,
            Err(why) => return Ok(Err(why)),
        };
        let last = match &overlay.last {
            OverlayEnd::At(id) => find(id),
            OverlayEnd::Before(kept) => find(kept).and_then(|at| {
                if marker.is_some_and(|marker| !shape.is_ancestor(at, marker)) {
                    return Err(format!(
                        "the first message it keeps, {kept:?}, is on another branch"
                    ));
                }
                self.parents[at as usize]
                    .ok_or_else(|| format!("nothing lies before {kept:?}, the first it keeps"))
            }),
        };
        let first = overlay.first.as_ref().map(find).transpose();
        let (last, first) = match (last, first) {
            (Ok(last), Ok(first)) => (last, first),
            (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
        };
        if marker.is_some_and(|m| shape.is_ancestor(last, m) && shape.has_branch_between(last, m)) {
            let why =
                "a branch leaves the path before this compaction: the summary shows there, too";
            self.report.remark(overlay.line, why);
        }
        if overlay.summary.trim().is_empty() {
            return Ok(Err("its summary is blank".to_owned()));
        }
        if is_dry {
            return Ok(Ok(()));
        }
        let standing = |at: u32| match self.fates[at as usize] {
            Fate::Gone => self.living_parent(at),
            _ => Some(self.nodes[at as usize].id.clone()),
        };
        let Some(last_id) = standing(last) else {
            return Ok(Err("all it stands for is gone".to_owned()));
        };
        let first_id = match first {
            Some(first) => self.nodes[first as usize].id.clone(),
            // The path may go on above the file, or its first messages may be deleted.
            None => match self.session.stream(View::at(&last_id).raw()) {
                Ok(mut path) => path.next().transpose()?.map_or(last_id.clone(), |m| m.id),
                Err(error) => return forgive(Err(error)),
            },
        };
        let laid = self.session.import_compaction(&Compaction {
            id: overlay.id,
            first: first_id,
            last: last_id,
            count: overlay.count,
            summary: overlay.summary,
            details: overlay.details,
            created_at: overlay.created_at,
        });
        forgive(laid)
    }

    fn move_head(&self, head: DraftHead) -> Result<()> {
        let is_there = |at: &u32| self.fates[*at as usize] != Fate::Gone;
        let target = match head {
            DraftHead::Start => {
                if self.session.head()?.is_some() {
                    self.session.checkout_start()?;
                }
                return Ok(());
            }
            DraftHead::At(id) => match self.index.get(&id) {
                Some(at) if is_there(at) => Some(id),
                Some(at) => self.living_parent(*at),
                None => None,
            },
            DraftHead::Last => None,
        };
        let last = || (0..self.nodes.len() as u32).rev().find(is_there);
        let target = target.or_else(|| last().map(|at| self.nodes[at as usize].id.clone()));
        let Some(target) = target.filter(|id| Some(id) != self.head_or_none().as_ref()) else {
            return Ok(());
        };
        match self.session.checkout(&target) {
            // Imported before and deleted since.
            Err(Error::UnknownMessage { .. }) => Ok(()),
            moved => moved,
        }
    }

    fn head_or_none(&self) -> Option<MessageId> {
        self.session.head().ok().flatten()
    }
}

impl Node {
    fn bytes(&self) -> usize {
        match self.body {
            Body::Here(_) => 0,
            Body::There { bytes, .. } => bytes,
        }
    }
}

fn read_again(
    node: &Node,
    offset: u64,
    bytes: usize,
    records: &mut Records<'_>,
    reader: &dyn Reader,
) -> Result<(Message, Json)> {
    let failed = |source| Error::Io { path: std::path::PathBuf::new(), source };
    let text = records.text_at(offset, bytes).map_err(failed)?;
    let fields = Fields::parse(&text).map_err(|_| failed(changed()))?;
    let source = Json::parse(&text)?;
    let record = Record { line: node.line, offset, text };
    Ok((reader.message(&record, fields, node), source))
}

fn with_missing_parent(mut message: Message, node: &Node) -> Message {
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

/// Sets what is not known of the session yet; a name given to it since stays. Returns what cannot be
/// set, and why.
fn set_missing_details(
    session: &Session,
    mut details: SessionDetails,
    before: Option<&SessionInfo>,
) -> Result<Option<String>> {
    let checked = details.name.as_ref().map(|name| check_name("session name", name));
    let why = checked.and_then(|checked| forgive(checked).ok()?.err());
    if why.is_some() {
        details.name = None;
    }
    let missing = match before {
        None => details,
        Some(info) => SessionDetails {
            name: details.name.filter(|_| info.name.is_none()),
            parent_session: details.parent_session.filter(|_| info.parent_session.is_none()),
            fork_point: details.fork_point.filter(|_| info.fork_point.is_none()),
            model: details.model.filter(|_| info.model.is_none()),
            source: details.source.filter(|_| info.source.is_none()),
            metadata: details.metadata.filter(|_| info.metadata.is_none()),
            end_reason: details.end_reason.filter(|_| info.end_reason.is_none()),
            created_at: None,
        },
    };
    match before.is_some() && missing == SessionDetails::default() {
        true => Ok(why),
        false => session.set_details(&missing).map(|()| why),
    }
}

/// Turns an error that speaks of the record alone into the reason it is left out.
fn forgive(result: Result<()>) -> Result<std::result::Result<(), String>> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(
            error @ (Error::UnknownMessage { .. }
            | Error::NotAncestor { .. }
            | Error::InsideSummary { .. }
            | Error::NothingToFold { .. }
            | Error::BlankSummary
            | Error::InvalidName { .. }),
        ) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
