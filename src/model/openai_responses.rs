//! The OpenAI responses API.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::OPENING;
use super::answer;
use super::call_id::CallIds;
use super::content::{
    Content, Outcome, Taken, arguments_of, arguments_text, joined, mention, taken, tool_name,
};
use super::turns::{Model, Said, Turn, Turns};
use crate::message::{File, Message, Part, Reasoning};

/// The longest call id that the API accepts.
const MAX_ID: usize = 64;

/// Returns the messages in the format of the OpenAI responses API: a list of input items.
///
/// Calls are `function_call` items, and their results `function_call_output` items right after them.
/// Call ids that are too long or used twice are replaced, the same way every time. Hidden messages
/// are left out, and so is reasoning, unless it has the provider's id and comes before a text or a
/// call of the model. Images and PDFs are sent; other files are named in brackets.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Part, Role};
/// use talktree::model::to_openai_responses;
///
/// let mut call = Part::tool_call("add", "c1", json!({"a": 2, "b": 2}));
/// if let Part::Tool(tool) = &mut call {
///     tool.output = Some(json!(4).into());
/// }
/// let messages = [Message::user("2 + 2?"), Message::new(Role::Assistant, vec![call])];
/// assert_eq!(
///     to_openai_responses(&messages),
///     json!([
///         {"type": "message", "role": "user", "content": "2 + 2?"},
///         {"type": "function_call", "call_id": "c1", "name": "add",
///          "arguments": r#"{"a":2,"b":2}"#},
///         {"type": "function_call_output", "call_id": "c1", "output": "4"},
///     ]),
/// );
/// ```
#[must_use]
pub fn to_openai_responses(messages: &[Message]) -> Value {
    let mut items = Items { written: Vec::new(), ids: CallIds::new(MAX_ID), seen: BTreeSet::new() };
    for turn in Turns::of(messages) {
        match turn {
            Turn::System { is_developer, text } => {
                let role = if is_developer { "developer" } else { "system" };
                items.say(role, text.into());
            }
            Turn::User(content) => items.say("user", input_content(&content)),
            Turn::Model(model) => items.add_model(&model),
        }
    }
    items.finish()
}

struct Items {
    written: Vec<Value>,
    ids: CallIds,
    /// The ids of the reasoning items written so far.
    seen: BTreeSet<String>,
}

impl Items {
    fn say(&mut self, role: &str, content: Value) {
        self.written.push(json!({"type": "message", "role": role, "content": content}));
    }

    fn add_model(&mut self, model: &Model) {
        let mut texts: Vec<&str> = Vec::new();
        for said in &model.said {
            match said {
                Said::Text(text) => texts.push(text),
                Said::Reasoning(reasoning) => {
                    self.end_text(&mut texts);
                    self.add_reasoning(reasoning);
                }
                Said::Redacted(_) => {}
            }
        }
        self.end_text(&mut texts);
        let mut outputs = Vec::new();
        for call in &model.calls {
            let id = self.ids.give(&call.id);
            let arguments = arguments_text(&call.input);
            self.written.push(json!({
                "type": "function_call", "call_id": id, "name": tool_name(&call.name),
                "arguments": arguments,
            }));
            let output = output(&call.outcome());
            outputs.push(json!({"type": "function_call_output", "call_id": id, "output": output}));
        }
        self.written.append(&mut outputs);
    }

    fn end_text(&mut self, texts: &mut Vec<&str>) {
        if !texts.is_empty() {
            self.say("assistant", texts.join("\n").into());
            texts.clear();
        }
    }

    fn add_reasoning(&mut self, reasoning: &Reasoning) {
        let Some(id) = field(reasoning, "id", "itemId").filter(|id| id.starts_with("rs")) else {
            return;
        };
        let summary = match reasoning.text.is_empty() {
            true => Vec::new(),
            false => vec![json!({"type": "summary_text", "text": reasoning.text})],
        };
        // An item with several summaries may be stored as several parts.
        if let Some(last) = self.written.last_mut()
            && last["type"] == "reasoning"
            && last["id"] == id.as_str()
        {
            if let Some(before) = last["summary"].as_array_mut() {
                before.extend(summary);
            }
            return;
        }
        if !self.seen.insert(id.clone()) {
            return;
        }
        let mut item = json!({"type": "reasoning", "id": id, "summary": summary});
        let encrypted = field(reasoning, "encrypted_content", "reasoningEncryptedContent");
        if let Some(encrypted) = encrypted {
            item["encrypted_content"] = encrypted.into();
        }
        self.written.push(item);
    }

    /// Leaves out reasoning that no text or call of the model follows: the API refuses it.
    fn finish(self) -> Value {
        let mut kept: Vec<Value> = Vec::with_capacity(self.written.len());
        for item in self.written.into_iter().rev() {
            let follows = kept.last().is_some_and(|next| {
                matches!(next["type"].as_str(), Some("reasoning" | "function_call"))
                    || next["role"] == "assistant"
            });
            if follows || item["type"] != "reasoning" {
                kept.push(item);
            }
        }
        kept.reverse();
        if kept.is_empty() {
            kept.push(json!({"type": "message", "role": "user", "content": OPENING}));
        }
        Value::Array(kept)
    }
}

/// Returns a field that came with reasoning, under the provider's name or the AI SDK's.
fn field(reasoning: &Reasoning, own: &str, of_ui: &str) -> Option<String> {
    let value = match reasoning.extra.get(own) {
        Some(json) => json.value(),
        None => {
            let metadata = reasoning.extra.get("providerMetadata")?;
            metadata.value()["openai"][of_ui].clone()
        }
    };
    value.as_str().map(str::to_owned)
}

/// Returns the content as one text, or as a list of parts if the API accepts one of the files.
fn input_content(content: &[Content]) -> Value {
    let parts: Vec<_> = content.iter().map(input_part).collect();
    let is_text = parts.iter().all(|part| part["type"] == "input_text");
    if is_text { joined(content).into() } else { parts.into() }
}

fn input_part(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({"type": "input_text", "text": text}),
        Content::File(file) => file_part(file),
    }
}

fn file_part(file: &File) -> Value {
    let image = |url: &str| json!({"type": "input_image", "image_url": url, "detail": "auto"});
    match taken(file) {
        Some(Taken::ImageUrl(url)) => image(url),
        Some(Taken::ImageData { media, data }) => image(&format!("data:{media};base64,{data}")),
        Some(Taken::PdfUrl(url)) => json!({"type": "input_file", "file_url": url}),
        Some(Taken::PdfData(data)) => {
            let url = format!("data:application/pdf;base64,{data}");
            let name = file.filename.as_deref().unwrap_or("file.pdf");
            json!({"type": "input_file", "filename": name, "file_data": url})
        }
        None => json!({"type": "input_text", "text": mention(file)}),
    }
}

fn output(outcome: &Outcome) -> Value {
    input_content(&outcome.content)
}

/// Returns the message of a response of the OpenAI responses API.
///
/// Text, calls and reasoning become parts; a refusal becomes text, and items of other types are kept
/// unchanged. Reasoning is stored as its summaries, with the id by which the API accepts it again.
/// The metadata holds `provider` and those of `id`, `model`, `status` and `usage` that the response
/// has. A response without output gives a message without parts.
///
/// ```
/// use serde_json::json;
/// use talktree::model::from_openai_responses;
///
/// let message = from_openai_responses(&json!({
///     "id": "resp_1", "model": "small", "status": "completed", "usage": {"total_tokens": 9},
///     "output": [
///         {"type": "reasoning", "id": "rs_1", "summary": []},
///         {"type": "message", "role": "assistant", "id": "msg_1",
///          "content": [{"type": "output_text", "text": "4", "annotations": []}]},
///     ],
/// }));
/// assert_eq!(message.text(), "4");
/// assert_eq!(message.parts[0].kind(), "reasoning");
/// ```
#[must_use]
pub fn from_openai_responses(response: &Value) -> Message {
    let mut parts = Vec::new();
    for item in response["output"].as_array().into_iter().flatten() {
        match item["type"].as_str() {
            Some("message") => {
                let pieces = item["content"].as_array().into_iter().flatten();
                parts.extend(pieces.filter_map(|piece| match piece["type"].as_str() {
                    Some("output_text") => answer::text(&piece["text"]),
                    Some("refusal") => answer::text(&piece["refusal"]),
                    _ => answer::other(piece),
                }));
            }
            Some("function_call") => {
                let name = item["name"].as_str().unwrap_or_default();
                let id = item["call_id"].as_str().unwrap_or_default();
                let input = arguments_of(item["arguments"].as_str().unwrap_or_default());
                parts.push(Part::tool_call(name, id, input));
            }
            Some("reasoning") => {
                let summaries = item["summary"].as_array().into_iter().flatten();
                let texts = summaries.filter_map(|summary| summary["text"].as_str());
                let text = texts.collect::<Vec<_>>().join("\n\n");
                parts.push(answer::reasoning(&text, item, &["id", "encrypted_content"]));
            }
            _ => parts.extend(answer::other(item)),
        }
    }
    let fields = ["id", "model", "status", "usage"].map(|field| (field, response[field].clone()));
    answer::message("openai", parts, fields)
}
