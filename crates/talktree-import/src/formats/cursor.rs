//! Chats of Cursor: the database of the editor, the databases of its command, and the transcripts of its agents.
//!
//! In the database of the editor a chat lists its *bubbles*, each a row of its own: a text, a thought, or a call together with its
//! result. The command has a database for each chat, in which a root names the messages of the chat. A transcript has less than
//! both: no results, no times, and no ids; it is left out if its chat is in the store.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;
use talktree::records::blocks::{self, ToolNames};
use talktree::records::chat::arguments;
use talktree::records::fields::{list, text};
use talktree::{Json, Message, MessageId, Part, Role};

use super::database::{Kind, Layout, Lines, json, quoted};
use super::linear;
use super::parts::{Outcome, call, hidden_if_blank, kept, leave_unfinished, may_grow, usage};
use crate::draft::{
    Draft, Node, Origin, Reader, derive, message_id, name, session_id, with_source,
};
use crate::fields::{self, Fields};
use crate::records::{Place, Record};
use crate::report::ImportReport;

/// The other keys of this table, and the other table, hold settings and logins.
pub(super) const LAYOUT: Layout = Layout {
    lines: "SELECT 0, rowid, substr(key, 14) AS chat
            FROM cursorDiskKV
            WHERE key >= 'composerData:' AND key < 'composerData;' AND value IS NOT NULL
            UNION ALL
            SELECT 1, bubble.rowid, substr(chat.key, 14)
            FROM cursorDiskKV AS chat
            JOIN cursorDiskKV AS bubble
              ON bubble.key >= 'bubbleId:' || substr(chat.key, 14) || ':'
             AND bubble.key < 'bubbleId:' || substr(chat.key, 14) || ';'
            WHERE chat.key >= 'composerData:' AND chat.key < 'composerData;'
              AND chat.value IS NOT NULL AND bubble.value IS NOT NULL
            ORDER BY chat, 1, 2",
    kinds: &[
        Kind { row: ("composer", ROW), list: None },
        Kind { row: ("bubble", ROW), list: None },
    ],
};

const ROW: &str = "SELECT key, value FROM cursorDiskKV WHERE rowid = ?1";

/// Reads chats of Cursor.
#[derive(Default)]
pub(crate) struct Cursor {
    pub(super) from: Origin,
    open: Option<Open>,
    /// When each chat began: most bubbles have no time.
    starts: HashMap<String, DateTime<Utc>>,
    /// The chats that a chat began for its agents.
    parents: HashMap<String, String>,
}

/// A chat while it is read.
#[derive(Default)]
struct Open {
    id: String,
    draft: Draft,
    /// The places of its bubbles; the messages of other chats are in order.
    order: HashMap<String, usize>,
    /// Whether its last bubble may still change.
    is_growing: bool,
    counts: HashMap<String, u32>,
    unlisted: u64,
}

impl Cursor {
    fn begin(&mut self, id: String, about: &Fields, line: u64) -> &mut Open {
        let mut draft = Draft::new(session_id(id.as_str()), line);
        let parent = about.inner("subagentInfo").id("parentComposerId");
        let parent = parent.or_else(|| self.parents.get(&id).cloned());
        let model = about.inner("modelConfig").text("modelName");
        let model = model.or_else(|| about.text("lastUsedModel"));
        let details = &mut draft.details;
        details.name = about.text("name").as_deref().and_then(name);
        details.parent_session = parent.map(session_id);
        details.model = model.filter(|model| !model.is_empty() && model != "default");
        details.metadata = kept(about, &["workspaceIdentifier", "unifiedMode", "mode"]).into_json();
        details.created_at = about.time("createdAt");
        self.starts.extend(details.created_at.map(|time| (id.clone(), time)));
        self.open.insert(Open { id, draft, ..Open::default() })
    }

    /// Begins a chat of the editor.
    fn composer(&mut self, id: String, chat: &Fields, record: &Record, report: &mut ImportReport) {
        for field in ["subComposerIds", "subagentComposerIds"] {
            for child in chat.list(field).unwrap_or_default().iter().filter_map(fields::id) {
                self.parents.insert(child, id.clone());
            }
        }
        let may_grow = may_grow(chat.time("lastUpdatedAt"), self.from.now);
        let open = self.begin(id.clone(), chat, record.line);
        open.is_growing = may_grow && chat.text("status").as_deref() == Some("generating");
        // An older Cursor kept the bubbles in the chat.
        let inner = chat.list("conversation").unwrap_or_default();
        let listed = chat.list("fullConversationHeadersOnly").filter(|listed| !listed.is_empty());
        let listed = listed.unwrap_or_else(|| inner.clone());
        let ids = listed.iter().map(|bubble| Fields::of(bubble)?.id("bubbleId"));
        open.order = ids.enumerate().filter_map(|(at, id)| Some((id?, at))).collect();
        for json in inner {
            report.records += 1;
            let bubble = Fields::of(&json).and_then(|bubble| bubble.id("bubbleId"));
            let key = format!("bubbleId:{id}:{}", bubble.unwrap_or_default());
            let row = Fields::default().with("key", Some(Value::from(key)));
            let row = row.with("value", Some(json)).into_json();
            self.add(&Fields::default().with("bubble", row), None, record, None, report);
        }
    }

    /// Adds a message: a bubble, or what follows the message before it.
    fn add(
        &mut self,
        fields: &Fields,
        given: Option<String>,
        record: &Record,
        place: Option<Place>,
        report: &mut ImportReport,
    ) {
        let message = self.message_of(fields);
        let Some(open) = &mut self.open else {
            report.lose(record.line, "a bubble without its chat");
            return;
        };
        let id = match bubble_of(fields) {
            Some((_, id, _)) if open.order.contains_key(&id) => message_id(id),
            Some(_) => {
                open.unlisted += 1;
                return;
            }
            None => {
                // The id of a message is that of its content, so two messages may have one.
                let content = || serde_json::to_string(&message.parts).unwrap_or_default();
                let name =
                    given.clone().unwrap_or_else(|| format!("{} {}", message.role, content()));
                let count = open.counts.entry(name.clone()).or_default();
                *count += 1;
                match given {
                    Some(given) if *count == 1 => message_id(given),
                    _ => {
                        derive(&["cursor", &open.id, &name, &count.to_string()]).to_string().into()
                    }
                }
            }
        };
        if let Some(model) = message.field("model").and_then(|model| text(&model)) {
            open.draft.details.model.get_or_insert(model);
        }
        let keeps_source = self.from.keeps_source && place.is_none();
        let source = keeps_source.then(|| fields.clone().into_json()).flatten();
        let message = with_source(message, source.as_ref());
        open.draft.push(Node::of(message.with_id(id), None, record.line, place));
    }

    /// Begins the chat of a transcript, which the file names.
    fn transcript(&mut self, line: u64) {
        let file = std::mem::take(&mut self.from.file);
        let mut folders = file.rsplit(['/', '\\']);
        let name = folders.next().unwrap_or_default();
        let id = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        // `CHAT/subagents/ID.jsonl`
        let parent = folders.next().filter(|folder| *folder == "subagents").and(folders.next());
        let open = self.begin(format!("transcript/{id}"), &Fields::default(), line);
        open.draft.details.parent_session = parent.map(session_id);
        open.draft.unless = Some(session_id(id));
    }

    fn message_of(&self, fields: &Fields) -> Message {
        let (start, message) = match bubble_of(fields) {
            Some((chat, id, bubble)) => {
                let time = bubble.time("createdAt").or_else(|| self.starts.get(&chat).copied());
                (time, of_bubble(&id, &bubble))
            }
            // All messages of such a file are of one chat.
            None => (self.starts.values().next().copied(), of_message(fields)),
        };
        message.at(start.unwrap_or(self.from.now))
    }
}

impl Reader for Cursor {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        report.records += 1;
        let row = entry.inner("composer");
        let chat = match row.text("key").as_deref().and_then(|key| key.split_once(':')) {
            Some((_, id)) => Some((id.to_owned(), row.inner("value"))),
            None => entry.id("composerId").map(|id| (id, entry.clone())),
        };
        if let Some((id, chat)) = chat {
            report.converted += 1;
            let done = self.close(report);
            self.composer(id, &chat, record, report);
            return done;
        }
        if let Some(chat) = entry.object("chat") {
            report.converted += 1;
            let done = self.close(report);
            self.begin(chat.id("agentId").unwrap_or_default(), &chat, record.line);
            return done;
        }
        let blob = entry.text("blob");
        let said = entry.object("message");
        let is_transcript = entry.text("role").is_some() && said.is_some();
        let has_role = said.is_some_and(|said| said.text("role").is_some());
        if is_transcript && self.open.is_none() {
            self.transcript(record.line);
        }
        if entry.has("bubble") || blob.is_some() && has_role || is_transcript {
            self.add(&entry, blob, record, Some(record.place()), report);
        } else if let Some(blob) = blob {
            report.lose(record.line, format!("message {blob:?} cannot be read"));
        } else {
            report.leave_out(record.line, "no message");
        }
        None
    }

    fn close(&mut self, report: &mut ImportReport) -> Option<Draft> {
        let Open { mut draft, order, is_growing, unlisted, .. } = self.open.take()?;
        if unlisted > 0 {
            report.dropped += unlisted;
            let why = format!("{unlisted} bubbles left out that the chat no longer lists");
            report.remark(draft.line, why);
        }
        draft.nodes.sort_by_key(|node| order.get(node.id.as_str()).copied());
        let mut before: Option<MessageId> = None;
        for node in &mut draft.nodes {
            node.parent = before.replace(node.id.clone());
        }
        if is_growing {
            leave_unfinished(&mut draft, report);
        }
        (!draft.nodes.is_empty()).then_some(draft)
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        Some(self.message_of(&fields))
    }
}

/// Returns the ids of the chat and of the bubble in a row, and the bubble.
fn bubble_of(fields: &Fields) -> Option<(String, String, Fields)> {
    let row = fields.object("bubble")?;
    let key = row.text("key")?;
    let (chat, id) = key.strip_prefix("bubbleId:")?.split_once(':')?;
    Some((chat.to_owned(), id.to_owned(), row.inner("value")))
}

fn of_bubble(id: &str, bubble: &Fields) -> Message {
    let role = if bubble.number("type") == Some(1.0) { Role::User } else { Role::Assistant };
    let mut parts = Vec::new();
    let thought = bubble.inner("thinking").text("text");
    parts.extend(thought.filter(|thought| !thought.is_empty()).map(Part::reasoning));
    parts.extend(blocks::parts(bubble.get("text"), &ToolNames::new()));
    parts.extend(bubble.object("toolFormerData").and_then(|tool| called(id, &tool)));
    let model = bubble.inner("modelInfo").text("modelName");
    let about = kept(bubble, &["unifiedMode"]).with("model", model.clone().map(Value::from));
    let mut message = linear::message(role, parts, about);
    let usage = usage(&bubble.inner("tokenCount"), model);
    if usage.input.max(usage.output) > 0 {
        message = message.with_usage(&usage);
    }
    hidden_if_blank(message)
}

fn called(id: &str, tool: &Fields) -> Option<Part> {
    let name = tool.text("name").or_else(|| tool.get("tool").map(Json::to_string))?;
    let input = tool.get("rawArgs").or_else(|| tool.get("params")).map(arguments);
    let result = tool.get("result").map(arguments);
    let error = || tool.get("error").map(|error| text(error).unwrap_or_else(|| error.to_string()));
    let outcome = match (tool.text("status").as_deref(), result) {
        (Some("error" | "cancelled"), None) => {
            Outcome::Failed(error().or_else(|| tool.text("status")).unwrap_or_default())
        }
        (Some("error"), Some(result)) => {
            Outcome::Failed(error().unwrap_or_else(|| result.to_string()))
        }
        (_, Some(result)) => Outcome::Output(result),
        (Some("completed"), None) => Outcome::Output(Value::from("").into()),
        _ => Outcome::Open,
    };
    let id = tool.id("toolCallId").unwrap_or_else(|| id.to_owned());
    Some(Part::Tool(call(name, id, input, outcome)))
}

/// Returns a message of the command, in the form of the AI SDK's `ModelMessage`, or one of a transcript.
fn of_message(fields: &Fields) -> Message {
    let said = fields.inner("message");
    let role = fields.text("role").or_else(|| said.text("role")).unwrap_or_default();
    let content = said.get("content");
    let parts = match content.and_then(list) {
        Some(blocks) => blocks.iter().map(part).collect(),
        None => blocks::parts(content, &ToolNames::new()),
    };
    hidden_if_blank(Message::new(role, parts.into_iter().map(without_wrapper).collect()))
}

fn part(json: &Json) -> Part {
    let block = Fields::of(json).unwrap_or_default();
    let name = |field: &str| block.text(field).unwrap_or_else(|| "unknown".to_owned());
    let id = || block.id("toolCallId").unwrap_or_default();
    let called =
        |name, id, input| Part::Tool(call(name, id, block.get(input).cloned(), Outcome::Open));
    match block.text("type").as_deref() {
        Some("tool-call") => called(name("toolName"), id(), "args"),
        Some("tool-result") => blocks::result(name("toolName"), id(), block.get("result"), false),
        // The calls of a transcript have no ids.
        Some("tool_use") if !block.has("id") => called(name("name"), name("name"), "input"),
        _ => blocks::part(json, &ToolNames::new()),
    }
}

/// Returns the words of a person without the tag around them.
fn without_wrapper(mut part: Part) -> Part {
    if let Part::Text(said) = &mut part {
        let inner = said.text.trim().strip_prefix("<user_query>");
        let inner = inner.and_then(|inner| inner.strip_suffix("</user_query>"));
        if let Some(inner) = inner.map(|inner| inner.trim().to_owned()) {
            said.text = inner;
        }
    }
    part
}

/// Returns the lines of a database of Cursor's command: what it says of the chat, and the messages that its root names.
pub(super) fn chat(conn: Connection, path: &Path, size: u64) -> rusqlite::Result<Option<Lines>> {
    const META: &str = "SELECT CAST(value AS TEXT) FROM meta WHERE key = '0'";
    const BLOB: &str = "SELECT CAST(data AS BLOB) FROM blobs WHERE id = ?1";
    let meta: Option<String> = conn.query_row(META, [], |row| row.get(0)).optional()?.flatten();
    let meta = meta.and_then(|meta| String::from_utf8(bytes_of(&meta)?).ok());
    let Some(about) = meta.and_then(|meta| Fields::parse(&meta).ok()) else { return Ok(None) };
    let blob = |conn: &Connection, id: &str| -> rusqlite::Result<Vec<u8>> {
        Ok(conn.query_row(BLOB, [id], |row| row.get(0)).optional()?.unwrap_or_default())
    };
    let root = blob(&conn, &about.id("latestRootBlobId").unwrap_or_default())?;
    let messages = names(&root);
    // The folder has the id of the chat, too.
    let folder = path.parent().and_then(Path::file_name);
    let id = about.id("agentId").or(folder.map(|it| it.to_string_lossy().into_owned()));
    let about = about.with("agentId", Some(Value::from(id.unwrap_or_default()))).into_json();
    let about = about.map(|about| about.to_string()).unwrap_or_default();
    Ok(Some(Lines::new(1 + messages.len(), size, move |number| {
        let Some(id) = number.checked_sub(1).map(|number| &messages[number]) else {
            return Ok(format!(r#"{{"chat":{about}}}"#));
        };
        let blob = blob(&conn, id).map_err(io::Error::other)?;
        // Older messages are in a frame.
        let start = blob.iter().position(|byte| *byte == b'{').unwrap_or(blob.len());
        let end = blob.iter().rposition(|byte| *byte == b'}').map_or(start, |end| end + 1);
        let message = json(&String::from_utf8_lossy(blob.get(start..end).unwrap_or_default()));
        Ok(format!(r#"{{"blob":{},"message":{message}}}"#, quoted(id)))
    })))
}

/// Returns the names of blobs that a root begins with: its first field, in Protocol Buffers, is a list of names of 32 bytes.
fn names(mut root: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((name, rest)) =
        root.strip_prefix(b"\x0a\x20").and_then(|root| root.split_at_checked(32))
    {
        names.push(name.iter().map(|byte| format!("{byte:02x}")).collect());
        root = rest;
    }
    names
}

/// Returns the bytes that a text of hexadecimal digits means.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}
