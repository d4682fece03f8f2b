//! The scripted model: what it answers, in which form, and what it notes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use talktree_bot_rig::model::{Asked, Fault, Kind, Options};
use talktree_bot_rig::{Mark, Model};
use talktree_model::from_response;

use crate::client::post;

const ANTHROPIC: [(&str, &str); 2] = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
const OPENAI: [(&str, &str); 1] = [("authorization", "Bearer k")];

fn anthropic(model: &Model, mut body: Value) -> (u16, String) {
    body["model"] = json!("m");
    body["max_tokens"] = json!(100);
    post(&format!("{}/messages", model.url()), &ANTHROPIC, body.to_string()).unwrap()
}

fn openai(model: &Model, mut body: Value) -> (u16, String) {
    body["model"] = json!("m");
    post(&format!("{}/chat/completions", model.url()), &OPENAI, body.to_string()).unwrap()
}

fn start() -> Model {
    Model::start(Options::default()).unwrap()
}

/// Returns this many requests. The last one is noted after its answer, so the client may be earlier.
fn asked(model: &Model, count: usize) -> Vec<Asked> {
    let begun = Instant::now();
    loop {
        let asked = model.asked_from(0);
        if asked.len() >= count {
            return asked;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{} of {count}", asked.len());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the data of server-sent events.
fn data(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn person(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn an_answer_repeats_the_last_mark_and_lists_what_it_saw() {
    let model = start();
    let messages = json!([person("chat4-turn1"), {"role": "assistant", "content": "yes"}, person("chat4-turn2")]);
    let (status, whole) = anthropic(&model, json!({"messages": messages}));
    assert_eq!(status, 200);
    let answer = from_response(&serde_json::from_str(&whole).unwrap()).unwrap();
    assert!(answer.text().starts_with("answer chat4-turn2\nI see chat 4, turns 1 to 2."));
    assert!(answer.text().ends_with("end chat4-turn2"));
    let (_, other) = openai(&model, json!({"messages": messages}));
    let other = from_response(&serde_json::from_str(&other).unwrap()).unwrap();
    assert_eq!(other.text(), answer.text());
    let asked = asked(&model, 2);
    assert_eq!(asked[0].mark, Some(Mark { chat: 4, turn: 2 }));
    assert_eq!((asked[0].kind, asked[0].messages), (Kind::Text, 3));
    assert_eq!(model.violations(), (vec![], 0));
}

#[test]
fn streamed_answers_say_the_same_in_pieces() {
    let model = start();
    let messages = json!([person("chat4-turn2 at length")]);
    let body =
        json!({"messages": messages, "stream": true, "stream_options": {"include_usage": true}});
    let (_, text) = anthropic(&model, json!({"messages": messages, "stream": true}));
    let events = data(&text);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["message_start", "content_block_start", "ping"]);
    assert_eq!(kinds[kinds.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    let streamed: String =
        events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert!(streamed.len() > 4096 && streamed.ends_with("end chat4-turn2"));

    let (_, text) = openai(&model, body);
    assert!(text.ends_with("data: [DONE]\n\n"));
    let chunks = data(&text);
    let content =
        |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    let other: String = chunks.iter().filter_map(content).collect();
    assert_eq!(other, streamed);
    assert!(chunks.last().unwrap()["usage"]["total_tokens"].is_u64());
}

#[test]
fn words_call_tools() {
    let model = start();
    let schema = json!({"type": "object", "required": ["label", "content", "action"], "properties":
        {"label": {"type": "string", "enum": ["soul", "memory"]}}});
    let tools = json!([{"name": "set_context", "input_schema": schema}]);
    let body =
        json!({"messages": [person("chat4-turn2 remember this")], "tools": tools, "stream": true});
    let (_, text) = anthropic(&model, body);
    let partial = data(&text);
    let partial = partial.iter().filter_map(|event| event["delta"]["partial_json"].as_str());
    let input: Value = serde_json::from_str(&partial.collect::<String>()).unwrap();
    assert_eq!((&input["label"], &input["action"]), (&json!("memory"), &Value::Null));

    let tools =
        json!([{"type": "function", "function": {"name": "session_search", "parameters": {}}}]);
    let asks = person("chat4-turn2 search for kettles");
    let body = json!({"messages": [asks], "tools": tools});
    let (_, text) = openai(&model, body);
    let answer: Value = serde_json::from_str(&text).unwrap();
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], "{\"query\":\"kettles\"}");
    let result = json!({"role": "tool", "tool_call_id": call["id"], "content": "none found"});
    let called = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let (_, text) = openai(&model, json!({"messages": [asks, called, result], "tools": tools}));
    assert!(text.contains("The tool said: none found"));
    assert_eq!(model.violations(), (vec![], 0));
}

#[test]
fn requests_that_a_provider_refuses_are_violations() {
    let model = Model::start(Options { window: Some(50), ..Options::default() }).unwrap();
    let answer = json!({"role": "assistant", "content": "x"});
    anthropic(&model, json!({"messages": [answer]}));
    openai(
        &model,
        json!({"messages": [person("chat4-turn2"), {"role": "user", "content": "chat5-turn2"}]}),
    );
    openai(&model, json!({"messages": [person(&"word ".repeat(60))]}));
    openai(
        &model,
        json!({"messages": [person("hi"), {"role": "tool", "content": "x", "tool_call_id": "y"}]}),
    );
    let (found, count) = model.violations();
    assert_eq!(found.len(), count);
    let has = |text: &str| found.iter().any(|violation| violation.contains(text));
    assert!(has("does not begin with a user message"), "{found:?}");
    assert!(has("ends with an assistant message"), "{found:?}");
    assert!(has("shows marks of several chats"), "{found:?}");
    assert!(has("over the limit of 50"), "{found:?}");
    assert!(has("messages[1]"), "{found:?}");
}

#[test]
fn a_request_for_a_summary_gets_one() {
    let model = start();
    let store = talktree::Store::open_in_memory().unwrap();
    let chat = store.session("s").unwrap();
    for turn in 0..60 {
        chat.append(talktree::Message::user(format!("chat4-turn{turn} {}", "rain ".repeat(40))))
            .unwrap();
    }
    let summarizing = model.clone();
    let summarizer = move |prompt: &str| -> Result<String, talktree::BoxError> {
        let (_, text) = openai(&summarizing, json!({"messages": [person(prompt)]}));
        let answer = from_response(&serde_json::from_str(&text).unwrap())?;
        Ok(answer.text())
    };
    let chat = store.session_builder("s").summarizer(summarizer).compact_after(500).open().unwrap();
    chat.append(talktree::Message::user("chat4-turn60")).unwrap();
    assert_eq!(asked(&model, 1)[0].kind, Kind::Summary);
    assert!(
        chat.history()
            .unwrap()
            .iter()
            .any(|message| message.text().contains("A talk from chat4-turn"))
    );
}

#[test]
fn faults_have_the_form_of_the_provider() {
    let model = start();
    let body = json!({"messages": [person("chat4-turn2")], "stream": true});
    model.fail_next(Fault::Overloaded);
    let (status, text) = anthropic(&model, body.clone());
    assert_eq!((status, text.contains("\"overloaded_error\"")), (529, true));
    model.fail_next(Fault::TooMany);
    assert_eq!(openai(&model, body.clone()).0, 429);
    model.fail_next(Fault::Broken);
    assert!(anthropic(&model, body.clone()).1.contains("event: error\n"));
    model.fail_next(Fault::Cut);
    let url = format!("{}/messages", model.url());
    assert!(post(&url, &ANTHROPIC, body.to_string()).is_err());
    model.fail_next(Fault::Slow(Duration::from_millis(150)));
    anthropic(&model, body);
    let asked = asked(&model, 5);
    assert!(asked[4].ended - asked[4].at >= Duration::from_millis(150));
    assert!(asked[0].first_text.is_none() && asked[3].first_text.is_some());
}
