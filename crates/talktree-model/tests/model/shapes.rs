//! What single shapes of messages become, and which rules `validate_for` knows. `random` has random histories.

use std::borrow::Cow;

use serde_json::{Value, json};
use talktree::{Message, Part, Role};
use talktree_model::*;

#[track_caller]
fn check(view: &[Message]) {
    for (provider, request) in [
        (Provider::Anthropic, to_anthropic(view)),
        (Provider::OpenAiChat, to_openai_chat(view)),
        (Provider::OpenAiResponses, to_openai_responses(view)),
        (Provider::AiSdk, to_ai_sdk(view)),
    ] {
        let problems = validate_for(provider, &request);
        assert!(problems.is_empty(), "{provider}: {problems:#?}\n{request:#}\n{view:#?}");
    }
}

fn both(id: &str, output: Value) -> Part {
    let mut part = Part::tool_call("get", id, json!({}));
    if let Part::Tool(tool) = &mut part {
        tool.output = Some(output.into());
    }
    part
}

fn model(parts: Vec<Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

/// Returns one word for each message of the request: its role and the types of its blocks.
fn shape(request: &Value) -> String {
    let word = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter();
        let kinds: Vec<_> = blocks.map(|block| block["type"].as_str().unwrap()).collect();
        format!("{}({})", message["role"].as_str().unwrap(), kinds.join(" "))
    };
    request["messages"].as_array().unwrap().iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn anthropic_messages_take_turns_and_results_come_first() {
    let call = |id: &str| Part::tool_call("get", id, json!({}));
    let result = |id: &str| Message::new("tool", vec![Part::tool_result("get", id, json!("x"))]);
    let signed = || {
        serde_json::from_value(json!({"type": "reasoning", "text": "hm", "signature": "s"}))
            .unwrap()
    };
    for (view, expected) in [
        (vec![Message::assistant("sum")], "user(text) assistant(text)"),
        (vec![], "user(text)"),
        (vec![Message::user("a"), Message::user("b")], "user(text text)"),
        (
            vec![model(vec![call("1"), call("2")]), Message::user("u"), result("2"), result("1")],
            "user(text) assistant(tool_use tool_use) user(tool_result tool_result text)",
        ),
        // Two calls of one step, then of two steps.
        (
            vec![model(vec![both("1", json!(1)), both("2", json!(2))])],
            "user(text) assistant(tool_use tool_use) user(tool_result tool_result)",
        ),
        (
            vec![model(vec![
                both("1", json!(1)),
                Part::Other(json!({"type": "step-start"}).into()),
                both("2", json!(2)),
            ])],
            "user(text) assistant(tool_use) user(tool_result) assistant(tool_use) user(tool_result)",
        ),
        // Text after a call of the same step moves before it.
        (
            vec![model(vec![call("1"), Part::text("t")]), result("1")],
            "user(text) assistant(text tool_use) user(tool_result)",
        ),
        (
            vec![Message::user("u"), model(vec![signed()]), model(vec!["t".into()])],
            "user(text) assistant(thinking text)",
        ),
        (vec![Message::user("u"), model(vec![signed()]), Message::user("u")], "user(text text)"),
        (vec![Message::user("u"), model(vec![Part::reasoning("hm")])], "user(text)"),
    ] {
        assert_eq!(shape(&to_anthropic(&view)), expected);
        check(&view);
    }
}

/// The AI SDK stores failures and denials in the state, beside the output.
#[test]
fn a_failed_call_has_a_reason() {
    for (part, reason) in [
        (json!({"input": {}, "errorText": "no"}), "no"),
        (json!({"input": {}, "errorText": " "}), "(failed without an error message)"),
        (json!({"rawInput": "{", "errorText": "no JSON"}), "no JSON"),
        (json!({"input": {}, "state": "output-error", "output": "no"}), "no"),
        (json!({"input": {}, "state": "output-denied"}), "(failed without an error message)"),
        (
            json!({"input": {}, "state": "output-denied", "approval": {"reason": "not now"}}),
            "not now",
        ),
    ] {
        let mut whole = json!({"type": "tool-get", "toolCallId": "1"});
        for (field, value) in part.as_object().unwrap() {
            whole[field] = value.clone();
        }
        let view = [Message::user("u"), model(vec![serde_json::from_value(whole).unwrap()])];
        assert!(matches!(sanitize(&view), Cow::Borrowed(_)));
        let result = &to_anthropic(&view)["messages"][2]["content"][0];
        assert_eq!((&result["content"], &result["is_error"]), (&json!(reason), &json!(true)));
        check(&view);
    }
}

/// Some programs write every field they know, or ids that are numbers.
#[test]
fn a_part_that_does_not_fit_is_read_as_far_as_it_goes() {
    let call: Part = serde_json::from_value(json!({
        "type": "tool-get", "toolCallId": 7, "input": {"q": 1}, "output": null, "errorText": null,
    }))
    .unwrap();
    assert!(matches!(call, Part::Other(_)));
    let result = json!({"type": "tool-get", "toolCallId": 7, "output": "x", "errorText": null});
    let result = serde_json::from_value(result).unwrap();
    let view = [Message::user("u"), model(vec![call.clone()]), Message::new("tool", vec![result])];
    assert!(matches!(sanitize(&view), Cow::Borrowed(_)));
    let request = to_anthropic(&view);
    assert_eq!(request["messages"][2]["content"][0]["content"], "x", "{request:#}");
    let request = to_anthropic(&sanitize(&[model(vec![call])]));
    assert_eq!(request["messages"][2]["content"][0]["content"], "[the result is not here]");
}

/// Many servers parse the arguments before they pass them to a model.
#[test]
fn the_input_of_a_call_is_sent_as_an_object() {
    for (input, arguments) in [
        (json!({"q": 1}), r#"{"q":1}"#),
        (json!("{\"q\": 1}"), r#"{"q": 1}"#),
        (json!("{\"q\": "), r#"{"input":"{\"q\": "}"#),
        (json!([1]), r#"{"input":[1]}"#),
        (json!(null), "{}"),
    ] {
        let view = [Message::user("u"), model(vec![Part::tool_call("get", "1", input)])];
        let chat = to_openai_chat(&view);
        assert_eq!(chat[1]["tool_calls"][0]["function"]["arguments"], arguments);
        assert_eq!(to_openai_responses(&view)[1]["arguments"], arguments);
        let input: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(to_anthropic(&view)["messages"][1]["content"][0]["input"], input);
    }
}

#[test]
fn images_in_results_are_images_where_the_provider_accepts_them() {
    let image = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let output = json!([{"type": "text", "text": "a"}, {"type": "image", "source": image}]);
    let view = [Message::user("u"), model(vec![both("1", output)])];
    let request = to_anthropic(&view);
    let content = &request["messages"][2]["content"][0]["content"];
    assert_eq!(content[1], json!({"type": "image", "source": image}));
    let request = to_openai_chat(&view);
    assert_eq!(request[2]["content"], "a\n[file image/png: cannot be shown]");
    let request = to_openai_responses(&view);
    assert_eq!(request[2]["output"][1]["image_url"], "data:image/png;base64,AAAA");
    check(&view);
}

#[test]
fn a_response_that_was_read_can_be_sent_again() {
    let answer = from_anthropic(&json!({
        "id": "msg_1", "model": "m", "stop_reason": "tool_use", "usage": {"input_tokens": 1},
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "Let me look.", "citations": null},
            {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"q": 1}},
        ],
    }));
    let metadata = answer.metadata.as_ref().unwrap().value();
    assert_eq!((&metadata["provider"], &metadata["id"]), (&json!("anthropic"), &json!("msg_1")));
    let again = to_anthropic(&[Message::user("u"), answer]);
    assert_eq!(
        shape(&again),
        "user(text) assistant(thinking redacted_thinking text tool_use) user(tool_result)"
    );

    let function = json!({"name": "get", "arguments": "{\"q\": 1}"});
    let chat = json!({"role": "assistant", "content": "Let me look.", "refusal": null,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}]});
    let answer = from_openai_chat(&json!({
        "model": "m", "usage": {"total_tokens": 9},
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": chat}],
    }));
    let metadata = answer.metadata.as_ref().unwrap().value();
    assert_eq!(metadata["usage"]["total_tokens"], 9);
    assert!(metadata.get("id").is_none());
    let again = to_openai_chat(&[Message::user("u"), answer]);
    assert_eq!(
        (&again[1]["tool_calls"], &again[1]["content"]),
        (&chat["tool_calls"], &chat["content"])
    );

    let items = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
         "encrypted_content": "e", "status": null},
        {"type": "web_search_call", "id": "ws_1", "status": "completed",
         "action": {"type": "search", "query": "q"}},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get",
         "arguments": "{\"q\":1}", "status": "completed"},
    ]);
    let answer = from_openai_responses(&json!({"id": "resp_1", "output": items}));
    assert_eq!(answer.parts.len(), 4);
    let again = to_openai_responses(&[Message::user("u"), answer]);
    let kinds: Vec<_> = again.as_array().unwrap().iter().map(|item| &item["type"]).collect();
    let expected = [
        "message",
        "reasoning",
        "web_search_call",
        "message",
        "function_call",
        "function_call_output",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(again[1]["encrypted_content"], "e");
    assert_eq!(again[4]["arguments"], "{\"q\":1}");

    for response in [json!(null), json!({"error": {"message": "busy"}}), json!([1])] {
        assert!(from_anthropic(&response).parts.is_empty());
        assert!(from_openai_chat(&response).parts.is_empty());
        assert!(from_openai_responses(&response).parts.is_empty());
    }
}

#[test]
fn each_broken_rule_is_reported_at_its_place() {
    let user = || json!({"role": "user", "content": "u"});
    let says = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let hears = |blocks: Value| json!({"role": "user", "content": blocks});
    let uses = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let function = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}});
    let calls = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
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
        (
            Anthropic,
            json!([
                user(),
                says(json!([uses("1")])),
                hears(json!([{"type": "tool_result", "tool_use_id": "1", "is_error": true}])),
            ]),
            "messages[2].content[0].content",
        ),
        (OpenAiChat, json!([]), "messages"),
        (OpenAiChat, json!([hears(json!(""))]), "messages[0].content"),
        (OpenAiChat, json!([{"role": "critic", "content": "c"}]), "messages[0].role"),
        (OpenAiChat, json!([says(json!(null))]), "messages[0].content"),
        (OpenAiChat, json!([calls(json!([]))]), "messages[0].tool_calls"),
        (
            OpenAiChat,
            json!([calls(json!([function("1", "{}".into())]))]),
            "messages[0].tool_calls[0]",
        ),
        (
            OpenAiChat,
            json!([calls(json!([function("1", "{}".into())])), user(), tool("1")]),
            "messages[0].tool_calls[0]",
        ),
        (OpenAiChat, json!([user(), tool("1")]), "messages[1]"),
        (
            OpenAiChat,
            json!([calls(json!([function("1", json!({}))])), tool("1")]),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            OpenAiChat,
            json!([
                calls(json!([function("1", "{}".into()), function("1", "{}".into())])),
                tool("1"),
                tool("1")
            ]),
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
