//! Transcripts in a file: two stores and several processes at once, limits, damage, files of the agent's command.

#![allow(clippy::print_stdout, reason = "a skipped test says why")]

use std::path::Path;

use crate::common::process::{Other, say, task};
use crate::common::{Scratch, data, folder, open};
use crate::tables::{Tables, is_on_server};
use talktree::{Error, Json, OwnerInfo, Result, SessionDetails, Store, TranscriptKey, Transcripts};
use talktree_claude::{SessionStore, TranscriptFiles, TranscriptFork};
use talktree_import::export::content_hash;

fn key() -> TranscriptKey {
    TranscriptKey::new("project", "session")
}

fn entry(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn numbered(numbers: std::ops::Range<u32>) -> Vec<Json> {
    numbers.map(|n| entry(&format!(r#"{{"type":"x","uuid":"{n}"}}"#))).collect()
}

fn mtime(transcripts: &Transcripts) -> Result<i64> {
    Ok(transcripts.of_project("project")?[0].mtime)
}

#[test]
fn two_stores_on_one_file_agree() -> Result<()> {
    let folder = folder()?;
    let (one, other) = (open(&folder)?.transcripts(), open(&folder)?.transcripts());
    let mut last = 0;
    for n in 0..20 {
        let (writer, reader) = if n % 2 == 0 { (&one, &other) } else { (&other, &one) };
        // The second entry of each is the first one of the next.
        writer.append(&key(), &numbered(n..n + 2))?;
        assert_eq!(reader.load(&key())?, Some(numbered(0..n + 2)));
        assert!(mtime(reader)? > last);
        last = mtime(reader)?;
    }
    assert_eq!(one.delete(&key())?, 1);
    assert_eq!(other.load(&key())?, None);
    drop((one, other));
    let again = open(&folder)?.transcripts();
    again.append(&key(), &numbered(0..1))?;
    assert!(mtime(&again)? > last, "the time is kept through deletes and restarts");
    Ok(())
}

/// Appends entries that another process appends, too, and entries of its own.
#[test]
fn child() -> Result<()> {
    let Some((name, store)) = task() else { return Ok(()) };
    let transcripts = Store::open(store)?.transcripts();
    for n in 0..40 {
        let own = entry(&format!(r#"{{"uuid":"{name}-{n}","by":"{name}","n":{n}}}"#));
        transcripts.append(&key(), &[own, entry(&format!(r#"{{"uuid":"shared-{n}"}}"#))])?;
    }
    say("done");
    Ok(())
}

#[test]
fn processes_append_each_entry_once_and_keep_their_order() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let store = Store::open(&path)?;
    let mut others =
        ["a", "b", "c"].map(|name| Other::start(name, &path).expect("a process starts"));
    for other in &mut others {
        assert_eq!(other.hear().as_deref(), Some("done"));
    }
    let found = store.transcripts().load(&key())?.unwrap_or_default();
    assert_eq!(found.len(), 3 * 40 + 40);
    for name in ["a", "b", "c"] {
        let own = found.iter().map(Json::value).filter(|entry| entry["by"] == name);
        assert!(own.map(|entry| entry["n"].as_u64()).eq((0..40).map(Some)), "{name}");
    }
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_batch_of_100_megabytes_is_appended_and_a_larger_entry_is_refused() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let store = Store::options()
        .durability(talktree::Durability::Normal)
        .max_message_bytes(11 << 20)
        .open(path)?;
    let transcripts = store.transcripts();
    let long = |n: u32, bytes: usize| {
        entry(&format!(r#"{{"uuid":"{n}","text":"{}"}}"#, "x".repeat(bytes)))
    };
    let batch: Vec<Json> = (0..10).map(|n| long(n, 10 << 20)).collect();
    assert_eq!(transcripts.append(&key(), &batch)?.added, 10);
    assert_eq!(transcripts.append(&key(), &batch[8..])?.known, 2);
    let refused = transcripts.append(&key(), &[entry("{}"), long(11, 11 << 20)]);
    assert!(
        matches!(refused, Err(Error::TooLarge { what: "a transcript entry", .. })),
        "{refused:?}"
    );
    let found = transcripts.load(&key())?.unwrap_or_default();
    assert_eq!(found.len(), 10);
    assert_eq!(found.last().map(Json::as_str), batch.last().map(Json::as_str));
    Ok(())
}

#[test]
fn a_store_that_is_read_only_refuses_appends() -> Result<()> {
    let folder = folder()?;
    open(&folder)?.transcripts().append(&key(), &numbered(0..1))?;
    let transcripts = SessionStore::new(&Store::open_read_only(folder.path().join("talk.db"))?);
    assert_eq!(transcripts.log().load(&key())?, Some(numbered(0..1)));
    for refused in [
        transcripts.append(&key(), &numbered(1..2)).map(drop),
        transcripts.log().delete(&key()).map(drop),
        transcripts.rename("project", "session", "title"),
    ] {
        assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
    }
    Ok(())
}

#[test]
fn a_copy_is_the_data_of_the_owner_of_its_source() -> Result<()> {
    let transcripts = SessionStore::new(&Store::open_in_memory()?);
    let said = entry(r#"{"type":"user","uuid":"1","message":{"content":"hello"}}"#);
    transcripts.owned_by("ann").append(&key(), &[said])?;
    // By a handle without an owner, and by one of another owner.
    transcripts.fork("project", "session", &TranscriptFork::default())?;
    transcripts.owned_by("bob").fork("project", "session", &TranscriptFork::default())?;
    assert_eq!(transcripts.log().delete_of_owner("bob")?, 0);
    assert_eq!(transcripts.log().delete_of_owner("ann")?, 3);
    assert_eq!(transcripts.log().of_project("project")?, []);
    Ok(())
}

#[test]
fn transcripts_are_counted_backed_up_and_no_part_of_sessions() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("session")?;
    chat.append(talktree::Message::user("hello"))?;
    let before = content_hash(&scratch.store)?;
    let transcripts = scratch.store.transcripts();
    transcripts.append(&key(), &numbered(0..3))?;
    transcripts.append(&key().subpath("subagents/agent-1"), &numbered(0..2))?;
    let stats = scratch.store.stats()?;
    assert_eq!((stats.transcripts, stats.transcript_entries, stats.messages), (2, 5, 1));
    assert_eq!((content_hash(&scratch.store)?, scratch.store.sessions()?.len()), (before, 1));

    if is_on_server() {
        return Ok(()); // which copies no files
    }
    let copy = scratch.folder.path().join("copy.db");
    scratch.store.backup(&copy, |_| {})?;
    assert_eq!(Store::open(&copy)?.transcripts().load(&key())?, Some(numbered(0..3)));
    Ok(())
}

#[test]
fn damage_is_named() -> Result<()> {
    for (sql, kinds) in [
        ("UPDATE transcript_entry SET entry = '{\"uuid\":' WHERE uuid = '1'", "broken-entry"),
        ("UPDATE transcript_entry SET entry = '[]' WHERE uuid = '1'", "broken-entry"),
        ("UPDATE transcript_entry SET uuid = '9' WHERE uuid = '1'", "broken-entry"),
        ("UPDATE transcript SET summary = '{'", "broken-summary"),
        ("UPDATE transcript SET next = 2", "number-in-use"),
        ("DELETE FROM transcript", "stray-entry"),
        ("UPDATE transcript_entry SET address = address - 1", "stray-entry"),
    ] {
        let scratch = Scratch::new()?;
        let transcripts = scratch.store.transcripts();
        transcripts.append(&key(), &numbered(0..3))?;
        Tables::of(&scratch.folder.path().join("talk.db")).run(sql);
        let damages = scratch.store.verify(|_| {})?.damages;
        assert!(damages.iter().any(|damage| damage.kind == kinds), "{sql}: {damages:?}");
        if sql.contains("'{\"uuid\":'") {
            let found = transcripts.load(&key());
            assert!(matches!(found, Err(Error::Corrupt { .. })), "{found:?}");
        }
    }
    Ok(())
}

/// Returns the files below a folder with their texts, sorted.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for file in std::fs::read_dir(next).unwrap() {
            let path = file.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                    found.push((name, std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_session_is_read_from_its_files_and_written_back() -> Result<()> {
    let folder = folder()?;
    let project = folder.path().join("from/-home-ann");
    let given = [
        ("s.jsonl", "{\"uuid\":\"1\",\"t\":\"\\ud83d\"}\n{\"type\":\"tag\"}\n"),
        ("s/subagents/agent-1.jsonl", "{\"uuid\":\"1\"}\n"),
        ("s/subagents/agent-1.meta.json", "{\"agentType\":\"Explore\"}\n"),
        ("s/subagents/workflows/run/agent-2.jsonl", "{\"uuid\":\"2\"}\n"),
    ];
    for (name, text) in given {
        write(&project.join(name), text);
    }
    write(&project.join("other.jsonl"), "{}\n");
    write(&project.join("s/subagents/notes.txt"), "no transcript");

    let transcripts = SessionStore::new(&Store::open_in_memory()?);
    let read = transcripts.import_session(&project, "s")?;
    assert_eq!((read.entries, read.known, read.files.len()), (5, 0, 4));
    let mut agents = transcripts.subagents("-home-ann", "s")?;
    agents.sort();
    assert_eq!(agents, ["1", "2"]);

    let to = folder.path().join("to");
    let written = transcripts.export_session("-home-ann", "s", &to)?;
    assert_eq!((written.entries, written.refused.len()), (5, 0));
    let expected: Vec<(String, String)> =
        given.map(|(name, text)| (format!("-home-ann/{name}"), text.to_owned())).into();
    assert_eq!(files(&to), expected);
    let refused = transcripts.export_session("-home-ann", "s", &to);
    assert!(matches!(refused, Err(Error::Io { .. })), "files are not overwritten: {refused:?}");
    // Those without a uuid come again.
    let again = transcripts.import_session(&project, "s")?;
    assert_eq!((again.entries, again.known), (2, 3));
    Ok(())
}

#[test]
fn lines_that_are_no_entries_are_skipped_and_reported() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("p/s.jsonl");
    let mut text = b"\n{\"uuid\":\"1\"}\n{\"uuid\":\n[1]\n\"\xff\"\n".to_vec();
    text.extend(b"{\"uuid\":\"2\"}"); // without a line end, as a crash leaves it
    write(&path, text);
    let transcripts = SessionStore::new(&Store::open_in_memory()?);
    let read = transcripts.import_session(folder.path().join("p"), "s")?;
    let unread: Vec<u64> = read.unread.iter().map(|line| line.line).collect();
    assert_eq!((read.entries, unread), (2, vec![3, 4, 5]));
    assert_eq!(read.unread[1].why, "not a JSON object");
    // Many lines come in several appends.
    let many: String = (0..1_201).map(|n| format!("{{\"uuid\":\"{n}\"}}\n")).collect();
    write(&folder.path().join("p/many.jsonl"), many);
    let read = transcripts.import_session(folder.path().join("p"), "many")?;
    assert_eq!(read.entries, 1_201);
    let found = transcripts.log().load(&TranscriptKey::new("p", "many"))?.unwrap_or_default();
    assert_eq!(found[1_200].as_str(), r#"{"uuid":"1200"}"#);
    Ok(())
}

#[test]
fn entries_are_written_on_one_line_each() -> Result<()> {
    let folder = folder()?;
    let transcripts = SessionStore::new(&Store::open_in_memory()?);
    transcripts.append(&key(), &[entry("{\n \"a b\": [1,\n2]\r\n}")])?;
    transcripts.export_session("project", "session", folder.path())?;
    assert_eq!(files(folder.path())[0].1, "{  \"a b\": [1, 2]  }\n");
    Ok(())
}

#[test]
fn unsafe_names_are_refused() -> Result<()> {
    let folder = folder()?;
    let transcripts = SessionStore::new(&Store::open_in_memory()?);
    let unsafe_subpaths =
        ["../up", "/etc/x", "a/../../b", "C:\\x", "\\\\host\\x", "a/./b", "a\0", "a//b"];
    transcripts.append(&key(), &numbered(0..1))?;
    for subpath in unsafe_subpaths {
        transcripts.append(&key().subpath(subpath), &numbered(0..1))?;
    }
    let written = transcripts.export_session("project", "session", folder.path())?;
    assert_eq!((written.files.len(), written.refused.len()), (1, unsafe_subpaths.len()));
    assert_eq!(files(folder.path()).len(), 1);
    for (project, session) in [("..", "s"), ("p", ".."), ("a/b", "s"), ("p", "/etc/x"), ("", "s")] {
        transcripts.append(&TranscriptKey::new(project, session), &numbered(0..1))?;
        let refused = transcripts.export_session(project, session, folder.path());
        assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{project}/{session}");
    }
    let refused = transcripts.import_session(folder.path(), "../s");
    assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{refused:?}");
    let refused = transcripts.export_session("project", "unknown", folder.path());
    assert!(matches!(refused, Err(Error::UnknownSession { .. })), "{refused:?}");
    Ok(())
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_not_followed() -> Result<()> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder()?;
    let (projects, elsewhere) = (folder.path().join("projects"), folder.path().join("elsewhere"));
    std::fs::create_dir_all(projects.join("project/session")).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, projects.join("project/session/subagents")).unwrap();
    let transcripts = SessionStore::new(&Store::open_in_memory()?);
    transcripts.append(&key(), &numbered(0..1))?;
    transcripts.append(&key().subpath("subagents/agent-1"), &numbered(0..1))?;
    let refused = transcripts.export_session("project", "session", &projects);
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    assert!(files(&elsewhere).is_empty());
    let main = projects.join("project/session.jsonl");
    let mode = std::fs::metadata(&main).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Nor when they are read.
    write(&elsewhere.join("secret.jsonl"), "{}");
    std::fs::remove_file(projects.join("project/session/subagents")).unwrap();
    std::fs::create_dir(projects.join("project/session/subagents")).unwrap();
    symlink(elsewhere.join("secret.jsonl"), projects.join("project/session/subagents/a.jsonl"))
        .unwrap();
    let read = SessionStore::new(&Store::open_in_memory()?)
        .import_session(projects.join("project"), "session")?;
    assert_eq!(read.files, [main]);
    Ok(())
}

#[test]
fn a_file_of_an_open_store_is_not_read() -> Result<()> {
    let folder = folder()?;
    let project = folder.path().join("p");
    std::fs::create_dir(&project).unwrap();
    let store = Store::open(project.join("s.jsonl"))?;
    let refused = SessionStore::new(&store).import_session(&project, "s");
    assert!(
        matches!(&refused, Err(Error::Io { source, .. }) if source.to_string().contains("open store")),
        "{refused:?}"
    );
    Ok(())
}

#[test]
fn real_transcripts_come_back_and_are_read() -> Result<()> {
    let Some(data) = data::data("claude-code") else { return Ok(()) };
    let folder = folder()?;
    let transcripts = SessionStore::new(&open(&folder)?);
    let mut sessions = 0;
    for file in std::fs::read_dir(&data).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let session = path.file_stem().unwrap().to_string_lossy().into_owned();
        let TranscriptFiles { entries, unread, .. } =
            transcripts.import_session(&data, &session)?;
        assert!(entries > 0 && unread.is_empty(), "{session}: {unread:?}");
        let loaded = transcripts.log().load(&TranscriptKey::new("claude-code", &session))?.unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        assert!(lines.map(str::trim).eq(loaded.iter().map(Json::as_str)), "{session}");
        let info = transcripts.info("claude-code", &session)?.expect("it says something");
        let messages = transcripts.messages("claude-code", &session)?;
        assert!(!info.summary.is_empty() && !messages.is_empty(), "{session}");
        let copy = transcripts.fork("claude-code", &session, &TranscriptFork::default())?;
        let copied = transcripts.messages("claude-code", &copy)?;
        let said = |messages: &[talktree_claude::TranscriptMessage]| -> Vec<Json> {
            messages.iter().map(|message| message.message.clone()).collect()
        };
        assert_eq!(said(&copied), said(&messages), "{session}");
        sessions += 1;
    }
    assert!(sessions >= 4);
    Ok(())
}

#[test]
fn owners_with_transcripts_are_listed_among_the_others() -> Result<()> {
    let store = Store::open_in_memory()?;
    let entry = Json::parse(r#"{"type":"user"}"#)?;
    for (owner, session) in [("bob", "1"), ("bob", "2"), ("cid", "3"), ("Ann", "4"), ("éva", "5")]
    {
        let key = TranscriptKey::new("p", session);
        store.transcripts().owned_by(owner).append(&key, std::slice::from_ref(&entry))?;
    }
    store.transcripts().append(&TranscriptKey::new("p", "6"), &[entry])?;
    for owner in ["bob", "dan"] {
        let owner = Some(owner.to_owned());
        store.create_session(SessionDetails { owner, ..SessionDetails::default() })?;
    }
    let all = [("Ann", 0, 1), ("bob", 1, 2), ("cid", 0, 1), ("dan", 1, 0), ("éva", 0, 1)];
    // Pages of every size say the same.
    for size in 1..7 {
        let mut listed: Vec<OwnerInfo> = Vec::new();
        loop {
            let after = listed.last().map(|of| of.owner.clone());
            let page = store.owners(after.as_deref(), size)?;
            assert!(page.len() <= size);
            if page.is_empty() {
                break;
            }
            listed.extend(page);
        }
        let listed: Vec<_> =
            listed.iter().map(|of| (of.owner.as_str(), of.sessions, of.transcripts)).collect();
        assert_eq!(listed, all, "pages of {size}");
    }
    assert!(store.owners(None, 0)?.is_empty());
    Ok(())
}
