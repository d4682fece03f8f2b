//! Rows that another program wrote and talktree would not: `verify` names each, reading one is an error of damage that names
//! the row, and what the remedy says helps.
//!
//! `verify` called a store sound while other verbs failed: it did not read the trash, the bindings, the ledger and the labels of
//! blocks and messages.

use std::path::{Path, PathBuf};

use crate::common;
use crate::tables::Tables;
use talktree::{
    BindingFilter, Block, Error, Message, Result, SessionFilter, SessionManager, SessionState,
    Store, Usage,
};
use talktree_import::export::export_readable_jsonl;

/// A store of two sessions with a row of each kind.
fn store() -> Result<(tempfile::TempDir, PathBuf)> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    for id in ["a", "b", "c"] {
        chat.append(Message::user(format!("message {id} of some length")).with_id(id))?;
    }
    chat.label("here", &"b".into())?;
    chat.add_compaction("short", &"a".into(), &"b".into())?;
    for input in [5, 6] {
        chat.add_usage(None, &Usage { input, output: 7, ..Usage::default() })?;
    }
    let context =
        store.session_builder("s").block("memory", Block::stored()).open()?.context().clone();
    context.set("memory", "Likes tea.")?;
    store.session("other")?.append(Message::user("hello").with_id("o"))?;
    SessionManager::builder(&store).build()?.resume("telegram:1").open()?;
    Ok((folder, path))
}

fn write(path: &Path, sql: &str) {
    Tables::of(path).run(sql);
}

const MAX: &str = "9223372036854775807";

/// A read that meets the row.
type Read = fn(&Store) -> Result<()>;

fn sessions(store: &Store) -> Result<()> {
    store.sessions().map(drop)
}

fn history(store: &Store) -> Result<()> {
    store.session("s")?.history().map(drop)
}

fn trash(store: &Store) -> Result<()> {
    let filter = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
    store.list().filter(filter.clone()).limit(9).run().map(drop)
}

fn bindings(store: &Store) -> Result<()> {
    store.bindings(&BindingFilter::default(), None, 9).map(drop)
}

fn labels_of_blocks(store: &Store) -> Result<()> {
    store.session_builder("s").open()?.context().stored().map(drop)
}

fn search(store: &Store) -> Result<()> {
    store.search("message").run().map(drop)
}

#[test]
fn each_row_is_named_by_verify_and_by_the_read_that_meets_it() -> Result<()> {
    let long = "x".repeat(2000);
    for (sql, kind, offender, read) in [
        (
            "INSERT INTO session (id, created_at, updated_at, listed_at) VALUES ('', 1, 1, 1)",
            "broken-session",
            "session key 4",
            sessions as Read,
        ),
        (
            &format!("UPDATE session SET id = '{long}' WHERE key = 1"),
            "broken-session",
            "session key 1",
            sessions,
        ),
        (
            &format!("UPDATE session SET id = '{long}' WHERE key = 1"),
            "broken-session",
            "session key 1",
            search,
        ),
        (
            &format!("UPDATE session SET deleted_at = {MAX} WHERE key = 1"),
            "broken-session",
            "\"s\"",
            trash,
        ),
        (&format!("UPDATE binding SET bound_at = {MAX}"), "broken-binding", "binding 1", bindings),
        ("UPDATE binding SET end_cause = 'x'", "broken-binding", "binding 1", bindings),
        (
            "UPDATE context_block SET label = ''",
            "broken-context",
            "context block 1",
            labels_of_blocks,
        ),
        (
            &format!("UPDATE context_block SET label = '{long}'"),
            "broken-context",
            "context block 1",
            labels_of_blocks,
        ),
        (
            r#"UPDATE message SET extra = '{"id":"evil","role":"system","parts":3}' WHERE id = 'c'"#,
            "broken-message",
            "message 3 of session 1",
            history,
        ),
        (
            "UPDATE message SET id = '' WHERE id = 'c'",
            "broken-message",
            "message 3 of session 1",
            history,
        ),
        (
            "UPDATE message SET id = 'compaction_7' WHERE id = 'c'",
            "broken-message",
            "message 3 of session 1",
            history,
        ),
        ("UPDATE compaction SET summary = ''", "broken-compaction", "compaction ", history),
        ("UPDATE compaction SET id = ''", "broken-compaction", "compaction key 1", history),
    ] {
        let (_folder, path) = store()?;
        write(&path, sql);
        let store = Store::open(&path)?;
        let damages = store.verify(|_| {})?.damages;
        let named =
            |damage: &&talktree::Damage| damage.kind == kind && damage.what.contains(offender);
        let told = damages.iter().find(named);
        assert!(told.is_some_and(|damage| damage.what.len() < 500), "{sql}: {damages:?}");
        let answer = read(&store);
        let text = answer.as_ref().map_or_else(ToString::to_string, |()| String::new());
        assert!(matches!(answer, Err(Error::Corrupt { .. })), "{sql}: {answer:?}");
        assert!(text.contains(offender), "{sql}: {text}");
    }
    Ok(())
}

/// Such a label harms no read, and an import refuses it.
#[test]
fn a_label_without_a_name_is_named_and_can_be_removed() -> Result<()> {
    let (_folder, path) = store()?;
    write(&path, "UPDATE label SET name = ''");
    let store = Store::open(&path)?;
    let damages = store.verify(|_| {})?.damages;
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert_eq!(damages[0].kind, "broken-label");
    assert!(damages[0].what.contains("session key 1"), "{damages:?}");
    store.session("s")?.unlabel("")?;
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

/// A report failed with "integer overflow".
#[test]
fn sums_of_usage_stop_at_the_greatest_number() -> Result<()> {
    let (_folder, path) = store()?;
    write(&path, &format!("UPDATE usage SET input = {MAX}, cost = {MAX}, currency = 'USD'"));
    let store = Store::open(&path)?;
    let total = store.usage().total()?;
    assert!(total.input >= i64::MAX as u64, "{total:?}");
    assert_eq!((total.answers, total.output), (2, 14));
    assert_eq!(store.session("s")?.usage()?, total);
    let damages = store.verify(|_| {})?.damages;
    assert!(damages[0].what.starts_with("row 1 of the usage"), "{damages:?}");
    assert_eq!((damages.len(), damages[0].kind), (2, "wrong-usage"), "{damages:?}");
    Ok(())
}

/// What a program adds itself is no damage, however much it is.
#[test]
fn the_greatest_usage_is_sound() -> Result<()> {
    let (_folder, path) = store()?;
    let store = Store::open(&path)?;
    let most = Usage { input: 1_000_000_000, output: 1_000_000_000, ..Usage::default() };
    for _ in 0..3 {
        store.session("s")?.add_usage(None, &most)?;
    }
    assert!(store.usage().total()?.input >= 3_000_000_000);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

/// The other sessions of a store with such a row can be exported.
#[test]
fn one_damaged_session_blocks_no_rescue_of_the_others() -> Result<()> {
    let long = format!("UPDATE session SET id = '{}' WHERE key = 1", "x".repeat(2_000));
    for sql in [
        "UPDATE session SET id = '' WHERE key = 1",
        &long,
        "UPDATE session SET deleted_at = 9223372036854775807 WHERE key = 1",
        "UPDATE message SET id = '' WHERE id = 'c'",
        "UPDATE compaction SET summary = ' '",
    ] {
        rescues_the_others(sql)?;
    }
    Ok(())
}

/// A server has no text that is no UTF-8.
#[test]
fn a_session_whose_id_is_no_text_blocks_no_rescue_of_the_others() -> Result<()> {
    rescues_the_others("UPDATE session SET id = CAST(x'ff' AS TEXT) WHERE key = 1")
}

fn rescues_the_others(sql: &str) -> Result<()> {
    let (_folder, path) = store()?;
    write(&path, sql);
    let (mut file, mut skipped) = (Vec::new(), Vec::new());
    export_readable_jsonl(&Store::open_read_only(&path)?, &mut file, |_, error| {
        skipped.push(error.to_string());
    })?;
    assert_eq!(skipped.len(), 1, "{sql}: {skipped:?}");
    assert!(skipped[0].contains("damaged"), "{sql}: {skipped:?}");
    let text = String::from_utf8(file).unwrap();
    assert!(text.contains("hello"), "{sql}: {text}");
    assert!(!text.contains("of some length"), "{sql}: {text}");
    Ok(())
}

/// Each remedy that is a statement repairs the damage.
#[test]
fn each_remedy_helps() -> Result<()> {
    for (sql, remedy, repair) in [
        (
            "UPDATE session SET id = '' WHERE key = 1",
            "UPDATE session SET id = 'NEW' WHERE key = KEY",
            "UPDATE session SET id = 'new' WHERE key = 1",
        ),
        (
            "UPDATE message SET id = '' WHERE id = 'c'",
            "UPDATE message SET id = 'NEW' WHERE address = SESSION * 4294967296 + MESSAGE",
            "UPDATE message SET id = 'new' WHERE address = 1 * 4294967296 + 3",
        ),
        (
            "UPDATE binding SET bound_at = 9223372036854775807",
            "DELETE FROM binding WHERE number = NUMBER",
            "DELETE FROM binding WHERE number = 1",
        ),
        (
            "UPDATE usage SET input = -1 WHERE number = 2",
            "DELETE FROM usage WHERE number = NUMBER",
            "DELETE FROM usage WHERE number = 2",
        ),
        (
            "UPDATE context_block SET label = ''",
            "UPDATE context_block SET label = 'NEW' WHERE key = KEY",
            "UPDATE context_block SET label = 'new' WHERE key = 1",
        ),
    ] {
        let (_folder, path) = store()?;
        write(&path, sql);
        let store = Store::open(&path)?;
        let damages = store.verify(|_| {})?.damages;
        assert!(damages.iter().all(|damage| damage.remedy.contains(remedy)), "{sql}: {damages:?}");
        write(&path, repair);
        assert_eq!(store.verify(|_| {})?.damages, [], "{sql}");
    }
    Ok(())
}

#[test]
fn a_message_and_a_compaction_that_cannot_be_read_can_be_removed() -> Result<()> {
    let (_folder, path) = store()?;
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    let compaction = chat.compactions()?.remove(0).id;
    write(
        &path,
        r#"UPDATE message SET extra = '{"role":"system"}' WHERE id = 'c';
           UPDATE compaction SET summary = ''"#,
    );
    assert_eq!(store.verify(|_| {})?.damages.len(), 2);
    assert!(chat.history().is_err());
    chat.delete([&"c".into()])?;
    chat.remove_compaction(&compaction)?;
    assert_eq!(chat.history()?.len(), 2);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}
