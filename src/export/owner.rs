//! Exports all data of an owner, for a person who asks to see it.
//!
//! JSON lines, version 1: a `session` record is followed by the records of that session as in talktree's own format, then
//! by its texts, prompt, keys and imported records. A `text` record without a session is one of the owner. A `transcript`
//! record is followed by its entries, as they were appended; its `projected_to` names the session that shows the same
//! conversation, if there is one. An `item` record is a pending item of an inbox.
//!
//! ```json
//! {"format":"talktree-owner","version":1}
//! {"type":"owner","id":"user:42"}
//! {"type":"text","label":"memory","key":"","version":1,"content":"Likes tea.","changed_at":".."}
//! {"type":"session","id":"s","name":"..","owner":"user:42","created_at":"..","deleted_at":null}
//! {"type":"message","message":{"id":"a",..}}
//! {"type":"text","session":"s","label":"notes",..}
//! {"type":"prompt","session":"s","sections":[{"label":"..","header":"..","content":".."}]}
//! {"type":"binding","key":"telegram:4711","session":"s",..}
//! {"type":"imported","session":"s","record":".."}
//! {"type":"usage","session":"s","message":"a","model":"..","input":100,..}
//! {"type":"item","inbox":"telegram","id":"812","key":"telegram:4711","owner":"user:42","body":"..","note":null,"received_at":".."}
//! {"type":"transcript","project":"-home-ann-shop","session":"..","subpath":"","owner":"user:42","entries":1,"written_at":".."}
//! {"type":"entry","entry":{"type":"user","uuid":"..","message":{..}}}
//! {"type":"end","sessions":1,"messages":1,"compactions":0,"labels":0,"checksum":".."}
//! ```

use std::fmt::Display;
use std::io::Write;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::jsonl::{Lines, Typed, session_record};
use super::markdown::{one_line, write_fence, write_message};
use super::records::{Record, each_record};
use super::{entries, output_error, spooled};
use crate::catalog::{Binding, BindingFilter, SessionFilter, SessionState};
use crate::clock;
use crate::error::{Error, Result};
use crate::id::{SessionId, check_name};
use crate::inbox::PendingItem;
use crate::message::{Json, Message};
use crate::outcome::SessionInfo;
use crate::storage::context::{EntryVersion, PromptSection};
use crate::storage::owner_data::{LedgerOf, LedgerRow, OwnedItem, TextName, TextsOf};
use crate::store::Store;
use crate::transcript::{StoredTranscript, TranscriptKey};

/// How many sessions or bindings one read returns.
const PAGE: usize = 1_000;

/// A format of [`Store::export_owner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnerFormat {
    /// JSON lines, for programs: everything.
    Jsonl,
    /// A page for people: everything but the ids of messages, parts that talktree does not show to people (such as the bytes
    /// of a file inside a message), and the places of summaries.
    Markdown,
}

/// What [`Store::export_owner`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct OwnerExport {
    /// The number of sessions, those in the trash included.
    pub sessions: u64,
    /// The number of messages of those sessions, on all branches.
    pub messages: u64,
    /// Versions of texts of context blocks: of the owner, and of those sessions.
    pub texts: u64,
    /// Outside keys that lead to those sessions, or led to them.
    pub bindings: u64,
    /// Rows in the ledger of usage.
    pub usage: u64,
    /// Pending items of inboxes.
    pub items: u64,
    /// Transcripts of agents, and the others of a session whose main one is the owner's.
    pub transcripts: u64,
    /// Entries of those transcripts.
    pub entries: u64,
}

impl OwnerExport {
    /// Returns whether the store has no data of the owner.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Store {
    /// Writes all data of an owner, for a person who asks to see it or takes it elsewhere.
    ///
    /// That is each of the owner's sessions, also if it is ended or in the trash, with its details and tags, its messages on
    /// all branches as they were written, its summaries, labels, elisions, context blocks with their versions, frozen prompt,
    /// keys and imported records; the owner's context blocks with their versions; the owner's usage, also of sessions that
    /// were removed; the owner's pending items in inboxes; and the owner's transcripts with their entries. Removed texts and
    /// old versions are in it while the store keeps them. A transcript that is projected names its session, which shows the
    /// same conversation.
    ///
    /// Messages that the owner wrote in sessions of other owners are in [`export_author`](Self::export_author). Blocks that all
    /// sessions share are in it only as parts of frozen prompts. All data is from one snapshot.
    ///
    /// ```
    /// use talktree::export::OwnerFormat;
    /// use talktree::{Message, SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for owner in ["ann", "bob"] {
    ///     let details = SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() };
    ///     store.create_session(details)?.append(Message::user(format!("I am {owner}.")))?;
    /// }
    /// let mut file = Vec::new();
    /// let written = store.export_owner("ann", OwnerFormat::Jsonl, &mut file)?;
    /// assert_eq!((written.sessions, written.messages), (1, 1));
    /// let text = String::from_utf8_lossy(&file);
    /// assert!(text.contains("I am ann.") && !text.contains("bob"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the owner is empty; [`Error::Io`] if a write to `output` fails; [`Error::Interrupted`]; and
    /// those of every read.
    pub fn export_owner(
        &self,
        owner: &str,
        format: OwnerFormat,
        output: &mut impl Write,
    ) -> Result<OwnerExport> {
        check_name("owner", owner)?;
        spooled(self.spool(), output, |mut output| {
            let store = self.snapshot()?;
            let mut written = OwnerExport::default();
            match format {
                OwnerFormat::Jsonl => {
                    let header = r#"{"format":"talktree-owner","version":1}"#;
                    let mut lines = Lines::begin_with(header, &mut output)?;
                    lines.line(&Typed {
                        kind: "owner",
                        rest: &serde_json::json!({ "id": owner }),
                    })?;
                    each(&store, owner, &mut |data| {
                        written.count(&data);
                        write_line(data, &mut lines)
                    })?;
                    lines.end()?;
                }
                OwnerFormat::Markdown => {
                    let title = format!("Data of {}", one_line(owner));
                    heading("#", title, clock::now(), &mut output)?;
                    each(&store, owner, &mut |data| {
                        written.count(&data);
                        write_section(data, &mut output)
                    })?;
                }
            }
            Ok(written)
        })
    }
}

/// One piece of an owner's data.
enum Data<'a> {
    Session(&'a SessionInfo),
    Record(Record<'a>),
    Text(Option<&'a SessionId>, &'a TextName, &'a EntryVersion),
    Prompt(&'a SessionId, &'a [PromptSection]),
    Binding(&'a Binding),
    Imported(&'a SessionId, &'a str),
    Usage(&'a LedgerRow),
    Item(&'a str, &'a PendingItem),
    Transcript(&'a StoredTranscript),
    Entry(&'a StoredTranscript, &'a Json),
}

impl OwnerExport {
    fn count(&mut self, data: &Data<'_>) {
        match data {
            Data::Session(_) => self.sessions += 1,
            Data::Record(Record::Message { .. }) => self.messages += 1,
            Data::Text(..) => self.texts += 1,
            Data::Binding(_) => self.bindings += 1,
            Data::Usage(_) => self.usage += 1,
            Data::Item(..) => self.items += 1,
            Data::Transcript(_) => self.transcripts += 1,
            Data::Entry(..) => self.entries += 1,
            Data::Record(_) | Data::Prompt(..) | Data::Imported(..) => {}
        }
    }
}

type With<'w> = &'w mut dyn FnMut(Data<'_>) -> Result<()>;

/// Calls `with` for each piece of an owner's data in a snapshot of a store.
fn each(store: &Store, owner: &str, with: With<'_>) -> Result<()> {
    each_text(store, TextsOf::Owner(owner), None, with)?;
    for info in sessions_of(store, owner)? {
        with(Data::Session(&info))?;
        let session = store.session(&info.id)?;
        each_record(&session, &mut |record| with(Data::Record(record)))?;
        each_text(store, TextsOf::Session(&info.id), Some(&info.id), with)?;
        let frozen = session.context().store().read(|texts| texts.frozen())?;
        if let Some(sections) = frozen {
            with(Data::Prompt(&info.id, &sections))?;
        }
        let filter = BindingFilter { session: Some(info.id.clone()), ..BindingFilter::default() };
        let mut before = None;
        loop {
            let bindings = store.bindings(&filter, before, PAGE)?;
            let Some(last) = bindings.last() else { break };
            before = Some(last.number);
            bindings.iter().try_for_each(|binding| with(Data::Binding(binding)))?;
        }
        for record in store.imported_records(&info.id)? {
            with(Data::Imported(&info.id, &record))?;
        }
    }
    let mut after = None;
    loop {
        let rows = store.ledger(LedgerOf::Owner(owner), after)?;
        let Some(last) = rows.last() else { break };
        after = Some(last.place);
        rows.iter().try_for_each(|row| with(Data::Usage(row)))?;
    }
    let mut after = 0;
    while let Some(OwnedItem { number, inbox, item }) = store.owned_item(owner, after)? {
        after = number;
        with(Data::Item(&inbox, &item))?;
    }
    for transcript in store.owned_transcripts(owner)? {
        with(Data::Transcript(&transcript))?;
        let mut after = 0;
        loop {
            let entries = store.entries(transcript.number, after)?;
            let Some((last, _)) = entries.last() else { break };
            after = *last;
            entries.iter().try_for_each(|(_, entry)| with(Data::Entry(&transcript, entry)))?;
        }
    }
    Ok(())
}

/// Returns the sessions of an owner, the oldest first.
fn sessions_of(store: &Store, owner: &str) -> Result<Vec<SessionInfo>> {
    let mut sessions = Vec::new();
    for state in [SessionState::Present, SessionState::Trash] {
        let filter = SessionFilter { state, ..SessionFilter::owned_by(owner) };
        let mut after = None;
        loop {
            let page = store.list_sessions(&filter, after, PAGE)?;
            sessions.extend(page.sessions.into_iter().map(|listed| listed.info));
            after = page.after;
            if after.is_none() {
                break;
            }
        }
    }
    sessions.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(sessions)
}

fn each_text(
    store: &Store,
    of: TextsOf<'_>,
    session: Option<&SessionId>,
    with: With<'_>,
) -> Result<()> {
    for name in store.text_names(of)? {
        for version in store.text_versions(of, &name)? {
            with(Data::Text(session, &name, &version))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct SessionLine<'a> {
    #[serde(flatten)]
    session: super::jsonl::SessionRecord<'a>,
    deleted_at: Option<DateTime<Utc>>,
}

#[derive(Serialize)]
struct TextLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a SessionId>,
    label: &'a str,
    key: &'a str,
    #[serde(flatten)]
    version: &'a EntryVersion,
}

#[derive(Serialize)]
struct PromptLine<'a> {
    session: &'a SessionId,
    sections: &'a [PromptSection],
}

#[derive(Serialize)]
struct ImportedLine<'a> {
    session: &'a SessionId,
    record: &'a str,
}

#[derive(Serialize)]
struct TranscriptLine<'a> {
    #[serde(flatten)]
    key: &'a TranscriptKey,
    owner: Option<&'a str>,
    entries: u64,
    written_at: DateTime<Utc>,
    /// The session that shows the same conversation; it is in the export, too, if it is the owner's.
    #[serde(skip_serializing_if = "Option::is_none")]
    projected_to: Option<&'a SessionId>,
}

impl<'a> TranscriptLine<'a> {
    fn of(transcript: &'a StoredTranscript) -> Self {
        let StoredTranscript { key, owner, entries, projected_to, .. } = transcript;
        let written_at = entries::written_at(transcript);
        let projected_to = projected_to.as_ref();
        Self { key, owner: owner.as_deref(), entries: *entries, written_at, projected_to }
    }
}

#[derive(Serialize)]
struct ItemLine<'a> {
    inbox: &'a str,
    #[serde(flatten)]
    item: &'a PendingItem,
}

#[derive(Serialize)]
struct EntryLine<'a> {
    entry: &'a Json,
}

fn write_line<W: Write>(data: Data<'_>, lines: &mut Lines<'_, W>) -> Result<()> {
    match data {
        Data::Session(info) => {
            lines.at.counts.sessions += 1;
            let session = session_record(info);
            lines.line(&SessionLine { session, deleted_at: info.deleted_at })
        }
        Data::Record(record) => lines.record(record),
        Data::Text(session, TextName { label, key }, version) => {
            lines.line(&Typed { kind: "text", rest: &TextLine { session, label, key, version } })
        }
        Data::Prompt(session, sections) => {
            lines.line(&Typed { kind: "prompt", rest: &PromptLine { session, sections } })
        }
        Data::Binding(binding) => lines.line(&Typed { kind: "binding", rest: binding }),
        Data::Imported(session, record) => {
            lines.line(&Typed { kind: "imported", rest: &ImportedLine { session, record } })
        }
        Data::Usage(row) => lines.line(&Typed { kind: "usage", rest: row }),
        Data::Item(inbox, item) => {
            lines.line(&Typed { kind: "item", rest: &ItemLine { inbox, item } })
        }
        Data::Transcript(transcript) => {
            lines.line(&Typed { kind: "transcript", rest: &TranscriptLine::of(transcript) })
        }
        Data::Entry(_, entry) => lines.line(&Typed { kind: "entry", rest: &EntryLine { entry } }),
    }
}

/// Writes a heading. Each one ends with a time, so that no text can imitate it: lines of texts that do are marked.
pub(super) fn heading(
    level: &str,
    what: impl Display,
    time: DateTime<Utc>,
    output: &mut impl Write,
) -> Result<()> {
    let time = time.format("%Y-%m-%d %H:%M:%S UTC");
    writeln!(output, "\n{level} {what}, {time}").map_err(output_error)
}

fn write_section(data: Data<'_>, output: &mut impl Write) -> Result<()> {
    let now = clock::now();
    match data {
        Data::Session(info) => {
            let name = info.name.as_deref().unwrap_or(info.id.as_str());
            heading("#", format_args!("Session {}", one_line(name)), info.created_at, output)?;
            let session = session_record(info);
            fence_json(&SessionLine { session, deleted_at: info.deleted_at }, output)
        }
        Data::Record(Record::Message { message, .. }) => {
            write_message(message, output).map_err(output_error)?;
            write_rest(message, output)
        }
        Data::Record(Record::Compaction { compaction, .. }) => {
            heading("##", "Summary", compaction.created_at, output)?;
            write_fence("", &compaction.summary, output).map_err(output_error)?;
            compaction.details.as_ref().map_or(Ok(()), |details| fence_json(details, output))
        }
        Data::Record(Record::Label(label)) => item("Label", &label.name, output),
        Data::Record(Record::Tag(tag)) => item("Tag of a message", &tag.tag, output),
        Data::Record(Record::Elision(elision)) => item("Shortened result", &elision.marker, output),
        Data::Record(Record::Tombstone { .. } | Record::Head(_)) => Ok(()),
        Data::Text(session, name, version) => {
            let whose = if session.is_some() { "Text" } else { "Text of the owner" };
            let name = one_line(&format!("{} {}", name.label, name.key));
            let (name, number) = (name.trim_end(), version.version);
            let what = format_args!("{whose} {name}, version {number}");
            heading("##", what, version.changed_at, output)?;
            for line in [&version.title, &version.description].into_iter().flatten() {
                item("About", line, output)?;
            }
            let text = version.content.as_deref().unwrap_or("(removed)");
            write_fence("", text, output).map_err(output_error)
        }
        Data::Prompt(_, sections) => {
            heading("##", "Prompt", now, output)?;
            fence_json(&sections, output)
        }
        Data::Binding(binding) => {
            heading("##", "Key", binding.bound_at, output)?;
            fence_json(binding, output)
        }
        Data::Imported(_, record) => item("Imported record", record, output),
        Data::Usage(row) => {
            heading("##", "Usage", row.used_at, output)?;
            fence_json(row, output)
        }
        Data::Item(inbox, item) => {
            heading("##", "Received, and not handled yet", item.received_at, output)?;
            fence_json(&ItemLine { inbox, item }, output)
        }
        Data::Transcript(transcript) => {
            let TranscriptKey { session, subpath, .. } = &transcript.key;
            let name = one_line(&format!("{session} {subpath}"));
            let time = entries::written_at(transcript);
            heading("#", format_args!("Transcript {}", name.trim_end()), time, output)?;
            fence_json(&TranscriptLine::of(transcript), output)
        }
        Data::Entry(transcript, entry) => entries::write(transcript, entry, output),
    }
}

/// Writes what a message has besides its parts.
pub(super) fn write_rest(message: &Message, output: &mut impl Write) -> Result<()> {
    let Message { metadata, extra, .. } = message;
    if let Some(metadata) = metadata {
        write_fence("json", metadata.as_str(), output).map_err(output_error)?;
    }
    if extra.is_empty() { Ok(()) } else { fence_json(extra, output) }
}

pub(super) fn item(what: &str, text: &str, output: &mut impl Write) -> Result<()> {
    writeln!(output, "\n{what}:").map_err(output_error)?;
    write_fence("", text, output).map_err(output_error)
}

pub(super) fn fence_json(value: &impl Serialize, output: &mut impl Write) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|source| Error::Json { what: "a record", source })?;
    write_fence("json", &text, output).map_err(output_error)
}
