//! A copy of a store shows what the store shows, and is finished by the next one if it was stopped.

use talktree::{
    Author, Block, Document, Error, Message, Result, Session, SessionDetails, SessionManager,
    Store, Usage, UsageGroup,
};
use talktree_import::copy;
use talktree_import::export::content_hash;

/// Returns a store with what a copy carries: branches, a summary, deleted messages, a fork, labels, tags, keys, texts.
fn full() -> Result<Store> {
    let store = Store::open_in_memory()?;
    let bot = SessionManager::builder(&store)
        .block("memory", Block::stored().per_owner())
        .block("notes", Block::stored())
        .block("facts", Block::knowledge().across_sessions())
        .build()?;
    let chat = bot.resume("telegram:1").owner("ann").open()?;
    let usage = Usage { model: Some("m".to_owned()), output: 5, ..Usage::default() };
    let answer = |text: &str| Message::assistant(text).with_usage(&usage);
    let question = chat.append(Message::user("one").from(&Author::new("ann")))?.id;
    let first = chat.append(answer("two"))?.id;
    chat.append_to(&question, answer("another"))?;
    chat.checkout(&first)?;
    let gone = chat.append(Message::user("three"))?.id;
    let last = chat.append(answer("four"))?.id;
    chat.add_compaction("One to three.", &question, &gone)?;
    chat.delete([&gone])?;
    chat.label("start", &question)?;
    chat.tag(&last, "good")?;
    chat.fork(&last, "What if")?.append(Message::user("five"))?;
    let context = chat.context();
    context.set("memory", "Likes tea.")?;
    context.set("memory", "Likes coffee.")?;
    context.set("notes", "Busy.")?;
    context.set_document("facts", &Document::new("shop", "Opens at nine.").titled("Shop"))?;
    // More messages than one transaction takes.
    let long = store.create_session_as("long", SessionDetails::named("Long"))?;
    long.append_all((0..2_500).map(|n| Message::user(format!("line {n}"))))?;
    store.create_session_as("empty", SessionDetails::named("Empty"))?;
    store.create_session("trash")?.append(Message::user("gone"))?;
    let trash = store.sessions()?.into_iter().find(|info| info.name.as_deref() == Some("trash"));
    store.change_session(&trash.unwrap().id, &talktree::SessionChange::Delete)?;
    Ok(store)
}

fn chat_of(store: &Store) -> Result<Session> {
    let bot = SessionManager::builder(store)
        .block("memory", Block::stored().per_owner())
        .block("notes", Block::stored())
        .block("facts", Block::knowledge().across_sessions())
        .build()?;
    bot.resume("telegram:1").owner("ann").open()
}

#[test]
fn a_copy_has_the_sessions_texts_keys_and_usage() -> Result<()> {
    let (from, to) = (full()?, Store::open_in_memory()?);
    let mut seen = Vec::new();
    let copied = copy(&from, &to, |at| seen.push((at.done, at.total)))?;
    assert_eq!((copied.sessions, copied.texts, copied.bindings), (4, 4, 1), "{copied:?}");
    assert!(copied.different.is_empty() && copied.unchanged == 0, "{copied:?}");
    assert_eq!((seen[0], seen[seen.len() - 1]), ((0, 4), (4, 4)));

    assert_eq!(content_hash(&to)?, content_hash(&from)?);
    assert_eq!(to.sessions()?, from.sessions()?, "in the same order, with the same times");
    let usage = |store: &Store| store.usage().by(UsageGroup::Author).run();
    assert_eq!(usage(&to)?, usage(&from)?);
    assert!(to.verify(|_| {})?.damages.is_empty());
    let (one, other) = (chat_of(&from)?, chat_of(&to)?);
    assert_eq!(one.id(), other.id());
    let contents = |chat: &Session| -> Result<Vec<_>> {
        let texts = [("memory", None), ("notes", None), ("facts", Some("shop"))];
        let versions = texts.map(|(label, key)| chat.context().versions(label, key));
        let versions = versions.into_iter().collect::<Result<Vec<_>>>()?.concat();
        Ok(versions.into_iter().map(|text| (text.version, text.title, text.content)).collect())
    };
    assert_eq!(contents(&one)?, contents(&other)?);
    assert_eq!(contents(&one)?.len(), 4);
    Ok(())
}

#[test]
fn a_second_copy_adds_what_is_new_and_writes_nothing_that_is_equal() -> Result<()> {
    let (from, to) = (full()?, Store::open_in_memory()?);
    // Stopped before the last session.
    let handle = to.interrupt_handle();
    let stopped = copy(&from, &to, |at| {
        if at.done == 2 {
            handle.interrupt();
        }
    });
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert_eq!(to.sessions()?.len(), 3);
    let copied = copy(&from, &to, |_| {})?;
    assert_eq!((copied.sessions, copied.unchanged), (1, 3), "{copied:?}");
    assert_eq!(content_hash(&to)?, content_hash(&from)?);

    let events = std::sync::Arc::new(std::sync::Mutex::new(0));
    let count = std::sync::Arc::clone(&events);
    let _subscription = to.subscribe(move |_| *count.lock().unwrap() += 1);
    let again = copy(&from, &to, |_| {})?;
    assert_eq!((again.sessions, again.unchanged, again.texts, again.bindings), (0, 4, 0, 0));
    assert_eq!((*events.lock().unwrap(), to.sessions()?), (0, from.sessions()?));

    chat_of(&from)?.append(Message::user("six"))?;
    chat_of(&from)?.context().set("memory", "Likes water.")?;
    let grown = copy(&from, &to, |_| {})?;
    assert_eq!((grown.sessions, grown.unchanged, grown.texts), (1, 3, 1));
    assert_eq!(content_hash(&to)?, content_hash(&from)?);
    Ok(())
}

#[test]
fn what_is_different_there_stays_and_is_named() -> Result<()> {
    let (from, to) = (Store::open_in_memory()?, Store::open_in_memory()?);
    for id in ["changed", "forbidden", "other", "plain"] {
        from.session(id)?.append_all([Message::user("hi"), Message::assistant("ho")])?;
    }
    to.session("other")?.append(Message::user("something else"))?;
    to.session("forbidden")?.append(Message::user("secret"))?;
    let _ = to.erase(&talktree::Erasure::session("forbidden").forbid_import())?;
    assert_eq!(copy(&from, &to, |_| {})?.different, ["forbidden", "other"]);
    to.session("changed")?.append(Message::user("added there"))?;
    let copied = copy(&from, &to, |_| {})?;
    assert_eq!(copied.different, ["changed", "forbidden", "other"]);
    assert_eq!(to.session("other")?.history()?.len(), 1);
    assert_eq!(to.session("changed")?.history()?.len(), 3);
    assert!(to.session("forbidden")?.info()?.is_none());
    Ok(())
}
