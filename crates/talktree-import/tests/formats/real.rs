//! Real transcripts: what becomes of each, and that a second import adds nothing; a store projects the same session from the
//! entries that an import makes of them.

use std::collections::HashSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use crate::data::data;
use crate::{claude, random};
use serde_json::{Value, json};
use talktree::{Json, Result, Session, Store, TranscriptKey};
use talktree_claude::SessionStore;
use talktree_import::ImportReport;
use talktree_import::export::{
    content_hash, export_jsonl, export_markdown, export_session, session_hash,
};
use talktree_import::{Format, ImportOptions, import_reader};
use talktree_model::{Provider, export_openai, validate_for};

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

/// Logs with which readers of others test themselves: lines without ids, one that is cut, a call without a result.
#[test]
fn small_logs_of_claude_code_are_read() -> Result<()> {
    for (path, right) in [
        ("agentsview/claude/valid_session.jsonl", (4, 0, 0)),
        ("agentsview/claude/truncated.jsonl", (2, 0, 1)),
        ("agentsview/claude/tool_call_pending.jsonl", (2, 0, 0)),
        ("agentsview/claude/queued_system_messages.jsonl", (1, 2, 0)),
        ("deja-vu/synthetic/claude/project/session.jsonl", (2, 0, 0)),
        ("deja-vu/registry/claude-code/session.jsonl", (2, 0, 0)),
    ] {
        let Some(path) = data(&format!("agents/{path}")) else { continue };
        let (store, report) = import_new(&path)?;
        assert_eq!(report.format, Format::ClaudeCode.as_str());
        assert_eq!((report.kept, report.converted, report.dropped), right, "{report:#?}");
        assert_eq!(only(&store, &report)?.history()?.len() as u64, report.kept);
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
    export_jsonl(&store, &mut file)?;
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
fn what_is_not_read_is_refused_by_name() -> Result<()> {
    for path in files("librechat", "json") {
        let store = Store::open_in_memory()?;
        match talktree_import::import(&store, &path, &ImportOptions::default(), |_| {}) {
            Ok(report) => assert_eq!(report.added, store.stats()?.messages, "{report:?}"),
            Err(error) => {
                assert!(error.to_string().contains("Chatbot UI"), "{error}");
                assert!(store.sessions()?.is_empty());
            }
        }
    }
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
            export_openai(&path, &mut exported)?;
            let exported: Value = serde_json::from_slice(&exported).unwrap();
            let request = json!({"messages": exported["messages"]});
            assert!(!request["messages"].as_array().unwrap().is_empty());
            let problems = validate_for(Provider::OpenAiChat, &request);
            assert!(problems.is_empty(), "{file}: {problems:#?}");
        }
        let mut page = Vec::new();
        export_markdown(&chat.path(), &mut page)?;
        assert!(std::str::from_utf8(&page).is_ok());
    }
    Ok(())
}

/// Returns a session as its import from a file leaves it, and as the projection of its entries.
fn both_ways(entries: &[Value], session: &str, size: usize) -> Result<[(String, String); 2]> {
    let lines: Vec<String> = entries.iter().map(Value::to_string).collect();
    let file = lines.join("\n");
    let imported = Store::open_in_memory()?;
    let format = Some(Format::ClaudeCode);
    let options = ImportOptions { format, ..ImportOptions::default() };
    let report = match import_reader(&imported, "s.jsonl", Cursor::new(file), &options, |_| {}) {
        // An import refuses a file of which most shows nothing.
        Err(talktree::Error::Import { .. }) => return Ok(Default::default()),
        report => report?,
    };

    let store = Store::open_in_memory()?;
    let (transcripts, mut key) =
        (SessionStore::new(&store).projecting(), TranscriptKey::new("p", session));
    // A file in which all is of one agent is the transcript of that agent.
    let imported_as = report.sessions.first().map(talktree::SessionId::as_str).unwrap_or_default();
    if let Some((_, subpath)) = imported_as.split_once('/') {
        key = key.subpath(subpath);
    }
    let entries: Vec<Json> = lines.iter().map(|line| Json::parse(line)).collect::<Result<_>>()?;
    for batch in entries.chunks(size) {
        transcripts.append(&key, batch)?;
    }
    assert_eq!(store.verify(|_| {})?.damages, []);
    let found = transcripts.projection(&key)?.map(|found| found.session);
    if report.added == 0 {
        // An import makes a session of a title alone.
        assert_eq!(found, None);
        return Ok(Default::default());
    }
    let shown = |store: &Store, session: Option<&talktree::SessionId>| {
        let Some(session) = session else { return Ok(Default::default()) };
        let session = store.session(session)?;
        let mut text = Vec::new();
        export_session(&session, &mut text)?;
        // Without the times of the last writes, and the checksum of them.
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines = text.lines().filter(|line| !line.starts_with(r#"{"type":"end""#));
        let lines = lines.map(|line| line.split(r#","updated_at":"#).next().unwrap_or_default());
        Ok((session_hash(&session)?, lines.collect::<Vec<_>>().join("\n")))
    };
    Ok([shown(&imported, report.sessions.first())?, shown(&store, found.as_ref())?])
}

#[test]
fn the_projection_of_a_transcript_is_what_its_import_gives() -> Result<()> {
    for path in files("claude-code", "jsonl") {
        let text = std::fs::read_to_string(&path).unwrap();
        let entries = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let entries: Vec<Value> = entries.collect();
        let sessions = entries.iter().filter_map(|entry| entry["sessionId"].as_str());
        let sessions: HashSet<&str> = sessions.collect();
        println!("{}: {} entries, sessions {sessions:?}", path.display(), entries.len());
        let session = sessions.iter().next().copied().unwrap_or_default();
        for size in [1, 3, 1_000] {
            let [imported, projected] = both_ways(&entries, session, size)?;
            assert_eq!(projected.1, imported.1, "{}", path.display());
            assert_eq!(projected.0, imported.0, "{}", path.display());
        }
    }
    Ok(())
}

#[test]
fn the_projection_of_random_entries_is_what_their_import_gives() {
    let strategy = (claude::entries(40), 1..20_usize);
    random::check_all(random::cases(40), &strategy, |(mut entries, size)| {
        let mut uuids = HashSet::new();
        // A store ignores an entry whose uuid it has; an import reports a fault.
        entries.retain(|entry| entry["uuid"].as_str().is_none_or(|id| uuids.insert(id.to_owned())));
        for entry in &mut entries {
            entry["sessionId"] = json!("s");
        }
        let [imported, projected] = both_ways(&entries, "s", size)?;
        assert_eq!(projected.1, imported.1);
        assert_eq!(projected.0, imported.0);
        Ok(())
    })
    .unwrap();
}
