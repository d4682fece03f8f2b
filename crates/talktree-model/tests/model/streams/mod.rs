//! What streams become, and what the tests of it share.

mod broken;
mod random;
mod shapes;

use serde_json::{Value, json};
use talktree::{Error, Result};
use talktree_model::{Stream, from_response};

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
