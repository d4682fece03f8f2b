//! The model of the example `bot_core`: a script.
#![allow(unreachable_pub, reason = "it is a module of an example")]

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

/// Returns what the model answers to a request, in the form of the Anthropic messages API.
pub fn answer(request: &Value) -> Value {
    static COLOURS: AtomicUsize = AtomicUsize::new(0);
    let knows = |what: &str| request["system"].to_string().contains(what);
    let last = request["messages"].as_array().and_then(|all| all.last()).map(Value::to_string);
    let last = last.unwrap_or_default();
    let is_result = last.contains("tool_result");
    let say = |text: &str| json!({"type": "text", "text": text});
    let call = |name: &str, input: Value| json!({"type": "tool_use", "id": "c", "name": name, "input": input});
    let content = match () {
        () if is_result && last.contains("Mozart") => say("Your cat is called Mozart."),
        () if is_result && last.contains("celsius") => say("21 degrees."),
        () if is_result && last.contains("Written") => say("Nice to meet you, Bob."),
        () if is_result => say("I do not know."),
        () if last.contains("I am Bob") => {
            call("set_context", json!({"label": "memory", "content": "Is called Bob."}))
        }
        () if last.contains("Who am I") => {
            say(if knows("Is called Bob.") { "You are Bob." } else { "I do not know you." })
        }
        () if last.contains("cat called") => call("session_search", json!({"query": "cat"})),
        () if last.contains("weather") => call("weather", json!({"city": "Jena"})),
        () if last.contains("colour") => {
            say(["Red.", "Blue."][COLOURS.fetch_add(1, Ordering::Relaxed) % 2])
        }
        () => say("Noted."),
    };
    let tokens = json!({"input_tokens": last.len() / 4, "output_tokens": 5});
    json!({"type": "message", "role": "assistant", "model": "scripted", "content": [content], "usage": tokens})
}
