//! Compactions of the source.

use std::collections::HashSet;

use talktree::{Compaction, MessageId, Result, Summary};

use crate::draft::DraftCompaction;
use crate::order::Shape;
use crate::record_names::{Past, compaction_record};
use crate::work::{Fate, Work};
use crate::write::{Writer, refusal};

impl Writer<'_> {
    pub(crate) fn add_compactions(
        &mut self,
        work: &mut Work<'_>,
        compactions: &[DraftCompaction],
        past: Past,
    ) -> Result<()> {
        if compactions.is_empty() {
            return Ok(());
        }
        let shape = Shape::new(&work.parents, &work.order);
        let known = work.session.compactions()?;
        let known: HashSet<_> = known.into_iter().map(|compaction| compaction.id).collect();
        for compaction in compactions {
            (self.check)()?;
            let line = compaction.line;
            let record = compaction_record(&compaction.id);
            let is_marker_new = work.fate_of(&compaction.marker) == Some(Fate::Added);
            // A compaction that was removed since it was imported is not added again.
            let is_done = known.contains(&compaction.id)
                || (!past.is_open && !is_marker_new)
                || (!self.is_dry && work.is_remembered(&record)?);
            let added = match is_done {
                true => Ok(()),
                false => work.compact(compaction, &shape, self.is_dry)?,
            };
            match added {
                Ok(()) => work.record_names.push(record),
                Err(why) => work.leave_out(line, &why),
            }
        }
        Ok(())
    }
}

impl DraftCompaction {
    /// Returns the compaction with its ends.
    pub(crate) fn between(&self, first: MessageId, last: MessageId) -> Compaction {
        let mut compaction = Compaction::new(self.summary.as_str(), first, last);
        compaction.id = self.id.clone();
        compaction.details = self.details.clone();
        compaction.created_at = self.created_at;
        compaction
    }
}

impl Work<'_> {
    /// Adds a compaction; the inner error says why it cannot be added.
    fn compact(
        &mut self,
        draft: &DraftCompaction,
        shape: &Shape,
        is_dry: bool,
    ) -> Result<std::result::Result<(), String>> {
        let covered = match self.covered(draft, shape) {
            Ok(covered) => covered,
            Err(why) => return Ok(Err(why)),
        };
        if is_dry {
            return Ok(Ok(()));
        }
        let last = match covered {
            Some(last) => Some(self.nodes[last as usize].id.clone()),
            // Its path may begin with messages of the store.
            None => self.last_of(draft, shape).ok().and_then(|(last, _)| self.living_parent(last)),
        };
        let Some(last) = last else {
            return Ok(Err("all messages it covers are gone".to_owned()));
        };
        // The path may begin before the file, or its first messages may be deleted.
        let first = match self.session.at(&last).raw().iter().next() {
            Some(Ok(root)) => root.id,
            Some(Err(error)) => return refusal(Err(error)),
            None => last.clone(),
        };
        refusal(self.session.import_compaction(&draft.between(first, last)))
    }

    /// Returns the last node under a compaction that is not gone; the error says why it cannot be added.
    pub(crate) fn covered(
        &mut self,
        draft: &DraftCompaction,
        shape: &Shape,
    ) -> Result<Option<u32>, String> {
        let (last, marker) = self.last_of(draft, shape)?;
        if shape.is_ancestor(last, marker) && shape.has_branch_between(last, marker) {
            let why =
                "a branch leaves the path before this compaction: the summary shows there, too";
            self.report.remark(draft.line, why);
        }
        if Summary::new(draft.summary.as_str()).is_blank() {
            return Err("its summary is blank".to_owned());
        }
        Ok(match self.fates[last as usize] {
            Fate::Gone => self.living_place(last),
            _ => Some(last),
        })
    }

    pub(crate) fn leave_out(&mut self, line: u64, why: &str) {
        let why = format!("compaction left out, kept as a hidden message: {why}");
        self.report.fault(line, why);
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
}
