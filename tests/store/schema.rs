//! The file as others see it: the stock sqlite3 shell, the header, the file mode.

#![allow(clippy::print_stdout, reason = "a test says why it does nothing")]

use std::path::Path;
use std::process::Command;

use crate::common::{Scratch, letters};
use rusqlite::Connection;
use talktree::{Error, Message, Result, Store};

fn database(error: rusqlite::Error) -> talktree::Error {
    talktree::Error::Storage { source: Box::new(error) }
}

/// Asks the stock shell, or Python's module if there is none; `None` if neither is there.
///
/// The index needs SQLite 3.43; an older one reads the rest.
fn stock_sqlite(file: &Path, sql: &str) -> Option<String> {
    let python = "import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row, sep='|')";
    let shell = Command::new("sqlite3").arg(file).arg(sql).output();
    let python = || Command::new("python3").args(["-c", python]).arg(file).arg(sql).output();
    let output = shell.or_else(|_| python()).ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{sql}: {errors}");
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn the_stock_shell_reads_the_tree_and_searches_the_index() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("my session")?;
    chat.append(Message::user("Which colour shall the door have?").with_id("a"))?;
    chat.append(Message::assistant("It shall be red.").with_id("b"))?;
    chat.append_to(&"a".into(), Message::assistant("红色").with_id("c"))?;
    scratch.store.rebuild_search()?;
    let file = scratch.folder.path().join("talk.db");
    let ask = |sql: &str| stock_sqlite(&file, sql);
    let Some(tree) = ask("SELECT id, parent, role FROM message_tree ORDER BY address") else {
        println!("neither sqlite3 nor python3 is there");
        return Ok(());
    };
    assert_eq!(
        tree,
        "a||user\nb|a|assistant\nc|a|assistant"
            .replace("||", if tree.contains("None") { "|None|" } else { "||" })
    );
    let version = ask("SELECT sqlite_version()").unwrap_or_default();
    let is_new = version.split('.').nth(1).and_then(|minor| minor.parse().ok()) >= Some(43);
    let matching = |query: &str| {
        ask(&format!(
            "SELECT id FROM search JOIN message ON address = search.rowid
              WHERE search MATCH '{query}' ORDER BY rank"
        ))
    };
    if is_new {
        assert_eq!(matching("door").as_deref(), Some("a"));
        assert_eq!(matching("\"红 色\"").as_deref(), Some("c"));
        assert_eq!(matching("shall AND labels: rassistant").as_deref(), Some("b"));
    }
    for table in [
        "session",
        "message",
        "token_counter",
        "compaction",
        "label",
        "head_log",
        "imported",
        "setting",
        "context_block",
        "context_entry",
        "context_version",
        "frozen_prompt",
        "elision",
        "transcript",
        "transcript_entry",
        "message_tree",
    ] {
        assert!(ask(&format!("SELECT count(*) FROM {table}")).is_some());
    }
    assert_eq!(ask("PRAGMA integrity_check").as_deref(), Some("ok"));
    Ok(())
}

#[test]
fn the_header_names_the_format_and_its_version() -> Result<()> {
    let scratch = Scratch::new()?;
    scratch.store.session("s")?.append_all(letters("a b"))?;
    let conn = Connection::open(scratch.folder.path().join("talk.db")).map_err(database)?;
    let pragma = |name: &str| -> Result<i64> {
        conn.pragma_query_value(None, name, |row| row.get(0)).map_err(database)
    };
    assert_eq!((pragma("application_id")?, pragma("user_version")?), (0x7461_6c6b, 7));
    let mode: String =
        conn.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(database)?;
    assert_eq!(mode, "wal");
    Ok(())
}

#[test]
fn the_tables_are_strict_and_as_the_document_of_the_format_has_them() -> Result<()> {
    let scratch = Scratch::new()?;
    let objects = |conn: &Connection| -> Result<Vec<String>> {
        let mut statement = conn
            .prepare("SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
            .map_err(database)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(database)?;
        rows.collect::<rusqlite::Result<_>>().map_err(database)
    };
    let stored = Connection::open(scratch.folder.path().join("talk.db")).map_err(database)?;
    let fresh = Connection::open_in_memory().map_err(database)?;
    fresh.execute_batch(include_str!("../../schema.sql")).map_err(database)?;
    assert_eq!(objects(&stored)?, objects(&fresh)?);
    let loose: i64 = stored
        .query_row(
            "SELECT count(*) FROM pragma_table_list
              WHERE type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%'",
            [],
            |row| row.get(0),
        )
        .map_err(database)?;
    assert_eq!(loose, 0);
    Ok(())
}

#[cfg(unix)]
#[test]
fn new_files_are_readable_by_their_owner_alone() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new()?;
    scratch.store.session("s")?.append_all(letters("a b"))?;
    let copy = scratch.folder.path().join("copy.db");
    scratch.store.backup(&copy, |_| {})?;
    for name in ["talk.db", "talk.db-wal", "talk.db-shm", "copy.db"] {
        let path = scratch.folder.path().join(name);
        let mode = std::fs::metadata(&path)
            .map_err(|source| talktree::Error::Io { path, source })?
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    Ok(())
}

#[test]
fn a_backup_of_a_live_store_is_the_store_at_one_moment() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    chat.append_all((0..3_000).map(|n| Message::user(format!("message {n}"))))?;
    chat.add_compaction("s", &chat.raw_history()?[5].id, &chat.raw_history()?[500].id)?;
    let copy = scratch.folder.path().join("copy.db");
    let before = chat.history()?;
    let mut is_written = false;
    scratch.store.backup(&copy, |_| {
        if !is_written {
            is_written = chat.append(Message::user("meanwhile")).is_ok();
        }
    })?;
    assert!(is_written);
    assert!(scratch.store.backup(&copy, |_| {}).is_err(), "a file that is there is left alone");
    assert_eq!(Store::open(&copy)?.session("s")?.history()?, before);
    Ok(())
}

#[test]
fn a_backup_has_its_name_only_when_it_is_whole() -> Result<()> {
    let scratch = Scratch::new()?;
    scratch.store.session("s")?.append(Message::user("x".repeat(2 << 20)))?;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let mut steps = 0;
    scratch.store.backup(&copy, |progress| {
        steps += u64::from(progress.done < progress.total);
        assert!(!copy.exists(), "what a crash would leave here is no store");
    })?;
    assert!(steps > 0);
    let mut meanwhile = Ok(());
    let late = folder.path().join("late.db");
    let refused = scratch.store.backup(&late, |_| meanwhile = std::fs::write(&late, "mine"));
    assert!(refused.is_err() && meanwhile.is_ok());
    assert_eq!(std::fs::read(&late).unwrap(), b"mine");
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["copy.db", "late.db"]);
    Ok(())
}

#[test]
fn a_store_that_is_closed_is_one_file() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("talk.db"))?;
    let chat = store.session("s")?;
    chat.append(Message::user("hello"))?;
    assert_eq!(chat.history()?.len(), 1);
    drop((store, chat));
    let files: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["talk.db"]);
    Ok(())
}

#[test]
fn a_store_of_an_older_version_is_refused() -> Result<()> {
    let scratch = Scratch::new()?;
    let file = scratch.folder.path().join("talk.db");
    drop(scratch.store);
    let old = Connection::open(&file).map_err(database)?;
    old.pragma_update(None, "user_version", 6).map_err(database)?;
    drop(old);
    for refused in [Store::open(&file), Store::open_read_only(&file)] {
        let refused = refused.map(drop);
        assert!(matches!(refused, Err(Error::OlderStore { found: 6, current: 7 })), "{refused:?}");
    }
    Ok(())
}
