//! The rules of the OpenAI chat completions API.
//!
//! A message with `tool_calls` is directly followed by one message of the role `tool` for each call.
//! Messages of that role occur nowhere else. Content is not empty, except in results and in messages
//! with calls. Fields that compatible servers added are accepted: the reasoning of a message, what else belongs to a call.

use serde_json::Value;

use super::{IMAGES, Report};

/// The longest call id, by the error messages of the API. It used to be 40.
const MAX_ID: usize = 64;

/// The longest name of a function.
const MAX_NAME: usize = 64;

const MODEL: &str = "role content?~:content tool_calls?:list refusal?~ audio?~:object name? \
    function_call?~:object reasoning_content? reasoning? reasoning_text? reasoning_details?:any";

pub(super) fn check(request: &Value, report: &mut Report) {
    let messages = report.list(request, "messages");
    // The calls without a result so far, with their places.
    let mut open: Vec<(String, &str)> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            result(&place, message, &mut open, report);
            continue;
        }
        unanswered(&mut open, report);
        if role != "assistant" {
            report.fields(&place, message, "role content:content name?");
        }
        match role {
            "system" | "developer" => content(&place, message, &["text"], report),
            "user" => {
                let kinds = ["text", "image_url", "input_audio", "file"];
                content(&place, message, &kinds, report);
            }
            "assistant" => open = model(&place, message, report),
            _ => report.add(format!("{place}.role"), format!("{role:?} is not a role")),
        }
    }
    unanswered(&mut open, report);
}

fn unanswered(open: &mut Vec<(String, &str)>, report: &mut Report) {
    for (place, id) in open.drain(..) {
        report.add(place, format!("no result for the call {id:?} follows"));
    }
}

fn result<'a>(
    place: &str,
    message: &'a Value,
    open: &mut Vec<(String, &'a str)>,
    report: &mut Report,
) {
    report.fields(place, message, "role content:content tool_call_id name?");
    let id = message["tool_call_id"].as_str().unwrap_or_default();
    match open.iter().position(|(_, call)| *call == id) {
        Some(found) => drop(open.remove(found)),
        None => report.add(place, format!("no call {id:?} right before this result")),
    }
    // An empty string is a valid result.
    if !message["content"].is_string() {
        content(place, message, &["text"], report);
    }
}

/// Checks content that must be a text or a list of parts of these kinds.
fn content(place: &str, message: &Value, kinds: &[&str], report: &mut Report) {
    let parts = report.parts(&format!("{place}.content"), &message["content"], kinds);
    for (place, kind, part) in parts {
        match kind {
            "text" => {
                report.fields(&place, part, "text prompt_cache_breakpoint?:object");
                report.text(&format!("{place}.text"), &part["text"]);
            }
            "refusal" => {
                report.fields(&place, part, "refusal");
                report.text(&format!("{place}.refusal"), &part["refusal"]);
            }
            "image_url" => {
                report.fields(&place, part, "image_url:object prompt_cache_breakpoint?:object");
                let rule = "url detail?:auto|low|high|original";
                report.fields(&format!("{place}.image_url"), &part["image_url"], rule);
                let place = format!("{place}.image_url.url");
                report.url(&place, &part["image_url"]["url"], &IMAGES);
            }
            "file" if part["file"]["file_id"].is_string() => {}
            "file" => {
                report.fields(&place, part, "file:object prompt_cache_breakpoint?:object");
                let rule = "file_data filename";
                report.fields(&format!("{place}.file"), &part["file"], rule);
                report.text(&format!("{place}.file.filename"), &part["file"]["filename"]);
                let place = format!("{place}.file.file_data");
                report.url(&place, &part["file"]["file_data"], &[]);
            }
            _ => {}
        }
    }
}

/// Checks an assistant message and returns its calls.
fn model<'a>(place: &str, message: &'a Value, report: &mut Report) -> Vec<(String, &'a str)> {
    report.fields(place, message, MODEL);
    let calls = &message["tool_calls"];
    let may_be_null = !calls.is_null()
        || ["refusal", "audio", "function_call"].iter().any(|field| !message[*field].is_null());
    if !(may_be_null && (message["content"].is_null() || message["content"] == "")) {
        content(place, message, &["text", "refusal"], report);
    }
    if calls.is_null() {
        return Vec::new();
    }
    let Some(calls) = calls.as_array().filter(|calls| !calls.is_empty()) else {
        report.add(format!("{place}.tool_calls"), "is not a list, or is empty");
        return Vec::new();
    };
    let mut open: Vec<(String, &str)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let place = format!("{place}.tool_calls[{at}]");
        report.word(&format!("{place}.id"), &call["id"], MAX_ID);
        let (kind, input) = match call["type"].as_str() {
            Some("function") => ("function", "arguments"),
            Some("custom") => ("custom", "input"),
            _ => {
                report.add(format!("{place}.type"), "is neither \"function\" nor \"custom\"");
                ("function", "arguments")
            }
        };
        // Gemini's server adds the extra content.
        report.fields(&place, call, &format!("id {kind}:object extra_content?:object"));
        let function = &call[kind];
        report.fields(&format!("{place}.{kind}"), function, &format!("name {input}"));
        report.word(&format!("{place}.{kind}.name"), &function["name"], MAX_NAME);
        let id = call["id"].as_str().unwrap_or_default();
        if open.iter().any(|(_, other)| *other == id) {
            report.add(format!("{place}.id"), format!("the id {id:?} occurs twice"));
        }
        open.push((place, id));
    }
    open
}
