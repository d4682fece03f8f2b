//! Requests that break rules are told.

use serde_json::{Value, json};

use super::*;

/// Requests that a provider refuses, and the place of the first problem.
#[test]
fn broken_requests_are_told() {
    let user = || json!({"role": "user", "content": "u"});
    let says = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let hears = |blocks: Value| json!({"role": "user", "content": blocks});
    let uses = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let function = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}});
    let calls = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let told = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    let thinks = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let reasons = |id: &str| json!({"type": "reasoning", "id": id, "summary": []});
    let image = |url: &str| json!([{"type": "image_url", "image_url": {"url": url}}]);
    use Provider::{Anthropic, OpenAiChat, OpenAiResponses};
    for (provider, request, place) in [
        (Anthropic, json!([]), "messages"),
        (Anthropic, json!({"messages": "u"}), "messages"),
        (Anthropic, json!([says(json!("a")), user()]), "messages[0]"),
        (Anthropic, json!([user(), user()]), "messages[1]"),
        (Anthropic, json!([{"role": "system", "content": "s"}]), "messages[0].role"),
        (Anthropic, json!({"system": " ", "messages": [user()]}), "system"),
        (Anthropic, json!([hears(json!([]))]), "messages[0].content"),
        (Anthropic, json!([hears(json!([text(" ")]))]), "messages[0].content[0].text"),
        (Anthropic, json!([user(), says(json!([text("a ")]))]), "messages[1].content[0]"),
        (Anthropic, json!([user(), says(json!([uses("1")]))]), "messages[1].content[0]"),
        (Anthropic, json!([user(), says(json!([uses("1")])), user()]), "messages[1].content[0]"),
        (Anthropic, json!([hears(json!([result("1")]))]), "messages[0].content[0]"),
        (
            Anthropic,
            json!([user(), says(json!([uses("1")])), hears(json!([text("t"), result("1")]))]),
            "messages[2].content[1]",
        ),
        (
            Anthropic,
            json!([user(), says(json!([uses("1"), text("t")])), hears(json!([result("1")]))]),
            "messages[1].content[1]",
        ),
        (
            Anthropic,
            json!([user(), says(json!([uses("a.b")])), hears(json!([result("a.b")]))]),
            "messages[1].content[0].id",
        ),
        (
            Anthropic,
            json!([
                user(),
                says(json!([uses("1"), uses("1")])),
                hears(json!([result("1"), result("1")]))
            ]),
            "messages[1].content[1].id",
        ),
        (Anthropic, json!([user(), says(json!([thinks]))]), "messages[1].content[0]"),
        (
            Anthropic,
            json!([hears(json!([{"type": "image", "source": {"type": "url", "url": "cat.png"}}]))]),
            "messages[0].content[0].source",
        ),
        (OpenAiChat, json!([]), "messages"),
        (OpenAiChat, json!([hears(json!(""))]), "messages[0].content"),
        (OpenAiChat, json!([{"role": "critic", "content": "c"}]), "messages[0].role"),
        (OpenAiChat, json!([says(json!(null))]), "messages[0].content"),
        (OpenAiChat, json!([calls(json!([]))]), "messages[0].tool_calls"),
        (OpenAiChat, json!([calls(json!([function("1", "{}")]))]), "messages[0].tool_calls[0]"),
        (
            OpenAiChat,
            json!([calls(json!([function("1", "{}")])), user(), told("1")]),
            "messages[0].tool_calls[0]",
        ),
        (OpenAiChat, json!([user(), told("1")]), "messages[1]"),
        (
            OpenAiChat,
            json!([calls(json!([function("1", "{\"a\": ")])), told("1")]),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            OpenAiChat,
            json!([calls(json!([function("1", "{}"), function("1", "{}")])), told("1"), told("1")]),
            "messages[0].tool_calls[1].id",
        ),
        (OpenAiChat, json!([hears(image("cat.png"))]), "messages[0].content[0].image_url.url"),
        (OpenAiResponses, json!({"input": ""}), "input"),
        (OpenAiResponses, json!([]), "input"),
        (OpenAiResponses, json!([user(), call("1")]), "input[1]"),
        (OpenAiResponses, json!([user(), output("1")]), "input[1]"),
        (OpenAiResponses, json!([output("1"), call("1")]), "input[0]"),
        (OpenAiResponses, json!([call("1"), output("1"), output("1")]), "input[2]"),
        (OpenAiResponses, json!([call("1"), call("1"), output("1")]), "input[1].call_id"),
        (OpenAiResponses, json!([call(""), output("")]), "input[0].call_id"),
        (OpenAiResponses, json!([reasons("rs_1"), user()]), "input[0]"),
        (OpenAiResponses, json!([reasons("1"), says(json!("a"))]), "input[0].id"),
        (OpenAiResponses, json!([{"type": "message", "role": "tool"}]), "input[0].role"),
        (
            OpenAiResponses,
            json!([hears(json!([{"type": "output_text", "text": "a"}]))]),
            "input[0].content[0].type",
        ),
    ] {
        let problems = validate_for(provider, &request);
        let places: Vec<_> = problems.iter().map(|problem| problem.place.as_str()).collect();
        assert!(places.contains(&place), "{provider}: {places:?} without {place}\n{request:#}");
    }
}
