//! The rules of the OpenAI responses API.
//!
//! Each `function_call` is followed by one `function_call_output` with its `call_id`, and so are calls of custom tools. Ids
//! have at most 64 characters and are unique. The id of reasoning begins with `rs`, and the item that it led to follows it:
//! a message, a call or another item of the model, with its own id.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{IMAGES, Report};

/// The longest id.
const MAX_ID: usize = 64;

/// The longest name of a function.
const MAX_NAME: usize = 64;

const MESSAGE: &str =
    "id role content:list status:in_progress|completed|incomplete phase?~:commentary|final_answer";
const CALL: &str = "call_id name arguments id? status?:in_progress|completed|incomplete \
    caller?~:object namespace? async?:flag";
const CUSTOM: &str = "call_id name input id? caller?~:object namespace? async?:flag";
const OUTPUT: &str = "call_id output:content id?~ status?~:in_progress|completed|incomplete \
    caller?~:object name?~ namespace?~";
const REASONING: &str = "id summary:list content?:list encrypted_content?~ \
    status?:in_progress|completed|incomplete";

/// The fields of the items of built-in tools, which the provider runs.
const BUILT_IN: [(&str, &str); 6] = [
    (
        "web_search_call",
        "id status:in_progress|searching|completed|failed|incomplete action:object",
    ),
    (
        "file_search_call",
        "id status:in_progress|searching|completed|incomplete|failed queries:list results?~:list",
    ),
    (
        "code_interpreter_call",
        "id status:in_progress|completed|incomplete|interpreting|failed container_id code~ outputs~:list",
    ),
    (
        "image_generation_call",
        "id status:in_progress|completed|generating|failed result~ error?:object svg_usage?:object \
         action?~ background?~ output_format?~ quality?~ revised_prompt?~ size?~",
    ),
    (
        "mcp_call",
        "id arguments name server_label approval_request_id?~ error?~:any output?~ \
         status?:in_progress|completed|incomplete|calling|failed",
    ),
    ("mcp_list_tools", "id server_label tools:list error?~"),
];

fn built_in(kind: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(name, _)| *name == kind).map(|(_, rule)| *rule)
}

pub(super) fn check(request: &Value, report: &mut Report) {
    if request["input"].is_string() {
        return report.text("input", &request["input"]);
    }
    let items = report.list(request, "input");
    // The calls with their places, their types, and whether a result was found.
    let mut calls: BTreeMap<&str, (String, &str, bool)> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let place = format!("input[{at}]");
        if let Some(id) = item["id"].as_str() {
            report.word(&format!("{place}.id"), &item["id"], MAX_ID);
            if !ids.insert(id) {
                report.add(format!("{place}.id"), format!("the id {id:?} occurs twice"));
            }
        }
        if item.get("type").is_some_and(|kind| !kind.is_string()) {
            report.add(format!("{place}.type"), "is not a string");
        }
        match item["type"].as_str() {
            None | Some("message") => message(&place, item, report),
            Some(kind @ ("function_call" | "custom_tool_call")) => {
                call(&place, item, report);
                let id = item["call_id"].as_str().unwrap_or_default();
                if calls.insert(id, (place.clone(), kind, false)).is_some() {
                    report.add(format!("{place}.call_id"), format!("the id {id:?} occurs twice"));
                }
            }
            Some(kind @ ("function_call_output" | "custom_tool_call_output")) => {
                let is_custom = kind == "custom_tool_call_output";
                report.fields(
                    &place,
                    item,
                    if is_custom { "call_id output:content id?~" } else { OUTPUT },
                );
                let id = item["call_id"].as_str().unwrap_or_default();
                match calls.get_mut(id) {
                    Some((_, call, _)) if !kind.starts_with(*call) => {
                        report.add(&place, format!("the call {id:?} is of another type"));
                    }
                    None => report.add(&place, format!("no call {id:?} before this result")),
                    Some((_, _, true)) => {
                        report.add(&place, format!("a second result for the call {id:?}"));
                    }
                    Some((_, _, is_answered)) => *is_answered = true,
                }
                if item["output"].is_array() {
                    let kinds = ["input_text", "input_image", "input_file"];
                    parts(&format!("{place}.output"), &item["output"], &kinds, report);
                }
            }
            Some("reasoning") => reasoning(&place, item, items.get(at + 1), report),
            Some("compaction") => {
                report.fields(&place, item, "encrypted_content id?~");
            }
            Some(kind) => match built_in(kind) {
                Some(rule) => report.fields(&place, item, rule),
                None => report.add(format!("{place}.type"), format!("{kind:?} is not an item")),
            },
        }
    }
    for (id, (place, _, is_answered)) in calls {
        if !is_answered {
            report.add(place, format!("no result for the call {id:?} follows"));
        }
    }
}

fn reasoning(place: &str, item: &Value, next: Option<&Value>, report: &mut Report) {
    report.fields(place, item, REASONING);
    let id = item["id"].as_str().unwrap_or_default();
    if !id.starts_with("rs") {
        report.add(format!("{place}.id"), format!("{id:?} does not begin with rs"));
    }
    for (field, kind) in [("summary", "summary_text"), ("content", "reasoning_text")] {
        for (at, piece) in item[field].as_array().into_iter().flatten().enumerate() {
            let place = format!("{place}.{field}[{at}]");
            if piece["type"] != kind {
                report.add(format!("{place}.type"), format!("is not {kind:?}"));
            }
            report.fields(&place, piece, "text");
        }
    }
    if !next.is_some_and(|next| is_of_model(next) && next["id"].is_string()) {
        report.add(place, "the item that this reasoning led to does not follow with its id");
    }
}

fn is_of_model(item: &Value) -> bool {
    match item["type"].as_str() {
        None | Some("message") => item["role"] == "assistant",
        Some("reasoning" | "function_call" | "custom_tool_call") => true,
        Some(kind) => built_in(kind).is_some(),
    }
}

fn call(place: &str, item: &Value, report: &mut Report) {
    let is_custom = item["type"] == "custom_tool_call";
    let (rule, prefix) = if is_custom { (CUSTOM, "ctc") } else { (CALL, "fc") };
    report.fields(place, item, rule);
    report.word(&format!("{place}.call_id"), &item["call_id"], MAX_ID);
    report.word(&format!("{place}.name"), &item["name"], MAX_NAME);
    if item["id"].as_str().is_some_and(|id| !id.starts_with(prefix)) {
        report.add(format!("{place}.id"), format!("does not begin with {prefix}"));
    }
}

fn message(place: &str, item: &Value, report: &mut Report) {
    let rule = match (item["role"].as_str(), item["id"].is_null()) {
        (Some("assistant"), true) => "role content:content phase?~:commentary|final_answer",
        (Some("assistant"), false) => MESSAGE,
        _ => "role content:content status?:in_progress|completed|incomplete",
    };
    report.fields(place, item, rule);
    if !item["id"].is_null() && item["type"] != "message" {
        report.add(
            format!("{place}.type"),
            "is missing: only the provider's own messages have an id",
        );
    }
    if item["id"].as_str().is_some_and(|id| !id.starts_with("msg")) {
        report.add(format!("{place}.id"), "does not begin with msg");
    }
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
            "input_text" => {
                report.fields(&place, part, "text prompt_cache_breakpoint?~:object");
                report.text(&format!("{place}.text"), &part["text"]);
            }
            "output_text" => {
                report.fields(&place, part, "text annotations:list logprobs?:list");
                report.text(&format!("{place}.text"), &part["text"]);
                for (at, annotation) in
                    part["annotations"].as_array().into_iter().flatten().enumerate()
                {
                    annotated(&format!("{place}.annotations[{at}]"), annotation, report);
                }
            }
            "refusal" => {
                report.fields(&place, part, "refusal");
                report.text(&format!("{place}.refusal"), &part["refusal"]);
            }
            "input_image" => {
                let rule = "detail:auto|low|high|original image_url?~ file_id?~ \
                    prompt_cache_breakpoint?~:object";
                report.fields(&place, part, rule);
                if !part["file_id"].is_string() {
                    report.url(&format!("{place}.image_url"), &part["image_url"], &IMAGES);
                }
            }
            _ => file(&place, part, report),
        }
    }
}

fn file(place: &str, part: &Value, report: &mut Report) {
    let rule = "detail?:auto|low|high filename? file_id?~ file_data? file_url? \
        prompt_cache_breakpoint?:object";
    report.fields(place, part, rule);
    if part["file_id"].is_string() {
        return;
    }
    if part["file_url"].is_string() {
        return report.url(&format!("{place}.file_url"), &part["file_url"], &[]);
    }
    report.text(&format!("{place}.filename"), &part["filename"]);
    report.url(&format!("{place}.file_data"), &part["file_data"], &[]);
}

fn annotated(place: &str, annotation: &Value, report: &mut Report) {
    let rule = match annotation["type"].as_str() {
        Some("url_citation") => "title url start_index:number end_index:number",
        Some("file_citation") => "file_id filename index:number",
        Some("file_path") => "file_id index:number",
        Some("container_file_citation") => {
            "container_id file_id filename start_index:number end_index:number"
        }
        _ => return report.add(format!("{place}.type"), "is not an annotation"),
    };
    report.fields(place, annotation, rule);
}
