//! The summaries of sessions.

use serde_json::{Value, json};

use super::{Probe, entry};
use crate::error::Result;
use crate::message::Json;
use crate::transcript::fold_transcript_summary;

fn user(content: &Value) -> Json {
    Json::from(json!({"type": "user", "message": {"content": content}}))
}

pub(super) fn refold(probe: &Probe) -> Result<()> {
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
        let folded = fold_transcript_summary(None, &entries)?;
        assert_eq!(probe.data(&path)?.map(|data| data.value()), Some(folded.value()));
    }
    Ok(())
}

pub(super) fn known(probe: &Probe) -> Result<()> {
    let titled =
        |uuid: &str, title: &str| entry(&format!(r#"{{"uuid":"{uuid}","customTitle":"{title}"}}"#));
    probe.append("p/s", &[titled("a", "first")])?;
    probe.append("p/s", &[titled("b", "second")])?;
    let before = probe.data("p/s")?;
    probe.append("p/s", &[titled("a", "first")])?;
    assert_eq!(probe.data("p/s")?, before);
    probe.append("p/s", &[titled("a", "first"), entry(r#"{"uuid":"c"}"#)])?;
    assert_eq!(probe.data("p/s")?, before);
    Ok(())
}

pub(super) fn rules(probe: &Probe) -> Result<()> {
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
    let side = probe.storage.session_summary("p", "side")?;
    assert_eq!(side.and_then(|summary| summary.info(None)), None);
    Ok(())
}
