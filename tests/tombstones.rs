//! What deleting leaves behind: stories of bugs that the model found, each drawn small.

mod common;

use common::{drawn, letters};
use talktree::{Error, Message, Result, Session, Store};

fn chat(path: &str) -> Result<Session> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all(letters(path))?;
    Ok(chat)
}

/// The end of a compaction was deleted first and stayed as a tombstone; when the last message below
/// it went, so did the tombstone, and the compaction stood in the list with no path that holds it.
#[test]
fn a_compaction_goes_with_the_tombstone_it_ends_at() -> Result<()> {
    for is_branch in [false, true] {
        let chat = chat("a b c")?;
        let compaction = chat.add_compaction("summary", &"a".into(), &"b".into())?;
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

/// A fork left tombstones out, so two compactions that ended at a message and at a tombstone after
/// it came to end at one message, and the furthest-reaching showed instead of the latest.
#[test]
fn a_fork_reads_as_its_source_does_where_compactions_end_at_tombstones() -> Result<()> {
    let chat = chat("a b c d")?;
    let late = chat.add_compaction("late", &"b".into(), &"c".into())?.as_message();
    chat.add_compaction("early", &"a".into(), &"b".into())?;
    chat.delete([&"c".into()])?;
    assert_eq!(drawn(&chat.history()?), format!("a {late} d"));
    let fork = chat.fork(&"d".into(), "fork")?;
    assert_eq!(fork.history()?, chat.history()?);
    assert_eq!(fork.raw_history()?, chat.raw_history()?);
    assert_eq!(fork.path_length()?, 3);
    Ok(())
}

/// Where all that is left hangs from tombstones, messages were said to have children.
#[test]
fn the_children_of_a_deleted_root_are_nobodys_children() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(letters("a b"))?;
    chat.delete([&"a".into()])?;
    let stats = store.stats()?;
    assert_eq!((stats.max_children, stats.max_depth, stats.messages), (0, 1, 1));
    assert_eq!(drawn(&chat.roots()?), "b");
    Ok(())
}

/// A summary of nothing that shows would make the history longer.
#[test]
fn a_stretch_of_hidden_messages_is_not_compacted() -> Result<()> {
    let chat = chat("a")?;
    chat.append_all(letters("x y").into_iter().map(Message::hidden))?;
    chat.append_all(letters("b"))?;
    let answer = chat.add_compaction("summary", &"x".into(), &"y".into());
    assert!(matches!(answer, Err(Error::NothingVisible { .. })), "{answer:?}");
    chat.add_compaction("summary", &"a".into(), &"y".into())?;
    assert_eq!(chat.history()?.len(), 2);
    Ok(())
}

/// Laying a compaction that stands already is no error, also when an end of it was deleted since.
#[test]
fn a_compaction_that_stands_may_be_added_again_after_its_end_was_deleted() -> Result<()> {
    let chat = chat("a b c")?;
    chat.add_compaction("summary", &"a".into(), &"b".into())?;
    let compaction = chat.compactions()?.remove(0);
    chat.delete([&"a".into()])?;
    chat.import_compaction(&compaction)?;
    assert_eq!(chat.compactions()?.len(), 1);
    Ok(())
}

#[test]
fn everything_can_be_deleted_and_said_again() -> Result<()> {
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
fn what_is_appended_at_a_head_that_was_deleted_hangs_below_its_place() -> Result<()> {
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
fn undo_goes_to_where_deleted_messages_hung() -> Result<()> {
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
fn a_fork_of_a_path_with_tombstones_is_sound() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(letters("abc"))?;
    chat.delete([&"b".into()])?;
    chat.fork(&"c".into(), "What if")?;
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}
