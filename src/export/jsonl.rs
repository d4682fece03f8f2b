//! talktree's own JSON lines.

use std::fmt;
use std::io::Write;

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::outline::living_compactions;
use super::output_error;
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::message::{Json, Message};
use crate::outcome::SessionInfo;
use crate::session::Session;
use crate::store::Store;

/// The version that is written, and the one that is read.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Returns the checksum of an export after one more line.
pub(crate) fn chain(checksum: Uuid, line: &str) -> Uuid {
    Uuid::new_v5(&checksum, line.as_bytes())
}

/// How much an export holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) sessions: u64,
    pub(crate) messages: u64,
    pub(crate) compactions: u64,
    pub(crate) labels: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, messages, compactions, labels } = self;
        write!(
            f,
            "{sessions} sessions, {messages} messages, {compactions} compactions and {labels} labels"
        )
    }
}

impl Session {
    /// Writes the session in talktree's own format.
    ///
    /// All that can be read of it: details, every branch, hidden, compactions, labels, the head. What
    /// a store keeps for itself is left out: tombstones of deleted messages, the log of the head, and
    /// which records were imported. It is many reads, so the export of a session from which another
    /// handle deletes meanwhile may hold a tree that never was.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("hi"))?;
    /// let mut file = Vec::new();
    /// chat.export_jsonl(&mut file)?;
    /// assert!(file.starts_with(br#"{"format":"talktree","version":1}"#));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if nothing was ever written to it; [`Error::Io`] if `output`
    /// fails; as every read.
    pub fn export_jsonl(&self, output: &mut impl Write) -> Result<()> {
        let info = self.info()?;
        let info = info.ok_or_else(|| Error::UnknownSession { id: self.id().clone() })?;
        let mut lines = Lines::begin(output)?;
        lines.session(self, &info)?;
        lines.end()
    }
}

impl Store {
    /// Writes every session in talktree's own format, the oldest first.
    ///
    /// What of each is written, and what a concurrent delete does to it, says
    /// [`Session::export_jsonl`].
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
    /// [`Error::Io`] if `output` fails; [`Error::Interrupted`]; as every read.
    pub fn export_jsonl(&self, output: &mut impl Write) -> Result<()> {
        let mut sessions = self.sessions()?;
        sessions.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        let watch = self.interrupt_signal().watch();
        let mut lines = Lines::begin(output)?;
        for info in &sessions {
            watch.check()?;
            lines.session(&self.session(&info.id)?, info)?;
        }
        lines.end()
    }
}

impl Store {
    /// Writes every session that can be read whole, as [`export_jsonl`](Self::export_jsonl) does, and hands those that
    /// cannot, and why, to `skipped`: for what is left of a damaged store. Each is read twice.
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
    /// As [`export_jsonl`](Self::export_jsonl); that a session is damaged is none.
    pub fn export_readable_jsonl(
        &self,
        output: &mut impl Write,
        mut skipped: impl FnMut(&SessionId, &Error),
    ) -> Result<()> {
        let watch = self.interrupt_signal().watch();
        let mut lines = Lines::begin(output)?;
        for id in self.session_ids()? {
            watch.check()?;
            let session = self.session(&id)?;
            // To nowhere first: half a session would be taken for a whole one.
            match session.export_jsonl(&mut std::io::sink()) {
                Ok(()) => {
                    let info = session.info()?;
                    let info = info.ok_or_else(|| Error::UnknownSession { id: id.clone() })?;
                    lines.session(&session, &info)?;
                }
                Err(error @ Error::Interrupted) => return Err(error),
                Err(error) => skipped(&id, &error),
            }
        }
        lines.end()
    }
}

/// An export as it is written.
struct Lines<'a, W> {
    output: &'a mut W,
    checksum: Uuid,
    counts: Counts,
}

impl<'a, W: Write> Lines<'a, W> {
    fn begin(output: &'a mut W) -> Result<Self> {
        let mut lines = Self { output, checksum: Uuid::nil(), counts: Counts::default() };
        // Written out: readers tell the format from the first bytes.
        lines.text(&format!(r#"{{"format":"talktree","version":{FORMAT_VERSION}}}"#))?;
        Ok(lines)
    }

    fn session(&mut self, session: &Session, info: &SessionInfo) -> Result<()> {
        // Read before the messages: what others append meanwhile is in neither.
        let (compactions, labels) = (living_compactions(session)?, session.labels()?);
        let head = session.head()?;
        self.line(&session_record(info))?;
        self.counts.sessions += 1;
        for message in session.all_messages() {
            self.line(&MessageRecord { kind: "message", message: &message? })?;
            self.counts.messages += 1;
        }
        for compaction in &compactions {
            self.line(&Typed { kind: "compaction", rest: compaction })?;
            self.counts.compactions += 1;
        }
        for label in &labels {
            self.line(&Typed { kind: "label", rest: label })?;
            self.counts.labels += 1;
        }
        self.line(&json!({"type": "head", "id": head}))
    }

    fn end(mut self) -> Result<()> {
        #[derive(Serialize)]
        struct End {
            #[serde(flatten)]
            counts: Counts,
            checksum: String,
        }
        let rest = End { counts: self.counts, checksum: self.checksum.to_string() };
        self.line(&Typed { kind: "end", rest: &rest })?;
        self.output.flush().map_err(output_error)
    }

    fn line(&mut self, record: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(record);
        self.text(&text.map_err(|source| Error::Json { what: "a record", source })?)
    }

    fn text(&mut self, line: &str) -> Result<()> {
        // JSON that is kept as it came may hold line breaks between its fields.
        let line = match line.contains(['\n', '\r']) {
            true => &line.replace(['\n', '\r'], " "),
            false => line,
        };
        self.checksum = chain(self.checksum, line);
        self.output.write_all(line.as_bytes()).map_err(output_error)?;
        self.output.write_all(b"\n").map_err(output_error)
    }
}

#[derive(Serialize)]
struct MessageRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'a Message,
}

#[derive(Serialize)]
struct Typed<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    rest: &'a T,
}

/// What is written of a session itself.
#[derive(Serialize)]
pub(super) struct SessionRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session: &'a Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fork_point: &'a Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: &'a Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: &'a Option<String>,
    created_at: chrono::DateTime<chrono::Utc>,
}

/// Returns what is written of a session itself.
pub(super) fn session_record(info: &SessionInfo) -> SessionRecord<'_> {
    SessionRecord {
        kind: "session",
        id: &info.id,
        name: &info.name,
        parent_session: &info.parent_session,
        fork_point: &info.fork_point,
        model: &info.model,
        source: &info.source,
        metadata: &info.metadata,
        end_reason: &info.end_reason,
        created_at: info.created_at,
    }
}
