//! The rules for server tools, which the provider runs itself.
//!
//! A turn lasts until a user says something; results of the program's tools do not end it. Each call has one result, after it. A
//! call without a result is accepted in the last turn only: at the end of the model's message, or while its code waits for
//! a tool of the program. The caller of a tool is a call before it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::Report;

const TOOLS: &str = "advisor|web_search|web_fetch|code_execution|bash_code_execution|\
    text_editor_code_execution|tool_search_tool_regex|tool_search_tool_bm25";

pub(super) fn is_block(kind: &str) -> bool {
    let stem = kind.strip_suffix("_tool_result");
    let is_result = stem.is_some_and(|stem| {
        TOOLS.split('|').any(|tool| tool == stem) || matches!(stem, "mcp" | "tool_search")
    });
    is_result
        || matches!(kind, "server_tool_use" | "mcp_tool_use" | "container_upload" | "compaction")
}

pub(super) fn block<'a>(
    place: &str,
    block: &'a Value,
    seen: &mut BTreeSet<&'a str>,
    report: &mut Report,
) {
    let kind = block["type"].as_str().unwrap_or_default();
    match kind {
        "server_tool_use" | "mcp_tool_use" => {
            let id = block["id"].as_str().unwrap_or_default();
            if kind == "server_tool_use" {
                let rule =
                    format!("id name:{TOOLS} input:object caller?:object cache_control?~:object");
                report.fields(place, block, &rule);
                if !id.starts_with("srvtoolu_") {
                    report.add(format!("{place}.id"), "does not begin with srvtoolu_");
                }
            } else {
                report.fields(
                    place,
                    block,
                    "id name server_name input:object cache_control?~:object",
                );
            }
            report.word(&format!("{place}.id"), &block["id"], usize::MAX);
            if !seen.insert(id) {
                report.add(format!("{place}.id"), format!("the id {id:?} occurs twice"));
            }
        }
        "container_upload" => report.fields(place, block, "file_id cache_control?~:object"),
        "compaction" => {
            let rule = "content?~ encrypted_content?~ signature?~ tool_changes?~:list \
                cache_control?~:object";
            report.fields(place, block, rule);
            if block["content"] == "" {
                report.add(format!("{place}.content"), "is empty");
            }
        }
        "mcp_tool_result" => {
            let rule = "tool_use_id content?:content is_error?:flag cache_control?~:object";
            report.fields(place, block, rule);
        }
        _ => {
            let has_caller = matches!(kind, "web_search_tool_result" | "web_fetch_tool_result");
            let caller = if has_caller { "caller?:object" } else { "" };
            let rule = format!("tool_use_id content:any cache_control?~:object {caller}");
            report.fields(place, block, &rule);
            content(place, kind, &block["content"], report);
        }
    }
    caller(place, &block["caller"], report);
}

/// Checks what a search found, and that every other result is an object of its type.
fn content(place: &str, kind: &str, content: &Value, report: &mut Report) {
    let place = format!("{place}.content");
    if let (true, Some(found)) = (kind == "web_search_tool_result", content.as_array()) {
        for (at, found) in found.iter().enumerate() {
            let place = format!("{place}[{at}]");
            if found["type"] != "web_search_result" {
                report.add(format!("{place}.type"), "is not \"web_search_result\"");
            }
            report.fields(&place, found, "url title encrypted_content page_age?~");
        }
        return;
    }
    let stem = kind.strip_suffix("_tool_result").unwrap_or_default();
    if !content["type"].as_str().is_some_and(|kind| kind.starts_with(stem)) {
        report.add(format!("{place}.type"), "is not a result of this tool");
    }
}

pub(super) fn caller(place: &str, caller: &Value, report: &mut Report) {
    if caller.is_null() {
        return;
    }
    let place = format!("{place}.caller");
    match caller["type"].as_str() {
        Some("direct") => report.fields(&place, caller, ""),
        Some("code_execution_20250825" | "code_execution_20260120") => {
            report.fields(&place, caller, "tool_id");
        }
        _ => report.add(format!("{place}.type"), "is not a caller"),
    }
}

/// A call of a server tool that has no result yet.
struct Open<'a> {
    place: String,
    id: &'a str,
    /// Whether only calls come after it in its message.
    is_at_end: bool,
    message: usize,
}

pub(super) fn check(messages: &[Value], report: &mut Report) {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut called: BTreeSet<&str> = BTreeSet::new();
    // The calls whose code called a tool in the newest message of the model, and waits for it.
    let mut waits: BTreeSet<&str> = BTreeSet::new();
    let mut newest = 0;
    for (at, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        if message["role"] != "assistant" {
            if !message["content"].is_array()
                || blocks.iter().any(|block| block["type"] != "tool_result")
            {
                unanswered(open.drain(..), report);
                called.clear();
            }
            continue;
        }
        newest = at;
        waits.clear();
        for (place_in, block) in blocks.iter().enumerate() {
            let place = format!("messages[{at}].content[{place_in}]");
            let kind = block["type"].as_str().unwrap_or_default();
            if let Some(id) = block["caller"]["tool_id"].as_str() {
                if !called.contains(id) {
                    report.add(
                        format!("{place}.caller"),
                        format!("{id:?} has not been called in this turn"),
                    );
                }
                waits.insert(id);
            }
            if matches!(kind, "server_tool_use" | "mcp_tool_use") {
                let id = block["id"].as_str().unwrap_or_default();
                let is_call = |block: &Value| {
                    block["type"].as_str().is_some_and(|kind| kind.ends_with("tool_use"))
                };
                let is_at_end = blocks[place_in..].iter().all(is_call);
                called.insert(id);
                open.push(Open { place, id, is_at_end, message: at });
            } else if kind.ends_with("_tool_result") {
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                match open.iter().position(|open| open.id == id) {
                    Some(found) => drop(open.remove(found)),
                    None => {
                        report.add(place, format!("no call {id:?} of this turn waits for a result"))
                    }
                }
            }
        }
    }
    let left = open.into_iter();
    let left = left
        .filter(|open| !((open.message == newest && open.is_at_end) || waits.contains(open.id)));
    unanswered(left, report);
}

fn unanswered<'a>(open: impl Iterator<Item = Open<'a>>, report: &mut Report) {
    for Open { place, id, .. } in open {
        report.add(place, format!("no result for the call {id:?} in this turn"));
    }
}
