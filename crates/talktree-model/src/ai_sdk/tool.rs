//! Tool parts of the AI SDK: a call and its result in one part, whose state says which of them it has.

use serde_json::{Value, json};
use talktree::{Json, Tool};

use super::part::add_metadata;
use crate::content::NO_REASON;
use crate::input::exact;

/// Returns the part of a call; `result` holds its result if that is another part.
pub(super) fn part(call: &Tool, result: Option<&Tool>) -> Value {
    let mut part = match call.is_dynamic {
        true => json!({"type": "dynamic-tool", "toolName": call.name}),
        false => json!({"type": format!("tool-{}", call.name)}),
    };
    part["toolCallId"] = call.call_id.as_str().into();
    add_result(&mut part, call, result.unwrap_or(call));
    for (field, is_kept) in [
        ("title", Value::is_string as fn(&Value) -> bool),
        ("toolMetadata", Value::is_object),
        ("providerExecuted", Value::is_boolean),
    ] {
        let value = call.extra.get(field).map(Json::value).unwrap_or_default();
        if is_kept(&value) {
            part[field] = value;
        }
    }
    add_metadata(&mut part, "callProviderMetadata", &call.extra);
    part
}

/// Adds the state, and the fields that it demands.
fn add_result(part: &mut Value, call: &Tool, result: &Tool) {
    if let Some(input) = call.effective_input() {
        part["input"] = exact(input);
    }
    if !result.has_result() {
        return add_waiting(part, call);
    }
    let approval = [result, call].map(|tool| tool.extra.get("approval").map(Json::value));
    let approval = approval.into_iter().flatten().find(Value::is_object);
    let is_error = result.error_text.is_some() || result.state.as_deref() == Some("output-error");
    if result.is_denied() && result.error_text.is_none() && result.effective_output().is_none() {
        part["state"] = "output-denied".into();
        part["approval"] = answered(approval, false, &call.call_id);
        return;
    }
    if is_error {
        let output = result.effective_output().map(exact);
        let text =
            output.map(|output| output.as_str().map_or_else(|| output.to_string(), str::to_owned));
        let text = result.error_text.clone().or(text).unwrap_or_else(|| NO_REASON.to_owned());
        part["state"] = "output-error".into();
        part["errorText"] = text.into();
    } else {
        part["state"] = "output-available".into();
        part["output"] = result.effective_output().map(exact).unwrap_or_default();
        if result.extra.get("preliminary").is_some_and(|json| json.as_str() == "true") {
            part["preliminary"] = true.into();
        }
    }
    if let Some(approval) = approval {
        part["approval"] = answered(Some(approval), true, &call.call_id);
    }
}

/// Adds the state of a call without a result: its input is incomplete, or it waits for its result, or for a person.
fn add_waiting(part: &mut Value, call: &Tool) {
    if call.call_input().is_none() && !call.has_result() {
        part["state"] = "input-streaming".into();
        return;
    }
    let approval = call.extra.get("approval").map(Json::value).unwrap_or_default();
    part["state"] = "input-available".into();
    if !approval["id"].is_string() {
        return;
    }
    match (call.state.as_deref(), approval["approved"].as_bool()) {
        (Some("approval-requested"), None) => {
            part["state"] = "approval-requested".into();
            part["approval"] = json!({"id": approval["id"]});
        }
        (Some("approval-responded"), Some(approved)) => {
            part["state"] = "approval-responded".into();
            part["approval"] = answered(Some(approval), approved, &call.call_id);
        }
        _ => {}
    }
}

/// Returns what a person answered to the request to call a tool.
fn answered(given: Option<Value>, approved: bool, call: &str) -> Value {
    let given = given.unwrap_or_default();
    let id = given["id"].as_str().unwrap_or(call);
    let mut approval = json!({"id": id, "approved": approved});
    for (field, is_kept) in [
        ("reason", Value::is_string as fn(&Value) -> bool),
        ("requestReason", Value::is_string),
        ("isAutomatic", Value::is_boolean),
        ("signature", Value::is_string),
    ] {
        if is_kept(&given[field]) {
            approval[field] = given[field].clone();
        }
    }
    approval
}
