//! Tool parts, whatever shape they were kept in, and which of them belong together.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::Item;
use crate::message::{Json, Part, Tool};

/// Returns what a part says of a tool, if it does; parts that do not fit the typed shape are read
/// as far as they go.
pub(super) fn tool_of(part: &Part) -> Option<Cow<'_, Tool>> {
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
        input: field("input"),
        output: field("output").filter(|json| !json.is_null()).or_else(|| field("result")),
        error_text: plain(&part["errorText"]),
        ..Tool::default()
    })
}

/// Returns what the tool answered, if it did.
pub(super) fn output_of(tool: &Tool) -> Option<&Json> {
    tool.output.as_ref().or_else(|| tool.extra.get("result"))
}

/// Returns whether the part is a call, with its result or without.
///
/// One with neither input nor result is a call whose input has not come yet.
pub(super) fn is_call(tool: &Tool) -> bool {
    tool.input.is_some() || (output_of(tool).is_none() && tool.error_text.is_none())
}

/// Returns where a call and a result of it stand in different items: the places of both, in the
/// order of the calls, each once.
///
/// A result belongs to the nearest call of its id before it, however far that is, so that ids may
/// be used again. Results without a call and calls without a result belong to nothing.
pub(super) fn pairs(view: &[Item<'_>]) -> Vec<(usize, usize)> {
    let mut calls: HashMap<String, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, item) in view.iter().enumerate() {
        for tool in item.message.parts.iter().filter_map(tool_of) {
            if is_call(&tool) {
                calls.insert(tool.call_id.clone(), at);
            } else if let Some(&call) = calls.get(&tool.call_id)
                && call < at
            {
                pairs.push((call, at));
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::Message;

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

        let tool = read(json!({"type": "dynamic-tool", "errorText": "no"}));
        assert!(!is_call(&tool));
        assert!(is_call(&read(json!({"type": "tool-sum"}))));
    }

    #[test]
    fn a_lone_surrogate_does_not_hide_a_call() {
        let part: Part = serde_json::from_str(
            r#"{"type": "tool-sum", "toolCallId": "\ud800", "input": "\ud800"}"#,
        )
        .unwrap();
        let tool = tool_of(&part).unwrap();
        assert_eq!(tool.call_id, "\u{FFFD}");
        assert!(is_call(&tool));
    }

    #[test]
    fn a_result_belongs_to_the_nearest_call_before_it() {
        let call = |id: &str| Part::tool_call("t", id, json!({}));
        let result = |id: &str| Part::tool_result("t", id, json!("done"));
        let both = json!({"type": "tool-t", "toolCallId": "c", "input": 1, "output": 2});
        let messages = [
            Message::assistant("0").with_part(call("a")).with_part(call("b")),
            Message::user("1").with_part(result("b")).with_part(result("x")),
            Message::user("2").with_part(result("a")).with_part(result("a")),
            Message::assistant("3").with_part(call("a")).with_part(result("a")),
            Message::user("4").with_part(result("a")).with_part(result("b")),
            Message::assistant("5").with_part(serde_json::from_value(both).unwrap()),
            Message::assistant("6").with_part(call("never")),
        ];
        let view: Vec<_> = messages
            .iter()
            .map(|message| Item::of(message, &crate::tokens::Counter::default()))
            .collect();
        assert_eq!(pairs(&view), [(0, 1), (0, 2), (0, 4), (3, 4)]);
    }
}
