//! Stores conversations: each in one transaction, and short ones several at a time.
//!
//! A commit waits for the disk, and most conversations are short: one commit for each would take ten times as long as all else.
//! So short ones wait here for each other, also for those of other files. A long one is read while the store takes it.

use std::collections::{HashMap, HashSet};

use crate::report::{ImportReport, Sent};
use chrono::{DateTime, Utc};
use talktree::{Error, MessageId, Record, Result, SessionId, Store};

use crate::ImportOptions;
use crate::collect;
use crate::draft::Draft;
use crate::edits;
use crate::plan::Plan;
use crate::work::{Source, Work, another_conversation};

/// How many records wait at most.
const MAX_RECORDS: usize = 2_000;
/// How many bytes of records wait at most, so that long messages do not pile up in memory.
const MAX_BYTES: usize = 8 << 20;

/// The conversations that wait, and the reports that wait for them.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
    records: usize,
    bytes: usize,
    /// The reports of files that were read to the end.
    reports: Vec<ImportReport>,
    /// How many reports were taken.
    taken: usize,
}

/// A conversation to be stored.
struct Waiting {
    id: SessionId,
    line: u64,
    /// The number of its file.
    file: usize,
    /// Whether the store did not have the session.
    is_new: bool,
    /// When the conversation began.
    began: Option<DateTime<Utc>>,
    records: Vec<Record>,
    sent: Vec<Sent>,
}

impl Waiting {
    /// Notes what the store refused of a conversation, by the number of the record in it; the first one is all of it.
    fn refuse(&self, number: usize, why: &str, report: &mut ImportReport) {
        if number == 0 {
            self.sent.iter().for_each(|sent| sent.take_back(report));
            report.fault(self.line, why);
        } else if let Some(sent) = self.sent.get(number) {
            sent.refuse(why, report);
        }
    }

    /// Returns whether another conversation was written under the id while this one waited.
    fn is_taken(&self, store: &Store) -> Result<bool> {
        let session = store.session(&self.id)?;
        if !self.is_new || session.latest_leaf()?.is_none() {
            return Ok(false);
        }
        for record in &self.records {
            if let Record::Message { message, .. } = record
                && session.message(&message.id)?.is_some_and(|it| it.text() == message.text())
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Queue {
    fn holds(&self, id: &SessionId) -> bool {
        self.waiting.iter().any(|waiting| waiting.id == *id)
    }

    /// Stores what waits; `current` is the report of the file being read.
    pub(crate) fn flush(&mut self, store: &Store, current: &mut ImportReport) -> Result<()> {
        (self.records, self.bytes) = (0, 0);
        let (mut records, mut ends) = (Vec::new(), Vec::new());
        for mut waiting in std::mem::take(&mut self.waiting) {
            let report = self.reports.get_mut(waiting.file - self.taken).unwrap_or(&mut *current);
            if waiting.is_taken(store)? {
                let why = "no message is in both";
                waiting.refuse(0, &another_conversation(&waiting.id, why), report);
                continue;
            }
            let start = records.len();
            records.append(&mut waiting.records);
            ends.push((start, waiting));
        }
        if records.is_empty() {
            return Ok(());
        }
        for (number, error) in store.import(records.into_iter().map(Ok))?.1 {
            let number = number as usize;
            let at = ends.partition_point(|(start, _)| *start <= number);
            let Some((start, waiting)) = at.checked_sub(1).and_then(|at| ends.get(at)) else {
                continue;
            };
            let report = self.reports.get_mut(waiting.file - self.taken).unwrap_or(&mut *current);
            waiting.refuse(number - start, &error.to_string(), report);
        }
        Ok(())
    }

    /// Keeps the report of a file that was read to the end.
    pub(crate) fn keep(&mut self, report: ImportReport) {
        self.reports.push(report);
    }

    /// Forgets the conversations of the file that is being read.
    pub(crate) fn forget_current(&mut self) {
        let current = self.taken + self.reports.len();
        let kept = self.waiting.iter().take_while(|waiting| waiting.file < current).count();
        self.waiting.truncate(kept);
    }

    /// Takes the reports of the files whose conversations are all stored, in the order of the files.
    pub(crate) fn take_reports(&mut self) -> Vec<ImportReport> {
        let first = self.waiting.first().map(|waiting| waiting.file - self.taken);
        let done = first.unwrap_or(self.reports.len()).min(self.reports.len());
        let mut reports: Vec<ImportReport> = self.reports.drain(..done).collect();
        reports.iter_mut().for_each(ImportReport::sort);
        self.taken += reports.len();
        reports
    }
}

/// Stores conversations, or predicts the result for a dry run.
pub(crate) struct Writer<'a> {
    pub(crate) store: &'a Store,
    pub(crate) options: &'a ImportOptions,
    pub(crate) is_dry: bool,
    /// Whether a session that was imported before and is gone stays out.
    pub(crate) is_live: bool,
    /// Fails when the import is to stop.
    pub(crate) check: &'a dyn Fn() -> Result<()>,
    /// The sessions that are in the report already.
    pub(crate) named: HashSet<SessionId>,
    /// The conversations that wait to be stored.
    pub(crate) queue: &'a mut Queue,
    /// What a dry run would have stored: the messages of each session, with their fingerprints.
    pub(crate) foreseen: HashMap<SessionId, HashMap<MessageId, u64>>,
}

impl Writer<'_> {
    /// Stores a conversation of about this many bytes.
    pub(crate) fn write(
        &mut self,
        mut draft: Draft,
        bytes: usize,
        source: &mut Source<'_, '_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        if self.options.session.is_some() {
            draft.unnamed = None;
        }
        if !draft.is_exact {
            draft.details.source.get_or_insert_with(|| report.format.clone());
        }
        if let Some(unnamed) = &draft.unnamed {
            draft.session = self.find_session(unnamed, &draft.nodes, report)?;
        }
        self.find_copies(&mut draft, report)?;
        let began = draft.details.created_at;
        let id = self.options.session.as_ref().unwrap_or(&draft.session).clone();
        self.flush_if_waiting(&id, report)?;
        let session = self.store.session(&id)?;
        if self.named.insert(id.clone()) {
            report.sessions.push(id.clone());
        }
        let info = session.info()?;
        let has_messages = info.is_some() && session.latest_leaf()?.is_some();
        let stored = Some(&session).filter(|_| has_messages);
        let keeps_source = self.options.keeps_source;
        for node in draft.nodes.iter().filter(|node| has_messages && node.is_hidden) {
            if session.message(&node.id)?.is_some_and(|message| !message.is_hidden) {
                let why = format!(
                    "message {:?} was imported before a later one repeated it, and stays as it is",
                    node.id
                );
                report.remark(node.line, why);
            }
        }
        edits::apply(&mut draft, stored, source, keeps_source, report)?;
        let (line, nodes) = (draft.line, std::mem::take(&mut draft.nodes));
        let mut work = Work::new(&session, report, nodes, has_messages);
        (work.is_exact, work.attached) = (draft.is_exact, draft.records);
        work.is_redacted = self.options.is_redacted;
        work.connect(draft.orphans)?;
        if let Some(fuller) = &draft.unless
            && self.store.session(fuller)?.info()?.is_some()
        {
            work.leave_out_all(line, format!("session {fuller:?} has the same conversation"));
            return Ok(());
        }
        if self.store.is_import_forbidden(&id)? {
            work.leave_out_erased(line, Error::SessionErased { id });
            return Ok(());
        }
        if self.is_live && info.is_none() && collect::was_imported(self.store, &id)? {
            let why = format!("session {id:?} was imported before, and removed or erased since");
            work.leave_out_erased(line, why);
            return Ok(());
        }
        if info.as_ref().is_some_and(|info| info.deleted_at.is_some()) {
            work.leave_out_all(line, Error::SessionInTrash { id });
            return Ok(());
        }
        let is_given = self.options.session.is_some();
        let mut conflict = None;
        if has_messages && !is_given {
            conflict = work.conflict(source)?;
        }
        let is_new = info.is_none();
        if !is_new && conflict.is_none() {
            work.judge(source)?;
        }
        if self.is_dry && !draft.is_exact && !is_given && conflict.is_none() {
            conflict = work.foresee(self.foreseen.entry(id.clone()).or_default());
        }
        if let Some(why) = conflict {
            work.refuse(line, &why);
            return Ok(());
        }
        let source = Source { records: &mut *source.records, ..*source };
        let mut plan = Plan::new(&mut work, source, keeps_source, self.check, info, draft)?;
        let mut first = Vec::new();
        while first.len() < MAX_RECORDS && plan.bytes < MAX_BYTES {
            match plan.next() {
                Some(record) => first.push(record?),
                None => break,
            }
        }
        let is_short = first.len() < MAX_RECORDS && plan.bytes < MAX_BYTES;
        if self.is_dry {
            return plan.by_ref().try_for_each(|record| record.map(drop));
        }
        if is_short && plan.is_idle(&first) {
            return Ok(());
        }
        let file = self.queue.taken + self.queue.reports.len();
        let sent = std::mem::take(&mut plan.sent);
        let mut waiting = Waiting { id, line, file, is_new, began, records: first, sent };
        let queue = &mut *self.queue;
        if is_short {
            queue.bytes += bytes + plan.bytes;
            queue.records += waiting.records.len();
            queue.waiting.push(waiting);
            let is_full = queue.records >= MAX_RECORDS || queue.bytes >= MAX_BYTES;
            return if is_full { queue.flush(self.store, plan.report()) } else { Ok(()) };
        }
        queue.flush(self.store, plan.report())?;
        let records = std::mem::take(&mut waiting.records).into_iter().map(Ok);
        let (_, refused) = self.store.import(records.chain(plan.by_ref()))?;
        waiting.sent.append(&mut plan.sent);
        for (number, error) in refused {
            waiting.refuse(number as usize, &error.to_string(), plan.report());
        }
        Ok(())
    }

    /// Stores what waits if a conversation of it began at this time with this message: the next one may be its copy.
    pub(crate) fn flush_if_alike(
        &mut self,
        began: DateTime<Utc>,
        first: &MessageId,
        report: &mut ImportReport,
    ) -> Result<()> {
        let has_first = |record: &Record| match record {
            Record::Message { message, .. } => message.id == *first,
            _ => false,
        };
        let mut waiting = self.queue.waiting.iter().filter(|it| it.began == Some(began));
        match waiting.any(|waiting| waiting.records.iter().any(has_first)) {
            true => self.queue.flush(self.store, report),
            false => Ok(()),
        }
    }

    /// Stores what waits if the session is one of them: what the store has of it is read next.
    pub(crate) fn flush_if_waiting(
        &mut self,
        id: &SessionId,
        report: &mut ImportReport,
    ) -> Result<()> {
        if self.queue.holds(id) { self.queue.flush(self.store, report) } else { Ok(()) }
    }
}
