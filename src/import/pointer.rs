//! Labels and the head: what points at messages.

use std::collections::HashMap;

use super::draft::{DraftHead, DraftLabel};
use super::work::{Fate, Work};
use super::write::{Writer, forgive};
use crate::error::{Error, Result};
use crate::id::MessageId;

impl Writer<'_> {
    pub(super) fn set_labels(
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

impl Work<'_> {
    pub(super) fn move_head(&self, head: DraftHead) -> Result<()> {
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
