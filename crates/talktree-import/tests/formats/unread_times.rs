//! Times that cannot be read. The time of the import replaced them, and no note said so.

use crate::common::{self, import, pi};
use talktree::{Result, Store};

/// Checks that there is one note, on this line.
#[track_caller]
fn assert_noted(file: &str, line: u64, count: u64, instead: &str) {
    let report = import(&Store::open_in_memory().unwrap(), file);
    let why = format!("unreadable times: {count}, the first one here; {instead} is used instead");
    let notes: Vec<_> = report.notes.iter().map(|note| (note.line, &*note.why)).collect();
    assert_eq!(notes, [(Some(line), &*why)]);
    assert!(report.first_fault().is_none());
}

#[test]
fn unreadable_times_are_noted_once_a_file() {
    let import = "the time of the import";
    let lines = concat!(
        r#"{"role":"user","content":"a","created_at":"2026-01-02T03:04:05Z"}"#,
        "\n",
        r#"{"role":"assistant","content":"b","created_at":"soon"}"#,
        "\n",
        r#"{"role":"user","content":"c","created_at":"later"}"#,
        "\n",
        r#"{"role":"assistant","content":"d","created_at":null}"#,
    );
    assert_noted(lines, 2, 2, import);
    let whole = r#"{"id":"s","createdAt":"soon","messages":[{"role":"user","content":"a","timestamp":"x","createdAt":7},{"role":"user","content":"b","timestamp":{}}]}"#;
    assert_noted(whole, 1, 2, import);
    let ui =
        r#"[{"id":"a","role":"user","parts":[{"type":"text","text":"a"}],"createdAt":"soon"}]"#;
    assert_noted(ui, 1, 1, import);
    let flat = r#"{"message_id":"a","text":"a","role":"prompter","created_date":"soon"}"#;
    assert_noted(flat, 1, 1, import);
    let nested = r#"{"message_tree_id":"t","prompt":{"message_id":"a","text":"a","role":"prompter","created_date":"soon","replies":[]}}"#;
    assert_noted(nested, 1, 1, import);
    let time = "2026-01-02T03:04:05Z";
    assert_noted(&pi("s", "a- ba").replace(time, "soon"), 1, 3, import);
    // The message within the entry has its time, too.
    let inner = pi("s", "a-").replacen(time, "", 1).replacen(
        r#""message":{"#,
        r#""message":{"timestamp":7,"#,
        1,
    );
    assert_noted(&inner.replace(time, "soon"), 1, 1, import);
    let chatgpt = r#"[{"id":"s","mapping":{"r":{"id":"r","message":null,"children":["a"]},"a":{"id":"a","parent":"r","children":[],"message":{"author":{"role":"user"},"create_time":"soon","content":{"content_type":"text","parts":["a"]}}}}}]"#;
    let report = common::import(&Store::open_in_memory().unwrap(), chatgpt);
    assert!(report.notes[1].why.starts_with("unreadable times: 1, "), "{report:#?}");
    let entry = |uuid: &str, parent: &str, time: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"sessionId":"S","timestamp":"{time}","message":{{"role":"user","content":"{uuid}"}}}}"#
        )
    };
    let claude = [entry("a", "null", time), entry("b", "\"a\"", "soon")].join("\n");
    assert_noted(&claude, 2, 1, "the time of the entry before");
}

#[test]
fn a_missing_time_is_not_noted() -> Result<()> {
    let file = r#"[{"role":"user","content":"a"},{"role":"user","content":"b","created_at":null}]"#;
    assert_eq!(import(&Store::open_in_memory()?, file).notes, []);
    Ok(())
}
