//! Exports of LibreChat: one conversation, whose messages are a list or nested.
//!
//! The export does not say which branch was open: the head is the newest message.

use std::collections::HashSet;

use talktree::records::blocks::{self, ToolNames};
use talktree::records::chat::arguments;
use talktree::records::fields::text;
use talktree::{Json, Message, Part, Role, Usage};

use super::linear;
use super::open_assistant::unnest;
use super::parts::{
    Outcome, Placed, add_by_time, call, extra, file, hidden_if_blank, kept, tokens, typed,
};
use crate::draft::{Draft, Origin, Reader, derive, message_id, name, session_id};
use crate::fields::{Fields, data_part, text_part};
use crate::records::Record;
use crate::report::ImportReport;

/// Reads exports of LibreChat.
pub(crate) struct LibreChat {
    pub(super) from: Origin,
}

impl LibreChat {
    /// Returns a message with its parent; `outer` is the message that it is nested in.
    fn placed(&self, fields: &Fields, outer: Option<String>, names: &ToolNames) -> Option<Placed> {
        let id = message_id(fields.id("messageId")?);
        let parent = fields.id("parentMessageId").or(outer);
        // A root has none, or an id of zeros.
        let parent = parent.filter(|it| !it.chars().all(|c| matches!(c, '0' | '-')));
        let source = self.from.keeps_source.then(|| fields.clone().into_json()).flatten();
        Some(Placed {
            message: message(fields, names).with_id(id),
            time: fields.time("createdAt"),
            parent: parent.map(message_id),
            source,
        })
    }
}

impl Reader for LibreChat {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let line = record.line;
        let messages = entry.list("messages").or_else(|| entry.list("messagesTree"));
        let messages = messages.unwrap_or_default();
        if messages.is_empty() {
            report.records += 1;
            report.leave_out(line, "a conversation without messages");
            return None;
        }
        let names = ToolNames::new();
        let mut placed: Vec<Placed> = Vec::new();
        for (at, root) in messages.iter().enumerate() {
            let nested = unnest(root.as_str(), "children");
            if nested.is_empty() {
                report.records += 1;
                report.lose(line, format!("message {}: no object", at + 1));
            }
            let mut ids: Vec<Option<String>> = Vec::with_capacity(nested.len());
            for message in nested {
                report.records += 1;
                let entry = Fields::parse(&message.text).unwrap_or_default();
                let outer = message.parent.and_then(|parent| ids.get(parent).cloned().flatten());
                ids.push(entry.id("messageId"));
                match self.placed(&entry, outer, &names) {
                    Some(message) => placed.push(message),
                    None => report.lose(line, format!("message {}: it has no id", at + 1)),
                }
            }
        }
        let first = placed.first()?.message.id.clone();
        let id = entry.id("conversationId");
        let id = id.unwrap_or_else(|| derive(&["librechat", first.as_str()]).to_string());
        let mut draft = Draft::new(session_id(id), line);
        draft.details.name = entry.text("title").as_deref().and_then(name);
        draft.details.model = entry.inner("options").text("model");
        draft.details.metadata = kept(&entry, &["endpoint", "options"]).into_json();
        if entry.is_false("branches") {
            report.remark(line, "exported without its branches: it has only one of them");
        }
        let mut parents = HashSet::new();
        if placed.iter().filter_map(|it| it.parent.as_ref()).any(|parent| !parents.insert(parent)) {
            let why = "the export does not say which branch was open; the newest is taken";
            report.remark(line, why);
        }
        add_by_time(&mut draft, placed, self.from.now);
        Some(draft)
    }
}

fn message(fields: &Fields, names: &ToolNames) -> Message {
    let role = match fields.is_true("isCreatedByUser") {
        true => Role::User,
        false => Role::Assistant,
    };
    let mut parts: Vec<Part> = match fields.list("content").filter(|content| !content.is_empty()) {
        Some(content) => content.iter().filter_map(|block| part(block, names)).collect(),
        None => blocks::parts(fields.get("text"), names),
    };
    parts.extend(fields.objects("files").into_iter().filter_map(|it| {
        let url = it.text("filepath").or_else(|| it.text("file_id"))?;
        let mut made = file(it.text("type"), url, it.text("filename"));
        made.extra = extra(&it, &["type", "filepath", "filename", "url"]);
        typed(Part::File(made), "file", &it)
    }));
    let about = ["sender", "model", "endpoint", "error", "unfinished", "isEdited", "feedback"];
    let mut message = linear::message(role, parts, kept(fields, &about));
    let counted = tokens(fields, "tokenCount");
    if message.role == Role::Assistant && counted > 0 {
        let model = fields.text("model");
        message = message.with_usage(&Usage { model, output: counted, ..Usage::default() });
    }
    hidden_if_blank(message)
}

/// Returns the part of a block; its value is in a field of the name of its type.
fn part(json: &Json, names: &ToolNames) -> Option<Part> {
    let Some(block) = Fields::of(json) else { return Some(text_part(json)) };
    let kind = block.text("type").unwrap_or_default();
    let value = block.get(&kind)?;
    match kind.as_str() {
        "text" => {
            let inner = Fields::of(value).and_then(|inner| inner.get("value").cloned());
            Some(text_part(&inner.unwrap_or_else(|| value.clone())))
        }
        "think" => Some(Part::reasoning(text(value)?)),
        "tool_call" => {
            let given = Fields::of(value)?;
            let output = given.get("output").filter(|output| output.as_str() != "\"\"").cloned();
            let outcome = output.map_or(Outcome::Open, Outcome::Output);
            let (name, id) = (given.text("name")?, given.id("id").unwrap_or_default());
            let mut made = call(name, id, given.get("args").map(arguments), outcome);
            made.extra = extra(&given, &["name", "id", "args", "output", "type", "progress"]);
            typed(Part::Tool(made), "tool_call", &given)
        }
        "image_file" => {
            let given = Fields::of(value)?;
            let url = given.text("filepath").or_else(|| given.text("file_id"))?;
            Some(Part::File(file(given.text("type"), url, given.text("filename"))))
        }
        "error" => Some(data_part("error", value)),
        _ => Some(blocks::part(json, names)),
    }
}
