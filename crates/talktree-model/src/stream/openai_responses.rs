//! Streams of OpenAI's responses API.
//!
//! The last event has the whole response. Some servers leave its output empty, so the items are also kept as their own
//! events say.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Assembly, Pieces, append, at};
use crate::response::error_of;

#[derive(Default, Clone)]
pub(super) struct Answer {
    response: Map<String, Value>,
    items: BTreeMap<u64, Value>,
    /// The items of which text was shown.
    shown: BTreeSet<u64>,
    is_complete: bool,
}

impl Assembly for Answer {
    fn add(&mut self, mut event: Value, pieces: &mut Pieces) -> Result<(), String> {
        let number = |field: &str| event[field].as_u64().unwrap_or_default();
        let (index, part) = (number("output_index"), number("content_index"));
        let summary = number("summary_index");
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let delta = event["delta"].take();
        let delta = delta.as_str().unwrap_or_default();
        match kind.as_str() {
            "response.created" | "response.queued" | "response.in_progress" => self.set(event),
            "response.completed" | "response.incomplete" => {
                self.set(event);
                self.is_complete = true;
                self.show_all(pieces);
            }
            "response.failed" | "response.cancelled" => {
                let why = error_of(&event["response"]);
                let status = event["response"]["status"].as_str().unwrap_or("failed");
                return Err(why.unwrap_or_else(|| format!("its status is {status}")));
            }
            "response.output_item.added" => {
                self.items.insert(index, event["item"].take());
            }
            "response.output_item.done" => {
                let item = event["item"].take();
                if self.shown.insert(index) {
                    show(index, &item, pieces);
                }
                self.items.insert(index, item);
            }
            "response.content_part.added" => {
                if let Some(known) = at(self.item(index), "content", part) {
                    *known = event["part"].take();
                }
            }
            "response.output_text.delta" => self.add_text(index, part, "text", delta, pieces),
            "response.refusal.delta" => self.add_text(index, part, "refusal", delta, pieces),
            "response.reasoning_text.delta" => grow(at(self.item(index), "content", part), delta),
            "response.reasoning_summary_part.added" => {
                if let Some(known) = at(self.item(index), "summary", summary) {
                    *known = event["part"].take();
                }
            }
            "response.reasoning_summary_text.delta" => {
                grow(at(self.item(index), "summary", summary), delta);
            }
            "response.function_call_arguments.delta" => {
                append(&mut self.item(index)["arguments"], delta);
            }
            "response.custom_tool_call_input.delta" => {
                append(&mut self.item(index)["input"], delta);
            }
            _ => {}
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn response(&self) -> Value {
        let Self { mut response, items, .. } = self.clone();
        if !has_output(&response) {
            response.insert("output".to_owned(), items.into_values().collect());
        }
        Value::Object(response)
    }
}

impl Answer {
    fn set(&mut self, mut event: Value) {
        if let Value::Object(response) = event["response"].take() {
            self.response = response;
        }
    }

    /// Returns an item. One that was not added is a message.
    fn item(&mut self, index: u64) -> &mut Value {
        let item = self.items.entry(index).or_insert(Value::Null);
        if !item.is_object() {
            *item = serde_json::json!({"type": "message", "role": "assistant"});
        }
        item
    }

    fn add_text(&mut self, index: u64, part: u64, field: &str, delta: &str, pieces: &mut Pieces) {
        if let Some(piece) = at(self.item(index), "content", part)
            && piece.is_object()
        {
            if piece["type"].is_null() {
                piece["type"] = if field == "text" { "output_text" } else { field }.into();
            }
            append(&mut piece[field], delta);
        }
        self.shown.insert(index);
        pieces.add((index, u64::from(field == "refusal")), delta);
    }

    /// Shows the text of a response whose items had no events.
    fn show_all(&mut self, pieces: &mut Pieces) {
        if self.shown.is_empty()
            && let Some(Value::Array(items)) = self.response.get("output")
        {
            for (index, item) in (0..).zip(items) {
                show(index, item, pieces);
            }
        }
    }
}

fn has_output(response: &Map<String, Value>) -> bool {
    response.get("output").and_then(Value::as_array).is_some_and(|items| !items.is_empty())
}

fn grow(piece: Option<&mut Value>, delta: &str) {
    if let Some(piece) = piece.filter(|piece| piece.is_object()) {
        append(&mut piece["text"], delta);
    }
}

/// Shows the texts of an item that had no deltas.
fn show(index: u64, item: &Value, pieces: &mut Pieces) {
    if item["type"] == "message" {
        for piece in item["content"].as_array().into_iter().flatten() {
            for (part, field) in (0..).zip(["text", "refusal"]) {
                pieces.add((index, part), piece[field].as_str().unwrap_or_default());
            }
        }
    }
}
