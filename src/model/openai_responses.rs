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

/// The longest id of a call that the API takes.
const MAX_ID: usize = 64;

/// Returns the messages as the OpenAI responses API takes them: a list of input items.
///
/// Calls are `function_call` items, and their results `function_call_output` items right behind.
/// Ids of calls that are too long or doubled are replaced, the same way every time. Reasoning is
/// left out unless it has the provider's id and something followed from it; hidden are left out.
/// Images and PDFs go as they are; other files are named in brackets.
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
    /// The ids of reasoning that are in use.
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
        let Some(id) = told(reasoning, "id", "itemId").filter(|id| id.starts_with("rs")) else {
            return;
        };
        let summary = match reasoning.text.is_empty() {
            true => Vec::new(),
            false => vec![json!({"type": "summary_text", "text": reasoning.text})],
        };
        // One item of several summaries may be stored as several parts.
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
        let encrypted = told(reasoning, "encrypted_content", "reasoningEncryptedContent");
        if let Some(encrypted) = encrypted {
            item["encrypted_content"] = encrypted.into();
        }
        self.written.push(item);
    }

    /// Leaves out reasoning that nothing followed from, which the API refuses.
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

/// Returns what the provider told with reasoning: under its own name, or as the AI SDK keeps it.
fn told(reasoning: &Reasoning, own: &str, of_ui: &str) -> Option<String> {
    let value = match reasoning.extra.get(own) {
        Some(json) => json.value(),
        None => {
            let metadata = reasoning.extra.get("providerMetadata")?;
            metadata.value()["openai"][of_ui].clone()
        }
    };
    value.as_str().map(str::to_owned)
}

/// Returns the content as one text, or as a list of parts if there is a file that the API takes.
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
/// Its text, reasoning (the summaries, with the id that lets it be given back) and calls become
/// parts; a refusal is text, and items of other kinds are kept as they are. The metadata is
/// `{"provider", "id", "model", "status", "usage"}`, of what is there. A response without output
/// gives a message without parts.
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
    let told = ["id", "model", "status", "usage"].map(|field| (field, response[field].clone()));
    answer::message("openai", parts, told)
}
