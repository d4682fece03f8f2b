//! What a model should see of a view, computed by brute force from the view alone: slow, but simple enough to trust.
#![allow(unreachable_pub, reason = "it is a module of a test")]

use serde_json::Value;
use talktree::{CompactionId, Message, MessageId, Part};

/// The position of a part: of its message in the view, and of the part in the message.
type Spot = (usize, usize);

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A result, with its mark if it has one.
    Result(Option<String>),
    /// No result; a later summary may mention it.
    Nothing(Option<MessageId>),
}

#[derive(Debug)]
pub struct Call {
    id: String,
    spot: Spot,
    pub mark: String,
    pub outcome: Option<Outcome>,
    /// Where the result is, if it is another part.
    answer: Option<Spot>,
    /// Whether the result must directly follow the call: the model said nothing between them, and no call came
    /// after another speaker.
    pub is_direct: bool,
}

/// What a model should see of a view.
#[derive(Debug, Default)]
pub struct Expected {
    /// The marks of all texts, and whether each is in a system message.
    pub texts: Vec<(String, bool)>,
    pub calls: Vec<Call>,
    /// The number of results without a call and calls without an input, which no model should see.
    pub strays: usize,
}

impl Expected {
    pub fn of(view: &[Message]) -> Self {
        let mut all = Self::default();
        // The texts of the model; and all calls (true) and texts of others (false).
        let mut said: Vec<Spot> = Vec::new();
        let mut events: Vec<(Spot, bool)> = Vec::new();
        for (at, message) in view.iter().enumerate().filter(|(_, message)| !message.is_hidden) {
            // Models see a summary as a text of the user.
            let is_model = message.role.as_str() == "assistant" && !is_any_summary(message);
            let is_system = ["system", "developer"].contains(&message.role.as_str());
            for (place, part) in message.parts.iter().enumerate() {
                let spot = (at, place);
                let json = value(part);
                let kind = json["type"].as_str().unwrap();
                match kind {
                    "text" | "file" | "reasoning" => {
                        if json["text"].as_str().is_some_and(|text| text.trim().is_empty()) {
                            continue;
                        }
                        if is_model {
                            said.push(spot);
                        } else if kind != "reasoning" {
                            // A message's calls come before its texts.
                            events.push(((at, usize::MAX), false));
                        }
                        let found = marks(&json).into_iter().map(|mark| (mark, is_system));
                        all.texts.extend(found);
                    }
                    kind if kind.starts_with("tool-") => {
                        if json.get("input").or(json.get("rawInput")).is_some() {
                            events.push((spot, true));
                        }
                        all.take_tool(&json, spot);
                    }
                    _ => {}
                }
            }
        }
        let summaries = || view.iter().enumerate().filter(|(_, message)| is_summary(message));
        for call in &mut all.calls {
            if call.outcome.is_none() {
                let next = summaries().find(|(at, _)| *at > call.spot.0);
                call.outcome = Some(Outcome::Nothing(next.map(|(_, message)| message.id.clone())));
            }
        }
        all.find_direct(&said, events);
        all
    }

    fn take_tool(&mut self, json: &Value, spot: Spot) {
        let mark = |value: &Value| marks(value).pop();
        let input = json.get("input").or(json.get("rawInput"));
        let fields = ["errorText", "output", "result"].iter();
        let result = fields.filter_map(|field| json.get(*field)).find(|value| !value.is_null());
        let outcome = result.map(|result| Outcome::Result(mark(result)));
        let id = json["toolCallId"].as_str().unwrap();
        match (input, outcome) {
            (Some(input), outcome) => self.calls.push(Call {
                id: id.to_owned(),
                spot,
                mark: mark(input).unwrap(),
                is_direct: outcome.is_some(),
                outcome,
                answer: None,
            }),
            (None, Some(outcome)) => {
                // The first waiting call of the newest message that has one.
                let waits = |call: &&mut Call| call.id == id && call.outcome.is_none();
                let newest = self.calls.iter_mut().filter(waits).map(|call| call.spot.0).max();
                let call =
                    self.calls.iter_mut().find(|call| waits(call) && Some(call.spot.0) == newest);
                match call {
                    Some(call) => (call.outcome, call.answer) = (Some(outcome), Some(spot)),
                    None => self.strays += 1,
                }
            }
            (None, None) => self.strays += 1,
        }
    }

    /// Sets `is_direct` of the calls whose result is another part.
    fn find_direct(&mut self, said: &[Spot], mut events: Vec<(Spot, bool)>) {
        let waiting = self.calls.iter_mut().filter_map(|call| Some((call.answer?, call)));
        let mut waiting: Vec<(Spot, &mut Call)> = waiting.collect();
        waiting.sort_unstable_by_key(|(result, _)| *result);
        for (result, call) in waiting {
            let between = |at: &Spot| *at > call.spot && *at < result;
            let spoken = events.iter().filter(|(at, is_call)| !is_call && between(at));
            let spoken = spoken.map(|(at, _)| *at).min();
            let is_called_after = events.iter().any(|(at, is_call)| {
                *is_call && between(at) && spoken.is_some_and(|spoken| *at > spoken)
            });
            call.is_direct = !is_called_after && !said.iter().any(between);
            if !call.is_direct {
                // A later result becomes a text of the user.
                events.push((result, false));
            }
        }
    }
}

fn value(part: &Part) -> Value {
    serde_json::to_value(part.typed()).unwrap()
}

/// Returns whether a message is any kind of summary.
fn is_any_summary(message: &Message) -> bool {
    let about = message.metadata.as_ref().map(|json| json.value()).unwrap_or_default();
    is_summary(message) || about["branch_summary"].is_object() || about["split"].is_object()
}

pub fn is_summary(message: &Message) -> bool {
    CompactionId::from_message(&message.id).is_some()
}

/// Returns the marks in a value, in order.
pub fn marks(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => {
            let pieces = text.split('<').skip(1).filter_map(|piece| piece.split_once('>'));
            pieces.map(|(mark, _)| mark.to_owned()).collect()
        }
        Value::Array(items) => items.iter().flat_map(marks).collect(),
        Value::Object(fields) => fields.values().flat_map(marks).collect(),
        _ => Vec::new(),
    }
}
