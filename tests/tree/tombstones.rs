//! Tombstones: bugs that the model tests found, each as a small case.

use crate::common::{drawn, letters};
use talktree::{Error, Message, Result, Session, Store};

fn chat(path: &str) -> Result<Session> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all(letters(path))?;
    Ok(chat)
}

/// The last message of a compaction was deleted first and became a tombstone. When its last descendant was deleted, the
/// tombstone was removed, and the compaction remained in the list without a path that contains it.
#[test]
fn a_compaction_is_removed_with_the_tombstone_it_ends_at() -> Result<()> {
    for is_branch in [false, true] {
        let chat = chat("a b c")?;
        let compaction = chat.add_compaction("summary", &"a".into(), &"b".into())?.id;
        assert_eq!(chat.delete([&"b".into()])?.covered_by, std::slice::from_ref(&compaction));
        let deleted = match is_branch {
            true => chat.delete_branch(&"c".into())?,
            false => chat.delete([&"c".into()])?,
        };
        assert_eq!((deleted.compactions_gone, chat.compactions()?), (vec![compaction], vec![]));
        assert_eq!(drawn(&chat.history()?), "a");
    }
    Ok(())
}

/// A fork omitted tombstones, so two compactions that ended at a message and at a tombstone after it ended at the same
/// message in the fork, and the longest was visible instead of the latest.
#[test]
fn a_fork_reads_like_its_source_if_compactions_end_at_tombstones() -> Result<()> {
    let chat = chat("a b c d")?;
    let late = chat.add_compaction("late", &"b".into(), &"c".into())?.id.as_message();
    chat.add_compaction("early", &"a".into(), &"b".into())?;
    chat.delete([&"c".into()])?;
    assert_eq!(drawn(&chat.history()?), format!("a {late} d"));
    let fork = chat.fork(&"d".into(), "fork")?;
    assert_eq!(fork.history()?, chat.history()?);
    assert_eq!(fork.raw_history()?, chat.raw_history()?);
    assert_eq!(fork.path_length()?, 3);
    Ok(())
}

/// If all remaining messages were children of tombstones, messages seemed to have children.
#[test]
fn the_children_of_a_deleted_root_are_roots() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(letters("a b"))?;
    chat.delete([&"a".into()])?;
    let stats = store.stats()?;
    assert_eq!((stats.max_children, stats.max_depth, stats.messages), (0, 1, 1));
    assert_eq!(drawn(&chat.roots()?), "b");
    Ok(())
}

/// A summary without visible messages would lengthen the history.
#[test]
fn a_range_of_hidden_messages_is_not_compacted() -> Result<()> {
    let chat = chat("a")?;
    chat.append_all(letters("x y").into_iter().map(Message::hidden))?;
    chat.append_all(letters("b"))?;
    let answer = chat.add_compaction("summary", &"x".into(), &"y".into());
    assert!(matches!(answer, Err(Error::NothingVisible { .. })), "{answer:?}");
    chat.add_compaction("summary", &"a".into(), &"y".into())?;
    assert_eq!(chat.history()?.len(), 2);
    Ok(())
}

/// Adding a known compaction is a no-op, even if an end of it was deleted since.
#[test]
fn adding_a_known_compaction_is_a_no_op_after_its_end_was_deleted() -> Result<()> {
    let chat = chat("a b c")?;
    chat.add_compaction("summary", &"a".into(), &"b".into())?;
    let compaction = chat.compactions()?.remove(0);
    chat.delete([&"a".into()])?;
    chat.import_compaction(&compaction)?;
    assert_eq!(chat.compactions()?.len(), 1);
    Ok(())
}

#[test]
fn deleted_ids_can_be_appended_again() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    for _ in 0..3 {
        let messages = letters("a b c d");
        chat.append_all(messages.clone())?;
        chat.append_to(&"b".into(), Message::user("x").with_id("x"))?;
        chat.label("here", &"c".into())?;
        chat.add_compaction("summary", &"a".into(), &"d".into())?;
        let mut ids: Vec<_> = messages.into_iter().map(|message| message.id).collect();
        ids.push("x".into());
        assert_eq!(chat.delete(&ids)?.compactions_gone.len(), 1);
        assert_eq!((chat.head()?, chat.latest_leaf()?), (None, None));
        assert_eq!((chat.labels()?.len(), chat.leaves()?.len(), chat.head_log()?.len()), (0, 0, 1));
        assert_eq!(store.stats()?.max_depth, 0);
    }
    Ok(())
}

#[test]
fn an_append_at_a_deleted_head_goes_below_its_tombstone() -> Result<()> {
    let chat = chat("a b c")?;
    chat.checkout(&"b".into())?;
    chat.delete([&"b".into()])?;
    assert_eq!(chat.head()?, Some("a".into()));
    chat.append(Message::user("d").with_id("d"))?;
    assert_eq!(drawn(&chat.raw_history()?), "a d");
    assert_eq!(drawn(&chat.branches(&"a".into())?), "c d");
    Ok(())
}

#[test]
fn undo_goes_to_the_parent_of_deleted_messages() -> Result<()> {
    let chat = chat("a b c")?;
    chat.append_to(&"a".into(), Message::user("x").with_id("x"))?;
    chat.checkout(&"b".into())?;
    // The log is c, x, b.
    chat.delete([&"x".into()])?;
    assert!(chat.undo_head()?);
    assert_eq!(chat.head()?, Some("a".into()));
    assert!(chat.undo_head()?);
    assert_eq!(chat.head()?, Some("c".into()));
    assert!(!chat.undo_head()?);
    Ok(())
}

#[test]
fn the_log_of_the_head_is_bounded() -> Result<()> {
    let chat = chat("a b")?;
    for _ in 0..750 {
        chat.checkout(&"a".into())?;
        chat.checkout(&"b".into())?;
    }
    assert!(chat.head_log()?.len() <= 1_001);
    let mut undone = 0;
    while chat.undo_head()? {
        undone += 1;
    }
    assert_eq!(undone, 1_000);
    Ok(())
}

#[test]
fn a_fork_of_a_path_with_tombstones_is_valid() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(letters("abc"))?;
    chat.delete([&"b".into()])?;
    chat.fork(&"c".into(), "What if")?;
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}
