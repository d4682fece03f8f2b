//! The records of a conversation, in the order in which the store takes them.
//!
//! What refers to messages is found out before the first record: while the store takes records, nothing can be read from it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use talktree::{
    Compaction, CompactionId, Label, Message, MessageId, Record, Result, SessionDetails,
    SessionInfo, Summary,
};

use crate::draft::{Body, Draft, DraftCompaction, DraftLabel, Node};
use crate::fields::Fields;
use crate::order::Shape;
use crate::report::ImportReport;
use crate::title::Title;
use crate::work::{MISSING_PARENT, Source, Status, Work};

/// A draft without its nodes.
pub(crate) struct Remainder {
    pub(crate) details: SessionDetails,
    pub(crate) compactions: Vec<DraftCompaction>,
    pub(crate) labels: Vec<DraftLabel>,
    pub(crate) attached: Vec<(u64, Record)>,
    pub(crate) head: Option<MessageId>,
    /// Whether the head is before the first message.
    pub(crate) is_at_start: bool,
    /// More names to remember.
    pub(crate) names: Vec<String>,
    /// The line it begins on.
    pub(crate) line: u64,
}

impl Draft {
    /// Splits a draft into its nodes and the rest.
    pub(crate) fn split(self) -> (Vec<Node>, Remainder) {
        let Self { details, nodes, compactions, labels, attached, head, is_at_start, line, .. } =
            self;
        let rest = Remainder {
            details,
            compactions,
            labels,
            attached,
            head,
            is_at_start,
            names: Vec::new(),
            line,
        };
        (nodes, rest)
    }
}

/// What a record is in the report, in case that the store refuses it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sent {
    /// A message that counts as added.
    Message { line: u64, is_hidden: bool },
    /// What refers to messages; `is_record` if it counts as a record of the file.
    Attached { line: u64, kind: &'static str, is_record: bool },
    /// What the report does not tell of.
    Silent,
}

impl Sent {
    /// Counts the record as dropped.
    pub(crate) fn take_back(self, report: &mut ImportReport) {
        match self {
            Self::Message { is_hidden, .. } => {
                report.added -= 1;
                match is_hidden {
                    true => report.converted -= 1,
                    false => report.kept -= 1,
                }
                report.dropped += 1;
            }
            Self::Attached { is_record: true, .. } => {
                report.converted -= 1;
                report.dropped += 1;
            }
            Self::Attached { .. } | Self::Silent => {}
        }
    }

    /// Counts the record as dropped, and says why.
    pub(crate) fn refuse(self, why: &str, report: &mut ImportReport) {
        self.take_back(report);
        match self {
            Self::Message { line, .. } => report.fault(line, why),
            Self::Attached { line, kind, .. } => {
                report.fault(line, format!("{kind} left out: {why}"));
            }
            Self::Silent => {}
        }
    }
}

const COMPACTION: &str = "compaction";
/// A compaction of another program, whose entry is a hidden message, too.
const KEPT_COMPACTION: &str = "compaction left out, kept as a hidden message; it is";

/// The records of one conversation; the messages are read while the store takes them.
pub(crate) struct Plan<'w, 'a, 's, 'b> {
    work: &'w mut Work<'a>,
    source: Source<'s, 'b>,
    keeps_source: bool,
    check: &'w dyn Fn() -> Result<()>,
    before: Option<SessionInfo>,
    line: u64,
    /// The details to set at the beginning, and those that wait for the end.
    begin: Option<SessionDetails>,
    end: SessionDetails,
    next: usize,
    /// What follows the messages.
    rest: std::vec::IntoIter<(Sent, Record)>,
    head: Option<Record>,
    is_over: bool,
    /// Whether a message is added, and one that is not hidden.
    has_added: bool,
    has_shown: bool,
    title: Option<(u32, Title)>,
    oldest: Option<DateTime<Utc>>,
    newest: Option<DateTime<Utc>>,
    /// What the records so far are in the report.
    pub(crate) sent: Vec<Sent>,
    /// How many bytes were read for them.
    pub(crate) bytes: usize,
}

impl<'w, 'a, 's, 'b> Plan<'w, 'a, 's, 'b> {
    pub(crate) fn new(
        work: &'w mut Work<'a>,
        source: Source<'s, 'b>,
        keeps_source: bool,
        check: &'w dyn Fn() -> Result<()>,
        before: Option<SessionInfo>,
        remainder: Remainder,
    ) -> Result<Self> {
        let mut rest = work.compactions(&remainder.compactions)?;
        rest.extend(work.attached(remainder.attached));
        rest.extend(work.labels(&remainder.labels)?);
        let names = remainder.names.into_iter();
        rest.extend(names.map(|name| (Sent::Silent, Record::Imported { name })));
        let head = match remainder.is_at_start {
            true => Some(Record::Head { id: None }),
            false => work.head(remainder.head.as_ref())?,
        };
        let (begin, end) = work.details(remainder.details, before.as_ref());
        let line = remainder.line;
        Ok(Self {
            work,
            source,
            keeps_source,
            check,
            before,
            begin: Some(begin),
            line,
            end,
            next: 0,
            rest: rest.into_iter(),
            head,
            is_over: false,
            has_added: false,
            has_shown: false,
            title: None,
            oldest: None,
            newest: None,
            sent: Vec::new(),
            bytes: 0,
        })
    }

    /// Returns whether records that were read to the end change nothing.
    pub(crate) fn is_idle(&self, records: &[Record]) -> bool {
        let is_default = |record: &Record| match record {
            Record::Session { details, .. } => *details == SessionDetails::default(),
            _ => false,
        };
        self.before.is_some() && records.iter().all(is_default)
    }

    pub(crate) fn report(&mut self) -> &mut ImportReport {
        self.work.report
    }

    fn message(&mut self) -> Result<Option<(Sent, Record)>> {
        while let Some(&at) = self.work.order.get(self.next) {
            self.next += 1;
            if self.next.is_multiple_of(1_000) {
                (self.check)()?;
            }
            let node = at as usize;
            if let Body::Tombstone(tombstone) = &self.work.nodes[node].body {
                let mut record = (**tombstone).clone();
                if let Record::Tombstone { parent, below, .. } = &mut record {
                    *parent = self.work.living_parent(at);
                    *below = self.work.tombstone_above(at);
                }
                return Ok(Some((Sent::Silent, record)));
            }
            if self.work.statuses[node] == Status::Lost {
                continue;
            }
            self.bytes += self.work.nodes[node].bytes();
            let read = self.work.message(at, &mut self.source, self.keeps_source)?;
            let Some(mut message) = read else { continue };
            let is_known = matches!(self.work.statuses[node], Status::Known | Status::Deleted);
            let sent = self.count(at, &message);
            if is_known {
                continue;
            }
            if self.work.orphans.contains(&at) && !self.work.is_exact {
                message = with_missing_parent(message, &self.work.nodes[node]);
            }
            message.parent = self.work.living_parent(at);
            let below = self.work.tombstone_above(at);
            let name = Some(self.work.nodes[node].record());
            return Ok(Some((sent, Record::Message { below, message, name })));
        }
        Ok(None)
    }

    /// Counts a message in the report, and for the details of the session.
    fn count(&mut self, at: u32, message: &Message) -> Sent {
        let (status, is_hidden) = (self.work.statuses[at as usize], message.is_hidden);
        let Node { id, line, .. } = &self.work.nodes[at as usize];
        let (id, line) = (id.clone(), *line);
        self.note(at, message, status == Status::Added);
        let report = self.report();
        match status {
            Status::Differs => {
                let why = format!("message {id:?} is there with other content, which was left");
                report.lose(line, why);
                return Sent::Silent;
            }
            Status::Added => report.added += 1,
            _ => report.known += 1,
        }
        match is_hidden {
            true => report.converted += 1,
            false => report.kept += 1,
        }
        if status != Status::Added {
            return Sent::Silent;
        }
        self.has_added = true;
        self.has_shown |= !is_hidden || self.work.is_exact;
        Sent::Message { line, is_hidden }
    }

    /// Takes times and the title from a message, in any order.
    fn note(&mut self, at: u32, message: &Message, is_added: bool) {
        if self.work.is_exact {
            return;
        }
        let time = message.created_at;
        self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
        self.newest = Some(self.newest.map_or(time, |newest| newest.max(time)));
        let rank = |(place, title): &(u32, Title)| (!title.is_final(), *place);
        let known = self.title.as_ref().map(rank);
        let is_used = match &self.end.name {
            Some(_) => !is_added,
            // One that lost its name stays without.
            None => {
                let is_new = is_added && !self.work.has_messages;
                is_new && known.is_none_or(|known| known > (false, at))
            }
        };
        if !is_used {
            return;
        }
        let mut title = Title::default();
        title.add(message);
        match is_added {
            // A name that was made from a message of the store was there before: it was changed, or erased with the message.
            false => {
                self.end.name.take_if(|name| title.line() == Some(name));
            }
            true if title.line().is_some() => {
                let found = (at, title);
                if known.is_none_or(|known| rank(&found) < known) {
                    self.title = Some(found);
                }
            }
            true => {}
        }
    }

    /// Returns the details that are set at the end.
    fn last_details(&mut self) -> SessionDetails {
        let mut details = std::mem::take(&mut self.end);
        if self.work.is_exact {
            return details;
        }
        let is_named = self.before.as_ref().is_some_and(|before| before.name.is_some());
        let line = self.title.as_ref().and_then(|(_, title)| title.line()).filter(|_| !is_named);
        details.name = details.name.or_else(|| line.map(str::to_owned));
        let is_new = !self.work.has_messages && (self.has_added || self.before.is_none());
        details.created_at = details.created_at.or(self.oldest).filter(|_| is_new);
        let is_changed = self.before.is_none() || self.has_added;
        if is_changed || details != SessionDetails::default() {
            let newest = self.newest.filter(|_| self.has_added);
            let before = self.before.as_ref().map(|info| info.updated_at);
            details.updated_at = before.into_iter().chain(newest).max();
        }
        details
    }
}

impl Iterator for Plan<'_, '_, '_, '_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(details) = self.begin.take() {
            self.sent.push(Sent::Silent);
            let id = self.work.session.id().clone();
            return Some(Ok(Record::Session { id, details }));
        }
        let next = match self.message() {
            Ok(message) => message.or_else(|| self.rest.next()),
            Err(error) => return Some(Err(error)),
        };
        let next = next.or_else(|| {
            // An older copy of a file may add only a hidden entry; the head of that copy is older, too.
            let head = self.head.take();
            let head = head.filter(|_| self.has_shown || !self.work.has_messages);
            Some((Sent::Silent, head?))
        });
        let next = next.or_else(|| {
            let details = match std::mem::replace(&mut self.is_over, true) {
                true => SessionDetails::default(),
                false => self.last_details(),
            };
            let id = self.work.session.id().clone();
            let is_empty = details == SessionDetails::default();
            let sent = Sent::Attached { line: self.line, kind: "details", is_record: false };
            (!is_empty).then_some((sent, Record::Session { id, details }))
        });
        let (sent, record) = next?;
        self.sent.push(sent);
        Some(Ok(record))
    }
}

impl Work<'_> {
    /// Returns the details to set before the messages, and those to set after them.
    fn details(
        &self,
        mut details: SessionDetails,
        before: Option<&SessionInfo>,
    ) -> (SessionDetails, SessionDetails) {
        // No session has an empty one.
        for text in [&mut details.model, &mut details.source] {
            text.take_if(|text| text.is_empty());
        }
        let is_own = before.is_none_or(|info| details.created_at == Some(info.created_at));
        let (created_at, updated_at) = (details.created_at, details.updated_at.take());
        if let Some(before) = before {
            details = details.missing_in(before);
        }
        let mut end = SessionDetails::default();
        if self.is_exact {
            // A name that it lacks by now was removed, or erased with the message that it was made from.
            details.name.take_if(|_| self.has_messages);
            end.updated_at = updated_at.filter(|_| is_own && !self.has_messages);
        } else {
            end.name = details.name.take();
            end.created_at = created_at;
            details.created_at = None;
        }
        (details, end)
    }

    /// Returns the compactions of another program.
    fn compactions(&mut self, drafts: &[DraftCompaction]) -> Result<Vec<(Sent, Record)>> {
        let mut records = Vec::new();
        if drafts.is_empty() {
            return Ok(records);
        }
        let shape = Shape::new(&self.parents, &self.order);
        for draft in drafts {
            // One that was left out when its entry was imported is left out again.
            if self.has_messages && self.status_of(&draft.marker) != Some(Status::Added) {
                continue;
            }
            let line = draft.line;
            match self.covered(draft, &shape)? {
                Ok((first, last)) => {
                    let sent = Sent::Attached { line, kind: KEPT_COMPACTION, is_record: false };
                    let compaction = draft.between(first, last);
                    records.push((
                        sent,
                        Record::Compaction {
                            compaction,
                            first_tombstone: None,
                            last_tombstone: None,
                        },
                    ));
                }
                Err(why) => {
                    let why = format!("compaction left out, kept as a hidden message: {why}");
                    self.report.fault(line, why);
                }
            }
        }
        Ok(records)
    }

    /// Returns the ends of a compaction; the inner error says why it cannot be added.
    fn covered(
        &mut self,
        draft: &DraftCompaction,
        shape: &Shape,
    ) -> Result<std::result::Result<(MessageId, MessageId), String>> {
        let (last, marker) = match self.last_of(draft, shape) {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        if shape.is_ancestor(last, marker) && shape.has_branch_between(last, marker) {
            let why =
                "a branch leaves the path before this compaction: the summary shows there, too";
            self.report.remark(draft.line, why);
        }
        if Summary::new(draft.summary.as_str()).is_blank() {
            return Ok(Err("its summary is blank".to_owned()));
        }
        let last_id = match self.is_there(last)? {
            true => Some(self.nodes[last as usize].id.clone()),
            false => self.living_parent(last),
        };
        let Some(last_id) = last_id else {
            return Ok(Err("all messages it covers are gone".to_owned()));
        };
        // The path may begin before the file.
        let (mut at, mut first) = (last, last_id.clone());
        let stored = loop {
            if let Some(outside) = self.outside.get(&at) {
                break Some(outside.clone());
            }
            match self.statuses[at as usize] {
                Status::Added => first = self.nodes[at as usize].id.clone(),
                status if !status.is_gone() => break Some(self.nodes[at as usize].id.clone()),
                _ => {}
            }
            match self.parents[at as usize] {
                Some(parent) => at = parent,
                None => break None,
            }
        };
        if let Some(stored) = stored
            && let Some(root) = self.session.at(&stored).raw().iter().next()
        {
            first = root?.id;
        }
        Ok(Ok((first, last_id)))
    }

    /// Returns the last node under a compaction, and the node that is the compaction.
    fn last_of(&self, draft: &DraftCompaction, shape: &Shape) -> Result<(u32, u32), String> {
        let find = |id: &MessageId| {
            let missing = || format!("message {id:?} is not in the file");
            self.index.get(id).copied().ok_or_else(missing)
        };
        let (marker, kept) = (find(&draft.marker)?, find(&draft.kept)?);
        if !shape.is_ancestor(kept, marker) {
            return Err(format!(
                "the first message it keeps, {:?}, is on another branch",
                draft.kept
            ));
        }
        let nothing = || format!("nothing is before {:?}, the first it keeps", draft.kept);
        Ok((self.parents[kept as usize].ok_or_else(nothing)?, marker))
    }

    /// Returns the records of an export that refer to messages.
    fn attached(&mut self, records: Vec<(u64, Record)>) -> Vec<(Sent, Record)> {
        let mut attached = Vec::with_capacity(records.len());
        for (line, record) in records {
            let kind = match &record {
                Record::Compaction { .. } => COMPACTION,
                Record::Elision { .. } => "elision",
                _ => "tag",
            };
            let sent = Sent::Attached { line, kind, is_record: true };
            match self.fault_of(&record) {
                Some(why) => sent.refuse(&why, self.report),
                None => attached.push((sent, record)),
            }
        }
        attached
    }

    fn fault_of(&self, record: &Record) -> Option<String> {
        match record {
            Record::Compaction { compaction, first_tombstone, last_tombstone } => {
                let Compaction { first, last, summary, .. } = compaction;
                let is_known = |(end, tombstone): &(&MessageId, &Option<u64>)| {
                    tombstone.is_some()
                        || self.index.contains_key(*end)
                        || CompactionId::from_message(end).is_some()
                };
                let mut ends = [(first, first_tombstone), (last, last_tombstone)].into_iter();
                match ends.find(|end| !is_known(end)) {
                    Some((end, _)) => Some(format!("message {end:?} is not in the file")),
                    None => Summary::new(summary.as_str())
                        .is_blank()
                        .then(|| "its summary is blank".to_owned()),
                }
            }
            Record::Elision { message, .. } if self.index.contains_key(message) => None,
            Record::Tag(tag) if self.index.contains_key(&tag.message) => None,
            _ => Some("the message it is of is not in the file".to_owned()),
        }
    }

    /// Returns the labels; of those of one name the last.
    fn labels(&mut self, drafts: &[DraftLabel]) -> Result<Vec<(Sent, Record)>> {
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.session.labels()?;
        let mut wanted: HashMap<&str, &DraftLabel> = HashMap::new();
        for draft in drafts {
            if let Some(before) = wanted.insert(&draft.name, draft)
                && before.target != draft.target
            {
                let DraftLabel { name, target, .. } = before;
                let why = format!("label {name:?} was on {target:?} before; it is moved");
                self.report.remark(draft.line, why);
            }
        }
        let mut records = Vec::new();
        for draft @ DraftLabel { name, target, line } in drafts {
            let sent = Sent::Attached { line: *line, kind: "label", is_record: self.is_exact };
            let fault = self.label_fault(name, target);
            let is_last = wanted.get(name.as_str()).is_some_and(|last| std::ptr::eq(*last, draft));
            let present = known.iter().find(|label| label.name == *name);
            match (fault, present) {
                (Some(why), _) => {
                    sent.take_back(self.report);
                    self.report.fault(*line, format!("label {name:?}: {why}"));
                }
                (None, Some(present)) if present.id != *target => {
                    let why = format!("label {name:?} is on {:?} and stays there", present.id);
                    self.report.remark(*line, why);
                }
                (None, None) if is_last => {
                    records.push((sent, Record::Label(Label::new(name.as_str(), target.clone()))));
                }
                _ => {}
            }
        }
        Ok(records)
    }

    fn label_fault(&self, name: &str, target: &MessageId) -> Option<String> {
        if self.status_of(target).is_none_or(Status::is_gone) {
            return Some("the message it names is not in the file".to_owned());
        }
        if self.status_of(&MessageId::from(name)).is_some_and(|status| !status.is_gone()) {
            return Some("it is the id of a message of this session".to_owned());
        }
        let checked = Label::new(name, target.clone()).check();
        checked.err().map(|error| match error {
            talktree::Error::InvalidValue { why, .. } => why,
            error => error.to_string(),
        })
    }

    /// Returns where the head is to be: at `head`, or at the message that is stored last.
    fn head(&mut self, head: Option<&MessageId>) -> Result<Option<Record>> {
        let is_summary = |id: &&MessageId| CompactionId::from_message(id).is_some();
        if let Some(id) = head.filter(is_summary).filter(|_| self.is_exact) {
            return Ok(Some(Record::Head { id: Some(id.clone()) }));
        }
        let given = head.and_then(|id| self.index.get(id).copied());
        let mut id = None;
        if let Some(at) = given {
            let is_message = !matches!(self.nodes[at as usize].body, Body::Tombstone(_));
            id = match self.is_there(at)? && is_message {
                true => Some(self.nodes[at as usize].id.clone()),
                false => self.living_parent(at),
            };
        }
        for at in (0..self.nodes.len() as u32).rev() {
            if id.is_some() {
                break;
            }
            let is_message = !matches!(self.nodes[at as usize].body, Body::Tombstone(_));
            if is_message && self.is_there(at)? {
                id = Some(self.nodes[at as usize].id.clone());
            }
        }
        Ok(id.map(|id| Record::Head { id: Some(id) }))
    }
}

impl DraftCompaction {
    /// Returns the compaction with its ends.
    fn between(&self, first: MessageId, last: MessageId) -> Compaction {
        let mut compaction = Compaction::new(self.summary.as_str(), first, last);
        compaction.id = self.id.clone();
        compaction.details = self.details.clone();
        compaction.created_at = self.created_at;
        compaction
    }
}

/// Returns a message that tells which parent it lost.
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
