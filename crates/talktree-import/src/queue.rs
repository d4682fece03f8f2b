//! Sessions that wait to be stored in one transaction.
//!
//! A commit waits for the disk, and most conversations are short: one commit for each would take ten times as long as
//! all else. So a whole new session waits here with others, also of other files, and they are stored together. A session
//! that the store refuses is stored by itself, step by step, which says what is wrong with it.
//!
//! Invariant: a session waits here only if the store does not have it.

use std::collections::HashSet;

use crate::report::{ImportReport, Note};
use talktree::{Error, ImportRecord, Result, SessionId, SessionImport, Store};

use crate::work::Waiting;

/// How many messages one commit holds at most.
const MAX_MESSAGES: usize = 2_000;
/// How many bytes of records one commit holds at most, so that long messages do not pile up in memory.
const MAX_BYTES: usize = 8 << 20;
/// How many sessions one commit holds at most.
const MAX_SESSIONS: usize = 1_000;

/// The sessions that wait, and the reports that wait for them.
#[derive(Default)]
pub(crate) struct Queue {
    imports: Vec<SessionImport>,
    rest: Vec<Rest>,
    ids: HashSet<SessionId>,
    messages: usize,
    bytes: usize,
    /// The reports of files that were read to the end.
    reports: Vec<ImportReport>,
    /// How many reports were taken.
    taken: usize,
}

/// What a session needs besides its import.
pub(crate) struct Rest {
    /// The number of its file.
    file: usize,
    /// What to note in the report when it is stored, and how many records are lost then.
    pub(crate) notes: Vec<Note>,
    pub(crate) lost: u64,
    /// What is needed to store it step by step.
    pub(crate) waiting: Waiting,
}

impl Queue {
    pub(crate) fn holds(&self, id: &SessionId) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.messages >= MAX_MESSAGES
            || self.bytes >= MAX_BYTES
            || self.imports.len() >= MAX_SESSIONS
    }

    pub(crate) fn add(
        &mut self,
        import: SessionImport,
        bytes: usize,
        ImportReport { notes, dropped: lost, .. }: ImportReport,
        waiting: Waiting,
    ) {
        self.messages += import.records.len();
        self.bytes += bytes;
        self.ids.insert(import.id.clone());
        self.imports.push(import);
        self.rest.push(Rest { file: self.taken + self.reports.len(), notes, lost, waiting });
    }

    /// Stores the sessions that wait; `slowly` stores one that was refused. `current` is the report of the file being read.
    ///
    /// If the transaction fails, all of them wait again.
    pub(crate) fn flush(
        &mut self,
        store: &Store,
        current: &mut ImportReport,
        slowly: &mut dyn FnMut(SessionImport, Waiting, &mut ImportReport) -> Result<()>,
    ) -> Result<()> {
        if self.imports.is_empty() {
            return Ok(());
        }
        let outcomes = store.import_sessions(&self.imports)?;
        self.ids.clear();
        (self.messages, self.bytes) = (0, 0);
        let imports = std::mem::take(&mut self.imports).into_iter();
        let waiting = std::mem::take(&mut self.rest);
        let mut failed = Ok(());
        for ((import, rest), outcome) in imports.zip(waiting).zip(outcomes) {
            let at = rest.file - self.taken;
            let report = self.reports.get_mut(at).unwrap_or(&mut *current);
            match outcome {
                Ok(_) => count(&import.records, rest.notes, rest.lost, report),
                Err(_) if failed.is_ok() => failed = slowly(import, rest.waiting, report),
                // The store itself fails.
                Err(_) => {}
            }
        }
        failed
    }

    /// Keeps the report of a file that was read to the end.
    pub(crate) fn keep(&mut self, report: ImportReport) {
        self.reports.push(report);
    }

    /// Forgets the sessions of the file that is being read.
    pub(crate) fn forget_current(&mut self) {
        let current = self.taken + self.reports.len();
        let kept = self.rest.iter().take_while(|rest| rest.file < current).count();
        for import in self.imports.drain(kept..) {
            self.ids.remove(&import.id);
            self.messages -= import.records.len();
        }
        self.rest.truncate(kept);
    }

    /// Takes the reports of the files whose sessions are all stored, in the order of the files.
    pub(crate) fn take_reports(&mut self) -> Vec<ImportReport> {
        let first = self.rest.first().map(|rest| rest.file - self.taken);
        let done = first.unwrap_or(self.reports.len()).min(self.reports.len());
        let mut reports: Vec<ImportReport> = self.reports.drain(..done).collect();
        reports.iter_mut().for_each(ImportReport::sort);
        self.taken += reports.len();
        reports
    }
}

/// Counts the messages of a session that was stored as a whole.
fn count(records: &[ImportRecord], notes: Vec<Note>, lost: u64, report: &mut ImportReport) {
    let hidden = records.iter().filter(|record| record.message.is_hidden).count() as u64;
    report.added += records.len() as u64;
    report.converted += hidden;
    report.converted -= lost;
    report.dropped += lost;
    report.kept += records.len() as u64 - hidden;
    for Note { line, why, is_fault, .. } in notes {
        match (line, is_fault) {
            (Some(line), true) => report.fault(line, why),
            (line, _) => report.remark(line.unwrap_or(0), why),
        }
    }
}

/// Returns whether an error is about the file and not the store, so that the import may go on with the next file.
pub(crate) fn is_of_file(error: &Error) -> bool {
    matches!(error, Error::Io { .. } | Error::Import { .. } | Error::Json { .. })
}
