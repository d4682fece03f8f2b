//! Labels and the head, which point to messages.

use std::collections::HashMap;

use talktree::{Error, MessageId, Result};

use crate::draft::DraftLabel;
use crate::record_names::label_record;
use crate::work::{Fate, Work};
use crate::write::{Writer, refusal};

impl Writer<'_> {
    pub(crate) fn set_labels(&mut self, work: &mut Work<'_>, labels: &[DraftLabel]) -> Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        let known = work.session.labels()?;
        let mut seen: HashMap<&str, &MessageId> = HashMap::new();
        for DraftLabel { name, target, line } in labels {
            let line = *line;
            let present = known.iter().find(|label| label.name == *name);
            if let Some(other) = seen.insert(name, target)
                && other != target
            {
                let why = format!("label {name:?} was on {other:?} before; it is moved");
                work.report.remark(line, why);
            }
            let is_known_target = work.fate_of(target).is_some();
            let result = match present {
                _ if !is_known_target => Err("the message it names is not in the file".to_owned()),
                Some(present) if present.id == *target => Ok(()),
                Some(present) => {
                    let why = format!("label {name:?} is on {:?} and stays there", present.id);
                    work.report.remark(line, why);
                    Ok(())
                }
                None if self.is_dry => Ok(()),
                // A label that was removed since it was imported is not set again.
                None if work.is_remembered(&label_record(name, target))? => Ok(()),
                None => refusal(work.session.label(name, target))?,
            };
            match result {
                Ok(()) => work.record_names.push(label_record(name, target)),
                Err(why) => work.report.fault(line, format!("label {name:?}: {why}")),
            }
        }
        Ok(())
    }
}

impl Work<'_> {
    /// Returns where the head is to be: at `head`, or at the node that is stored last.
    pub(crate) fn target(&self, head: Option<&MessageId>) -> Option<MessageId> {
        let is_there = |at: &u32| self.fates[*at as usize] != Fate::Gone;
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
