//! What other programs write into the tables of a store: each case is a named error, with the offender and the limit.
//!
//! Three such cases failed: an append with the number 0 was acknowledged, and no read found it; used-up keys were reported as
//! a full disk; a process that had the store open went on writing after another one had raised the format.

use std::path::{Path, PathBuf};

use crate::common;
use crate::tables::{Tables, is_on_server};
use talktree::{Error, Message, Result, Store};

/// A store of one message, and its tables as another program sees them.
fn store() -> Result<(tempfile::TempDir, PathBuf, Store, Tables)> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = Store::open(&path)?;
    store.session("s")?.append(Message::user("hello door").with_id("a"))?;
    let foreign = Tables::of(&path);
    Ok((folder, path, store, foreign))
}

fn damages(path: &Path) -> Result<Vec<&'static str>> {
    let verified = Store::open(path)?.verify(|_| {})?;
    Ok(verified.damages.iter().map(|damage| damage.kind).collect())
}

/// Asserts that the error is of damage, and names the offenders.
#[track_caller]
fn names<T: std::fmt::Debug>(answer: Result<T>, offenders: &[&str]) {
    let text = answer.as_ref().map_or_else(ToString::to_string, |_| String::new());
    assert!(matches!(answer, Err(Error::Corrupt { .. })), "{answer:?}");
    for offender in offenders {
        assert!(text.contains(offender), "{text}");
    }
}

#[test]
fn a_next_number_that_cannot_be_used_is_refused() -> Result<()> {
    for (next, offenders) in
        [("0", ["\"s\"", " 0"]), ("-1", ["\"s\"", "-1"]), ("1", ["\"s\"", " 1"])]
    {
        let (_folder, path, store, foreign) = store()?;
        foreign.run(&format!("UPDATE session SET next = {next}"));
        names(store.session("s")?.append(Message::user("more")), &offenders);
        assert_eq!(foreign.value("SELECT count(*) FROM message"), "1", "{next}");
        assert!(damages(&path)?.contains(&"number-in-use"), "{next}");
    }
    let (_folder, path, _store, foreign) = store()?;
    foreign.run("INSERT INTO session (id, next, created_at, updated_at) VALUES ('t', 0, 0, 0)");
    assert_eq!(damages(&path)?, ["number-in-use"]);
    Ok(())
}

#[test]
fn a_full_session_is_an_error() -> Result<()> {
    let (_folder, _path, store, foreign) = store()?;
    let last = u64::from(u32::MAX) - 1;
    foreign.run(&format!("UPDATE session SET next = {last}"));
    let chat = store.session("s")?;
    chat.append(Message::user("last"))?;
    let answer = chat.append(Message::user("too many"));
    assert!(matches!(answer, Err(Error::SessionFull { max, .. }) if max == last), "{answer:?}");
    assert_eq!((chat.raw_history()?.len(), chat.path_length()?), (2, 2));
    Ok(())
}

#[test]
fn an_indexed_message_made_a_tombstone_by_hand_is_named() -> Result<()> {
    let (_folder, path, store, foreign) = store()?;
    store.session("s")?.append(Message::user("another one"))?;
    store.rebuild_search()?;
    foreign.run("UPDATE message SET id = NULL WHERE id = 'a'");
    names(store.search("door").run(), &["message 1", "\"s\""]);
    assert!(damages(&path)?.contains(&"search-index"));
    Ok(())
}

#[test]
fn keys_that_are_used_up_are_named() -> Result<()> {
    let (_folder, _path, store, foreign) = store()?;
    foreign.run(
        "INSERT INTO session (key, id, created_at, updated_at)
         VALUES (9223372036854775807, 'x', 0, 0)",
    );
    foreign.set_last_key("session", i64::MAX);
    names(store.session("new")?.append(Message::user("hi")), &["session", "9223372036854775807"]);
    names(
        store.session("x")?.append(Message::user("hi")),
        &["\"x\"", "9223372036854775807", "2147483647"],
    );
    store.session("s")?.append(Message::user("the others work").with_id("b"))?;
    foreign.set_last_key("compaction", i64::MAX);
    let refused = store.session("s")?.add_compaction("s", &"a".into(), &"b".into());
    names(refused, &["compaction", "9223372036854775807"]);
    Ok(())
}

#[test]
fn a_handle_that_is_open_while_the_format_is_raised_refuses() -> Result<()> {
    let (_folder, path, store, foreign) = store()?;
    let chat = store.session("s")?;
    let read_only = Store::open_read_only(&path)?;
    assert_eq!(chat.history()?.len() + read_only.session("s")?.history()?.len(), 2);
    let mut stream = chat.path().raw().iter();
    foreign.run("ALTER TABLE session ADD COLUMN newer TEXT");
    foreign.set_version(99);
    let mut answers = vec![
        chat.append(Message::user("in the old format")).map(drop),
        store.rebuild_search(),
        store.remove(chat.id()),
    ];
    // A server tells it to the next write.
    if !is_on_server() {
        answers.extend([
            chat.history().map(drop),
            chat.search("door").run().map(drop),
            store.sessions().map(drop),
            store.backup(path.with_extension("copy"), |_| {}),
            store.verify(|_| {}).map(drop),
            read_only.session("s")?.history().map(drop),
            stream.next().map_or(Ok(()), |message| message.map(drop)),
        ]);
    }
    for refused in answers {
        assert!(matches!(refused, Err(Error::NewerStore { found: 99, .. })), "{refused:?}");
    }
    assert!(!path.with_extension("copy").exists());
    assert_eq!(foreign.value("SELECT count(*) FROM message"), "1");
    Ok(())
}

#[test]
fn a_handle_refuses_a_file_that_became_older_or_something_else() -> Result<()> {
    let (_folder, _path, store, foreign) = store()?;
    foreign.run("PRAGMA user_version = 1");
    let refused = store.session("s")?.append(Message::user("hi")).map(drop);
    assert!(matches!(refused, Err(Error::OlderStore { found: 1, .. })), "{refused:?}");
    foreign.run("PRAGMA application_id = 7");
    let refused = store.session("s")?.append(Message::user("hi")).map(drop);
    assert!(matches!(refused, Err(Error::NotAStore { .. })), "{refused:?}");
    Ok(())
}
