//! Streams of the Anthropic messages API.
//!
//! A message begins without content. Each block begins, grows by deltas and stops; then come the reason why the model
//! stopped, and the usage.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Assembly, Pieces, append};

#[derive(Default, Clone)]
pub(super) struct Answer {
    message: Map<String, Value>,
    blocks: BTreeMap<u64, Block>,
    is_stopping: bool,
    is_complete: bool,
}

#[derive(Default, Clone)]
struct Block {
    value: Map<String, Value>,
    /// The JSON of the input, as far as it has come.
    input: String,
}

impl Assembly for Answer {
    fn add(&mut self, mut event: Value, pieces: &mut Pieces) -> Result<(), String> {
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                if let Value::Object(message) = event["message"].take() {
                    self.message = message;
                }
            }
            "content_block_start" => {
                if let Value::Object(value) = event["content_block"].take() {
                    if value.get("type").is_some_and(|kind| kind == "text") {
                        pieces.add(self.part(index), value.get("text").map_or("", text));
                    }
                    self.blocks.insert(index, Block { value, input: String::new() });
                }
            }
            "content_block_delta" => {
                let part = self.part(index);
                self.blocks.entry(index).or_default().grow(part, &event["delta"], pieces);
            }
            "message_delta" => self.end_with(event),
            "message_stop" => self.is_complete = true,
            _ => {}
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn is_whole(&self) -> bool {
        self.is_complete || self.is_stopping
    }

    fn response(&self) -> Value {
        let Self { mut message, blocks, .. } = self.clone();
        let blocks = blocks.into_values().map(Block::into_value);
        message.insert("content".to_owned(), blocks.collect());
        Value::Object(message)
    }
}

impl Answer {
    /// Returns the part of a text block: the first of the text blocks side by side.
    fn part(&self, index: u64) -> (u64, u64) {
        let is_other =
            |(_, block): &(&u64, &Block)| block.value.get("type").is_none_or(|kind| kind != "text");
        (self.blocks.range(..index).rev().find(is_other).map_or(0, |(at, _)| at + 1), 0)
    }

    /// Takes what is known when all blocks have stopped. The numbers of the usage are totals.
    fn end_with(&mut self, event: Value) {
        let Value::Object(mut fields) = event else { return };
        fields.remove("type");
        if let Some(Value::Object(delta)) = fields.remove("delta") {
            self.is_stopping |= delta.get("stop_reason").is_some_and(|why| !why.is_null());
            set_given(&mut self.message, delta);
        }
        if let Some(Value::Object(usage)) = fields.remove("usage") {
            match self.message.get_mut("usage") {
                Some(Value::Object(known)) => set_given(known, usage),
                _ => _ = self.message.insert("usage".to_owned(), Value::Object(usage)),
            }
        }
        set_given(&mut self.message, fields);
    }
}

impl Block {
    fn grow(&mut self, part: (u64, u64), delta: &Value, pieces: &mut Pieces) {
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => {
                self.append("text", text(&delta["text"]));
                pieces.add(part, text(&delta["text"]));
            }
            "thinking_delta" => self.append("thinking", text(&delta["thinking"])),
            "signature_delta" => {
                _ = self.value.insert("signature".to_owned(), delta["signature"].clone());
            }
            "input_json_delta" => self.input.push_str(text(&delta["partial_json"])),
            "citations_delta" => match self.value.get_mut("citations") {
                Some(Value::Array(citations)) => citations.push(delta["citation"].clone()),
                _ => {
                    let citations = Value::Array(vec![delta["citation"].clone()]);
                    self.value.insert("citations".to_owned(), citations);
                }
            },
            "compaction_delta" => {
                if let Value::String(content) = &delta["content"] {
                    append(self.field("content"), content);
                }
            }
            _ => {}
        }
    }

    /// Appends to a text. A block that did not begin gets the type of its text.
    fn append(&mut self, field: &str, text: &str) {
        self.value.entry("type").or_insert_with(|| Value::from(field));
        append(self.field(field), text);
    }

    fn field(&mut self, name: &str) -> &mut Value {
        self.value.entry(name).or_insert(Value::Null)
    }

    fn into_value(mut self) -> Value {
        if !self.input.is_empty() {
            let input = serde_json::from_str(&self.input);
            let input = input.unwrap_or_else(|_| Value::from(self.input.as_str()));
            self.value.insert("input".to_owned(), input);
        }
        Value::Object(self.value)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Sets the fields that are not null.
fn set_given(to: &mut Map<String, Value>, fields: Map<String, Value>) {
    to.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
}
