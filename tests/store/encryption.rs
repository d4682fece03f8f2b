//! Encrypted stores: no byte of plain text in any file, and a named error for a wrong key.
//!
//! A change of the key was the risk: SQLCipher does not report that its commit failed, and the connection then writes with
//! a key that the file does not have; and a connection that was opened before the change reads noise after it.

#![cfg(feature = "sqlcipher")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common;
use crate::common::process::{self, Other};
use talktree::{Block, Error, Message, Result, Session, SessionDetails, Store};
use talktree_import::export::{content_hash, export_jsonl};

const KEY: [u8; 32] = *b"the key of the tests, in 32 byte";
const OTHER: [u8; 32] = *b"another key, also with 32 bytes.";
/// In every text that a test stores.
const MARK: &str = "quetzalcoatl";

fn open(path: &Path, key: [u8; 32]) -> Result<Store> {
    Store::options().key(key).open(path)
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    |source| Error::Io { path: path.to_owned(), source }
}

fn is_wrong_key<T>(answer: &Result<T>) -> bool {
    matches!(answer, Err(Error::WrongKey { .. }))
}

/// Returns the names of the files in a folder that hold one of these texts, and how many files there are.
fn files_with(folder: &Path, texts: &[&[u8]]) -> Result<(Vec<String>, usize)> {
    let (mut found, mut count) = (Vec::new(), 0);
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        let path = entry.map_err(io(folder))?.path();
        let bytes = std::fs::read(&path).map_err(io(&path))?;
        count += 1;
        if texts.iter().any(|text| bytes.windows(text.len()).any(|window| window == *text)) {
            found.push(path.display().to_string());
        }
    }
    Ok((found, count))
}

/// Writes a mark wherever a store takes text.
fn fill(store: &Store) -> Result<Session> {
    let details = SessionDetails {
        owner: Some(format!("{MARK} owner")),
        tags: vec![format!("{MARK} tag")],
        ..SessionDetails::named(format!("{MARK} name"))
    };
    let chat = store.create_session_as(format!("{MARK}-1"), details)?;
    let first = chat.append(Message::user(format!("{MARK} question")))?.id;
    for n in 0..300 {
        chat.append(Message::assistant(format!("{MARK} answer {n} {}", "words ".repeat(40))))?;
    }
    let last = chat.append(Message::user(format!("{MARK} end")))?.id;
    chat.label(&format!("{MARK}-label"), &last)?;
    chat.add_compaction(format!("{MARK} summary"), &first, &first)?;
    let context = store
        .session_builder(format!("{MARK}-1"))
        .block("memory", Block::stored().describe(format!("{MARK} description")))
        .open()?
        .context()
        .clone();
    context.set("memory", &format!("{MARK} fact"))?;
    context.set("memory", &format!("{MARK} newer fact"))?;
    assert_eq!(store.search(MARK).limit(5).run()?.hits.len(), 5);
    Ok(chat)
}

#[test]
fn no_file_of_an_encrypted_store_holds_plain_text() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    for key in [None, Some(KEY)] {
        let place = folder.path().join(if key.is_some() { "encrypted" } else { "plain" });
        std::fs::create_dir(&place).map_err(io(&place))?;
        let path = place.join("bot.db");
        let options = Store::options();
        let store = match key {
            Some(key) => options.key(key).open(&path)?,
            None => options.open(&path)?,
        };
        fill(&store)?;
        store.backup(place.join("backup.db"), |_| {})?;
        // As a crash leaves it, with its log and its lock file. Its files are not opened before.
        std::mem::forget(store);
        let (found, count) =
            files_with(&place, &[MARK.as_bytes(), b"SQLite format 3", b"CREATE TABLE", &KEY])?;
        assert_eq!(count, 4, "the file, its log, its lock file and the backup");
        assert_eq!(found.is_empty(), key.is_some(), "{found:?}");
    }
    assert!(!path.exists());
    Ok(())
}

#[test]
fn a_wrong_key_and_a_missing_one_are_named_and_change_nothing() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    fill(&open(&path, KEY)?)?;
    let plain = folder.path().join("plain.db");
    fill(&Store::open(&plain)?)?;
    let text = folder.path().join("text.db");
    std::fs::write(&text, "Dear diary, this is no database. ".repeat(400)).map_err(io(&text))?;
    let bytes = |path: &Path| std::fs::read(path).map_err(io(path));
    let before = (bytes(&path)?, bytes(&plain)?, bytes(&text)?);

    let with = |key: Option<[u8; 32]>, path: &Path| {
        let options = || key.map_or(Store::options(), |key| Store::options().key(key));
        [options().open(path), options().open_read_only(path)]
    };
    for (key, path, why) in [
        (Some(OTHER), &path, "the key is wrong, or the file is not an encrypted store"),
        (None, &path, "no key was given, and it looks encrypted; or it is not a store"),
        (Some(KEY), &plain, "it is not encrypted; open it without a key"),
        (Some(KEY), &text, "the key is wrong, or the file is not an encrypted store"),
    ] {
        for answer in with(key, path) {
            let error = answer.unwrap_err();
            assert!(matches!(error, Error::WrongKey { .. }), "{error}");
            assert!(
                error.to_string().ends_with(&format!(" cannot be decrypted: {why}")),
                "{error}"
            );
        }
    }
    assert!(matches!(
        with(None, &text),
        [Err(Error::NotAStore { .. }), Err(Error::NotAStore { .. })]
    ));

    // While this process has it open, its bytes are not read to find out.
    let store = open(&path, KEY)?;
    assert!(with(None, &path).iter().all(is_wrong_key));
    assert_eq!(store.session(format!("{MARK}-1"))?.search("end").run()?.hits.len(), 1);
    drop(store);
    assert_eq!(before, (bytes(&path)?, bytes(&plain)?, bytes(&text)?));
    Ok(())
}

#[test]
fn a_key_is_never_printed() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = open(&path, KEY)?;
    let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (text, decimal) = (String::from_utf8_lossy(&KEY).into_owned(), format!("{:?}", &KEY[..4]));
    let error = open(&path, OTHER).unwrap_err();
    let options = Store::options().key(KEY);
    let printed = [format!("{options:?} {options:#?}"), format!("{store:?} {error} {error:?}")];
    for printed in printed {
        let has = |what: &str| printed.to_lowercase().contains(what);
        let decimal = decimal.trim_end_matches(']');
        assert!(!has(&text) && !has(&hex(&KEY[..4])) && !has(&hex(&OTHER[..4])) && !has(decimal));
        assert!(!printed.is_empty());
    }
    Ok(())
}

#[test]
fn a_new_key_is_that_of_all_handles_and_no_other() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = open(&path, KEY)?;
    let chat = fill(&store)?;
    let hash = content_hash(&store)?;
    let (same_process, read_only) =
        (open(&path, KEY)?, Store::options().key(KEY).open_read_only(&path)?);
    let seen = same_process.session(format!("{MARK}-1"))?.raw_history()?.len();
    assert_eq!(content_hash(&read_only)?, hash);
    let mut other_process = Other::start("read and write", &path)?;
    assert_eq!(other_process.hear().as_deref(), Some("ready"));

    store.rekey(OTHER)?;
    assert_eq!(content_hash(&store)?, hash);
    chat.append(Message::user(format!("{MARK} later")))?;
    assert_eq!(chat.raw_history()?.len(), seen + 1);
    assert!(store.verify(|_| {})?.damages.is_empty());

    // The others wrote nothing with their old key.
    let stale = same_process.session(format!("{MARK}-1"))?;
    assert!(is_wrong_key(&stale.history()) && is_wrong_key(&stale.append(Message::user("lost"))));
    let error = same_process.stats().unwrap_err();
    let why = "it was given another key since it was opened; open it again with that";
    assert!(error.to_string().ends_with(why), "{error}");
    assert!(is_wrong_key(&content_hash(&read_only)));
    other_process.tell("go");
    assert_eq!(other_process.wait(), ["WrongKey", "WrongKey"]);
    drop((stale, same_process, read_only));

    assert!(is_wrong_key(&open(&path, KEY)));
    assert_eq!(open(&path, OTHER)?.session(format!("{MARK}-1"))?.raw_history()?.len(), seen + 1);
    store.backup(folder.path().join("copy.db"), |_| {})?;
    assert!(is_wrong_key(&open(&folder.path().join("copy.db"), KEY)));
    open(&folder.path().join("copy.db"), OTHER)?;
    Ok(())
}

/// The task of the child processes.
#[test]
fn child() -> Result<()> {
    let Some((task, path)) = process::task() else { return Ok(()) };
    assert_eq!(task, "read and write");
    let store = open(&path, KEY)?;
    let chat = store.session(format!("{MARK}-1"))?;
    chat.history()?;
    chat.append(Message::user(format!("{MARK} of the child")).with_id("child"))?;
    chat.delete([&"child".into()])?;
    process::say("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(io(&path))?;
    for answer in [chat.history().map(drop), chat.append(Message::user("lost")).map(drop)] {
        process::say(match answer {
            Err(Error::WrongKey { .. }) => "WrongKey".to_owned(),
            answer => format!("{answer:?}"),
        });
    }
    Ok(())
}

/// A read that began between the opening of its connection and the commit of the new key failed.
#[test]
fn threads_read_and_write_while_the_key_changes() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = open(&path, KEY)?;
    let chat = fill(&store)?;
    let (is_done, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    let before = chat.raw_history()?.len();
    std::thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..4)
            .map(|n| {
                let (chat, store, is_done, written) = (&chat, &store, &is_done, &written);
                scope.spawn(move || -> Result<()> {
                    while !is_done.load(Ordering::Relaxed) {
                        if n == 0 {
                            chat.append(Message::user(format!("{MARK} more")))?;
                            written.fetch_add(1, Ordering::Relaxed);
                        } else {
                            assert!(chat.raw_history()?.len() >= before);
                            content_hash(store)?;
                            store.search(MARK).limit(1).run()?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let changed = (0..10).try_for_each(|n| store.rekey(if n % 2 == 0 { OTHER } else { KEY }));
        is_done.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().expect("no panic")?;
        }
        changed
    })?;
    assert_eq!(chat.raw_history()?.len(), before + written.load(Ordering::Relaxed));
    assert!(store.verify(|_| {})?.damages.is_empty());
    drop((chat, store));
    assert!(open(&path, KEY)?.verify(|_| {})?.damages.is_empty());
    Ok(())
}

/// A connection under which the change has failed would write with the new key.
#[test]
fn a_failed_change_leaves_the_old_key() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let timeout = Duration::from_millis(50);
    let store = Store::options().key(KEY).busy_timeout(timeout).open(&path)?;
    let chat = fill(&store)?;
    let before = chat.raw_history()?.len();

    let blocker = rusqlite::Connection::open(&path).unwrap();
    let hex: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    blocker.pragma_update(None, "key", format!("x'{hex}'")).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.rekey(OTHER).is_err());
    blocker.execute_batch("ROLLBACK").unwrap();
    drop(blocker);

    chat.append(Message::user(format!("{MARK} after")))?;
    assert_eq!(chat.raw_history()?.len(), before + 1);
    assert!(store.verify(|_| {})?.damages.is_empty());
    drop((chat, store));
    let store = open(&path, KEY)?;
    assert_eq!(store.session(format!("{MARK}-1"))?.raw_history()?.len(), before + 1);
    store.rekey(OTHER)?;
    assert!(matches!(
        Store::open_in_memory()?.rekey(KEY),
        Err(Error::Unsupported { what: "another key for a store that has none" })
    ));
    Ok(())
}

/// A connection that fills an empty file chooses its salt, which all others need.
#[test]
fn a_new_store_may_be_opened_by_many_at_once() -> Result<()> {
    for _ in 0..20 {
        let folder = common::folder()?;
        let path = folder.path().join("bot.db");
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| -> Result<()> {
            let (path, barrier) = (&path, &barrier);
            let openers: Vec<_> = (0..8)
                .map(|n| {
                    scope.spawn(move || -> Result<()> {
                        barrier.wait();
                        let store = open(path, KEY)?;
                        store.session("s")?.append(Message::user(n.to_string()))?;
                        Ok(())
                    })
                })
                .collect();
            openers.into_iter().try_for_each(|opener| opener.join().expect("no panic"))
        })?;
        assert_eq!(open(&path, KEY)?.session("s")?.raw_history()?.len(), 8);
    }
    Ok(())
}

#[test]
fn pages_with_the_old_key_do_not_stay_in_the_log() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = open(&path, KEY)?;
    fill(&store)?;
    let log = folder.path().join("bot.db-wal");
    let length = || std::fs::metadata(&log).map(|log| log.len()).map_err(io(&log));
    assert!(length()? > 0);
    store.rekey(OTHER)?;
    assert_eq!(length()?, 0);
    Ok(())
}

#[test]
fn a_store_in_memory_has_encrypted_backups() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("copy.db");
    let store = Store::options().key(KEY).open_in_memory()?;
    fill(&store)?;
    store.rekey(OTHER)?;
    store.backup(&path, |_| {})?;
    let (found, count) = files_with(folder.path(), &[MARK.as_bytes()])?;
    assert_eq!((found.len(), count), (0, 1));
    assert_eq!(content_hash(&open(&path, OTHER)?)?, content_hash(&store)?);
    Ok(())
}

/// Erased text in the gaps of pages cannot be found in an encrypted file, so the file is rewritten.
#[test]
fn an_erasure_rewrites_an_encrypted_file() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = open(&path, KEY)?;
    fill(&store)?;
    let kept = store.create_session("kept")?;
    kept.append(Message::user("hello"))?;
    let erased = store.erase(&talktree::Erasure::session(format!("{MARK}-1")))?;
    assert!(erased.is_complete() && erased.is_rewritten);
    assert!(store.verify(|_| {})?.damages.is_empty());
    drop((kept, store));
    let store = open(&path, KEY)?;
    assert_eq!((store.sessions()?.len(), store.search(MARK).run()?.hits.len()), (1, 0));
    Ok(())
}

/// `verify` checks the index of a large store in a copy, and an export reads a snapshot.
#[test]
fn copies_and_snapshots_have_the_key() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = open(&path, KEY)?;
    let chat = fill(&store)?;
    for _ in 0..36 {
        chat.append(Message::user("long ".repeat(200_000)))?;
    }
    assert!(store.verify(|_| {})?.damages.is_empty());
    let mut lines = Vec::new();
    export_jsonl(&store, &mut lines)?;
    assert!(lines.windows(MARK.len()).any(|window| window == MARK.as_bytes()));
    drop((chat, store));
    let store = Store::options().key(KEY).open_read_only(&path)?;
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(())
}

/// SQLCipher returns a page of zeros for one that it cannot authenticate.
#[test]
fn a_changed_byte_never_changes_what_is_read() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let chat = fill(&open(&path, KEY)?)?;
    chat.append(Message::user(format!("{MARK} long {}", "text ".repeat(20_000))))?;
    let expected = chat.raw_history()?;
    drop(chat);
    let bytes = std::fs::read(&path).map_err(io(&path))?;
    let (mut refused, pages) = (0, bytes.len() / 4096);
    for page in 0..pages {
        let mut damaged = bytes.clone();
        damaged[page * 4096 + 1000] ^= 1;
        std::fs::write(&path, &damaged).map_err(io(&path))?;
        let store = match open(&path, KEY) {
            Ok(store) => store,
            Err(Error::WrongKey { .. } | Error::Corrupt { .. }) => {
                refused += 1;
                continue;
            }
            Err(error) => panic!("open {page}: {error:?}"),
        };
        for _ in 0..2 {
            match store.session(format!("{MARK}-1")).and_then(|chat| chat.raw_history()) {
                Ok(read) => assert_eq!(read, expected, "page {page}"),
                Err(Error::Corrupt { .. } | Error::WrongKey { .. }) => refused += 1,
                Err(error) => panic!("open {page}: {error:?}"),
            }
        }
        let is_told = store.verify(|_| {}).map_or(true, |verified| !verified.damages.is_empty());
        assert!(is_told, "page {page} of {pages}");
    }
    assert!(refused > 10);
    Ok(())
}
