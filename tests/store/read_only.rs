//! Reading where nothing can be written: the present state, or an error that says what to do.
//!
//! SQLite reads the write-ahead log with lock files beside it. Where it cannot create them, the store is read without
//! locks and without a log. That must never happen while there is a log, or while others write: reads would silently
//! show an old state.

#![cfg(unix)]
#![allow(clippy::print_stdout, reason = "a test says why it does nothing")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common;
use crate::common::process::{Other, test_name};
use talktree::{Error, Message, Result, Store};

/// Set in the child process of a test: the folder whose store it reads, without permission to write there.
const CHILD: &str = "TALKTREE_TEST_FOLDER";

fn say(store: &Store, text: &str) -> Result<()> {
    store.session("s")?.append(Message::user(text)).map(|_| ())
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Starts a test again in a process without special permissions; `None` if this system cannot do that.
fn start_unprivileged(test: &str, folder: &Path) -> Option<(tempfile::TempDir, Child)> {
    // The folder of the build may be closed to other users.
    let place = common::folder().unwrap();
    set_mode(place.path(), 0o755);
    let program = place.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    set_mode(&program, 0o755);
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let mut command = Command::new(if is_root { "setpriv".as_ref() } else { program.as_path() });
    if is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    }
    command.args(["--exact", &test_name(test), "--nocapture"]).env(CHILD, folder);
    match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
        Ok(child) => Some((place, child)),
        Err(error) => {
            println!("SKIPPED {test}: setpriv, which gives up root's permissions, fails: {error}");
            None
        }
    }
}

/// Waits for a test in a child process.
#[track_caller]
fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Holds a store open, so that its log stays, until the parent closes this process's input.
#[test]
fn child() -> Result<()> {
    let Some((_, path)) = common::process::task() else { return Ok(()) };
    let store = Store::open(path)?;
    say(&store, "in the log")?;
    common::process::say("ready");
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

#[test]
fn a_log_that_cannot_be_read_is_an_error_that_says_what_to_do() -> Result<()> {
    if let Ok(folder) = std::env::var(CHILD) {
        for name in ["log.db", "journal.db", "link.db"] {
            let opened = Store::open_read_only(Path::new(&folder).join(name));
            let answer = opened.and_then(|store| store.session("s")?.path_length());
            let text = answer.as_ref().map_or_else(ToString::to_string, ToString::to_string);
            assert!(matches!(answer, Err(Error::UnreadableLog { .. })), "{name}: {text}");
            assert!(text.contains(".db") && text.contains("folder"), "{text}");
        }
        // Without a log there is nothing to lose: it is read as it is.
        let store = Store::open_read_only(Path::new(&folder).join("plain%20?.db"))?;
        assert_eq!(store.session("s")?.path_length()?, 1);
        return Ok(());
    }
    let folder = common::folder()?;
    let at = |name: &str| folder.path().join(name);
    for name in ["log.db", "journal.db", "plain%20?.db"] {
        say(&Store::open(at(name))?, "hello")?;
        set_mode(&at(name), 0o644);
    }
    // The log of a process that was killed; whoever cleaned up left it.
    let mut other = Other::start("hold", &at("log.db"))?;
    assert_eq!(other.hear().as_deref(), Some("ready"));
    other.kill();
    std::fs::remove_file(at("log.db-shm")).unwrap();
    set_mode(&at("log.db-wal"), 0o644);
    std::os::unix::fs::symlink(at("log.db"), at("link.db")).unwrap();
    // The journal of a program that did not use the log: it has to be rolled back.
    std::fs::write(at("journal.db-journal"), b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 and more").unwrap();
    set_mode(&at("journal.db-journal"), 0o644);
    set_mode(folder.path(), 0o555);
    let started = start_unprivileged(
        "a_log_that_cannot_be_read_is_an_error_that_says_what_to_do",
        folder.path(),
    );
    if let Some((_program, child)) = started {
        finish(child);
    }
    set_mode(folder.path(), 0o755);
    assert_eq!(Store::open_read_only(at("link.db"))?.session("s")?.path_length()?, 2);
    Ok(())
}

/// The store was read as it had been when it was opened, whatever others wrote since.
#[test]
fn a_store_read_without_locks_notices_that_others_write() -> Result<()> {
    if let Ok(folder) = std::env::var(CHILD) {
        let open = |name: &str| Store::open_read_only(Path::new(&folder).join(name));
        let (held, closed) = (open("held.db")?, open("closed.db")?);
        for store in [&held, &closed] {
            assert_eq!(store.session("s")?.path_length()?, 1);
        }
        println!("\nopened");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        for (store, how) in [(&held, "with a log"), (&closed, "without a log")] {
            let answer = store.session("s")?.path_length();
            assert!(matches!(answer, Err(Error::UnreadableLog { .. })), "{how}: {answer:?}");
        }
        assert_eq!(open("closed.db")?.session("s")?.path_length()?, 2);
        return Ok(());
    }
    let folder = common::folder()?;
    let at = |name: &str| folder.path().join(name);
    for name in ["held.db", "closed.db"] {
        say(&Store::open(at(name))?, "one")?;
        set_mode(&at(name), 0o644);
    }
    set_mode(folder.path(), 0o555);
    let test = "a_store_read_without_locks_notices_that_others_write";
    if let Some((_program, mut child)) = start_unprivileged(test, folder.path()) {
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.ends_with("opened\n") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the child has ended");
        }
        set_mode(folder.path(), 0o755);
        let held = Store::open(at("held.db"))?;
        say(&held, "two")?;
        // Others may read the log, and still not without lock files of their own.
        std::fs::set_permissions(at("held.db-shm"), PermissionsExt::from_mode(0o600)).unwrap();
        say(&Store::open(at("closed.db"))?, "two")?;
        set_mode(folder.path(), 0o555);
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert!(child.wait().unwrap().success() && rest.contains("1 passed"), "{rest}");
    }
    set_mode(folder.path(), 0o755);
    Ok(())
}

/// The error showed an address of SQLite's own and not what the system says.
#[test]
fn a_file_that_cannot_be_read_says_so() -> Result<()> {
    if let Ok(folder) = std::env::var(CHILD) {
        let path = Path::new(&folder).join("secret.db");
        for answer in [Store::open_read_only(&path), Store::open(&path)] {
            let error = answer.map(drop).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Io { .. }), "{error:?}");
            assert!(text.contains("secret.db: it cannot be read: Permission denied"), "{text}");
            assert!(!text.contains("immutable"), "{text}");
        }
        return Ok(());
    }
    let folder = common::folder()?;
    say(&Store::open(folder.path().join("secret.db"))?, "hello")?;
    set_mode(folder.path(), 0o777);
    if let Some((_program, child)) =
        start_unprivileged("a_file_that_cannot_be_read_says_so", folder.path())
    {
        finish(child);
    }
    Ok(())
}
