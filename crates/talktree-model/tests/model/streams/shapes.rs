//! The shapes of streams that providers and servers send.

use super::*;

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
    assert_eq!(talktree::Usage::of(&answer).map(|usage| usage.output), Some(89));
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
