//! The rules of the Anthropic messages API.
//!
//! The first message is a user's, and the roles alternate. Each `tool_use` of a message has one
//! `tool_result` in the next message. Results come first in their message, and after a call of the model come only calls
//! and reasoning. Texts are not blank, and an error has a text. Call ids match `^[a-zA-Z0-9_-]+$` and are unique.
//! Reasoning is signed, does not end a message, and no `thinking` follows another. A tool that the provider runs has its
//! result in the same turn, unless the turn is the last.

mod server_tools;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{IMAGES, Report};

/// The longest name of a tool.
const MAX_NAME: usize = 128;

const RESULT: &str =
    "tool_use_id content?:content is_error?:flag toolset_name?~ cache_control?~:object";
const CALL: &str = "id name input:object caller?:object toolset_name?~ cache_control?~:object";
const DOCUMENT: &str = "source:object title?~ context?~ citations?~:object cache_control?~:object";

pub(super) fn check(request: &Value, report: &mut Report) {
    system(&request["system"], report);
    let container = &request["container"];
    if !(container.is_null()
        || container.is_object()
        || container.as_str().is_some_and(|id| !id.is_empty()))
    {
        report.add("container", "is not an id");
    }
    let messages = report.list(request, "messages");
    let mut before = None;
    let mut seen = BTreeSet::new();
    // The calls of the previous message.
    let mut calls: Vec<(String, &str)> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = message["role"].as_str().unwrap_or_default();
        report.fields(&place, message, "role content:content");
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
    server_tools::check(messages, report);
}

fn system(system: &Value, report: &mut Report) {
    match system {
        Value::Null => {}
        Value::Array(blocks) => {
            for (at, block) in blocks.iter().enumerate() {
                let place = format!("system[{at}]");
                if block["type"] != "text" {
                    report.add(format!("{place}.type"), "is not \"text\"");
                }
                text(&place, block, report);
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
            content_block(&place, block, report);
            continue;
        }
        report.fields(&place, block, RESULT);
        let place = format!("{place}.content");
        let content = &block["content"];
        if block["is_error"] == true
            && (content.is_null() || content == "" || content == &Value::Array(Vec::new()))
        {
            report.add(&place, "is empty, but an error needs a text");
        }
        for (at, block) in content.as_array().into_iter().flatten().enumerate() {
            content_block(&format!("{place}[{at}]"), block, report);
        }
    }
}

fn text(place: &str, block: &Value, report: &mut Report) {
    report.fields(place, block, "text citations?~:list cache_control?~:object");
    report.text(&format!("{place}.text"), &block["text"]);
    for (at, citation) in block["citations"].as_array().into_iter().flatten().enumerate() {
        cited(&format!("{place}.citations[{at}]"), citation, report);
    }
}

fn cited(place: &str, citation: &Value, report: &mut Report) {
    let rule = match citation["type"].as_str() {
        Some("char_location") => {
            "cited_text document_title~ document_index:count start_char_index:count \
             end_char_index:count"
        }
        Some("page_location") => {
            "cited_text document_title~ document_index:count start_page_number:count \
             end_page_number:count"
        }
        Some("content_block_location") => {
            "cited_text document_title~ document_index:count start_block_index:count \
             end_block_index:count"
        }
        Some("search_result_location") => {
            "cited_text source title~ search_result_index:count start_block_index:count \
             end_block_index:count"
        }
        Some("web_search_result_location") => "cited_text url encrypted_index title~",
        _ => return report.add(format!("{place}.type"), "is not a citation"),
    };
    report.fields(place, citation, rule);
}

/// Checks a text, an image or a document.
fn content_block(place: &str, block: &Value, report: &mut Report) {
    let media: &[&str] = match block["type"].as_str() {
        Some("text") => return text(place, block, report),
        Some("image") => {
            report.fields(
                place,
                block,
                "source:object transformations?~:object cache_control?~:object",
            );
            &IMAGES
        }
        Some("document") => {
            report.fields(place, block, DOCUMENT);
            &["application/pdf"]
        }
        Some("search_result") => {
            let rule = "content:list source title citations?:object cache_control?~:object";
            return report.fields(place, block, rule);
        }
        Some("container_upload") => {
            return report.fields(place, block, "file_id cache_control?~:object");
        }
        _ => return report.add(format!("{place}.type"), "is not accepted here"),
    };
    let source = &block["source"];
    let place = format!("{place}.source");
    match source["type"].as_str() {
        Some("base64") => {
            report.fields(&place, source, "media_type data");
            if !source["media_type"].as_str().is_some_and(|found| media.contains(&found)) {
                report.add(format!("{place}.media_type"), "is not accepted");
            }
            report.base64(&place, source["data"].as_str().unwrap_or_default());
        }
        Some("url") => {
            report.fields(&place, source, "url");
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
    let mut before = "";
    for (at, block) in blocks.iter().enumerate() {
        let place = format!("{place}.content[{at}]");
        let is_end = at + 1 == blocks.len();
        let kind = block["type"].as_str().unwrap_or_default();
        let is_reasoning = matches!(kind, "thinking" | "redacted_thinking");
        if before == "tool_use" && kind != "tool_use" && !is_reasoning {
            report.add(&place, "content after a call");
        }
        if before == "thinking" && kind == "thinking" {
            report.add(&place, "reasoning right after reasoning");
        }
        before = kind;
        match kind {
            "text" => {
                text(&place, block, report);
                let text = block["text"].as_str().unwrap_or_default();
                if is_last && is_end && text.ends_with(char::is_whitespace) {
                    report.add(place, "the last text ends with white space");
                }
            }
            "thinking" | "redacted_thinking" => {
                if kind == "thinking" {
                    report.fields(&place, block, "thinking signature");
                    report.text(&format!("{place}.signature"), &block["signature"]);
                } else {
                    report.fields(&place, block, "data");
                    report.text(&format!("{place}.data"), &block["data"]);
                }
                if is_end {
                    report.add(place, "the message ends with reasoning");
                }
            }
            "tool_use" => {
                report.fields(&place, block, CALL);
                server_tools::caller(&place, &block["caller"], report);
                report.word(&format!("{place}.id"), &block["id"], usize::MAX);
                report.word(&format!("{place}.name"), &block["name"], MAX_NAME);
                let id = block["id"].as_str().unwrap_or_default();
                if !seen.insert(id) {
                    report.add(format!("{place}.id"), format!("the id {id:?} occurs twice"));
                }
                calls.push((place, id));
            }
            kind if server_tools::is_block(kind) => {
                server_tools::block(&place, block, seen, report)
            }
            _ => report
                .add(format!("{place}.type"), format!("{kind:?} is not accepted from a model")),
        }
    }
    calls
}
