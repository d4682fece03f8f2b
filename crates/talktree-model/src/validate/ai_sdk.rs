//! The rules of the AI SDK: what `validateUIMessages` accepts, and what `convertToModelMessages` can read.
//!
//! Roles are `system`, `user` and `assistant`, and only the model's messages may be without parts. A part of a tool has one of
//! seven states, each with the fields that belong to it. Other fields are ignored, as the SDK does.

use serde_json::Value;

use super::Report;

pub(super) fn check(request: &Value, report: &mut Report) {
    for (at, message) in report.list(request, "messages").iter().enumerate() {
        let place = format!("messages[{at}]");
        text(&place, message, "id", report);
        let role = message["role"].as_str().unwrap_or_default();
        if !matches!(role, "system" | "user" | "assistant") {
            report.add(format!("{place}.role"), format!("{role:?} is not a role"));
        }
        let place = format!("{place}.parts");
        let Some(parts) = message["parts"].as_array() else {
            report.add(place, "is not a list");
            continue;
        };
        if parts.is_empty() && role != "assistant" {
            report.add(&place, "is empty");
        }
        for (at, found) in parts.iter().enumerate() {
            part(&format!("{place}[{at}]"), found, report);
        }
    }
}

fn part(place: &str, part: &Value, report: &mut Report) {
    let kind = part["type"].as_str().unwrap_or_default();
    metadata(place, part, "providerMetadata", report);
    match kind {
        "step-start" => {}
        "text" | "reasoning" => {
            text(place, part, "text", report);
            if let Some(state) = part.get("state")
                && state != "streaming"
                && state != "done"
            {
                report.add(format!("{place}.state"), "is neither streaming nor done");
            }
            optional(place, part, &["id"], |id| kind == "text" || id.is_string(), report);
            optional(place, part, &["citations"], |list| kind != "text" || list.is_array(), report);
        }
        "file" => {
            text(place, part, "mediaType", report);
            url(place, part, report);
            optional(place, part, &["filename"], Value::is_string, report);
        }
        "reasoning-file" => {
            text(place, part, "mediaType", report);
            url(place, part, report);
        }
        "custom" => text(place, part, "kind", report),
        "source-url" => {
            ["sourceId", "url"].iter().for_each(|field| text(place, part, field, report));
            optional(place, part, &["title"], Value::is_string, report);
        }
        "source-document" => {
            ["sourceId", "mediaType", "title"]
                .iter()
                .for_each(|field| text(place, part, field, report));
            optional(place, part, &["filename"], Value::is_string, report);
        }
        "steering-message" => steering(place, part, report),
        "dynamic-tool" => {
            text(place, part, "toolName", report);
            tool(place, part, report);
            let is_false = |value: &Value| value == false;
            optional(place, part, &["dynamic"], is_false, report);
        }
        kind if kind.starts_with("tool-") => tool(place, part, report),
        kind if kind.starts_with("data-") => {
            optional(place, part, &["id"], Value::is_string, report);
            if part.get("data").is_none() {
                report.add(format!("{place}.data"), "is missing");
            }
        }
        kind => report.add(format!("{place}.type"), format!("{kind:?} is not a part")),
    }
}

fn steering(place: &str, message: &Value, report: &mut Report) {
    text(place, message, "id", report);
    let place = format!("{place}.parts");
    let Some(parts) = message["parts"].as_array() else {
        return report.add(place, "is not a list");
    };
    for (at, found) in parts.iter().enumerate() {
        let place = format!("{place}[{at}]");
        match found["type"].as_str() {
            Some("text" | "file") => part(&place, found, report),
            _ => report.add(format!("{place}.type"), "is neither text nor a file"),
        }
    }
}

fn tool(place: &str, part: &Value, report: &mut Report) {
    text(place, part, "toolCallId", report);
    metadata(place, part, "callProviderMetadata", report);
    optional(place, part, &["title"], Value::is_string, report);
    optional(place, part, &["toolMetadata"], Value::is_object, report);
    optional(place, part, &["providerExecuted"], Value::is_boolean, report);
    let state = part["state"].as_str().unwrap_or_default();
    let mut never = Vec::new();
    if state != "output-available" {
        never.push("output");
    }
    if state == "output-error" {
        text(place, part, "errorText", report);
    } else {
        never.push("errorText");
    }
    match state {
        "input-streaming" => {
            never.push("approval");
            optional(place, part, &["rawInput"], Value::is_string, report);
        }
        "input-available" => never.push("approval"),
        "approval-requested" => approval(place, part, None, true, report),
        "approval-responded" => approval(place, part, Some(None), true, report),
        "output-available" => {
            approval(place, part, Some(Some(true)), false, report);
            optional(place, part, &["preliminary"], Value::is_boolean, report);
            metadata(place, part, "resultProviderMetadata", report);
        }
        "output-error" => {
            approval(place, part, Some(Some(true)), false, report);
            metadata(place, part, "resultProviderMetadata", report);
        }
        "output-denied" => approval(place, part, Some(Some(false)), true, report),
        _ => return report.add(format!("{place}.state"), format!("{state:?} is not a state")),
    }
    if !matches!(state, "input-streaming" | "output-error") && part.get("input").is_none() {
        report.add(format!("{place}.input"), "is missing");
    }
    if state == "output-available" && part.get("output").is_none() {
        report.add(format!("{place}.output"), "is missing");
    }
    for field in never {
        if part.get(field).is_some() {
            report.add(format!("{place}.{field}"), format!("does not belong to the state {state}"));
        }
    }
}

/// Checks the approval. `answer` says whether it has an answer, and which one.
fn approval(
    place: &str,
    part: &Value,
    answer: Option<Option<bool>>,
    is_needed: bool,
    report: &mut Report,
) {
    let Some(approval) = part.get("approval") else {
        if is_needed {
            report.add(format!("{place}.approval"), "is missing");
        }
        return;
    };
    let place = format!("{place}.approval");
    if !approval.is_object() {
        return report.add(place, "is not an object");
    }
    text(&place, approval, "id", report);
    optional(&place, approval, &["requestReason", "signature"], Value::is_string, report);
    optional(&place, approval, &["isAutomatic"], Value::is_boolean, report);
    let is_right = match answer {
        None => approval.get("approved").is_none() && approval.get("reason").is_none(),
        Some(None) => approval["approved"].is_boolean(),
        Some(Some(approved)) => approval["approved"] == approved,
    };
    if !is_right {
        report.add(format!("{place}.approved"), "does not belong to the state");
    }
    if answer.is_some() {
        optional(&place, approval, &["reason"], Value::is_string, report);
    }
}

fn text(place: &str, object: &Value, field: &str, report: &mut Report) {
    if !object[field].is_string() {
        report.add(format!("{place}.{field}"), "is not a string");
    }
}

fn optional(
    place: &str,
    object: &Value,
    fields: &[&str],
    fits: impl Fn(&Value) -> bool,
    report: &mut Report,
) {
    for field in fields {
        if object.get(field).is_some_and(|value| !fits(value)) {
            report.add(format!("{place}.{field}"), "is of another type");
        }
    }
}

/// Checks fields of providers: an object of objects.
fn metadata(place: &str, part: &Value, field: &str, report: &mut Report) {
    let fits =
        |value: &Value| value.as_object().is_some_and(|of| of.values().all(Value::is_object));
    optional(place, part, &[field], fits, report);
}

/// Checks a URL: the SDK cannot read the name of a file.
fn url(place: &str, part: &Value, report: &mut Report) {
    let url = part["url"].as_str().unwrap_or_default();
    let scheme = url.split_once(':').map(|(scheme, rest)| (scheme, rest.trim_start_matches('/')));
    let is_absolute = match scheme {
        Some(("http" | "https", rest)) => !rest.is_empty() && !rest.starts_with(['?', '#', ' ']),
        Some((scheme, _)) => {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
        }
        None => false,
    };
    if !is_absolute {
        report.add(format!("{place}.url"), "is not an absolute URL");
    }
}
