//! What streams become: the shapes that providers and servers send, streams that end badly, and random responses, which
//! come out of a stream as they went in.

use serde_json::{Value, json};

use super::*;
use crate::model::from_response;

type New = fn() -> Stream;

const PROVIDERS: [New; 3] = [Stream::anthropic, Stream::openai_chat, Stream::openai_responses];

/// Returns the response of a body, and its text as it was shown.
fn read(new: New, body: &str) -> Result<(Value, String)> {
    let mut stream = new();
    let mut shown = String::new();
    for line in body.split('\n') {
        shown.extend(stream.line(line)?);
    }
    assert_eq!(stream.text(), shown);
    Ok((stream.finish()?, shown))
}

/// Returns a body with these events; the name of an event is its type, if it has one.
fn body(events: &[Value]) -> String {
    let event = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(event).collect()
}

/// Returns why a body has no answer.
#[track_caller]
fn why(new: New, body: &str) -> String {
    match read(new, body) {
        Err(Error::NoAnswer { why }) => why,
        other => panic!("{other:?}"),
    }
}

fn chunk(delta: Value) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "small",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
}

fn chunks(deltas: &[Value], reason: &str) -> String {
    let mut events: Vec<Value> = deltas.iter().cloned().map(chunk).collect();
    events
        .push(json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    body(&events) + "data: [DONE]\n\n"
}

fn message_start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "large", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 25, "cache_read_input_tokens": 9, "output_tokens": 1}}})
}

#[test]
fn an_anthropic_stream_has_reasoning_text_calls_and_the_final_usage() {
    let events = [
        message_start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Two and"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": " two."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "EqQB"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": " look."}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "look"}}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"city\": \"Je"}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "na\", \"days\": 3}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "toolu_2", "name": "time", "input": {}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "a_type_of_tomorrow", "index": 3, "delta": {"type": "?"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "context_management": {"applied_edits": []},
            "usage": {"output_tokens": 89, "input_tokens": null}}),
        json!({"type": "message_stop"}),
    ];
    let (response, shown) = read(Stream::anthropic, &body(&events)).unwrap();
    assert_eq!(shown, "Let me look.");
    assert_eq!(
        response,
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "large",
            "content": [
                {"type": "thinking", "thinking": "Two and two.", "signature": "EqQB"},
                {"type": "text", "text": "Let me look.", "citations": [{"type": "char_location", "cited_text": "look"}]},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Jena", "days": 3}},
                {"type": "tool_use", "id": "toolu_2", "name": "time", "input": {}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null, "context_management": {"applied_edits": []},
            "usage": {"input_tokens": 25, "cache_read_input_tokens": 9, "output_tokens": 89}})
    );
    let answer = from_response(&response).unwrap();
    assert_eq!(crate::Usage::of(&answer).map(|usage| usage.output), Some(89));
}

#[test]
fn an_input_that_was_cut_off_is_the_text_as_it_came() {
    let events = [
        message_start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "write", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"text\": \"Once"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let (response, _) = read(Stream::anthropic, &body(&events)).unwrap();
    assert_eq!(response["content"][0]["input"], "{\"text\": \"Once");
    assert_eq!(from_response(&response).unwrap().parts[0].kind(), "tool-write");

    let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "write", "arguments": "{\"text\": \"Once"}}]});
    let (response, _) = read(Stream::openai_chat, &chunks(&[call], "length")).unwrap();
    assert_eq!(response["choices"][0]["finish_reason"], "length");
    assert_eq!(
        response["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"],
        "{\"text\": \"Once"
    );
}

#[test]
fn a_chat_stream_has_text_reasoning_parallel_calls_and_usage() {
    let events = [
        json!({"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
        chunk(json!({"role": "assistant", "content": "", "refusal": null})),
        chunk(json!({"role": "assistant", "reasoning_content": "Two and"})),
        chunk(json!({"reasoning_content": " two."})),
        chunk(json!({"content": "Let me"})),
        json!({"id": "c1", "choices": [{"index": 1, "delta": {"content": "the second choice"}}]}),
        chunk(json!({"content": " look."})),
        chunk(
            json!({"tool_calls": [{"index": 0, "id": "call_a", "type": "function", "function": {"name": "weather", "arguments": ""}}]}),
        ),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"city\""}}]})),
        chunk(
            json!({"tool_calls": [{"index": 1, "id": "call_b", "type": "function", "function": {"name": "time", "arguments": "{}"}},
            {"index": 0, "function": {"arguments": ": \"Jena\"}"}}]}),
        ),
        json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"id": "c1", "model": "small", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}),
    ];
    let (response, shown) =
        read(Stream::openai_chat, &(body(&events) + "data: [DONE]\n\n")).unwrap();
    assert_eq!(shown, "Let me look.");
    assert_eq!(
        response,
        json!({"id": "c1", "object": "chat.completion", "created": 7, "model": "small",
            "prompt_filter_results": [{"prompt_index": 0}],
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "reasoning_content": "Two and two.", "content": "Let me look.",
                "tool_calls": [
                    {"id": "call_a", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Jena\"}"}},
                    {"id": "call_b", "type": "function", "function": {"name": "time", "arguments": "{}"}},
                ]}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}})
    );
}

/// Returns the calls of a chat stream as `id name(input)`.
fn calls(deltas: &[Value]) -> Vec<String> {
    let (response, _) = read(Stream::openai_chat, &chunks(deltas, "tool_calls")).unwrap();
    let calls = response["choices"][0]["message"]["tool_calls"].as_array().cloned();
    let call = |call: Value| {
        let function = &call["function"];
        let input = match &function["arguments"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let id = call["id"].as_str().filter(|id| !id.is_empty()).unwrap_or("-");
        format!("{id} {}({input})", function["name"].as_str().unwrap_or("-"))
    };
    calls.into_iter().flatten().map(call).collect()
}

#[test]
fn calls_are_told_apart_as_the_servers_number_them() {
    let call = |call: Value| json!({"tool_calls": [call]});
    let all_zero = ["a", "b"].map(|id| {
        call(json!({"index": 0, "id": id, "function": {"name": "get", "arguments": "{}"}}))
    });
    assert_eq!(calls(&all_zero), ["a get({})", "b get({})"]);

    let no_ids = ["get", "put"].map(|name| {
        call(json!({"index": 0, "id": "", "function": {"name": name, "arguments": "{}"}}))
    });
    assert_eq!(calls(&no_ids), ["- get({})", "- put({})"]);

    let unnumbered = [
        call(json!({"id": "a", "function": {"name": "get", "arguments": "{\"n\""}})),
        call(json!({"id": "a", "function": {"arguments": ": 1}"}})),
        call(json!({"id": "b", "function": {"name": "get", "arguments": "{}"}})),
    ];
    assert_eq!(calls(&unnumbered), ["a get({\"n\": 1})", "b get({})"]);

    let whole =
        ["get", "get"].map(|name| call(json!({"function": {"name": name, "arguments": {"n": 1}}})));
    assert_eq!(calls(&whole), ["- get({\"n\":1})", "- get({\"n\":1})"]);

    let another_id_each_time = [
        call(json!({"index": 0, "id": "x1", "function": {"name": "get", "arguments": "{"}})),
        call(json!({"index": 0, "id": "x2", "function": {"arguments": "}"}})),
    ];
    assert_eq!(calls(&another_id_each_time), ["x1 get({})"]);

    let repeated = [
        call(
            json!({"index": 3, "id": "a", "type": "function", "function": {"name": "get", "arguments": "{"}}),
        ),
        call(
            json!({"index": 3, "id": "a", "type": "function", "function": {"name": "get", "arguments": "}"}}),
        ),
    ];
    assert_eq!(calls(&repeated), ["a get({})"]);
}

#[test]
fn what_servers_add_to_chat_streams_is_kept() {
    let deltas = [
        json!({"role": "assistant", "reasoning": "Two", "reasoning_details": [{"type": "reasoning.text", "text": "Two", "index": 0, "format": "f"}]}),
        json!({"role": "assistant", "reasoning": " and", "reasoning_details": [{"type": "reasoning.text", "text": " and", "index": 0, "format": "f"}]}),
        json!({"reasoning_details": [{"type": "reasoning.text", "signature": "EqQB", "index": 0, "format": "f"}]}),
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "AAA", "index": 1}]}),
        json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "extra_content": {"google": {"thought_signature": "S"}}, "function": {"name": "get", "arguments": "{}"}}]}),
        json!({"tool_calls": [{"index": 1, "id": "b", "type": "custom", "custom": {"name": "run", "input": "l"}}]}),
        json!({"tool_calls": [{"index": 1, "custom": {"input": "s"}}]}),
        json!({"audio": {"id": "audio_1", "transcript": "Fo"}}),
        json!({"audio": {"transcript": "ur."}}),
    ];
    let (response, shown) = read(Stream::openai_chat, &chunks(&deltas, "stop")).unwrap();
    assert_eq!(shown, "Four.");
    assert_eq!(
        response["choices"][0]["message"],
        json!({"role": "assistant", "content": null, "reasoning": "Two and",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "Two and", "signature": "EqQB", "index": 0, "format": "f"},
                {"type": "reasoning.encrypted", "data": "AAA", "index": 1},
            ],
            "tool_calls": [
                {"id": "a", "type": "function", "extra_content": {"google": {"thought_signature": "S"}}, "function": {"name": "get", "arguments": "{}"}},
                {"id": "b", "type": "custom", "custom": {"name": "run", "input": "ls"}},
            ],
            "audio": {"id": "audio_1", "transcript": "Four."}})
    );
    let usage = json!({"choices": [{"index": 0, "delta": {"content": "4"}, "finish_reason": "stop", "usage": {"total_tokens": 3}}]});
    let (response, _) = read(Stream::openai_chat, &body(&[usage])).unwrap();
    assert_eq!(response["usage"]["total_tokens"], 3);
}

#[test]
fn content_in_pieces_is_one_piece_for_each_stretch_of_a_kind() {
    let thinking = |text: &str| json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]});
    let deltas = [
        thinking("Two"),
        thinking(" and two."),
        json!({"content": "It"}),
        json!({"content": [{"type": "text", "text": " is 4."}]}),
    ];
    let (response, shown) = read(Stream::openai_chat, &chunks(&deltas, "stop")).unwrap();
    assert_eq!(
        response["choices"][0]["message"]["content"],
        json!([
            {"type": "thinking", "thinking": [{"type": "text", "text": "Two and two."}]},
            {"type": "text", "text": "It is 4."},
        ])
    );
    assert_eq!(
        (shown.as_str(), from_response(&response).unwrap().text().as_str()),
        ("It is 4.", "It is 4.")
    );

    let deltas = [json!({"content": "It"}), json!({"content": [{"type": "text", "text": " is"}]})];
    let (response, shown) = read(Stream::openai_chat, &chunks(&deltas, "stop")).unwrap();
    assert_eq!((shown, from_response(&response).unwrap().text()), ("It is".into(), "It is".into()));
}

fn responses_events() -> Vec<Value> {
    let item = |item: Value| json!({"type": "response.output_item.added", "output_index": 1, "item": item});
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"id": "rs_1", "type": "reasoning", "summary": []}}),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Two and"}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": " two."}),
        item(
            json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}),
        ),
        json!({"type": "response.content_part.added", "output_index": 1, "content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Let me"}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": " look."}),
        json!({"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "Let me look."}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": {"id": "fc_1", "type": "function_call", "call_id": "call_a", "name": "weather", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"city\""}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": ": \"Jena\"}"}),
        json!({"type": "response.output_item.added", "output_index": 3, "item": {"id": "ct_1", "type": "custom_tool_call", "call_id": "call_b", "name": "run", "input": ""}}),
        json!({"type": "response.custom_tool_call_input.delta", "output_index": 3, "delta": "ls"}),
        json!({"type": "response.an_event_of_tomorrow", "output_index": 3, "delta": {"x": 1}}),
    ]
}

#[test]
fn a_responses_stream_has_the_items_also_if_the_last_event_leaves_them_out() {
    let output = json!([
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Two and two."}]},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
        {"id": "fc_1", "type": "function_call", "call_id": "call_a", "name": "weather", "arguments": "{\"city\": \"Jena\"}"},
        {"id": "ct_1", "type": "custom_tool_call", "call_id": "call_b", "name": "run", "input": "ls"},
    ]);
    for sent in [output.clone(), json!([]), Value::Null] {
        let mut events = responses_events();
        events.push(json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": sent, "usage": {"output_tokens": 5}}}));
        let (response, shown) = read(Stream::openai_responses, &body(&events)).unwrap();
        assert_eq!(shown, "Let me look.");
        assert_eq!(
            response,
            json!({"id": "resp_1", "status": "completed", "output": output, "usage": {"output_tokens": 5}})
        );
    }
    // An item that is done is the provider's own.
    let mut events = responses_events();
    events.push(json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "status": "completed", "content": [{"type": "output_text", "text": "Let me look."}]}}));
    events.push(json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}}));
    let (response, shown) = read(Stream::openai_responses, &body(&events)).unwrap();
    assert_eq!(
        (shown.as_str(), &response["output"][1]["status"]),
        ("Let me look.", &json!("completed"))
    );
    assert_eq!(response["status"], "incomplete");
}

#[test]
fn text_without_deltas_is_shown_when_its_item_or_the_response_comes() {
    let text = |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}, {"type": "refusal", "refusal": "No more."}]});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": text("4")});
    let completed =
        |output: Value| json!({"type": "response.completed", "response": {"output": output}});
    for events in [vec![done, completed(json!([]))], vec![completed(json!([text("4")]))]] {
        let (response, shown) = read(Stream::openai_responses, &body(&events)).unwrap();
        assert_eq!(shown, "4\nNo more.");
        assert_eq!(from_response(&response).unwrap().text(), shown);
    }
}

#[test]
fn lines_end_in_any_way_and_comments_and_unknown_fields_are_skipped() {
    let plain = "data: {\"choices\":[{\"delta\":{\"content\":\"It is\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" 4.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (whole, _) = read(Stream::openai_chat, plain).unwrap();
    for body in [
        plain.replace('\n', "\r\n"),
        plain.replace("data: ", "data:"),
        plain.replace("data: ", ": keep-alive\n: OPENROUTER PROCESSING\ndata: "),
        plain.replace("data: ", "id: 7\nevent: message\nretry: 10\nunknown: x\ndata: "),
        plain.replace("\n\n", "\n\n\n\n: ping\n\n"),
        plain.replace("{\"delta\"", "\ndata: {\ndata:   \"delta\""),
        plain.trim_end().to_owned(),
        plain.replace("\n\n", "\n"),
        plain.replace("data: [DONE]\n\n", ""),
        plain.replace("data: [DONE]\n\n", "").trim_end().to_owned(),
        format!("\u{FEFF}{plain}"),
        format!(
            "{plain}data: {{\"choices\":[{{\"delta\":{{\"content\":\"after the end\"}}}}]}}\n\nrubbish\n\n"
        ),
    ] {
        let (response, shown) = read(Stream::openai_chat, &body).unwrap();
        assert_eq!((&response, shown.as_str()), (&whole, "It is 4."), "{body}");
    }
    // Lines with their breaks, and several at once.
    let mut stream = Stream::openai_chat();
    let shown: String =
        plain.split_inclusive('\n').filter_map(|line| stream.line(line).unwrap()).collect();
    assert_eq!((shown.as_str(), stream.is_complete()), ("It is 4.", true));
    let mut stream = Stream::openai_chat();
    assert_eq!(stream.line(plain).unwrap().as_deref(), Some("It is 4."));
    assert_eq!(stream.finish().unwrap(), whole);
}

#[test]
fn an_error_in_a_stream_is_named_and_stays() {
    let start = body(&[message_start()]);
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(why(Stream::anthropic, &(start.clone() + &body(&[overloaded]))), "Overloaded");
    for (new, body, expected) in [
        (
            Stream::openai_chat as New,
            body(&[
                json!({"error": {"message": "no\nluck"}, "choices": [{"delta": {}, "finish_reason": "error"}]}),
            ]),
            "no luck",
        ),
        (
            Stream::openai_chat,
            body(&[json!({"choices": [{"error": {"message": "cut by the provider"}}]})]),
            "cut by the provider",
        ),
        (
            Stream::openai_chat,
            "event: error\ndata: {\"message\": \"too busy\"}\n\n".to_owned(),
            "too busy",
        ),
        (
            Stream::openai_chat,
            "event: error\ndata: upstream is down\n\n".to_owned(),
            "upstream is down",
        ),
        (
            Stream::openai_chat,
            "data: <html>\n\n".to_owned(),
            "an event of the stream is no JSON object; it has 6 bytes",
        ),
        (
            Stream::openai_chat,
            "data: [1]\n\n".to_owned(),
            "an event of the stream is no JSON object; it has 3 bytes",
        ),
        (
            Stream::openai_responses,
            body(&[json!({"type": "error", "code": "rate_limit", "message": "slow down"})]),
            "slow down",
        ),
        (
            Stream::openai_responses,
            body(&[
                json!({"type": "response.failed", "response": {"status": "failed", "error": {"message": "too long"}}}),
            ]),
            "too long",
        ),
        (
            Stream::openai_responses,
            body(&[
                json!({"type": "response.failed", "response": {"status": "failed", "error": null}}),
            ]),
            "its status is failed",
        ),
    ] {
        assert_eq!(why(new, &body), expected);
    }
    let mut stream = Stream::openai_chat();
    stream.line("data: {\"choices\":[{\"delta\":{\"content\":\"It\"}}]}").unwrap();
    stream.line("").unwrap();
    assert!(stream.line("data: {\"error\":\"gone\"}").is_err());
    for line in
        ["", "data: {\"choices\":[{\"delta\":{\"content\":\" is\"}}]}", "", "data: [DONE]", ""]
    {
        let error = stream.line(line).unwrap_err().to_string();
        assert_eq!(error, "the response holds no answer of a model: gone");
    }
    assert_eq!((stream.text(), stream.is_complete()), ("It", false));
    assert!(matches!(stream.finish(), Err(Error::NoAnswer { why }) if why == "gone"));
}

#[test]
fn a_stream_that_is_cut_is_no_answer() {
    let cut = "the stream ended before the answer was complete";
    for new in PROVIDERS {
        assert_eq!(why(new, ""), cut);
        assert_eq!(why(new, ": keep-alive\n\n"), cut);
    }
    let responses = body(&responses_events());
    assert_eq!(why(Stream::openai_responses, &responses), cut);
    assert_eq!(
        why(Stream::openai_responses, &(responses + "data: {\"type\":\"response.comp")),
        cut
    );
    let chat = body(&[chunk(json!({"content": "It is"}))]);
    assert_eq!(why(Stream::openai_chat, &chat), cut);
    assert_eq!(
        why(Stream::openai_chat, &(chat.clone() + "data: {\"choices\":[{\"delta\":{\"con")),
        cut
    );
    // Servers that send an empty reason with each chunk.
    assert_eq!(
        why(
            Stream::openai_chat,
            &body(&[json!({"choices": [{"delta": {"content": "It"}, "finish_reason": ""}]})])
        ),
        cut
    );
    let anthropic = body(&[
        message_start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "It"}}),
        json!({"type": "content_block_stop", "index": 0}),
    ]);
    assert_eq!(why(Stream::anthropic, &anthropic), cut);
    // Only the end of the stream is missing: the answer is there.
    let stopping = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}});
    let (response, shown) = read(Stream::anthropic, &(anthropic + &body(&[stopping]))).unwrap();
    assert_eq!((shown.as_str(), &response["stop_reason"]), ("It", &json!("end_turn")));
}

#[test]
fn a_plain_body_is_the_response_or_its_error() {
    let whole = json!({"id": "c1", "choices": [{"message": {"content": "4"}}]});
    for body in
        [whole.to_string(), format!("{whole:#}"), format!("{whole:#}\r\n").replace('\n', "\r\n")]
    {
        let (response, shown) = read(Stream::openai_chat, &body).unwrap();
        assert_eq!((&response, shown.as_str()), (&whole, ""));
    }
    let error = json!({"error": {"message": "invalid key"}});
    for new in PROVIDERS {
        assert_eq!(why(new, &format!("{error:#}")), "invalid key");
        assert_eq!(why(new, "<html>502</html>"), "the body has no events; it has 16 bytes");
    }
}

#[test]
fn values_of_any_type_in_any_field_are_no_panic() {
    let values = [
        json!(null),
        json!(7),
        json!("x"),
        json!([1, "x", {}]),
        json!({"text": 1, "index": {}}),
        json!([[]]),
    ];
    let mut templates: Vec<Value> = responses_events();
    templates.extend([
        message_start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": 1}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "x"}, "usage": {"output_tokens": 1}}),
        chunk(json!({"content": [{"type": "text", "text": "a"}], "tool_calls": [{"index": 0, "id": "a", "function": {"name": "n", "arguments": "{}"}}], "audio": {"transcript": "t"}, "reasoning_details": [{"index": 0}]})),
    ]);
    for template in &templates {
        let Value::Object(fields) = template else { continue };
        for field in fields.keys() {
            for value in &values {
                let mut event = template.clone();
                event[field] = value.clone();
                for inner in ["content", "tool_calls", "choices", "delta", "function", "audio"] {
                    if let Some(choice) = event.pointer_mut("/choices/0/delta")
                        && choice.is_object()
                    {
                        choice[inner] = value.clone();
                    }
                    for new in PROVIDERS {
                        // Twice, so that what was stored meets it again.
                        let _ = read(
                            new,
                            &body(&[
                                template.clone(),
                                event.clone(),
                                event.clone(),
                                template.clone(),
                            ]),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_stream_has_a_limit() {
    let mut stream = Stream::openai_chat();
    let line = format!(": {}", "x".repeat((64 << 20) - 2));
    for _ in 0..4 {
        assert_eq!(stream.line(&line).unwrap(), None);
    }
    let error = stream.line("x").unwrap_err().to_string();
    assert!(error.ends_with("the stream is over the limit of 268435456 bytes"), "{error}");
}

/// A random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 10] =
            ["It", " is", " 4.", "\n", "\r\n", "\"", "\\u00e9", "é", "👩‍👧", "data: x\n\n"];
        let count = 1 + self.below(6);
        (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect()
    }

    fn input(&mut self) -> Value {
        match self.below(3) {
            0 => json!({}),
            1 => json!({ self.text(): self.text(), "n": self.below(100) }),
            _ => json!({"list": [self.text(), {"deep": [null, true, 1.5]}]}),
        }
    }

    /// Splits a text into pieces, which may be empty.
    fn pieces(&mut self, text: &str) -> Vec<String> {
        let (mut pieces, mut piece) = (Vec::new(), String::new());
        for c in text.chars() {
            piece.push(c);
            while self.below(3) == 0 {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        pieces.push(piece);
        pieces
    }

    /// Returns a body with these events, in one of the ways in which bodies are written.
    fn body(&mut self, events: Vec<Value>) -> String {
        let mut body = String::new();
        for event in events {
            match self.below(8) {
                0 => body.push_str(": ping\n\n"),
                1 => body.push_str("event: tomorrow\ndata: {\"type\":\"tomorrow\"}\n\n"),
                _ => {}
            }
            let text = match self.below(4) {
                0 => format!("{event:#}").replace('\n', "\ndata: "),
                _ => event.to_string(),
            };
            body.push_str(&format!("data: {text}\n\n"));
        }
        if self.below(3) == 0 { body.replace('\n', "\r\n") } else { body }
    }

    fn anthropic(&mut self) -> (Value, Vec<Value>) {
        let mut blocks = Vec::new();
        let mut events = vec![message_start()];
        for index in 0..1 + self.below(4) {
            let mut deltas = Vec::new();
            let (start, block) = match self.below(5) {
                0 => {
                    let thinking = self.text();
                    for piece in self.pieces(&thinking) {
                        deltas.push(json!({"type": "thinking_delta", "thinking": piece}));
                    }
                    deltas.push(json!({"type": "signature_delta", "signature": "S"}));
                    (
                        json!({"type": "thinking", "thinking": "", "signature": ""}),
                        json!({"type": "thinking", "thinking": thinking, "signature": "S"}),
                    )
                }
                1 => {
                    let input = self.input();
                    if input != json!({}) {
                        for piece in self.pieces(&input.to_string()) {
                            deltas.push(json!({"type": "input_json_delta", "partial_json": piece}));
                        }
                    }
                    let of = |input: &Value| json!({"type": "tool_use", "id": format!("t{index}"), "name": "get", "input": input});
                    (of(&json!({})), of(&input))
                }
                2 => {
                    let block = json!({"type": "web_search_tool_result", "content": [self.text()]});
                    (block.clone(), block)
                }
                _ => {
                    let text = self.text();
                    for piece in self.pieces(&text) {
                        deltas.push(json!({"type": "text_delta", "text": piece}));
                    }
                    (json!({"type": "text", "text": ""}), json!({"type": "text", "text": text}))
                }
            };
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            );
            events.extend(deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
            events.push(json!({"type": "content_block_stop", "index": index}));
            blocks.push(block);
        }
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 50}}));
        events.push(json!({"type": "message_stop"}));
        let mut whole = message_start()["message"].take();
        whole["content"] = Value::Array(blocks);
        whole["stop_reason"] = json!("end_turn");
        whole["usage"]["output_tokens"] = json!(50);
        (whole, events)
    }

    fn chat(&mut self) -> (Value, Vec<Value>) {
        let mut message = json!({"role": "assistant", "content": null});
        let mut deltas = vec![json!({"role": "assistant"})];
        for field in ["reasoning_content", "content", "refusal"] {
            if self.below(3) > 0 {
                let text = self.text();
                for piece in self.pieces(&text) {
                    deltas.push(json!({ field: piece }));
                }
                message[field] = json!(text);
            }
        }
        for index in 0..self.below(4) {
            let input = self.input().to_string();
            let id = format!("call_{index}");
            let call =
                |function: Value| json!({"id": id, "type": "function", "function": function});
            let mut first = call(json!({"name": "get", "arguments": ""}));
            first["index"] = json!(index);
            deltas.push(json!({"tool_calls": [first]}));
            for piece in self.pieces(&input) {
                deltas.push(
                    json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                );
            }
            let list = &mut message["tool_calls"];
            if list.is_null() {
                *list = json!([]);
            }
            list.as_array_mut().unwrap().push(call(json!({"name": "get", "arguments": input})));
        }
        let usage = json!({"prompt_tokens": 3, "completion_tokens": 4});
        let whole = json!({"id": "c1", "object": "chat.completion", "created": 7, "model": "small",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage});
        let mut events: Vec<Value> = deltas.into_iter().map(chunk).collect();
        events.push(
            json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        );
        events.push(json!({"id": "c1", "choices": [], "usage": usage}));
        (whole, events)
    }

    fn responses(&mut self) -> (Value, Vec<Value>) {
        let (mut output, mut events) = (Vec::new(), Vec::new());
        events.push(json!({"type": "response.created", "response": {"id": "r1", "status": "in_progress", "output": []}}));
        for index in 0..1 + self.below(4) {
            let mut event = |mut event: Value| {
                event["output_index"] = json!(index);
                events.push(event);
            };
            let item = match self.below(3) {
                0 => {
                    let input = self.input().to_string();
                    let of = |input: &str| json!({"type": "function_call", "call_id": "a", "name": "get", "arguments": input});
                    event(json!({"type": "response.output_item.added", "item": of("")}));
                    for piece in self.pieces(&input) {
                        event(
                            json!({"type": "response.function_call_arguments.delta", "delta": piece}),
                        );
                    }
                    of(&input)
                }
                1 => {
                    let text = self.text();
                    event(
                        json!({"type": "response.output_item.added", "item": {"type": "reasoning", "summary": []}}),
                    );
                    event(
                        json!({"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
                    );
                    for piece in self.pieces(&text) {
                        event(
                            json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": piece}),
                        );
                    }
                    json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
                }
                _ => {
                    let of = |content: &[Value]| json!({"type": "message", "role": "assistant", "content": content});
                    event(json!({"type": "response.output_item.added", "item": of(&[])}));
                    let mut content = Vec::new();
                    for part in 0..1 + self.below(2) {
                        let (kind, field, name) = match self.below(4) {
                            0 => ("refusal", "refusal", "response.refusal.delta"),
                            _ => ("output_text", "text", "response.output_text.delta"),
                        };
                        let text = self.text();
                        event(
                            json!({"type": "response.content_part.added", "content_index": part, "part": {"type": kind, field: ""}}),
                        );
                        for piece in self.pieces(&text) {
                            event(json!({"type": name, "content_index": part, "delta": piece}));
                        }
                        content.push(json!({"type": kind, field: text}));
                    }
                    of(&content)
                }
            };
            if self.below(2) == 0 {
                event(json!({"type": "response.output_item.done", "item": item.clone()}));
            }
            output.push(item);
        }
        let whole = json!({"id": "r1", "status": "completed", "output": output, "usage": {"output_tokens": 4}});
        let mut last = whole.clone();
        if self.below(3) == 0 {
            last["output"] = json!([]);
        }
        events.push(json!({"type": "response.completed", "response": last}));
        (whole, events)
    }
}

#[test]
fn a_streamed_response_is_the_whole_one_and_its_pieces_are_the_text() {
    for seed in 0..600 {
        let mut random = Random(seed);
        for (new, (whole, events)) in [
            (PROVIDERS[0], random.anthropic()),
            (PROVIDERS[1], random.chat()),
            (PROVIDERS[2], random.responses()),
        ] {
            let mut body = random.body(events);
            if random.below(2) == 0 {
                body.push_str("data: [DONE]\n\n");
            }
            let (response, shown) = read(new, &body).unwrap();
            assert_eq!(response, whole, "seed {seed}");
            assert_eq!(shown, from_response(&whole).unwrap().text(), "seed {seed}");
            // Cut anywhere, it is an error or the same answer.
            let cut = body.char_indices().map(|(at, _)| at).nth(random.below(body.len()));
            if let Ok((response, _)) = read(new, &body[..cut.unwrap_or_default()]) {
                assert_eq!(
                    from_response(&response).unwrap().parts,
                    from_response(&whole).unwrap().parts,
                    "seed {seed}"
                );
            }
        }
    }
}
