//! The rules of the AI SDK: what `validateUIMessages` accepts, and what `convertToModelMessages` can read.
//!
//! Roles are `system`, `user` and `assistant`, and only the model's messages may be without parts. A part of a tool has one of
//! seven states, each with the fields that belong to it. Other fields are ignored, as the SDK does.

use serde_json::Value;

use super::Report;

pub(super) fn check(request: &Value, report: &mut Report) {
    for (at, message) in report.list(request, "messages").iter().enumerate() {
        let place = format!("messages[{at}]");
        report.has(&place, message, "id");
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
    let rule = match kind {
        "step-start" => "",
        "text" => "text state?:streaming|done citations?:list",
        "reasoning" => "text state?:streaming|done id?",
        "file" => "mediaType url filename?",
        "reasoning-file" => "mediaType url",
        "custom" => "kind",
        "source-url" => "sourceId url title?",
        "source-document" => "sourceId mediaType title filename?",
        "steering-message" => "id parts:list",
        "dynamic-tool" => "toolName dynamic?:false",
        kind if kind.starts_with("tool-") => "",
        kind if kind.starts_with("data-") => "id? data:any",
        kind => return report.add(format!("{place}.type"), format!("{kind:?} is not a part")),
    };
    report.has(place, part, rule);
    report.has(place, part, "providerMetadata?:objects");
    match kind {
        "file" | "reasoning-file" => url(place, part, report),
        "steering-message" => steering(&format!("{place}.parts"), &part["parts"], report),
        kind if kind == "dynamic-tool" || kind.starts_with("tool-") => tool(place, part, report),
        _ => {}
    }
}

fn steering(place: &str, parts: &Value, report: &mut Report) {
    for (at, found) in parts.as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}[{at}]");
        match found["type"].as_str() {
            Some("text" | "file") => part(&place, found, report),
            _ => report.add(format!("{place}.type"), "is neither text nor a file"),
        }
    }
}

fn tool(place: &str, part: &Value, report: &mut Report) {
    let rule = "toolCallId callProviderMetadata?:objects title? toolMetadata?:object \
        providerExecuted?:flag";
    report.has(place, part, rule);
    let state = part["state"].as_str().unwrap_or_default();
    let (rule, approval) = match state {
        "input-streaming" => ("rawInput?", ""),
        "input-available" => ("input:any", ""),
        "approval-requested" => ("input:any approval:object", ""),
        "approval-responded" => ("input:any approval:object", "approved:flag reason?"),
        "output-available" => (
            "input:any output:any approval?:object preliminary?:flag resultProviderMetadata?:objects",
            "approved:true reason?",
        ),
        "output-error" => {
            ("errorText approval?:object resultProviderMetadata?:objects", "approved:true reason?")
        }
        "output-denied" => ("input:any approval:object", "approved:false reason?"),
        _ => return report.add(format!("{place}.state"), format!("{state:?} is not a state")),
    };
    report.has(place, part, rule);
    for field in ["output", "errorText", "approval"] {
        if part.get(field).is_some() && !rule.contains(field) {
            report.add(format!("{place}.{field}"), format!("does not belong to the state {state}"));
        }
    }
    let given = &part["approval"];
    if given.is_object() && rule.contains("approval") {
        let place = format!("{place}.approval");
        report.has(&place, given, "id requestReason? signature? isAutomatic?:flag");
        report.has(&place, given, approval);
        if approval.is_empty() && (given.get("approved").is_some() || given.get("reason").is_some())
        {
            report.add(format!("{place}.approved"), "does not belong to the state");
        }
    }
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
