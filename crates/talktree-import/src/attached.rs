//! The records that refer to messages: compactions, what an export of talktree attaches to messages, labels, the head.

use std::collections::HashMap;

use talktree::{Compaction, CompactionId, Label, MessageId, Record, Result, Summary};

use crate::draft::{Body, Draft, DraftCompaction, DraftLabel};
use crate::order::{Shape, last_end};
use crate::report::Sent;
use crate::work::{Status, Work};

const COMPACTION: &str = "compaction";
/// A compaction of another program, whose entry is a hidden message, too.
const KEPT_COMPACTION: &str = "compaction left out, kept as a hidden message; it is";

impl Work<'_> {
    /// Returns these records of a draft, without the head.
    pub(crate) fn attached_records(&mut self, draft: &mut Draft) -> Result<Vec<(Sent, Record)>> {
        let mut records = self.compactions(&draft.compactions)?;
        records.extend(self.of_export(std::mem::take(&mut draft.attached)));
        records.extend(self.labels(&draft.labels)?);
        Ok(records)
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
                    let mut compaction = Compaction::new(draft.summary.as_str(), first, last);
                    compaction.id = draft.id.clone();
                    compaction.details = draft.details.clone();
                    compaction.created_at = draft.created_at;
                    let (first_tombstone, last_tombstone) = (None, None);
                    let record = Record::Compaction { compaction, first_tombstone, last_tombstone };
                    records.push((sent, record));
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
        if let Some(after) = &draft.after {
            let first = self.first_behind(after, last);
            return Ok(first.map(|first| (first, last_id)));
        }
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

    /// Returns the first message between one that a compaction keeps and the last that it covers.
    fn first_behind(&self, after: &MessageId, last: u32) -> Result<MessageId, String> {
        let after_at = self.index.get(after).copied();
        let (mut at, mut first) = (Some(last).filter(|last| Some(*last) != after_at), None);
        while let Some(node) = at {
            if !self.statuses[node as usize].is_gone() {
                first = Some(self.nodes[node as usize].id.clone());
            }
            match self.parents[node as usize] {
                None => return Err(format!("message {after:?}, which it keeps, is not above it")),
                parent => at = parent.filter(|parent| Some(*parent) != after_at),
            }
        }
        first.ok_or_else(|| format!("nothing is behind {after:?}, the last it keeps"))
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

    /// Returns the records of an export that refer to messages; of another program, with the messages that are added.
    fn of_export(&mut self, records: Vec<(u64, Record)>) -> Vec<(Sent, Record)> {
        let mut attached = Vec::with_capacity(records.len());
        for (line, record) in records {
            let kind = match &record {
                Record::Compaction { .. } => COMPACTION,
                Record::Elision { .. } => "elision",
                _ => "tag",
            };
            if let Record::Elision { message, .. } = &record
                && !self.is_exact
                && self.status_of(message) != Some(Status::Added)
            {
                continue;
            }
            let sent = Sent::Attached { line, kind, is_record: self.is_exact };
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
                if let Some((end, _)) = ends.find(|end| !is_known(end)) {
                    return Some(format!("message {end:?} is not in the file"));
                }
                let is_blank = Summary::new(summary.as_str()).is_blank();
                is_blank.then(|| "its summary is blank".to_owned())
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

    /// Returns where the head is to be: at the leaf that goes on from where the draft says, or at the last one of the file.
    pub(crate) fn head(&mut self, draft: &Draft) -> Result<Option<Record>> {
        if draft.is_at_start {
            return Ok(Some(Record::Head { id: None }));
        }
        let is_summary = |id: &&MessageId| CompactionId::from_message(id).is_some();
        if let Some(id) = draft.head.as_ref().filter(is_summary).filter(|_| self.is_exact) {
            return Ok(Some(Record::Head { id: Some(id.clone()) }));
        }
        let mut id = None;
        let given = draft.head.as_ref().and_then(|id| self.index.get(id)).copied();
        let last = (0..self.nodes.len() as u32).rev().find(|at| !self.is_lost(*at));
        if let Some(from) = given.or(last) {
            let at = self.end_below(from, draft);
            id = match self.is_there(at)? && !self.is_lost(at) {
                true => Some(self.nodes[at as usize].id.clone()),
                false => self.living_parent(at),
            };
        }
        for at in (0..self.nodes.len() as u32).rev() {
            if id.is_none() && !self.is_lost(at) && self.is_there(at)? {
                id = Some(self.nodes[at as usize].id.clone());
            }
        }
        Ok(id.map(|id| Record::Head { id: Some(id) }))
    }

    /// Returns whether a node is no message.
    fn is_lost(&self, at: u32) -> bool {
        let is_tombstone = matches!(self.nodes[at as usize].body, Body::Tombstone(_));
        is_tombstone || self.statuses[at as usize].is_gone()
    }

    /// Returns where the conversation ends that goes on below a node: a file may have it before the node.
    fn end_below(&self, from: u32, draft: &Draft) -> u32 {
        if self.is_exact || draft.is_head_given {
            return from;
        }
        let is_note = |at: u32| draft.notes.get(at as usize).copied().unwrap_or_default();
        let is_side = self.nodes[from as usize].is_side;
        last_end(&self.parents, from, |at| {
            !self.is_lost(at) && !is_note(at) && self.nodes[at as usize].is_side == is_side
        })
    }
}
