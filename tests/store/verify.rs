//! `verify` names each kind of damage, and finds none in a sound store.

use std::path::Path;
use std::process::Command;

use crate::common::Scratch;
use crate::common::process::test_name;
use crate::tables::Tables;
use serde_json::json;
use talktree::{Block, Document, Message, Part, Result, Store, TokenCounter};
use talktree_import::export::export_session;

/// Creates a store with a branch, a deleted inner message, a label and a compaction.
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
    // Indexes all messages: appends may have indexed some.
    store.search("message").run()?;
    Ok((folder, path))
}

#[test]
fn a_sound_store_has_no_damage() -> Result<()> {
    let (_folder, path) = store()?;
    let mut reports = 0;
    let verified = Store::open(&path)?.verify(|_| reports += 1)?;
    assert_eq!(verified.damages, []);
    assert_eq!((verified.messages, reports), (4, 1));

    // Checking the index needs write access, so a read-only store checks a copy.
    assert_eq!(Store::open_read_only(&path)?.verify(|_| {})?.damages, []);
    Ok(())
}

/// A server that hashed their addresses would read for minutes: there are few hashes of them.
#[test]
fn many_short_sessions_are_verified() -> Result<()> {
    let scratch = Scratch::new()?;
    for session in 0..64 {
        let text = "one two three four five six seven eight nine ten eleven twelve";
        let chat = scratch.store.session(&*format!("s{session}"))?;
        chat.append_all((0..64).map(|_| Message::user(text)))?;
    }
    scratch.store.search("message").run()?;
    let verified = scratch.store.verify(|_| {})?;
    assert_eq!((verified.messages, verified.damages), (4_096, Vec::new()));
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
        ("UPDATE head_log SET position = position - 50 WHERE position = 0", "lost-head-entry"),
        ("UPDATE session SET head_position = 70", "lost-head-entry"),
        ("UPDATE compaction SET first_id = 'b'", "broken-compaction"),
        ("UPDATE compaction SET last_id = 'x'", "broken-compaction"),
        ("UPDATE label SET address = address + 1000", "lost-label"),
        ("UPDATE compaction SET last = last + 1000", "lost-compaction"),
        (
            "UPDATE compaction SET first = (SELECT address FROM message WHERE id = 'x') - 1,
                                   last = (SELECT address FROM message WHERE id = 'x')",
            "lost-compaction",
        ),
        ("DELETE FROM message WHERE address & 4294967295 > 2", "childless-tombstone"),
        ("UPDATE session SET unindexed = next + 1", "wrong-unindexed"),
        ("INSERT INTO term VALUES ('', 0)", "wrong-word"),
        ("INSERT INTO term VALUES ('x', 0)", "wrong-word"),
        ("UPDATE label SET session = session + 7", "stray-record"),
        ("UPDATE message SET parts = '[{' WHERE id = 'a'", "broken-message"),
        ("UPDATE message SET metadata = '{' WHERE id = 'a'", "broken-message"),
        ("UPDATE message SET created_at = 9223372036854775807 WHERE id = 'a'", "broken-message"),
        ("UPDATE message SET tokens = -1 WHERE id = 'a'", "broken-message"),
        ("UPDATE message SET hidden = 2 WHERE id = 'a'", "broken-message"),
        ("UPDATE session SET metadata = '{'", "broken-session"),
        ("UPDATE compaction SET details = '{'", "broken-compaction"),
        ("UPDATE compaction SET nested = '{\"a\": 1}'", "broken-compaction"),
        ("UPDATE compaction SET nested = '[1]'", "broken-compaction"),
        ("UPDATE compaction SET nested = '[\"a\"'", "broken-compaction"),
        ("UPDATE compaction SET before = -1", "broken-compaction"),
        ("UPDATE compaction SET after = -1", "broken-compaction"),
        ("UPDATE compaction SET count = -1", "broken-compaction"),
        ("UPDATE session SET visible_tokens = 1000", "wrong-tokens"),
        ("UPDATE session SET counter = 5", "lost-counter"),
        ("UPDATE message SET counter = 6", "lost-counter"),
        ("UPDATE session SET unindexed = 3", "search-index"),
    ] {
        names(sql, kind)?;
    }
    Ok(())
}

fn names(sql: &str, kind: &str) -> Result<()> {
    let (_folder, path) = store()?;
    Tables::of(&path).run(sql);
    let damages = Store::open(&path)?.verify(|_| {})?.damages;
    assert!(damages.iter().any(|damage| damage.kind == kind), "{sql}: {damages:?}");
    assert!(damages.iter().all(|damage| !damage.remedy.is_empty()));
    Ok(())
}

#[test]
fn an_index_that_is_missing_is_named() -> Result<()> {
    names("DROP INDEX copy", "schema")
}

/// A server keeps its catalog itself.
#[test]
fn a_definition_that_differs_is_named() -> Result<()> {
    names(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, 'role ', 'rolf ') WHERE name = 'message'",
        "schema",
    )
}

/// Damaged token counts, and the counts after `recount_tokens`.
#[test]
fn wrong_token_counts_are_named_and_recounted() -> Result<()> {
    for (sql, kind, what) in [
        (
            "UPDATE session SET visible_tokens = visible_tokens + 1",
            "wrong-tokens",
            "session s stores 14 visible tokens, and its path has 13",
        ),
        (
            "UPDATE session SET visible_tokens = -3",
            "wrong-tokens",
            "session s stores -3 visible tokens",
        ),
        (
            "UPDATE message SET tokens = 90 WHERE id = 'd'",
            "wrong-tokens",
            "session s stores 13 visible tokens, and its path has 96",
        ),
        (
            "UPDATE message SET tokens = 5000000000 WHERE id = 'd'",
            "broken-message",
            "message 4 of session 1 has 5000000000 tokens (message \"d\" of \"s\")",
        ),
        (
            "UPDATE session SET counter = 7",
            "lost-counter",
            "the tokens of session s were counted by counter 7, which does not exist",
        ),
        (
            "UPDATE message SET counter = 7 WHERE id = 'a'",
            "lost-counter",
            "message 1 of session 1 was counted by counter 7, which does not exist",
        ),
    ] {
        let (_folder, path) = store()?;
        let store = Store::open(&path)?;
        assert_eq!(store.session("s")?.visible_tokens()?, 13);
        Tables::of(&path).run(sql);
        let damages = store.verify(|_| {})?.damages;
        let found = damages.iter().find(|damage| damage.kind == kind);
        assert_eq!(found.map(|damage| damage.what.as_str()), Some(what), "{sql}: {damages:?}");

        store.recount_tokens()?;
        let left = store.verify(|_| {})?.damages;
        assert_eq!(left, [], "{sql}");
        let chat = store.session("s")?;
        let is_still_odd = sql.contains("= 90");
        assert_eq!(chat.visible_tokens()?, if is_still_odd { 96 } else { 13 }, "{sql}");
        assert_eq!(store.verify(|_| {})?.damages, [], "{sql}");
    }
    Ok(())
}

/// Counts bytes.
struct Bytes;

impl TokenCounter for Bytes {
    fn name(&self) -> &str {
        "bytes"
    }

    fn count_text(&self, text: &str) -> f64 {
        text.len() as f64
    }
}

#[test]
fn a_count_that_only_a_custom_counter_can_check_is_not_reported() -> Result<()> {
    let (_folder, path) = store()?;
    let store = Store::open(&path)?;
    let chat = store.session_builder("s").token_counter(Bytes).open()?;
    assert_eq!(chat.visible_tokens()?, 22, "a summary, whose tokens are not stored, and a message");
    assert_eq!(store.verify(|_| {})?.damages, []);
    let spoil = "UPDATE session SET visible_tokens = 1";
    Tables::of(&path).run(spoil);
    assert_eq!(store.verify(|_| {})?.damages, [], "only the counter can count the summary");

    // Without a summary the stored counts of the messages can be added, whichever counter stored them.
    chat.remove_compaction(&chat.compactions()?[0].id)?;
    assert_eq!(chat.visible_tokens()?, 39);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Tables::of(&path).run(spoil);
    assert_eq!(store.verify(|_| {})?.damages[0].kind, "wrong-tokens");

    // A counter had recounted the rows, but was stopped before it stored the sum.
    Tables::of(&path).run("UPDATE session SET visible_tokens = 18, counter = 0");
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn the_count_of_a_view_with_an_elision_is_right() -> Result<()> {
    let (_folder, path) = store()?;
    let store = Store::open(&path)?;
    let chat = store.session_builder("s").block("skills", Block::stored_skills()).open()?;
    let text = "Say it briefly. ".repeat(40);
    chat.context().set_document("skills", &Document::new("report", text.as_str()))?;
    let (name, input) = ("load_context", json!({"label": "skills", "key": "report"}));
    chat.append(Message::assistant("").with_part(Part::tool_call(name, "c", input)))?;
    chat.append(Message::assistant("").with_part(Part::tool_result(name, "c", json!(text))))?;
    let loaded = chat.visible_tokens()?;
    assert_eq!(store.verify(|_| {})?.damages, []);

    chat.context().unload("skills", "report")?;
    assert!(chat.visible_tokens()? < loaded);
    assert_eq!(store.verify(|_| {})?.damages, []);
    let spoil = format!("UPDATE session SET visible_tokens = {loaded}");
    Tables::of(&path).run(&spoil);
    assert_eq!(store.verify(|_| {})?.damages[0].kind, "wrong-tokens");
    Ok(())
}

#[test]
fn a_damaged_count_is_named_stops_nothing_and_is_recounted() -> Result<()> {
    for damaged in [-1, 3, i64::MAX] {
        let (_folder, path) = store()?;
        let sql = format!("UPDATE session SET visible_tokens = {damaged}");
        Tables::of(&path).run(&sql);
        let store = Store::open(&path)?;
        assert_eq!(store.verify(|_| {})?.damages[0].kind, "wrong-tokens", "{damaged}");

        let chat = store.session("s")?;
        chat.append(Message::user("one more"))?;
        chat.checkout(&"x".into())?;
        chat.undo_head()?;
        assert_eq!(
            chat.visible_tokens()?,
            chat.history()?.iter().map(Message::tokens).sum::<u64>()
        );
        assert_eq!(store.verify(|_| {})?.damages, [], "{damaged}");
    }
    Ok(())
}

#[test]
fn a_rebuilt_index_is_sound_again() -> Result<()> {
    let (_folder, path) = store()?;
    Tables::of(&path).run("UPDATE session SET unindexed = 3");
    let store = Store::open(&path)?;
    assert_eq!(store.verify(|_| {})?.damages[0].kind, "search-index");
    store.rebuild_search()?;
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_garbage_page_is_reported() -> Result<()> {
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

/// FTS5 checked the index against its cached structure, so a sound store was reported as damaged.
#[test]
fn a_handle_that_has_verified_once_verifies_later_writes() -> Result<()> {
    let (_folder, path) = store()?;
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    for round in 0..30 {
        assert_eq!(store.verify(|_| {})?.damages, [], "after {round} rounds");
        chat.append_all(
            (0..40).map(|n| Message::user(format!("word{} of round {round}", n * round))),
        )?;
        store.search("word1").run()?;
        if round % 7 == 6 {
            store.rebuild_search()?;
        }
    }
    Ok(())
}

/// Creates a store whose index is up to date.
fn indexed() -> Result<(tempfile::TempDir, std::path::PathBuf)> {
    let (folder, path) = store()?;
    Store::open(&path)?.rebuild_search()?;
    Ok((folder, path))
}

/// Only the whole index was reported as wrong; rebuilding it hid which message had changed.
#[test]
fn messages_that_differ_from_the_index_are_named() -> Result<()> {
    // The numbers are addresses of the first session; `message d` is its fourth.
    const D: i64 = 4_294_967_300;
    type Change = fn(&Tables);
    let changes: [(Change, &str); 4] = [
        (|it| it.index(D, None), "message 4 of session 1 is not in the search index"),
        (
            |it| it.index(4_294_967_399, Some("nobody")),
            "message 103 of session 1 has no words and is in the search index with some",
        ),
        (
            |it| it.index(D, Some("massage")),
            "message 4 of session 1 has other words than its index entry",
        ),
        (
            |it| {
                it.run("UPDATE message SET parts = replace(parts, 'message d', 'massage d')");
            },
            "message 4 of session 1 has other words than its index entry",
        ),
    ];
    for (change, what) in changes {
        let (_folder, path) = indexed()?;
        change(&Tables::of(&path));
        let store = Store::open(&path)?;
        let damages = store.verify(|_| {})?.damages;
        let found: Vec<&str> = damages.iter().map(|damage| damage.what.as_str()).collect();
        assert_eq!(found, [what]);
        assert!(damages[0].remedy.contains("rebuild_search"));
        let by_reader = Store::open_read_only(&path)?.verify(|_| {})?.damages;
        assert_eq!(by_reader, damages);
        store.rebuild_search()?;
        assert_eq!(store.verify(|_| {})?.damages, []);
        assert_eq!(store.search("message OR massage").run()?.hits.len(), 3);
    }
    Ok(())
}

/// The error was "the store failed", and one damaged message made every search fail. A server has no text that is no UTF-8.
#[test]
fn a_message_that_is_not_text_is_named_and_can_be_deleted_or_updated() -> Result<()> {
    can_be_deleted_or_updated("CAST(x'5B7B22FF22' AS TEXT)")
}

#[test]
fn a_message_that_is_not_json_is_named_and_can_be_deleted_or_updated() -> Result<()> {
    can_be_deleted_or_updated("'[{\"type\":\"text\",\"text\":\"mess'")
}

fn can_be_deleted_or_updated(parts: &str) -> Result<()> {
    for is_deleted in [true, false] {
        let (_folder, path) = indexed()?;
        Tables::of(&path).run(&format!("UPDATE message SET parts = {parts} WHERE id = 'd'"));
        let store = Store::open(&path)?;
        let chat = store.session("s")?;
        let answers = [
            chat.raw_history().map(|_| ()),
            chat.message(&"d".into()).map(|_| ()),
            chat.iter_rev().collect::<Result<Vec<_>>>().map(|_| ()),
            chat.tree().map(|_| ()),
            export_session(&chat, &mut Vec::new()),
        ];
        for (at, answer) in answers.iter().enumerate() {
            let Err(error @ talktree::Error::Corrupt { .. }) = answer else {
                panic!("{at}: {answer:?}")
            };
            let text = error.to_string();
            assert!(text.contains("message 4 of session 1"), "{text}");
            assert_eq!(text.matches("the store is damaged").count(), 1, "{text}");
        }
        assert_eq!(chat.at(&"x".into()).raw_history()?.len(), 2, "another branch can be read");
        let found = store.search("message").run()?;
        assert!(found.hits.iter().any(|hit| hit.id == "a"), "sound messages are found: {found:?}");
        let damages = store.verify(|_| {})?.damages;
        let broken = damages.iter().find(|damage| damage.kind == "broken-message");
        assert_eq!(broken.map(|damage| damage.remedy), Some("update or delete the message"));
        if is_deleted {
            chat.delete([&"d".into()])?;
        } else {
            assert!(chat.update(Message::user("message d").with_id("d"))?.is_changed);
        }
        store.rebuild_search()?;
        assert_eq!(store.verify(|_| {})?.damages, []);
        assert_eq!(chat.raw_history()?.len(), if is_deleted { 2 } else { 3 });
    }
    Ok(())
}

/// Runs a test again, in a process that has no temporary folder.
#[track_caller]
fn verify_again(test: &str, folder: &tempfile::TempDir, store: &Path) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test_name(test)])
        .env("TALKTREE_TEST_STORE", store)
        .env("TMPDIR", folder.path().join("no-such-folder"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// A large store was copied to the temporary folder, which is often memory.
#[test]
fn the_index_of_a_large_store_is_checked_beside_it() -> Result<()> {
    if let Ok(path) = std::env::var("TALKTREE_TEST_STORE") {
        assert_eq!(Store::open(path)?.verify(|_| {})?.damages, []);
        return Ok(());
    }
    let (folder, path) = store()?;
    let large = Message::user("small").with_metadata(json!("x".repeat(40 << 20)));
    Store::open(&path)?.session("s")?.append(large)?;
    verify_again("the_index_of_a_large_store_is_checked_beside_it", &folder, &path);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["store.db"]);
    Ok(())
}

/// A small store that is read-only or busy is checked in memory, without any file.
#[test]
fn the_index_of_a_small_store_is_checked_without_a_file() -> Result<()> {
    if let Ok(path) = std::env::var("TALKTREE_TEST_STORE") {
        let damages = Store::open_read_only(path)?.verify(|_| {})?.damages;
        assert_eq!(damages.len(), 1, "{damages:?}");
        assert_eq!(damages[0].kind, "search-index");
        return Ok(());
    }
    let (folder, path) = store()?;
    Store::open(&path)?.rebuild_search()?;
    Tables::of(&path)
        .run(r#"UPDATE message SET parts = '[{"type":"text","text":"door"}]' WHERE id = 'a'"#);
    verify_again("the_index_of_a_small_store_is_checked_without_a_file", &folder, &path);
    Ok(())
}

/// A search for a prefix leaves a table of words in its connection, which had the name of one that `verify` makes there.
#[test]
fn a_store_is_verified_after_a_search_for_a_prefix() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append(Message::user("the compaction"))?;
    assert_eq!(store.search("compac*").run()?.hits.len(), 1);
    assert_eq!(store.verify(|_| {})?.damages, []);
    assert_eq!(store.search("compac*").run()?.hits.len(), 1);
    Ok(())
}

/// With wrong times or roles a search with filters would miss messages.
#[test]
fn times_and_roles_that_differ_from_the_messages_are_named_and_written_again() -> Result<()> {
    for sql in [
        "UPDATE message SET created_at = created_at - 86400000000 WHERE id = 'a'",
        "UPDATE message SET role = 'tool' WHERE id = 'a'",
    ] {
        let (_folder, path) = store()?;
        assert_eq!(Store::open(&path)?.search("message").run()?.hits.len(), 3);
        assert!(Tables::of(&path).run(sql) > 0, "{sql}");
        let store = Store::open(&path)?;
        let damages = store.verify(|_| {})?.damages;
        let kinds: Vec<&str> = damages.iter().map(|damage| damage.kind).collect();
        assert_eq!(kinds, ["search-index"], "{sql}");
        store.rebuild_search()?;
        assert_eq!(store.verify(|_| {})?.damages, [], "{sql}");
    }
    Ok(())
}
