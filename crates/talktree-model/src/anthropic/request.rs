//! A request, message by message, and the order in which the provider accepts its blocks.

use std::collections::HashSet;

use serde_json::{Value, json};
use talktree::{File, Text};

use super::citations::citations;
use super::server_tools;
use crate::OPENING;
use crate::call_id::CallIds;
use crate::content::{Content, Outcome};
use crate::files::{AcceptedFile, accepted};
use crate::input::{arguments, tool_name};
use crate::origin::{signature, value};
use crate::turns::{Call, Model, Piece};

/// The longest id of a call. The provider publishes a pattern for ids and no length.
const MAX_ID: usize = 64;

/// The blocks of one message.
pub(super) type Blocks = Vec<Value>;

pub(super) struct Request {
    system: Vec<Value>,
    messages: Vec<(&'static str, Blocks)>,
    ids: CallIds,
    /// The ids of calls of server tools.
    server_calls: HashSet<String>,
    container: Option<Value>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            system: Vec::new(),
            messages: Vec::new(),
            ids: CallIds::new(MAX_ID),
            server_calls: HashSet::new(),
            container: None,
        }
    }
}

impl Request {
    pub(super) fn add_system(&mut self, text: &str) {
        self.system.push(text_block(text));
    }

    pub(super) fn add_user(&mut self, content: &[Content]) {
        self.add("user", content.iter().map(block).collect());
    }

    pub(super) fn add_model(&mut self, model: &Model) {
        let (mut blocks, mut results) = (Vec::new(), Vec::new());
        for piece in &model.pieces {
            match piece {
                Piece::Text(parts) => blocks.extend(parts.iter().map(cited)),
                Piece::Reasoning(reasoning) => blocks.extend(signature(reasoning).map(|signature| {
                    json!({"type": "thinking", "thinking": reasoning.text, "signature": signature})
                })),
                Piece::Redacted(data) => {
                    blocks.push(json!({"type": "redacted_thinking", "data": data}));
                }
                Piece::Native(json) => {
                    blocks.extend(server_tools::block(json.value(), &mut self.server_calls));
                }
                Piece::Call(call) => {
                    let id = self.ids.give(&call.id);
                    results.push(result_block(&id, &call.outcome()));
                    blocks.push(call_block(&id, call));
                }
            }
        }
        if model.container.is_some() {
            self.container.clone_from(&model.container);
        }
        self.add("assistant", blocks);
        self.add("user", results);
    }

    fn add(&mut self, role: &'static str, blocks: Blocks) {
        if blocks.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => self.messages.push((role, blocks)),
        }
    }

    pub(super) fn finish(mut self) -> Value {
        server_tools::pair(&mut self.messages);
        for (role, blocks) in std::mem::take(&mut self.messages) {
            let blocks = if role == "assistant" { in_order(blocks) } else { blocks };
            self.add(role, blocks);
        }
        if self.messages.first().is_none_or(|(role, _)| *role != "user") {
            self.messages.insert(0, ("user", vec![text_block(OPENING)]));
        }
        // The provider refuses white space at the end of a text that the model should continue.
        if let Some(("assistant", content)) = self.messages.last_mut()
            && let Some(Value::String(text)) = content.last_mut().and_then(|b| b.get_mut("text"))
        {
            text.truncate(text.trim_end().len());
        }
        let messages = self.messages.into_iter();
        let messages = messages.map(|(role, content)| json!({"role": role, "content": content}));
        let mut request = json!({"messages": messages.collect::<Vec<_>>()});
        if !self.system.is_empty() {
            request["system"] = self.system.into();
        }
        if let Some(container) = self.container {
            request["container"] = container;
        }
        request
    }
}

/// Returns the blocks of the model's message in an order that the provider accepts.
///
/// Reasoning keeps its place. Between two blocks of reasoning, calls come last. Reasoning at the end is left out, and so
/// is the first of two blocks of reasoning side by side.
fn in_order(blocks: Blocks) -> Blocks {
    let mut ordered: Blocks = Vec::with_capacity(blocks.len());
    let mut calls: Blocks = Vec::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("tool_use") => calls.push(block),
            Some("thinking" | "redacted_thinking") => {
                ordered.append(&mut calls);
                if block["type"] == "thinking"
                    && ordered.last().is_some_and(|last| last["type"] == "thinking")
                {
                    ordered.pop();
                }
                ordered.push(block);
            }
            _ => ordered.push(block),
        }
    }
    ordered.append(&mut calls);
    while ordered.last().is_some_and(is_reasoning) {
        ordered.pop();
    }
    ordered
}

fn is_reasoning(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn cited(text: &Text) -> Value {
    let mut block = text_block(&text.text);
    if let Some(citations) = citations(text) {
        block["citations"] = citations;
    }
    block
}

fn call_block(id: &str, call: &Call) -> Value {
    let (name, input) = (tool_name(&call.name), arguments(&call.input));
    let mut block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let caller = value(&call.extra, "caller", ("anthropic", "caller"));
    if let Some(caller) = server_tools::caller(&caller) {
        block["caller"] = caller;
    }
    block
}

fn result_block(id: &str, outcome: &Outcome) -> Value {
    let content: Vec<_> = outcome.content.iter().filter(|piece| !piece.is_white_space()).collect();
    let mut result = json!({"type": "tool_result", "tool_use_id": id});
    match content[..] {
        [] => {}
        [Content::Text(text)] => result["content"] = text.as_str().into(),
        _ => result["content"] = content.into_iter().map(block).collect(),
    }
    if outcome.is_error {
        result["is_error"] = true.into();
    }
    result
}

fn block(content: &Content) -> Value {
    let file = match content {
        Content::Text(_) => None,
        Content::File(file) => file_block(file),
    };
    file.unwrap_or_else(|| text_block(&content.text()))
}

fn file_block(file: &File) -> Option<Value> {
    let base64 =
        |media: &str, data: &str| json!({"type": "base64", "media_type": media, "data": data});
    let url = |url: &str| url.starts_with("https:").then(|| json!({"type": "url", "url": url}));
    let (kind, source) = match accepted(file)? {
        AcceptedFile::ImageData { media, data } => ("image", base64(media, data)),
        AcceptedFile::PdfData(data) => ("document", base64("application/pdf", data)),
        AcceptedFile::ImageUrl(of) => ("image", url(of)?),
        AcceptedFile::PdfUrl(of) => ("document", url(of)?),
    };
    Some(json!({"type": kind, "source": source}))
}
