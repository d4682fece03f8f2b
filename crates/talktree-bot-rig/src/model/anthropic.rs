//! Answers of the Anthropic messages API.

use serde_json::{Value, json};

use super::Event;
use super::request::Said;
use super::script::{Answer, pieces};

/// What the model says before it calls a tool.
const BEFORE: &str = "Let me see.";

/// Returns a whole answer.
pub(super) fn whole(said: &Said, answer: &Answer, id: &str) -> Value {
    let (content, stop) = match answer {
        Answer::Text(text) => (json!([{"type": "text", "text": text}]), "end_turn"),
        Answer::Call { name, input } => {
            let call = json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": input});
            (json!([{"type": "text", "text": BEFORE}, call]), "tool_use")
        }
    };
    json!({
        "id": format!("msg_{id}"),
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": usage(said, answer),
    })
}

fn usage(said: &Said, answer: &Answer) -> Value {
    let output = answer.tokens();
    json!({"input_tokens": said.tokens, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "output_tokens": output, "service_tier": "standard"})
}

/// Returns the events of a streamed answer.
pub(super) fn events(said: &Said, answer: &Answer, id: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut message = whole(said, answer, id);
    let stop = message["stop_reason"].take();
    message["content"] = json!([]);
    message["usage"]["output_tokens"] = json!(1);
    let mut add = |name: &str, data: Value, is_text| {
        events.push(Event { text: format!("event: {name}\ndata: {data}\n\n"), is_text });
    };
    add("message_start", json!({"type": "message_start", "message": message}), false);
    let mut block = |index: usize, start: Value, deltas: Vec<Value>| {
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        add("content_block_start", start, false);
        if index == 0 {
            add("ping", json!({"type": "ping"}), false);
        }
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            add("content_block_delta", delta, true);
        }
        add("content_block_stop", json!({"type": "content_block_stop", "index": index}), false);
    };
    let texts = |text| {
        let pieces = pieces(text).into_iter();
        pieces.map(|piece| json!({"type": "text_delta", "text": piece})).collect()
    };
    match answer {
        Answer::Text(text) => block(0, json!({"type": "text", "text": ""}), texts(text)),
        Answer::Call { name, input } => {
            block(0, json!({"type": "text", "text": ""}), texts(BEFORE));
            let input = input.to_string();
            let mut deltas = vec![json!({"type": "input_json_delta", "partial_json": ""})];
            let pieces = pieces(&input).into_iter();
            deltas.extend(
                pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})),
            );
            let id = format!("toolu_{id}");
            block(1, json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas);
        }
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    let usage = json!({"output_tokens": usage(said, answer)["output_tokens"]});
    add("message_delta", json!({"type": "message_delta", "delta": delta, "usage": usage}), false);
    add("message_stop", json!({"type": "message_stop"}), false);
    events
}
