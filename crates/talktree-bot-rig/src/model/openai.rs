//! Answers of the OpenAI chat completions API.

use serde_json::{Value, json};

use super::Event;
use super::request::Said;
use super::script::{Answer, pieces};

/// When every answer was made; the value has no meaning here.
const CREATED: u64 = 1_760_000_000;

/// Returns a whole answer.
pub(super) fn whole(said: &Said, answer: &Answer, id: &str) -> Value {
    let (message, reason) = match answer {
        Answer::Text(text) => {
            (json!({"role": "assistant", "content": text, "refusal": null}), "stop")
        }
        Answer::Call { name, input } => {
            let function = json!({"name": name, "arguments": input.to_string()});
            let call =
                json!({"id": format!("call_{id}"), "type": "function", "function": function});
            let message = json!({"role": "assistant", "content": null, "refusal": null,
                "tool_calls": [call]});
            (message, "tool_calls")
        }
    };
    json!({
        "id": format!("chatcmpl-{id}"),
        "object": "chat.completion",
        "created": CREATED,
        "model": said.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": usage(said, answer),
    })
}

fn usage(said: &Said, answer: &Answer) -> Value {
    let output = answer.tokens();
    json!({"prompt_tokens": said.tokens, "completion_tokens": output,
        "total_tokens": said.tokens + output})
}

/// Returns the events of a streamed answer.
pub(super) fn events(said: &Said, answer: &Answer, id: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut chunk = |choices: Value, usage: Value, is_text| {
        let mut data = json!({"id": format!("chatcmpl-{id}"), "object": "chat.completion.chunk",
            "created": CREATED, "model": said.model, "choices": choices});
        if said.wants_usage {
            data["usage"] = usage;
        }
        events.push(Event { text: format!("data: {data}\n\n"), is_text });
    };
    let choice = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]);
    let mut delta = |delta: Value, is_text| chunk(choice(delta, Value::Null), Value::Null, is_text);
    let reason = match answer {
        Answer::Text(text) => {
            delta(json!({"role": "assistant", "content": "", "refusal": null}), false);
            for piece in pieces(text) {
                delta(json!({"content": piece}), true);
            }
            "stop"
        }
        Answer::Call { name, input } => {
            let call = json!({"index": 0, "id": format!("call_{id}"), "type": "function",
                "function": {"name": name, "arguments": ""}});
            delta(json!({"role": "assistant", "content": null, "tool_calls": [call]}), false);
            for piece in pieces(&input.to_string()) {
                let call = json!({"index": 0, "function": {"arguments": piece}});
                delta(json!({"tool_calls": [call]}), true);
            }
            "tool_calls"
        }
    };
    chunk(choice(json!({}), reason.into()), Value::Null, false);
    if said.wants_usage {
        chunk(json!([]), usage(said, answer), false);
    }
    events.push(Event { text: "data: [DONE]\n\n".to_owned(), is_text: false });
    events
}
