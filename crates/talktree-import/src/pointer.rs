//! Labels and the head, which point to messages.

use std::collections::HashMap;

use talktree::{Error, Label, MessageId, Result};

use crate::draft::{Body, DraftLabel};
use crate::record_names::label_record;
use crate::work::{Fate, Work};
use crate::write::Writer;

impl Writer<'_> {
    pub(crate) fn set_labels(&mut self, work: &mut Work<'_>, drafts: &[DraftLabel]) -> Result<()> {
        if drafts.is_empty() {
            return Ok(());
        }
        let known = work.session.labels()?;
        for (draft, fault) in work.checked_labels(drafts) {
            let DraftLabel { name, target, line } = draft;
            let present = known.iter().find(|label| label.name == *name);
            let result = match (fault, present) {
                (Some(why), _) => Err(why),
                (None, Some(present)) => {
                    if present.id != *target {
                        let why = format!("label {name:?} is on {:?} and stays there", present.id);
                        work.report.remark(*line, why);
                    }
                    Ok(())
                }
                (None, None) if self.is_dry => Ok(()),
                // A label that was removed since it was imported is not set again.
                (None, None) if work.is_remembered(&label_record(name, target))? => Ok(()),
                (None, None) => match work.session.label(name, target) {
                    Err(error) if !error.is_refused() => return Err(error),
                    set => set.map_err(reason),
                },
            };
            match result {
                Ok(()) => work.record_names.push(label_record(name, target)),
                Err(why) => work.lose_attached(*line, format!("label {name:?}: {why}")),
            }
        }
        Ok(())
    }
}

/// Returns the reason of a refusal, without the name that the report has before it.
fn reason(error: Error) -> String {
    match error {
        Error::InvalidValue { why, .. } => why,
        error => error.to_string(),
    }
}

impl Work<'_> {
    /// Returns the labels of a new session.
    pub(crate) fn whole_labels(&mut self, drafts: &[DraftLabel]) -> Vec<Label> {
        let mut labels = Vec::new();
        for (DraftLabel { name, target, line }, fault) in self.checked_labels(drafts) {
            match fault {
                None => {
                    labels.push(Label::new(name.as_str(), target.clone()));
                    self.record_names.push(label_record(name, target));
                }
                Some(why) => self.lose_attached(*line, format!("label {name:?}: {why}")),
            }
        }
        labels
    }

    /// Returns each label with the reason why it is left out, and notes those that the file moves.
    fn checked_labels<'d>(
        &mut self,
        drafts: &'d [DraftLabel],
    ) -> Vec<(&'d DraftLabel, Option<String>)> {
        let mut seen: HashMap<&str, &MessageId> = HashMap::new();
        let mut checked = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let DraftLabel { name, target, line } = draft;
            if let Some(other) = seen.insert(name, target)
                && other != target
            {
                let why = format!("label {name:?} was on {other:?} before; it is moved");
                self.report.remark(*line, why);
            }
            checked.push((draft, self.label_fault(name, target)));
        }
        checked
    }

    fn label_fault(&self, name: &str, target: &MessageId) -> Option<String> {
        if matches!(self.fate_of(target), None | Some(Fate::Gone)) {
            return Some("the message it names is not in the file".to_owned());
        }
        if self.fate_of(&MessageId::from(name)).is_some_and(|fate| fate != Fate::Gone) {
            return Some("it is the id of a message of this session".to_owned());
        }
        Label::new(name, target.clone()).check().err().map(reason)
    }

    /// Returns where the head is to be: at `head`, or at the node that is stored last.
    pub(crate) fn target(&self, head: Option<&MessageId>) -> Option<MessageId> {
        let is_there = |at: &u32| {
            let is_message = !matches!(self.nodes[*at as usize].body, Body::Tombstone);
            self.fates[*at as usize] != Fate::Gone && is_message
        };
        let target = head.and_then(|id| match self.index.get(id)? {
            at if is_there(at) => Some(id.clone()),
            at => self.living_parent(*at),
        });
        let last = || (0..self.nodes.len() as u32).rev().find(is_there);
        target.or_else(|| last().map(|at| self.nodes[at as usize].id.clone()))
    }

    pub(crate) fn move_head(&self, head: Option<&MessageId>) -> Result<()> {
        let mut target = self.target(head);
        while let Some(id) = target.filter(|id| Some(id) != self.head_or_none().as_ref()) {
            target = match self.session.checkout(&id) {
                // Imported before and deleted since: its nearest living ancestor.
                Err(Error::UnknownMessage { .. }) => {
                    self.index.get(&id).and_then(|at| self.living_parent(*at))
                }
                moved => return moved,
            };
        }
        Ok(())
    }

    fn head_or_none(&self) -> Option<MessageId> {
        self.session.head().ok().flatten()
    }
}
