//! A response as a message.

use serde_json::Value;
use talktree::{Extra, Message, Part};

use crate::answer;
use crate::input::arguments_of;

pub(super) fn message(response: &Value) -> Message {
    let mut parts = Vec::new();
    for item in response["output"].as_array().into_iter().flatten() {
        match item["type"].as_str() {
            Some("message") => parts.extend(texts(item)),
            Some("function_call") => parts.push(call(item, "arguments")),
            Some("custom_tool_call") => parts.push(call(item, "input")),
            Some("reasoning") => parts.push(reasoning(item)),
            _ => parts.extend(answer::other(item)),
        }
    }
    let fields = ["id", "model", "status", "usage"].map(|field| (field, response[field].clone()));
    answer::message("openai", parts, fields)
}

/// Returns the texts of a message. Each has the id of the item, so that they become one item again.
fn texts(item: &Value) -> Vec<Part> {
    let of_item = answer::fields(item, &["id", "status", "phase"]);
    let pieces = item["content"].as_array().into_iter().flatten();
    let texts = pieces.filter_map(|piece| {
        let (text, of_piece) = match piece["type"].as_str() {
            Some("output_text") => (&piece["text"], annotations(piece)),
            Some("refusal") => (&piece["refusal"], answer::mark("refusal")),
            _ => return answer::other(piece),
        };
        answer::text_with(text, of_item.clone().into_iter().chain(of_piece).collect())
    });
    texts.collect()
}

fn annotations(piece: &Value) -> Extra {
    match piece["annotations"].as_array() {
        Some(list) if !list.is_empty() => answer::fields(piece, &["annotations"]),
        _ => Extra::new(),
    }
}

fn call(item: &Value, input: &str) -> Part {
    let name = item["name"].as_str().unwrap_or_default();
    let id = item["call_id"].as_str().unwrap_or_default();
    let text = item[input].as_str().unwrap_or_default();
    let is_custom = input == "input";
    let given = if is_custom { Value::from(text).into() } else { arguments_of(text) };
    let mut extra = answer::fields(item, &["id", "status", "namespace", "caller"]);
    if is_custom {
        answer::mark_custom(&mut extra);
    }
    answer::call(name, id, given, extra)
}

/// Returns the summaries as one part; of a model that shows its reasoning, the reasoning.
fn reasoning(item: &Value) -> Part {
    let texts = |field: &str| -> Vec<String> {
        let list = item[field].as_array().into_iter().flatten();
        list.filter_map(|piece| piece["text"].as_str().map(str::to_owned)).collect()
    };
    let summaries = texts("summary");
    let mut fields = vec!["id", "encrypted_content", "status"];
    // The text joins them; a request needs each by itself.
    if summaries.len() > 1 {
        fields.push("summary");
    }
    let shown = texts("content");
    if !shown.is_empty() {
        fields.push("content");
    }
    let text = if summaries.is_empty() { shown } else { summaries }.join("\n\n");
    answer::reasoning(&text, item, &fields)
}
