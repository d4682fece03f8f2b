//! The rules of the Anthropic messages API.
//!
//! The first message is a user's, and the roles alternate. Each `tool_use` of a message has one
//! `tool_result` in the next message. Results come first in their message, calls last in theirs.
//! Texts are not blank, and an error has a text. Call ids match `^[a-zA-Z0-9_-]+$` and are unique.
//! Reasoning is signed and does not end a message.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{IMAGES, Report};

/// The longest name of a tool.
const MAX_NAME: usize = 128;

pub(super) fn check(request: &Value, report: &mut Report) {
    system(&request["system"], report);
    let messages = report.list(request, "messages");
    let mut before = None;
    let mut seen = BTreeSet::new();
    // The calls of the previous message.
    let mut calls: Vec<(String, &str)> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = message["role"].as_str().unwrap_or_default();
        match (role, before) {
            ("assistant", None) => report.add(&place, "the first message is not a user message"),
            ("user" | "assistant", Some(before)) if before == role => {
                report.add(&place, format!("the role {role} occurs twice in a row"));
            }
            ("user" | "assistant", _) => {}
            _ => report.add(format!("{place}.role"), format!("{role:?} is not a role")),
        }
        before = Some(role);
        let is_last = at + 1 == messages.len();
        let blocks = blocks(&place, message, is_last && role == "assistant", report);
        answers(&place, blocks, std::mem::take(&mut calls), report);
        match role {
            "assistant" => calls = model(&place, blocks, &mut seen, is_last, report),
            _ => user(&place, blocks, report),
        }
    }
    for (place, _) in calls {
        report.add(place, "a call without a result in the next message");
    }
}

fn system(system: &Value, report: &mut Report) {
    match system {
        Value::Null => {}
        Value::Array(blocks) => {
            for (at, block) in blocks.iter().enumerate() {
                if block["type"] != "text" {
                    report.add(format!("system[{at}].type"), "is not \"text\"");
                }
                report.text(&format!("system[{at}].text"), &block["text"]);
            }
        }
        text => report.text("system", text),
    }
}

/// Returns the blocks of a message; none if its content is a text.
fn blocks<'a>(
    place: &str,
    message: &'a Value,
    may_be_empty: bool,
    report: &mut Report,
) -> &'a [Value] {
    let content = &message["content"];
    let place = format!("{place}.content");
    let Some(blocks) = content.as_array() else {
        if !(may_be_empty && content == "") {
            report.text(&place, content);
        }
        return &[];
    };
    if blocks.is_empty() && !may_be_empty {
        report.add(place, "is empty");
    }
    blocks
}

/// Checks that this message has one result for each call of the previous one, before other content.
fn answers(place: &str, blocks: &[Value], calls: Vec<(String, &str)>, report: &mut Report) {
    let mut open: Vec<_> = calls;
    let mut others = false;
    for (at, block) in blocks.iter().enumerate() {
        let place = format!("{place}.content[{at}]");
        if block["type"] != "tool_result" {
            others = true;
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        match open.iter().position(|(_, call)| *call == id) {
            Some(found) => drop(open.remove(found)),
            None => report.add(&place, format!("no call {id:?} in the previous message")),
        }
        if others {
            report.add(place, "a result after other content");
        }
    }
    for (place, _) in open {
        report.add(place, "a call without a result in the next message");
    }
}

fn user(place: &str, blocks: &[Value], report: &mut Report) {
    for (at, block) in blocks.iter().enumerate() {
        let place = format!("{place}.content[{at}]");
        if block["type"] != "tool_result" {
            said(&place, block, report);
            continue;
        }
        let place = format!("{place}.content");
        let content = &block["content"];
        if block["is_error"] == true
            && (content.is_null() || content == "" || content == &Value::Array(Vec::new()))
        {
            report.add(&place, "is empty, but an error needs a text");
        }
        match content {
            Value::Null | Value::String(_) => {}
            Value::Array(blocks) => {
                for (at, block) in blocks.iter().enumerate() {
                    said(&format!("{place}[{at}]"), block, report);
                }
            }
            _ => report.add(place, "is neither a string nor a list"),
        }
    }
}

/// Checks a text, an image or a document.
fn said(place: &str, block: &Value, report: &mut Report) {
    let media: &[&str] = match block["type"].as_str() {
        Some("text") => return report.text(&format!("{place}.text"), &block["text"]),
        Some("image") => &IMAGES,
        Some("document") => &["application/pdf"],
        Some("search_result") => return,
        _ => return report.add(format!("{place}.type"), "is not accepted here"),
    };
    let source = &block["source"];
    let place = format!("{place}.source");
    match source["type"].as_str() {
        Some("base64") => {
            if !source["media_type"].as_str().is_some_and(|found| media.contains(&found)) {
                report.add(format!("{place}.media_type"), "is not accepted");
            }
            report.base64(&place, source["data"].as_str().unwrap_or_default());
        }
        Some("url") => {
            if !source["url"].as_str().is_some_and(|url| url.starts_with("https://")) {
                report.add(place, "is not an https URL");
            }
        }
        Some("file" | "text" | "content") => {}
        _ => report.add(place, "is not a source"),
    }
}

/// Checks an assistant message and returns its calls.
fn model<'a>(
    place: &str,
    blocks: &'a [Value],
    seen: &mut BTreeSet<&'a str>,
    is_last: bool,
    report: &mut Report,
) -> Vec<(String, &'a str)> {
    let mut calls = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let place = format!("{place}.content[{at}]");
        let is_end = at + 1 == blocks.len();
        let kind = block["type"].as_str().unwrap_or_default();
        if !calls.is_empty() && kind != "tool_use" {
            report.add(&place, "content after a call");
        }
        match kind {
            "text" => {
                report.text(&format!("{place}.text"), &block["text"]);
                let text = block["text"].as_str().unwrap_or_default();
                if is_last && is_end && text.ends_with(char::is_whitespace) {
                    report.add(place, "the last text ends with white space");
                }
            }
            "thinking" | "redacted_thinking" => {
                let field = if kind == "thinking" { "signature" } else { "data" };
                report.text(&format!("{place}.{field}"), &block[field]);
                if is_end {
                    report.add(place, "the message ends with reasoning");
                }
            }
            "tool_use" => {
                report.word(&format!("{place}.id"), &block["id"], usize::MAX);
                report.word(&format!("{place}.name"), &block["name"], MAX_NAME);
                if !block["input"].is_object() {
                    report.add(format!("{place}.input"), "is not an object");
                }
                let id = block["id"].as_str().unwrap_or_default();
                if !seen.insert(id) {
                    report.add(format!("{place}.id"), format!("the id {id:?} occurs twice"));
                }
                calls.push((place, id));
            }
            _ => report
                .add(format!("{place}.type"), format!("{kind:?} is not accepted from a model")),
        }
    }
    calls
}
