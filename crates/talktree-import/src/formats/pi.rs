//! Sessions of the Pi coding agent, versions 1 to 3.
//!
//! A file is one session: a header, then entries. From version 2 on entries have ids and parents;
//! in version 1 each follows the one before. Every entry has a position in the tree, so every entry becomes a message;
//! entries that are not messages become hidden ones. A compaction is a hidden message, and a summary that replaces its
//! path from the root to the entry before the first one it keeps, which version 1 names by its number in the file.
//! A context edit hides an earlier message, or puts other content in its place. A record that only another format has is left
//! out, with a note.
//!
//! A file may be joined from several files. It then has several sessions, and an entry does not say which one it is of. A line
//! that cannot be read may have been the header of the next session. The entry after it is imported only if one of these holds:
//!
//! - what is left of the line is that of an entry; or
//! - only one line cannot be read, and the entry names a parent: the first entry of a session has none; or
//! - the entry names a parent that is an entry of the session.
//!
//! Otherwise all entries up to the next header are left out. A header that is missing without a trace is not noticed.

use std::collections::HashSet;

use crate::report::ImportReport;
use chrono::{DateTime, Utc};
use talktree::{Message, MessageId, Part, Role};

use super::Format;
use super::blocks::{self, ToolNames};
use super::chain::{aside, json};
use super::detect::{PI_TYPES, of_another_format};
use super::linear::message;
use super::parts::hidden_if_empty;
use crate::draft::{
    Body, Draft, DraftCompaction, DraftEdit, DraftLabel, Node, Origin, Reader, derive, fingerprint,
    message_id, name, session_id,
};
use crate::fields::{Fields, text_part_with};
use crate::records::Record;

/// The newest version of the format that is known.
const NEWEST: f64 = 3.0;

/// The field with the time of an entry or a message.
const TIME: &str = "timestamp";

/// Reads Pi sessions.
#[derive(Default)]
pub(crate) struct Pi {
    pub(super) from: Origin,
    /// The tool names of calls, for results that do not name their tool.
    names: ToolNames,
    drafts: Vec<PiSession>,
    /// How many lines since the last entry could not be read.
    lost: u64,
    /// Whether one of those lines may have been a header.
    may_lack_header: bool,
    /// Whether the header of the entries that follow was lost.
    is_headless: bool,
}

/// One session while it is read.
#[derive(Default)]
struct PiSession {
    draft: Draft,
    /// The id of each entry by its number; the header has none.
    entries: Vec<Option<MessageId>>,
    /// The same ids as a set, made when the first is looked up.
    ids: Option<HashSet<MessageId>>,
    /// Compactions that name the first kept entry by its number, with that number.
    by_number: Vec<(usize, usize)>,
}

impl Pi {
    fn begin(&mut self, record: &Record, header: &Fields, report: &mut ImportReport) {
        if header.number("version").is_some_and(|version| version > NEWEST) {
            let why =
                format!("a version of Pi's format after {NEWEST}; it may hold what is not read");
            report.remark(record.line, why);
        }
        let id = header.id("id").unwrap_or_else(|| self.derived_session());
        let mut draft = Draft::new(session_id(id), record.line);
        let ancestor = header.id("parentSession").or_else(|| header.id("branchedFrom"));
        draft.details.model = header.text("modelId");
        draft.details.parent_session =
            ancestor.as_deref().and_then(session_of_path).map(session_id);
        draft.details.created_at = header.time(TIME);
        draft.add_metadata(header.except(&["type", "id", "timestamp", "modelId"]));
        let entries = vec![None];
        self.drafts.push(PiSession { draft, entries, ..PiSession::default() });
        (self.lost, self.may_lack_header, self.is_headless) = (0, false, false);
    }

    /// Returns whether an entry is of the same session as the entry before it.
    fn follows(&mut self, fields: &Fields) -> bool {
        let lost = std::mem::take(&mut self.lost);
        let is_in_doubt = std::mem::take(&mut self.may_lack_header);
        if let Some(session) = self.drafts.last_mut().filter(|_| is_in_doubt) {
            let parent = fields.id("parentId").map(message_id);
            self.is_headless |= !parent.is_some_and(|parent| lost == 1 || session.has(&parent));
        }
        !self.is_headless
    }

    fn derived_session(&self) -> String {
        // A session without an id keeps it when the folder is moved.
        let file = self.from.file.rsplit(['/', '\\']).next().unwrap_or_default();
        derive(&["pi", file]).to_string()
    }

    /// Returns the session of the entries; without a header its id comes from the name of the file.
    fn session(&mut self, line: u64) -> &mut PiSession {
        if self.drafts.is_empty() {
            let draft = Draft::new(session_id(self.derived_session()), line);
            self.drafts.push(PiSession { draft, ..PiSession::default() });
        }
        let last = self.drafts.len() - 1;
        &mut self.drafts[last]
    }
}

impl Reader for Pi {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        report.records += 1;
        let Some(kind) = entry.text("type") else {
            self.pass_damaged(record.line, record.text.as_bytes());
            report.lose(record.line, "an entry without a type");
            return None;
        };
        if kind == "session" {
            report.converted += 1;
            report.check_times(record.line, &[(&entry, TIME)], "the time of the import");
            self.begin(record, &entry, report);
            return None;
        }
        let is_known = kind == "message" || PI_TYPES.contains(&kind.as_str());
        if !is_known && entry.has("cwd") && !entry.has("parentId") {
            self.pass_damaged(record.line, record.text.as_bytes());
            report.lose(record.line, "an entry of an unknown type that has what headers have");
            return None;
        }
        let is_said = kind != "message" || entry.object("message").is_some();
        // An entry of an unknown type that names a parent is one of a newer version.
        let is_own = if is_known { is_said } else { entry.has("parentId") };
        if !is_own && let Some(why) = of_another_format(&entry, Format::Pi) {
            report.lose(record.line, why);
            return None;
        }
        if !self.follows(&entry) {
            report.lose(record.line, "the header of its session is damaged or missing");
            return None;
        }
        let message = entry.object("message");
        let inner = message.as_ref().unwrap_or(&entry);
        report.check_times(record.line, &[(&entry, TIME), (inner, TIME)], "the time of the import");
        if let Some(message) = &message {
            blocks::collect_names(message.get("content"), &mut self.names);
        }
        let now = self.from.now;
        if self.drafts.is_empty() {
            report.fault(record.line, "no header before the first entry");
        }
        let session = self.session(record.line);
        let number = session.entries.len().to_string();
        let id = match entry.id("id") {
            Some(id) => message_id(id),
            None => derive(&["pi", &number, &record.text]).to_string().into(),
        };
        let parent = match entry.has("parentId") {
            true => entry.id("parentId").map(message_id),
            false => session.draft.last_id(),
        };
        session.entries.push(Some(id.clone()));
        if let Some(ids) = &mut session.ids {
            ids.insert(id.clone());
        }
        match kind.as_str() {
            "compaction" => session.compaction(record, &entry, &id, now),
            "label" => session.label(record, &entry),
            "context_edit" => session.edit(record, &entry, &id),
            "session_info" => {
                let given = entry.text("name").as_deref().and_then(name);
                session.draft.details.name = given.or(session.draft.details.name.take());
            }
            "model_change" if session.draft.details.model.is_none() => {
                session.draft.details.model = entry.text("modelId");
            }
            _ => {}
        }
        // Pi continues from the entry written last.
        session.draft.head = Some(id.clone());
        let (line, fingerprint) = (record.line, fingerprint(&record.text));
        session.draft.push(Node::new(id, parent, line, fingerprint, Body::There(record.place())));
        None
    }

    fn pass_damaged(&mut self, _line: u64, text: &[u8]) {
        let text = text.trim_ascii();
        // A block of the file that was never written may have held several lines; it counts as two.
        let is_block = text.is_empty() || text.iter().any(u8::is_ascii_control);
        self.lost += if is_block { 2 } else { 1 };
        self.may_lack_header |= !is_of_entry(text);
    }

    fn finish(&mut self, report: &mut ImportReport) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for mut session in self.drafts.drain(..) {
            for (at, number) in session.by_number {
                let compaction = &mut session.draft.compactions[at];
                match session.entries.get(number).cloned().flatten() {
                    Some(kept) => compaction.kept = kept,
                    None => {
                        let why = format!("there is no entry number {number}, the first it keeps");
                        report.remark(compaction.line, why);
                    }
                }
            }
            drafts.push(session.draft);
        }
        drafts
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        let kind = fields.text("type").unwrap_or_default();
        let inner = fields.object("message");
        let time = fields.time(TIME);
        let time = time.or_else(|| inner.as_ref()?.time(TIME)).unwrap_or(self.from.now);
        let message = match (kind.as_str(), inner) {
            ("message", Some(inner)) => self.message_of(&fields, inner),
            ("branch_summary", _) => {
                let text = fields.text("summary").unwrap_or_default();
                let rest = fields.without(&["type", "id", "parentId", "timestamp", "summary"]);
                note(&text, rest, &kind)
            }
            ("custom_message", _) => {
                let parts = blocks::parts(fields.get("content"), &self.names);
                let rest = fields.without(&["type", "id", "parentId", "timestamp", "content"]);
                let metadata = rest.with("kind", Some(json(&kind)));
                message(Role::User, parts, metadata)
            }
            _ => aside(&kind, &fields.without(&["id", "parentId", "timestamp"])),
        };
        Some(message.at(time))
    }

    /// Only the content is replaced: role, call and metadata are those of the message.
    fn replacement(&self, edit: &Fields, mut message: Message) -> Message {
        let replacement = edit.inner("replacement");
        let content = replacement.get("content");
        message.parts = match &message.parts[..] {
            [Part::Tool(tool)] if message.role == Role::Tool => {
                let is_error = tool.error_text.is_some();
                vec![blocks::result(tool.name.clone(), tool.call_id.clone(), content, is_error)]
            }
            _ => blocks::parts(content, &self.names),
        };
        message
    }
}

impl Pi {
    /// Returns a message by a person, the model or a tool.
    fn message_of(&self, entry: &Fields, inner: Fields) -> Message {
        let role = inner.text("role").unwrap_or_default();
        let rest = entry.except(&["type", "id", "parentId", "timestamp", "message"]);
        let inner_rest = inner.except(&["role", "content", "timestamp"]);
        let rest: Fields = rest.into_iter().chain(inner_rest).collect();
        let content = || blocks::parts(inner.get("content"), &self.names);
        match role.as_str() {
            "user" | "assistant" => message(role.as_str(), content(), rest),
            "system" => system(&inner, content(), rest),
            "toolResult" => {
                let id = inner.id("toolCallId").unwrap_or_default();
                let named = inner.text("toolName");
                let name = named.unwrap_or_else(|| blocks::name_of(&self.names, &id));
                let part = blocks::result(name, id, inner.get("content"), inner.is_true("isError"));
                let rest = rest.without(&["toolCallId", "toolName", "isError"]);
                message(Role::Tool, vec![part], rest)
            }
            "bashExecution" => {
                let (command, output) = (inner.text("command"), inner.text("output"));
                let (command, output) = (command.unwrap_or_default(), output.unwrap_or_default());
                let text = format!("Ran `{command}`\n```\n{output}\n```");
                let mut message = note(&text, rest.without(&["output"]), &role);
                message.is_hidden = inner.is_true("excludeFromContext");
                message
            }
            "branchSummary" | "compactionSummary" => {
                let text = inner.text("summary").unwrap_or_default();
                note(&text, rest.without(&["summary"]), &role)
            }
            "custom" | "hookMessage" => {
                let metadata = rest.with("kind", Some(json(&role)));
                message(Role::User, content(), metadata)
            }
            _ => message(role.as_str(), content(), rest),
        }
    }
}

impl PiSession {
    /// Returns whether an entry has this id.
    fn has(&mut self, id: &MessageId) -> bool {
        let entries = &self.entries;
        let ids = self.ids.get_or_insert_with(|| entries.iter().flatten().cloned().collect());
        ids.contains(id)
    }

    fn compaction(&mut self, record: &Record, fields: &Fields, id: &MessageId, now: DateTime<Utc>) {
        let kept = fields.id("firstKeptEntryId").map(message_id);
        let number = fields.number("firstKeptEntryIndex");
        if let (None, Some(number)) = (&kept, number) {
            self.by_number.push((self.draft.compactions.len(), number as usize));
        }
        // Without a first entry to keep, nothing before the compaction is kept.
        let kept = kept.unwrap_or_else(|| id.clone());
        let summary = fields.text("summary").unwrap_or_default();
        let time = fields.time(TIME).unwrap_or(now);
        let compaction = DraftCompaction::new(id.clone(), record.line, kept, summary, time);
        let known = ["type", "id", "parentId", "timestamp", "summary"];
        let details = fields.except(&known).into_json();
        self.draft.compactions.push(DraftCompaction { details, ..compaction });
    }

    fn edit(&mut self, record: &Record, fields: &Fields, id: &MessageId) {
        let Some(target) = fields.id("targetId").map(message_id) else { return };
        let is_replacement = fields.object("replacement").is_some();
        let (id, line) = (id.clone(), record.line);
        self.draft.edits.push(DraftEdit { id, target, is_replacement, line });
    }

    /// Sets a label; an entry without a name removes the label of its message.
    fn label(&mut self, record: &Record, fields: &Fields) {
        let Some(target) = fields.id("targetId").map(message_id) else { return };
        self.draft.labels.retain(|label| label.target != target);
        if let Some(name) = fields.text("label").as_deref().and_then(name) {
            let line = record.line;
            self.draft.labels.push(DraftLabel { name, target, line });
        }
    }
}

/// Returns whether a damaged line shows that it was an entry, and nothing of a header.
fn is_of_entry(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let mut types = line.split("\"type\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let is_entry =
        types.clone().next().is_some_and(|kind| kind == "message" || PI_TYPES.contains(&kind));
    is_entry && !types.any(|kind| kind == "session") && !line.contains(|c: char| c.is_control())
}

/// Returns the session id that the name of a Pi file ends with: `<time>_<id>.jsonl`.
fn session_of_path(path: &str) -> Option<String> {
    let file = path.rsplit(['/', '\\']).next()?;
    let (_, id) = file.strip_suffix(".jsonl")?.rsplit_once('_')?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// Returns a change of the system prompt: its text, and the sections that it sets. One that only changes tools is hidden.
fn system(inner: &Fields, mut parts: Vec<Part>, rest: Fields) -> Message {
    let sections = inner.inner("sections").into_iter();
    let (removed, set): (Vec<_>, Vec<_>) = sections.partition(|(_, text)| text.is_null());
    parts.extend(set.into_iter().map(|(name, text)| {
        text_part_with(&text, Fields::default().with("section", Some(json(&name))))
    }));
    // The text of a section is in its part; that one was removed is only here.
    let rest = if removed.is_empty() { rest.without(&["sections"]) } else { rest };
    hidden_if_empty(message(Role::System, parts, rest))
}

/// Returns a message that Pi wrote to the model in the user's name.
fn note(text: &str, rest: Fields, kind: &str) -> Message {
    message(Role::User, vec![Part::text(text)], rest.with("kind", Some(json(kind))))
}
