//! The rules of the OpenAI responses API.
//!
//! Each `function_call` is followed by one `function_call_output` with its `call_id`, and so are calls of custom tools. Ids
//! have at most 64 characters and are unique. The id of reasoning begins with `rs`, and the item that it led to follows it:
//! a message, a call or another item of the model, with its own id.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::fields::{Field, Is, may, must, must_or_null, null};
use super::{IMAGES, Report};

/// The longest id.
const MAX_ID: usize = 64;

/// The longest name of a function.
const MAX_NAME: usize = 64;

const STATUS: Is = Is::One(&["in_progress", "completed", "incomplete"]);
const PHASE: Is = Is::One(&["commentary", "final_answer"]);
const CALL: [Field; 8] = [
    must("call_id", Is::Text),
    must("name", Is::Text),
    must("arguments", Is::Text),
    may("id", Is::Text),
    may("status", STATUS),
    null("caller", Is::Object),
    may("namespace", Is::Text),
    may("async", Is::Flag),
];
const CUSTOM: [Field; 7] = [
    must("call_id", Is::Text),
    must("name", Is::Text),
    must("input", Is::Text),
    may("id", Is::Text),
    null("caller", Is::Object),
    may("namespace", Is::Text),
    may("async", Is::Flag),
];
const OUTPUT: [Field; 7] = [
    must("call_id", Is::Text),
    must("output", Is::Content),
    null("id", Is::Text),
    null("status", STATUS),
    null("caller", Is::Object),
    null("name", Is::Text),
    null("namespace", Is::Text),
];
const REASONING: [Field; 5] = [
    must("id", Is::Text),
    must("summary", Is::List),
    may("content", Is::List),
    null("encrypted_content", Is::Text),
    may("status", STATUS),
];

/// The fields of an item of a built-in tool, which the provider runs.
fn built_in(kind: &str) -> Option<Vec<Field>> {
    let status = |words| must("status", Is::One(words));
    let fields = match kind {
        "web_search_call" => vec![
            status(&["in_progress", "searching", "completed", "failed", "incomplete"]),
            must("action", Is::Object),
        ],
        "file_search_call" => vec![
            status(&["in_progress", "searching", "completed", "incomplete", "failed"]),
            must("queries", Is::List),
            null("results", Is::List),
        ],
        "code_interpreter_call" => vec![
            status(&["in_progress", "completed", "incomplete", "interpreting", "failed"]),
            must("container_id", Is::Text),
            must_or_null("code", Is::Text),
            must_or_null("outputs", Is::List),
        ],
        "image_generation_call" => {
            let rest =
                ["action", "background", "output_format", "quality", "revised_prompt", "size"];
            let mut fields = vec![
                status(&["in_progress", "completed", "generating", "failed"]),
                must_or_null("result", Is::Text),
                may("error", Is::Object),
                may("svg_usage", Is::Object),
            ];
            fields.extend(rest.map(|name| null(name, Is::Text)));
            fields
        }
        "mcp_call" => vec![
            must("arguments", Is::Text),
            must("name", Is::Text),
            must("server_label", Is::Text),
            null("approval_request_id", Is::Text),
            null("error", Is::Any),
            null("output", Is::Text),
            may(
                "status",
                Is::One(&["in_progress", "completed", "incomplete", "calling", "failed"]),
            ),
        ],
        "mcp_list_tools" => {
            vec![must("server_label", Is::Text), must("tools", Is::List), null("error", Is::Text)]
        }
        _ => return None,
    };
    Some(fields.into_iter().chain([must("id", Is::Text)]).collect())
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
                let fields =
                    if kind == "function_call_output" { &OUTPUT[..] } else { &OUTPUT[..3] };
                report.fields(&place, item, fields);
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
                report.fields(
                    &place,
                    item,
                    &[must("encrypted_content", Is::Text), null("id", Is::Text)],
                );
            }
            Some(kind) => match built_in(kind) {
                Some(fields) => report.fields(&place, item, &fields),
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
    report.fields(place, item, &REASONING);
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
            report.fields(&place, piece, &[must("text", Is::Text)]);
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
    let (fields, prefix) = if is_custom { (&CUSTOM[..], "ctc") } else { (&CALL[..], "fc") };
    report.fields(place, item, fields);
    report.word(&format!("{place}.call_id"), &item["call_id"], MAX_ID);
    report.word(&format!("{place}.name"), &item["name"], MAX_NAME);
    if item["id"].as_str().is_some_and(|id| !id.starts_with(prefix)) {
        report.add(format!("{place}.id"), format!("does not begin with {prefix}"));
    }
}

fn message(place: &str, item: &Value, report: &mut Report) {
    let (role, content) = (must("role", Is::Text), must("content", Is::Content));
    let fields: &[Field] = match (item["role"].as_str(), item["id"].is_null()) {
        (Some("assistant"), true) => &[role, content, null("phase", PHASE)],
        (Some("assistant"), false) => &[
            role,
            must("id", Is::Text),
            must("content", Is::List),
            must("status", STATUS),
            null("phase", PHASE),
        ],
        _ => &[role, content, may("status", STATUS)],
    };
    report.fields(place, item, fields);
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
    let cache = || null("prompt_cache_breakpoint", Is::Object);
    for (place, kind, part) in report.parts(place, content, kinds) {
        match kind {
            "input_text" => {
                report.fields(&place, part, &[must("text", Is::Text), cache()]);
                report.text(&format!("{place}.text"), &part["text"]);
            }
            "output_text" => {
                let fields = [
                    must("text", Is::Text),
                    must("annotations", Is::List),
                    may("logprobs", Is::List),
                ];
                report.fields(&place, part, &fields);
                report.text(&format!("{place}.text"), &part["text"]);
                for (at, annotation) in
                    part["annotations"].as_array().into_iter().flatten().enumerate()
                {
                    annotated(&format!("{place}.annotations[{at}]"), annotation, report);
                }
            }
            "refusal" => {
                report.fields(&place, part, &[must("refusal", Is::Text)]);
                report.text(&format!("{place}.refusal"), &part["refusal"]);
            }
            "input_image" => {
                let details = Is::One(&["auto", "low", "high", "original"]);
                let fields = [
                    must("detail", details),
                    null("image_url", Is::Text),
                    null("file_id", Is::Text),
                    cache(),
                ];
                report.fields(&place, part, &fields);
                if !part["file_id"].is_string() {
                    report.url(&format!("{place}.image_url"), &part["image_url"], &IMAGES);
                }
            }
            _ => file(&place, part, report),
        }
    }
}

fn file(place: &str, part: &Value, report: &mut Report) {
    let fields = [
        may("detail", Is::One(&["auto", "low", "high"])),
        may("filename", Is::Text),
        null("file_id", Is::Text),
        may("file_data", Is::Text),
        may("file_url", Is::Text),
        may("prompt_cache_breakpoint", Is::Object),
    ];
    report.fields(place, part, &fields);
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
    let (texts, numbers): (&[&'static str], &[&'static str]) = match annotation["type"].as_str() {
        Some("url_citation") => (&["title", "url"], &["start_index", "end_index"]),
        Some("file_citation") => (&["file_id", "filename"], &["index"]),
        Some("file_path") => (&["file_id"], &["index"]),
        Some("container_file_citation") => {
            (&["container_id", "file_id", "filename"], &["start_index", "end_index"])
        }
        _ => return report.add(format!("{place}.type"), "is not an annotation"),
    };
    let fields: Vec<Field> = texts
        .iter()
        .map(|name| must(name, Is::Text))
        .chain(numbers.iter().map(|name| must(name, Is::Any)))
        .collect();
    report.fields(place, annotation, &fields);
    for name in numbers.iter().filter(|name| !annotation[**name].is_i64()) {
        report.add(format!("{place}.{name}"), "is not a number");
    }
}
