//! Importing the files of an open store.
//!
//! To open and close such a file dropped the locks of this process. The next process that closed the store then removed
//! the log under it, and acknowledged messages were gone, while `verify` found nothing.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

use talktree::{Error, Message, Result, Store};
use talktree_import::{ImportOptions, import};

const CHILD: &str = "TALKTREE_TEST_STORE";

/// Opens the store, reads it and closes it again, in another process.
#[test]
fn child() -> Result<()> {
    let Ok(path) = std::env::var(CHILD) else { return Ok(()) };
    Store::open(path)?.session("s")?.path_length().map(drop)
}

fn visit(store: &Path) {
    let program = std::env::current_exe().unwrap();
    let output =
        Command::new(program).args(["--exact", "own_file::child"]).env(CHILD, store).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn the_files_of_an_open_store_are_refused_before_they_are_opened() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let names: [(&str, PathBuf); 6] = [
        ("the database", at("bot.db")),
        ("its log", at("bot.db-wal")),
        ("its lock file", at("bot.db-shm")),
        ("a symbolic link", at("soft.jsonl")),
        ("a hard link", at("hard.jsonl")),
        ("a hard link of the lock file", at("shm.jsonl")),
    ];
    let store = Store::open(at("bot.db"))?;
    store.session("s")?.append(Message::user("first"))?;
    std::os::unix::fs::symlink(at("bot.db"), at("soft.jsonl")).unwrap();
    std::fs::hard_link(at("bot.db"), at("hard.jsonl")).unwrap();
    std::fs::hard_link(at("bot.db-shm"), at("shm.jsonl")).unwrap();
    let other = Store::open(at("other.db"))?; // importing into another store does the same harm
    for (n, (what, path)) in names.iter().enumerate() {
        for target in [&store, &other] {
            let refused = import(target, path, &ImportOptions::default(), |_| {});
            assert!(
                matches!(&refused, Err(Error::Import { why, .. }) if why.contains("open")),
                "{what}: {refused:?}"
            );
        }
        // With a second name the store cannot be opened again.
        let _ = std::fs::remove_file(at("hard.jsonl"));
        visit(&at("bot.db"));
        store.session("s")?.append(Message::user("more"))?;
        assert!(at("bot.db-wal").exists(), "{what}: the log was removed under the store");
        assert_eq!(Store::open(at("bot.db"))?.session("s")?.path_length()?, n as u64 + 2, "{what}");
        std::fs::hard_link(at("bot.db"), at("hard.jsonl")).unwrap();
    }
    drop((store, other));
    let refused =
        import(&Store::open_in_memory()?, at("bot.db"), &ImportOptions::default(), |_| {});
    assert!(
        matches!(&refused, Err(Error::Import { why, .. }) if why.contains("format")),
        "{refused:?}"
    );
    Ok(())
}
