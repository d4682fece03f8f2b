//! Exports of claude.ai: `conversations.json`.
//!
//! A record is a conversation, a tree by the parents that its messages name; in older exports they follow each other. The export
//! does not say which branch was shown: the newest leaf is the head. A call of a tool and its result are in one message.

use crate::report::ImportReport;
use chrono::{DateTime, Utc};
use talktree::{Json, Message, MessageId, Part, Role};

use super::blocks::{self, ToolNames};
use super::chain::here;
use super::linear;
use super::parts::{Outcome, answer, call, hidden_if_empty};
use crate::draft::{
    Draft, Node, Origin, Reader, derive, fingerprint, message_id, name, session_id,
};
use crate::fields::{Fields, data_part, text_part, text_part_with};
use crate::records::Record;

/// The field with the time of a message or a conversation.
const TIME: &str = "created_at";

/// The parent of a first message.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// Reads exports of claude.ai.
pub(crate) struct ClaudeAi {
    pub(super) from: Origin,
}

impl Reader for ClaudeAi {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let line = record.line;
        let messages = entry.list("chat_messages").unwrap_or_default();
        if messages.is_empty() {
            report.records += 1;
            report.leave_out(line, "a conversation without messages");
            return None;
        }
        let id =
            entry.id("uuid").unwrap_or_else(|| derive(&["claude-ai", &record.text]).to_string());
        let mut draft = Draft::new(session_id(id), line);
        report.check_times(line, &[(&entry, TIME)], "the time of the message before");
        draft.details.name = entry.text("name").as_deref().and_then(name);
        draft.details.model = entry.text("model");
        draft.details.created_at = entry.time(TIME);
        let items: Vec<Option<Fields>> = messages.iter().map(Fields::of).collect();
        let is_tree = items.iter().flatten().any(|item| item.has("parent_message_uuid"));
        let mut newest: Option<(DateTime<Utc>, MessageId)> = None;
        let mut before = draft.details.created_at.unwrap_or(self.from.now);
        for (number, (source, item)) in messages.iter().zip(items).enumerate() {
            report.records += 1;
            let Some(item) = item else {
                report.lose(line, format!("message {}: no object", number + 1));
                continue;
            };
            report.check_times(line, &[(&item, TIME)], "the time of the message before");
            let id = match item.id("uuid") {
                Some(id) => message_id(id),
                None => {
                    derive(&["claude-ai", &number.to_string(), source.as_str()]).to_string().into()
                }
            };
            let parent = match is_tree {
                true => item.id("parent_message_uuid").filter(|id| id != ROOT).map(message_id),
                false => draft.last_id(),
            };
            before = item.time(TIME).unwrap_or(before);
            let message = message(&item).with_id(id.clone()).at(before);
            // Other fields may differ in a later export.
            let content = serde_json::to_string(&message.parts).unwrap_or_default();
            if newest.as_ref().is_none_or(|(newest, _)| *newest <= before) {
                newest = Some((before, id.clone()));
            }
            let body = here(message, Some(source).filter(|_| self.from.keeps_source));
            draft.push(Node::new(id, parent, line, fingerprint(&content), body));
        }
        let shown = entry.id("current_leaf_message_uuid").map(message_id);
        draft.head = shown.or(newest.map(|(_, id)| id));
        let known = [
            "uuid",
            "name",
            "chat_messages",
            TIME,
            "updated_at",
            "model",
            "account",
            "current_leaf_message_uuid",
        ];
        let is_filled = |_: &str, value: &Json| !matches!(value.as_str(), "null" | "\"\"" | "{}");
        draft.add_metadata(entry.without(&known).only(is_filled));
        (!draft.nodes.is_empty()).then_some(draft)
    }
}

fn message(item: &Fields) -> Message {
    let role = match item.text("sender").as_deref() {
        Some("human") | None => Role::User,
        Some(sender) => Role::from(sender),
    };
    let (mut parts, none) = (Vec::new(), ToolNames::new());
    for block in item.list("content").unwrap_or_default() {
        let Some(fields) = Fields::of(&block) else { continue };
        match fields.text("type").as_deref() {
            Some("tool_use") => {
                let id = fields.id("id").unwrap_or_else(|| format!("call-{}", parts.len()));
                let (name, input) = (fields.text("name"), fields.get("input").cloned());
                parts.push(Part::Tool(call(name, id, input, Outcome::Open)));
            }
            Some("tool_result") => {
                let id = fields.id("tool_use_id");
                let name = fields.text("name").unwrap_or_else(|| "unknown".to_owned());
                let (said, is_error) = (fields.get("content"), fields.is_true("is_error"));
                let result = blocks::result(name, id.clone().unwrap_or_default(), said, is_error);
                answer(&mut parts, id.as_deref(), result);
            }
            Some("voice_note") => parts.extend(fields.get("text").map(text_part)),
            // What a text cites stays with it; where in the recording it was said is nothing to keep.
            Some("text") => {
                let text = fields
                    .without(&["start_timestamp", "stop_timestamp", "flags"])
                    .only(|_, value| !matches!(value.as_str(), "null" | "[]"));
                parts.extend(text.into_json().map(|text| blocks::part(&text, &none)));
            }
            _ => parts.push(blocks::part(&block, &none)),
        }
    }
    let has_text = |part: &Part| matches!(part, Part::Text(text) if !text.text.is_empty());
    if !parts.iter().any(has_text) && !parts.iter().any(|part| matches!(part, Part::Tool(_))) {
        parts.extend(item.get("text").filter(|text| text.as_str() != "\"\"").map(text_part));
    }
    for attached in item.objects("attachments") {
        let Some(text) = attached.get("extracted_content") else { continue };
        let name = Fields::default().with("file_name", attached.get("file_name").cloned());
        parts.push(text_part_with(text, name));
    }
    parts.extend(item.list("files").unwrap_or_default().iter().map(|file| data_part("file", file)));
    let known = [
        "uuid",
        "sender",
        "text",
        "content",
        "attachments",
        "files",
        "parent_message_uuid",
        TIME,
        "updated_at",
        "index",
    ];
    hidden_if_empty(linear::message(role, parts, item.except(&known)))
}
