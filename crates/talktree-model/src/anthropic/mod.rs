//! The Anthropic messages API.

mod citations;
mod request;
mod server_tools;

use serde_json::Value;
use talktree::{Message, Part};

use crate::answer;
use crate::summary::as_shown;
use crate::turns::{Turn, Turns};

use request::Request;

/// Returns the messages in the format of the Anthropic messages API: `{"system"?, "messages",
/// "container"?}`.
///
/// The text of system and developer messages goes to `system`, in order. Messages of one role in a
/// row are merged. If the model speaks first, a short user message is put before it. The results of
/// calls come first in the message right after the calls. Call ids that do not match the provider's
/// pattern are replaced, the same way every time. Hidden messages are left out, and so is
/// reasoning without the provider's signature. Images and PDFs are sent as data or `https` URLs,
/// and files of text as text; other files are named in brackets. A number that a double would round
/// is sent as a string.
///
/// Blocks keep the order of the answer, so that reasoning stays before what it led to; of two blocks
/// of reasoning side by side, which the provider refuses, the second is sent. Blocks of tools that the
/// provider runs are sent back with their callers, and citations, so that a turn that paused goes on
/// if it is sent again. `container` is the one that the newest such answer named, unless it had expired
/// when that answer was stored.
///
/// The newest models refuse a conversation that ends with an assistant message: end it with a user
/// message or a tool result.
///
/// ```
/// use serde_json::json;
/// use talktree::Message;
/// use talktree_model::to_anthropic;
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
    for turn in Turns::of(as_shown(messages)) {
        match turn {
            Turn::System { text, .. } => request.add_system(&text),
            Turn::User(content) => request.add_user(&content),
            Turn::Model(model) => request.add_model(&model),
        }
    }
    request.finish()
}

/// Returns the message of a response of the Anthropic messages API.
///
/// Text, signed reasoning and calls become parts; blocks of other types are kept unchanged. The
/// metadata holds `provider` and those of `id`, `model`, `stop_reason`, `usage` and `container` that
/// the response has. A response without content gives a message without parts.
///
/// ```
/// use serde_json::json;
/// use talktree_model::from_anthropic;
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
    let fields = ["id", "model", "stop_reason", "usage", "container"];
    let fields = fields.map(|field| (field, response[field].clone()));
    answer::message("anthropic", blocks.filter_map(part).collect(), fields)
}

fn part(block: &Value) -> Option<Part> {
    match block["type"].as_str() {
        Some("text") => answer::text_with(&block["text"], answer::fields(block, &["citations"])),
        Some("thinking") => {
            let text = block["thinking"].as_str().unwrap_or_default();
            Some(answer::reasoning(text, block, &["signature"]))
        }
        Some("tool_use") => {
            let (name, id) = (block["name"].as_str()?, block["id"].as_str()?);
            let extra = answer::fields(block, &["caller"]);
            Some(answer::call(name, id, block["input"].clone(), extra))
        }
        _ => answer::other(block),
    }
}
