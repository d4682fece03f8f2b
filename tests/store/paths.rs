//! The path of a store: a name is a name, and a store stays the file it was opened as.
//!
//! The path was kept as it was given and opened again for each new connection. After a change of the current folder, a
//! rename or a rotation, reads came from another file. SQLite read some names as URIs or as a database in memory, so the
//! store was lost with the process.

#![cfg(unix)]

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common;
use crate::common::process::test_name;
use rusqlite::Connection;
use talktree::{Durability, Error, Message, Result, Store};

/// Set in the child process of a test, which may change its current folder.
const CHILD: &str = "TALKTREE_TEST_FOLDER";

/// Opens each connection for itself, as many threads would.
fn open(path: impl AsRef<Path>) -> Result<Store> {
    Store::options().idle_readers(0).open(path)
}

fn count(path: &Path) -> Result<u64> {
    Store::open_read_only(path)?.session("s")?.path_length()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn say(store: &Store, text: &str) -> Result<()> {
    store.session("s")?.append(Message::user(text)).map(|_| ())
}

#[test]
fn a_name_is_never_a_uri() -> Result<()> {
    let folder = common::folder()?;
    for name in
        ["file:x.db", "file:y.db?mode=memory", "a?b#c%20.db", "-wal.db", "x.db-wal2", "好.db"]
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
        matches!(answer, Err(Error::NotAStore { .. }))
            && text.contains("a store in memory has no path"),
        "{text}"
    );
    assert!(!Path::new(":memory:").exists());
}

/// Runs a test again in a process of its own, because the current folder is that of the whole process.
#[track_caller]
fn again(test: &str, folder: &Path) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test_name(test)])
        .env(CHILD, folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

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
    again("a_relative_name_survives_a_change_of_the_current_folder", folder.path());
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

/// Does something to the file at a path.
type Strike = fn(&Path) -> std::io::Result<()>;

/// What can happen to the file of a store while it is open.
const ATTACKS: [(&str, Strike); 7] = [
    ("unlinked", |path| std::fs::remove_file(path)),
    ("in a folder with another name", |path| {
        let folder = path.parent().unwrap();
        std::fs::rename(folder, folder.with_extension("old"))
    }),
    // As a program does that keeps old logs.
    ("rotated", |path| {
        for end in ["db", "db-wal", "db-shm"] {
            let file = path.with_extension(end);
            std::fs::rename(&file, path.with_extension(format!("{end}.old")))?;
        }
        let other = open(path).map_err(std::io::Error::other)?;
        say(&other, "of another store").map_err(std::io::Error::other)
    }),
    ("renamed", |path| std::fs::rename(path, path.with_extension("old"))),
    ("replaced", |path| {
        let other = path.with_extension("other");
        std::fs::copy(path, &other)?;
        std::fs::rename(other, path)
    }),
    // Others would write to a new log, and this process to one that nobody can reach.
    ("without its log", |path| std::fs::remove_file(path.with_extension("db-wal"))),
    // Others would lock each other out by a new lock file, and not this process.
    ("without its lock file", |path| std::fs::remove_file(path.with_extension("db-shm"))),
];

/// Writes were acknowledged into files that nobody could reach.
#[test]
fn a_write_to_a_file_that_is_gone_is_refused() -> Result<()> {
    for durability in [Durability::Full, Durability::Normal] {
        for (attack, strike) in ATTACKS {
            let folder = common::folder()?;
            let path = folder.path().join("bot.db");
            let store = Store::options().durability(durability).open(&path)?;
            say(&store, "first")?;
            assert_eq!(store.session("s")?.path_length()?, 1); // leaves an idle reader
            strike(&path).unwrap();
            for _ in 0..2 {
                let answer = say(&store, "second");
                assert!(matches!(answer, Err(Error::StoreMoved { .. })), "{attack}: {answer:?}");
            }
            let indexed = store.rebuild_search();
            assert!(matches!(indexed, Err(Error::StoreMoved { .. })), "{attack}: {indexed:?}");
            if attack != "without its log" {
                let read = store.session("s")?.path_length();
                assert!(matches!(read, Err(Error::StoreMoved { .. })), "{attack}: {read:?}");
            }
            drop(store);
            if attack == "renamed" {
                // The log moves with its database.
                std::fs::rename(path.with_extension("db-wal"), path.with_extension("old-wal"))
                    .unwrap();
                assert_eq!(count(&path.with_extension("old"))?, 1);
            }
        }
    }
    Ok(())
}

/// The log was measured beside the link, where there is none, so it grew without limit.
#[test]
fn the_log_stays_short_through_a_symbolic_link() -> Result<()> {
    const MIB: u64 = 1 << 20;
    let folder = common::folder()?;
    let (path, link) = (folder.path().join("bot.db"), folder.path().join("link.db"));
    say(&open(&path)?, "first")?;
    symlink(&path, &link).unwrap();
    let store = Store::options().durability(Durability::Normal).open(&link)?;
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let longest = std::thread::scope(|threads| -> Result<u64> {
        // One connection always reads, so SQLite by itself never restarts the log.
        for _ in 0..4 {
            threads.spawn(|| {
                let conn = Connection::open(&path).unwrap();
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    conn.execute_batch("BEGIN; SELECT count(*) FROM session").unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    conn.execute_batch("COMMIT").unwrap();
                }
            });
        }
        let mut longest = 0;
        let text = "x".repeat(1 << 20);
        for _ in 0..160 {
            let message = Message::user("").with_metadata(serde_json::json!(text));
            let written = store.session("s").and_then(|chat| chat.append(message));
            let log =
                std::fs::metadata(folder.path().join("bot.db-wal")).map_or(0, |log| log.len());
            longest = longest.max(log);
            if written.is_err() {
                is_over.store(true, std::sync::atomic::Ordering::Relaxed);
                written?;
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(longest)
    })?;
    // Without the limit it grows to two thirds of what is written.
    assert!(longest < 32 * MIB, "{} MiB", longest / MIB);
    Ok(())
}

/// Each name had a log of its own: of two programs that wrote by two names, one lost what it had acknowledged.
#[test]
fn a_file_with_two_names_is_refused_by_both() -> Result<()> {
    let folder = common::folder()?;
    let (one, two) = (folder.path().join("one.db"), folder.path().join("two.db"));
    let store = open(&one)?;
    say(&store, "first")?;
    std::fs::hard_link(&one, &two).unwrap();
    for (name, other) in [(&one, "two.db"), (&two, "one.db")] {
        for refused in [open(name).map(drop), Store::open_read_only(name).map(drop)] {
            let text = refused.as_ref().unwrap_err().to_string();
            assert!(matches!(refused, Err(Error::HardLinked { .. })), "{text}");
            assert!(text.contains(other) && text.contains("open a copy"), "{text}");
        }
        assert!(!name.with_extension("db-journal").exists());
    }
    assert!(!two.with_extension("db-wal").exists());
    // The store that was open before goes on: nobody else can open the file.
    say(&store, "second")?;
    assert_eq!(store.session("s")?.path_length()?, 2);
    store.verify(|_| {})?;

    std::fs::remove_file(&two).unwrap();
    assert_eq!(count(&one)?, 2);
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::hard_link(&one, elsewhere.join("bot.db")).unwrap();
    let text = open(&one).unwrap_err().to_string();
    assert!(text.contains("in another folder"), "{text}");
    Ok(())
}

/// Set in the child process of a test in which a file or a folder is mounted at a second place.
const MOUNTED: &str = "TALKTREE_TEST_MOUNTED";

/// Runs a test again, in a process that has `from` mounted at `to`, and that alone.
fn again_with_mount(test: &str, from: &Path, to: &Path) {
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c"])
        .arg("mount --bind \"$1\" \"$2\" || exit 77; shift 2; exec \"$@\"")
        .arg("sh")
        .args([from, to, &std::env::current_exe().unwrap()])
        .args(["--exact", &test_name(test), "--nocapture"])
        .env(MOUNTED, to)
        .output();
    let Ok(output) = output else { return skip(test, "there is no `unshare`") };
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    match output.status.code() {
        Some(0) => assert!(text.contains("1 passed"), "{text}"),
        Some(101) => panic!("{text}"),
        _ => skip(test, &text),
    }
}

fn skip(test: &str, why: &str) {
    // Not by `eprintln`, which a test that passes does not show.
    let mut out = std::io::stderr();
    writeln!(out, "{test} is skipped: nothing can be mounted here: {}", why.trim_end()).unwrap();
}

/// A file that was mounted into a container had a log on either side: messages were lost, and the file was damaged.
#[test]
fn a_file_that_is_mounted_by_itself_is_refused() -> Result<()> {
    const TEST: &str = "a_file_that_is_mounted_by_itself_is_refused";
    if let Some(mounted) = std::env::var_os(MOUNTED) {
        let mounted = Path::new(&mounted);
        let link = mounted.with_file_name("link.db");
        symlink(mounted, &link).unwrap();
        for name in [mounted, &link] {
            for refused in [open(name).map(drop), Store::open_read_only(name).map(drop)] {
                let text = refused.as_ref().unwrap_err().to_string();
                assert!(matches!(refused, Err(Error::MountedFile { .. })), "{text}");
                assert!(text.contains("mount the folder"), "{text}");
            }
        }
        std::fs::remove_file(link).unwrap();
        assert!(!beside(mounted, "-wal").exists());
        // Its neighbours are files of their own.
        return say(&open(mounted.with_file_name("other.db"))?, "kept");
    }
    let folder = common::folder()?;
    let root = folder.path().canonicalize().unwrap();
    for name in ["bot.db", "a b\\040\tc\n.db", "好.db"] {
        let [inside, outside] = ["inside", "outside"].map(|side| root.join(side).join(name));
        for path in [&inside, &outside] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        std::fs::write(&inside, "").unwrap();
        let store = open(&outside)?;
        say(&store, "first")?;
        again_with_mount(TEST, &outside, &inside);
        say(&store, "second")?;
        assert_eq!(store.session("s")?.path_length()?, 2);
        store.verify(|_| {})?;
    }
    Ok(())
}

/// What containers should do instead: the log is beside the file by every path.
#[test]
fn a_folder_that_is_mounted_twice_has_one_log() -> Result<()> {
    const TEST: &str = "a_folder_that_is_mounted_twice_has_one_log";
    const EACH: u64 = 30;
    if let Some(mounted) = std::env::var_os(MOUNTED) {
        let inside = Path::new(&mounted).join("bot.db");
        let outside = Path::new(&mounted).with_file_name("outside").join("bot.db");
        let stores = [open(&inside)?, open(&outside)?];
        for name in [&inside, &outside] {
            for suffix in ["", "-wal", "-shm", "-journal"] {
                assert!(Store::is_open_file(beside(name, suffix)), "{name:?} {suffix}");
            }
        }
        for _ in 0..EACH {
            stores.iter().try_for_each(|store| say(store, "inside"))?;
        }
        return Ok(());
    }
    let folder = common::folder()?;
    let root = folder.path().canonicalize().unwrap();
    let [inside, outside] = ["inside", "outside"].map(|side| root.join(side));
    std::fs::create_dir(&inside).unwrap();
    std::fs::create_dir(&outside).unwrap();
    let path = outside.join("bot.db");
    let store = open(&path)?;
    let is_over = AtomicBool::new(false);
    let own = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut own = 0;
            while !is_over.load(Ordering::Relaxed) {
                say(&store, "outside").unwrap();
                own += 1;
            }
            own
        });
        again_with_mount(TEST, &outside, &inside);
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let others = store.session("s")?.path_length()? - own;
    assert!(others == 2 * EACH || others == 0, "{others}");
    store.verify(|_| {})?;
    drop(store);
    assert_eq!(count(&path)?, own + others);
    Ok(())
}

/// A backup is named by a hard link; a crash leaves the first name beside it.
#[test]
fn a_backup_opens_beside_the_name_that_a_crash_left() -> Result<()> {
    let folder = common::folder()?;
    let copy = folder.path().join("copy.db");
    let store = open(folder.path().join("bot.db"))?;
    say(&store, "first")?;
    store.backup(&copy, |_| {})?;
    let partial = folder.path().join("talktree-0199.partial");
    std::fs::hard_link(&copy, &partial).unwrap();
    assert!(matches!(open(&partial), Err(Error::HardLinked { .. })));
    assert_eq!(count(&copy)?, 1);
    Ok(())
}

/// The next command on `bot.db` deleted a store of the name `bot.db-wal`, with acknowledged messages. A new store deleted files
/// that the user had beside it.
#[test]
fn a_name_that_sqlite_deletes_is_refused_and_so_is_a_file_that_it_would_delete() -> Result<()> {
    let folder = common::folder()?;
    let store = open(folder.path().join("bot.db"))?;
    for suffix in ["-wal", "-shm", "-journal"] {
        let path = folder.path().join(format!("other.db{suffix}"));
        for refused in [open(&path).map(drop), store.backup(&path, |_| {})] {
            let text = refused.as_ref().unwrap_err().to_string();
            assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{text}");
            assert!(text.contains(&format!("ends with {suffix}")), "{text}");
            assert!(!path.exists());
        }
        let (new, notes) = (folder.path().join("new.db"), format!("new.db{suffix}"));
        std::fs::write(folder.path().join(&notes), "my notes").unwrap();
        let why = open(&new).map(drop).unwrap_err().to_string();
        assert!(why.contains(&notes) && why.contains("delete"), "{why}");
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(folder.path().join(&notes)).unwrap(), "my notes");
        std::fs::remove_file(folder.path().join(&notes)).unwrap();
    }
    let (new, pipe) = (folder.path().join("new.db"), folder.path().join("new.db-wal"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let why = open(&new).map(drop).unwrap_err().to_string();
    assert!(why.contains("new.db-wal"), "{why}");
    std::fs::remove_file(&pipe).unwrap();
    // The log of a store that was deleted is SQLite's own.
    say(&store, "kept")?;
    for suffix in ["-wal", "-shm"] {
        let log = folder.path().join(format!("bot.db{suffix}"));
        std::fs::copy(log, folder.path().join(format!("new.db{suffix}"))).unwrap();
    }
    say(&open(folder.path().join("new.db"))?, "kept")?;
    Ok(())
}

/// SQLite refuses a path of over 504 bytes without saying why.
#[test]
fn a_path_that_is_too_long_is_refused_with_the_limit() -> Result<()> {
    let folder = common::folder()?;
    let root = folder.path().canonicalize().unwrap();
    let path_of = |bytes: usize| {
        let mut path = root.clone();
        while bytes - path.as_os_str().len() > 220 {
            path.push("d".repeat(200));
        }
        std::fs::create_dir_all(&path).unwrap();
        let rest = bytes - path.as_os_str().len() - 1;
        path.join("f".repeat(rest))
    };
    let longest = path_of(504);
    say(&open(&longest)?, "kept")?;
    assert_eq!(count(&longest)?, 1);
    let over = path_of(505);
    let store = open(root.join("bot.db"))?;
    for refused in [open(&over).map(drop), store.backup(&over, |_| {})] {
        let text = refused.as_ref().unwrap_err().to_string();
        assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{text}");
        assert!(text.contains("505") && text.contains("504"), "{text}");
        assert!(!over.exists());
    }
    Ok(())
}

/// A copy was written to a name that SQLite read as a URI.
#[test]
fn the_name_of_a_backup_is_never_a_uri() -> Result<()> {
    if let Ok(folder) = std::env::var(CHILD) {
        std::env::set_current_dir(&folder).unwrap();
        let store = open("bot.db")?;
        say(&store, "one")?;
        std::fs::create_dir("file:copies?mode=memory&x=").unwrap();
        return store.backup("file:copies?mode=memory&x=/copy.db", |_| {});
    }
    let folder = common::folder()?;
    again("the_name_of_a_backup_is_never_a_uri", folder.path());
    assert_eq!(count(&folder.path().join("file:copies?mode=memory&x=/copy.db"))?, 1);
    Ok(())
}

/// The error had no name of a file, and what SQLite says of a file that was cut off: "malformed".
#[test]
fn a_file_that_was_cut_off_is_named_and_measured() -> Result<()> {
    let folder = common::folder()?;
    let (path, cut) = (folder.path().join("bot.db"), folder.path().join("cut.db"));
    let store = open(&path)?;
    for _ in 0..50 {
        say(&store, &"hello ".repeat(100))?;
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&cut, "a note").unwrap();
    assert!(matches!(open(&cut), Err(Error::NotAStore { .. })));
    for bytes in [1, 16, 99, 100, 4_095, 4_096, whole.len() / 8192 * 4096, whole.len() - 4096] {
        std::fs::write(&cut, &whole[..bytes]).unwrap();
        for answer in [open(&cut).map(drop), Store::open_read_only(&cut).map(drop)] {
            let text = answer.as_ref().unwrap_err().to_string();
            assert!(
                text.contains("cut.db") && text.contains(&format!("has {bytes} bytes")),
                "{text}"
            );
            assert!(matches!(answer, Err(Error::Corrupt { .. })), "{text}");
        }
        assert_eq!(std::fs::read(&cut).unwrap(), whole[..bytes], "{bytes}");
    }
    Ok(())
}

#[test]
fn a_path_that_cannot_hold_a_store_is_named_with_the_reason() -> Result<()> {
    let folder = common::folder()?;
    let at = |name: &str| folder.path().join(name);
    symlink("nowhere/x.db", at("link.db")).unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    for (path, why) in [
        (at("nodir/x.db"), "there is no folder"),
        (at("link.db"), "a symbolic link to nowhere/x.db"),
        (at("folder"), "it is a directory"),
    ] {
        let text = open(&path).unwrap_err().to_string();
        assert!(text.contains(why) && text.contains(&*path.to_string_lossy()), "{text}");
        let text = Store::open_read_only(&path).unwrap_err().to_string();
        assert!(text.contains(&*path.to_string_lossy()), "{text}");
    }
    let store = open(at("bot.db"))?;
    let text = store.search("x").on_path().run().unwrap_err().to_string();
    assert!(text.contains("name the session"), "{text}");
    Ok(())
}
