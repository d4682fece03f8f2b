//! Short new sessions, which share a commit.
//!
//! A commit waits for the disk, and most sessions of an export are short. So a short session that the store does not have is
//! gathered to its end and waits for others, and they are stored in one transaction. A session that is not plain (with a
//! compaction, a tombstone, a missing parent, an id that occurs twice, ..) is left to [`Incoming`](super::incoming), which
//! says what is wrong; so is one that the store refuses.
//!
//! Invariant: a plain session leaves in the store what `Incoming` would leave, the names of its records included. It brings
//! no note to the report.

use std::collections::HashSet;

use super::boundary::Boundary;
use super::lines::Place;
use super::record::{self, Kind, Placed};
use super::record_names;
use super::report::ImportReport;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::outcome::{ImportRecord, Label, SessionDetails, SessionImport};

/// How many messages a short session has at most.
const MAX_SHORT: usize = 1_000;
/// How many messages one commit holds at most.
const MAX_MESSAGES: usize = 2_000;
/// How many bytes of lines one commit holds at most, so that long messages do not pile up in memory.
const MAX_BYTES: usize = 8 << 20;
/// How many sessions one commit holds at most.
const MAX_SESSIONS: usize = 1_000;

/// Where a session begins in the file, to read it again.
pub(super) struct Start {
    pub(super) id: SessionId,
    pub(super) details: SessionDetails,
    /// The line of the session, and the last one that was gathered.
    pub(super) line: u64,
    pub(super) last_line: u64,
    /// The place behind the line of the session.
    pub(super) place: Place,
    /// The version of its export.
    pub(super) version: u32,
    /// Decides which records are of the session.
    pub(super) boundary: Boundary,
}

/// A session while it is gathered.
pub(super) struct Gathered {
    start: Start,
    records: Vec<ImportRecord>,
    ids: HashSet<MessageId>,
    labels: Vec<Label>,
    /// The head, if a line names it.
    head: Option<Option<MessageId>>,
    /// Distinguishes the messages from those of another export; as `look_ahead` computes it.
    mark: u64,
    bytes: usize,
    /// How many lines set a label or the head.
    converted: u64,
}

impl Gathered {
    pub(super) fn new(start: Start) -> Self {
        Self {
            start,
            records: Vec::new(),
            ids: HashSet::new(),
            labels: Vec::new(),
            head: None,
            mark: 0,
            bytes: 0,
            converted: 0,
        }
    }

    pub(super) fn into_start(self) -> Start {
        self.start
    }

    /// Takes a line of the session; `false` if it is none of a short, plain session. Then nothing is taken.
    pub(super) fn take(&mut self, line: u64, kind: Kind, text: &str) -> bool {
        let is_taken = match kind {
            Kind::Message => record::message(text, self.start.version)
                .is_ok_and(|placed| self.take_message(placed, text.len())),
            Kind::Label => record::label(text).is_ok_and(|label| self.take_label(label)),
            Kind::Head => record::head(text).is_ok_and(|head| {
                (self.head, self.converted) = (Some(head), self.converted + 1);
                true
            }),
            _ => false,
        };
        if is_taken {
            self.start.last_line = line;
        }
        is_taken
    }

    fn take_message(&mut self, Placed { message, mark, below }: Placed, bytes: usize) -> bool {
        let is_plain = below.is_none()
            && message.parent.as_ref().is_none_or(|parent| self.ids.contains(parent))
            && !self.ids.contains(&message.id);
        let fits = self.records.len() < MAX_SHORT && self.bytes + bytes <= MAX_BYTES;
        if !is_plain || !fits {
            return false;
        }
        self.ids.insert(message.id.clone());
        self.bytes += bytes;
        self.mark = self.mark.rotate_left(5) ^ mark;
        let record = record_names::message(&message.id, mark);
        self.records.push(ImportRecord { record, parent: message.parent.clone(), message });
        true
    }

    fn take_label(&mut self, label: Label) -> bool {
        let is_taken = self.labels.iter().any(|known| known.name == label.name);
        if is_taken || !self.ids.contains(&label.id) {
            return false;
        }
        self.converted += 1;
        self.labels.push(label);
        true
    }

    /// Returns the session to import; if it is not plain, where it begins.
    fn finish(self) -> Result<(SessionImport, Waiting), Box<Start>> {
        let Self { start, records, ids, labels, head, mark, bytes, converted } = self;
        let last = records.last().map(|record| record.message.id.clone());
        let head = match head {
            // Where the last message is: the lines of an export are in the order of the numbers.
            None => last,
            Some(Some(id)) if ids.contains(&id) && CompactionId::from_message(&id).is_none() => {
                Some(id)
            }
            Some(None) if records.is_empty() => None,
            Some(_) => return Err(Box::new(start)),
        };
        let mut marks = Vec::new();
        if !records.is_empty() {
            marks.extend(record_names::begun_and_ended(mark));
        }
        marks.extend(labels.iter().map(record_names::label));
        let (id, details) = (start.id.clone(), start.details.clone());
        let import =
            SessionImport { details, records, labels, head, marks, ..SessionImport::new(id) };
        Ok((import, Waiting { start, bytes, converted }))
    }
}

/// What a session needs besides its import.
struct Waiting {
    start: Start,
    bytes: usize,
    converted: u64,
}

/// The sessions that wait to be stored.
#[derive(Default)]
pub(super) struct Queue {
    imports: Vec<SessionImport>,
    rest: Vec<Waiting>,
    ids: HashSet<SessionId>,
}

impl Queue {
    pub(super) fn holds(&self, id: &SessionId) -> bool {
        self.ids.contains(id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.imports.is_empty()
    }

    /// Adds a session; if it is not plain, returns where it begins.
    pub(super) fn add(&mut self, gathered: Gathered) -> Result<(), Box<Start>> {
        let (import, rest) = gathered.finish()?;
        self.ids.insert(import.id.clone());
        self.imports.push(import);
        self.rest.push(rest);
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        let messages: usize = self.imports.iter().map(|import| import.records.len()).sum();
        let bytes: usize = self.rest.iter().map(|rest| rest.bytes).sum();
        messages >= MAX_MESSAGES || bytes >= MAX_BYTES || self.imports.len() >= MAX_SESSIONS
    }

    pub(super) fn imports(&self) -> &[SessionImport] {
        &self.imports
    }

    /// Empties the queue. Counts the sessions that are stored; returns where the others begin.
    pub(super) fn settle<T, E>(
        &mut self,
        outcomes: Vec<Result<T, E>>,
        report: &mut ImportReport,
    ) -> Vec<Start> {
        self.ids.clear();
        let imports = std::mem::take(&mut self.imports).into_iter();
        let mut refused = Vec::new();
        for ((import, rest), outcome) in imports.zip(self.rest.drain(..)).zip(outcomes) {
            if outcome.is_err() {
                refused.push(rest.start);
                continue;
            }
            let records = &import.records;
            let hidden = records.iter().filter(|record| record.message.is_hidden).count() as u64;
            report.added += records.len() as u64;
            report.kept += records.len() as u64 - hidden;
            report.converted += hidden + rest.converted;
        }
        refused
    }
}
