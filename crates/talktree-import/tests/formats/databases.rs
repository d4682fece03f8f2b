//! Databases of other programs: what is in their rows alone, and that they are read beside the program that writes them.

use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::json;
use talktree::{Error, Result, Store, Usage};
use talktree_import::{ImportOptions, ImportReport};

use crate::common::sources::{CURSOR, GOOSE, OPEN_WEBUI, OPENCODE, database};
use crate::data::data;

fn import(store: &Store, path: &Path) -> Result<ImportReport> {
    let report = talktree_import::import(store, path, &ImportOptions::default(), |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok(report)
}

fn texts(store: &Store, session: &str) -> Result<String> {
    let history = store.session(session)?.history()?;
    Ok(history.iter().map(|message| message.text()).collect::<Vec<_>>().join(" "))
}

/// Adds a message to opencode's database, with its id as its text.
fn say(conn: &Connection, session: &str, text: &str) {
    // Long, so that the import tells of its progress.
    let data =
        json!({"role": "user", "time": {"created": 1}, "system": "x".repeat(1_000)}).to_string();
    let part = json!({"type": "text", "text": text}).to_string();
    conn.execute("INSERT OR IGNORE INTO session VALUES (?1, NULL, 'T', '/w', '1', 1)", [session])
        .unwrap();
    conn.execute("INSERT INTO message VALUES (?1, ?2, 1, 1, ?3)", [text, session, &data]).unwrap();
    conn.execute("INSERT INTO part VALUES (?1, ?1, ?2, ?3)", [text, session, &part]).unwrap();
}

#[test]
fn a_program_may_write_its_database_while_it_is_read() -> Result<()> {
    for mode in ["DELETE", "WAL"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let mut writer = database(&path, OPENCODE);
        let set: String = writer
            .query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| row.get(0))
            .unwrap();
        assert_eq!(set.to_uppercase(), mode);
        writer.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        writer.busy_timeout(std::time::Duration::ZERO).unwrap();
        for n in 0..1_200 {
            say(&writer, "s", &format!("m{n:04}"));
            if n == 0 {
                writer.execute_batch("BEGIN").unwrap();
            }
        }
        writer.execute_batch("COMMIT").unwrap();

        // What is not committed is not there, and an open transaction stops nobody.
        let transaction = writer.transaction().unwrap();
        say(&transaction, "s", "never");
        let store = Store::open_in_memory()?;
        assert_eq!(import(&store, &path)?.added, 1_200, "{mode}");
        drop(transaction);

        // The program writes between two lines.
        let mut written = 0;
        let store = Store::open_in_memory()?;
        let report = talktree_import::import(&store, &path, &ImportOptions::default(), |_| {
            written += 1;
            say(&writer, "t", &format!("w{written}"));
        })?;
        assert!(report.added >= 1_200 && written > 0, "{mode}: {report:#?}");
        let again = import(&store, &path)?;
        assert_eq!(again.added + report.added, 1_200 + written, "{mode}: {again:#?}");
        assert!(again.first_fault().is_none(), "{mode}: {again:#?}");
    }
    Ok(())
}

#[test]
fn a_database_that_stays_locked_is_an_error_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let writer = database(&path, OPENCODE);
    say(&writer, "s", "a");
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let store = Store::open_in_memory().unwrap();
    let refused = import(&store, &path);
    assert!(
        matches!(&refused, Err(Error::Io { source, .. }) if source.to_string().contains("locked")),
        "{refused:?}"
    );
}

#[test]
fn what_is_not_finished_is_left_for_a_later_import() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let conn = database(&path, OPENCODE);
    let now = chrono::Utc::now().timestamp_millis();
    say(&conn, "s", "a");
    let answer = |data: serde_json::Value, time: i64| {
        conn.execute(
            "INSERT OR REPLACE INTO message VALUES ('b', 's', 2, ?1, ?2)",
            params![time, data.to_string()],
        )
        .unwrap();
        let part = json!({"type": "text", "text": "so far"}).to_string();
        conn.execute("INSERT OR REPLACE INTO part VALUES ('b', 'b', 's', ?1)", [part]).unwrap();
    };
    let store = Store::open_in_memory()?;
    answer(json!({"role": "assistant", "time": {"created": now}}), now);
    let report = import(&store, &path)?;
    assert_eq!((texts(&store, "s")?.as_str(), report.dropped), ("a", 1), "{report:#?}");
    assert!(report.first_fault().is_none(), "{report:#?}");
    // It was interrupted, or it is finished.
    for (data, time) in [
        (json!({"role": "assistant", "time": {"created": 2}}), 2),
        (json!({"role": "assistant", "time": {"created": now, "completed": now}}), now),
    ] {
        answer(data, time);
        let copy = Store::open_in_memory()?;
        import(&copy, &path)?;
        assert_eq!(texts(&copy, "s")?, "a so far");
    }
    import(&store, &path)?;
    assert_eq!(texts(&store, "s")?, "a so far");
    Ok(())
}

#[test]
fn subagents_are_sessions_below_their_parents() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let conn = database(&path, OPENCODE);
    say(&conn, "s", "a");
    say(&conn, "child", "b");
    conn.execute(
        "UPDATE session SET parent_id = 's', title = 'Child session - 2026' WHERE id = 'child'",
        [],
    )
    .unwrap();
    let store = Store::open_in_memory()?;
    import(&store, &path)?;
    let info = store.session("child")?.info()?.unwrap();
    assert_eq!((info.parent_session, info.name.as_deref()), (Some("s".into()), Some("b")));
    Ok(())
}

#[test]
fn the_ledger_of_goose_counts_for_its_answers() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let conn = database(&path, GOOSE);
    conn.execute_batch(
        "CREATE TABLE usage_ledger (session_id TEXT, created_timestamp INTEGER, model TEXT, input_tokens INTEGER, output_tokens INTEGER,
                                    cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL);
         INSERT INTO sessions VALUES ('g', 'G', '', '/w', '2026-03-05 08:40:00', NULL);
         INSERT INTO messages VALUES (1, NULL, 'g', 'user', '[{\"type\":\"text\",\"text\":\"a\"}]', 1772700000, NULL);
         INSERT INTO messages VALUES (2, NULL, 'g', 'assistant', '[{\"type\":\"text\",\"text\":\"b\"}]', 1772700001, NULL);
         INSERT INTO messages VALUES (3, NULL, 'g', 'assistant', '[{\"type\":\"text\",\"text\":\"c\"}]', 1772700009000, NULL);
         INSERT INTO usage_ledger VALUES ('g', 1772700002, 'm', 100, 20, 30, 10, 0.25), ('g', 1772700009, 'm', 7, 1, 0, 0, NULL),
                                         ('g', 1772700010, 'm', 5, 2, 0, 0, 0.5);",
    )
    .unwrap();
    let store = Store::open_in_memory()?;
    import(&store, &path)?;
    let history = store.session("g")?.history()?;
    let counted = |at: usize| Usage::of(&history[at]).unwrap();
    assert_eq!(
        (counted(1).input, counted(1).cache_read, counted(1).cost.unwrap().micros),
        (100, 30, 250_000)
    );
    assert_eq!(
        (counted(2).input, counted(2).output, counted(2).cost.unwrap().micros),
        (12, 3, 500_000)
    );
    assert_eq!(texts(&store, "g")?, "a b c");
    Ok(())
}

#[test]
fn rows_of_open_webui_count_more_than_the_chat_and_may_sum_it_up() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webui.db");
    let conn = database(&path, OPEN_WEBUI);
    let chat = json!({"history": {"currentId": "d", "messages": {
        "a": {"id": "a", "parentId": null, "role": "user", "content": "a", "timestamp": 1_771_200_001},
        "b": {"id": "b", "parentId": "a", "role": "assistant", "content": "old", "timestamp": 1_771_200_002},
        "c": {"id": "c", "parentId": "b", "role": "user", "content": "c", "timestamp": 1_771_200_003}}}});
    conn.execute("INSERT INTO chat VALUES ('w', 'u', 'T', ?1, 1, 1, NULL)", [chat.to_string()])
        .unwrap();
    conn.execute_batch(
        "CREATE TABLE chat_message (id TEXT, chat_id TEXT, parent_id TEXT, role TEXT, content JSON, created_at INTEGER, context_summary TEXT);
         INSERT INTO chat_message VALUES ('w-b', 'w', 'a', 'assistant', '\"new\"', 1773000002, 'short'),
                                         ('w-d', 'w', 'c', 'assistant', '\"d\"', 1773000004, NULL);",
    )
    .unwrap();
    let store = Store::open_in_memory()?;
    import(&store, &path)?;
    assert_eq!(texts(&store, "w")?, "short c d");
    let raw = store.session("w")?.raw_history()?;
    assert_eq!(raw[1].text(), "new");
    Ok(())
}

#[test]
fn bubbles_that_a_chat_of_cursor_no_longer_lists_are_left_out() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.vscdb");
    let conn = database(&path, CURSOR);
    let chat = |id: &str, parent: &str| {
        json!({"name": id, "createdAt": 1_772_900_000_000_i64, "subagentInfo": {"parentComposerId": parent},
            "fullConversationHeadersOnly": [{"bubbleId": "y"}, {"bubbleId": "x"}]})
    };
    let bubble = |text: &str, status: &str| {
        json!({"type": 2, "text": text, "thinking": {"text": "hm"}, "tokenCount": {"inputTokens": 9, "outputTokens": 2},
            "modelInfo": {"modelName": "m"}, "toolFormerData": {"name": "run", "rawArgs": "{}", "status": status}})
    };
    for (key, value) in [
        ("composerData:k", chat("k", "p")),
        ("bubbleId:k:x", bubble("second", "error")),
        ("bubbleId:k:y", bubble("first", "completed")),
        ("bubbleId:k:z", bubble("edited", "completed")),
    ] {
        conn.execute("INSERT INTO cursorDiskKV VALUES (?1, ?2)", [key, &value.to_string()])
            .unwrap();
    }
    conn.execute("INSERT INTO ItemTable VALUES ('cursorAuth/token', 'secret')", []).unwrap();
    let store = Store::open_in_memory()?;
    let report = import(&store, &path)?;
    assert_eq!((report.added, report.dropped), (2, 1), "{report:#?}");
    assert_eq!(texts(&store, "k")?, "first second");
    let info = store.session("k")?.info()?.unwrap();
    assert_eq!((info.parent_session, info.model.as_deref()), (Some("p".into()), Some("m")));
    let history = store.session("k")?.history()?;
    assert_eq!(Usage::of(&history[0]).unwrap().input, 9);
    assert_eq!(serde_json::to_value(&history[1].parts[2]).unwrap()["state"], "output-error");
    assert!(store.search("secret").run()?.hits.is_empty());
    Ok(())
}

#[test]
fn a_database_in_an_archive_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    say(&database(&path, OPENCODE), "s", "a");
    let file = std::fs::File::open(&path).unwrap();
    let store = Store::open_in_memory().unwrap();
    let options = ImportOptions::default();
    let refused =
        talktree_import::import_reader(&store, "a.zip/opencode.db", file, &options, |_| {});
    assert!(
        matches!(&refused, Err(Error::Import { why, .. }) if why.contains("SQLite")),
        "{refused:?}"
    );
}

/// Made by another reader of such files for its own tests.
#[test]
fn samples_of_others_are_read() -> Result<()> {
    for (sample, session, expected) in [
        (
            "opencode/opencode.sql",
            "registry-opencode",
            "inspect the sqlite fixture the sqlite rows are readable",
        ),
        (
            "goose/sessions/goose.sql",
            "20250724_2",
            "inspect the sqlite fixture the sqlite rows are readable",
        ),
        ("goose/sessions/20250724_1.jsonl", "20250724_1", "Say hello Hello from Goose!"),
        (
            "cursor/projects/registry-demo/agent-transcripts/registry-cursor.jsonl",
            "transcript/registry-cursor",
            "inspect the cursor transcript the transcript is readable",
        ),
    ] {
        let Some(mut path) = data(&format!("agents/deja-vu/registry/{sample}")) else {
            return Ok(());
        };
        let folder = tempfile::tempdir().unwrap();
        if sample.ends_with(".sql") {
            let schema = std::fs::read_to_string(&path).unwrap();
            path = folder.path().join("sample.db");
            database(&path, &schema);
        }
        let store = Store::open_in_memory()?;
        let report = import(&store, &path)?;
        assert!(report.first_fault().is_none(), "{report:#?}");
        assert_eq!(texts(&store, session)?, expected, "{report:#?}");
    }
    for (file, session) in [
        ("librechat-export.json", "af1ea676-f525-444f-a9ed-7c8dbf062733"),
        ("librechat-linear.json", "4c9e1402-f746-479d-8a18-2dfab1bf750f"),
        ("librechat-opts-nonr-branches.json", "27b593be-9500-479c-94cb-050cab8f5033"),
        ("librechat-tree.json", "4a86c40e-e627-4454-b158-889680e23ad3"),
    ] {
        let Some(path) = data(&format!("librechat/{file}")) else { return Ok(()) };
        let store = Store::open_in_memory()?;
        let report = import(&store, &path)?;
        assert!(report.first_fault().is_none() && report.kept > 1, "{report:#?}");
        assert_eq!(report.sessions[0], session);
    }
    Ok(())
}
