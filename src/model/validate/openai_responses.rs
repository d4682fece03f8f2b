//! The rules of the OpenAI responses API.
//!
//! Each `function_call` is followed by one `function_call_output` with its `call_id`. Call ids have
//! at most 64 characters. The id of reasoning begins with `rs` and is unique, and a message or a call
//! of the model follows it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{IMAGES, Report};

/// The longest id of a call.
const MAX_ID: usize = 64;

/// The longest name of a function.
const MAX_NAME: usize = 64;

pub(super) fn check(request: &Value, report: &mut Report) {
    if request["input"].is_string() {
        return report.text("input", &request["input"]);
    }
    let items = report.list(request, "input");
    // The calls with their places, and whether a result was found.
    let mut calls: BTreeMap<&str, (String, bool)> = BTreeMap::new();
    let mut reasoning = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let place = format!("input[{at}]");
        match item["type"].as_str() {
            None | Some("message") => message(&place, item, report),
            Some("function_call") => {
                call(&place, item, report);
                let id = item["call_id"].as_str().unwrap_or_default();
                if calls.insert(id, (place.clone(), false)).is_some() {
                    report.add(format!("{place}.call_id"), format!("the id {id:?} occurs twice"));
                }
            }
            Some("function_call_output") => {
                let id = item["call_id"].as_str().unwrap_or_default();
                match calls.get_mut(id) {
                    None => report.add(&place, format!("no call {id:?} before this result")),
                    Some((_, true)) => {
                        report.add(&place, format!("a second result for the call {id:?}"));
                    }
                    Some((_, is_answered)) => *is_answered = true,
                }
                if !item["output"].is_string() {
                    let kinds = ["input_text", "input_image", "input_file"];
                    parts(&format!("{place}.output"), &item["output"], &kinds, report);
                }
            }
            Some("reasoning") => {
                let id = item["id"].as_str().unwrap_or_default();
                if !id.starts_with("rs") {
                    report.add(format!("{place}.id"), format!("{id:?} does not begin with rs"));
                }
                if !reasoning.insert(id) {
                    report.add(format!("{place}.id"), format!("the id {id:?} occurs twice"));
                }
                if !item["summary"].is_array() {
                    report.add(format!("{place}.summary"), "is not a list");
                }
                if !items.get(at + 1).is_some_and(is_of_model) {
                    report.add(place, "no message or call of the model follows this reasoning");
                }
            }
            Some(kind) => report.add(format!("{place}.type"), format!("{kind:?} is not an item")),
        }
    }
    for (id, (place, is_answered)) in calls {
        if !is_answered {
            report.add(place, format!("no result for the call {id:?} follows"));
        }
    }
}

fn is_of_model(item: &Value) -> bool {
    match item["type"].as_str() {
        None | Some("message") => item["role"] == "assistant",
        kind => matches!(kind, Some("reasoning" | "function_call")),
    }
}

fn call(place: &str, item: &Value, report: &mut Report) {
    report.word(&format!("{place}.call_id"), &item["call_id"], MAX_ID);
    report.word(&format!("{place}.name"), &item["name"], MAX_NAME);
    report.arguments(&format!("{place}.arguments"), &item["arguments"]);
    if item["id"].as_str().is_some_and(|id| !id.starts_with("fc")) {
        report.add(format!("{place}.id"), "does not begin with fc");
    }
}

fn message(place: &str, item: &Value, report: &mut Report) {
    let kinds: &[&str] = match item["role"].as_str() {
        Some("user" | "system" | "developer") => &["input_text", "input_image", "input_file"],
        Some("assistant") => &["output_text", "refusal"],
        _ => return report.add(format!("{place}.role"), "is not a role"),
    };
    parts(&format!("{place}.content"), &item["content"], kinds, report);
}

/// Checks content that must be a text or a list of parts of these kinds.
fn parts(place: &str, content: &Value, kinds: &[&str], report: &mut Report) {
    for (place, kind, part) in report.parts(place, content, kinds) {
        match kind {
            "input_text" | "output_text" => report.text(&format!("{place}.text"), &part["text"]),
            "refusal" => report.text(&format!("{place}.refusal"), &part["refusal"]),
            _ if part["file_id"].is_string() => {}
            "input_image" => {
                report.url(&format!("{place}.image_url"), &part["image_url"], &IMAGES);
            }
            _ if part["file_url"].is_string() => {
                report.url(&format!("{place}.file_url"), &part["file_url"], &[]);
            }
            _ => {
                let data = format!("{place}.file_data");
                report.url(&data, &part["file_data"], &[]);
            }
        }
    }
}
