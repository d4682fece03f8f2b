//! The Anthropic messages API.

use serde_json::{Value, json};

use super::OPENING;
use super::answer;
use super::call_id::CallIds;
use super::content::{Content, Outcome, Taken, arguments, mention, taken, tool_name};
use super::turns::{Model, Said, Turn, Turns};
use crate::message::{File, Message, Part, Reasoning};

/// The longest id of a call. The provider publishes a pattern for ids and no length.
const MAX_ID: usize = 64;

/// Returns the messages in the format of the Anthropic messages API: `{"system"?, "messages"}`.
///
/// The text of system and developer messages goes to `system`, in order. Messages of one role in a
/// row are merged. If the model speaks first, a short user message is put before it. The results of
/// calls come first in the message right after the calls. Call ids that do not match the provider's
/// pattern are replaced, the same way every time. Hidden messages are left out, and so is
/// reasoning without the provider's signature. Images and PDFs are sent as data or `https` URLs;
/// other files are named in brackets.
///
/// The newest models refuse a conversation that ends with an assistant message: end it with a user
/// message or a tool result.
///
/// ```
/// use serde_json::json;
/// use talktree::Message;
/// use talktree::model::to_anthropic;
///
/// let messages = [Message::system("Be brief."), Message::user("2 + 2?"), Message::user("Quick!")];
/// assert_eq!(
///     to_anthropic(&messages),
///     json!({
///         "system": [{"type": "text", "text": "Be brief."}],
///         "messages": [{"role": "user", "content": [
///             {"type": "text", "text": "2 + 2?"},
///             {"type": "text", "text": "Quick!"},
///         ]}],
///     }),
/// );
/// ```
#[must_use]
pub fn to_anthropic(messages: &[Message]) -> Value {
    let mut request = Request::default();
    let mut ids = CallIds::new(MAX_ID);
    for turn in Turns::of(messages) {
        match turn {
            Turn::System { text, .. } => request.system.push(text_block(&text)),
            Turn::User(content) => request.add("user", content.iter().map(block).collect()),
            Turn::Model(model) => request.add_model(&model, &mut ids),
        }
    }
    request.finish()
}

#[derive(Default)]
struct Request {
    system: Vec<Value>,
    messages: Vec<(&'static str, Vec<Value>)>,
}

impl Request {
    fn add(&mut self, role: &'static str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        if role == "user" {
            self.end_model();
        }
        match self.messages.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => self.messages.push((role, blocks)),
        }
    }

    fn add_model(&mut self, model: &Model, ids: &mut CallIds) {
        let mut blocks: Vec<Value> = model.said.iter().filter_map(said_block).collect();
        let mut results = Vec::new();
        for call in &model.calls {
            let id = ids.give(&call.id);
            results.push(result_block(&id, &call.outcome()));
            let (name, input) = (tool_name(&call.name), arguments(&call.input));
            blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        }
        self.add("assistant", blocks);
        self.add("user", results);
    }

    /// Removes reasoning at the end of an assistant message: the provider refuses it there.
    fn end_model(&mut self) {
        let Some(("assistant", content)) = self.messages.last_mut() else { return };
        while content.last().is_some_and(|block| {
            matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
        }) {
            content.pop();
        }
        if content.is_empty() {
            self.messages.pop();
        }
    }

    fn finish(mut self) -> Value {
        self.end_model();
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
        request
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn block(content: &Content) -> Value {
    match content {
        Content::Text(text) => text_block(text),
        Content::File(file) => file_block(file),
    }
}

fn file_block(file: &File) -> Value {
    let base64 =
        |media: &str, data: &str| json!({"type": "base64", "media_type": media, "data": data});
    let (kind, source) = match taken(file) {
        Some(Taken::ImageData { media, data }) => ("image", base64(media, data)),
        Some(Taken::PdfData(data)) => ("document", base64("application/pdf", data)),
        Some(Taken::ImageUrl(url)) if url.starts_with("https:") => {
            ("image", json!({"type": "url", "url": url}))
        }
        Some(Taken::PdfUrl(url)) if url.starts_with("https:") => {
            ("document", json!({"type": "url", "url": url}))
        }
        Some(Taken::ImageUrl(_) | Taken::PdfUrl(_)) | None => return text_block(&mention(file)),
    };
    json!({"type": kind, "source": source})
}

fn said_block(said: &Said) -> Option<Value> {
    match said {
        Said::Text(text) => Some(text_block(text)),
        Said::Reasoning(reasoning) => signature(reasoning).map(|signature| {
            json!({"type": "thinking", "thinking": reasoning.text, "signature": signature})
        }),
        Said::Redacted(data) => Some(json!({"type": "redacted_thinking", "data": data})),
    }
}

/// Returns the signature without which the provider does not accept its own reasoning.
fn signature(reasoning: &Reasoning) -> Option<String> {
    let own = reasoning.extra.get("signature").map(|json| json.value());
    let of_ui = || {
        let metadata = reasoning.extra.get("providerMetadata")?.value();
        Some(metadata["anthropic"]["signature"].clone())
    };
    let signature = own.or_else(of_ui)?;
    signature.as_str().filter(|signature| !signature.is_empty()).map(str::to_owned)
}

fn result_block(id: &str, outcome: &Outcome) -> Value {
    let content: Vec<_> = outcome.content.iter().filter(|piece| !piece.is_blank()).collect();
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

/// Returns the message of a response of the Anthropic messages API.
///
/// Text, signed reasoning and calls become parts; blocks of other types are kept unchanged. The
/// metadata holds `provider` and those of `id`, `model`, `stop_reason` and `usage` that the response
/// has. A response without content gives a message without parts.
///
/// ```
/// use serde_json::json;
/// use talktree::model::from_anthropic;
///
/// let message = from_anthropic(&json!({
///     "id": "msg_1", "model": "claude", "role": "assistant", "stop_reason": "tool_use",
///     "content": [
///         {"type": "text", "text": "Let me look."},
///         {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Jena"}},
///     ],
///     "usage": {"input_tokens": 12, "output_tokens": 30},
/// }));
/// assert_eq!(message.text(), "Let me look.");
/// assert_eq!(message.parts[1].kind(), "tool-weather");
/// assert_eq!(message.metadata.unwrap().value()["usage"]["output_tokens"], 30);
/// ```
#[must_use]
pub fn from_anthropic(response: &Value) -> Message {
    let blocks = response["content"].as_array().into_iter().flatten();
    let fields =
        ["id", "model", "stop_reason", "usage"].map(|field| (field, response[field].clone()));
    answer::message("anthropic", blocks.filter_map(part).collect(), fields)
}

fn part(block: &Value) -> Option<Part> {
    match block["type"].as_str() {
        Some("text") if block["citations"].is_null() => answer::text(&block["text"]),
        Some("text") => {
            let mut part = answer::text(&block["text"])?;
            if let Part::Text(text) = &mut part {
                text.extra.insert("citations".to_owned(), block["citations"].clone().into());
            }
            Some(part)
        }
        Some("thinking") => {
            let text = block["thinking"].as_str().unwrap_or_default();
            Some(answer::reasoning(text, block, &["signature"]))
        }
        Some("tool_use") => {
            let (name, id) = (block["name"].as_str()?, block["id"].as_str()?);
            Some(Part::tool_call(name, id, block["input"].clone()))
        }
        _ => answer::other(block),
    }
}
