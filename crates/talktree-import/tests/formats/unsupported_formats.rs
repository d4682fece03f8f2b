//! Unsupported formats that look like supported ones.
//!
//! Sessions of Factory Droid have messages like those of Pi, and many chats have `role` and `content`. Such logs were taken for
//! them: their text came into the metadata of blank messages, under ids that a later import would have found taken, and a
//! strict import had no objection. Each file below is refused, with what it looks like, and nothing is written.

use std::io::Cursor;

use talktree::{Error, Result, Store};
use talktree_import::export::export_jsonl;
use talktree_import::{Format, ImportOptions, import_reader};

/// A log of Qwen Code: it has `sessionId` and `type`, as those of Claude Code have.
const QWEN: &str = r#"{"uuid":"q1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-02T03:04:05Z","type":"user","cwd":"/w","version":"0.9.0","message":{"role":"user","parts":[{"text":"list the files"}]}}
{"uuid":"q2","parentUuid":"q1","sessionId":"s","timestamp":"2026-01-02T03:04:06Z","type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_response"}}}
{"uuid":"q3","parentUuid":"q2","sessionId":"s","timestamp":"2026-01-02T03:04:07Z","type":"assistant","model":"qwen3","message":{"role":"model","parts":[{"text":"Which folder?","thought":true},{"functionCall":{"id":"c","name":"ls","args":{}}}]},"usageMetadata":{"promptTokenCount":9}}
{"uuid":"q4","parentUuid":"q3","sessionId":"s","timestamp":"2026-01-02T03:04:08Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a"}}}]},"toolCallResult":{"callId":"c"}}"#;

/// A file in the shape of each program: our words in the fields that it writes.
const UNSUPPORTED: &[(&str, &str)] = &[
    (
        "Gemini CLI",
        r#"[{"sessionId":"s","messageId":0,"type":"user","message":"hi","timestamp":"2026-01-02T03:04:05Z"}]"#,
    ),
    (
        "the Gemini API",
        r#"[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"ho"}]}]"#,
    ),
    (
        "opencode",
        r#"{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1767323045000}}"#,
    ),
    (
        "Cline",
        r#"[{"ts":1767323045000,"type":"say","say":"text","text":"hi"},{"ts":1767323046000,"type":"ask","ask":"followup","text":"ho?"}]"#,
    ),
    ("Cursor", "user:\n<user_query>\nhi\n</user_query>\n\nassistant:\n[Thinking] a greeting\nho\n"),
    ("Aider", "\n# aider chat started at 2026-01-02 03:04:05\n\n#### hi\n\nho\n"),
    (
        "LM Studio",
        r#"{"name":"T","createdAt":1767323045000,"systemPrompt":"","messages":[{"versions":[{"type":"singleStep","role":"user","content":[{"type":"text","text":"hi"}]}],"currentlySelected":0}]}"#,
    ),
    ("ShareGPT", r#"[{"id":"x","conversations":[{"from":"human","value":"hi"}]}]"#),
    (
        "stream-json",
        r#"{"type":"system","subtype":"init","session_id":"s","uuid":"u0"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"ho"}]},"session_id":"s","uuid":"u1"}"#,
    ),
    (
        "Continue",
        r#"{"sessionId":"s","title":"T","history":[{"message":{"role":"user","content":"hi"}}]}"#,
    ),
    ("Codex", r#"{"session_id":"s","ts":1767323045,"text":"hi"}"#),
    (
        "codex exec --json",
        r#"{"type":"thread.started","thread_id":"t"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"ho"}}"#,
    ),
    ("claude.ai", r#"[{"uuid":"u","full_name":"U","email_address":"u@example.org"}]"#),
    ("claude.ai", r#"[{"uuid":"p","name":"P","prompt_template":"","docs":[]}]"#),
    (
        "Amp",
        r#"{"v":3,"id":"T-1","messages":[{"role":"user","messageId":0,"content":[{"type":"text","text":"hi"}]}]}"#,
    ),
    (
        "Factory Droid",
        r#"{"type":"session_start","id":"d","title":"t","cwd":"/w"}
{"type":"message","id":"m","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}
{"type":"message","id":"n","timestamp":"2026-01-02T03:04:06Z","message":{"role":"assistant","content":[{"type":"text","text":"ho"}]}}"#,
    ),
    (
        "Kimi",
        r#"{"type":"turn.prompt","time":1767323045000,"input":[{"type":"text","text":"hi"}]}"#,
    ),
    ("Kimi", "{\"role\":\"_checkpoint\",\"id\":0}\n{\"role\":\"user\",\"content\":\"hi\"}"),
    ("Kiro", r#"{"kind":"Prompt","data":{"content":[{"kind":"text","data":"hi"}]}}"#),
    (
        "Antigravity",
        r#"{"source":"USER_EXPLICIT","created_at":"2026-01-02T03:04:05Z","content":"hi"}"#,
    ),
    (
        "Grok",
        r#"{"params":{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}}}"#,
    ),
    ("Grok", r#"{"conversations":[{"conversation":{"id":"x"},"responses":[]}]}"#),
    ("AI Studio", r#"{"chunkedPrompt":{"chunks":[{"text":"hi","role":"user"}]}}"#),
    (
        "SillyTavern",
        r#"{"user_name":"U","character_name":"C","create_date":"2026-01-02"}
{"name":"U","is_user":true,"mes":"hi","send_date":"2026-01-02"}"#,
    ),
    ("OpenHands", r#"[{"id":0,"source":"user","action":"message","args":{"content":"hi"}}]"#),
    (
        "Zed",
        r#"{"id":"z","version":"0.4.0","text":"hi","messages":[{"id":{},"start":0}],"summary":"s"}"#,
    ),
    (
        "DeepSeek",
        r#"[{"id":"d","title":"t","inserted_at":"2026-01-02T03:04:05Z","mapping":{"root":{"id":"root","parent":null,"children":[],"message":null}}}]"#,
    ),
    (
        "DeepSeek",
        r#"{"type":"session","version":0,"id":"s","createdAt":1767323045000,"cwd":"/w","delegationDepth":0}
{"type":"user/message","seq":2,"time":1767323045001,"data":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#,
    ),
    (
        "Le Chat",
        r#"[{"id":"a","version":0,"chatId":"c","content":"hi","contentChunks":null,"role":"user","createdAt":"2026-01-02T03:04:05Z"}]"#,
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
fn a_database_is_refused_by_the_name_of_its_program() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for (name, tables) in [
        ("Zed", "CREATE TABLE threads (id, summary, data_type, data)"),
        ("Kiro", "CREATE TABLE conversations_v2 (key, conversation_id, value)"),
        ("workspace of an editor", "CREATE TABLE ItemTable (key, value)"),
        ("an SQLite database", "CREATE TABLE stamps (id)"),
    ] {
        let path = folder.path().join(name);
        rusqlite::Connection::open(&path).unwrap().execute_batch(tables).unwrap();
        let store = Store::open_in_memory()?;
        let refused = talktree_import::import(&store, &path, &ImportOptions::default(), |_| {});
        let Err(Error::Import { why, .. }) = refused else { panic!("{name}: {refused:?}") };
        assert!(why.contains(name), "{name}: {why}");
    }
    Ok(())
}

#[test]
fn a_file_with_nothing_to_show_is_refused() -> Result<()> {
    let store = Store::open_in_memory()?;
    for file in [
        r#"{"type":"session","version":3,"id":"p","timestamp":"2026-01-02T03:04:05Z"}"#,
        r#"{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"s"}}"#,
        r#"{"sessionId":"g","projectHash":"ab","startTime":"2026-01-02T03:04:05Z"}"#,
    ] {
        let why = refusal(&store, file, &ImportOptions::default()).expect("refused");
        assert!(why.contains("it holds no message"), "{why}");
    }
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn a_given_format_is_refused_if_most_messages_would_be_blank() -> Result<()> {
    let store = Store::open_in_memory()?;
    let options = ImportOptions { format: Some(Format::ClaudeCode), ..ImportOptions::default() };
    let why = refusal(&store, QWEN, &options).expect("refused");
    assert!(why.contains("nothing to show") && why.contains("qwen"), "{why}");
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
    let first = QWEN.lines().next().unwrap_or_default();
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
