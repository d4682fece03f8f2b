//! Real conversations as requests: every path of every tree is valid for every provider.

#[path = "../../../tests/common/data.rs"]
mod common;

use std::io::Cursor;
use std::path::{Path, PathBuf};

use common::folder;
use serde_json::{Value, json};
use talktree::model::{
    Provider, TruncateOptions, sanitize, to_ai_sdk, to_anthropic, to_openai_chat,
    to_openai_responses, truncate, validate_for,
};
use talktree::{Message, Result, Store};
use talktree_import::{ImportOptions, import_reader};

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
