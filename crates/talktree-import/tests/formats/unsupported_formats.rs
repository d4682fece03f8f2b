//! Unsupported formats that look like supported ones.
//!
//! Logs of Qwen Code and Gemini CLI have `sessionId` and `type`, as those of Claude Code have. They were taken for them:
//! their text came into the metadata of blank messages, under ids that a later import would have found taken, and a
//! strict import had no objection. Each file below is refused, with what it looks like, and nothing is written.

use std::io::Cursor;

use talktree::{Error, Result, Store};
use talktree_import::export::export_jsonl;
use talktree_import::{Format, ImportOptions, import_reader};

/// A file in the shape of each program: our words in the fields that it writes.
const UNSUPPORTED: &[(&str, &str)] = &[
    (
        "Qwen Code",
        r#"{"uuid":"q1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-02T03:04:05Z","type":"user","cwd":"/w","version":"0.9.0","message":{"role":"user","parts":[{"text":"list the files"}]}}
{"uuid":"q2","parentUuid":"q1","sessionId":"s","timestamp":"2026-01-02T03:04:06Z","type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_response"}}}
{"uuid":"q3","parentUuid":"q2","sessionId":"s","timestamp":"2026-01-02T03:04:07Z","type":"assistant","model":"qwen3","message":{"role":"model","parts":[{"text":"Which folder?","thought":true},{"functionCall":{"id":"c","name":"ls","args":{}}}]},"usageMetadata":{"promptTokenCount":9}}
{"uuid":"q4","parentUuid":"q3","sessionId":"s","timestamp":"2026-01-02T03:04:08Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a"}}}]},"toolCallResult":{"callId":"c"}}"#,
    ),
    (
        "Gemini CLI",
        r#"{"sessionId":"s","projectHash":"0f","startTime":"2026-01-02T03:04:05Z","lastUpdated":"2026-01-02T03:05:05Z","messages":[{"id":"g1","timestamp":"2026-01-02T03:04:05Z","type":"user","content":"hi"},{"id":"g2","timestamp":"2026-01-02T03:04:06Z","type":"gemini","content":"ho","thoughts":[],"model":"gemini"}]}"#,
    ),
    (
        "Gemini CLI",
        r#"{"sessionId":"s","projectHash":"0f","startTime":"2026-01-02T03:04:05Z","kind":"main"}
{"id":"g1","timestamp":"2026-01-02T03:04:05Z","type":"user","content":[{"text":"hi"}]}
{"id":"g2","timestamp":"2026-01-02T03:04:06Z","type":"gemini","content":"ho","tokens":{"input":1}}
{"$set":{"lastUpdated":"2026-01-02T03:04:07Z"}}"#,
    ),
    (
        "Gemini CLI",
        r#"[{"sessionId":"s","messageId":0,"type":"user","message":"hi","timestamp":"2026-01-02T03:04:05Z"}]"#,
    ),
    (
        "the Gemini API",
        r#"[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"ho"}]}]"#,
    ),
    (
        "Codex",
        r#"{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"s","cwd":"/w"}}
{"timestamp":"2026-01-02T03:04:06Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}]}}"#,
    ),
    (
        "OpenCode",
        r#"{"info":{"id":"ses_1","title":"T"},"messages":[{"info":{"id":"msg_1","role":"user"},"parts":[{"id":"prt_1","type":"text","text":"hi"}]}]}"#,
    ),
    (
        "OpenCode",
        r#"{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1767323045000}}"#,
    ),
    (
        "Cline",
        r#"[{"ts":1767323045000,"type":"say","say":"text","text":"hi"},{"ts":1767323046000,"type":"ask","ask":"followup","text":"ho?"}]"#,
    ),
    ("Aider", "\n# aider chat started at 2026-01-02 03:04:05\n\n#### hi\n\nho\n"),
    ("Cursor", r#"{"composerId":"c","conversation":[{"bubbleId":"b","type":1,"text":"hi"}]}"#),
    (
        "Open WebUI",
        r#"{"id":"w","title":"T","models":["m"],"history":{"messages":{"a":{"id":"a","parentId":null,"childrenIds":["b"],"role":"user","content":"hi"},"b":{"id":"b","parentId":"a","childrenIds":[],"role":"assistant","content":"ho"}},"currentId":"b"},"messages":[{"id":"a","parentId":null,"childrenIds":["b"],"role":"user","content":"hi"}]}"#,
    ),
    (
        "Open WebUI",
        r#"[{"id":"w","user_id":"u","title":"T","chat":{"history":{"messages":{},"currentId":null},"messages":[]}}]"#,
    ),
    (
        "Open WebUI",
        r#"{"title":"T","messages":[{"id":"a","parentId":null,"childrenIds":[],"role":"user","content":"hi"}]}"#,
    ),
    (
        "LM Studio",
        r#"{"name":"T","createdAt":1767323045000,"systemPrompt":"","messages":[{"versions":[{"type":"singleStep","role":"user","content":[{"type":"text","text":"hi"}]}],"currentlySelected":0}]}"#,
    ),
    (
        "LibreChat",
        r#"{"conversationId":"c","title":"T","messages":[{"messageId":"a","parentMessageId":"0","sender":"User","text":"hi","isCreatedByUser":true}]}"#,
    ),
    (
        "claude.ai",
        r#"[{"uuid":"c","name":"T","created_at":"2026-01-02T03:04:05Z","chat_messages":[{"uuid":"a","sender":"human","text":"hi"}]}]"#,
    ),
    ("ShareGPT", r#"[{"id":"x","conversations":[{"from":"human","value":"hi"}]}]"#),
    (
        "Copilot Chat",
        r#"{"requesterUsername":"u","requests":[{"message":{"text":"hi"},"response":[{"value":"ho"}]}]}"#,
    ),
    (
        "Copilot CLI",
        r#"{"type":"session.start","id":"1","parentId":null,"timestamp":"2026-01-02T03:04:05Z","data":{"sessionId":"s"}}
{"type":"user.message","id":"2","parentId":"1","timestamp":"2026-01-02T03:04:06Z","data":{"content":"hi"}}"#,
    ),
    (
        "stream-json",
        r#"{"type":"system","subtype":"init","session_id":"s","uuid":"u0"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"ho"}]},"session_id":"s","uuid":"u1"}"#,
    ),
    (
        "Continue",
        r#"{"sessionId":"s","title":"T","history":[{"message":{"role":"user","content":"hi"}}]}"#,
    ),
    ("SQLite", "SQLite format 3\0\u{10}\0\u{1}"),
];

fn refusal(store: &Store, file: &str, options: &ImportOptions) -> Option<String> {
    match import_reader(store, "f", Cursor::new(file), options, |_| {}) {
        Ok(_) => None,
        Err(Error::Import { why, .. }) => Some(why),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn an_unsupported_format_is_refused_by_its_name() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut taken = Vec::new();
    for (name, file) in UNSUPPORTED {
        match refusal(&store, file, &ImportOptions::default()) {
            Some(why) if why.contains(name) => {
                assert!(why.contains("claude-code, pi, chatgpt"), "the formats are named: {why}");
            }
            other => taken.push((name, other)),
        }
    }
    assert!(taken.is_empty(), "{taken:#?}");
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn a_given_format_is_refused_if_most_messages_would_be_blank() -> Result<()> {
    let store = Store::open_in_memory()?;
    let options = ImportOptions { format: Some(Format::ClaudeCode), ..ImportOptions::default() };
    let why = refusal(&store, UNSUPPORTED[0].1, &options).expect("refused");
    assert!(why.contains("nothing to show") && why.contains("Qwen Code"), "{why}");
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn a_file_of_blank_messages_is_refused_whatever_wrote_it() -> Result<()> {
    let entry = |id: &str, said: &str| {
        format!(
            r#"{{"type":"user","uuid":"{id}","sessionId":"s","message":{{"role":"user","content":[],{said}}}}}"#
        )
    };
    let blank = entry("a", r#""words":"hi""#);
    let shown = entry("b", r#""n":1"#).replace("[]", r#""hi""#);
    let store = Store::open_in_memory()?;
    let most = format!("{blank}\n{}\n{shown}", blank.replace("\"a\"", "\"c\""));
    let why = refusal(&store, &most, &ImportOptions::default()).expect("refused");
    assert!(why.contains("2 of its first 3 messages have nothing to show"), "{why}");
    assert!(store.sessions()?.is_empty());
    assert_eq!(refusal(&store, &format!("{blank}\n{shown}"), &ImportOptions::default()), None);
    // Entries of unknown types alone, with the fields of a place.
    let news = r#"{"type":"news","sessionId":"s","text":"hi"}"#;
    let why = refusal(&Store::open_in_memory()?, news, &ImportOptions::default());
    assert!(why.is_some_and(|why| why.contains("in no format")));
    Ok(())
}

#[test]
fn one_entry_of_another_program_does_not_make_a_file_its_own() -> Result<()> {
    let claude = |id: &str| {
        format!(
            r#"{{"type":"user","uuid":"{id}","parentUuid":null,"sessionId":"s","message":{{"role":"user","content":"hi"}}}}"#
        )
    };
    let (_, qwen) = UNSUPPORTED[0];
    let first = qwen.lines().next().unwrap_or_default();
    let file = format!("{first}\n{}\n{}", claude("a"), claude("b"));
    let store = Store::open_in_memory()?;
    let report = import_reader(&store, "f", Cursor::new(file), &ImportOptions::default(), |_| {})?;
    assert_eq!((report.format.as_str(), report.kept), ("claude-code", 3));
    Ok(())
}

/// It was read as a session of Pi, whose messages have nothing to show.
#[test]
fn an_export_without_its_first_line_is_refused_as_such() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append(talktree::Message::user("hi"))?;
    let mut export = Vec::new();
    export_jsonl(&store, &mut export)?;
    let export = String::from_utf8(export).unwrap();
    let (header, rest) = export.split_once('\n').unwrap();
    for file in [rest.to_owned(), format!("{}\n{rest}", &header[..20])] {
        let why = refusal(&Store::open_in_memory()?, &file, &ImportOptions::default());
        let expected = "it seems to be a talktree export whose first line is missing or damaged";
        assert_eq!(why.as_deref(), Some(expected));
    }
    assert_eq!(refusal(&Store::open_in_memory()?, &export, &ImportOptions::default()), None);
    Ok(())
}
