//! `verify` names each kind of damage, and finds none in a sound store.

use rusqlite::Connection;
use talktree::{Message, Result, Store};

/// A store with a branch, a deleted inner message, a label and a compaction.
fn store() -> Result<(tempfile::TempDir, std::path::PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    for id in ["a", "b", "c", "d"] {
        chat.append(Message::user(format!("message {id}")).with_id(id))?;
    }
    chat.append_to(&"b".into(), Message::assistant("another c").with_id("x"))?;
    chat.delete([&"b".into()])?;
    chat.label("here", &"d".into())?;
    chat.checkout(&"d".into())?;
    chat.add_compaction("three", &"a".into(), &"c".into())?;
    Ok((folder, path))
}

#[test]
fn a_sound_store_has_no_damage() -> Result<()> {
    let (_folder, path) = store()?;
    let mut reports = 0;
    let verified = Store::open(&path)?.verify(|_| reports += 1)?;
    assert_eq!(verified.damages, []);
    assert_eq!((verified.messages, reports), (4, 1));

    // The index cannot be checked without writing: a copy is.
    assert_eq!(Store::open_read_only(&path)?.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn each_kind_of_damage_is_named() -> Result<()> {
    for (sql, kind) in [
        ("UPDATE message SET parent = parent + 1000 WHERE id = 'x'", "missing-parent"),
        ("UPDATE message SET parent = address + 1 WHERE id = 'a'", "wrong-parent"),
        ("UPDATE session SET key = key + 1", "stray-message"),
        ("UPDATE session SET next = 3", "number-in-use"),
        ("UPDATE session SET head = head + 1000", "lost-head"),
        ("UPDATE head_log SET address = address + 1000", "lost-head-entry"),
        ("UPDATE label SET address = address + 1000", "lost-label"),
        ("UPDATE compaction SET last = last + 1000", "lost-compaction"),
        (
            "UPDATE compaction SET first = (SELECT address FROM message WHERE id = 'x') - 1,
                                   last = (SELECT address FROM message WHERE id = 'x')",
            "lost-compaction",
        ),
        ("DELETE FROM message WHERE address & 4294967295 > 2", "childless-tombstone"),
        ("INSERT INTO search_pending VALUES (99)", "stray-pending"),
        ("UPDATE label SET session = session + 7", "stray-record"),
        ("UPDATE message SET parts = '[{' WHERE id = 'a'", "broken-message"),
        ("UPDATE message SET metadata = '{' WHERE id = 'a'", "broken-message"),
        ("UPDATE message SET created_at = 9223372036854775807 WHERE id = 'a'", "broken-message"),
        ("UPDATE session SET metadata = '{'", "broken-session"),
        ("UPDATE compaction SET details = '{'", "broken-compaction"),
        ("DROP INDEX copy", "schema"),
        (
            "DELETE FROM search_pending WHERE rowid = (SELECT max(address) FROM search_pending)",
            "search-index",
        ),
    ] {
        let (_folder, path) = store()?;
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(sql).unwrap();
        drop(conn);
        let damages = Store::open(&path)?.verify(|_| {})?.damages;
        assert!(damages.iter().any(|damage| damage.kind == kind), "{sql}: {damages:?}");
        assert!(damages.iter().all(|damage| !damage.remedy.is_empty()));
    }
    Ok(())
}

#[test]
fn a_rebuilt_index_is_sound_again() -> Result<()> {
    let (_folder, path) = store()?;
    Connection::open(&path).unwrap().execute_batch("DELETE FROM search_pending").unwrap();
    let store = Store::open(&path)?;
    assert_eq!(store.verify(|_| {})?.damages[0].kind, "search-index");
    store.rebuild_search()?;
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_flipped_page_is_named() -> Result<()> {
    let (_folder, path) = store()?;
    let mut bytes = std::fs::read(&path).unwrap();
    let page = bytes.len() / 4096 / 2 * 4096;
    bytes[page..page + 8].fill(0xFF);
    std::fs::write(&path, bytes).unwrap();
    let verified = Store::open(&path).and_then(|store| store.verify(|_| {}));
    match verified {
        Ok(verified) => assert!(!verified.damages.is_empty()),
        Err(error) => assert!(matches!(error, talktree::Error::Corrupt { .. }), "{error}"),
    }
    Ok(())
}
