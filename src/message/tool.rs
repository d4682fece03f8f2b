//! Tool parts, whatever shape they were kept in.

use std::borrow::Cow;

use serde_json::Value;

use super::{Json, Part, Tool};

/// Returns what a part says of a tool, if it does; parts that do not fit the typed shape are read
/// as far as they go.
pub(crate) fn tool_of(part: &Part) -> Option<Cow<'_, Tool>> {
    match part {
        Part::Tool(tool) => Some(Cow::Borrowed(tool)),
        Part::Other(json) => match part.typed() {
            Cow::Owned(Part::Tool(tool)) => Some(Cow::Owned(tool)),
            _ => untyped(&json.value()).map(Cow::Owned),
        },
        _ => None,
    }
}

fn untyped(part: &Value) -> Option<Tool> {
    let kind = part["type"].as_str()?;
    let is_dynamic = kind == "dynamic-tool";
    let name = match is_dynamic {
        true => part["toolName"].as_str().unwrap_or_default(),
        false => kind.strip_prefix("tool-")?,
    };
    let plain = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let field = |name: &str| part.get(name).map(|value| Json::from(value.clone()));
    Some(Tool {
        name: name.to_owned(),
        is_dynamic,
        call_id: plain(&part["toolCallId"]).unwrap_or_default(),
        input: field("input").or_else(|| field("rawInput")),
        output: field("output").filter(|json| !json.is_null()).or_else(|| field("result")),
        error_text: plain(&part["errorText"]),
        state: plain(&part["state"]),
        ..Tool::default()
    })
}

/// Returns what the tool answered, if it did; an older shape calls it `result`.
pub(crate) fn output_of(tool: &Tool) -> Option<&Json> {
    tool.output.as_ref().or_else(|| tool.extra.get("result"))
}

/// Returns what the tool is called with; the AI SDK keeps what it could not read under another name.
pub(crate) fn input_of(tool: &Tool) -> Option<&Json> {
    tool.input.as_ref().or_else(|| tool.extra.get("rawInput"))
}

/// Returns whether the part tells what came of the call.
///
/// A tool that answers nothing, or that a person did not allow, has a state and no output.
pub(crate) fn has_outcome(tool: &Tool) -> bool {
    tool.error_text.is_some()
        || output_of(tool).is_some()
        || tool.state.as_deref().is_some_and(|state| state.starts_with("output-"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn read(part: Value) -> Tool {
        let part: Part = serde_json::from_value(part).unwrap();
        tool_of(&part).unwrap().into_owned()
    }

    #[test]
    fn parts_that_do_not_fit_are_read_as_far_as_they_go() {
        let tool = read(json!({"type": "tool-sum", "toolCallId": 7, "input": [1], "result": 2}));
        assert_eq!((tool.name.as_str(), tool.call_id.as_str()), ("sum", "7"));
        assert_eq!(tool.input, Some(json!([1]).into()));
        assert_eq!(tool.output, Some(json!(2).into()));

        let tool = read(json!({"type": "tool-sum", "rawInput": "[1,"}));
        assert_eq!(tool.input, Some(json!("[1,").into()));

        let tool = read(json!({"type": "dynamic-tool", "state": null, "errorText": "no"}));
        assert_eq!((tool.error_text.as_deref(), tool.state), (Some("no"), None));
        let text = serde_json::from_value(json!({"type": "text", "text": 7})).unwrap();
        assert_eq!(tool_of(&text), None);
    }

    #[test]
    fn a_lone_surrogate_does_not_hide_a_call() {
        let part: Part = serde_json::from_str(
            r#"{"type": "tool-sum", "toolCallId": "\ud800", "input": "\ud800"}"#,
        )
        .unwrap();
        let tool = tool_of(&part).unwrap();
        assert_eq!(tool.call_id, "\u{FFFD}");
        assert_eq!(tool.input, Some(json!("\u{FFFD}").into()));
    }
}
