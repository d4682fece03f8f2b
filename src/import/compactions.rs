//! Laying the summaries of a source over the messages they stand for.

use std::collections::HashSet;

use super::draft::{CompactionEnd, Span};
use super::noted::{Past, compaction_note};
use super::order::Shape;
use super::work::{Fate, Work};
use super::write::{Writer, forgive};
use crate::compaction::{Compaction, is_blank};
use crate::error::Result;
use crate::id::MessageId;

impl Writer<'_> {
    pub(super) fn add_compactions(
        &mut self,
        work: &mut Work<'_>,
        spans: Vec<Span>,
        past: Past,
    ) -> Result<()> {
        if spans.is_empty() {
            return Ok(());
        }
        let shape = Shape::new(&work.parents, &work.order);
        let standing = work.session.compactions()?;
        let standing: HashSet<_> = standing.into_iter().map(|compaction| compaction.id).collect();
        for span in spans {
            (self.check)()?;
            let (line, is_record) = (span.line, span.marker.is_none());
            let note = compaction_note(&span.id);
            // One that was taken off since it was imported stays off.
            let is_known = standing.contains(&span.id)
                || span.marker.as_ref().is_some_and(|marker| {
                    !past.is_open && work.fate_of(marker).is_none_or(|fate| fate != Fate::Added)
                })
                || (!self.is_dry && work.is_remembered(&note)?);
            let laid = match is_known {
                true => Ok(()),
                false => work.lay(span, &shape, self.is_dry)?,
            };
            if laid.is_ok() {
                work.notes.push(note);
            }
            match (laid, is_record) {
                (Ok(()), true) => work.report.converted += 1,
                (Ok(()), false) => {}
                (Err(why), true) => work.report.lose(line, format!("compaction left out: {why}")),
                (Err(why), false) => {
                    let why = format!("compaction not laid, kept as an hidden: {why}");
                    work.report.fault(line, why);
                }
            }
        }
        Ok(())
    }
}

impl Work<'_> {
    /// Lays a summary; the inner error says why that could not be done.
    fn lay(
        &mut self,
        span: Span,
        shape: &Shape,
        is_dry: bool,
    ) -> Result<std::result::Result<(), String>> {
        let find = |id: &MessageId| {
            let missing = || format!("message {id:?} is not in the file");
            self.index.get(id).copied().ok_or_else(missing)
        };
        let marker = match span.marker.as_ref().map(find).transpose() {
            Ok(marker) => marker,
            Err(why) => return Ok(Err(why)),
        };
        let last = match &span.last {
            CompactionEnd::At(id) => find(id),
            CompactionEnd::Before(kept) => find(kept).and_then(|at| {
                if marker.is_some_and(|marker| !shape.is_ancestor(at, marker)) {
                    return Err(format!(
                        "the first message it keeps, {kept:?}, is on another branch"
                    ));
                }
                self.parents[at as usize]
                    .ok_or_else(|| format!("nothing lies before {kept:?}, the first it keeps"))
            }),
        };
        let first = span.first.as_ref().map(find).transpose();
        let (last, first) = match (last, first) {
            (Ok(last), Ok(first)) => (last, first),
            (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
        };
        if marker.is_some_and(|m| shape.is_ancestor(last, m) && shape.has_branch_between(last, m)) {
            let why =
                "a branch leaves the path before this compaction: the summary shows there, too";
            self.report.remark(span.line, why);
        }
        if is_blank(&span.summary) {
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
            None => match self.session.at(&last_id).raw().iter().next() {
                Some(Ok(root)) => root.id,
                Some(Err(error)) => return forgive(Err(error)),
                None => last_id.clone(),
            },
        };
        let laid = self.session.import_compaction(&Compaction {
            id: span.id,
            first: first_id,
            last: last_id,
            count: span.count,
            summary: span.summary,
            tokens_before: span.figures.tokens_before,
            tokens_after: span.figures.tokens_after,
            nested: span.figures.nested,
            model: span.figures.model,
            details: span.details,
            created_at: span.created_at,
        });
        forgive(laid)
    }
}
