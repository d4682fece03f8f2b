//! The OpenAI chat completions API.

use serde_json::{Value, json};

use super::OPENING;
use super::answer;
use super::call_id::CallIds;
use super::content::{
    Content, Taken, arguments_of, arguments_text, joined, mention, plain, taken, tool_name,
};
use super::summary::shown;
use super::turns::{Model, Turn, Turns};
use crate::message::{File, Json, Message, Part};

/// The longest call id that every version of the API accepts.
const MAX_ID: usize = 40;

/// Returns the messages in the format of the OpenAI chat completions API: a list.
///
/// The results of calls are messages of the role `tool` right after the message with the calls. Call
/// ids that are too long or used twice are replaced, the same way every time. Reasoning and hidden
/// messages are left out. Images are sent, and PDFs that are data; other files are named in
/// brackets.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Part, Role};
/// use talktree::model::to_openai_chat;
///
/// let call = Part::tool_call("add", "c1", json!({"a": 2, "b": 2}));
/// let result = Part::tool_result("add", "c1", json!(4));
/// let messages = [
///     Message::user("2 + 2?"),
///     Message::new(Role::Assistant, vec![call]),
///     Message::new(Role::Tool, vec![result]),
/// ];
/// let function = json!({"name": "add", "arguments": r#"{"a":2,"b":2}"#});
/// assert_eq!(
///     to_openai_chat(&messages),
///     json!([
///         {"role": "user", "content": "2 + 2?"},
///         {"role": "assistant", "content": null,
///          "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
///         {"role": "tool", "tool_call_id": "c1", "content": "4"},
///     ]),
/// );
/// ```
#[must_use]
pub fn to_openai_chat(messages: &[Message]) -> Value {
    let mut chat = Chat::for_model();
    let mut written = Vec::new();
    for message in messages.iter().filter(|message| !message.is_hidden) {
        written.extend(chat.take(&shown(message)));
    }
    written.extend(chat.finish());
    if written.is_empty() {
        written.push(json!({"role": "user", "content": OPENING}));
    }
    Value::Array(written)
}

/// Writes a chat, message by message.
pub(crate) struct Chat {
    turns: Turns,
    ids: CallIds,
    /// Writes the input of a call as text.
    spell: fn(&Json) -> String,
}

impl Chat {
    /// For a request to a model: inputs are written as objects, which the templates of many servers
    /// require.
    fn for_model() -> Self {
        Self { turns: Turns::default(), ids: CallIds::new(MAX_ID), spell: arguments_text }
    }

    /// For a file: inputs are written as the model wrote them.
    pub(crate) fn to_keep() -> Self {
        Self { spell: plain, ..Self::for_model() }
    }

    /// Takes a message and returns those that can be written now.
    pub(crate) fn take(&mut self, message: &Message) -> Vec<Value> {
        self.turns.take(message);
        let turns = self.turns.ended();
        self.write(turns)
    }

    /// Returns the messages that are still held back.
    pub(crate) fn finish(mut self) -> Vec<Value> {
        let turns = std::mem::take(&mut self.turns).finish();
        self.write(turns)
    }

    fn write(&mut self, turns: Vec<Turn>) -> Vec<Value> {
        let mut written = Vec::new();
        for turn in turns {
            match turn {
                Turn::System { is_developer, text } => {
                    let role = if is_developer { "developer" } else { "system" };
                    written.push(json!({"role": role, "content": text}));
                }
                Turn::User(content) => {
                    written.push(json!({"role": "user", "content": user_content(&content)}));
                }
                Turn::Model(model) => self.write_model(&model, &mut written),
            }
        }
        written
    }

    fn write_model(&mut self, model: &Model, written: &mut Vec<Value>) {
        let text = model.text();
        if text.is_empty() && model.calls.is_empty() {
            return;
        }
        let content = if text.is_empty() { Value::Null } else { text.into() };
        let mut message = json!({"role": "assistant", "content": content});
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for call in &model.calls {
            let id = self.ids.give(&call.id);
            let arguments = (self.spell)(&call.input);
            let function = json!({"name": tool_name(&call.name), "arguments": arguments});
            calls.push(json!({"id": id, "type": "function", "function": function}));
            let content = joined(&call.outcome().content);
            results.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        written.push(message);
        written.append(&mut results);
    }
}

/// Returns the content as one text, or as a list of parts if the API accepts one of the files.
fn user_content(content: &[Content]) -> Value {
    let parts: Vec<_> = content.iter().map(content_part).collect();
    let is_text = parts.iter().all(|part| part["type"] == "text");
    if is_text { joined(content).into() } else { parts.into() }
}

fn content_part(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::File(file) => file_part(file),
    }
}

fn file_part(file: &File) -> Value {
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    match taken(file) {
        Some(Taken::ImageUrl(url)) => image(url),
        Some(Taken::ImageData { media, data }) => image(&format!("data:{media};base64,{data}")),
        Some(Taken::PdfData(data)) => {
            let url = format!("data:application/pdf;base64,{data}");
            let name = file.filename.as_deref().unwrap_or("file.pdf");
            json!({"type": "file", "file": {"filename": name, "file_data": url}})
        }
        Some(Taken::PdfUrl(_)) | None => json!({"type": "text", "text": mention(file)}),
    }
}

/// Returns the message of a response of the OpenAI chat completions API: its first choice.
///
/// Text, calls and the reasoning that some servers send become parts; a refusal becomes text. The
/// metadata holds `provider` and those of `id`, `model`, `finish_reason` and `usage` that the
/// response has. A response without choices gives a message without parts.
///
/// ```
/// use serde_json::json;
/// use talktree::model::from_openai_chat;
///
/// let message = from_openai_chat(&json!({
///     "id": "chatcmpl-1", "model": "small", "usage": {"total_tokens": 9},
///     "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "4"}}],
/// }));
/// assert_eq!(message.text(), "4");
/// assert_eq!(message.metadata.unwrap().value()["finish_reason"], "stop");
/// ```
#[must_use]
pub fn from_openai_chat(response: &Value) -> Message {
    let choice = &response["choices"][0];
    let said = &choice["message"];
    let mut parts = Vec::new();
    let reasoning = ["reasoning_content", "reasoning"].map(|field| said[field].as_str());
    let reasoning = reasoning.into_iter().flatten().find(|text| !text.is_empty());
    parts.extend(reasoning.map(Part::reasoning));
    match &said["content"] {
        Value::Array(pieces) => {
            parts.extend(pieces.iter().filter_map(|piece| match piece["type"].as_str() {
                Some("text") => answer::text(&piece["text"]),
                Some("refusal") => answer::text(&piece["refusal"]),
                _ => answer::other(piece),
            }));
        }
        content => parts.extend(answer::text(content)),
    }
    parts.extend(answer::text(&said["refusal"]));
    let calls = said["tool_calls"].as_array().into_iter().flatten();
    parts.extend(calls.filter_map(call_part));
    let fields = [
        ("id", response["id"].clone()),
        ("model", response["model"].clone()),
        ("finish_reason", choice["finish_reason"].clone()),
        ("usage", response["usage"].clone()),
    ];
    answer::message("openai", parts, fields)
}

fn call_part(call: &Value) -> Option<Part> {
    let id = call["id"].as_str().unwrap_or_default();
    let function = if call["custom"].is_object() { &call["custom"] } else { &call["function"] };
    let given = if function["arguments"].is_null() { "input" } else { "arguments" };
    let input = match &function[given] {
        Value::String(text) => arguments_of(text),
        // Some servers send an object instead of its text.
        Value::Null => arguments_of(""),
        other => other.clone().into(),
    };
    Some(Part::tool_call(function["name"].as_str()?, id, input))
}
