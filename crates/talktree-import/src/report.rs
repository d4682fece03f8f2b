//! The report of an import.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use talktree::SessionId;

use crate::fields::Fields;

/// The maximum number of notes in a report; further ones are counted in
/// [`notes_left_out`](ImportReport::notes_left_out).
pub const MAX_NOTES: usize = 10_000;

/// The counts of a file's records, with notes.
///
/// `records = kept + converted + dropped`. In formats of lines a record is a line; in formats of
/// whole conversations it is a message or a node of the tree. A part that could not be read counts as one record.
///
/// An importer of your own fills one in: it counts each record once, as kept or converted when it is
/// stored, or with [`lose`](Self::lose) and [`leave_out`](Self::leave_out).
///
/// ```
/// use talktree_import::ImportReport;
///
/// let mut report = ImportReport::new("chat.txt", "text");
/// report.records += 2;
/// report.kept += 1;
/// report.lose(7, "not UTF-8");
/// assert_eq!(report.records, report.kept + report.converted + report.dropped);
/// assert_eq!(report.first_fault().unwrap().line, Some(7));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The path or name of the file.
    pub path: PathBuf,
    /// The name of the format it was read as: `talktree`, `claude-code`, ..
    pub format: String,
    /// The records it holds.
    pub records: u64,
    /// Records that became messages of the conversation.
    pub kept: u64,
    /// Records that became something else: a hidden message, a compaction, a label, session details.
    pub converted: u64,
    /// Records that were dropped; the notes say why.
    pub dropped: u64,
    /// Messages, hidden included, that were stored now, or would be without a dry run.
    pub added: u64,
    /// Messages, hidden included, that had been imported before or are in the session already.
    pub known: u64,
    /// The sessions of the file, in order.
    pub sessions: Vec<SessionId>,
    /// Those of them that were left out because they were erased, and their import was
    /// [forbidden](talktree::Erasure::forbid_import); of a [`Collector`](crate::Collector) also those that are gone from the store.
    pub erased: Vec<SessionId>,
    /// How many keys and tokens were replaced in what was stored now, by kind; of a
    /// [redacted](crate::ImportOptions::is_redacted) import.
    pub redacted: BTreeMap<&'static str, u64>,
    /// Notes for people, in the order of the file.
    pub notes: Vec<Note>,
    /// The number of notes beyond [`MAX_NOTES`].
    pub notes_left_out: u64,
    /// The times that cannot be read: how many, the line of the first, and what is used instead.
    #[serde(skip)]
    unread_times: Option<(u64, u64, &'static str)>,
}

/// One remark on a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Note {
    /// The line it begins on, from 1; `None` for a remark on the whole file.
    pub line: Option<u64>,
    /// What was found and what was done.
    pub why: String,
    /// Whether it is a fault of the source, which a strict import refuses.
    pub is_fault: bool,
}

impl ImportReport {
    /// Returns an empty report of a file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, format: impl Into<String>) -> Self {
        Self { path: path.into(), format: format.into(), ..Self::default() }
    }

    /// Returns the first note on a fault of the source.
    #[must_use]
    pub fn first_fault(&self) -> Option<&Note> {
        self.notes.iter().find(|note| note.is_fault)
    }

    /// Adds a note on something that is no fault of the source.
    pub fn remark(&mut self, line: u64, why: impl Into<String>) {
        self.note(Note { line: Some(line), why: why.into(), is_fault: false });
    }

    /// Adds a note on a fault of the source.
    pub fn fault(&mut self, line: u64, why: impl Into<String>) {
        self.note(Note { line: Some(line), why: why.into(), is_fault: true });
    }

    /// Counts a record as dropped through a fault of the source.
    pub fn lose(&mut self, line: u64, why: impl Into<String>) {
        self.dropped += 1;
        self.fault(line, why);
    }

    /// Counts a record as dropped because there is nothing in it to keep.
    pub fn leave_out(&mut self, line: u64, why: impl Into<String>) {
        self.dropped += 1;
        self.remark(line, why);
    }

    /// Counts a time that is given in at least one of these fields, and can be read in none of them.
    pub(crate) fn check_times(
        &mut self,
        line: u64,
        given: &[(&Fields, &str)],
        instead: &'static str,
    ) {
        let is_read = given.iter().any(|(fields, name)| fields.time(name).is_some());
        if !is_read && given.iter().any(|(fields, name)| fields.get(name).is_some()) {
            self.unread_times.get_or_insert((0, line, instead)).0 += 1;
        }
    }

    /// Adds one note on all times that cannot be read.
    pub(crate) fn note_times(&mut self) {
        if let Some((count, line, instead)) = self.unread_times.take() {
            let why =
                format!("unreadable times: {count}, the first one here; {instead} is used instead");
            self.remark(line, why);
        }
    }

    /// Brings the notes into the order of the file: those on whole sessions come when a session is stored.
    pub(crate) fn sort(&mut self) {
        self.notes.sort_by_key(|note| note.line);
    }

    fn note(&mut self, note: Note) {
        // A strict import needs the fault even if there are too many notes.
        if self.notes.len() < MAX_NOTES || (note.is_fault && self.first_fault().is_none()) {
            self.notes.push(note);
        } else {
            self.notes_left_out += 1;
        }
    }
}

/// What a record is in the report, in case that the store refuses it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sent {
    /// A message that counts as added.
    Message { line: u64, is_hidden: bool },
    /// What refers to messages; `is_record` if it counts as a record of the file.
    Attached { line: u64, kind: &'static str, is_record: bool },
    /// What the report does not tell of.
    Silent,
}

impl Sent {
    /// Counts the record as dropped.
    pub(crate) fn take_back(self, report: &mut ImportReport) {
        match self {
            Self::Message { is_hidden, .. } => {
                report.added -= 1;
                match is_hidden {
                    true => report.converted -= 1,
                    false => report.kept -= 1,
                }
                report.dropped += 1;
            }
            Self::Attached { is_record: true, .. } => {
                report.converted -= 1;
                report.dropped += 1;
            }
            Self::Attached { .. } | Self::Silent => {}
        }
    }

    /// Counts the record as dropped, and says why.
    pub(crate) fn refuse(self, why: &str, report: &mut ImportReport) {
        self.take_back(report);
        match self {
            Self::Message { line, .. } => report.fault(line, why),
            Self::Attached { line, kind, .. } => {
                report.fault(line, format!("{kind} left out: {why}"));
            }
            Self::Silent => {}
        }
    }
}
