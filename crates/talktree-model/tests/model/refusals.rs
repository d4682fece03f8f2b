//! Requests that providers refused, or that lost what the model had said. Each test is one such case: types were right,
//! but the order of blocks, the ids of items or the place of a result was not.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};
use talktree::{Json, Message, Part, Role};
use talktree_model::{
    Provider, TruncateOptions, from_anthropic, from_openai_chat, from_openai_responses, sanitize,
    to_ai_sdk, to_anthropic, to_openai_chat, to_openai_responses, truncate, validate_for,
};

use crate::histories::histories;

#[track_caller]
fn message(role: &str, parts: Value) -> Message {
    serde_json::from_value(json!({"role": role, "parts": parts})).unwrap()
}

#[track_caller]
fn anthropic(view: &[Message]) -> Value {
    let request = to_anthropic(view);
    let problems = validate_for(Provider::Anthropic, &request);
    assert!(problems.is_empty(), "{problems:#?}\n{request:#}");
    request
}

#[track_caller]
fn chat(view: &[Message]) -> Value {
    let request = to_openai_chat(view);
    let problems = validate_for(Provider::OpenAiChat, &request);
    assert!(problems.is_empty(), "{problems:#?}\n{request:#}");
    request
}

#[track_caller]
fn responses(view: &[Message]) -> Value {
    let request = to_openai_responses(view);
    let problems = validate_for(Provider::OpenAiResponses, &request);
    assert!(problems.is_empty(), "{problems:#?}\n{request:#}");
    request
}

/// Returns a word for each message of a request to Anthropic: its role and the types of its blocks.
fn blocks(request: &Value) -> Vec<String> {
    let kinds = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| format!("{}: {}", message["role"].as_str().unwrap(), kinds(message)))
        .collect()
}

/// Returns the types of the items of a request to the responses API; a message is its role.
fn items(request: &Value) -> Vec<&str> {
    let items = request.as_array().unwrap().iter();
    items.map(|item| item["role"].as_str().or(item["type"].as_str()).unwrap()).collect()
}

fn thinks(signature: &str) -> Value {
    json!({"type": "reasoning", "text": "hm", "signature": signature})
}

fn call(id: &str) -> Value {
    json!({"type": "tool-get", "toolCallId": id, "state": "input-available", "input": {"q": id}})
}

fn done(id: &str) -> Value {
    json!({"type": "tool-get", "toolCallId": id, "state": "output-available", "input": {"q": id}, "output": "x"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

// Pairs of calls and results.

/// The AI SDK repeats the input beside the output. Two calls were sent, the first one with no result.
#[test]
fn a_result_that_repeats_the_input_answers_its_call() {
    let view = [
        Message::user("u"),
        message("assistant", json!([call("1")])),
        message("assistant", json!([done("1")])),
    ];
    assert!(matches!(sanitize(&view), Cow::Borrowed(_)));
    assert_eq!(
        blocks(&anthropic(&view)),
        ["user: text", "assistant: tool_use", "user: tool_result"]
    );
    assert_eq!(chat(&view).as_array().unwrap().len(), 3);
    assert_eq!(items(&responses(&view)), ["user", "function_call", "function_call_output"]);
    // Another input is another call, which reuses the id.
    let mut other = done("1");
    other["input"]["q"] = json!("y");
    let view = [view[0].clone(), view[1].clone(), message("assistant", json!([other]))];
    let requested = anthropic(&view);
    assert_eq!(blocks(&requested)[1], "assistant: tool_use tool_use");
}

/// The state says that the input is still being read; what there is of it is not what the model will call with.
#[test]
fn a_half_streamed_call_is_not_sent_as_made() {
    let half = json!({"type": "tool-get", "toolCallId": "1", "state": "input-streaming", "input": {"path": "/et"}});
    let view = [Message::user("u"), message("assistant", json!([text("Let me."), half]))];
    assert_eq!(blocks(&anthropic(&view)), ["user: text", "assistant: text"]);
    assert_eq!(items(&responses(&view)), ["user", "assistant"]);
    assert!(chat(&view)[1].get("tool_calls").is_none());
    assert_eq!(sanitize(&view)[1].parts.len(), 1);
}

/// A person refused, and the program has not written a result yet.
#[test]
fn a_refused_request_is_a_result() {
    let refused = json!({"type": "tool-get", "toolCallId": "1", "state": "approval-responded", "input": {},
        "approval": {"id": "a", "approved": false, "reason": "not now"}});
    let view = [Message::user("u"), message("assistant", json!([refused]))];
    let request = anthropic(&view);
    assert_eq!(request["messages"][2]["content"][0]["content"], "not now");
    assert!(matches!(sanitize(&view), Cow::Borrowed(_)));
    // Some programs write every field they know.
    let untyped = json!({"type": "tool-get", "toolCallId": 1, "state": "output-denied", "input": {},
        "errorText": null, "approval": {"id": "a", "approved": false, "reason": "not now"}});
    let view = [Message::user("u"), message("assistant", json!([untyped]))];
    assert_eq!(anthropic(&view)["messages"][2]["content"][0]["content"], "not now");
}

// The Anthropic messages API.

/// Calls were moved behind everything, so that two thinking blocks met: refused.
#[test]
fn thinking_stays_before_its_call() {
    let step = json!({"type": "step-start"});
    let view = [
        Message::user("u"),
        message("assistant", json!([step, thinks("1"), call("1"), thinks("2"), call("2")])),
        message("tool", json!([done("1"), done("2")])),
    ];
    let expected = [
        "user: text",
        "assistant: thinking tool_use thinking tool_use",
        "user: tool_result tool_result",
    ];
    assert_eq!(blocks(&anthropic(&view)), expected);
    // The same with the results in the calls, as the AI SDK stores one step.
    let view = [
        Message::user("u"),
        message(
            "assistant",
            json!([step, thinks("1"), done("1"), thinks("2"), done("2"), text("t")]),
        ),
    ];
    let expected = [
        "user: text",
        "assistant: thinking tool_use thinking text tool_use",
        "user: tool_result tool_result",
    ];
    assert_eq!(blocks(&anthropic(&view)), expected);
}

#[test]
fn of_two_thinking_blocks_side_by_side_one_is_sent() {
    let again =
        |parts: Value| blocks(&anthropic(&[Message::user("u"), message("assistant", parts)]));
    // A blank text between them cannot be sent.
    let parts = json!([thinks("1"), text("\n\n"), thinks("2"), text("t")]);
    assert_eq!(again(parts), ["user: text", "assistant: thinking text"]);
    // Redacted thinking may follow thinking.
    let parts = json!([thinks("1"), {"type": "redacted_thinking", "data": "x"}, text("t")]);
    assert_eq!(again(parts), ["user: text", "assistant: thinking redacted_thinking text"]);
    // Two messages are merged.
    let view = [
        Message::user("u"),
        message("assistant", json!([thinks("1")])),
        message("assistant", json!([thinks("2"), text("t")])),
    ];
    let request = anthropic(&view);
    assert_eq!(blocks(&request), ["user: text", "assistant: thinking text"]);
    assert_eq!(request["messages"][1]["content"][0]["signature"], "2");
}

fn search(id: &str) -> [Value; 2] {
    [
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "figs"},
               "caller": {"type": "direct"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": id, "caller": {"type": "direct"}, "content": [
            {"type": "web_search_result", "url": "https://example.org", "title": "Figs",
             "encrypted_content": "e", "page_age": null}]}),
    ]
}

#[test]
fn server_tools_and_citations_come_back() {
    let [used, found] = search("srvtoolu_1");
    let cited = json!({"type": "text", "text": "Figs.", "citations": [
        {"type": "web_search_result_location", "url": "https://example.org", "title": "Figs",
         "encrypted_index": "i", "cited_text": "figs"}]});
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": "1"}, used, found,
        {"type": "thinking", "thinking": "hm", "signature": "2"}, cited,
    ]);
    let answer = from_anthropic(&json!({"id": "msg_1", "content": content}));
    let request = anthropic(&[Message::user("u"), answer, Message::user("u")]);
    assert_eq!(request["messages"][1]["content"], content);
}

#[test]
fn a_paused_turn_can_be_resumed() {
    let [used, found] = search("srvtoolu_1");
    let paused = from_anthropic(&json!({"id": "msg_1", "stop_reason": "pause_turn",
        "container": {"id": "container_1", "expires_at": "2999-01-01T00:00:00Z"},
        "content": [text("Let me look."), used]}));
    let view = [Message::user("u"), paused.clone()];
    let request = anthropic(&view);
    assert_eq!(blocks(&request), ["user: text", "assistant: text server_tool_use"]);
    assert_eq!(request["container"], "container_1");
    // It goes on in another message, which is merged with the first.
    let rest = from_anthropic(&json!({"id": "msg_2", "content": [found, text("Figs.")]}));
    let view = [Message::user("u"), paused.clone(), rest.clone(), Message::user("u")];
    let expected =
        ["user: text", "assistant: text server_tool_use web_search_tool_result text", "user: text"];
    assert_eq!(blocks(&anthropic(&view)), expected);
    // Someone else spoke instead: a call without a result is refused, and so is a result without a call.
    let view = [Message::user("u"), paused, Message::user("no"), rest];
    let expected = ["user: text", "assistant: text", "user: text", "assistant: text"];
    assert_eq!(blocks(&anthropic(&view)), expected);
}

#[test]
fn a_call_of_running_code_keeps_its_caller() {
    let code = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution",
        "input": {"code": "get()"}, "caller": {"type": "direct"}});
    let caller = json!({"type": "code_execution_20260120", "tool_id": "srvtoolu_1"});
    let called =
        json!({"type": "tool_use", "id": "toolu_1", "name": "get", "input": {}, "caller": caller});
    let asked = from_anthropic(&json!({"id": "msg_1", "stop_reason": "tool_use",
        "container": {"id": "container_1", "expires_at": "2999-01-01T00:00:00Z"},
        "content": [code, called]}));
    let answered = Message::new("tool", vec![Part::tool_result("get", "toolu_1", json!("x"))]);
    let view = [Message::user("u"), asked.clone(), answered.clone()];
    let request = anthropic(&view);
    let expected = ["user: text", "assistant: server_tool_use tool_use", "user: tool_result"];
    assert_eq!(blocks(&request), expected);
    assert_eq!(request["messages"][1]["content"][1]["caller"], caller);
    let result = json!({"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {
        "type": "code_execution_result", "stdout": "x", "stderr": "", "return_code": 0, "content": []}});
    let end = from_anthropic(&json!({"id": "msg_2", "content": [result, text("x")]}));
    let view = [Message::user("u"), asked, answered.clone(), end.clone(), Message::user("u")];
    let expected = [
        "user: text",
        "assistant: server_tool_use tool_use",
        "user: tool_result",
        "assistant: code_execution_tool_result text",
        "user: text",
    ];
    assert_eq!(blocks(&anthropic(&view)), expected);
    // Without the code, the call has no caller.
    let called = from_anthropic(&json!({"content": [called]}));
    let request = anthropic(&[Message::user("u"), called, answered, end]);
    assert!(request["messages"][1]["content"][0].get("caller").is_none());
}

/// The call named code that comes after it as its caller, so the code counted as waiting for it, and was sent without a
/// result.
#[test]
fn a_call_before_the_code_that_it_names_has_no_caller() {
    let caller = json!({"type": "code_execution_20260120", "tool_id": "srvtoolu_1"});
    let called = json!({"type": "tool-get", "toolCallId": "a", "input": {}, "caller": caller});
    let [used, _] = search("srvtoolu_1");
    let image =
        json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGk="});
    let view = [message("assistant", json!([called, used, image]))];
    let request = anthropic(&view);
    assert_eq!(blocks(&request), ["user: text", "assistant: text tool_use", "user: tool_result"]);
    assert!(request["messages"][1]["content"][1].get("caller").is_none());
    // At the end of the conversation the search may wait for its result, and the call still has no caller.
    let view = [message("assistant", json!([called, used]))];
    let request = anthropic(&view);
    assert_eq!(
        blocks(&request),
        ["user: text", "assistant: server_tool_use tool_use", "user: tool_result"]
    );
    assert!(request["messages"][1]["content"][1].get("caller").is_none());
}

/// The calling program compacted on the provider's side; what came before is in this block.
#[test]
fn a_compaction_by_the_provider_comes_back() {
    let block = json!({"type": "compaction", "content": "They like figs."});
    let answer = from_anthropic(&json!({"content": [block, text("Hi.")]}));
    let request = anthropic(&[Message::user("u"), answer, Message::user("u")]);
    assert_eq!(request["messages"][1]["content"][0], block);
}

#[test]
fn reasoning_of_pi_logs_is_signed() {
    let thinks = |signature: &str| {
        let mut view = [
            Message::user("u"),
            message(
                "assistant",
                json!([
            {"type": "reasoning", "text": "hm", "thinkingSignature": signature}, text("t")]),
            ),
        ];
        view[1].metadata = Some(json!({"api": "anthropic-messages"}).into());
        view
    };
    let view = thinks("EpEQCkYIChgC");
    assert_eq!(anthropic(&view)["messages"][1]["content"][0]["signature"], "EpEQCkYIChgC");
    // Pi also stores the signatures of others there.
    for (api, signature) in [
        ("openai-completions", "reasoning_content"),
        ("openai-responses", r#"{"type":"reasoning","id":"rs_1","summary":[]}"#),
        ("google-generative-ai", "CrkBAbcdef"),
    ] {
        let mut view = thinks(signature);
        view[1].metadata = Some(json!({"api": api}).into());
        assert_eq!(blocks(&anthropic(&view)), ["user: text", "assistant: text"], "{api}");
    }
}

// The OpenAI responses API.

/// The whole answer comes back: ids, states, the order, the phase, annotations, several texts of one item.
#[test]
fn an_answer_of_the_responses_api_comes_back_whole() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "e", "status": "completed",
         "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed",
         "action": {"type": "search", "query": "figs"}},
        {"type": "reasoning", "id": "rs_2", "summary": [],
         "content": [{"type": "reasoning_text", "text": "raw"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
         "content": [
            {"type": "output_text", "text": "Figs.", "annotations": [
                {"type": "url_citation", "url": "https://example.org", "title": "F", "start_index": 0, "end_index": 4}]},
            {"type": "refusal", "refusal": "No more."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get", "arguments": "{\"q\": 1}",
         "status": "completed"},
        {"type": "reasoning", "id": "rs_3", "summary": []},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "patch", "input": "*** Begin"},
    ]);
    let answer = from_openai_responses(&json!({"id": "resp_1", "output": output}));
    let results = Message::new(
        "tool",
        vec![
            Part::tool_result("get", "call_1", json!("x")),
            Part::tool_result("patch", "call_2", json!("y")),
        ],
    );
    let request = responses(&[Message::user("u"), answer, results]);
    let request = request.as_array().unwrap();
    assert_eq!(request[1..8], output.as_array().unwrap()[..], "{request:#?}");
    assert_eq!(request[8]["type"], "function_call_output");
    assert_eq!(
        request[9],
        json!({"type": "custom_tool_call_output", "call_id": "call_2", "output": "y"})
    );
}

/// Reasoning is refused if the item that it belongs to does not follow.
#[test]
fn reasoning_without_its_own_item_is_left_out() {
    let rs = json!({"type": "reasoning", "text": "hm", "id": "rs_1"});
    for (parts, expected) in [
        (json!([rs, text("t")]), vec!["user", "assistant"]),
        (
            json!([rs, {"type": "text", "text": "t", "id": "msg_1"}]),
            vec!["user", "reasoning", "assistant"],
        ),
        // The item after it cannot be sent.
        (
            json!([rs, {"type": "web_search_call", "id": "ws_1"}, {"type": "text", "text": "t", "id": "msg_1"}]),
            vec!["user", "assistant"],
        ),
        (json!([rs, done("1")]), vec!["user", "function_call", "function_call_output"]),
    ] {
        let request = responses(&[Message::user("u"), message("assistant", parts)]);
        assert_eq!(items(&request), expected, "{request:#}");
    }
    // An item whose reasoning is missing has no id: the API would ask for the reasoning.
    let answer = message(
        "assistant",
        json!([
        {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "t", "id": "msg_1"}]),
    );
    let request = responses(&[Message::user("u"), answer]);
    assert!(request[1].get("id").is_none(), "{request:#}");
    // An item that occurs twice is refused.
    let twice = || message("assistant", json!([rs, {"type": "text", "text": "t", "id": "msg_1"}]));
    let request = responses(&[Message::user("u"), twice(), Message::user("u"), twice()]);
    assert_eq!(items(&request), ["user", "reasoning", "assistant", "user", "assistant"]);
}

#[test]
fn the_item_ids_of_the_ai_sdk_are_read() {
    let of = |fields: Value| json!({"openai": fields});
    let answer = message(
        "assistant",
        json!([
            {"type": "reasoning", "text": "hm", "providerMetadata": of(json!({"itemId": "rs_1", "reasoningEncryptedContent": "e"}))},
            {"type": "text", "text": "t", "providerMetadata": of(json!({"itemId": "msg_1", "phase": "final_answer"}))},
            {"type": "tool-get", "toolCallId": "call_1", "state": "output-available", "input": {}, "output": 1,
             "callProviderMetadata": of(json!({"itemId": "fc_1"}))},
        ]),
    );
    let request = responses(&[Message::user("u"), answer]);
    assert_eq!(
        items(&request),
        ["user", "reasoning", "assistant", "function_call", "function_call_output"]
    );
    assert_eq!(
        (&request[1]["id"], &request[1]["encrypted_content"]),
        (&json!("rs_1"), &json!("e"))
    );
    assert_eq!(
        (&request[2]["id"], &request[2]["phase"]),
        (&json!("msg_1"), &json!("final_answer"))
    );
    assert_eq!(request[3]["id"], "fc_1");
}

// The OpenAI chat completions API.

#[test]
fn an_audio_answer_keeps_its_transcript() {
    let answer =
        from_openai_chat(&json!({"choices": [{"message": {"role": "assistant", "content": null,
        "audio": {"id": "audio_1", "data": "AAAA", "expires_at": 1, "transcript": "Four."}}}]}));
    assert_eq!(answer.text(), "Four.");
    assert_eq!(chat(&[Message::user("2 + 2?"), answer])[1]["content"], "Four.");
}

/// Servers for models that think between calls refuse a call without the reasoning that led to it.
#[test]
fn the_reasoning_of_tool_turns_comes_back() {
    let function = json!({"name": "get", "arguments": "{}"});
    for field in ["reasoning_content", "reasoning"] {
        let mut said = json!({"role": "assistant", "content": null,
            "tool_calls": [{"id": "1", "type": "function", "function": function}]});
        said[field] = "hm".into();
        let answer = from_openai_chat(&json!({"choices": [{"message": said}]}));
        assert_eq!(chat(&[Message::user("u"), answer])[1][field], "hm");
    }
    // Not where there is no call, nor what another provider signed.
    let plain = message("assistant", json!([{"type": "reasoning", "text": "hm"}, text("t")]));
    assert!(chat(&[Message::user("u"), plain])[1].get("reasoning_content").is_none());
    let signed = message("assistant", json!([thinks("s"), done("1")]));
    assert!(chat(&[Message::user("u"), signed])[1].get("reasoning_content").is_none());
    // Reasoning and call in two messages are one turn.
    let view = [
        Message::user("u"),
        message("assistant", json!([{"type": "reasoning", "text": "hm"}])),
        message("assistant", json!([done("1")])),
    ];
    assert_eq!(chat(&view)[1]["reasoning_content"], "hm");
}

#[test]
fn the_thought_signature_of_a_call_comes_back() {
    let signed = json!({"google": {"thought_signature": "s"}});
    let answer = from_openai_chat(
        &json!({"choices": [{"message": {"role": "assistant", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "get", "arguments": "{}"}, "extra_content": signed}]}}]}),
    );
    assert_eq!(chat(&[Message::user("u"), answer])[1]["tool_calls"][0]["extra_content"], signed);
    let mut of_ui = done("1");
    of_ui["callProviderMetadata"] = json!({"google": {"thoughtSignature": "s"}});
    let view = [Message::user("u"), message("assistant", json!([of_ui]))];
    assert_eq!(chat(&view)[1]["tool_calls"][0]["extra_content"], signed);
}

#[test]
fn an_empty_file_name_is_not_sent() {
    let file = json!({"type": "file", "mediaType": "application/pdf", "filename": "",
        "url": "data:application/pdf;base64,AAAA"});
    let view = [message("user", json!([file]))];
    assert_eq!(chat(&view)[0]["content"][0]["file"]["filename"], "file.pdf");
    assert_eq!(responses(&view)[0]["content"][0]["filename"], "file.pdf");
    let file = json!({"type": "file", "mediaType": "audio/wav", "filename": "", "url": "data:audio/wav;base64,AAAA"});
    let view = [message("user", json!([file]))];
    assert_eq!(chat(&view)[0]["content"], "[file audio/wav: cannot be shown]");
}

// All providers.

#[test]
fn a_steering_message_is_words_of_the_user() {
    let steer = json!({"type": "steering-message", "id": "s", "parts": [text("Only figs.")]});
    let step = json!({"type": "step-start"});
    let view = [
        Message::user("u"),
        message("assistant", json!([step, done("1"), steer, step, text("Figs it is.")])),
    ];
    let expected =
        ["user: text", "assistant: tool_use", "user: tool_result text", "assistant: text"];
    let request = anthropic(&view);
    assert_eq!(blocks(&request), expected);
    assert_eq!(request["messages"][2]["content"][1]["text"], "Only figs.");
    let request = chat(&view);
    assert_eq!(
        (&request[3]["role"], &request[3]["content"]),
        (&json!("user"), &json!("Only figs."))
    );
    assert_eq!(responses(&view)[3]["content"], "Only figs.");
}

#[test]
fn text_files_are_sent_as_text() {
    for (media, url) in [
        ("text/plain", "data:text/plain;base64,ZmlncyDDqQ=="),
        ("text/markdown", "data:text/markdown,figs%20%C3%A9"),
        ("application/json", "data:application/json;charset=utf-8;base64,ZmlncyDDqQ=="),
    ] {
        let file = json!({"type": "file", "mediaType": media, "filename": "a.txt", "url": url});
        let view = [message("user", json!([file]))];
        for request in [anthropic(&view), chat(&view), responses(&view)] {
            assert!(request.to_string().contains("figs é"), "{media}: {request:#}");
            assert!(request.to_string().contains("a.txt"), "{media}: {request:#}");
        }
    }
    // What is no text is named.
    let file = json!({"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain;base64,/w=="});
    assert_eq!(
        chat(&[message("user", json!([file]))])[0]["content"],
        "[file a.txt: cannot be shown]"
    );
}

#[test]
fn images_by_url_of_types_that_no_provider_takes_are_named() {
    for (media, is_image) in [
        ("image/png", true),
        ("image/jpg", true),
        ("IMAGE/WEBP", true),
        ("image/*", true),
        ("image/heic", false),
        ("image/tiff", false),
        ("image/svg+xml", false),
    ] {
        let url = "https://example.org/a";
        let file = json!({"type": "file", "mediaType": media, "url": url});
        let view = [message("user", json!([file]))];
        assert_eq!(blocks(&anthropic(&view)) == ["user: image"], is_image, "{media}");
        assert_eq!(chat(&view)[0]["content"].is_array(), is_image, "{media}");
        assert_eq!(responses(&view)[0]["content"].is_array(), is_image, "{media}");
    }
}

/// A JSON value of this library's dependencies would round them.
#[test]
fn numbers_beyond_what_a_double_holds_survive() {
    let input = r#"{"id": 123456789012345678901234567890, "ids": [9007199254740993, 0.12345678901234567890123], "n": 1e400}"#;
    let mut call = Part::tool_call("get", "1", json!({}));
    if let Part::Tool(tool) = &mut call {
        tool.input = Some(Json::parse(input).unwrap());
        tool.output = Some(Json::parse(r#"[123456789012345678901234567890]"#).unwrap());
    }
    let view = [Message::user("u"), Message::new(Role::Assistant, vec![call])];
    let request = anthropic(&view);
    let sent = &request["messages"][1]["content"][0]["input"];
    assert_eq!(sent["id"], "123456789012345678901234567890", "{sent}");
    assert_eq!(sent["ids"], json!([9_007_199_254_740_993_u64, "0.12345678901234567890123"]));
    assert_eq!(sent["n"], "1e400");
    assert_eq!(request["messages"][2]["content"][0]["content"], "[123456789012345678901234567890]");
    assert_eq!(chat(&view)[1]["tool_calls"][0]["function"]["arguments"], input);
    // What is cut keeps its numbers, too.
    let long = format!(r#"[123456789012345678901234567890, "{}"]"#, "x".repeat(900));
    let result =
        Message::new("tool", vec![Part::tool_result("get", "1", Json::parse(&long).unwrap())]);
    let cut = truncate(
        std::slice::from_ref(&result),
        &TruncateOptions { keep_whole: 0, ..Default::default() },
    )
    .into_owned();
    assert!(serde_json::to_string(&cut[0]).unwrap().contains("123456789012345678901234567890"));
}

#[test]
fn input_that_is_not_json_survives() {
    for part in [
        json!({"rawInput": "{\"q\": ", "errorText": "no JSON"}),
        json!({"input": null, "rawInput": "{\"q\": ", "errorText": "no JSON"}),
        json!({"input": "{\"q\": ", "state": "output-error", "errorText": "no JSON"}),
    ] {
        let mut whole = json!({"type": "tool-get", "toolCallId": "1", "state": "output-error"});
        whole.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        let view = [Message::user("u"), message("assistant", json!([whole]))];
        let input = json!({"input": "{\"q\": "});
        assert_eq!(anthropic(&view)["messages"][1]["content"][0]["input"], input);
        assert_eq!(chat(&view)[1]["tool_calls"][0]["function"]["arguments"], input.to_string());
        assert_eq!(responses(&view)[1]["arguments"], input.to_string());
    }
}

// The AI SDK.

#[track_caller]
fn ai_sdk(view: &[Message]) -> Value {
    let messages = to_ai_sdk(view);
    let problems = validate_for(Provider::AiSdk, &messages);
    assert!(problems.is_empty(), "{problems:#?}\n{messages:#}");
    messages
}

/// The SDK has no role `tool`.
#[test]
fn results_go_into_the_parts_of_their_calls() {
    let failed: Message =
        message("tool", json!([{"type": "tool-get", "toolCallId": "2", "errorText": "no"}]));
    let view = [
        Message::user("u").with_id("m1"),
        message("assistant", json!([text("Let me."), call("1"), call("2"), call("3")]))
            .with_id("m2"),
        message("tool", json!([done("1")])).with_id("m3"),
        failed.with_id("m4"),
        message("tool", json!([{"type": "tool-get", "toolCallId": "9", "output": "late"}]))
            .with_id("m5"),
    ];
    let messages = ai_sdk(&view);
    let tool = |id: &str, rest: Value| {
        let mut part = json!({"type": "tool-get", "toolCallId": id, "input": {"q": id}});
        part.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        part
    };
    let parts = json!([
        text("Let me."),
        tool("1", json!({"state": "output-available", "output": "x"})),
        tool("2", json!({"state": "output-error", "errorText": "no"})),
        tool("3", json!({"state": "input-available"})),
    ]);
    assert_eq!(messages[1], json!({"id": "m2", "role": "assistant", "parts": parts}));
    let stray = json!([text("Result of the tool get: late")]);
    assert_eq!(messages[2], json!({"id": "m5-results", "role": "user", "parts": stray}));
    assert_eq!(messages.as_array().unwrap().len(), 3);
}

#[test]
fn what_a_provider_added_goes_into_the_metadata_of_the_sdk() {
    let answer = from_anthropic(&json!({"content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}]}));
    let messages = ai_sdk(&[Message::user("u"), answer]);
    let of = |fields: Value| json!({"anthropic": fields});
    assert_eq!(messages[1]["parts"][0]["providerMetadata"], of(json!({"signature": "s"})));
    assert_eq!(messages[1]["parts"][1]["providerMetadata"], of(json!({"redactedData": "x"})));
    assert_eq!(messages[1]["parts"][2]["type"], "data-server_tool_use");
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let answer = from_openai_responses(&json!({"output": [item]}));
    let messages = ai_sdk(&[Message::user("u"), answer]);
    assert_eq!(messages[1]["parts"][0]["providerMetadata"], json!({"openai": {"itemId": "rs_1"}}));
}

// Any history.

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

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_converted_request_breaks_no_rule(view in histories(12)) {
        // Without and with the repairs that a caller makes.
        check(&view);
        let sane = sanitize(&view);
        check(&sane);
        prop_assert!(matches!(sanitize(&sane), Cow::Borrowed(_)));
        let options = TruncateOptions { max_text_chars: 3, max_output_chars: 3, ..Default::default() };
        check(&truncate(&sane, &options));
    }

    #[test]
    fn a_longer_view_begins_with_the_request_of_the_shorter(
        view in histories(8),
        more in histories(4),
    ) {
        // If no call waits, the earlier messages stay the same, with their ids.
        let mut view = sanitize(&view).into_owned();
        view.push(Message::user("end"));
        let longer: Vec<_> = view.iter().cloned().chain(more).collect();
        for convert in [to_openai_chat, to_openai_responses] {
            let (short, long) = (convert(&view), convert(&longer));
            let (short, long) = (short.as_array().unwrap(), long.as_array().unwrap());
            prop_assert_eq!(&long[..short.len()], &short[..]);
        }
    }
}

/// A provider cuts its answer where it cites. The pieces were lines: `The capital is \nParis\n, since 987.`
#[test]
fn texts_side_by_side_are_one_text() {
    let cited = json!([{"type": "char_location", "cited_text": "Paris", "document_index": 0,
        "document_title": null, "start_char_index": 0, "end_char_index": 5}]);
    let content = json!([
        {"type": "text", "text": "The capital is "},
        {"type": "text", "text": "Paris", "citations": cited},
        {"type": "text", "text": ", since 987."},
    ]);
    let said = "The capital is Paris, since 987.";
    let answer = from_anthropic(&json!({"role": "assistant", "content": content}));
    assert_eq!(answer.text(), said);
    let view = [Message::user("u"), answer, Message::user("v")];
    assert_eq!(anthropic(&view)["messages"][1]["content"], content);
    assert_eq!(chat(&view)[1]["content"], said);
    assert_eq!(responses(&view)[1]["content"], said);

    // White space between two of them, which no provider accepts alone.
    let texts = |texts: &[&str]| texts.iter().map(|it| text(it)).collect::<Value>();
    let view = [Message::user("u"), message("assistant", texts(&["One.", "\n\n", "Two.", " "]))];
    assert_eq!(view[1].text(), "One.\n\nTwo. ");
    assert_eq!(chat(&view)[1]["content"], "One.\n\nTwo. ");
    let blocks = &anthropic(&view)["messages"][1]["content"];
    assert_eq!(blocks, &json!([text("One.\n\n"), text("Two.")]));

    // Other messages, other items, a refusal, and what people say in several parts are texts of their own.
    let view = [message("assistant", texts(&["a", "b"])), message("assistant", texts(&["c"]))];
    let item = |id: &str, said: &str| {
        json!({"type": "message", "id": id, "role": "assistant",
               "content": [{"type": "output_text", "text": said, "annotations": []}]})
    };
    assert_eq!(chat(&view)[0]["content"], "ab");
    assert_eq!(responses(&view)[0]["content"], "ab");
    let two = from_openai_responses(&json!({"output": [item("msg_1", "a"), item("msg_2", "b")]}));
    assert_eq!(two.text(), "a\nb");
    assert_eq!(chat(&[two])[0]["content"], "a\nb");
    let refused = json!({"choices": [{"message": {"content": "No.", "refusal": "I must not."}}]});
    assert_eq!(from_openai_chat(&refused).text(), "No.\nI must not.");
    assert_eq!(message("user", texts(&["a", "b"])).text(), "a\nb");
}

/// The text said `attached`, and nothing was.
#[test]
fn a_file_that_no_provider_takes_is_not_announced() {
    let file = json!({"type": "file", "mediaType": "application/zip", "filename": "all.zip",
        "url": "data:application/zip;base64,AAAA"});
    let view = [message("user", json!([file]))];
    for request in [anthropic(&view), chat(&view), responses(&view)] {
        assert!(request.to_string().contains("[file all.zip: cannot be shown]"), "{request:#}");
    }
}

/// They were dropped, and with them the reasoning.
#[test]
fn signatures_of_pydantic_ai_are_sent_to_their_provider() {
    let of = |kind: &str, fields: Value| {
        let mut part = fields["part"].clone();
        part[kind] = json!({"pydantic_ai": fields["of"]});
        part
    };
    let thinks = |text: &str, about: Value| {
        let part = json!({"type": "reasoning", "text": text, "state": "done"});
        of("providerMetadata", json!({"part": part, "of": about}))
    };
    let view = |parts: Value| [Message::user("u"), message("assistant", parts), Message::user("v")];

    let signed = thinks("hm", json!({"signature": "s", "provider_name": "anthropic"}));
    let sent = view(json!([signed, text("a")]));
    let block = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    assert_eq!(anthropic(&sent)["messages"][1]["content"][0], block);
    assert_eq!(items(&responses(&sent)), ["user", "assistant", "user"]);

    let redacted =
        json!({"id": "redacted_thinking", "signature": "d", "provider_name": "anthropic"});
    let sent = view(json!([thinks("", redacted), text("a")]));
    let block = json!({"type": "redacted_thinking", "data": "d"});
    assert_eq!(anthropic(&sent)["messages"][1]["content"][0], block);

    let encrypted =
        thinks("hm", json!({"id": "rs_1", "signature": "e", "provider_name": "openai"}));
    let said = json!({"part": text("a"), "of": {"id": "msg_1", "provider_name": "openai"}});
    let sent = view(json!([encrypted, of("providerMetadata", said)]));
    let input = responses(&sent);
    assert_eq!((&input[1]["encrypted_content"], &input[1]["id"]), (&json!("e"), &json!("rs_1")));
    assert_eq!(input[2]["id"], "msg_1");
    assert_eq!(blocks(&anthropic(&sent))[1], "assistant: text");

    let details = json!({"thought_signature": "t"});
    let called = json!({"part": done("1"),
        "of": {"provider_name": "google-gla", "provider_details": details}});
    let sent = view(json!([of("callProviderMetadata", called)]));
    let extra = &chat(&sent)[1]["tool_calls"][0]["extra_content"];
    assert_eq!(extra, &json!({"google": {"thought_signature": "t"}}));
}
