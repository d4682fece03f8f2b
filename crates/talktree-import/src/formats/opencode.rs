//! Sessions of opencode: its database, the folders of JSON before it, and what `opencode export` prints.
//!
//! A record is a session (`{"info": .., "messages": [..]}`) or a message (`{"info": .., "parts": [..]}`). The ids are the same in
//! all three sources, so a session that is in several is one. Its messages are one path in the order of their times. A
//! request for a summary and the summary become a compaction; both messages are hidden. What an undo would remove stays: the head
//! is before it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde_json::Value;
use talktree::records::fields::text;
use talktree::{Message, MessageId, Part, Reasoning, Record as Stored, Role, Text, Usage};

use super::database::{Kind, Layout, Lines, json};
use super::linear;
use super::parts::{
    Outcome, call, dollars, extra, file, hidden_if_blank, kept, leave_unfinished, may_grow, tokens,
    typed,
};
use crate::draft::{
    Draft, DraftCompaction, Node, Origin, Reader, message_id, name, session_id, with_source,
};
use crate::fields::{Fields, data_part, text_part};
use crate::records::{Place, Record};
use crate::report::ImportReport;

pub(super) const LAYOUT: Layout = Layout {
    lines: "SELECT 0, rowid, time_created AS begun, id AS session, 0 AS time, '' AS message
            FROM session
            UNION ALL
            SELECT 1, message.rowid, session.time_created, session.id, message.time_created, message.id
            FROM message
            JOIN session ON session.id = message.session_id
            ORDER BY begun, session, 1, time, message",
    kinds: &[
        Kind {
            row: ("info", "SELECT * FROM session WHERE rowid = ?1"),
            list: Some(("messages", "", "")),
        },
        Kind {
            row: ("info", "SELECT * FROM message WHERE rowid = ?1"),
            list: Some((
                "parts",
                "part",
                "SELECT * FROM part
                 WHERE message_id = (SELECT id FROM message WHERE rowid = ?1)
                 ORDER BY id",
            )),
        },
    ],
};

/// What an output shows to the model that opencode has cleared.
const CLEARED: &str = "[Old tool result content cleared]";

/// The fields of a message that are kept in its metadata.
const METADATA: [&str; 8] =
    ["agent", "mode", "providerID", "modelID", "path", "finish", "error", "system"];

/// The fields of a part that say where it belongs, and are no content.
const PLACE: [&str; 8] =
    ["id", "sessionID", "session_id", "messageID", "message_id", "type", "time", "time_created"];

/// Reads sessions of opencode.
#[derive(Default)]
pub(crate) struct OpenCode {
    pub(super) from: Origin,
    open: Option<Open>,
}

/// A session while it is read.
struct Open {
    draft: Draft,
    /// Where an undo begins, and whether it is only of a part of that message.
    undone: Option<(MessageId, bool)>,
    /// The request for a summary that waits for it, and the first message that it keeps.
    request: Option<(MessageId, Option<MessageId>)>,
    /// Whether the last message may still change.
    is_growing: bool,
}

impl OpenCode {
    fn begin(&mut self, id: String, info: &Fields, record: &Record) {
        let mut draft = Draft::new(session_id(id), record.line);
        let title = info.text("title").filter(|title| {
            !["New session - ", "Child session - "].iter().any(|start| title.starts_with(start))
        });
        let parent = info.text("parentID").or_else(|| info.text("parent_id"));
        let (model, revert) = (info.inner("model"), info.inner("revert"));
        let details = &mut draft.details;
        details.name = title.as_deref().and_then(name);
        details.parent_session = parent.map(session_id);
        details.model = model.id("id").or_else(|| model.text("modelID"));
        details.created_at = created(info);
        details.metadata = kept(info, &["directory", "version", "agent"]).into_json();
        draft.bytes = record.text.len();
        let undone = revert.id("messageID").map(message_id);
        let undone = undone.map(|id| (id, revert.id("partID").is_some()));
        self.open = Some(Open { draft, undone, request: None, is_growing: false });
    }

    /// Takes a message; its place, if it is a record of its own.
    fn add(
        &mut self,
        fields: Fields,
        record: &Record,
        place: Option<Place>,
        report: &mut ImportReport,
    ) {
        report.records += 1;
        let keeps_source = self.from.keeps_source && place.is_none();
        let source = keeps_source.then(|| fields.clone().into_json()).flatten();
        let said = Said::new(&fields);
        let info = &said.info;
        let Some(id) = info.id("id").map(message_id) else {
            report.lose(record.line, "a message without an id");
            return;
        };
        let session = info.id("sessionID").or_else(|| info.id("session_id")).map(session_id);
        let is_own = |open: &&mut Open| session.as_ref().is_none_or(|id| *id == open.draft.session);
        let Some(open) = self.open.as_mut().filter(is_own) else {
            report.lose(record.line, "a message without its session");
            return;
        };
        let mut message = said.message(self.from.now).with_id(id.clone());
        let is_finished = ["finish", "error"].iter().any(|name| info.get(name).is_some())
            || info.inner("time").get("completed").is_some();
        let is_summary = info.is_true("summary") && info.get("error").is_none() && is_finished;
        let request = said.parts.iter().find(|part| kind(part) == "compaction");
        message.is_hidden |= request.is_some() || is_summary;
        if is_summary {
            // An older opencode made a summary without a request, of all before it.
            let (begin, tail) = open.request.take().unwrap_or_else(|| (id.clone(), None));
            let is_there = |tail: &MessageId| open.draft.nodes.iter().any(|node| node.id == *tail);
            let kept = tail.filter(is_there).unwrap_or(begin);
            let (line, summary, time) = (record.line, message.text(), message.created_at);
            let compaction = DraftCompaction::new(id.clone(), line, kept, summary, time);
            open.draft.compactions.push(compaction);
        }
        if let Some(request) = request {
            open.request = Some((id.clone(), request.id("tail_start_id").map(message_id)));
        }
        for call in said.parts.iter().filter(|part| is_cleared(part)) {
            let (call, marker) = (call.id("callID").unwrap_or_default(), CLEARED.to_owned());
            let elision = Stored::Elision { message: id.clone(), call, marker };
            open.draft.attached.push((record.line, elision));
        }
        let changed = info.time("time_updated").or_else(|| created(info));
        open.is_growing =
            message.role == Role::Assistant && !is_finished && may_grow(changed, self.from.now);
        if open.draft.details.model.is_none() {
            open.draft.details.model = info.text("modelID");
        }
        let message = with_source(message, source.as_ref());
        let parent = open.draft.last_id();
        open.draft.push(Node::of(message, parent, record.line, place));
    }
}

impl Reader for OpenCode {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let Some(messages) = entry.list("messages") else {
            self.add(entry, record, Some(record.place()), report);
            return None;
        };
        report.records += 1;
        let done = self.close(report);
        let info = entry.inner("info");
        let Some(id) = info.id("id") else {
            report.lose(record.line, "a session without an id");
            return done;
        };
        report.converted += 1;
        self.begin(id, &info, record);
        for message in &messages {
            self.add(Fields::of(message).unwrap_or_default(), record, None, report);
        }
        done
    }

    fn close(&mut self, report: &mut ImportReport) -> Option<Draft> {
        let Open { mut draft, undone, is_growing, .. } = self.open.take()?;
        if is_growing {
            leave_unfinished(&mut draft, report);
        }
        if let Some((undone, is_partial)) = undone
            && let Some(at) = draft.nodes.iter().position(|node| node.id == undone)
        {
            let head = if is_partial { Some(at) } else { at.checked_sub(1) };
            draft.is_at_start = head.is_none();
            // The head is not at the end of what was undone.
            draft.notes = (0..draft.nodes.len()).map(|at| Some(at) > head).collect();
            draft.head = head.map(|at| draft.nodes[at].id.clone());
        }
        (!draft.nodes.is_empty()).then_some(draft)
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        Some(Said::new(&fields).message(self.from.now))
    }
}

/// Returns the fields of a row together with those in its column `data`, as a file has them.
fn flat(row: Fields) -> Fields {
    let data = row.inner("data");
    row.without(&["data"]).into_iter().chain(data).collect()
}

fn created(info: &Fields) -> Option<DateTime<Utc>> {
    info.inner("time").time("created").or_else(|| info.time("time_created"))
}

/// A message as all sources have it.
struct Said {
    info: Fields,
    parts: Vec<Fields>,
}

impl Said {
    fn new(fields: &Fields) -> Self {
        let parts = fields.objects("parts").into_iter().map(flat).collect();
        Self { info: flat(fields.inner("info")), parts }
    }

    fn message(&self, now: DateTime<Utc>) -> Message {
        let Self { info, parts } = self;
        let parts = parts.iter().filter_map(part).collect();
        let role = info.text("role").unwrap_or_default();
        let mut message = linear::message(role, parts, kept(info, &METADATA));
        if let Some(counted) = info.object("tokens") {
            let cache = counted.inner("cache");
            let (read, written) = (tokens(&cache, "read"), tokens(&cache, "write"));
            let reasoning = tokens(&counted, "reasoning");
            message = message.with_usage(&Usage {
                model: info.text("modelID"),
                input: tokens(&counted, "input").saturating_add(read).saturating_add(written),
                output: tokens(&counted, "output").saturating_add(reasoning),
                cache_read: read,
                cache_write: written,
                reasoning,
                cost: dollars(info.number("cost")),
            });
        }
        hidden_if_blank(message.at(created(info).unwrap_or(now)))
    }
}

fn kind(part: &Fields) -> String {
    part.text("type").unwrap_or_default()
}

fn part(part: &Fields) -> Option<Part> {
    let kind = kind(part);
    let rest = part.except(&PLACE).without(&["time_updated"]);
    let typed = match kind.as_str() {
        // Bookkeeping; the numbers are those of the message.
        "step-start" | "step-finish" | "snapshot" => return None,
        "text" | "reasoning" => {
            let said = part.get("text").or_else(|| part.get("content"))?;
            let extra = extra(&rest, &["text", "content"]);
            match text_part(said) {
                Part::Text(said) if said.text.is_empty() => return None,
                Part::Text(Text { text, .. }) if kind == "reasoning" => {
                    Part::Reasoning(Reasoning { text, extra })
                }
                Part::Text(Text { text, .. }) => Part::Text(Text { text, extra }),
                other => other,
            }
        }
        "file" => {
            let mut made = file(part.text("mime"), part.text("url")?, part.text("filename"));
            made.extra = extra(&rest, &["mime", "url", "filename"]);
            Part::File(made)
        }
        "tool" => tool(part, &rest)?,
        _ => data_part(&kind, &rest.clone().into_json()?),
    };
    self::typed(typed, &kind, &rest)
}

fn tool(part: &Fields, rest: &Fields) -> Option<Part> {
    let tool = part.text("tool")?;
    let state = part.inner("state");
    let output = || state.get("output").cloned().unwrap_or_else(|| Value::from("").into());
    let outcome = match state.text("status").as_deref() {
        // A call of no tool, with what was wrong as its output.
        Some("completed") if tool == "invalid" => {
            Outcome::Failed(text(&output()).unwrap_or_default())
        }
        Some("completed") => Outcome::Output(output()),
        Some("error") => Outcome::Failed(state.text("error").unwrap_or_default()),
        _ => Outcome::Open,
    };
    let mut made = call(tool, part.id("callID")?, state.get("input").cloned(), outcome);
    made.extra = extra(rest, &["tool", "callID", "state"]);
    made.extra.extend(extra(&state, &["status", "input", "output", "error"]));
    Some(Part::Tool(made))
}

/// Returns whether a part is a call whose output opencode no longer shows to the model.
fn is_cleared(part: &Fields) -> bool {
    let state = part.inner("state");
    let is_done = state.text("status").as_deref() == Some("completed");
    is_done && state.inner("time").get("compacted").is_some()
}

/// Returns whether a folder is a part of opencode's, whose sessions are imported from `session` beside it.
pub(crate) fn is_beside_sessions(folder: &Path) -> bool {
    let storage = folder.parent().filter(|parent| parent.ends_with("storage"));
    storage.is_some_and(|storage| {
        let is_storage = ["session", "message", "part"].iter().all(|it| storage.join(it).is_dir());
        is_storage && !folder.ends_with("session")
    })
}

/// Returns the lines of a session in files of its own: `session/PROJECT/ID.json`, `message/ID/*.json`, `part/MESSAGE/*.json`.
pub(super) fn session(path: &Path) -> Option<Lines> {
    let sessions = path.parent()?.parent().filter(|folder| folder.ends_with("session"))?;
    let storage = sessions.parent()?.to_owned();
    let messages = files(&storage.join("message").join(path.file_stem()?)).ok()?;
    let session = path.to_owned();
    let read = |file: &Path| fs::read_to_string(file).map(|text| json(&text));
    // About a kilobyte for each message.
    let size = 1024 * (1 + messages.len() as u64);
    Some(Lines::new(1 + messages.len(), size, move |number| {
        let Some(message) = number.checked_sub(1).map(|number| &messages[number]) else {
            return Ok(format!(r#"{{"info":{},"messages":[]}}"#, read(&session)?));
        };
        let parts = message.file_stem().map(|id| files(&storage.join("part").join(id)));
        // A message of another program has no parts.
        let parts = parts.and_then(Result::ok).unwrap_or_default();
        let parts = parts.iter().map(|part| read(part)).collect::<io::Result<Vec<_>>>()?.join(",");
        Ok(format!(r#"{{"info":{},"parts":[{parts}]}}"#, read(message)?))
    }))
}

/// Returns the JSON files of a folder in the order of their names, which are ids that sort by time.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = files.collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort_unstable();
    Ok(files)
}
