//! Stores one conversation: a short new one together with others, any other step by step: its nodes in order and in
//! bounded transactions, then compactions, labels, the head and the details.

use std::collections::HashSet;

use crate::report::ImportReport;
use talktree::{Error, ImportRecord, Result, SessionId, SessionImport, SessionInfo, Store};

use crate::ImportOptions;
use crate::details::set_missing_details;
use crate::draft::{Body, Draft};
use crate::edits;
use crate::exact;
use crate::queue::Queue;
use crate::record_names::Past;
use crate::session_import::discarded_report;
use crate::work::{Batch, Fate, Remainder, Source, Waiting, Work, with_missing_parent};

/// How many messages go into one transaction.
const MAX_BATCH: usize = 1_000;
/// How many bytes of records go into one transaction, so that long messages do not pile up in memory.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// Stores conversations, or predicts the result for a dry run.
pub(crate) struct Writer<'a> {
    pub(crate) store: &'a Store,
    pub(crate) options: &'a ImportOptions,
    pub(crate) is_dry: bool,
    /// Fails when the import is to stop.
    pub(crate) check: &'a dyn Fn() -> Result<()>,
    /// The sessions that are in the report already.
    pub(crate) named: HashSet<SessionId>,
    /// The sessions that wait to be stored.
    pub(crate) queue: &'a mut Queue,
}

impl Writer<'_> {
    /// Stores a conversation of about this many bytes; `progress` receives the number of finished nodes.
    pub(crate) fn write(
        &mut self,
        mut draft: Draft,
        bytes: usize,
        source: &mut Source<'_, '_>,
        report: &mut ImportReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut record_names = Vec::new();
        if let (Some(unnamed), None) = (draft.unnamed.take(), &self.options.session) {
            record_names.extend(unnamed.record());
            draft.session = self.find_session(&unnamed, &draft.nodes, report)?;
        }
        let id = self.options.session.as_ref().unwrap_or(&draft.session).clone();
        if self.queue.holds(&id) {
            self.flush(report)?;
        }
        let session = self.store.session(&id)?;
        if self.named.insert(id.clone()) {
            report.sessions.push(id.clone());
        }
        let info = session.info()?;
        let has_messages = info.is_some() && session.latest_leaf()?.is_some();
        let stored = Some(&session).filter(|_| has_messages);
        let keeps_source = self.options.keeps_source;
        edits::apply(&mut draft, stored, source, keeps_source, &mut |line, why| {
            report.remark(line, why);
        })?;
        if has_messages {
            draft.find_tombstones(&session)?;
        }
        let is_plain = draft.is_plain();
        let Draft { mut details, nodes, compactions, labels, head, line, orphans, exact, .. } =
            draft;
        // No session has an empty one.
        for text in [&mut details.model, &mut details.source] {
            text.take_if(|text| text.is_empty());
        }
        let is_exact = exact.is_some();
        let remainder = Remainder { details, compactions, labels, head, exact, record_names, line };
        let attached = remainder.exact.as_ref().map_or(0, |exact| exact.records);
        let mut work = Work::new(&session, report, nodes, has_messages);
        (work.is_exact, work.attached) = (is_exact, attached);
        work.connect(orphans)?;
        if self.store.is_import_forbidden(&id)? {
            work.leave_out_all(line, &Error::SessionErased { id });
            return Ok(());
        }
        if info.as_ref().is_some_and(|info| info.deleted_at.is_some()) {
            work.leave_out_all(line, &Error::SessionInTrash { id });
            return Ok(());
        }
        if has_messages
            && self.options.session.is_none()
            && let Some(why) = work.conflict(Some(source))?
        {
            work.refuse(line, &why);
            return Ok(());
        }
        let order = std::mem::take(&mut work.order);
        let mut at = 0;
        let mut first = self.gather(&mut work, &order, &mut at, source)?;
        let is_short = is_plain && at == order.len() && !first.is_empty();
        let count = order.len() as u64;
        work.order = order;
        if is_short && info.is_none() && !self.is_dry {
            progress(count, count);
            self.enqueue(id, work, first, bytes, remainder);
            return match self.queue.is_full() {
                true => self.flush(report),
                false => Ok(()),
            };
        }
        // What a fork shares with its original is found in the store only.
        let original = remainder.details.parent_session.as_ref();
        if original.is_some_and(|original| self.queue.holds(original)) {
            self.flush(work.report)?;
        }
        self.write_in_steps(&mut work, info.as_ref(), &remainder, &mut |writer, work| {
            let order = std::mem::take(&mut work.order);
            let batch = match first.is_empty() {
                true => writer.gather(work, &order, &mut at, source),
                false => Ok(std::mem::take(&mut first)),
            };
            progress(at as u64, count);
            let is_over = at == order.len();
            work.order = order;
            batch.map(|batch| Some(batch).filter(|batch| !batch.is_empty() || !is_over))
        })
    }

    /// Stores the sessions that wait.
    pub(crate) fn flush(&mut self, report: &mut ImportReport) -> Result<()> {
        let mut queue = std::mem::take(self.queue);
        let flushed = queue.flush(self.store, report, &mut |import, waiting, report| {
            self.write_refused(import, waiting, report)
        });
        *self.queue = queue;
        flushed
    }

    fn enqueue(
        &mut self,
        id: SessionId,
        work: Work<'_>,
        batch: Batch,
        bytes: usize,
        remainder: Remainder,
    ) {
        let nodes = batch.iter().map(|(node, _)| *node).collect();
        // Its notes count when it is stored as a whole; otherwise the steps make them again.
        let mut own = ImportReport { converted: work.attached, ..discarded_report() };
        let mut whole = Work { report: &mut own, ..work };
        let import = whole.session_import(id, batch, &remainder);
        let waiting = whole.wait(nodes, remainder);
        self.queue.add(import, bytes, own, waiting);
    }

    /// Stores a session step by step that could not be stored as a whole.
    fn write_refused(
        &mut self,
        import: SessionImport,
        mut waiting: Waiting,
        report: &mut ImportReport,
    ) -> Result<()> {
        let session = self.store.session(&import.id)?;
        let info = session.info()?;
        let has_messages = info.is_some() && session.latest_leaf()?.is_some();
        for (node, record) in waiting.batch.iter().zip(&import.records) {
            waiting.nodes[*node as usize].body = Body::Here(Box::new(record.message.clone()));
        }
        let batch: Batch =
            std::mem::take(&mut waiting.batch).into_iter().zip(import.records).collect();
        let (mut work, remainder) = Work::resume(&session, report, waiting, has_messages);
        if has_messages
            && self.options.session.is_none()
            && let Some(why) = work.conflict(None)?
        {
            work.refuse(remainder.line, &why);
            return Ok(());
        }
        let mut batch = Some(batch);
        self.write_in_steps(&mut work, info.as_ref(), &remainder, &mut |_, _| Ok(batch.take()))
    }

    fn write_in_steps(
        &mut self,
        work: &mut Work<'_>,
        info: Option<&SessionInfo>,
        remainder: &Remainder,
        batches: &mut dyn FnMut(&mut Self, &mut Work<'_>) -> Result<Option<Batch>>,
    ) -> Result<()> {
        let past = match self.is_dry {
            true => Past { is_new: info.is_none(), is_open: info.is_none() },
            false => work.begin(info.is_some())?,
        };
        if let (Some(_), false) = (&remainder.exact, self.is_dry) {
            exact::set_details(work.session, &remainder.details, info, work.has_messages)?;
        }
        while let Some(batch) = batches(self, work)? {
            (self.check)()?;
            match self.is_dry {
                true => work.rehearse(batch)?,
                false => work.store(batch)?,
            }
        }
        (self.check)()?;
        let has_added = work.fates.contains(&Fate::Added);
        self.add_compactions(work, &remainder.compactions, past)?;
        self.set_labels(work, &remainder.labels)?;
        if let Some(exact) = &remainder.exact {
            work.attach(exact, self.is_dry)?;
        }
        if self.is_dry {
            return Ok(());
        }
        // An older copy of a file may add only a hidden entry; the head of that copy is older, too.
        if past.is_open || work.has_shown {
            match &remainder.exact {
                Some(exact) => work.move_exact_head(exact, remainder.head.as_ref())?,
                None => work.move_head(remainder.head.as_ref())?,
            }
        }
        // Changes no time of the session.
        work.record_names.extend(remainder.record_names.iter().cloned());
        if remainder.exact.is_some() {
            exact::set_time(work.session, &remainder.details, info, past)?;
            return work.end();
        }
        let mut details = remainder.details.clone();
        if info.is_some()
            && let Some(place) = work.derived.place_of_title()
            && work.session.message(&work.nodes[place as usize].id)?.is_none()
        {
            let title = work.derived.forget_title();
            details.name.take_if(|name| title.as_ref() == Some(name));
        }
        set_missing_details(work.session, details, &work.derived, info, past, has_added)?;
        work.end()
    }

    /// Returns the next messages for one transaction.
    fn gather(
        &self,
        work: &mut Work<'_>,
        order: &[u32],
        at: &mut usize,
        source: &mut Source<'_, '_>,
    ) -> Result<Batch> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while *at < order.len() && batch.len() < MAX_BATCH && bytes < MAX_BATCH_BYTES {
            let node = order[*at];
            *at += 1;
            if work.fates[node as usize] == Fate::Gone {
                continue;
            }
            bytes += work.nodes[node as usize].bytes();
            let keeps_source = self.options.keeps_source && !work.is_exact;
            let Some(mut message) = work.message(node, source, keeps_source)? else { continue };
            if !work.is_exact {
                work.derived.add(node, &message);
                if work.orphans.contains(&node) {
                    message = with_missing_parent(message, &work.nodes[node as usize]);
                }
            }
            let record = work.nodes[node as usize].record();
            batch.push((node, ImportRecord { record, parent: None, message }));
        }
        Ok(batch)
    }
}

/// Turns an error of the record alone into the reason why it is dropped.
pub(crate) fn refusal(result: Result<()>) -> Result<std::result::Result<(), String>> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(error) if error.is_refused() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
