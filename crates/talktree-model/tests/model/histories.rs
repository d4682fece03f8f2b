//! Random histories: what people, programs, models and broken programs store.
#![allow(dead_code, unreachable_pub, reason = "each user uses a part of it")]
#![allow(clippy::unwrap_used, reason = "the JSON is written here")]

use proptest::prelude::*;
use serde_json::{Value, json};
use talktree::{Message, Part};
use talktree_model::{from_anthropic, from_openai_chat, from_openai_responses};

/// Returns histories: random messages, and among them whole answers as models give them.
pub fn histories(longest: usize) -> impl Strategy<Value = Vec<Message>> {
    let piece = prop_oneof![
        3 => messages().prop_map(|message| vec![message]),
        2 => answers(),
    ];
    prop::collection::vec(piece, 0..longest).prop_map(|pieces| pieces.concat())
}

/// Returns messages of random parts, with any role.
pub fn messages() -> impl Strategy<Value = Message> {
    let roles = prop_oneof![
        5 => Just("assistant"),
        3 => Just("user"),
        3 => Just("tool"),
        1 => Just("system"),
        1 => Just("developer"),
        1 => Just("critic"),
    ];
    let kinds = prop_oneof![8 => Just(0), 1 => Just(1), 1 => Just(2), 1 => Just(3), 1 => Just(4)];
    (roles, prop::collection::vec(parts(), 0..5), kinds, 0..9).prop_map(|(role, parts, kind, n)| {
        let message = Message::new(role, parts);
        match kind {
            1 => message.hidden(),
            2 => Message::assistant("They spoke.").with_id(format!("compaction_{n}")),
            3 => {
                let api = if n % 2 == 0 { "anthropic-messages" } else { "openai-completions" };
                message.with_metadata(json!({"api": api}))
            }
            4 => message.with_metadata(
                json!({"container": {"id": "container_1", "expires_at": "2999-01-01T00:00:00Z"}}),
            ),
            _ => message,
        }
    })
}

/// Few ids, so that calls and results pair; some that no provider accepts.
fn ids() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[abc]", 1 => Just("a.b:0".to_owned()), 1 => "", 1 => "[xé]{41,90}"]
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just("get".to_owned()), 1 => Just("get it.now".to_owned()), 1 => "", 1 => "[n]{70}"]
}

fn one(values: Vec<Value>) -> impl Strategy<Value = Value> + Clone {
    prop::sample::select(values)
}

fn inputs() -> impl Strategy<Value = Value> + Clone {
    one(vec![json!({"q": 1}), json!({"q": 1}), json!(null), json!("{\"q\": "), json!([1])])
}

fn outputs() -> impl Strategy<Value = Value> + Clone {
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let far = json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a"}});
    one(vec![
        json!("done"),
        json!(""),
        json!(null),
        json!({"c": [21]}),
        json!([{"type": "text", "text": " "}, image]),
        json!([{"type": "text", "text": "a"}, far]),
        json!([]),
    ])
}

/// Fields of a tool part, in every state and in shapes that do not fit.
fn states() -> impl Strategy<Value = Value> {
    one(vec![
        json!({"errorText": "no"}),
        json!({"errorText": " ", "input": {}}),
        json!({"state": "input-streaming"}),
        json!({"state": "input-streaming", "input": {"q": "ha"}}),
        json!({"input": null, "errorText": null}),
        json!({"state": "output-denied", "input": 1}),
        json!({"state": "output-denied", "input": {}, "approval": {"id": "p", "approved": false, "reason": "no"}}),
        json!({"state": "approval-requested", "input": {}, "approval": {"id": "p"}}),
        json!({"state": "approval-responded", "input": {}, "approval": {"id": "p", "approved": true}}),
        json!({"state": "approval-responded", "input": {}, "approval": {"id": "p", "approved": false}}),
        json!({"rawInput": "{", "errorText": " "}),
        json!({"input": null, "rawInput": "{", "state": "output-error", "errorText": "no"}),
        json!({"state": "output-available"}),
        json!({"state": "output-available", "input": {"q": 1}, "output": "x", "preliminary": true}),
        json!({"input": {}, "result": "x"}),
        json!({"input": {"q": 1}, "id": "fc_1", "status": "completed"}),
        json!({"input": {"q": 1}, "callProviderMetadata": {"openai": {"itemId": "fc_2"}, "google": {"thoughtSignature": "s"}}}),
        json!({"input": "text", "custom": true, "id": "ctc_1"}),
        json!({"input": {}, "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}),
        json!({"input": {}, "caller": {"type": "direct"}, "extra_content": {"google": {"thought_signature": "s"}}}),
        json!({"input": {}, "title": 7, "providerExecuted": "yes", "callProviderMetadata": [1]}),
        json!({"toolCallId": 7, "input": {"q": 1}, "output": null, "state": null}),
    ])
}

fn files() -> impl Strategy<Value = Value> {
    let file = |media: &str, url: &str| json!({"type": "file", "mediaType": media, "url": url});
    let mut named = file("application/pdf", "data:application/pdf;base64,AAAA");
    named["filename"] = "".into();
    one(vec![
        file("image/png", "data:image/png;base64,AAAA"),
        file("image/png", "data:image/png;base64,A"),
        file("image/*", "https://example.org/a.png"),
        file("image/jpeg", "http://example.org/a.jpg"),
        file("image/svg+xml", "https://example.org/a.svg"),
        file("image/heic", "https://example.org/a.heic"),
        file("application/pdf", "https://example.org/a.pdf"),
        file("application/pdf", "data:application/pdf;base64,AAAA"),
        named,
        file("audio/wav", "data:audio/wav;base64,AAAA"),
        file("text/plain", "notes.txt"),
        file("text/plain", "data:text/plain;base64,ZmlncyDDqQ=="),
        file("text/plain", "data:,%20"),
        file("text/plain", "https://exa mple/"),
    ])
}

fn reasoning() -> impl Strategy<Value = Value> {
    one(vec![
        json!({}),
        json!({"signature": "s"}),
        json!({"signature": "t"}),
        json!({"id": "rs_1"}),
        json!({"id": "rs_2", "encrypted_content": "e", "status": "completed"}),
        json!({"id": "rs_4", "content": [{"type": "reasoning_text", "text": "hm"}]}),
        json!({"id": "reasoning-0"}),
        json!({"thinkingSignature": "EpEQ"}),
        json!({"thinkingSignature": "reasoning_content"}),
        json!({"field": "reasoning", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
        json!({"providerMetadata": {"openai": {"itemId": "rs_3", "reasoningEncryptedContent": null}}}),
        json!({"providerMetadata": {"anthropic": {"signature": "s"}}, "state": "streaming"}),
        json!({"providerMetadata": {"anthropic": {"redactedData": "x"}}}),
        json!({"providerMetadata": 7, "state": 7}),
    ])
}

fn texts() -> impl Strategy<Value = Value> {
    let cited = json!({"type": "web_search_result_location", "url": "https://example.org", "title": null,
        "encrypted_index": "i", "cited_text": "figs", "file_id": null});
    let noted = json!({"type": "url_citation", "url": "https://example.org", "title": "F", "start_index": 0, "end_index": 1});
    let text = |text: &str, fields: Value| {
        let mut part = json!({"type": "text", "text": text});
        part.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        part
    };
    one(vec![
        text("hello ", json!({})),
        text("ok", json!({})),
        text("", json!({})),
        text(" \n", json!({})),
        text(
            "ok",
            json!({"id": "msg_1", "status": "completed", "phase": "commentary", "annotations": [noted]}),
        ),
        text("ok", json!({"id": "msg_2"})),
        text("no", json!({"id": "msg_2", "refusal": true})),
        text(
            "ok",
            json!({"providerMetadata": {"openai": {"itemId": "msg_3", "phase": "final_answer"}}}),
        ),
        text("ok", json!({"citations": [cited, {"type": "other"}]})),
        text("ok", json!({"citations": 7, "state": 7, "providerMetadata": {"a": 1}})),
        text("ok", json!({"textSignature": "msg_x", "id": 7})),
    ])
}

/// Parts of providers and of the AI SDK, whole and broken.
fn others() -> impl Strategy<Value = Value> {
    let used = |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}});
    let found = |id: &str| {
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [
            {"type": "web_search_result", "url": "https://example.org", "title": "F", "encrypted_content": "e", "page_age": null}]})
    };
    let step = || json!({"type": "step-start"});
    one(vec![
        step(),
        step(),
        step(),
        json!({"type": "redacted_thinking", "data": "x"}),
        json!({"type": "redacted_thinking"}),
        used("srvtoolu_1"),
        used("srvtoolu_1"),
        used("srvtoolu_2"),
        used("other"),
        found("srvtoolu_1"),
        found("srvtoolu_1"),
        found("srvtoolu_2"),
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {
            "type": "web_search_tool_result_error", "error_code": "unavailable"}}),
        json!({"type": "compaction", "content": "They like figs."}),
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "e"}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}),
        json!({"type": "web_search_call", "id": "ws_1"}),
        json!({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "c", "code": "1", "outputs": null}),
        json!({"type": "computer_call", "id": "cu_1"}),
        json!({"type": "steering-message", "id": "s", "parts": [{"type": "text", "text": "Only figs."}]}),
        json!({"type": "steering-message", "parts": 7}),
        json!({"type": "source-url", "sourceId": "s", "url": "https://example.org"}),
        json!({"type": "source-url"}),
        json!({"type": "custom", "kind": "a.b"}),
        json!({"type": "data-weather", "data": {"c": 21}}),
        json!({"type": "data-weather", "id": 7}),
        json!({"type": ""}),
        json!({"kind": "typeless"}),
    ])
}

fn part_of(json: Value) -> Part {
    serde_json::from_value(json).unwrap()
}

/// Returns one part of any kind.
pub fn parts() -> impl Strategy<Value = Part> {
    let tool = |name: String, id: String, fields: Value| {
        let mut part = json!({"type": format!("tool-{name}"), "toolCallId": id});
        part.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        part_of(part)
    };
    prop_oneof![
        4 => texts().prop_map(part_of),
        3 => (names(), ids(), inputs())
            .prop_map(|(name, id, input)| Part::tool_call(name, id, input)),
        3 => (names(), ids(), outputs())
            .prop_map(|(name, id, output)| Part::tool_result(name, id, output)),
        2 => (names(), ids(), inputs(), outputs()).prop_map(move |(name, id, input, output)| {
            tool(name, id, json!({"input": input, "output": output}))
        }),
        3 => (names(), ids(), states()).prop_map(move |(name, id, fields)| tool(name, id, fields)),
        1 => Just(r#"{"type": "tool-get", "toolCallId": "a", "input": {"q": "\ud800"}}"#)
            .prop_map(|json| serde_json::from_str(json).unwrap()),
        1 => Just(json!({"type": "dynamic-tool", "output": "x", "state": null})).prop_map(part_of),
        2 => files().prop_map(part_of),
        3 => reasoning().prop_map(|fields| {
            let mut part = json!({"type": "reasoning", "text": "hm"});
            part.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            part_of(part)
        }),
        3 => others().prop_map(part_of),
    ]
}

/// Returns an answer as a model gives it, and the results of its calls.
fn answers() -> impl Strategy<Value = Vec<Message>> {
    let steps = || prop::collection::vec(0..7_usize, 1..7);
    prop_oneof![
        (steps(), 0..99_usize, any::<bool>()).prop_map(|(steps, n, is_split)| {
            let answer = from_anthropic(&anthropic(&steps, n));
            with_results(answer, is_split)
        }),
        (steps(), 0..99_usize, any::<bool>()).prop_map(|(steps, n, is_split)| {
            with_results(from_openai_responses(&responses(&steps, n)), is_split)
        }),
        (steps(), 0..99_usize)
            .prop_map(|(steps, n)| with_results(from_openai_chat(&chat(&steps, n)), false)),
        (steps(), 0..99_usize).prop_map(|(steps, n)| vec![ui(&steps, n)]),
    ]
}

/// Returns the message with the results of its calls behind it, or each part as a message of its own, as logs store them.
fn with_results(answer: Message, is_split: bool) -> Vec<Message> {
    let mut results = Vec::new();
    for part in &answer.parts {
        if let Part::Tool(tool) = part {
            results.push(Message::new(
                "tool",
                vec![Part::tool_result(&*tool.name, &*tool.call_id, json!("done"))],
            ));
        }
    }
    let mut messages = vec![Message::user("And?")];
    if is_split {
        messages.extend(answer.parts.into_iter().map(|part| Message::new("assistant", vec![part])));
    } else {
        messages.push(answer);
    }
    messages.append(&mut results);
    messages
}

fn anthropic(steps: &[usize], n: usize) -> Value {
    let mut blocks = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let id = n * 10 + at;
        match step {
            0 => blocks.push(json!({"type": "thinking", "thinking": "hm", "signature": format!("s{id}")})),
            1 => blocks.push(json!({"type": "text", "text": "Let me look.", "citations": null})),
            2 => blocks.push(json!({"type": "text", "text": "\n\n"})),
            3 => {
                let used = format!("srvtoolu_{id}");
                blocks.push(json!({"type": "server_tool_use", "id": used, "name": "web_search", "input": {"query": "q"}}));
                if at + 1 < steps.len() {
                    blocks.push(json!({"type": "web_search_tool_result", "tool_use_id": used, "content": []}));
                }
            }
            4 => blocks.push(json!({"type": "redacted_thinking", "data": "x"})),
            _ => blocks.push(json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": "get", "input": {"q": id}})),
        }
    }
    json!({"id": format!("msg_{n}"), "content": blocks})
}

fn responses(steps: &[usize], n: usize) -> Value {
    let mut items = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let id = n * 10 + at;
        match step {
            0 => items.push(json!({"type": "reasoning", "id": format!("rs_{id}"), "summary": [], "status": null})),
            1 => items.push(json!({"type": "reasoning", "id": format!("rs_{id}"), "encrypted_content": "e", "summary": [
                {"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]})),
            2 => items.push(json!({"type": "web_search_call", "id": format!("ws_{id}"), "status": "completed",
                "action": {"type": "search", "query": "q"}})),
            3 => items.push(json!({"type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": format!("call_{id}"),
                "name": "patch", "input": "*** Begin"})),
            4 => items.push(json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
                "name": "get", "arguments": "{\"q\": 1}", "status": "completed"})),
            _ => items.push(json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "b"}]})),
        }
    }
    json!({"id": format!("resp_{n}"), "output": items})
}

fn chat(steps: &[usize], n: usize) -> Value {
    let mut said = json!({"role": "assistant", "content": null});
    let mut calls = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let id = format!("call_{n}_{at}");
        match step {
            0 => said["reasoning_content"] = "hm".into(),
            1 => said["content"] = "Let me look.".into(),
            2 => said["audio"] = json!({"id": "audio_1", "transcript": "Four."}),
            3 => calls.push(json!({"id": id, "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}})),
            4 => said["refusal"] = "no".into(),
            _ => calls.push(json!({"id": id, "type": "function", "function": {"name": "get", "arguments": "{\"q\": 1}"}})),
        }
    }
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
    }
    json!({"id": format!("chatcmpl_{n}"), "choices": [{"message": said}]})
}

/// A message as the AI SDK stores it: all steps in one.
fn ui(steps: &[usize], n: usize) -> Message {
    let mut parts = vec![json!({"type": "step-start"})];
    for (at, step) in steps.iter().enumerate() {
        let id = n * 10 + at;
        let of = |fields: Value| json!({"openai": fields});
        match step {
            0 => parts.push(json!({"type": "step-start"})),
            1 => parts.push(json!({"type": "reasoning", "text": "hm", "state": "done",
                "providerMetadata": {"anthropic": {"signature": format!("s{id}")}}})),
            2 => parts.push(json!({"type": "reasoning", "text": "hm", "state": "done",
                "providerMetadata": of(json!({"itemId": format!("rs_{id}"), "reasoningEncryptedContent": null}))})),
            3 => parts.push(json!({"type": "text", "text": "Let me look.", "state": "done",
                "providerMetadata": of(json!({"itemId": format!("msg_{id}")}))})),
            4 => parts.push(json!({"type": "steering-message", "id": "s", "parts": [{"type": "text", "text": "Only figs."}]})),
            5 => parts.push(json!({"type": "tool-get", "toolCallId": format!("call_{id}"), "state": "input-streaming",
                "input": {"q": "ha"}})),
            _ => parts.push(json!({"type": "tool-get", "toolCallId": format!("call_{id}"), "state": "output-available",
                "input": {"q": 1}, "output": "x", "callProviderMetadata": of(json!({"itemId": format!("fc_{id}")}))})),
        }
    }
    serde_json::from_value(json!({"role": "assistant", "parts": parts})).unwrap()
}
