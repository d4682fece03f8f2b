//! Input items, in the order of the answer.
//!
//! The provider knows its items by their ids. It accepts reasoning only right before the item that it led to, with that
//! item's id; and an item with an id only after its reasoning, if there was any. So the items of a turn are gathered
//! first, and their ids are decided when it ends.

use std::collections::HashSet;

use serde_json::{Value, json};
use talktree::{Reasoning, Text};

use super::file_part;
use crate::OPENING;
use crate::call_id::CallIds;
use crate::content::text_or_parts;
use crate::input::{arguments_text, plain, tool_name};
use crate::openai_chat::is_custom;
use crate::origin::{field, value};
use crate::turns::{Call, Model, Piece};

/// The longest id of a call or an item that the API accepts.
const MAX_ID: usize = 64;

/// The items of built-in tools, which the provider runs, with the fields that they need besides `id`.
const BUILT_IN: [(&str, &[&str]); 6] = [
    ("code_interpreter_call", &["status", "container_id"]),
    ("file_search_call", &["status", "queries"]),
    ("image_generation_call", &["status", "result"]),
    ("mcp_call", &["arguments", "name", "server_label"]),
    ("mcp_list_tools", &["server_label", "tools"]),
    ("web_search_call", &["status", "action"]),
];

pub(super) struct Items {
    written: Vec<Value>,
    ids: CallIds,
    /// The ids of the items written so far.
    seen: HashSet<String>,
}

/// An item of a turn of the model.
enum Item {
    Reasoning(Value),
    /// Texts, with the fields that they have in common.
    Message(Value, Vec<Value>),
    /// A call, or an item of a built-in tool.
    Other(Value),
    /// Something that cannot be sent.
    Lost,
}

impl Item {
    /// Returns whether reasoning may come before it.
    fn has_id(&self) -> bool {
        match self {
            Self::Other(item) if item["type"] == "compaction" => false,
            Self::Reasoning(item) | Self::Message(item, _) | Self::Other(item) => {
                item["id"].is_string()
            }
            Self::Lost => false,
        }
    }
}

impl Items {
    pub(super) fn new() -> Self {
        Self { written: Vec::new(), ids: CallIds::new(MAX_ID), seen: HashSet::new() }
    }

    pub(super) fn add_message(&mut self, role: &str, content: Value) {
        self.written.push(json!({"type": "message", "role": role, "content": content}));
    }

    pub(super) fn add_model(&mut self, model: &Model) {
        let (mut items, mut outputs) = (Vec::new(), Vec::new());
        for piece in &model.pieces {
            match piece {
                Piece::Text(parts) => {
                    for (at, text) in parts.iter().enumerate() {
                        self.add_text(text, at > 0, &mut items);
                    }
                }
                Piece::Reasoning(reasoning) => self.add_reasoning(reasoning, &mut items),
                Piece::Redacted(_) => {}
                Piece::Native(json) => items.push(self.built_in(json.value())),
                Piece::Call(call) => {
                    let (item, output) = self.call(call);
                    items.push(Item::Other(item));
                    outputs.push(output);
                }
            }
        }
        self.end_turn(items);
        self.written.append(&mut outputs);
    }

    /// Writes the items of a turn. Reasoning is left out unless its item follows; an item whose reasoning is missing loses its
    /// id.
    fn end_turn(&mut self, items: Vec<Item>) {
        let mut sent = vec![true; items.len()];
        let mut follows = false;
        for (at, item) in items.iter().enumerate().rev() {
            sent[at] = follows || !matches!(item, Item::Reasoning(_));
            follows = sent[at] && item.has_id();
        }
        let mut lost = false;
        for (mut item, is_sent) in items.into_iter().zip(sent) {
            if let Item::Reasoning(_) | Item::Lost = item {
                lost = !is_sent || matches!(item, Item::Lost);
            }
            if lost
                && let Item::Message(item, _) | Item::Other(item) = &mut item
                && item["type"] != "mcp_list_tools"
                && let Some(fields) = item.as_object_mut()
            {
                fields.remove("id");
            }
            match item {
                Item::Reasoning(item) if is_sent => self.written.push(item),
                Item::Message(item, texts) => self.written.push(message(item, texts)),
                Item::Other(item) if item["id"].is_string() || !is_built_in(&item) => {
                    self.written.push(item);
                }
                Item::Reasoning(_) | Item::Other(_) | Item::Lost => {}
            }
        }
    }

    /// Adds a text to the message before it, if both are of one item. Without an id it begins a line, unless it goes on with the
    /// text before it.
    fn add_text(&mut self, text: &Text, goes_on: bool, items: &mut Vec<Item>) {
        let of_ui = |name| ("openai", name);
        let id = field(&text.extra, "id", of_ui("itemId")).filter(|id| fits(id, "msg"));
        let begins_line =
            id.is_none() && !goes_on && matches!(items.last(), Some(Item::Message(..)));
        let written = format!("{}{}", if begins_line { "\n" } else { "" }, text.text);
        let piece = if text.extra.contains_key("refusal") {
            json!({"type": "refusal", "refusal": written})
        } else {
            let given = value(&text.extra, "annotations", of_ui("annotations"));
            let annotations = if given.is_array() { given } else { json!([]) };
            json!({"type": "output_text", "text": written, "annotations": annotations})
        };
        if let Some(Item::Message(item, texts)) = items.last_mut()
            && item["id"].as_str() == id.as_deref()
        {
            return texts.push(piece);
        }
        let mut item = json!({"type": "message", "role": "assistant"});
        if let Some(id) = id
            && self.seen.insert(id.clone())
        {
            item["id"] = id.into();
            item["status"] =
                status(field(&text.extra, "status", of_ui("status"))).unwrap_or("completed").into();
        }
        let phase = field(&text.extra, "phase", of_ui("phase"));
        if let Some(phase) =
            phase.filter(|phase| matches!(phase.as_str(), "commentary" | "final_answer"))
        {
            item["phase"] = phase.into();
        }
        items.push(Item::Message(item, vec![piece]));
    }

    fn add_reasoning(&mut self, reasoning: &Reasoning, items: &mut Vec<Item>) {
        let extra = &reasoning.extra;
        let id = field(extra, "id", ("openai", "itemId")).filter(|id| fits(id, "rs"));
        let Some(id) = id else { return items.push(Item::Lost) };
        let summary = summary(reasoning);
        // An item with several summaries may be stored as several parts.
        if let Some(Item::Reasoning(last)) = items.last_mut()
            && last["id"] == id.as_str()
        {
            if let (Some(before), Value::Array(mut more)) =
                (last["summary"].as_array_mut(), summary)
            {
                before.append(&mut more);
            }
            return;
        }
        if !self.seen.insert(id.clone()) {
            return items.push(Item::Lost);
        }
        let mut item = json!({"type": "reasoning", "id": id, "summary": summary});
        if let Some(content) = extra.get("content").map(|json| json.value())
            && content.is_array()
        {
            item["content"] = content;
        }
        let encrypted = field(extra, "encrypted_content", ("openai", "reasoningEncryptedContent"));
        if let Some(encrypted) = encrypted {
            item["encrypted_content"] = encrypted.into();
        }
        if let Some(status) = status(field(extra, "status", ("openai", "status"))) {
            item["status"] = status.into();
        }
        items.push(Item::Reasoning(item));
    }

    /// Returns the call and its output.
    fn call(&mut self, call: &Call) -> (Value, Value) {
        let id = self.ids.give(&call.id);
        let name = tool_name(&call.name);
        let (kind, prefix) = match is_custom(call) {
            true => ("custom_tool_call", "ctc"),
            false => ("function_call", "fc"),
        };
        let mut item = json!({"type": kind, "call_id": id, "name": name});
        match is_custom(call) {
            true => item["input"] = plain(&call.input).into(),
            false => item["arguments"] = arguments_text(&call.input).into(),
        }
        let own = field(&call.extra, "id", ("openai", "itemId")).filter(|id| fits(id, prefix));
        if let Some(own) = own
            && self.seen.insert(own.clone())
        {
            item["id"] = own.into();
        }
        if let Some(status) = status(field(&call.extra, "status", ("openai", "status")))
            && !is_custom(call)
        {
            item["status"] = status.into();
        }
        if let Some(namespace) = field(&call.extra, "namespace", ("openai", "namespace")) {
            item["namespace"] = namespace.into();
        }
        let output = text_or_parts(&call.outcome().content, "input_text", file_part);
        (item, json!({"type": format!("{kind}_output"), "call_id": id, "output": output}))
    }

    /// Returns an item of a built-in tool, or [`Item::Lost`] if a field is missing.
    fn built_in(&mut self, mut item: Value) -> Item {
        let kind = item["type"].as_str().unwrap_or_default();
        if kind == "compaction" && item["encrypted_content"].is_string() {
            return Item::Other(
                json!({"type": kind, "encrypted_content": item["encrypted_content"]}),
            );
        }
        let needs = BUILT_IN.iter().find(|(name, _)| *name == kind).map(|(_, needs)| *needs);
        let is_whole = needs.is_some_and(|needs| needs.iter().all(|field| !item[*field].is_null()));
        let id = item["id"].as_str().unwrap_or_default().to_owned();
        if !is_whole || !fits(&id, "") || !self.seen.insert(id) {
            return Item::Lost;
        }
        if let Some(fields) = item.as_object_mut() {
            fields.retain(|field, value| {
                !value.is_null() || matches!(field.as_str(), "code" | "outputs")
            });
        }
        Item::Other(item)
    }

    pub(super) fn finish(mut self) -> Value {
        if self.written.is_empty() {
            self.add_message("user", OPENING.into());
        }
        Value::Array(self.written)
    }
}

fn is_built_in(item: &Value) -> bool {
    BUILT_IN.iter().any(|(name, _)| item["type"] == *name)
}

/// Returns the message as the provider wrote it, or without an id as a program writes it.
fn message(mut item: Value, texts: Vec<Value>) -> Value {
    if item["id"].is_string() {
        item["content"] = texts.into();
        return item;
    }
    let text = |piece: &Value| {
        let text = piece["text"].as_str().or(piece["refusal"].as_str());
        text.unwrap_or_default().to_owned()
    };
    item["content"] = texts.iter().map(text).collect::<String>().into();
    if let Some(fields) = item.as_object_mut() {
        fields.remove("status");
    }
    item
}

/// Returns the summaries as they came, or the text if it was changed since. Reasoning that the model shows in full has no
/// summary.
fn summary(reasoning: &Reasoning) -> Value {
    let list =
        |field: &str| reasoning.extra.get(field).map(|json| json.value()).unwrap_or_default();
    let joined = |list: &Value| {
        let texts =
            list.as_array().into_iter().flatten().filter_map(|piece| piece["text"].as_str());
        texts.collect::<Vec<_>>().join("\n\n")
    };
    let given = list("summary");
    if given.is_array() && joined(&given) == reasoning.text {
        return given;
    }
    let is_shown = list("content").is_array() && joined(&list("content")) == reasoning.text;
    if reasoning.text.is_empty() || is_shown {
        return json!([]);
    }
    json!([{"type": "summary_text", "text": reasoning.text}])
}

/// Returns whether the API accepts an id of this prefix.
fn fits(id: &str, prefix: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    id.starts_with(prefix) && !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(is_letter)
}

fn status(given: Option<String>) -> Option<&'static str> {
    let given = given?;
    ["in_progress", "completed", "incomplete"].into_iter().find(|status| *status == given)
}
