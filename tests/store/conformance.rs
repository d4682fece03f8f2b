//! Both providers of this library pass the conformance suite.

use std::sync::Arc;

use crate::common::Scratch;
use talktree::testing::{MemorySession, conformance, conformance_of_removal};
use talktree::{Error, Message, Result, Session, Store};

#[test]
fn the_memory_provider_conforms() {
    conformance(|id| Arc::new(MemorySession::new(id)));
}

#[test]
fn sqlite_in_memory_conforms() -> Result<()> {
    let store = Store::open_in_memory()?;
    conformance(|id| provider(&store, id));
    Ok(())
}

#[test]
fn sqlite_in_a_file_conforms() -> Result<()> {
    let scratch = Scratch::new()?;
    conformance(|id| provider(&scratch.store, id));
    Ok(())
}

#[test]
fn sqlite_conforms_to_the_rules_of_removal() -> Result<()> {
    let scratch = Scratch::new()?;
    for store in [&scratch.store, &Store::open_in_memory()?] {
        conformance_of_removal(|id| provider(store, id), |id| store.remove(id));
    }
    Ok(())
}

#[test]
#[should_panic(expected = "the write should be Error::SessionRemoved, not Ok")]
fn a_provider_that_writes_to_a_removed_session_breaks_a_rule() {
    conformance_of_removal(|id| Arc::new(MemorySession::new(id)), |_| Ok(()));
}

fn provider(store: &Store, id: talktree::SessionId) -> Arc<dyn talktree::SessionProvider> {
    store.session(id).unwrap_or_else(|error| panic!("{error}")).provider()
}

#[test]
fn a_session_over_a_small_provider_streams_and_pages() -> Result<()> {
    let chat = Session::over(MemorySession::new("s".into()));
    chat.append_all((0..200).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
    chat.add_compaction("the start", &"0".into(), &"99".into())?;

    assert_eq!(chat.iter().count(), 101);
    assert_eq!(chat.iter_rev().count(), 101);
    let page = chat.page().before(&"110".into()).limit(50).run()?;
    assert_eq!(page.messages.len(), 11);
    assert_eq!(page.before, None);
    let summary = &page.messages[0];
    assert_eq!(chat.message(&summary.id)?.as_ref(), Some(summary));
    assert!(chat.page().before(&summary.id).run()?.messages.is_empty());
    Ok(())
}

#[test]
fn an_unsupported_method_is_an_error() -> Result<()> {
    let chat = Session::over(MemorySession::new("s".into()));
    let id = chat.append(Message::user("a"))?.id;
    for answer in [
        chat.label("x", &id),
        chat.fork(&id, "f").map(|_| ()),
        chat.undo_head().map(|_| ()),
        chat.delete_branch(&id).map(|_| ()),
        chat.tree().map(|_| ()),
    ] {
        assert!(matches!(answer, Err(Error::Unsupported { .. })), "{answer:?}");
    }
    Ok(())
}
