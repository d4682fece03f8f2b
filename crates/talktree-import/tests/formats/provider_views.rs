//! Real conversations as requests: every path of every tree is valid for every provider.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use crate::data::folder;
use serde_json::{Value, json};
use talktree::{Json, Message, MessageId, Result, Store, TranscriptKey};
use talktree_claude::SessionStore;
use talktree_import::{ImportOptions, import_reader};
use talktree_model::{
    Provider, TruncateOptions, sanitize, to_ai_sdk, to_anthropic, to_openai_chat,
    to_openai_responses, truncate, validate_for,
};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        match path.extension().and_then(|ending| ending.to_str()) {
            _ if path.is_dir() => files(&path, found),
            Some("json" | "jsonl") => found.push(path),
            _ => {}
        }
    }
}

fn check(view: &[Message], whose: &str) {
    for (provider, request) in [
        (Provider::Anthropic, to_anthropic(view)),
        (Provider::OpenAiChat, to_openai_chat(view)),
        (Provider::OpenAiResponses, to_openai_responses(view)),
        (Provider::AiSdk, to_ai_sdk(view)),
    ] {
        let problems = validate_for(provider, &request);
        assert!(problems.is_empty(), "{whose}, {provider}: {problems:#?}");
    }
}

/// A search that the provider ran itself used to become a call of a tool of the program, for which a result was made up, and
/// its real result was left out of the request.
#[test]
fn a_tool_of_the_provider_stays_one() -> Result<()> {
    let call = json!({
        "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "moon"}
    });
    let found = json!({
        "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "https://example.org", "title": "Moon",
                     "encrypted_content": "x", "page_age": null}],
    });
    let entry = |id: &str, parent: Option<&str>, role: &str, content: Value| {
        let message = json!({"role": role, "content": content});
        json!({"type": role, "uuid": id, "parentUuid": parent, "sessionId": "s", "message": message})
    };
    let said = json!([call, found, {"type": "text", "text": "Full."}]);
    let log = format!(
        "{}\n{}\n",
        entry("m1", None, "user", json!("How is the moon?")),
        entry("m2", Some("m1"), "assistant", said),
    );
    let store = Store::open_in_memory()?;
    let options = ImportOptions::default();
    let report = import_reader(&store, "log.jsonl", Cursor::new(log), &options, |_| {})?;
    assert_eq!((report.format.as_str(), report.added), ("claude-code", 2));
    let view = store.session("s")?.history()?;
    assert_eq!(serde_json::to_value(&view[1].parts[0]).unwrap(), call);
    let sent = to_anthropic(&view);
    assert_eq!(sent["messages"][1]["content"][0], call, "{sent:#}");
    assert_eq!(sent["messages"][1]["content"][1]["type"], "web_search_tool_result", "{sent:#}");
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(2), "{sent:#}");
    check(&view, "a search of the provider");
    Ok(())
}

/// Entries from a drawing: `Ax1` is a part `A` under `x`, with the call `1`, of the first answer; `rx1` is the result `r` of the
/// call `1` under `x`; `ux` a question, `Zx` the next answer, `sx` a notice, `px` a link.
fn answers(drawing: &str) -> Vec<Value> {
    let entry = |(at, word): (usize, &str)| {
        let (id, rest) = word.split_at(1);
        let (parent, call) = rest.split_at(1);
        let parent = Some(parent).filter(|parent| *parent != "-");
        let kind = match id {
            "p" => "progress",
            "s" => "system",
            _ if id == id.to_uppercase() => "assistant",
            _ => "user",
        };
        let answer = if id == "Z" { "next" } else { "first" };
        let content = match (kind, call) {
            (_, "") => json!([{"type": "text", "text": format!("said {id}")}]),
            ("assistant", call) => {
                json!([{"type": "tool_use", "id": call, "name": "t", "input": {}}])
            }
            (_, call) => {
                json!([{"type": "tool_result", "tool_use_id": call, "content": format!("out {call}")}])
            }
        };
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "content": "noted",
               "timestamp": format!("2026-01-02T03:04:{at:02}Z"),
               "message": {"role": kind, "id": answer, "content": content}})
    };
    drawing.split(' ').enumerate().map(entry).collect()
}

/// Each result of parallel calls is a child of the entry of its call, so the path to the last message had one of them, and a
/// request said of the others that they were not here.
#[test]
fn results_of_parallel_calls_are_on_the_path() -> Result<()> {
    for (drawing, path, calls) in [
        ("u- Au1 BA2 rA1 qB2 Zq", "u A B r q Z", 2),
        ("u- Au1 BA2 qB2 rA1 Zq", "u A B q r Z", 2),
        ("u- Au1 BA2 CB3 tC3 rA1 qB2 Zr vZ", "u A B C t r q Z v", 3),
        // Calls that run while the model still writes.
        ("u- Au1 rA1 BA2 qB2 Zq", "u A r B q Z", 2),
        ("u- Au1 rA1 Br2 qB2 Zq", "u A r B q Z", 2),
        // Parts beside each other, a notice and a link among them.
        ("u- Au1 Bu2 rA1 qB2 Zr", "u A B r q Z", 2),
        ("u- Au1 BA2 sB qs2 rA1 Zq", "u A B s q r Z", 2),
        ("u- Au1 pA rA1 Zp", "u A r Z", 1),
        // A result elsewhere, and one that comes when the conversation has gone on.
        ("u- Au1 BA2 qB2 rq1 Zr", "u A B q r Z", 2),
        ("u- Au1 BA2 qB2 Zq rA1 vZ", "u A B q r Z v", 2),
        // Children before their parents.
        ("Zq qB2 rA1 BA2 Au1 u-", "u A B q r Z", 2),
        // A second result is a branch, before the first.
        ("u- Au1 BA2 rA1 qB2 Zq dB2 vd", "u A B r d v", 2),
    ] {
        let entries = answers(drawing);
        let log: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        let (imported, projected) = (Store::open_in_memory()?, Store::open_in_memory()?);
        import_reader(&imported, "log", Cursor::new(log), &ImportOptions::default(), |_| {})?;
        let transcripts = SessionStore::new(&projected).projecting();
        for entry in entries {
            transcripts.append(&TranscriptKey::new("p", "s"), &[Json::from(entry)])?;
        }
        for store in [imported, projected] {
            let session = store.session("s")?;
            let last = path.rsplit(' ').next().unwrap_or_default();
            let raw = session.at(&MessageId::from(last)).raw_history()?;
            let ids: Vec<&str> = raw.iter().map(|message| message.id.as_str()).collect();
            assert_eq!(ids.join(" "), path, "{drawing}");
            check(&raw, drawing);
            let request = to_anthropic(&raw).to_string();
            for call in 1..=calls {
                assert!(request.contains(&format!("out {call}")), "{drawing}: {request}");
            }
            assert_eq!(store.verify(|_| {})?.damages, []);
        }
    }
    Ok(())
}

#[test]
fn real_conversations_are_valid_for_every_provider() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    let (mut read, mut views) = (0, 0);
    for path in paths {
        let store = Store::open_in_memory()?;
        // Some files of the folder are no conversations, or of formats that are not read.
        let options = ImportOptions::default();
        let imported = talktree_import::import(&store, &path, &options, |_| {});
        let Ok(report) = imported else { continue };
        read += 1;
        for session in &report.sessions {
            let chat = store.session(session)?;
            for leaf in chat.leaves()? {
                let whose = format!("{}, {session}, {leaf}", path.display());
                for view in [chat.at(&leaf).history()?, chat.at(&leaf).raw_history()?] {
                    let sane = sanitize(&view);
                    check(&sane, &whose);
                    check(&truncate(&sane, &TruncateOptions::default()), &whose);
                    // A window may begin at any message.
                    check(&sanitize(&view[view.len() / 2..]), &whose);
                    views += 1;
                }
            }
        }
    }
    println!("{read} files, {views} views");
    assert!(read >= 18 && views > 1_000, "only {read} files and {views} views were checked");
    Ok(())
}
