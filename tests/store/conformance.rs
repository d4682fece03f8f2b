//! Both providers of this library pass the conformance suite.

use std::sync::Arc;

use crate::common::Scratch;
use talktree::testing::{
    MemoryCatalog, MemoryContext, MemorySession, conformance, conformance_of_catalog,
    conformance_of_context, conformance_of_removal,
};
use talktree::{
    Block, ContextStore, Error, Message, Result, Session, SessionCatalog, SessionDetails,
    SessionId, Store,
};

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
fn the_sessions_of_the_memory_catalog_conform() {
    let catalog = MemoryCatalog::new();
    conformance(|id| catalog.session(&id).session);
    conformance_of_removal(|id| catalog.session(&id).session, |id| catalog.remove(id));
}

#[test]
fn the_memory_catalog_conforms() {
    conformance_of_catalog(|| Arc::new(MemoryCatalog::new()));
}

#[test]
fn the_catalog_of_a_store_conforms() -> Result<()> {
    conformance_of_catalog(|| Store::open_in_memory().expect("memory").catalog());
    let mut scratches = Vec::new();
    conformance_of_catalog(|| {
        let scratch = Scratch::new().expect("a folder");
        let catalog = scratch.store.catalog();
        scratches.push(scratch);
        catalog
    });
    for scratch in scratches {
        assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

#[test]
fn the_contexts_of_both_catalogs_conform() -> Result<()> {
    let scratch = Scratch::new()?;
    let stores = [scratch.store.catalog(), Store::open_in_memory()?.catalog()];
    for catalog in stores.into_iter().chain([Arc::new(MemoryCatalog::new()) as Arc<_>]) {
        conformance_of_context(|id, owner| context(&*catalog, id, owner));
    }
    assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    Ok(())
}

/// Returns the context of a new session.
fn context(
    catalog: &dyn SessionCatalog,
    id: SessionId,
    owner: Option<&str>,
) -> Arc<dyn ContextStore> {
    if let Some(owner) = owner {
        let details = SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() };
        catalog.create(&id, &details).expect("the id is new");
    }
    catalog.session(&id).context.expect("it has contexts")
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

#[test]
fn stored_blocks_and_a_frozen_prompt_work_over_a_storage_of_ones_own() -> Result<()> {
    // A context of another session is replaced by that of the session.
    let chat = Session::builder(MemorySession::new("s".into()))
        .context_store(MemoryContext::new("another".into()))
        .block("memory", Block::stored())
        .block("facts", Block::knowledge().across_sessions())
        .block("person", Block::stored().per_owner())
        .cached_prompt()
        .open()?;
    let context = chat.context();
    context.set("memory", "Likes tea.")?;
    context.set_document("facts", &talktree::Document::new("hours", "We open at nine."))?;
    assert_eq!(context.search("facts", "open", 9)?.len(), 1);
    assert!(matches!(context.set("person", "Ann"), Err(Error::NoOwner { .. })));
    let frozen = chat.prompt()?;
    assert!(frozen.contains("Likes tea."));
    context.set("memory", "Likes coffee.")?;
    assert_eq!((chat.prompt()?, chat.drift()?.len()), (frozen, 1));
    assert_eq!(context.versions("memory", None)?.len(), 2);

    // A compaction or a clear calls for a new prompt; the storage of the messages knows nothing of it.
    let long = chat.append(Message::user("word ".repeat(50)))?.id;
    chat.add_compaction("short", &long, &long)?;
    let second = chat.prompt()?;
    assert!(second.contains("Likes coffee."));
    context.set("memory", "Likes water.")?;
    assert_eq!(chat.prompt()?, second);
    chat.clear()?;
    assert!(chat.prompt()?.contains("Likes water."));
    Ok(())
}

#[test]
fn a_continued_session_has_copies_of_texts_that_are_kept_beside_it() -> Result<()> {
    // The sessions of a store, with a context elsewhere.
    let store = Store::open_in_memory()?;
    let chat = store
        .session_builder("s")
        .context_store(MemoryContext::new("s".into()))
        .block("memory", Block::stored())
        .block("facts", Block::knowledge())
        .open()?;
    let hello = chat.append(Message::user("hello"))?.id;
    chat.context().set("memory", "Likes tea.")?;
    chat.context().set_document("facts", &talktree::Document::new("k", "A fact."))?;
    for copy in [chat.fork(&hello, "fork")?, chat.compact_and_split("They greeted.")?] {
        assert_eq!(copy.block("memory")?.map(|block| block.content).as_deref(), Some("Likes tea."));
        assert_eq!(copy.context().search("facts", "fact", 9)?.len(), 1);
        copy.context().set("memory", "Likes coffee.")?;
    }
    assert_eq!(chat.block("memory")?.map(|block| block.content).as_deref(), Some("Likes tea."));
    assert!(store.session("s")?.context().stored()?.is_empty());
    Ok(())
}
