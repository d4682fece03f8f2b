//! Messages of the OpenAI chat API: JSON, JSON lines, or lines of fine-tuning data.

use chrono::{DateTime, Utc};
use talktree::{Extra, Json, Message, MessageId, Part, Role};

use super::Format;
use super::blocks::{self, ToolNames};
use super::linear::{Dialect, Linear, message};
use crate::fields::{self, Fields};

/// Returns a reader of OpenAI chats.
pub(crate) fn reader(file: String, keeps_source: bool, now: DateTime<Utc>) -> Linear<OpenAi> {
    Linear::new(OpenAi, file, keeps_source, now)
}

/// The OpenAI dialect.
pub(crate) struct OpenAi;

impl Dialect for OpenAi {
    const FORMAT: Format = Format::OpenAi;

    fn collect_names(&self, fields: &Fields, names: &mut ToolNames) {
        for call in calls(fields) {
            let function = call.object("function").or_else(|| call.object("custom"));
            let name = function.and_then(|function| function.text("name"));
            if let (Some(id), Some(name)) = (call.text("id"), name) {
                names.insert(id, name);
            }
        }
    }

    fn message(&self, fields: Fields, names: &ToolNames) -> Message {
        let role = fields.text("role").unwrap_or_default();
        let known = [
            "id",
            "role",
            "content",
            "refusal",
            "tool_calls",
            "function_call",
            "tool_call_id",
            "created_at",
            "createdAt",
            "reasoning_content",
        ];
        let rest = fields.clone().without(&known);
        if role == "tool" || role == "function" {
            // Calls of the older kind have no id; they are paired by the name of the function.
            let name = fields.text("name");
            let id = fields.text("tool_call_id").or_else(|| name.clone()).unwrap_or_default();
            let name = names.get(&id).cloned().or(name).unwrap_or_else(|| "unknown".to_owned());
            let part = blocks::result(name, id, fields.get("content"), false);
            return message(Role::Tool, vec![part], rest.without(&["name"]));
        }
        let mut parts = Vec::new();
        parts.extend(fields.text("reasoning_content").map(Part::reasoning));
        parts.extend(blocks::parts(fields.get("content"), names));
        parts.extend(blocks::refused(fields.text("refusal"), Extra::new()));
        for call in calls(&fields) {
            let function = call.object("function").or_else(|| call.object("custom"));
            parts.extend(function.and_then(|function| call_part(&call, &function)));
        }
        if let Some(function) = fields.object("function_call") {
            parts.extend(call_part(&Fields::default(), &function));
        }
        message(role, parts, rest)
    }

    fn parent(&self, _: &Fields) -> Option<Option<MessageId>> {
        None
    }
}

fn calls(fields: &Fields) -> Vec<Fields> {
    fields.list("tool_calls").unwrap_or_default().iter().filter_map(Fields::of).collect()
}

fn call_part(call: &Fields, function: &Fields) -> Option<Part> {
    let name = function.text("name")?;
    let id = call.text("id").unwrap_or_else(|| name.clone());
    let given = function.get("arguments").or_else(|| function.get("input"));
    Some(Part::tool_call(name, id, given.map_or_else(empty, arguments)))
}

/// Returns the arguments, which are JSON in a string; a string that is not JSON stays a string.
fn arguments(given: &Json) -> Json {
    fields::text(given).and_then(|text| Json::parse(&text).ok()).unwrap_or_else(|| given.clone())
}

fn empty() -> Json {
    Json::from(serde_json::Value::Object(serde_json::Map::new()))
}
