//! What an import says about a file.

use std::path::PathBuf;

use serde::Serialize;

use super::Format;
use crate::id::SessionId;

/// How many notes a report holds; what is beyond is counted in
/// [`notes_left_out`](ImportReport::notes_left_out).
pub const MAX_NOTES: usize = 10_000;

/// What became of a file's records.
///
/// `records = kept + converted + dropped`. In formats of lines a record is a line; in formats of
/// whole conversations it is a message or a node of the tree. What could not be read is one record,
/// whatever it would have held.
///
/// ```
/// use std::io::Cursor;
/// use talktree::{Store, import::ImportOptions};
///
/// let store = Store::open_in_memory()?;
/// let file = Cursor::new(r#"[{"role": "user", "content": "hi"}, 7]"#);
/// let report = store.import_reader("chat.json", file, &ImportOptions::default(), |_| {})?;
/// assert_eq!((report.records, report.kept, report.dropped), (2, 1, 1));
/// assert_eq!(report.notes[0].line, Some(1));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The file, or the name that was given for it.
    pub path: PathBuf,
    /// The format it was read as.
    pub format: Format,
    /// The records it holds.
    pub records: u64,
    /// Records that are messages of the conversation.
    pub kept: u64,
    /// Records that became something else: an hidden, a compaction, a label, session details.
    pub converted: u64,
    /// Records that became nothing; the notes say why.
    pub dropped: u64,
    /// Messages, hidden included, that were stored now, or would be without
    /// [`is_dry_run`](super::ImportOptions::is_dry_run).
    pub added: u64,
    /// Messages, hidden included, that had been imported before or stood already.
    pub known: u64,
    /// The sessions the file speaks of, in order.
    pub sessions: Vec<SessionId>,
    /// What a person may want to know, in the order it was found.
    pub notes: Vec<Note>,
    /// Notes beyond [`MAX_NOTES`].
    pub notes_left_out: u64,
}

/// One remark on a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Note {
    /// The line it begins on, from 1; `None` for a remark on the whole file.
    pub line: Option<u64>,
    /// What was found there and what was done.
    pub why: String,
    /// Whether the source is at fault: what [`is_strict`](super::ImportOptions::is_strict) refuses.
    pub is_fault: bool,
}

impl ImportReport {
    pub(super) fn new(path: PathBuf, format: Format) -> Self {
        Self {
            path,
            format,
            records: 0,
            kept: 0,
            converted: 0,
            dropped: 0,
            added: 0,
            known: 0,
            sessions: Vec::new(),
            notes: Vec::new(),
            notes_left_out: 0,
        }
    }

    /// Returns the first note on a fault of the source.
    #[must_use]
    pub fn first_fault(&self) -> Option<&Note> {
        self.notes.iter().find(|note| note.is_fault)
    }

    pub(super) fn remark(&mut self, line: u64, why: impl Into<String>) {
        self.note(Note { line: Some(line), why: why.into(), is_fault: false });
    }

    pub(super) fn fault(&mut self, line: u64, why: impl Into<String>) {
        self.note(Note { line: Some(line), why: why.into(), is_fault: true });
    }

    /// Counts a record that becomes nothing through a fault of the source.
    pub(super) fn lose(&mut self, line: u64, why: impl Into<String>) {
        self.dropped += 1;
        self.fault(line, why);
    }

    /// Counts a record that becomes nothing because there is nothing in it to keep.
    pub(super) fn leave_out(&mut self, line: u64, why: impl Into<String>) {
        self.dropped += 1;
        self.remark(line, why);
    }

    fn note(&mut self, note: Note) {
        // A fault must be seen by `is_strict` whatever was noted before it.
        if self.notes.len() < MAX_NOTES || (note.is_fault && self.first_fault().is_none()) {
            self.notes.push(note);
        } else {
            self.notes_left_out += 1;
        }
    }
}
