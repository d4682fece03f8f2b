//! What a transcript of Claude Code and a chat of OpenAI hold besides the usual.

use crate::common::{self, faults, import, try_import};
use talktree::{Result, Store};
use talktree_import::{Format, ImportOptions};

fn claude(uuid: &str, parent: &str, role: &str, text: &str) -> String {
    format!(
        r#"{{"type":"{role}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"S","timestamp":"2026-01-02T03:04:05Z","message":{{"role":"{role}","content":"{text}"}}}}"#
    )
}

/// They became hidden messages, some with an empty role, and no note said so.
#[test]
fn records_of_other_programs_in_a_transcript_are_reported() -> Result<()> {
    let openai = r#"{"role":"user","content":"of OpenAI"}"#;
    let pi = r#"{"type":"message","id":"p1","parentId":null,"timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"of Pi"}}"#;
    let nobody = r#"{"note":"of nobody"}"#;
    let untyped = r#"{"sessionId":"S","note":"of the session"}"#;
    let (a, b) = (claude("a", "null", "user", "hi"), claude("b", "\"a\"", "assistant", "ho"));
    let file = [&*a, openai, pi, &*b, nobody, untyped].join("\n");
    let store = Store::open_in_memory()?;
    let report = import(&store, &file);
    assert_eq!((report.kept, report.converted, report.dropped), (2, 1, 3), "{report:#?}");
    assert_eq!(faults(&report), [2, 3, 5]);
    assert!(report.notes[0].why.contains("openai") && report.notes[1].why.contains("pi"));
    let chat = store.session("S")?;
    assert_eq!(report.notes.last().unwrap().line, Some(6));
    let ids: Vec<_> = chat.raw_history()?.iter().map(|message| message.id.to_string()).collect();
    assert_eq!(ids, ["a", "b"]);
    let format = Some(Format::ClaudeCode);
    let strict = ImportOptions { is_strict: true, format, ..ImportOptions::default() };
    assert!(try_import(&Store::open_in_memory()?, &file, &strict).is_err());
    Ok(())
}

/// An older copy of a file, with one more hidden entry, moved the head back.
#[test]
fn an_entry_that_nobody_sees_moves_no_head() -> Result<()> {
    let (a, b) = (claude("a", "null", "user", "hi"), claude("b", "\"a\"", "assistant", "ho"));
    let c = claude("c", "\"b\"", "user", "more");
    let hidden = r#"{"type":"system","subtype":"turn_duration","uuid":"h","parentUuid":"b","sessionId":"S","timestamp":"2026-01-02T03:04:06Z","content":"3 s"}"#;
    let store = Store::open_in_memory()?;
    import(&store, &[&*a, &*b, &*c].join("\n"));
    let chat = store.session("S")?;
    assert_eq!(chat.head()?, Some("c".into()));
    let report = import(&store, &[&*a, &*b, hidden].join("\n"));
    assert_eq!((report.added, report.known), (1, 2), "{report:#?}");
    assert_eq!(chat.head()?, Some("c".into()));
    let d = claude("d", "\"c\"", "assistant", "yes");
    import(&store, &[&*a, &*b, &*c, &*d].join("\n"));
    assert_eq!(chat.head()?, Some("d".into()));
    Ok(())
}

/// The text was in the metadata alone: the message was blank, and no search found it.
#[test]
fn a_refusal_is_a_text() -> Result<()> {
    let file = concat!(
        r#"{"id":"chat","messages":[{"role":"user","content":"How?"},"#,
        r#"{"role":"assistant","content":null,"refusal":"I cannot help with that."},"#,
        r#"{"role":"assistant","content":[{"type":"refusal","refusal":"Nor with this."}],"refusal":null}]}"#,
    );
    let store = Store::open_in_memory()?;
    let report = import(&store, file);
    assert_eq!((report.kept, report.dropped), (3, 0), "{report:#?}");
    let texts: Vec<_> =
        store.session("chat")?.history()?.iter().map(talktree::Message::text).collect();
    assert_eq!(texts, ["How?", "I cannot help with that.", "Nor with this."]);
    let found = store.search("cannot help").run()?;
    assert_eq!(found.hits.len(), 1);
    Ok(())
}

/// One of Claude Code at the end became a hidden message and the head, and no note said so.
#[test]
fn records_of_other_programs_in_a_session_of_pi_are_reported() -> Result<()> {
    let pi = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-02T03:04:05Z","message":{{"role":"user","content":"of Pi"}}}}"#
        )
    };
    let header = r#"{"type":"session","version":3,"id":"P","timestamp":"2026-01-02T03:04:05Z"}"#;
    let openai = r#"{"type":"message","role":"user","content":"of OpenAI"}"#;
    let news = r#"{"type":"news","id":"n","parentId":"b","timestamp":"2026-01-02T03:04:05Z"}"#;
    let (a, b) = (pi("a", "null"), pi("b", "\"a\""));
    let claude = claude("c", "null", "user", "of Claude Code");
    let file = [header, &*a, openai, &*b, news, &*claude].join("\n");
    let store = Store::open_in_memory()?;
    let report = import(&store, &file);
    assert_eq!((report.kept, report.converted, report.dropped), (2, 2, 2), "{report:#?}");
    assert_eq!(faults(&report), [3, 6]);
    assert!(report.notes[0].why.contains("openai"), "{report:#?}");
    assert!(report.notes[1].why.contains("claude-code"), "{report:#?}");
    let chat = store.session("P")?;
    let ids: Vec<_> = chat.raw_history()?.iter().map(|message| message.id.to_string()).collect();
    assert_eq!(ids, ["a", "b", "n"]);
    Ok(())
}

/// They became hidden messages, and no note said so.
#[test]
fn records_of_other_agents_are_reported() -> Result<()> {
    let codex = r#"{"timestamp":"2026-01-02T03:04:05Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"of Codex"}]}}"#;
    let copilot = r#"{"type":"user.message","id":"x","data":{"content":"of Copilot"}}"#;
    // An entry with a parent is one of a newer version.
    let new = r#"{"type":"news","id":"n","parentId":"a","timestamp":"2026-01-02T03:04:05Z","payload":{}}"#;
    let (pi, claude) = (common::pi("P", "a-"), claude("a", "null", "user", "hi"));
    for (file, session, converted) in
        [([&*pi, codex, copilot, new], "P", 2), ([&*claude, codex, copilot, ""], "S", 0)]
    {
        let store = Store::open_in_memory()?;
        let report = import(&store, file.join("\n").trim_end());
        assert_eq!(
            (report.kept, report.converted, report.dropped),
            (1, converted, 2),
            "{report:#?}"
        );
        assert_eq!(faults(&report).len(), 2);
        let why = "a record of an unknown kind: it seems to be in the format codex";
        assert_eq!(report.notes[0].why, why);
        assert!(store.search("Codex").run()?.hits.is_empty());
        assert!(store.session(session)?.message(&"a".into())?.is_some());
    }
    Ok(())
}
