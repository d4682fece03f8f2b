//! The OpenAI chat API accepts every export, for any stored messages.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use talktree::{Message, Part, Path, Result, Store};
use talktree_model::export_openai;

fn export(path: &Path) -> Result<Vec<Value>> {
    let mut json = Vec::new();
    export_openai(path, &mut json)?;
    let chat: Value = serde_json::from_slice(&json).unwrap();
    let messages = chat["messages"].as_array().unwrap().clone();
    check(&messages);
    Ok(messages)
}

/// Asserts the rules of the API.
#[track_caller]
fn check(messages: &[Value]) {
    let mut open: BTreeSet<String> = BTreeSet::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            assert!(open.remove(id), "a result without a call: {message}");
            assert!(message["content"].is_string());
            continue;
        }
        assert!(open.is_empty(), "calls without results before {message}");
        assert!(["system", "developer", "user", "assistant"].contains(&role), "{message}");
        let content = &message["content"];
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            assert_eq!(role, "assistant");
            let name = call["function"]["name"].as_str().unwrap();
            assert!((1..=64).contains(&name.len()), "{name}");
            assert!(call["function"]["arguments"].is_string());
            assert!(open.insert(call["id"].as_str().unwrap().to_owned()), "an id twice: {message}");
        }
        let may_be_null = message["tool_calls"].is_array();
        assert!(content.is_string() || content.is_array() || may_be_null, "{message}");
    }
    assert!(open.is_empty());
}

/// The messages, one word each: `u`, `s`, `a`, `a(ids)` with calls, `t(id)`.
fn shape(messages: &[Value]) -> String {
    let word = |message: &Value| {
        let role = &message["role"].as_str().unwrap()[..1];
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls: Vec<_> = calls.filter_map(|call| call["id"].as_str()).collect();
        match (message["tool_call_id"].as_str(), calls.is_empty()) {
            (Some(id), _) => format!("t({id})"),
            (None, true) => role.to_owned(),
            (None, false) => format!("{role}({})", calls.join(" ")),
        }
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn call(id: &str) -> Part {
    Part::tool_call("get it", id, json!({"q": 1}))
}

fn result(id: &str) -> Message {
    Message::new("tool", vec![Part::tool_result("get it", id, json!("done"))])
}

fn assistant(parts: Vec<Part>) -> Message {
    Message::new("assistant", parts)
}

#[test]
fn calls_and_results_are_in_the_order_of_the_api() -> Result<()> {
    let both = || {
        let mut part = call("1");
        if let Part::Tool(tool) = &mut part {
            tool.output = Some(json!([1]).into());
        }
        part
    };
    let cases: Vec<(Vec<Message>, &str)> = vec![
        (vec![Message::system("s"), Message::user("u"), Message::assistant("a")], "s u a"),
        (vec![assistant(vec![call("1")]), result("1"), Message::assistant("a")], "a(1) t(1) a"),
        // Calls of one response in several messages, as Claude Code writes them.
        (
            vec![assistant(vec![call("1")]), assistant(vec![call("2")]), result("2"), result("1")],
            "a(1 2) t(1) t(2)",
        ),
        // Call and result in one message, as in UI messages.
        (vec![assistant(vec![Part::text("x"), both(), Part::text("y")])], "a(1) t(1) a"),
        (vec![assistant(vec![call("1")]), Message::user("u")], "a(1) t(1) u"),
        // A message between a call and its result is moved after the result.
        (vec![assistant(vec![call("1")]), Message::user("u"), result("1")], "a(1) t(1) u"),
        (vec![result("9"), Message::user("u")], "u u"),
        (vec![assistant(vec![call("1"), call("1")]), result("1")], "a(1 1_1) t(1) t(1_1)"),
        (vec![assistant(vec![Part::reasoning("hm")]), Message::user("u")], "u"),
        (vec![Message::new("critic", vec![Part::text("x")]), assistant(vec![])], "u"),
    ];
    for (messages, expected) in cases {
        let chat = Store::open_in_memory()?.session("s")?;
        chat.append_all(messages)?;
        assert_eq!(shape(&export(&chat.path())?), expected);
    }
    Ok(())
}

#[test]
fn images_are_content_and_other_files_are_named() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let parts = vec![
        Part::text("look"),
        Part::file("image/png", "data:image/png;base64,AAAA"),
        Part::file("text/plain", "https://example.org/a.txt"),
    ];
    chat.append(Message::new("user", parts))?;
    let messages = export(&chat.path())?;
    assert_eq!(
        messages[0]["content"],
        json!([
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "text", "text": "[file text/plain: https://example.org/a.txt]"},
        ])
    );
    Ok(())
}
