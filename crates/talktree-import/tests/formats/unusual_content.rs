//! Content that is no text, no time or no part of a message: it is kept, and an export brings it back.

use crate::common::{import, pi, try_import};
use talktree::{Message, Part, Result, Store};
use talktree_import::ImportOptions;
use talktree_import::export::{content_hash, export_jsonl};

#[test]
fn text_that_a_rust_string_cannot_hold_is_unchanged() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = pi("s", "a-").replace("\"content\":\"a\"", r#""content":"a\ud800\u0000""#);
    assert_eq!(import(&store, &file).kept, 1);
    let message = store.session("s")?.message(&"a".into())?.unwrap();
    assert!(matches!(&message.parts[0], Part::Other(json) if json.as_str().contains(r"\ud800")));
    assert_eq!(message.text(), "a\u{FFFD}\0");
    assert_eq!(import(&store, &file).added, 0);
    Ok(())
}

/// Imports a file, and its export into a second store; both have the same content.
#[track_caller]
fn comes_back_from_an_export(file: &str) -> Store {
    let (store, other) = (Store::open_in_memory().unwrap(), Store::open_in_memory().unwrap());
    assert!(import(&store, file).added > 0);
    let mut exported = Vec::new();
    export_jsonl(&store, &mut exported).unwrap();
    let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
    let exported = String::from_utf8(exported).unwrap();
    try_import(&other, &exported, &strict).unwrap_or_else(|error| panic!("{error}: {exported}"));
    assert_eq!(content_hash(&store).unwrap(), content_hash(&other).unwrap(), "{exported}");
    store
}

#[test]
fn a_time_that_cannot_be_read_is_kept_and_comes_back_from_an_export() -> Result<()> {
    for name in ["created_at", "createdAt"] {
        let file = format!(
            r#"[{{"id":"a","role":"user","parts":[{{"type":"text","text":"hi"}}],"{name}":"-01-01T00:00:00Z"}}]"#
        );
        let store = comes_back_from_an_export(&file);
        let session = store.session(store.sessions()?[0].id.clone())?;
        let message = session.message(&"a".into())?.unwrap();
        assert_eq!(message.extra[&format!("unread_{name}")].value(), "-01-01T00:00:00Z");
    }
    Ok(())
}

#[test]
fn times_of_far_years_come_back_from_an_export() {
    for time in ["8e15", "-6e13"] {
        comes_back_from_an_export(&format!(
            r#"[{{"id":"c","title":"t","create_time":{time},"current_node":"n","mapping":{{"n":{{"id":"n","parent":null,"children":[],"message":{{"id":"n","author":{{"role":"user"}},"content":{{"content_type":"text","parts":["hi"]}},"create_time":{time}}}}}}}}}]"#
        ));
    }
}

#[test]
fn a_block_with_a_field_that_a_part_writes_itself_stays_as_it_came() -> Result<()> {
    for block in [
        r#"{"type":"thinking","thinking":"so","text":"other"}"#,
        r#"{"type":"tool_use","id":"t","name":"look","input":{},"state":"odd"}"#,
        r#"{"type":"tool_use","id":"t","name":"look","input":{},"toolCallId":"u"}"#,
    ] {
        let store = comes_back_from_an_export(&format!(
            r#"[{{"role":"user","content":"hi"}},{{"id":"a","role":"assistant","content":[{block}]}}]"#
        ));
        let session = store.session(store.sessions()?[0].id.clone())?;
        let message = session.message(&"a".into())?.unwrap();
        assert_eq!(serde_json::to_string(&message.parts[0]).unwrap(), block);
    }
    Ok(())
}

/// No Rust string holds these ids; as texts they were one.
#[test]
fn ids_that_differ_in_a_lone_surrogate_are_two_in_every_format() -> Result<()> {
    for (file, format) in [
        (
            r#"{"uuid":"a\ud800","parentUuid":null,"sessionId":"s","timestamp":"2026-01-02T03:04:05Z","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}
{"uuid":"a\ud801","parentUuid":"a\ud800","sessionId":"s","timestamp":"2026-01-02T03:04:06Z","type":"assistant","message":{"role":"model","parts":[{"text":"ho"}]}}"#,
            "qwen-code",
        ),
        (
            r#"[{"uuid":"s","name":"","chat_messages":[{"uuid":"a\ud800","sender":"human","text":"hi","created_at":"2026-01-02T03:04:05Z","parent_message_uuid":"00000000-0000-4000-8000-000000000000"},{"uuid":"a\ud801","sender":"assistant","text":"ho","created_at":"2026-01-02T03:04:06Z","parent_message_uuid":"a\ud800"}]}]"#,
            "claude-ai",
        ),
        (
            r#"{"info":{"id":"s"},"messages":[{"info":{"id":"a\ud800","sessionID":"s","role":"user","time":{"created":1767323045000}},"parts":[{"type":"text","text":"hi"}]},{"info":{"id":"a\ud801","sessionID":"s","role":"assistant","time":{"created":1767323046000,"completed":1767323047000}},"parts":[{"type":"text","text":"ho"}]}]}"#,
            "opencode",
        ),
    ] {
        let store = Store::open_in_memory()?;
        let report = import(&store, file);
        assert_eq!((report.format.as_str(), report.added, report.first_fault()), (format, 2, None));
        let texts: Vec<String> = store.session("s")?.history()?.iter().map(Message::text).collect();
        assert_eq!(texts, ["hi", "ho"], "{format}");
    }
    Ok(())
}
