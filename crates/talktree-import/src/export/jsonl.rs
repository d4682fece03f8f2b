//! talktree's own format: JSON lines.

use std::fmt;
use std::io::Write;

use serde::{Deserialize, Serialize};
use talktree::{Error, Record, Result, Session, SessionId, Store};
use uuid::Uuid;

use super::output_error;

/// The version of the format.
pub(crate) const VERSION: u32 = 2;

/// Writes every session in talktree's own format, the oldest first, but not those in the trash: an import would bring them
/// back. [`Store::backup`] copies them, too.
///
/// The export has what [`Session::records`] reads: a copy shows the same on every path. It does not have the content of context
/// blocks or the frozen prompt: a backup has these. It is one snapshot: what others write meanwhile is not in it.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::export::export_jsonl;
///
/// let store = Store::open_in_memory()?;
/// store.session("a")?.append(Message::user("hi"))?;
/// store.session("b")?.append(Message::user("ho"))?;
/// let mut file = Vec::new();
/// export_jsonl(&store, &mut file)?;
/// assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), 1 + 2 * 3 + 1);
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As [`Store::export`].
pub fn export_jsonl(store: &Store, output: &mut impl Write) -> Result<()> {
    store.export(output, |store, output| {
        let mut sessions = store.sessions()?;
        sessions.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        let mut lines = Lines::begin(output)?;
        for info in &sessions {
            lines.session(&store.session(&info.id)?)?;
        }
        lines.end()
    })
}

/// Writes a session in talktree's own format, as [`export_jsonl`] does.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::export::export_session;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("hi"))?;
/// let mut file = Vec::new();
/// export_session(&chat, &mut file)?;
/// assert!(file.starts_with(br#"{"format":"talktree","version":2}"#));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::UnknownSession`] if the session was never written to; as [`Store::export`].
pub fn export_session(session: &Session, output: &mut impl Write) -> Result<()> {
    session.export(output, |session, output| {
        let mut lines = Lines::begin(output)?;
        lines.session(session)?;
        lines.end()
    })
}

/// Writes every readable session that is not in the trash, as [`export_jsonl`] does, and calls `skipped` with the others and
/// their errors.
///
/// For the rescue of a damaged store. Each session is from a snapshot of its own.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::export::export_readable_jsonl;
///
/// let store = Store::open_in_memory()?;
/// store.session("a")?.append(Message::user("hi"))?;
/// let mut file = Vec::new();
/// export_readable_jsonl(&store, &mut file, |id, error| eprintln!("{id}: {error}"))?;
/// assert!(!file.is_empty());
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// Those of [`export_jsonl`], except for damaged sessions.
pub fn export_readable_jsonl(
    store: &Store,
    output: &mut impl Write,
    mut skipped: impl FnMut(&SessionId, &Error),
) -> Result<()> {
    let watch = store.interrupt_handle();
    let mut at = Lines::begin(output)?.at;
    for (id, checked) in store.session_ids()? {
        watch.check()?;
        // An export must not contain half a session.
        let read = checked.and_then(|()| {
            store.session(&id)?.export(output, |session, output| {
                let mut lines = Lines { output, at };
                if session.info()?.is_some_and(|info| info.deleted_at.is_none()) {
                    lines.session(session)?;
                }
                Ok(lines.at)
            })
        });
        match read {
            Ok(position) => at = position,
            Err(error @ (Error::Interrupted | Error::Io { .. })) => return Err(error),
            Err(error) => skipped(&id, &error),
        }
    }
    Lines { output, at }.end()
}

/// An export in progress.
pub(super) struct Lines<'a> {
    output: &'a mut dyn Write,
    at: Position,
}

/// How far an export has come.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    checksum: Uuid,
    counts: Counts,
}

impl<'a> Lines<'a> {
    fn begin(output: &'a mut dyn Write) -> Result<Self> {
        // Not serialized: readers recognize the format by its first bytes.
        Self::begin_with(&format!(r#"{{"format":"talktree","version":{VERSION}}}"#), output)
    }

    pub(super) fn begin_with(header: &str, output: &'a mut dyn Write) -> Result<Self> {
        let mut lines = Self { output, at: Position::default() };
        lines.text(header)?;
        Ok(lines)
    }

    fn session(&mut self, session: &Session) -> Result<()> {
        #[derive(Serialize)]
        struct Numbered<'a> {
            #[serde(flatten)]
            record: &'a Record,
            session: u64,
        }
        let number = number_of(session.id());
        session.records(|record| {
            self.count(kind_of(&record));
            self.line(&Numbered { record: &record, session: number })
        })
    }

    /// Counts a record for the end of the export.
    pub(super) fn count(&mut self, kind: &str) {
        self.at.counts.add(kind);
    }

    pub(super) fn line(&mut self, record: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(record);
        self.text(&text.map_err(|source| Error::Json { what: "a record", source })?)
    }

    pub(super) fn text(&mut self, line: &str) -> Result<()> {
        // JSON is stored as received, so it may have line breaks between its fields.
        let line = match line.contains(['\n', '\r']) {
            true => &line.replace(['\n', '\r'], " "),
            false => line,
        };
        self.at.checksum = chain(self.at.checksum, line);
        self.output.write_all(line.as_bytes()).map_err(output_error)?;
        self.output.write_all(b"\n").map_err(output_error)
    }

    pub(super) fn end(mut self) -> Result<()> {
        #[derive(Serialize)]
        struct End {
            r#type: &'static str,
            #[serde(flatten)]
            counts: Counts,
            checksum: String,
        }
        let Position { counts, checksum } = self.at;
        self.line(&End { r#type: "end", counts, checksum: checksum.to_string() })?;
        self.output.flush().map_err(output_error)
    }
}

/// Returns the kind of a record that is counted.
pub(super) fn kind_of(record: &Record) -> &'static str {
    match record {
        Record::Session { .. } => "session",
        Record::Message { .. } => "message",
        Record::Compaction { .. } => "compaction",
        Record::Label(_) => "label",
        _ => "",
    }
}

/// Returns the checksum with one more line.
pub(crate) fn chain(checksum: Uuid, line: &str) -> Uuid {
    Uuid::new_v5(&checksum, line.as_bytes())
}

/// Returns the number that each record of a session has. It is made from the id of the session: a counter would begin again
/// in each export, and a file may hold several exports.
pub(crate) fn number_of(session: &SessionId) -> u64 {
    chain(Uuid::nil(), session.as_str()).as_fields().0.into()
}

/// The number of records of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) sessions: u64,
    pub(crate) messages: u64,
    pub(crate) compactions: u64,
    pub(crate) labels: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, kind: &str) {
        match kind {
            "session" => self.sessions += 1,
            "message" => self.messages += 1,
            "compaction" => self.compactions += 1,
            "label" => self.labels += 1,
            _ => {}
        }
    }
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
