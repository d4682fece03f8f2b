//! Logs of agents that grow: whatever states of a file were imported before, in any order and also cut off inside a line, the whole
//! file ends in the same store as when it is imported alone.

use std::io::Cursor;

use proptest::prelude::*;
use serde_json::{Value, json};
use talktree::{Error, Result, Store};
use talktree_import::export::content_hash;
use talktree_import::{ImportOptions, import_reader};

use crate::random::{cases, check_all};

/// Returns the states of a file, one after each action; the last action is a person's message.
type States = fn(&[u8]) -> Vec<String>;

const FORMATS: &[(&str, States)] = &[
    ("rollout-1.jsonl", codex),
    ("rollout-1.json", codex_document),
    ("session.jsonl", gemini),
    ("session.json", gemini_document),
    ("qs.jsonl", qwen),
    ("vs.jsonl", copilot_log),
    ("vs.json", copilot_document),
    ("events.jsonl", copilot_cli),
    ("tasks/7/api_conversation_history.json", cline),
    ("conversations.json", claude_ai),
];

const TIME: &str = "2026-01-02T03:04:05Z";

/// Returns the states of a file of lines; `lines` gives those of one action, by its number.
fn grow(
    start: &[Value],
    actions: &[u8],
    mut lines: impl FnMut(usize, u8) -> Vec<Value>,
) -> Vec<String> {
    let mut file: Vec<String> = start.iter().map(Value::to_string).collect();
    let mut states = Vec::new();
    for (number, action) in ends(actions) {
        file.extend(lines(number, action).iter().map(Value::to_string));
        states.push(file.join("\n"));
    }
    states
}

/// Returns the actions with their numbers, between two messages of a person.
fn ends(actions: &[u8]) -> Vec<(usize, u8)> {
    [0].iter().chain(actions).chain(&[0]).copied().enumerate().collect()
}

fn codex_items(number: usize, action: u8) -> Option<Value> {
    let said = |role: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": format!("{role} {number}")}]});
    Some(match action % 5 {
        0 => said("user"),
        1 => said("assistant"),
        2 => {
            json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": format!("c{number}")})
        }
        3 => {
            json!({"type": "function_call_output", "call_id": format!("c{}", number - 1), "output": "ok"})
        }
        // The same each time.
        _ => json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}),
    })
}

fn codex(actions: &[u8]) -> Vec<String> {
    let line =
        |kind: &str, payload: Value| json!({"timestamp": TIME, "type": kind, "payload": payload});
    let start = line("session_meta", json!({"id": "th", "timestamp": TIME, "cwd": "/w"}));
    grow(&[start], actions, |number, action| match action {
        0 => vec![
            line("event_msg", json!({"type": "task_started"})),
            line("response_item", codex_items(number, 0).unwrap()),
            line("event_msg", json!({"type": "user_message", "message": format!("user {number}")})),
        ],
        5 => vec![line("event_msg", json!({"type": "thread_rolled_back", "num_turns": 1}))],
        6 => vec![line("compacted", json!({"message": format!("so far {number}")}))],
        7 => vec![line(
            "event_msg",
            json!({"type": "token_count", "info": {"last_token_usage": {"input_tokens": number}}}),
        )],
        8 => vec![line("turn_context", json!({"model": format!("m-{number}")}))],
        _ => codex_items(number, action)
            .map(|item| line("response_item", item))
            .into_iter()
            .collect(),
    })
}

fn codex_document(actions: &[u8]) -> Vec<String> {
    let mut items = Vec::new();
    let state = |(number, action): (usize, u8)| {
        items.extend(codex_items(number, action));
        json!({"session": {"id": "th", "timestamp": TIME}, "items": items}).to_string()
    };
    ends(actions).into_iter().map(state).collect()
}

/// An entry of Gemini CLI, or the one before it with more in it.
fn gemini_entry(number: usize, action: u8, last: &mut Value) {
    let entry = |kind: &str| json!({"id": format!("m{number}"), "timestamp": TIME, "type": kind, "content": format!("{kind} {number}")});
    let is_answer = last["type"] == "gemini";
    match action {
        2 if is_answer && last["toolCalls"].is_null() => {
            last["tokens"] = json!({"input": number, "output": 1})
        }
        3 if is_answer => {
            let mut calls = last["toolCalls"].as_array().cloned().unwrap_or_default();
            calls.push(json!({"id": format!("c{number}"), "name": "ls", "args": {}, "status": "success", "result": "ok"}));
            last["toolCalls"] = Value::Array(calls);
        }
        5 => *last = entry("info"),
        1 => *last = entry("gemini"),
        _ => *last = entry("user"),
    }
}

fn gemini(actions: &[u8]) -> Vec<String> {
    let start = json!({"sessionId": "g", "projectHash": "ab", "startTime": TIME, "kind": "main"});
    let mut last = Value::Null;
    grow(&[start], actions, |number, action| match action {
        4 => vec![json!({"$rewindTo": last["id"]})],
        6 => {
            let summary = json!({"id": format!("s{number}"), "timestamp": TIME, "type": "user", "content": format!("so far {number}")});
            vec![json!({"$set": {"messages": [summary, last]}})]
        }
        _ => {
            gemini_entry(number, action, &mut last);
            vec![last.clone()]
        }
    })
}

fn gemini_document(actions: &[u8]) -> Vec<String> {
    let mut entries: Vec<Value> = Vec::new();
    let state = |(number, action): (usize, u8)| {
        let mut last = entries.last().cloned().unwrap_or_default();
        gemini_entry(number, action, &mut last);
        entries.retain(|entry| entry["id"] != last["id"]);
        entries.push(last);
        json!({"sessionId": "g", "projectHash": "ab", "startTime": TIME, "messages": entries})
            .to_string()
    };
    ends(actions).into_iter().map(state).collect()
}

fn qwen(actions: &[u8]) -> Vec<String> {
    grow(&[], actions, |number, action| {
        let (kind, part) = match action % 4 {
            1 => (
                "assistant",
                json!({"functionCall": {"id": format!("f{number}"), "name": "ls", "args": {}}}),
            ),
            2 => (
                "tool_result",
                json!({"functionResponse": {"id": "f1", "name": "ls", "response": {"output": "a"}}}),
            ),
            _ => ("user", json!({"text": format!("user {number}")})),
        };
        // Now and then the tree branches.
        let parent = if action > 5 { number / 2 } else { number };
        let parent = parent.checked_sub(1).map(|parent| format!("q{parent}"));
        vec![
            json!({"uuid": format!("q{number}"), "parentUuid": parent, "sessionId": "qs", "timestamp": TIME, "type": kind,
            "message": {"role": "user", "parts": [part]}, "usageMetadata": {"promptTokenCount": number}}),
        ]
    })
}

fn copilot_request(number: usize) -> Value {
    json!({"requestId": format!("r{number}"), "timestamp": 1_772_800_005_000_i64, "message": {"text": format!("ask {number}")}, "response": []})
}

fn copilot_log(actions: &[u8]) -> Vec<String> {
    let start = json!({"kind": 0, "v": {"version": 3, "sessionId": "vs", "requests": []}});
    let (mut count, mut is_done) = (0, true);
    grow(&[start], actions, |number, action| match action {
        1 | 2 if !is_done => {
            let piece = json!({"value": format!("piece {number}. ")});
            vec![json!({"kind": 2, "k": ["requests", count - 1, "response"], "v": [piece]})]
        }
        3 if !is_done => {
            is_done = true;
            let about = json!({"metadata": {"promptTokens": number, "outputTokens": 1}});
            vec![json!({"kind": 1, "k": ["requests", count - 1, "result"], "v": about})]
        }
        _ => {
            (count, is_done) = (count + 1, false);
            vec![json!({"kind": 2, "k": ["requests"], "v": [copilot_request(number)]})]
        }
    })
}

fn copilot_document(actions: &[u8]) -> Vec<String> {
    let mut requests = Vec::new();
    let state = |(number, action): (usize, u8)| {
        let mut request = copilot_request(number);
        request["response"] = json!([{"value": format!("answer {number}")}]);
        request["isHidden"] = json!(action == 5);
        requests.push(request);
        json!({"version": 3, "sessionId": "vs", "requests": requests}).to_string()
    };
    ends(actions).into_iter().map(state).collect()
}

fn copilot_cli(actions: &[u8]) -> Vec<String> {
    let event = |id: String, kind: &str, data: Value| json!({"type": kind, "id": id, "parentId": null, "timestamp": TIME, "data": data});
    let start =
        event("e".to_owned(), "session.start", json!({"sessionId": "cp", "selectedModel": "m"}));
    let mut last = 0;
    grow(&[start], actions, |number, action| {
        let (kind, data) = match action {
            1 => ("assistant.message", json!({"content": format!("answer {number}")})),
            2 => (
                "assistant.message",
                json!({"content": "", "toolRequests": [{"toolCallId": format!("k{number}"), "name": "ls"}]}),
            ),
            3 => (
                "tool.execution_complete",
                json!({"toolCallId": format!("k{}", number - 1), "success": true, "result": {"content": "a"}}),
            ),
            4 => ("session.snapshot_rewind", json!({"upToEventId": format!("e{last}")})),
            5 => (
                "session.compaction_complete",
                json!({"success": true, "summaryContent": format!("so far {number}")}),
            ),
            6 => (
                "assistant.message",
                json!({"content": format!("aside {number}"), "parentToolCallId": "k1"}),
            ),
            7 => (
                "session.shutdown",
                json!({"modelMetrics": {"m": {"usage": {"inputTokens": number}}}}),
            ),
            8 => ("assistant.turn_start", json!({})),
            _ => ("user.message", json!({"content": format!("user {number}")})),
        };
        if kind == "user.message" {
            last = number;
        }
        vec![event(format!("e{number}"), kind, data)]
    })
}

fn cline(actions: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    let state = |(number, action): (usize, u8)| {
        let (role, content) = match action % 4 {
            1 => (
                "assistant",
                json!([{"type": "tool_use", "id": format!("z{number}"), "name": "ls", "input": {}}]),
            ),
            2 => ("user", json!([{"type": "tool_result", "tool_use_id": "z1", "content": "x"}])),
            // The same each time.
            3 => ("assistant", json!("Done.")),
            _ => (
                "user",
                json!([{"type": "text", "text": format!("<task>\nask {number}\n</task>")}]),
            ),
        };
        messages.push(json!({"role": role, "content": content, "ts": 1_773_200_000_000_i64}));
        json!(messages).to_string()
    };
    ends(actions).into_iter().map(state).collect()
}

fn claude_ai(actions: &[u8]) -> Vec<String> {
    let chat = |number: u8| json!({"uuid": format!("cv{number}"), "name": "Tea", "created_at": TIME, "chat_messages": []});
    let mut chats = [chat(0), chat(1), chat(2)];
    let state = |(number, action): (usize, u8)| {
        let messages = chats[usize::from(action % 3)]["chat_messages"].as_array_mut().unwrap();
        let parent = messages
            .len()
            .checked_sub(1 + usize::from(action / 5))
            .map(|at| messages[at]["uuid"].clone());
        let sender = if number % 2 == 0 { "human" } else { "assistant" };
        messages.push(json!({"uuid": format!("m{number}"), "sender": sender, "text": format!("{sender} {number}"),
            "created_at": format!("2026-01-02T03:04:{number:02}Z"), "parent_message_uuid": parent}));
        json!(chats).to_string()
    };
    ends(actions).into_iter().map(state).collect()
}

fn add(store: &Store, name: &str, file: &str) -> Result<()> {
    match import_reader(
        store,
        name,
        Cursor::new(file.to_owned()),
        &ImportOptions::default(),
        |_| {},
    ) {
        Ok(report) => {
            let counted = report.kept + report.converted + report.dropped;
            assert_eq!(report.records, counted, "{name}: {report:#?}\n{file}");
            Ok(())
        }
        // Nothing was in it yet.
        Err(Error::Import { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[test]
fn a_file_that_grows_ends_in_the_store_of_the_whole_file() {
    let actions = prop::collection::vec(0_u8..9, 0..12);
    let imports = prop::collection::vec((any::<prop::sample::Index>(), 0_usize..60), 0..4);
    let strategy = (0..FORMATS.len(), actions, imports);
    check_all(cases(200), &strategy, |(format, actions, imports)| {
        let (name, states) = FORMATS[format];
        let states = states(&actions);
        let whole = states.last().unwrap();
        let (alone, store) = (Store::open_in_memory()?, Store::open_in_memory()?);
        add(&alone, name, whole)?;
        for (state, cut) in &imports {
            let state = &states[state.index(states.len())];
            // Half of them are cut off.
            let cut = if cut % 2 == 0 { 0 } else { *cut };
            add(&store, name, &state[..state.len().saturating_sub(cut)])?;
        }
        add(&store, name, whole)?;
        if content_hash(&alone)? != content_hash(&store)? {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            talktree_import::export::export_jsonl(&alone, &mut one)?;
            talktree_import::export::export_jsonl(&store, &mut other)?;
            let [one, other] = [one, other].map(|text| String::from_utf8(text).unwrap());
            panic!("{name}: {whole}\nalone:\n{one}\nin stages:\n{other}");
        }
        assert!(store.verify(|_| {})?.damages.is_empty());
        Ok(())
    })
    .unwrap();
}
