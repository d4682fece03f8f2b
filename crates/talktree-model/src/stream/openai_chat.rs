//! Streams of OpenAI's chat completions API, and of the many servers that speak it.
//!
//! Each chunk has a delta of the message. Texts are appended; a delta of a call names it by its number. Servers differ:
//! some leave the number out, give all calls the number 0, repeat the id, or send an input as an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Assembly, Pieces, append};
use crate::response::error_of;

/// The parts of the text of an answer, in the order in which a message has them. The pieces of a list are numbered.
const CONTENT: u64 = 0;
const REFUSAL: u64 = 1;
const AUDIO: u64 = 2;

/// Fields that are repeated, not continued.
const REPEATED: [&str; 6] = ["id", "type", "index", "format", "role", "name"];

#[derive(Default, Clone)]
pub(super) struct Answer {
    response: Map<String, Value>,
    message: Map<String, Value>,
    calls: Vec<Value>,
    /// The place of the call with a number.
    numbered: BTreeMap<u64, usize>,
    finish_reason: Value,
    logprobs: Value,
    has_choice: bool,
    is_complete: bool,
}

impl Assembly for Answer {
    fn add(&mut self, event: Value, pieces: &mut Pieces) -> Result<(), String> {
        let Value::Object(mut chunk) = event else { return Ok(()) };
        if !chunk.contains_key("choices") && !chunk.contains_key("usage") {
            return Ok(());
        }
        if let Some(Value::Array(choices)) = chunk.remove("choices") {
            for choice in choices {
                if choice.is_object() && choice["index"].as_u64().unwrap_or_default() == 0 {
                    self.add_choice(choice, pieces)?;
                }
            }
        }
        chunk.remove("object");
        // The first id is that of the answer.
        if self.response.get("id").is_some_and(is_given) {
            chunk.remove("id");
        }
        self.response.extend(chunk.into_iter().filter(|(_, value)| !value.is_null()));
        Ok(())
    }

    fn end(&mut self) {
        self.is_complete = true;
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn is_whole(&self) -> bool {
        self.is_complete || is_given(&self.finish_reason)
    }

    fn response(&self) -> Value {
        let Self { mut response, mut message, calls, finish_reason, logprobs, .. } = self.clone();
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        message.entry("role").or_insert_with(|| Value::from("assistant"));
        message.entry("content").or_insert(Value::Null);
        let mut choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
        if !logprobs.is_null() {
            choice["logprobs"] = logprobs;
        }
        let choices = if self.has_choice { vec![choice] } else { Vec::new() };
        response.insert("object".to_owned(), Value::from("chat.completion"));
        response.insert("choices".to_owned(), Value::Array(choices));
        Value::Object(response)
    }
}

impl Answer {
    fn add_choice(&mut self, mut choice: Value, pieces: &mut Pieces) -> Result<(), String> {
        if let Some(why) = error_of(&choice) {
            return Err(why);
        }
        self.has_choice = true;
        if is_given(&choice["finish_reason"]) {
            self.finish_reason = choice["finish_reason"].take();
        }
        // Some servers have the usage here.
        if is_given(&choice["usage"]) {
            self.response.insert("usage".to_owned(), choice["usage"].take());
        }
        continue_with(&mut self.logprobs, choice["logprobs"].take());
        let Value::Object(delta) = choice["delta"].take() else { return Ok(()) };
        for (field, value) in delta {
            match (field.as_str(), value) {
                (_, Value::Null) => {}
                ("tool_calls", Value::Array(calls)) => {
                    calls.into_iter().for_each(|call| self.add_call(call));
                }
                ("content", value) => add_content(self.field("content"), value, pieces),
                (field, value) => {
                    match (field, &value) {
                        ("refusal", Value::String(text)) => pieces.add((REFUSAL, 0), text),
                        ("audio", audio) => {
                            pieces
                                .add((AUDIO, 0), audio["transcript"].as_str().unwrap_or_default());
                        }
                        _ => {}
                    }
                    continue_field(&mut self.message, field, value);
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, name: &str) -> &mut Value {
        self.message.entry(name).or_insert(Value::Null)
    }

    fn add_call(&mut self, mut delta: Value) {
        if !delta.is_object() {
            return;
        }
        let number = delta["index"].as_u64();
        let place = match number {
            Some(number) => self.numbered.get(&number).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let place = place.filter(|place| continues(&self.calls[*place], &delta));
        let place = place.unwrap_or_else(|| {
            self.calls.push(json!({}));
            self.calls.len() - 1
        });
        if let Some(number) = number {
            self.numbered.insert(number, place);
        }
        let call = &mut self.calls[place];
        for kind in ["function", "custom"] {
            let mut given = delta[kind].take();
            if !given.is_object() {
                continue;
            }
            for field in ["arguments", "input"] {
                match given[field].take() {
                    Value::Null => {}
                    Value::String(text) => append(&mut call[kind][field], &text),
                    other => call[kind][field] = other,
                }
            }
            set_first(call, kind, given["name"].take());
        }
        let Value::Object(rest) = delta else { return };
        for (field, value) in rest {
            match field.as_str() {
                "index" | "function" | "custom" => {}
                "id" | "type" if call.get(&field).is_some_and(is_given) => {}
                _ => continue_with(&mut call[field], value),
            }
        }
    }
}

/// Returns whether a delta is of this call. A new id alone begins no call: some servers send another one each time.
fn continues(call: &Value, delta: &Value) -> bool {
    let (Some(known), Some(name)) = (name_of(call), name_of(delta)) else { return true };
    match is_given(&call["id"]) && is_given(&delta["id"]) {
        true => call["id"] == delta["id"],
        false => known == name && delta["index"].is_number(),
    }
}

fn name_of(call: &Value) -> Option<&Value> {
    ["function", "custom"].iter().map(|kind| &call[*kind]["name"]).find(|name| is_given(name))
}

/// Sets the name of what is called, unless it has one.
fn set_first(call: &mut Value, kind: &str, name: Value) {
    if is_given(&name) && !is_given(&call[kind]["name"]) {
        call[kind]["name"] = name;
    }
}

/// Appends to the content, which is a text or, of some models, a list of pieces.
fn add_content(content: &mut Value, delta: Value, pieces: &mut Pieces) {
    match (&mut *content, delta) {
        (Value::Array(list), Value::String(text)) => {
            add_pieces(list, vec![json!({"type": "text", "text": text})], Some(pieces));
        }
        (_, Value::String(text)) => {
            pieces.add((CONTENT, 0), &text);
            append(content, &text);
        }
        (Value::Array(list), Value::Array(delta)) => add_pieces(list, delta, Some(pieces)),
        (known, Value::Array(delta)) => {
            let mut list = Vec::new();
            if let Value::String(text) = known.take()
                && !text.is_empty()
            {
                list.push(json!({"type": "text", "text": text}));
            }
            add_pieces(&mut list, delta, Some(pieces));
            *known = Value::Array(list);
        }
        _ => {}
    }
}

/// Appends pieces; one that has the type of the last one continues it. Those of reasoning hold a list themselves.
fn add_pieces(list: &mut Vec<Value>, delta: Vec<Value>, mut pieces: Option<&mut Pieces>) {
    for mut piece in delta {
        let continued = list.last_mut().filter(|last| {
            let is_same = |field, is: fn(&Value) -> bool| is(&last[field]) && is(&piece[field]);
            last["type"] == piece["type"]
                && (is_same("text", Value::is_string) || is_same("thinking", Value::is_array))
        });
        let is_continued = continued.is_some();
        let text = piece["text"].as_str().unwrap_or_default().to_owned();
        match (continued, piece.get_mut("thinking").and_then(Value::as_array_mut)) {
            (None, _) => {}
            (Some(last), None) => append(&mut last["text"], &text),
            (Some(last), Some(delta)) => {
                if let Some(known) = last["thinking"].as_array_mut() {
                    add_pieces(known, std::mem::take(delta), None);
                }
            }
        }
        let is_text = piece["type"] == "text";
        if !is_continued {
            list.push(piece);
        }
        if let Some(pieces) = pieces.as_deref_mut().filter(|_| is_text) {
            pieces.add((CONTENT, list.len().saturating_sub(1) as u64), &text);
        }
    }
}

/// Continues a value with a delta: texts are appended, objects field by field; an object in a list continues the last one
/// if it has the same number and type.
fn continue_with(value: &mut Value, delta: Value) {
    match (value, delta) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(delta)) => text.push_str(&delta),
        (Value::Object(fields), Value::Object(delta)) => {
            delta.into_iter().for_each(|(field, delta)| continue_field(fields, &field, delta));
        }
        (Value::Array(list), Value::Array(delta)) => {
            for item in delta {
                let is_same = |last: &&mut Value| {
                    item["index"].is_number()
                        && last["index"] == item["index"]
                        && last["type"] == item["type"]
                };
                match list.last_mut().filter(is_same) {
                    Some(last) => continue_with(last, item),
                    None => list.push(item),
                }
            }
        }
        (value, delta) => *value = delta,
    }
}

fn continue_field(fields: &mut Map<String, Value>, field: &str, delta: Value) {
    let known = fields.entry(field).or_insert(Value::Null);
    match REPEATED.contains(&field) {
        true if is_given(&delta) => *known = delta,
        true => {}
        false => continue_with(known, delta),
    }
}

/// Returns whether a server has set a value: some send an empty text instead of null.
fn is_given(value: &Value) -> bool {
    !value.is_null() && value != ""
}
