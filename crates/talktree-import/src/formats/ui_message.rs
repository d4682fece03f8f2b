//! `UIMessage`s of the Vercel AI SDK, and talktree's own messages as JSON.
//!
//! Parts are kept unchanged, because talktree stores this format. Version 4 of the SDK wrote `content` and
//! `toolInvocations` instead, or beside parts of its own; both become parts of today. A message may name its `parent`.

use talktree::{Json, Message, MessageId, Part, Reasoning, Tool};

use super::Format;
use super::blocks::{self, ToolNames};
use super::linear::Dialect;
use crate::draft::message_id;
use crate::fields::{Fields, data_part};

/// The `UIMessage` dialect.
#[derive(Default)]
pub(crate) struct UiMessage;

impl Dialect for UiMessage {
    const FORMAT: Format = Format::UiMessage;

    fn message(&self, fields: Fields, names: &ToolNames) -> Message {
        let parts = match fields.list("parts") {
            Some(parts) if fields.has("content") => parts.iter().map(older_part).collect(),
            Some(parts) => parts.iter().map(part).collect(),
            None => {
                let calls = fields.objects("toolInvocations");
                let said = blocks::parts(fields.get("content"), names);
                calls.iter().filter_map(invocation).chain(said).collect()
            }
        };
        let mut known =
            vec!["id", "role", "parts", "metadata", "parent", "hidden", "created_at", "createdAt"];
        if !fields.has("parts") {
            known.extend(["content", "toolInvocations"]);
        }
        let mut message = Message::new(fields.text("role").unwrap_or_default(), parts);
        message.metadata = fields.get("metadata").cloned();
        message.is_hidden = fields.is_true("hidden");
        // An unreadable time is kept under another name, because the message has its own field for the time.
        let unread = ["created_at", "createdAt"].into_iter().filter(|n| fields.time(n).is_none());
        let unread: Vec<_> = unread
            .filter_map(|name| Some((format!("unread_{name}"), fields.get(name)?.clone())))
            .collect();
        message.extra = fields.without(&known).into_iter().chain(unread).collect();
        message
    }

    fn parent(&self, fields: &Fields) -> Option<Option<MessageId>> {
        fields.has("parent").then(|| fields.id("parent").map(message_id))
    }
}

fn part(json: &Json) -> Part {
    serde_json::from_str(json.as_str()).unwrap_or_else(|_| data_part("value", json))
}

/// Returns a part of a message of version 4, which has `content`, too.
fn older_part(json: &Json) -> Part {
    let fields = Fields::of(json).unwrap_or_default();
    let older = match fields.text("type").as_deref() {
        Some("tool-invocation") => fields.object("toolInvocation").as_ref().and_then(invocation),
        Some("reasoning") => fields.text("reasoning").map(|text| {
            let extra = fields.without(&["type", "reasoning"]).into_iter().collect();
            Part::Reasoning(Reasoning { text, extra })
        }),
        _ => None,
    };
    older.unwrap_or_else(|| part(json))
}

/// Returns a call in the format of version 4.
fn invocation(call: &Fields) -> Option<Part> {
    let output = call.get("result").cloned();
    let state = if output.is_some() { "output-available" } else { "input-available" };
    let mut tool = Tool::default();
    tool.name = call.text("toolName")?;
    tool.call_id = call.id("toolCallId")?;
    tool.state = Some(state.to_owned());
    tool.input = call.get("args").cloned();
    tool.output = output;
    Some(Part::Tool(tool))
}
