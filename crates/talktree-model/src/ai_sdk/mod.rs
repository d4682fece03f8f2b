//! Messages of the Vercel AI SDK: `UIMessage`.

mod part;
mod tool;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::OPENING;
use super::content::{joined, outcome, read};
use super::summary::as_shown;
use talktree::{Message, Pairing, Part, Role, Tool, ToolPairs};

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
    let pairs = Pairs::of(messages.iter().map(AsRef::as_ref));
    let mut written = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        write(message, at, &pairs, &mut written);
    }
    if written.is_empty() {
        written.push(json!({"id": "opening", "role": "user", "parts": [part::text(OPENING)]}));
    }
    written.into()
}

/// A part, by the place of its message and its place in the message.
type Spot = (usize, usize);

/// Which results belong to which calls.
#[derive(Default)]
struct Pairs {
    results: BTreeMap<Spot, Tool>,
    /// Results that are written in the part of their call.
    moved: BTreeSet<Spot>,
    /// Results without a call, or of a call that has one already.
    strays: BTreeSet<Spot>,
}

impl Pairs {
    fn of<'a>(messages: impl Iterator<Item = &'a Message>) -> Self {
        let mut found = Self::default();
        let mut pairs = ToolPairs::default();
        for (at, message) in messages.enumerate() {
            for (place, part) in message.parts.iter().enumerate() {
                let part = read(part);
                let Part::Tool(tool) = part.as_ref() else { continue };
                match pairs.take(at, tool, (at, place)) {
                    Pairing::Answers(call) => {
                        found.results.insert(call, tool.clone());
                        found.moved.insert((at, place));
                    }
                    Pairing::Repeats(_) | Pairing::Stray => drop(found.strays.insert((at, place))),
                    Pairing::Started | Pairing::Call | Pairing::Complete => {}
                }
            }
        }
        found
    }
}

fn write(message: &Message, at: usize, pairs: &Pairs, written: &mut Vec<Value>) {
    let role = match &message.role {
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Other(role) if &**role == "developer" => "system",
        _ => "user",
    };
    let (mut parts, mut calls, mut strays) = (Vec::new(), Vec::new(), Vec::new());
    for (place, stored) in message.parts.iter().enumerate() {
        let spot = (at, place);
        match read(stored).as_ref() {
            Part::Tool(_) if pairs.moved.contains(&spot) => {}
            Part::Tool(tool) if pairs.strays.contains(&spot) => {
                let result =
                    outcome(tool).map(|result| joined(&result.content)).unwrap_or_default();
                strays.push(part::text(&format!("Result of the tool {}: {result}", tool.name)));
            }
            Part::Tool(tool) => {
                let call = tool::part(tool, pairs.results.get(&spot));
                if role == "assistant" { parts.push(call) } else { calls.push(call) }
            }
            part => parts.extend(part::parts(part, role)),
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
