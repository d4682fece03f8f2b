//! The OpenAI responses API.

mod answer;
mod items;

use serde_json::{Value, json};
use talktree::{File, Message};

use crate::content::text_or_parts;
use crate::files::{AcceptedFile, accepted, name_of};
use crate::summary::as_shown;
use crate::turns::{Turn, Turns};

use items::Items;

/// Returns the messages in the format of the OpenAI responses API: a list of input items.
///
/// Calls are `function_call` items, and their results `function_call_output` items right after them.
/// Call ids that are too long or used twice are replaced, the same way every time. Hidden messages
/// are left out. Images and PDFs are sent, and files of text as text; other files are named in brackets.
///
/// Items keep the order of the answer, and their ids, states, phases and annotations, also where the AI
/// SDK stored them. Reasoning is sent if it has the provider's id and the item that followed it in the
/// answer follows it here with its own id; otherwise the API would refuse it. An item that lost its
/// reasoning is sent without its id, and so is one that occurs twice.
///
/// With `store: false` the provider keeps no reasoning: ask for `reasoning.encrypted_content` in
/// `include`, so that the answer has what must be sent back. Reasoning without it is refused then.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Part, Role};
/// use talktree_model::to_openai_responses;
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
    let mut items = Items::new();
    for turn in Turns::of(as_shown(messages)) {
        match turn {
            Turn::System { is_developer, text } => {
                let role = if is_developer { "developer" } else { "system" };
                items.add_message(role, text.into());
            }
            Turn::User(content) => {
                items.add_message("user", text_or_parts(&content, "input_text", file_part))
            }
            Turn::Model(model) => items.add_model(&model),
        }
    }
    items.finish()
}

pub(super) fn file_part(file: &File) -> Option<Value> {
    let image = |url: &str| json!({"type": "input_image", "image_url": url, "detail": "auto"});
    Some(match accepted(file)? {
        AcceptedFile::ImageUrl(url) => image(url),
        AcceptedFile::ImageData { media, data } => image(&format!("data:{media};base64,{data}")),
        AcceptedFile::PdfUrl(url) => json!({"type": "input_file", "file_url": url}),
        AcceptedFile::PdfData(data) => {
            let url = format!("data:application/pdf;base64,{data}");
            let name = name_of(file).unwrap_or("file.pdf");
            json!({"type": "input_file", "filename": name, "file_data": url})
        }
    })
}

/// Returns the message of a response of the OpenAI responses API.
///
/// Text, calls and reasoning become parts; a refusal becomes text, and items of other types are kept
/// unchanged. Each part has the id, the state and the annotations by which the API accepts it again.
/// Reasoning is stored as its summaries, or as its text if the model shows it.
/// The metadata holds `provider` and those of `id`, `model`, `status` and `usage` that the response
/// has. A response without output gives a message without parts.
///
/// ```
/// use serde_json::json;
/// use talktree_model::from_openai_responses;
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
    answer::message(response)
}
