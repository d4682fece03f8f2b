//! Real transcripts: what becomes of each, and that a second import adds nothing.

#[path = "../../../tests/common/data.rs"]
mod common;

use std::path::{Path, PathBuf};

use common::data;
use serde_json::{Value, json};
use talktree::export::content_hash;
use talktree::import::ImportReport;
use talktree::model::{Provider, validate_for};
use talktree::{Result, Session, Store};
use talktree_import::{Format, ImportOptions, import_reader};

fn import(store: &Store, path: &Path) -> Result<ImportReport> {
    let report = talktree_import::import(store, path, &ImportOptions::default(), |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok(report)
}

fn import_new(path: &Path) -> Result<(Store, ImportReport)> {
    let store = Store::open_in_memory()?;
    let report = import(&store, path)?;
    assert!(store.verify(|_| {})?.damages.is_empty());
    let hash = content_hash(&store)?;
    let again = import(&store, path)?;
    assert_eq!((again.added, again.known), (0, report.added + report.known), "{again:#?}");
    assert_eq!(content_hash(&store)?, hash, "a second import changed something");
    println!("{report:#?}");
    Ok((store, report))
}

fn only(store: &Store, report: &ImportReport) -> Result<Session> {
    assert_eq!(report.sessions.len(), 1);
    store.session(&report.sessions[0])
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let Some(folder) = data(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == ending));
    files.sort();
    files
}

#[test]
fn nested_open_assistant_trees_keep_their_shape() -> Result<()> {
    let Some(path) = data("openassistant/trees.jsonl") else { return Ok(()) };
    let (store, report) = import_new(&path)?;
    let stats = store.stats()?;
    assert_eq!(report.format, Format::OpenAssistant.as_str());
    assert_eq!((report.records, report.kept), (1_167, 1_167));
    assert_eq!((stats.sessions, stats.messages), (100, 1_167));
    assert_eq!((stats.branching_messages, stats.max_children, stats.max_depth), (260, 9, 6));
    Ok(())
}

#[test]
fn flat_open_assistant_messages_become_their_trees() -> Result<()> {
    let Some(path) = data("openassistant/seed.json") else { return Ok(()) };
    let (store, report) = import_new(&path)?;
    let stats = store.stats()?;
    assert_eq!((report.records, report.kept), (444, 444));
    assert_eq!((stats.sessions, stats.messages), (74, 444));
    Ok(())
}

#[test]
fn a_long_pi_log_of_version_1_shows_its_later_summary_in_place() -> Result<()> {
    let Some(path) = data("pi/before-compaction.jsonl") else { return Ok(()) };
    let (store, report) = import_new(&path)?;
    assert_eq!(
        (report.records, report.kept, report.converted, report.dropped),
        (1_003, 990, 13, 0)
    );
    assert_eq!(store.stats()?.messages, 990);
    let chat = only(&store, &report)?;
    let compactions = chat.compactions()?;
    assert_eq!(compactions.len(), 2);
    assert_eq!(compactions[0].first, compactions[1].first, "both begin where the path begins");
    let history = chat.history()?;
    assert_eq!(history[0].id, compactions[1].id.as_message());
    assert!(history.iter().all(|message| message.id != compactions[0].id.as_message()));
    // 452 messages from entry 551 on, and the summary.
    assert_eq!(history.len(), 445 + 1);
    assert_eq!(chat.raw_history()?.len(), 1_002);
    Ok(())
}

#[test]
fn pi_files_of_version_3_are_read_honestly() -> Result<()> {
    for path in files("pi/v3", "jsonl") {
        let (store, report) = import_new(&path)?;
        let chat = only(&store, &report)?;
        assert_eq!(report.dropped, 0);
        let name = path.file_stem().unwrap().to_str().unwrap();
        let compactions = chat.compactions()?.len();
        let faults = report.notes.iter().filter(|note| note.is_fault).count();
        let expected = match name {
            "compaction" => (4, 1, 0),
            "compaction_missing" => (3, 0, 1),
            "multi_compaction" => (5, 2, 0),
            "branching" => (5, 0, 0),
            "fields" => (9, 0, 0),
            "full_format" => (13, 1, 0),
            // One message is kept from the model.
            "real_world" => (7, 1, 0),
            "sample" => (3, 0, 0),
            "v1_legacy" => (4, 0, 1),
            other => panic!("what is {other}?"),
        };
        assert_eq!((report.kept, compactions, faults), expected, "{name}: {:#?}", report.notes);
    }
    Ok(())
}

#[test]
fn claude_code_transcripts_are_read_honestly() -> Result<()> {
    for path in files("claude-code", "jsonl") {
        let (store, report) = import_new(&path)?;
        let chat = only(&store, &report)?;
        assert_eq!(report.dropped, 0, "{report:#?}");
        if path.ends_with("dag_compact_after_rewind.jsonl") {
            assert_eq!((report.kept, report.converted), (10, 2));
            let texts: Vec<_> = chat.history()?.iter().map(|m| m.text()).collect();
            assert_eq!(texts.len(), 3, "{texts:?}");
            assert_eq!(texts[1..], ["After compaction", "Final answer"]);
            assert_eq!(chat.branches(&"a1".into())?.len(), 2);
            let raw: Vec<_> = chat.raw_history()?.iter().map(|m| m.id.to_string()).collect();
            assert_eq!(raw.join(" "), "u1 a1 b2u b2a b2u2 b2a2 cb cs p1u p1a");
        }
    }
    Ok(())
}

#[test]
fn chatgpt_exports_keep_their_trees() -> Result<()> {
    let mut nodes = Vec::new();
    for path in files("chatgpt", "json") {
        let (store, report) = import_new(&path)?;
        nodes.push(report.records);
        assert_eq!(report.format, Format::ChatGpt.as_str());
        // The root of each mapping holds nothing.
        assert_eq!(report.dropped, report.sessions.len() as u64);
        for session in &report.sessions {
            let chat = store.session(session)?;
            assert!(chat.head()?.is_some() && chat.info()?.unwrap().name.is_some());
            assert_eq!(chat.roots()?.len(), 1);
        }
    }
    assert!(nodes.is_empty() || nodes == [23, 13], "{nodes:?}");
    Ok(())
}

#[test]
fn a_second_import_of_everything_adds_nothing() -> Result<()> {
    let mut paths = files("pi/v3", "jsonl");
    paths.extend(files("claude-code", "jsonl"));
    paths.extend(files("chatgpt", "json"));
    paths.extend(files("openassistant", "jsonl"));
    paths.extend(data("pi/before-compaction.jsonl"));
    paths.extend(data("openassistant/seed.json"));
    let store = Store::open_in_memory()?;
    let mut added = 0;
    for path in &paths {
        added += import(&store, path)?.added;
    }
    let hash = content_hash(&store)?;
    for path in &paths {
        assert_eq!(import(&store, path)?.added, 0, "{}", path.display());
    }
    assert_eq!(content_hash(&store)?, hash);
    println!("{} files, {added} messages", paths.len());

    let mut file = Vec::new();
    store.export_jsonl(&mut file)?;
    let copy = Store::open_in_memory()?;
    let options = ImportOptions { is_strict: true, ..ImportOptions::default() };
    if !paths.is_empty() {
        let report = import_reader(&copy, "all", std::io::Cursor::new(&file), &options, |_| {})?;
        assert_eq!((report.added, report.dropped), (added, 0));
        assert_eq!(content_hash(&copy)?, hash);
        assert_eq!(copy.stats()?.messages, store.stats()?.messages);
    }
    Ok(())
}

#[test]
fn other_formats_are_refused_by_name() -> Result<()> {
    let store = Store::open_in_memory()?;
    for path in files("librechat", "json") {
        let error =
            talktree_import::import(&store, &path, &ImportOptions::default(), |_| {}).unwrap_err();
        println!("{error}");
    }
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn agent_logs_become_valid_chats_and_pages() -> Result<()> {
    for file in [
        "pi/before-compaction.jsonl",
        "claude-code/todowrite_examples.jsonl",
        "pi/v3/full_format.jsonl",
    ] {
        let Some(path) = data(file) else { continue };
        let store = Store::open_in_memory()?;
        let report = import(&store, &path)?;
        let chat = store.session(&report.sessions[0])?;
        for path in [chat.path(), chat.path().raw()] {
            let mut exported = Vec::new();
            path.export_openai(&mut exported)?;
            let exported: Value = serde_json::from_slice(&exported).unwrap();
            let request = json!({"messages": exported["messages"]});
            assert!(!request["messages"].as_array().unwrap().is_empty());
            let problems = validate_for(Provider::OpenAiChat, &request);
            assert!(problems.is_empty(), "{file}: {problems:#?}");
        }
        let mut page = Vec::new();
        chat.export_markdown(&mut page)?;
        assert!(std::str::from_utf8(&page).is_ok());
    }
    Ok(())
}
