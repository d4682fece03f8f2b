//! Exports for other programs: what is written and read again shows the same.

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::{Value, json};
use talktree::{Json, Message, Part, Path, Role, Store};
use talktree_import::export::{
    LeftOut, export_claude_code, export_codex, export_pi, session_of_claude_code,
};
use talktree_import::{Format, ImportOptions, import_reader};
use talktree_model::{export_openai, to_ai_sdk, to_anthropic};

use crate::common::import;
use crate::random::{cases, check_all};

/// A part of a turn of the model.
#[derive(Debug, Clone)]
enum Answer {
    Text(String),
    /// Calls, each with what it returns; whether a result is in the part of its call.
    Calls(Vec<(Value, String)>, bool),
}

/// A question and the turn that answers it.
type Turn = (String, Vec<Answer>);

fn said() -> impl Strategy<Value = String> {
    "[a-zé日<\\\\\"]{1,3} [a-z\n]{1,9}[a-z]"
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let input = prop_oneof![
        said().prop_map(|text| json!({"path": text})),
        Just(json!({"n": 1, "deep": [null, {"a": true}]})),
    ];
    let calls = (vec((input, said()), 1..4), any::<bool>());
    let turn = (calls, said())
        .prop_map(|((calls, is_one), text)| vec![Answer::Calls(calls, is_one), Answer::Text(text)]);
    let answer = prop_oneof![said().prop_map(|text| vec![Answer::Text(text)]), turn];
    vec((said(), answer), 1..5)
}

/// Stores the turns; calls are numbered.
fn store(turns: &[Turn]) -> talktree::Result<Store> {
    let store = Store::open_in_memory()?;
    let chat = store.session("chat")?;
    let mut number = 0;
    for (question, answers) in turns {
        chat.append(Message::user(question.as_str()))?;
        for answer in answers {
            match answer {
                Answer::Text(text) => drop(chat.append(Message::assistant(text.as_str()))?),
                Answer::Calls(calls, is_one) => {
                    let (mut parts, mut results) = (Vec::new(), Vec::new());
                    for (input, output) in calls {
                        number += 1;
                        let mut call =
                            Part::tool_call("look", format!("call_{number}"), input.clone());
                        let output = Json::from(Value::from(output.as_str()));
                        match (&mut call, is_one) {
                            (Part::Tool(tool), true) => {
                                tool.output = Some(output);
                                tool.state = Some("output-available".to_owned());
                            }
                            _ => results.push(Part::tool_result(
                                "look",
                                format!("call_{number}"),
                                output,
                            )),
                        }
                        parts.push(call);
                    }
                    chat.append(Message::new(Role::Assistant, parts))?;
                    for result in results {
                        chat.append(Message::new(Role::Tool, vec![result]))?;
                    }
                }
            }
        }
    }
    Ok(store)
}

/// What a history shows, in order: texts with who said them, calls and results.
fn shown(history: &[Message]) -> Vec<String> {
    let mut shown = Vec::new();
    for message in history {
        let (mut said, mut results) = (Vec::new(), Vec::new());
        for part in &message.parts {
            match part.typed().as_ref() {
                Part::Text(text) => said.push(format!("{}: {}", message.role, text.text)),
                Part::Tool(tool) => {
                    let id = &tool.call_id;
                    if let Some(input) = &tool.input {
                        said.push(format!("call {id} {} {}", tool.name, input.canonical()));
                    }
                    let output = tool.output.as_ref().map(Json::value);
                    let output = output.map(|it| it.as_str().map_or(it.to_string(), str::to_owned));
                    let output = output.or_else(|| tool.error_text.clone());
                    results.extend(output.map(|output| format!("result {id} {output}")));
                }
                _ => {}
            }
        }
        shown.append(&mut said);
        shown.append(&mut results);
    }
    shown
}

fn written(path: &Path, format: Format) -> talktree::Result<(Vec<u8>, LeftOut)> {
    let mut file = Vec::new();
    let of_json = |value: Value| value.to_string().into_bytes();
    let left_out = match format {
        Format::ClaudeCode => export_claude_code(path, &mut file)?,
        Format::Pi => export_pi(path, &mut file)?,
        Format::UiMessage => {
            file = of_json(json!({"id": "chat", "messages": to_ai_sdk(&path.history()?)}));
            LeftOut::new()
        }
        Format::OpenAi => {
            export_openai(path, &mut file)?;
            LeftOut::new()
        }
        _ => export_codex(path, &mut file)?,
    };
    Ok((file, left_out))
}

/// Returns the history of the one session in a file.
fn read(file: Vec<u8>) -> talktree::Result<Vec<Message>> {
    let store = Store::open_in_memory()?;
    let report =
        import_reader(&store, "file", Cursor::new(file), &ImportOptions::default(), |_| {})?;
    assert_eq!(report.first_fault(), None);
    assert_eq!(report.sessions.len(), 1);
    store.session(report.sessions[0].clone())?.history()
}

const FORMATS: [Format; 5] =
    [Format::ClaudeCode, Format::Codex, Format::Pi, Format::OpenAi, Format::UiMessage];

#[test]
fn texts_calls_and_results_keep_their_order_in_every_format() -> Result<(), String> {
    check_all(cases(48), &turns(), |turns| {
        let store = store(&turns)?;
        let chat = store.session("chat")?;
        let before = shown(&chat.history()?);
        for format in FORMATS {
            let (file, left_out) = written(&chat.path(), format)?;
            assert!(left_out.is_empty(), "{format}: {left_out:?}");
            assert_eq!(shown(&read(file)?), before, "{format}");
        }
        let request = to_anthropic(&chat.history()?);
        assert_eq!(shown(&read(request.to_string().into_bytes())?), before, "anthropic");
        Ok(())
    })
}

const CODEX: &str = r#"{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"0199aaaa-0000-7000-8000-000000000001","timestamp":"2026-01-02T03:04:05Z","cwd":"/w"}}
{"timestamp":"2026-01-02T03:04:06Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"list"},{"type":"input_text","text":"the files"}]}}
{"timestamp":"2026-01-02T03:04:06Z","type":"event_msg","payload":{"type":"user_message","message":"list the files"}}
{"timestamp":"2026-01-02T03:04:07Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"a folder"}],"encrypted_content":"gAAA"}}
{"timestamp":"2026-01-02T03:04:07Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}}
{"timestamp":"2026-01-02T03:04:07Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c2"}}
{"timestamp":"2026-01-02T03:04:08Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a.rs"}}
{"timestamp":"2026-01-02T03:04:08Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":"Done"}}
{"timestamp":"2026-01-02T03:04:09Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One file."}]}}"#;

/// What the own program of a file shows is the same after both ways.
#[test]
fn a_file_that_is_imported_and_exported_shows_the_same() -> talktree::Result<()> {
    for (file, session, format) in [
        (include_str!("../fixtures/claude_code.jsonl"), "S", Format::ClaudeCode),
        (CODEX, "0199aaaa-0000-7000-8000-000000000001", Format::Codex),
        (include_str!("../fixtures/pi_v3.jsonl"), "P", Format::Pi),
        (include_str!("../fixtures/ui_message.json"), "V", Format::UiMessage),
    ] {
        let store = Store::open_in_memory()?;
        import(&store, file);
        let chat = store.session(session)?;
        let (written, _) = written(&chat.path(), format)?;
        assert_eq!(shown(&read(written)?), shown(&chat.history()?), "{format}");
    }
    Ok(())
}

#[test]
fn reasoning_that_only_the_provider_can_read_comes_back_to_codex() -> talktree::Result<()> {
    let thought = |id: &str, summary: &[&str]| {
        let summary = summary.iter().map(|text| json!({"type": "summary_text", "text": text}));
        let summary: Vec<Value> = summary.collect();
        json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": id})
    };
    let said = |role: &str, text: &str| json!({"type": "message", "role": role, "content": text});
    let call = json!({"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c"});
    let items = [
        json!({"type": "session_meta", "id": "thread"}),
        said("user", "list"),
        thought("rs_1", &[]),
        thought("rs_2", &["a folder", "a file"]),
        call,
        json!({"type": "function_call_output", "call_id": "c", "output": "a.rs"}),
        thought("rs_3", &[]),
        said("assistant", "One file."),
        thought("rs_4", &[]),
    ];
    let line = |item: &Value| {
        let kind = if item["type"] == "session_meta" { "session_meta" } else { "response_item" };
        json!({"timestamp": "2026-01-02T03:04:05Z", "type": kind, "payload": item}).to_string()
    };
    let store = Store::open_in_memory()?;
    import(&store, &items.iter().map(line).collect::<Vec<_>>().join("\n"));
    let chat = store.session("thread")?;
    for path in [chat.path(), chat.path().raw()] {
        let (file, left_out) = written(&path, Format::Codex)?;
        assert!(left_out.is_empty(), "{left_out:?}");
        let written = String::from_utf8(file).unwrap();
        let written = written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let written = written.filter(|line| line["type"] == "response_item");
        let written: Vec<Value> = written.map(|mut line| line["payload"].take()).collect();
        let kinds = |items: &[Value]| items.iter().map(|it| it["type"].clone()).collect::<Vec<_>>();
        assert_eq!(kinds(&written), kinds(&items[1..]));
        for (item, again) in items[1..].iter().zip(&written) {
            assert!(item["type"] != "reasoning" || item == again, "{again}");
        }
    }
    let (_, left_out) = written(&chat.path(), Format::ClaudeCode)?;
    assert_eq!(left_out, [("reasoning without a signature".to_owned(), 5)].into());
    // What a summary replaces is written once.
    let raw = chat.raw_history()?;
    chat.add_compaction("They listed.", &raw[0].id, &raw[raw.len() - 1].id)?;
    let (file, _) = written(&chat.path(), Format::Codex)?;
    let written = String::from_utf8(file).unwrap();
    for id in ["rs_1", "rs_2", "rs_3", "rs_4"] {
        assert_eq!(written.matches(&format!(r#""encrypted_content":"{id}""#)).count(), 1, "{id}");
    }
    Ok(())
}

#[test]
fn a_summary_at_the_beginning_is_a_compaction_after_what_it_replaces() -> talktree::Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("chat")?;
    let texts = ["zebra", "okapi", "lynx", "ibis"];
    let ids: Vec<_> = texts
        .iter()
        .map(|text| chat.append(Message::user(*text)))
        .collect::<talktree::Result<_>>()?;
    chat.add_compaction("two animals", &ids[0].id, &ids[1].id)?;
    for format in [Format::ClaudeCode, Format::Codex, Format::Pi] {
        let (file, _) = written(&chat.path(), format)?;
        let copy = Store::open_in_memory()?;
        let report =
            import_reader(&copy, "file", Cursor::new(file), &ImportOptions::default(), |_| {})?;
        let copied = copy.session(report.sessions[0].clone())?;
        let texts: Vec<String> = copied.history()?.iter().map(Message::text).collect();
        assert_eq!(texts, ["two animals", "lynx", "ibis"], "{format}");
        let raw = copied.raw_history()?;
        let raw: Vec<String> = raw.iter().filter(|it| !it.is_hidden).map(Message::text).collect();
        assert_eq!(raw, ["zebra", "okapi", "lynx", "ibis"], "{format}");
    }
    Ok(())
}

#[test]
fn what_a_format_has_no_place_for_is_named() -> talktree::Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("chat")?;
    let question =
        chat.append(Message::user("a").with_part(Part::file("audio/wav", "https://x/a.wav")))?;
    chat.append(Message::assistant("left"))?;
    let answer = Message::assistant("b").with_part(Part::reasoning("hm"));
    chat.append_to(
        &question.id,
        answer.with_part(serde_json::from_str(r#"{"type":"data-x","data":1}"#).unwrap()),
    )?;
    chat.append(Message::user("c").hidden())?;
    chat.append(Message::user("d"))?;
    let (_, left_out) = written(&chat.path().raw(), Format::ClaudeCode)?;
    let expected = [
        ("files of audio/wav", 1),
        ("hidden messages", 1),
        ("messages on other branches", 1),
        ("parts of the type data-x", 1),
        ("reasoning without a signature", 1),
    ];
    assert_eq!(left_out, expected.map(|(kind, count)| (kind.to_owned(), count)).into());
    assert_ne!(session_of_claude_code("chat"), "chat");
    Ok(())
}
