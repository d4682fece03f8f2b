//! talktree's own format: JSON lines.

use std::io::Write;

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::records::{Number, Record, each_record};
use super::{output_error, spooled};
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::records::export::{Counts, VERSION, chain, number_of};
use crate::session::Session;
use crate::store::Store;

impl Session {
    /// Writes the session in talktree's own format.
    ///
    /// The export has the session's details, every branch, hidden messages, compactions, elisions, labels, tags of messages and
    /// the head, and the place of a deleted message at which a compaction starts or ends: a copy shows the same on every path.
    /// It does not have the content of context blocks or the frozen prompt: [`Store::backup`](crate::Store::backup) copies these.
    /// It omits what only matters inside a store: the log of the head, and import records.
    /// It is a snapshot: what others write meanwhile is not in it. All is read first, and then written to `output`, which may
    /// take its time: what exceeds 1 MiB is in a temporary file meanwhile, which has no name and the encryption of the store.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("hi"))?;
    /// let mut file = Vec::new();
    /// chat.export_jsonl(&mut file)?;
    /// assert!(file.starts_with(br#"{"format":"talktree","version":2}"#));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if the session was never written to; [`Error::Io`] if a write to `output` fails;
    /// [`Error::Interrupted`]; and those of every read.
    pub fn export_jsonl(&self, output: &mut impl Write) -> Result<()> {
        spooled(self.spool(), output, |mut output| {
            let session = self.snapshot()?;
            let info = info_of(&session)?;
            let mut lines = Lines::begin(&mut output)?;
            lines.session(&session, &info)?;
            lines.end()
        })
    }
}

fn info_of(session: &Session) -> Result<SessionInfo> {
    session.info()?.ok_or_else(|| Error::UnknownSession { id: session.id().clone() })
}

impl Store {
    /// Writes every session in talktree's own format, the oldest first, but not those in the trash: an import would bring them
    /// back. [`backup`](Self::backup) copies them, too.
    ///
    /// See [`Session::export_jsonl`] for what is written. All sessions are from one snapshot. A snapshot of a store in memory
    /// is a copy of it.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("a")?.append(Message::user("hi"))?;
    /// store.session("b")?.append(Message::user("ho"))?;
    /// let mut file = Vec::new();
    /// store.export_jsonl(&mut file)?;
    /// assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), 1 + 2 * 3 + 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if a write to `output` fails; [`Error::Interrupted`]; and those of every read.
    pub fn export_jsonl(&self, output: &mut impl Write) -> Result<()> {
        spooled(self.spool(), output, |mut output| {
            let store = self.snapshot()?;
            let mut sessions = store.sessions()?;
            sessions.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
            let mut lines = Lines::begin(&mut output)?;
            for info in &sessions {
                lines.session(&store.session(&info.id)?, info)?;
            }
            lines.end()
        })
    }
}

impl Store {
    /// Writes every readable session that is not in the trash, as [`export_jsonl`](Self::export_jsonl) does, and calls
    /// `skipped` with the others and their errors.
    ///
    /// For the rescue of a damaged store. Each session is from a snapshot of its own.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("a")?.append(Message::user("hi"))?;
    /// let mut file = Vec::new();
    /// store.export_readable_jsonl(&mut file, |id, error| eprintln!("{id}: {error}"))?;
    /// assert!(!file.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`export_jsonl`](Self::export_jsonl), except for damaged sessions.
    pub fn export_readable_jsonl(
        &self,
        output: &mut impl Write,
        mut skipped: impl FnMut(&SessionId, &Error),
    ) -> Result<()> {
        let watch = self.interrupt_signal().watch();
        let mut lines = Lines::begin(output)?;
        for (id, checked) in self.session_ids()? {
            watch.check()?;
            if let Err(error) = checked {
                skipped(&id, &error);
                continue;
            }
            // An export must not contain half a session.
            let read = spooled(self.spool(), lines.output, |mut output| {
                let session = self.session(&id)?.snapshot()?;
                let info = info_of(&session)?;
                let mut part = Lines { output: &mut output, at: lines.at };
                if info.deleted_at.is_none() {
                    part.session(&session, &info)?;
                }
                Ok(part.at)
            });
            match read {
                Ok(at) => lines.at = at,
                Err(error @ (Error::Interrupted | Error::Io { .. })) => return Err(error),
                Err(error) => skipped(&id, &error),
            }
        }
        lines.end()
    }
}

/// An export in progress.
pub(super) struct Lines<'a, W> {
    output: &'a mut W,
    pub(super) at: Position,
}

/// How far an export has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position {
    checksum: Uuid,
    pub(super) counts: Counts,
    /// The number of the session whose records are written; `None` before the first session.
    session: Option<u64>,
}

impl<'a, W: Write> Lines<'a, W> {
    fn begin(output: &'a mut W) -> Result<Self> {
        // Not serialized: readers recognize the format by its first bytes.
        Self::begin_with(&format!(r#"{{"format":"talktree","version":{VERSION}}}"#), output)
    }

    pub(super) fn begin_with(header: &str, output: &'a mut W) -> Result<Self> {
        let mut lines = Self { output, at: Position::default() };
        lines.text(header)?;
        Ok(lines)
    }

    fn session(&mut self, session: &Session, info: &SessionInfo) -> Result<()> {
        self.at.counts.sessions += 1;
        self.at.session = Some(number_of(&info.id));
        self.line(&Numbered { rest: &session_record(info), session: self.at.session })?;
        each_record(session, &mut |record| self.record(record))
    }

    pub(super) fn record(&mut self, record: Record<'_>) -> Result<()> {
        let session = self.at.session;
        match record {
            Record::Tombstone { number, parent, below, starts, ends } => {
                let kind = "tombstone";
                self.line(&TombstoneRecord { kind, session, number, parent, below, starts, ends })
            }
            Record::Message { message, below } => {
                self.at.counts.messages += 1;
                self.line(&MessageRecord { kind: "message", session, below, message })
            }
            Record::Compaction { compaction, first, last } => {
                self.at.counts.compactions += 1;
                let (kind, first_tombstone, last_tombstone) = ("compaction", first, last);
                self.line(&CompactionRecord {
                    kind,
                    session,
                    compaction,
                    first_tombstone,
                    last_tombstone,
                })
            }
            Record::Elision(elision) => {
                let rest = &Typed { kind: "elision", rest: elision };
                self.line(&Numbered { rest, session })
            }
            Record::Label(label) => {
                self.at.counts.labels += 1;
                self.line(&Numbered { rest: &Typed { kind: "label", rest: label }, session })
            }
            Record::Tag(tag) => {
                let rest = &Typed { kind: "tag", rest: tag };
                self.line(&Numbered { rest, session })
            }
            Record::Head(id) => {
                let rest = &Typed { kind: "head", rest: &json!({ "id": id }) };
                self.line(&Numbered { rest, session })
            }
        }
    }

    pub(super) fn end(mut self) -> Result<()> {
        #[derive(Serialize)]
        struct End {
            #[serde(flatten)]
            counts: Counts,
            checksum: String,
        }
        let rest = End { counts: self.at.counts, checksum: self.at.checksum.to_string() };
        self.line(&Typed { kind: "end", rest: &rest })?;
        self.output.flush().map_err(output_error)
    }

    pub(super) fn line(&mut self, record: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(record);
        self.text(&text.map_err(|source| Error::Json { what: "a record", source })?)
    }

    fn text(&mut self, line: &str) -> Result<()> {
        // JSON is stored as received, so it may have line breaks between its fields.
        let line = match line.contains(['\n', '\r']) {
            true => &line.replace(['\n', '\r'], " "),
            false => line,
        };
        self.at.checksum = chain(self.at.checksum, line);
        self.output.write_all(line.as_bytes()).map_err(output_error)?;
        self.output.write_all(b"\n").map_err(output_error)
    }
}

#[derive(Serialize)]
struct MessageRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<Number>,
    message: &'a Message,
}

#[derive(Serialize)]
struct TombstoneRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    number: Number,
    parent: Option<&'a MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    starts: Vec<&'a CompactionId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ends: Vec<&'a CompactionId>,
}

#[derive(Serialize)]
struct CompactionRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(flatten)]
    compaction: &'a Compaction,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_tombstone: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_tombstone: Option<Number>,
}

#[derive(Serialize)]
pub(super) struct Typed<'a, T> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(flatten)]
    pub(super) rest: &'a T,
}

/// A record with the number of its session.
#[derive(Serialize)]
struct Numbered<'a, T> {
    #[serde(flatten)]
    rest: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
}

/// The record of a session.
#[derive(Serialize)]
pub(super) struct SessionRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a SessionId,
    #[serde(flatten)]
    details: SessionDetails,
}

pub(super) fn session_record(info: &SessionInfo) -> SessionRecord<'_> {
    SessionRecord { kind: "session", id: &info.id, details: info.details() }
}
