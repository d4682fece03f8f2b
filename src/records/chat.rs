//! Messages of chat APIs: `content`, calls of tools beside it, and results as messages of their own.

use super::blocks::{self, ToolNames};
use super::fields::{self, Fields};
use crate::message::{Extra, Json, Part, Role};

/// The fields that become parts.
pub const FIELDS: [&str; 6] =
    ["content", "refusal", "tool_calls", "function_call", "tool_call_id", "reasoning_content"];

/// Records the names of the tools that a message calls.
pub fn collect_names(fields: &Fields, names: &mut ToolNames) {
    for call in fields.objects("tool_calls") {
        let name = function(&call).and_then(|function| function.text("name"));
        if let (Some(id), Some(name)) = (call.id("id"), name) {
            names.insert(id, name);
        }
    }
}

/// Returns the role and the parts of a message, and its other fields.
pub fn message(role: Role, fields: Fields, names: &ToolNames) -> (Role, Vec<Part>, Fields) {
    if matches!(role.as_str(), "tool" | "function") {
        // Calls of the older kind have no id; they are paired by the name of the function.
        let name = fields.text("name");
        let id = fields.id("tool_call_id").or_else(|| name.clone()).unwrap_or_default();
        let name = names.get(&id).cloned().or(name).unwrap_or_else(|| "unknown".to_owned());
        let part = blocks::result(name, id, fields.get("content"), false);
        return (Role::Tool, vec![part], fields.without(&FIELDS).without(&["name"]));
    }
    let mut parts = Vec::new();
    parts.extend(fields.text("reasoning_content").map(Part::reasoning));
    parts.extend(blocks::parts(fields.get("content"), names));
    // An answer that was spoken has no other text.
    let spoken = fields.object("audio").filter(|_| parts.is_empty());
    parts.extend(spoken.and_then(|audio| audio.text("transcript")).map(Part::text));
    parts.extend(blocks::refused(fields.text("refusal"), Extra::new()));
    for call in fields.objects("tool_calls") {
        parts.extend(function(&call).and_then(|function| call_part(&call, &function)));
    }
    if let Some(function) = fields.object("function_call") {
        parts.extend(call_part(&Fields::default(), &function));
    }
    (role, parts, fields.without(&FIELDS))
}

fn function(call: &Fields) -> Option<Fields> {
    call.object("function").or_else(|| call.object("custom"))
}

fn call_part(call: &Fields, function: &Fields) -> Option<Part> {
    let name = function.text("name")?;
    let id = call.id("id").unwrap_or_else(|| name.clone());
    let given = function.get("arguments").or_else(|| function.get("input"));
    Some(Part::tool_call(name, id, given.map_or_else(empty, arguments)))
}

/// Returns the arguments, which are JSON in a string; a string that is not JSON stays a string.
pub fn arguments(given: &Json) -> Json {
    fields::text(given).and_then(|text| Json::parse(&text).ok()).unwrap_or_else(|| given.clone())
}

fn empty() -> Json {
    Json::from(serde_json::Value::Object(serde_json::Map::new()))
}
