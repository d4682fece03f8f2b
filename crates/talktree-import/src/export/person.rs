//! Exports the data of a person, for one who asks to see it.
//!
//! JSON lines, version 1. Of an owner: a `session` record is followed by the records of that session as in talktree's own
//! format, then by its texts, prompt, keys and imported records. A `text` record without a session is one of the owner. A
//! `transcript` record is followed by its entries, as they were appended; its `shown_by` names the session that shows the
//! same conversation. An `item` record is a pending item of an inbox.
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
//!
//! Of an author: a `session` record, which has the id alone, is followed by the messages that the person wrote in it, each with
//! its tags. `usage` records are those of the answers to the person.
//!
//! ```json
//! {"format":"talktree-author","version":1}
//! {"type":"author","id":"telegram:42"}
//! {"type":"session","id":"group"}
//! {"type":"message","message":{"id":"a",..},"tags":["spam"]}
//! {"type":"usage","session":"group","message":"b","model":"..","input":100,..}
//! {"type":"end","sessions":1,"messages":1,"compactions":0,"labels":0,"checksum":".."}
//! ```
//!
//! Entries of transcripts are written for people: what was said comes first, as text, then the rest as JSON, without the ids
//! of entries.

use std::fmt::Display;
use std::io::Write;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use talktree::{
    BindingFilter, Error, Json, ListedMessage, Message, MessageFilter, Record, Result,
    SessionDetails, SessionFilter, SessionId, SessionInfo, SessionState, Store,
};

use super::jsonl::{Lines, kind_of};
use super::markdown::{one_line, write_fence, write_message};
use super::output_error;

/// How many sessions or bindings one read returns.
const PAGE: usize = 1_000;
/// How many messages one read returns.
const MESSAGE_PAGE: usize = 256;

/// Whose data [`export_person`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person<'a> {
    /// All data of an owner: each of the owner's sessions, also if it is ended or in the trash, with its details and tags, its
    /// messages on all branches as they were written, its summaries, labels, elisions, context blocks with their versions,
    /// frozen prompt, keys and imported records; the owner's context blocks with their versions; the owner's usage, also of
    /// sessions that were removed; the owner's pending items in inboxes; and the owner's transcripts with their entries. Removed
    /// texts and old versions are in it while the store keeps them. Blocks that all sessions share are in it only as parts of
    /// frozen prompts.
    Owner(&'a str),
    /// What a person wrote in all sessions, those of others and those in the trash included: each message as it was written,
    /// with its tags and the id of its session, and the usage of the answers to the person. Nothing that others wrote is in it,
    /// nor the names of their sessions. The person is named by [`Author::key`](talktree::Author::key).
    Author(&'a str),
}

impl<'a> Person<'a> {
    /// Returns what the person is in the store, `owner` or `author`.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Owner(_) => "owner",
            Self::Author(_) => "author",
        }
    }

    /// Returns the name of the person.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Self::Owner(name) | Self::Author(name) => name,
        }
    }
}

/// A format of [`export_person`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PersonFormat {
    /// JSON lines, for programs: everything.
    Jsonl,
    /// A page for people: everything but the ids of messages, parts that talktree does not show to people (such as the bytes
    /// of a file inside a message), and the places of summaries.
    Markdown,
}

/// What [`export_person`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct PersonExport {
    /// The number of sessions, those in the trash included.
    pub sessions: u64,
    /// The number of messages: of an owner, those of the sessions on all branches.
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

impl PersonExport {
    /// Returns whether the store has no data of the person.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn count(&mut self, kind: &str) {
        let Self { sessions, messages, texts, bindings, usage, items, transcripts, entries } = self;
        match kind {
            "session" => *sessions += 1,
            "message" => *messages += 1,
            "text" => *texts += 1,
            "binding" => *bindings += 1,
            "usage" => *usage += 1,
            "item" => *items += 1,
            "transcript" => *transcripts += 1,
            "entry" => *entries += 1,
            _ => {}
        }
    }
}

/// Writes the data of a person, for one who asks to see it or takes it elsewhere. All data is from one snapshot.
///
/// ```
/// use talktree::{Author, Message, SessionDetails, Store};
/// use talktree_import::export::{Person, PersonFormat, export_person};
///
/// let store = Store::open_in_memory()?;
/// for name in ["ann", "bob"] {
///     let details = SessionDetails { owner: Some(name.to_owned()), ..SessionDetails::default() };
///     let message = Message::user(format!("I am {name}.")).from(&Author::new(name));
///     store.create_session(details)?.append(message)?;
/// }
/// for person in [Person::Owner("ann"), Person::Author("ann")] {
///     let mut file = Vec::new();
///     let written = export_person(&store, person, PersonFormat::Jsonl, &mut file)?;
///     assert_eq!((written.sessions, written.messages), (1, 1));
///     let text = String::from_utf8_lossy(&file);
///     assert!(text.contains("I am ann.") && !text.contains("bob"));
/// }
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidValue`] if the name is empty; as [`Store::export`].
pub fn export_person(
    store: &Store,
    person: Person<'_>,
    format: PersonFormat,
    output: &mut impl Write,
) -> Result<PersonExport> {
    store.export(output, |store, output| {
        let mut written = PersonExport::default();
        let (kind, name) = (person.kind(), person.name());
        match format {
            PersonFormat::Jsonl => {
                let header = format!(r#"{{"format":"talktree-{kind}","version":1}}"#);
                let mut lines = Lines::begin_with(&header, output)?;
                lines.line(&json!({ "type": kind, "id": name }))?;
                each(store, person, &mut |piece| {
                    written.count(piece.kind());
                    write_line(&piece, &mut lines)
                })?;
                lines.end()?;
            }
            PersonFormat::Markdown => {
                let title = match person {
                    Person::Owner(_) => format!("Data of {}", one_line(name)),
                    Person::Author(_) => format!("Written by {}", one_line(name)),
                };
                // Of what has no time: now, and of an entry, when its transcript was written.
                let mut time = now();
                heading("#", title, time, output)?;
                each(store, person, &mut |piece| {
                    written.count(piece.kind());
                    if let Piece::Data("transcript", data) = &piece {
                        time = time_of(&data.value()["written_at"]).unwrap_or(time);
                    }
                    write_section(&piece, time, output)
                })?;
            }
        }
        Ok(written)
    })
}

/// One piece of a person's data.
enum Piece {
    /// A session of an owner.
    Own(Box<Own>),
    /// A record of it.
    Record(Record),
    /// What an author wrote.
    Written(ListedMessage),
    /// An object of another kind.
    Data(&'static str, Json),
}

/// A session of an owner, and when it was put into the trash.
#[derive(Serialize)]
struct Own {
    id: SessionId,
    #[serde(flatten)]
    details: SessionDetails,
    deleted_at: Option<DateTime<Utc>>,
}

impl Piece {
    fn kind(&self) -> &'static str {
        match self {
            Self::Own(..) => "session",
            Self::Record(record) => kind_of(record),
            Self::Written(_) => "message",
            Self::Data(kind, _) => kind,
        }
    }
}

type With<'w> = &'w mut dyn FnMut(Piece) -> Result<()>;

fn each(store: &Store, person: Person<'_>, with: With<'_>) -> Result<()> {
    match person {
        Person::Owner(owner) => each_of_owner(store, owner, with),
        Person::Author(author) => each_of_author(store, author, with),
    }
}

fn each_of_owner(store: &Store, owner: &str, with: With<'_>) -> Result<()> {
    // The owner's texts come before the sessions.
    let mut sessions = Some(sessions_of(store, owner)?);
    store.data_of_owner(owner, |kind, data| {
        if kind != "text"
            && let Some(sessions) = sessions.take()
        {
            each_session(store, sessions, with)?;
        }
        with(Piece::Data(kind, data))
    })?;
    each_session(store, sessions.unwrap_or_default(), with)
}

fn each_session(store: &Store, sessions: Vec<SessionInfo>, with: With<'_>) -> Result<()> {
    for info in sessions {
        let session = store.session(&info.id)?;
        let filter = BindingFilter { session: Some(info.id.clone()), ..BindingFilter::default() };
        let deleted_at = info.deleted_at;
        session.records(|record| match record {
            Record::Session { id, details } => {
                with(Piece::Own(Box::new(Own { id, details, deleted_at })))
            }
            record => with(Piece::Record(record)),
        })?;
        session.data(|kind, data| with(Piece::Data(kind, data)))?;
        let mut before = None;
        loop {
            let bindings = store.bindings(&filter, before, PAGE)?;
            let Some(last) = bindings.last() else { break };
            before = Some(last.number);
            bindings.iter().try_for_each(|key| with(Piece::Data("binding", object(key)?)))?;
        }
    }
    Ok(())
}

fn each_of_author(store: &Store, author: &str, with: With<'_>) -> Result<()> {
    let filter = MessageFilter { includes_trash: true, ..MessageFilter::written_by(author) };
    let (mut after, mut session) = (None::<String>, None);
    loop {
        let page = store.list_messages(&filter, after.as_deref(), MESSAGE_PAGE)?;
        for found in page.messages {
            if session.as_ref() != Some(&found.session) {
                with(Piece::Data("session", json!({ "id": found.session }).into()))?;
                session = Some(found.session.clone());
            }
            with(Piece::Written(found))?;
        }
        after = page.after;
        if after.is_none() {
            break;
        }
    }
    store.data_of_author(author, |kind, data| with(Piece::Data(kind, data)))
}

/// Returns the sessions of an owner, the oldest first.
fn sessions_of(store: &Store, owner: &str) -> Result<Vec<SessionInfo>> {
    let mut sessions = Vec::new();
    for state in [SessionState::Present, SessionState::Trash] {
        let filter = SessionFilter { state, ..SessionFilter::owned_by(owner) };
        let mut after = None::<String>;
        loop {
            let page =
                store.list().filter(filter.clone()).after(after.as_deref()).limit(PAGE).run()?;
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

#[derive(Serialize)]
struct WrittenLine<'a> {
    message: &'a Message,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
}

fn object(value: &impl Serialize) -> Result<Json> {
    let text = serde_json::to_string(value);
    Json::parse(&text.map_err(|source| Error::Json { what: "a record", source })?)
}

fn write_line(piece: &Piece, lines: &mut Lines<'_>) -> Result<()> {
    let kind = piece.kind();
    lines.count(kind);
    let data = match piece {
        Piece::Record(record) => return lines.line(record),
        Piece::Own(session) => object(session)?,
        Piece::Written(ListedMessage { message, tags, .. }) => {
            object(&WrittenLine { message, tags })?
        }
        Piece::Data(_, data) => data.clone(),
    };
    lines.text(&format!(r#"{{"type":"{kind}",{}"#, data.as_str().trim_start_matches('{')))
}

/// Writes a heading. Each one ends with a time, so that no text can imitate it: lines of texts that do are marked.
fn heading(
    level: &str,
    what: impl Display,
    time: DateTime<Utc>,
    output: &mut dyn Write,
) -> Result<()> {
    let time = time.format("%Y-%m-%d %H:%M:%S UTC");
    writeln!(output, "\n{level} {what}, {time}").map_err(output_error)
}

fn write_section(piece: &Piece, now: DateTime<Utc>, output: &mut dyn Write) -> Result<()> {
    match piece {
        Piece::Own(session) => {
            let Own { id, details, .. } = &**session;
            let name = one_line(details.name.as_deref().unwrap_or(id.as_str()));
            let time = details.created_at.unwrap_or(now);
            heading("#", format_args!("Session {name}"), time, output)?;
            fence_json(session, output)
        }
        Piece::Record(Record::Message { message, .. }) => write_all(message, output),
        Piece::Record(Record::Compaction { compaction, .. }) => {
            heading("##", "Summary", compaction.created_at, output)?;
            fence("", &compaction.summary, output)?;
            compaction.details.as_ref().map_or(Ok(()), |details| fence_json(details, output))
        }
        Piece::Record(Record::Label(label)) => item("Label", &label.name, output),
        Piece::Record(Record::Tag(tag)) => item("Tag of a message", &tag.tag, output),
        Piece::Record(Record::Elision { marker, .. }) => item("Shortened result", marker, output),
        Piece::Record(_) => Ok(()),
        Piece::Written(ListedMessage { message, tags, .. }) => {
            write_all(message, output)?;
            tags.iter().try_for_each(|tag| item("Tag", tag, output))
        }
        Piece::Data(kind, data) => write_data(kind, &data.value(), now, output),
    }
}

fn write_data(kind: &str, data: &Value, now: DateTime<Utc>, output: &mut dyn Write) -> Result<()> {
    let text = |name: &str| one_line(data[name].as_str().unwrap_or_default());
    let time = |name: &str| time_of(&data[name]).unwrap_or(now);
    match kind {
        "session" => heading("#", format_args!("Session {}", text("id")), now, output),
        "text" => {
            let whose = if data["session"].is_null() { "Text of the owner" } else { "Text" };
            let name = format!("{} {}", text("label"), text("key"));
            let what = format_args!("{whose} {}, version {}", name.trim_end(), data["version"]);
            heading("##", what, time("changed_at"), output)?;
            for line in ["title", "description"].iter().filter_map(|name| data[name].as_str()) {
                item("About", line, output)?;
            }
            fence("", data["content"].as_str().unwrap_or("(removed)"), output)
        }
        "imported" => item("Imported record", data["record"].as_str().unwrap_or_default(), output),
        "entry" => write_entry(&data["entry"], now, output),
        _ => {
            let (level, what, time) = match kind {
                "prompt" => ("##", "Prompt".to_owned(), now),
                "binding" => ("##", "Key".to_owned(), time("bound_at")),
                "usage" => ("##", "Usage".to_owned(), time("used_at")),
                "item" => ("##", "Received, and not handled yet".to_owned(), time("received_at")),
                _ => {
                    let name = format!("Transcript {} {}", text("session"), text("subpath"));
                    ("#", name.trim_end().to_owned(), time("written_at"))
                }
            };
            heading(level, what, time, output)?;
            fence_json(data, output)
        }
    }
}

fn write_entry(entry: &Value, now: DateTime<Utc>, output: &mut dyn Write) -> Result<()> {
    let mut entry = entry.clone();
    let kind = one_line(entry["type"].as_str().unwrap_or_default());
    let time = time_of(&entry["timestamp"]).unwrap_or(now);
    heading("##", format_args!("Entry {kind}"), time, output)?;
    for text in entry.get_mut("message").map(take_texts).unwrap_or_default() {
        fence("", &text, output)?;
    }
    if let Value::Object(members) = &mut entry {
        members.retain(|name, _| name != "uuid" && name != "parentUuid");
    }
    fence_json(&entry, output)
}

/// Takes the texts out of the message of an entry.
fn take_texts(message: &mut Value) -> Vec<String> {
    let Some(content) = message.get_mut("content") else { return Vec::new() };
    match content.take() {
        Value::String(text) => vec![text],
        Value::Array(blocks) => {
            let is_text = |block: &Value| {
                let is_plain = block.as_object().is_some_and(|members| members.len() == 2);
                is_plain && block["type"] == "text" && block["text"].is_string()
            };
            let (texts, others): (Vec<_>, Vec<_>) = blocks.into_iter().partition(is_text);
            *content = others.into();
            texts.iter().filter_map(|block| block["text"].as_str()).map(str::to_owned).collect()
        }
        other => {
            *content = other;
            Vec::new()
        }
    }
}

/// Writes a message with its metadata and other fields.
fn write_all(message: &Message, output: &mut dyn Write) -> Result<()> {
    write_message(message, output).map_err(output_error)?;
    if let Some(metadata) = &message.metadata {
        fence("json", metadata.as_str(), output)?;
    }
    if message.extra.is_empty() { Ok(()) } else { fence_json(&message.extra, output) }
}

fn item(what: &str, text: &str, output: &mut dyn Write) -> Result<()> {
    writeln!(output, "\n{what}:").map_err(output_error)?;
    fence("", text, output)
}

fn fence(language: &str, text: &str, output: &mut dyn Write) -> Result<()> {
    write_fence(language, text, output).map_err(output_error)
}

fn fence_json(value: &impl Serialize, output: &mut dyn Write) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|source| Error::Json { what: "a record", source })?;
    fence("json", &text, output)
}

fn time_of(value: &Value) -> Option<DateTime<Utc>> {
    value.as_str()?.parse().ok()
}

/// Returns the time. `Utc::now` panics if the clock of the system shows a time before 1970.
fn now() -> DateTime<Utc> {
    std::time::SystemTime::now().into()
}
