//! Messages of the Vercel AI SDK: `UIMessage`.

mod part;
mod tool;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use talktree::{Message, Pairing, Part, Role, Tool};

use crate::OPENING;
use crate::content::{joined, outcome, read};
use crate::pairs::{Spot, paired};
use crate::summary::as_shown;

/// Returns the messages as the AI SDK's `validateUIMessages` accepts them: a list of `UIMessage`.
///
/// The SDK has no messages of the role `tool`: a result goes into the part of its call, whose state says whether it
/// succeeded. A result without a call becomes a user's text. Developer messages become
/// system messages, and those of unknown roles become a user's. Signatures and ids of items go into
/// `providerMetadata`. Parts that the SDK does not know become `data-` parts, and files without a URL are
/// named in brackets. Hidden messages and messages without parts are left out.
///
/// A call without a result stays as it is, since it may be waiting for a person. Use
/// [`sanitize()`](crate::sanitize()) first if the messages go to a model.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Part, Role};
/// use talktree_model::to_ai_sdk;
///
/// let call = Part::tool_call("add", "c1", json!({"a": 2, "b": 2}));
/// let result = Part::tool_result("add", "c1", json!(4));
/// let messages = [
///     Message::user("2 + 2?").with_id("m1"),
///     Message::new(Role::Assistant, vec![call]).with_id("m2"),
///     Message::new(Role::Tool, vec![result]).with_id("m3"),
/// ];
/// assert_eq!(
///     to_ai_sdk(&messages),
///     json!([
///         {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "2 + 2?"}]},
///         {"id": "m2", "role": "assistant", "parts": [
///             {"type": "tool-add", "toolCallId": "c1", "state": "output-available",
///              "input": {"a": 2, "b": 2}, "output": 4}]},
///     ]),
/// );
/// ```
#[must_use]
pub fn to_ai_sdk(messages: &[Message]) -> Value {
    let messages: Vec<_> = as_shown(messages).collect();
    let (pairs, _) = paired(messages.iter().map(AsRef::as_ref).enumerate());
    let result = |(&(at, place), pairing): (&Spot, &Pairing<Spot>)| match pairing {
        Pairing::Answers(call) => Some((*call, messages[at].parts[place].tool()?.into_owned())),
        _ => None,
    };
    let results: BTreeMap<Spot, Tool> = pairs.iter().filter_map(result).collect();
    let mut written = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        write(message, at, &pairs, &results, &mut written);
    }
    if written.is_empty() {
        written.push(json!({"id": "opening", "role": "user", "parts": [part::text(OPENING)]}));
    }
    written.into()
}

fn write(
    message: &Message,
    at: usize,
    pairs: &BTreeMap<Spot, Pairing<Spot>>,
    results: &BTreeMap<Spot, Tool>,
    written: &mut Vec<Value>,
) {
    let role = match &message.role {
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Other(role) if &**role == "developer" => "system",
        _ => "user",
    };
    let (mut parts, mut calls, mut strays) = (Vec::new(), Vec::new(), Vec::new());
    for (place, stored) in message.parts.iter().enumerate() {
        let spot = (at, place);
        match (read(stored).as_ref(), pairs.get(&spot)) {
            // It is written in the part of its call.
            (Part::Tool(_), Some(Pairing::Answers(_))) => {}
            // Its call has a result already, or is missing.
            (Part::Tool(tool), Some(Pairing::Repeats(_) | Pairing::Stray)) => {
                let result =
                    outcome(tool).map(|result| joined(&result.content)).unwrap_or_default();
                strays.push(part::text(&format!("Result of the tool {}: {result}", tool.name)));
            }
            (Part::Tool(tool), _) => {
                let call = tool::part(tool, results.get(&spot));
                if role == "assistant" { parts.push(call) } else { calls.push(call) }
            }
            (part, _) => parts.extend(part::parts(part, role)),
        }
    }
    let id = message.id.as_str();
    // Only the model calls tools, and a user says what belongs to no call.
    for (role, id, parts) in [
        ("assistant", format!("{id}-calls"), calls),
        (role, id.to_owned(), parts),
        ("user", format!("{id}-results"), strays),
    ] {
        if parts.is_empty() {
            continue;
        }
        let mut one = json!({"id": id, "role": role, "parts": parts});
        if let Some(metadata) = message.metadata.as_ref().filter(|_| id == message.id.as_str()) {
            one["metadata"] = metadata.value();
        }
        written.push(one);
    }
}
