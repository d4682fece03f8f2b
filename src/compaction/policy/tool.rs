//! Calls of tools and their results: which of them belong together.

use std::collections::HashMap;

use super::Item;
use crate::message::{Tool, has_outcome, input_of, tool_of};

/// Returns whether the part is a call, with its result or without.
///
/// One with neither input nor result is a call whose input has not come yet.
pub(super) fn is_call(tool: &Tool) -> bool {
    input_of(tool).is_some() || !has_outcome(tool)
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
    use serde_json::{Value, json};

    use super::*;
    use crate::message::{Message, Part};

    #[test]
    fn a_tool_that_says_nothing_yet_is_a_call() {
        let is_call = |part: Value| {
            let part: Part = serde_json::from_value(part).unwrap();
            is_call(&tool_of(&part).unwrap())
        };
        assert!(is_call(json!({"type": "tool-sum"})));
        assert!(is_call(json!({"type": "tool-sum", "input": null})));
        assert!(is_call(json!({"type": "tool-sum", "rawInput": "{", "errorText": "no"})));
        assert!(!is_call(json!({"type": "dynamic-tool", "errorText": "no"})));
        assert!(!is_call(json!({"type": "tool-sum", "state": "output-denied"})));
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
