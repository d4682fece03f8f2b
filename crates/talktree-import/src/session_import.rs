//! A whole new session, to be stored together with others.

use crate::report::ImportReport;
use talktree::{Compaction, ImportRecord, SessionId, SessionImport};

use crate::order::Shape;
use crate::record_names::compaction_record;
use crate::work::{Batch, Remainder, Work};

impl Work<'_> {
    /// Returns a new session with all that the draft says of it; notes go into the report of this work.
    ///
    /// Does what the steps of [`Writer`](crate::write::Writer) do, in a session that has nothing yet.
    pub(crate) fn session_import(
        &mut self,
        id: SessionId,
        batch: Batch,
        remainder: &Remainder,
    ) -> SessionImport {
        let place = |(node, record): (u32, ImportRecord)| ImportRecord {
            parent: self.living_parent(node),
            ..record
        };
        let records: Vec<ImportRecord> = batch.into_iter().map(place).collect();
        let compactions = self.whole_compactions(remainder);
        let labels = self.whole_labels(&remainder.labels);
        let mut marks = std::mem::take(&mut self.record_names);
        marks.extend(remainder.record_names.iter().cloned());
        marks.push(self.ended());
        let mut details = self.derived.complete(remainder.details.clone());
        if !self.is_exact {
            details.updated_at = self.derived.last_write(None, true);
        }
        let head = self.target(remainder.head.as_ref());
        SessionImport {
            details,
            records,
            compactions,
            labels,
            head,
            marks,
            ..SessionImport::new(id)
        }
    }

    fn whole_compactions(&mut self, remainder: &Remainder) -> Vec<Compaction> {
        if remainder.compactions.is_empty() {
            return Vec::new();
        }
        let shape = Shape::new(&self.parents, &self.order);
        let mut compactions = Vec::new();
        for draft in &remainder.compactions {
            match self.covered(draft, &shape) {
                Ok(Some(last)) => {
                    let mut first = last;
                    while let Some(parent) = self.living_place(first) {
                        first = parent;
                    }
                    let id = |at: u32| self.nodes[at as usize].id.clone();
                    compactions.push(draft.between(id(first), id(last)));
                    self.record_names.push(compaction_record(&draft.id));
                }
                Ok(None) => self.leave_out(draft.line, "all messages it covers are gone"),
                Err(why) => self.leave_out(draft.line, &why),
            }
        }
        compactions
    }
}

/// Returns a report that nobody reads.
pub(crate) fn discarded_report() -> ImportReport {
    ImportReport::new("", "")
}
