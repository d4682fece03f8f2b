//! Names of files that SQLite would take for its own, or could not use.
//!
//! A backup that was named like the journal of the open store was deleted by the next write. A store whose name left no room
//! for what SQLite appends failed without saying why, and left an empty file.

use crate::common;
use talktree::{Error, Message, Result, Store};

#[test]
fn a_backup_is_never_named_as_a_file_beside_an_open_store() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = Store::open(&path)?;
    let other = Store::open_in_memory()?;
    for suffix in ["-journal", "-wal", "-shm"] {
        let name = folder.path().join(format!("bot.db{suffix}"));
        assert!(Store::is_open_file(&name), "{suffix}");
        for store in [&store, &other] {
            let is_there = name.exists();
            let refused = store.backup(&name, |_| {});
            assert!(
                matches!(refused, Err(Error::InvalidValue { .. } | Error::Io { .. })),
                "{suffix}: {refused:?}"
            );
            assert_eq!(name.exists(), is_there);
        }
    }
    assert!(!Store::is_open_file(folder.path().join("copy.db-journal")));
    drop(store);
    // SQLite would delete it when the store is opened again.
    let refused = other.backup(folder.path().join("bot.db-journal"), |_| {});
    assert!(matches!(refused, Err(Error::InvalidValue { .. })));
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_name_without_room_for_a_suffix_is_refused() -> Result<()> {
    let folder = common::folder()?;
    for bytes in [247, 248, 255] {
        let path = folder.path().join("n".repeat(bytes));
        let opened = Store::open(&path).and_then(|store| {
            store.session("s")?.append(Message::user("hello"))?;
            Ok(())
        });
        match opened {
            Ok(()) => assert_eq!(bytes, 247),
            Err(error) => {
                assert!(bytes > 247, "{error}");
                assert!(error.to_string().contains("over the limit of 247"), "{error}");
                assert!(!path.exists());
            }
        }
    }
    Ok(())
}

#[test]
fn a_path_in_an_error_is_one_line() {
    for name in ["a\nb", "a\u{2028}b", "a\u{202e}b"] {
        let error = Error::NotAStore { path: name.into(), why: "it is empty".to_owned() };
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        assert!(!error.to_string().contains(name), "{error}");
    }
    let error = Error::NotAStore { path: "a b.db".into(), why: "it is empty".to_owned() };
    assert_eq!(error.to_string(), "a b.db is not a talktree store: it is empty");
}
