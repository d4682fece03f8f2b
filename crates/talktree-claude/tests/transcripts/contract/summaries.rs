//! The summaries of sessions.

use serde_json::{Value, json};

use super::{Probe, entry};
use talktree::{Json, Result};
use talktree_claude::fold_summary;

fn user(content: &Value) -> Json {
    Json::from(json!({"type": "user", "message": {"content": content}}))
}

#[test]
fn summaries_equal_one_fold_of_all_entries() -> Result<()> {
    let probe = Probe::new()?;
    let entries: Vec<Json> = vec![
        entry(r#"{"type":"mode"}"#),
        user(&json!("<command-name>/clear</command-name>")),
        entry(r#"{"type":"user","isMeta":true,"message":{"content":"no"},"cwd":"/w"}"#),
        entry(
            r#"{"type":"x","timestamp":"2026-03-01T10:00:02.000Z","gitBranch":"main","cwd":"/v"}"#,
        ),
        entry(r#"{"type":"tag","tag":"ci"}"#),
        user(&json!([{"type": "text", "text": "Fix\nit \u{e9}"}])),
        entry(r#"{"type":"x","aiTitle":"A","customTitle":"\ud83d","lastPrompt":""}"#),
        entry(r#"{"type":"tag"}"#),
    ];
    for size in [1, 2, 3, entries.len()] {
        let path = format!("p/{size}");
        for batch in entries.chunks(size) {
            probe.append(&path, batch)?;
        }
        let folded = fold_summary(None, &entries);
        assert_eq!(probe.data(&path)?.map(|data| data.value()), Some(folded.value()));
    }
    probe.is_sound()
}

#[test]
fn a_known_entry_does_not_change_a_summary() -> Result<()> {
    let probe = Probe::new()?;
    let titled =
        |uuid: &str, title: &str| entry(&format!(r#"{{"uuid":"{uuid}","customTitle":"{title}"}}"#));
    probe.append("p/s", &[titled("a", "first")])?;
    probe.append("p/s", &[titled("b", "second")])?;
    let before = probe.data("p/s")?;
    probe.append("p/s", &[titled("a", "first")])?;
    assert_eq!(probe.data("p/s")?, before);
    probe.append("p/s", &[titled("a", "first"), entry(r#"{"uuid":"c"}"#)])?;
    assert_eq!(probe.data("p/s")?, before);
    probe.is_sound()
}

#[test]
fn the_data_of_a_summary_is_read_by_its_rules() -> Result<()> {
    let probe = Probe::new()?;
    let steps = [
        (entry(r#"{"isSidechain":1,"cwd":""}"#), json!({"is_sidechain": false})),
        (
            entry(r#"{"isSidechain":true,"cwd":"/a","timestamp":"soon"}"#),
            json!({"is_sidechain": false, "cwd": "/a"}),
        ),
        (
            entry(r#"{"cwd":"/b","timestamp":"1970-01-01T00:00:01.5Z","summary":"s"}"#),
            json!({"is_sidechain": false, "cwd": "/a", "created_at": 1500, "summary_hint": "s"}),
        ),
        (
            entry(r#"{"timestamp":"1970-01-01T00:00:00Z","summary":5,"type":"tag","tag":"t"}"#),
            json!({"is_sidechain": false, "cwd": "/a", "created_at": 1500, "summary_hint": "s", "tag": "t"}),
        ),
        (
            entry(r#"{"type":"tag","tag":"","summary":""}"#),
            json!({"is_sidechain": false, "cwd": "/a", "created_at": 1500, "summary_hint": ""}),
        ),
    ];
    for (entry, expected) in steps {
        probe.append("p/s", &[entry])?;
        assert_eq!(probe.data("p/s")?.map(|data| data.value()), Some(expected));
    }
    probe.append("p/side", &[entry(r#"{"isSidechain":true,"customTitle":"t"}"#)])?;
    assert_eq!(probe.storage.info("p", "side")?, None);
    probe.is_sound()
}
