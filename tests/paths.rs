//! The path of a store: a name is a name, and a store stays the file it was opened as.
//!
//! The path was kept as it was given and opened again for each new connection. After a change of the current folder, a
//! rename or a rotation, reads came from another file. SQLite read some names as URIs or as a database in memory, so the
//! store was lost with the process.

#![cfg(unix)]

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use talktree::{Error, Message, Result, Store};

/// Set in the child process of a test, which may change its current folder.
const CHILD: &str = "TALKTREE_TEST_FOLDER";

/// Opens each connection for itself, as many threads would.
fn open(path: impl AsRef<Path>) -> Result<Store> {
    Store::options().idle_readers(0).open(path)
}

fn count(path: &Path) -> Result<u64> {
    Store::open_read_only(path)?.session("s")?.path_length()
}

fn say(store: &Store, text: &str) -> Result<()> {
    store.session("s")?.append(Message::user(text)).map(|_| ())
}

#[test]
fn a_name_is_never_a_uri() -> Result<()> {
    let folder = common::folder()?;
    for name in ["file:x.db", "file:y.db?mode=memory", "a?b#c%20.db", "-wal", "x.db-wal", "好.db"]
    {
        let path = folder.path().join(name);
        say(&open(&path)?, "kept")?;
        assert!(path.is_file(), "{name}");
        assert_eq!(count(&path)?, 1, "{name}");
    }
    Ok(())
}

#[test]
fn the_name_of_a_database_in_memory_is_refused() {
    let answer = Store::open(":memory:").map(drop);
    let text = answer.as_ref().unwrap_err().to_string();
    assert!(
        matches!(answer, Err(Error::NotAStore { .. })) && text.contains("open_in_memory"),
        "{text}"
    );
    assert!(!Path::new(":memory:").exists());
}

/// Runs in a process of its own, because the current folder is that of the whole process.
#[test]
fn a_relative_name_survives_a_change_of_the_current_folder() -> Result<()> {
    if let Ok(folder) = std::env::var(CHILD) {
        std::env::set_current_dir(&folder).unwrap();
        let store = open("file:bot.db?mode=memory")?;
        say(&store, "one")?;
        std::env::set_current_dir(Path::new(&folder).join("elsewhere")).unwrap();
        say(&store, "two")?;
        assert_eq!(store.session("s")?.path_length()?, 2);
        return Ok(());
    }
    let folder = common::folder()?;
    std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_relative_name_survives_a_change_of_the_current_folder"])
        .env(CHILD, folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(count(&folder.path().join("file:bot.db?mode=memory"))?, 2);
    assert_eq!(std::fs::read_dir(folder.path().join("elsewhere")).unwrap().count(), 0);
    Ok(())
}

#[test]
fn a_store_stays_at_the_target_its_link_had_when_it_was_opened() -> Result<()> {
    let folder = common::folder()?;
    let (one, two, link) =
        (folder.path().join("one.db"), folder.path().join("two.db"), folder.path().join("link.db"));
    say(&open(&two)?, "of another store")?;
    say(&open(&one)?, "first")?;
    symlink(&one, &link).unwrap();
    let store = open(&link)?;
    say(&store, "second")?;
    std::fs::remove_file(&link).unwrap();
    symlink(&two, &link).unwrap();
    say(&store, "third")?;
    assert_eq!(store.session("s")?.path_length()?, 3);
    assert_eq!((count(&one)?, count(&two)?), (3, 1));
    Ok(())
}

#[test]
fn a_file_that_was_replaced_is_not_read_as_the_store() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = open(&path)?;
    say(&store, "first")?;
    std::fs::rename(&path, folder.path().join("bot.db.1")).unwrap();
    let gone = store.session("s")?.history().map(|_| ());
    assert!(matches!(gone, Err(Error::StoreMoved { .. })), "{gone:?}");
    say(&open(&path)?, "of another store")?;
    let replaced = store.session("s")?.history().map(|_| ());
    assert!(matches!(replaced, Err(Error::StoreMoved { .. })), "{replaced:?}");
    Ok(())
}

#[test]
fn opening_restores_the_journal_mode_that_another_program_changed() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    say(&open(&path)?, "first")?;
    let mode = |pragma: &str| -> String {
        Connection::open(&path).unwrap().query_row(pragma, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(mode("PRAGMA journal_mode = DELETE"), "delete");
    say(&open(&path)?, "second")?;
    assert_eq!(mode("PRAGMA journal_mode"), "wal");
    Ok(())
}
