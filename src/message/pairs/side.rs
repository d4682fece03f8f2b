//! What one tool part holds, whatever shape it is stored in.

use std::borrow::Cow;

use serde_json::Value;

use crate::message::{Extra, Json, Part, Tool, replace_lone_surrogates};

impl Tool {
    /// Returns the input of a call; `None` if the part is a result alone, or if the input is not complete: then the call
    /// has only started.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Part;
    ///
    /// let call = Part::tool_call("sum", "c1", json!({"a": 1}));
    /// assert!(call.tool().unwrap().call_input().is_some());
    /// ```
    #[must_use]
    pub fn call_input(&self) -> Option<&Json> {
        self.effective_input().filter(|_| !self.is_streaming())
    }

    /// Returns whether the part has a result of a call: output, an error, or the news that the call was denied.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Part;
    ///
    /// let result = Part::tool_result("sum", "c1", json!(1));
    /// assert!(result.tool().unwrap().has_result());
    /// ```
    #[must_use]
    pub fn has_result(&self) -> bool {
        !self.is_streaming() && has_result(self)
    }

    /// Returns whether the part is a call, with or without its result; otherwise it is a result alone.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Part;
    ///
    /// let result = Part::tool_result("sum", "c1", json!(1));
    /// assert!(!result.tool().unwrap().is_call());
    /// ```
    #[must_use]
    pub fn is_call(&self) -> bool {
        self.call_input().is_some() || !self.has_result()
    }

    fn is_streaming(&self) -> bool {
        self.state.as_deref() == Some("input-streaming")
    }

    /// Returns what the tool was called with, wherever it is stored: the AI SDK stores an input that it could not parse as
    /// `rawInput`.
    #[must_use]
    pub fn effective_input(&self) -> Option<&Json> {
        let input = self.input.as_ref();
        input.filter(|input| !input.is_null()).or_else(|| self.extra.get("rawInput")).or(input)
    }

    /// Returns what the tool answered, wherever it is stored: older versions of the AI SDK store it as `result`.
    #[must_use]
    pub fn effective_output(&self) -> Option<&Json> {
        self.output.as_ref().or_else(|| self.extra.get("result"))
    }

    /// Returns whether a person refused to let the tool run.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        match self.state.as_deref() {
            Some("output-denied") => true,
            Some("approval-responded") => {
                let approval = self.extra.get("approval");
                approval.is_some_and(|approval| approval.value()["approved"] == false)
            }
            _ => false,
        }
    }
}

impl Part {
    /// Returns the tool part that this is; `None` if it is none. Of JSON that does not fit the typed shape, the fields that fit
    /// are read.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Part;
    ///
    /// let part: Part = serde_json::from_value(json!({"type": "tool-add", "toolCallId": 7, "input": {}}))?;
    /// assert!(matches!(part, Part::Other(_)));
    /// assert_eq!(part.tool().unwrap().call_id, "7");
    /// assert_eq!(Part::text("4").tool(), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn tool(&self) -> Option<Cow<'_, Tool>> {
        match self {
            Self::Tool(tool) => Some(Cow::Borrowed(tool)),
            Self::Other(json) if may_name_a_tool(json.as_str()) => match self.typed() {
                Cow::Owned(Self::Tool(tool)) => Some(Cow::Owned(tool)),
                _ => untyped(json).map(Cow::Owned),
            },
            _ => None,
        }
    }
}

/// A tool that answered nothing, or that a person denied, has a state and no output.
fn has_result(tool: &Tool) -> bool {
    tool.error_text.is_some()
        || tool.effective_output().is_some()
        || tool.state.as_deref().is_some_and(|state| state.starts_with("output-"))
        || tool.is_denied()
}

/// Searching a text is much cheaper than parsing it, and most parts of other types name no tool.
/// With a backslash the word may be escaped.
fn may_name_a_tool(json: &str) -> bool {
    json.contains("tool") || json.contains('\\')
}

/// Reads a part that does not fit the typed shape. Each field keeps its spelling; unknown ones stay extra fields.
fn untyped(part: &Json) -> Option<Tool> {
    let mut fields: Extra = serde_json::from_str(&replace_lone_surrogates(part.as_str())).ok()?;
    let plain = |json: Json| match json.value() {
        Value::Null => None,
        Value::String(text) => Some(text),
        _ => Some(json.to_string()),
    };
    let kind = plain(fields.remove("type")?)?;
    let is_dynamic = kind == "dynamic-tool";
    let name = match is_dynamic {
        true => fields.remove("toolName").and_then(plain).unwrap_or_default(),
        false => kind.strip_prefix("tool-")?.to_owned(),
    };
    let mut text = |field: &str| fields.remove(field).and_then(plain);
    let (call_id, error_text, state) = (text("toolCallId"), text("errorText"), text("state"));
    let mut either = |field: &str, other: &str| {
        let found = fields.remove(field);
        match found.filter(|json| !json.is_null()) {
            None => fields.remove(other),
            found => found,
        }
    };
    let output = either("output", "result");
    let has_null_input = fields.get("input").is_some_and(Json::is_null);
    let input = fields.remove("input").filter(|json| !json.is_null());
    let input = input.or_else(|| fields.remove("rawInput"));
    let input = input.or_else(|| has_null_input.then(|| Json::from(Value::Null)));
    let call_id = call_id.unwrap_or_default();
    Some(Tool { name, is_dynamic, call_id, state, input, output, error_text, extra: fields })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn read(part: Value) -> Tool {
        let part: Part = serde_json::from_value(part).unwrap();
        part.tool().unwrap().into_owned()
    }

    #[test]
    fn the_fields_say_whether_a_part_is_a_call_or_a_result() {
        let (started, call, result, both) = (0, 1, 2, 3);
        for (rule, fields, expected) in [
            ("no field: started", json!({}), started),
            ("a state of input: started", json!({"state": "input-streaming"}), started),
            ("input: a call", json!({"input": {}}), call),
            ("input null: a call", json!({"input": null}), call),
            ("rawInput: a call", json!({"rawInput": "{"}), call),
            ("output: a result", json!({"output": 1}), result),
            ("output null: a result", json!({"output": null}), result),
            ("legacy result: a result", json!({"result": 1}), result),
            ("errorText: a result", json!({"errorText": "no"}), result),
            ("state denied: a result", json!({"state": "output-denied"}), result),
            ("state available: a result", json!({"state": "output-available"}), result),
            ("input and output: both", json!({"input": {}, "output": 1}), both),
            ("input and legacy result: both", json!({"input": {}, "result": 1}), both),
            ("rawInput and errorText: both", json!({"rawInput": "{", "errorText": "no"}), both),
            ("input and denied: both", json!({"input": {}, "state": "output-denied"}), both),
            (
                "input and an answered request that was refused: both",
                json!({"input": {}, "state": "approval-responded", "approval": {"approved": false}}),
                both,
            ),
            (
                "one that was granted: a call",
                json!({"input": {}, "state": "approval-responded", "approval": {"approved": true}}),
                call,
            ),
            (
                "half of an input: started",
                json!({"input": {}, "state": "input-streaming"}),
                started,
            ),
            // These do not fit the typed shape.
            ("untyped nulls: a call", json!({"input": {}, "errorText": null}), call),
            ("untyped output null: started", json!({"output": null, "errorText": null}), started),
            ("untyped result: a result", json!({"toolCallId": 7, "result": 2}), result),
        ] {
            let mut part = json!({"type": "tool-sum", "toolCallId": "c"});
            for (field, value) in fields.as_object().unwrap() {
                part[field] = value.clone();
            }
            let tool = read(part);
            let found = match (tool.call_input().is_some(), tool.has_result()) {
                (false, false) => started,
                (true, false) => call,
                (false, true) => result,
                (true, true) => both,
            };
            assert_eq!(tool.is_call(), found != result, "{rule}");
            assert_eq!(found, expected, "{rule}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_read_as_far_as_they_go() {
        let tool = read(json!({"type": "tool-sum", "toolCallId": 7, "input": [1], "result": 2}));
        assert_eq!((tool.name.as_str(), tool.call_id.as_str()), ("sum", "7"));
        assert_eq!(tool.input, Some(json!([1]).into()));
        assert_eq!(tool.output, Some(json!(2).into()));

        let tool = read(json!({
            "type": "tool-sum", "state": "output-denied", "toolCallId": 7, "input": null, "rawInput": "[1",
            "errorText": null, "approval": {"reason": "no"},
        }));
        assert_eq!(tool.effective_input(), Some(&json!("[1").into()));
        assert_eq!(tool.extra["approval"].value()["reason"], "no");

        let part = r#"{"type": "tool-sum", "toolCallId": 7, "input": {"n": 1e400}}"#;
        let part: Part = serde_json::from_str(part).unwrap();
        assert_eq!(part.tool().unwrap().input.as_ref().unwrap().as_str(), r#"{"n": 1e400}"#);

        let tool = read(json!({"type": "tool-sum", "rawInput": "[1,"}));
        assert_eq!(tool.input, Some(json!("[1,").into()));

        let tool = read(json!({"type": "dynamic-tool", "state": null, "errorText": "no"}));
        assert_eq!((tool.error_text.as_deref(), tool.state), (Some("no"), None));
        let text: Part = serde_json::from_value(json!({"type": "text", "text": 7})).unwrap();
        assert_eq!(text.tool(), None);
    }

    #[test]
    fn escapes_do_not_hide_a_call() {
        for part in [
            r#"{"type": "tool-sum", "toolCallId": "\ud800", "input": "\ud800"}"#,
            r#"{"type": "\u0074ool-sum", "toolCallId": "\ud800", "input": "\ud800"}"#,
        ] {
            let part: Part = serde_json::from_str(part).unwrap();
            let tool = part.tool().unwrap();
            assert_eq!(tool.call_id, "\u{FFFD}");
            assert_eq!(tool.input, Some(json!("\u{FFFD}").into()));
        }
    }
}
