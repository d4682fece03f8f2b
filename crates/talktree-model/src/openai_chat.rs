//! The OpenAI chat completions API.

use std::borrow::Cow;

use serde_json::{Value, json};
use talktree::{Extra, File, Json, Message, Part, Reasoning};

use crate::OPENING;
use crate::answer;
use crate::call_id::CallIds;
use crate::content::{joined, text_or_parts};
use crate::files::{AcceptedFile, accepted, name_of};
use crate::input::{arguments_of, arguments_text, plain, tool_name};
use crate::origin::{chat_field, field};
use crate::summary::as_shown;
use crate::turns::{Call, Model, Piece, Turn, Turns};

/// The longest call id that every version of the API accepts.
const MAX_ID: usize = 40;

/// Returns the messages in the format of the OpenAI chat completions API: a list.
///
/// The results of calls are messages of the role `tool` right after the message with the calls. Call
/// ids that are too long or used twice are replaced, the same way every time. Hidden messages are left
/// out. Images are sent, PDFs that are data, and files of text as text; other files are named in
/// brackets.
///
/// A message with calls has the reasoning that led to them, in the field in which the server wrote it, by
/// default `reasoning_content`: servers of models that think between calls require it, and also the
/// `thought_signature` of a call. All other reasoning is left out, and so is that of providers with an
/// API of their own.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Part, Role};
/// use talktree_model::to_openai_chat;
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
    let mut written = Chat::new(arguments_text, true).write(Turns::of(as_shown(messages)));
    if written.is_empty() {
        written.push(json!({"role": "user", "content": OPENING}));
    }
    Value::Array(written)
}

/// Returns the messages for a file: inputs as the model wrote them, and no reasoning.
pub(crate) fn as_written(messages: &[Message]) -> Vec<Value> {
    Chat::new(plain, false).write(Turns::of(messages.iter().map(Cow::Borrowed)))
}

struct Chat {
    ids: CallIds,
    /// Writes the input of a call as text.
    spell: fn(&Json) -> String,
    /// Whether reasoning and signatures are written, which only a server needs.
    is_for_server: bool,
}

impl Chat {
    fn new(spell: fn(&Json) -> String, is_for_server: bool) -> Self {
        Self { ids: CallIds::new(MAX_ID), spell, is_for_server }
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
                    let content = text_or_parts(&content, "text", file_part);
                    written.push(json!({"role": "user", "content": content}));
                }
                Turn::Model(model) => self.write_model(&model, &mut written),
            }
        }
        written
    }

    fn write_model(&mut self, model: &Model, written: &mut Vec<Value>) {
        let text = model.text();
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for call in model.calls() {
            let id = self.ids.give(&call.id);
            let content = joined(&call.outcome().content);
            results.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
            calls.push(self.call(id, call));
        }
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let content = if text.is_empty() { Value::Null } else { text.into() };
        let mut message = json!({"role": "assistant", "content": content});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
            if self.is_for_server {
                add_reasoning(model, &mut message);
            }
        }
        written.push(message);
        written.append(&mut results);
    }

    fn call(&self, id: String, call: &Call) -> Value {
        let name = tool_name(&call.name);
        let mut written = if is_custom(call) {
            let custom = json!({"name": name, "input": plain(&call.input)});
            json!({"id": id, "type": "custom", "custom": custom})
        } else {
            let function = json!({"name": name, "arguments": (self.spell)(&call.input)});
            json!({"id": id, "type": "function", "function": function})
        };
        if self.is_for_server {
            if let Some(extra) = call.extra.get("extra_content").map(Json::value)
                && extra.is_object()
            {
                written["extra_content"] = extra;
            } else if let Some(signature) =
                field(&call.extra, "thoughtSignature", ("google", "thoughtSignature"))
            {
                written["extra_content"] = json!({"google": {"thought_signature": signature}});
            }
        }
        written
    }
}

/// Adds the reasoning that came without a signature, in the fields in which it came.
fn add_reasoning(model: &Model, message: &mut Value) {
    for piece in &model.pieces {
        let Piece::Reasoning(reasoning) = piece else { continue };
        let Some(field) = chat_field(reasoning) else { continue };
        message[field] = match message[field].as_str() {
            Some(before) => format!("{before}\n{}", reasoning.text).into(),
            None => reasoning.text.as_str().into(),
        };
        if let Some(details) = reasoning.extra.get("reasoning_details").map(Json::value) {
            message["reasoning_details"] = details;
        }
    }
}

/// Returns whether the tool takes a text and not an object.
pub(super) fn is_custom(call: &Call) -> bool {
    call.extra.get("custom").is_some_and(|json| json.as_str() == "true")
}

fn file_part(file: &File) -> Option<Value> {
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    Some(match accepted(file)? {
        AcceptedFile::ImageUrl(url) => image(url),
        AcceptedFile::ImageData { media, data } => image(&format!("data:{media};base64,{data}")),
        AcceptedFile::PdfData(data) => {
            let url = format!("data:application/pdf;base64,{data}");
            let name = name_of(file).unwrap_or("file.pdf");
            json!({"type": "file", "file": {"filename": name, "file_data": url}})
        }
        AcceptedFile::PdfUrl(_) => return None,
    })
}

/// Returns the message of a response of the OpenAI chat completions API: its first choice.
///
/// Text, calls and the reasoning that some servers send become parts; a refusal becomes text, and so does
/// the transcript of an audio answer, without the sound. The
/// metadata holds `provider` and those of `id`, `model`, `finish_reason` and `usage` that the
/// response has. A response without choices gives a message without parts.
///
/// ```
/// use serde_json::json;
/// use talktree_model::from_openai_chat;
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
    let message = &choice["message"];
    let mut parts = Vec::new();
    parts.extend(reasoning(message));
    match &message["content"] {
        Value::Array(pieces) => {
            parts.extend(pieces.iter().filter_map(|piece| match piece["type"].as_str() {
                Some("text") => answer::text(&piece["text"]),
                Some("refusal") => answer::refusal(&piece["refusal"]),
                _ => answer::other(piece),
            }));
        }
        content => parts.extend(answer::text(content)),
    }
    parts.extend(answer::refusal(&message["refusal"]));
    let audio = Extra::from([("audio".to_owned(), json!({"id": message["audio"]["id"]}).into())]);
    parts.extend(answer::text_with(&message["audio"]["transcript"], audio));
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    parts.extend(calls.filter_map(call_part));
    let fields = [
        ("id", response["id"].clone()),
        ("model", response["model"].clone()),
        ("finish_reason", choice["finish_reason"].clone()),
        ("usage", response["usage"].clone()),
    ];
    answer::message("openai", parts, fields)
}

/// Returns the reasoning, with the field in which the server wrote it if it is not the usual one.
fn reasoning(message: &Value) -> Option<Part> {
    let (field, text) = ["reasoning_content", "reasoning"].into_iter().find_map(|field| {
        message[field].as_str().filter(|text| !text.is_empty()).map(|text| (field, text))
    })?;
    let mut extra = answer::fields(message, &["reasoning_details"]);
    if field != "reasoning_content" {
        extra.insert("field".to_owned(), Value::from(field).into());
    }
    Some(Part::Reasoning(Reasoning { text: text.to_owned(), extra }))
}

fn call_part(call: &Value) -> Option<Part> {
    let id = call["id"].as_str().unwrap_or_default();
    let custom = &call["custom"];
    let function = if custom.is_object() { custom } else { &call["function"] };
    let given = if function["arguments"].is_null() { "input" } else { "arguments" };
    let input = match &function[given] {
        text if custom.is_object() => text.clone().into(),
        Value::String(text) => arguments_of(text),
        // Some servers send an object instead of its text.
        Value::Null => arguments_of(""),
        other => other.clone().into(),
    };
    let mut extra = answer::fields(call, &["extra_content"]);
    if custom.is_object() {
        answer::mark_custom(&mut extra);
    }
    Some(answer::call(function["name"].as_str()?, id, input, extra))
}
