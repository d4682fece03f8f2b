//! One manager for many sessions: its template, shared handles, keys that lead to sessions, the trash, and the times by
//! which lists are ordered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crate::common::{self, Scratch};
use talktree::{
    BindingEnd, Block, Error, Message, Result, SessionChange, SessionDetails, SessionFilter,
    SessionManager, SessionState, Store, TokenCounter,
};

fn manager(store: &Store) -> Result<SessionManager> {
    SessionManager::builder(store).block("soul", Block::text("Be brief.")).build()
}

fn ids(manager: &SessionManager) -> Result<Vec<String>> {
    let page = manager.store().list().run()?;
    Ok(page.sessions.iter().map(|listed| listed.info.id.to_string()).collect())
}

#[test]
fn every_session_has_the_template_and_handles_share_added_blocks() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let (one, same, other) = (bot.session("a")?, bot.session("a")?, bot.session("b")?);
    one.context().add("task", Block::text("Book a table."))?;
    assert!(same.prompt()?.contains("Book a table."));
    assert!(!other.prompt()?.contains("Book a table."));
    assert!(other.prompt()?.contains("Be brief."));
    // When the last handle is dropped, the next one has the template alone.
    drop((one, same));
    assert!(!bot.session("a")?.prompt()?.contains("Book a table."));
    // Nothing was written, so there is no session.
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn a_handle_of_a_removed_session_is_not_given_out_again() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let kept = bot.session("a")?;
    kept.append(Message::user("hello"))?;
    store.remove(&"a".into())?;
    let fresh = bot.session("a")?;
    fresh.append(Message::user("again"))?;
    assert_eq!(fresh.history()?.len(), 1);
    assert!(matches!(kept.append(Message::user("x")), Err(Error::SessionRemoved { .. })));
    Ok(())
}

#[test]
fn a_wrong_setting_is_refused_when_the_manager_is_built() -> Result<()> {
    let store = Store::open_in_memory()?;
    let twice =
        SessionManager::builder(&store).block("a", Block::stored()).block("a", Block::stored());
    assert!(matches!(twice.build(), Err(Error::BlockExists { .. })));
    let no_model = SessionManager::builder(&store).compact_after(100).build();
    assert!(matches!(no_model, Err(Error::NoSummarizer { .. })));
    Ok(())
}

#[test]
fn threads_that_resume_one_key_at_once_get_one_session() -> Result<()> {
    let scratch = Scratch::new()?;
    let stores = [scratch.store.clone(), Store::open(scratch.folder.path().join("talk.db"))?];
    let (threads, barrier) = (8, Barrier::new(8));
    let found: Vec<_> = thread::scope(|scope| {
        let resume = |number: usize| {
            let store = &stores[number % 2];
            let barrier = &barrier;
            scope.spawn(move || -> Result<_> {
                let bot = manager(store)?;
                barrier.wait();
                Ok(bot.resume("telegram:1").owner("user:42").open()?.id().clone())
            })
        };
        let handles: Vec<_> = (0..threads).map(resume).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect::<Result<_>>()
    })?;
    assert!(found.iter().all(|id| *id == found[0]), "{found:?}");
    assert_eq!(scratch.store.sessions()?.len(), 1);
    Ok(())
}

/// The handle did not know its session until it was used: the message that an update had brought was in a session of that id
/// again, without an owner and without the key, where no erasure of the owner found it.
#[test]
fn a_resumed_session_that_is_removed_does_not_come_back_with_a_write() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    for is_erased in [false, true] {
        let chat = bot.resume("telegram:1").owner("user:42").open()?;
        match is_erased {
            false => bot.remove(chat.id())?,
            true => _ = bot.erase_owner("user:42")?,
        }
        let refused = chat.append(Message::user("hello"));
        assert!(matches!(refused, Err(Error::SessionRemoved { .. })), "{refused:?}");
        assert!(store.sessions()?.is_empty());
    }
    Ok(())
}

/// Removes all sessions when one is opened, because its name is read then. Holds how many it removed.
struct RemovesAll(Store, Arc<AtomicUsize>);

impl TokenCounter for RemovesAll {
    fn name(&self) -> &str {
        for session in self.0.sessions().unwrap() {
            self.0.remove(&session.id).unwrap();
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        "removes all"
    }

    fn count_text(&self, _text: &str) -> f64 {
        0.0
    }
}

#[test]
fn a_resume_ends_if_its_sessions_are_removed_again_and_again() -> Result<()> {
    let store = Store::open_in_memory()?;
    let removed = Arc::new(AtomicUsize::new(0));
    let counter = RemovesAll(store.clone(), Arc::clone(&removed));
    let bot = SessionManager::builder(&store).token_counter(counter).build()?;
    let refused = bot.resume("telegram:1").open();
    assert!(matches!(refused, Err(Error::SessionRemoved { .. })), "{refused:?}");
    assert_eq!(removed.load(Ordering::Relaxed), 16);
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn a_key_leads_to_a_new_session_where_the_old_one_must_not_be_resumed() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let minute = Duration::from_secs(60);
    let old = bot.resume("k").owner("user:1").open()?;
    let written = Message::user("hello").at("2020-01-01T00:00:00Z".parse().unwrap());
    old.append(written)?;
    // The key was bound just now, so the session is not idle.
    assert_eq!(bot.resume("k").owner("user:1").expire_after(minute).open()?.id(), old.id());

    let other = bot.resume("k").owner("user:2").run()?;
    assert_eq!(other.former, Some((old.id().clone(), BindingEnd::OtherOwner)));
    bot.end(other.session.id(), "over")?;
    let third = bot.resume("k").run()?;
    assert_eq!(third.former, Some((other.session.id().clone(), BindingEnd::Ended)));
    bot.delete(third.session.id())?;
    let fourth = bot.resume("k").run()?;
    assert_eq!(fourth.former, Some((third.session.id().clone(), BindingEnd::Deleted)));
    assert_eq!(bot.unbind("k")?.as_ref(), Some(fourth.session.id()));
    assert_eq!(bot.unbind("k")?, None);
    let fifth = bot.resume("k").run()?;
    assert!(fifth.is_new && fifth.former.is_none());

    let ends: Vec<_> = bot.bindings("k")?.into_iter().map(|binding| binding.end).collect();
    use BindingEnd::{Deleted, Ended, OtherOwner, Unbound};
    assert_eq!(ends, [None, Some(Unbound), Some(Deleted), Some(Ended), Some(OtherOwner)]);
    // The former ones can still be read.
    assert_eq!(bot.session(old.id().clone())?.history()?.len(), 1);
    Ok(())
}

#[test]
fn an_idle_session_expires_and_zero_never_does() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let old = bot.resume("k").open()?;
    old.append(Message::user("hello"))?;
    thread::sleep(Duration::from_millis(30));
    assert_eq!(bot.resume("k").open()?.id(), old.id());
    assert_eq!(bot.resume("k").expire_after(Duration::ZERO).open()?.id(), old.id());
    let resumed = bot.resume("k").expire_after(Duration::from_millis(20)).run()?;
    assert_eq!(resumed.former, Some((old.id().clone(), BindingEnd::Expired)));
    Ok(())
}

#[test]
fn a_session_without_an_owner_gets_the_one_that_resumes_it() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let chat = bot.resume("k").open()?;
    assert_eq!(bot.resume("k").owner("user:1").open()?.id(), chat.id());
    assert_eq!(chat.info()?.unwrap().owner.as_deref(), Some("user:1"));
    Ok(())
}

#[test]
fn lists_are_ordered_by_the_last_message_and_other_writes_do_not_move_a_session() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let at = |minute: u32| format!("2024-01-01T00:{minute:02}:00Z").parse().unwrap();
    for (id, minute) in [("a", 1), ("b", 2), ("c", 3)] {
        bot.session(id)?.append(Message::user("hello").at(at(minute)))?;
    }
    assert_eq!(ids(&bot)?, ["c", "b", "a"]);
    bot.rename(&"a".into(), "First")?;
    bot.tag(&"a".into(), "work")?;
    bot.session("b")?.label("x", &bot.session("b")?.history()?[0].id)?;
    assert_eq!(ids(&bot)?, ["c", "b", "a"]);
    let info = bot.get(&"a".into())?.unwrap();
    assert_eq!(info.last_message_at, Some(at(1)));
    assert!(info.updated_at > at(59));

    bot.session("a")?.append(Message::user("more").at(at(4)))?;
    assert_eq!(ids(&bot)?, ["a", "c", "b"]);
    // A message of the future counts as now, so that it does not stay on top for ever.
    bot.session("b")?.append(Message::user("soon").at("2099-01-01T00:00:00Z".parse().unwrap()))?;
    assert!(bot.get(&"b".into())?.unwrap().last_message_at < Some(chrono::Utc::now()));
    // A fork has the time of the message that it ends with.
    let first = bot.session("c")?.history()?[0].id.clone();
    let fork = bot.fork(&"c".into(), &first, "What if")?;
    assert_eq!(fork.info()?.unwrap().last_message_at, Some(at(3)));
    // Records may be imported in any order.
    let record = |name: &str, minute| (None, Message::user(name).with_id(name).at(at(minute)));
    let chat = bot.session("imported")?;
    chat.import_messages([record("late", 50), record("early", 10)])?;
    assert_eq!(chat.info()?.unwrap().last_message_at, Some(at(50)));
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn counts_follow_every_way_of_writing() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let id = "s".into();
    let chat = bot.session("s")?;
    let count = |id| -> Result<u64> { Ok(bot.get(id)?.map_or(0, |info| info.messages)) };
    let question = chat.append(Message::user("?"))?.id;
    let answers = chat.append_all([Message::assistant("1"), Message::user("2")])?;
    chat.append_to(&question, Message::assistant("other").with_id("o"))?;
    chat.upsert(Message::assistant("changed").with_id("o"))?;
    assert_eq!(count(&id)?, 4);
    let fork = bot.fork(&id, &answers[1].id, "Fork")?;
    assert_eq!(count(fork.id())?, 3);
    chat.delete([&answers[0].id])?; // a tombstone: it has a child
    assert_eq!(count(&id)?, 3);
    let fork = bot.fork(&id, &answers[1].id, "Over a tombstone")?;
    assert_eq!(count(fork.id())?, 2);
    chat.delete_branch(&question)?;
    assert_eq!(count(&id)?, 0);
    chat.append(Message::user("again"))?;
    chat.clear()?;
    assert_eq!((count(&id)?, count(&"unknown".into())?), (0, 0));
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn nothing_finds_a_session_in_the_trash_until_it_is_restored() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let chat =
        bot.create(SessionDetails { owner: Some("u".to_owned()), ..SessionDetails::default() })?;
    let said = chat.append(Message::user("a red door"))?.id;
    let fork = bot.fork(chat.id(), &said, "Fork")?;
    bot.delete(chat.id())?;
    // The copy in the fork is found, although the original is hidden.
    let hits = bot.store().search("door").run()?.hits;
    assert_eq!(hits.iter().map(|hit| &hit.session).collect::<Vec<_>>(), [fork.id()]);
    assert_eq!(hits[0].sessions, [fork.id().clone()]);
    bot.delete(fork.id())?;
    for owner in [None, Some("u")] {
        let search = owner
            .map_or(bot.store().search("door"), |owner| bot.store().search("door").owner(owner));
        assert!(search.run()?.hits.is_empty());
    }
    assert!(bot.store().search("").run()?.hits.is_empty());
    assert!(ids(&bot)?.is_empty());
    assert!(store.sessions()?.is_empty());
    assert_eq!(chat.history()?.len(), 1, "it can still be read");
    assert!(matches!(
        chat.update(Message::user("x").with_id(said)),
        Err(Error::SessionInTrash { .. })
    ));
    assert!(matches!(bot.tag(chat.id(), "x"), Err(Error::SessionInTrash { .. })));
    let trash = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
    assert_eq!(store.list().filter(trash.clone()).limit(10).run()?.sessions.len(), 2);
    bot.restore(chat.id())?;
    assert_eq!(bot.store().search("door").run()?.hits.len(), 1);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn removing_a_session_takes_its_tags_and_bindings_with_it() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let chat = bot.resume("k").open()?;
    bot.tag(chat.id(), "work")?;
    bot.remove(chat.id())?;
    assert!(bot.bindings("k")?.is_empty());
    assert!(bot.store().sessions()?.is_empty());
    assert!(bot.resume("k").run()?.is_new);
    assert_eq!(store.verify(|_| {})?.damages, []);
    assert!(matches!(
        bot.store().change_session(&"unknown".into(), &SessionChange::Pin(true)),
        Err(Error::UnknownSession { .. })
    ));
    Ok(())
}

#[test]
fn threads_that_split_one_session_at_once_get_one_continuation() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = manager(&store)?;
    let chat = bot.resume("telegram:4711").open()?;
    chat.append(Message::user("Until tomorrow!"))?;
    let barrier = Barrier::new(4);
    let split = || {
        barrier.wait();
        bot.compact_and_split(chat.id(), "They said goodbye.")
    };
    let answers: Vec<_> = thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(split));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    let (split, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(
        refused.iter().all(|answer| matches!(answer, Err(Error::InvalidValue { .. }))),
        "{refused:?}"
    );
    assert_eq!((split.len(), bot.store().sessions()?.len()), (1, 2));
    let next = bot.resume("telegram:4711").open()?;
    assert_eq!(split[0].as_ref().ok().map(talktree::Session::id), Some(next.id()));

    bot.store().change_session(chat.id(), &SessionChange::Reopen)?;
    bot.compact_and_split(chat.id(), "They said goodbye again.")?;
    assert_eq!(bot.store().sessions()?.len(), 3);
    Ok(())
}

#[test]
fn the_prompt_of_a_session_has_nothing_of_its_former_owner() -> Result<()> {
    let scratch = Scratch::new()?;
    let open = |store: &Store| {
        let memory = Block::stored().per_owner();
        store.session_builder("s").block("memory", memory).cached_prompt().open()
    };
    let chat = open(&scratch.store)?;
    let own = |owner: Option<&str>| {
        let owner = owner.map(str::to_owned);
        scratch.store.change_session(&"s".into(), &SessionChange::Owner(owner))
    };
    chat.append(Message::user("hello"))?;
    for next in [Some("bob"), None] {
        own(Some("alice"))?;
        if next.is_some() {
            chat.context().set("memory", "A secret of Alice.")?;
        }
        // Open before the change, beside the handle that changes it.
        let other = open(&common::open(&scratch.folder)?)?;
        assert!(chat.prompt()?.contains("secret") && other.prompt()?.contains("secret"));
        own(Some("alice"))?;
        assert!(chat.context().frozen_prompt()?.is_some(), "the owner is the same");
        own(next)?;
        for chat in [&chat, &other] {
            assert!(!chat.prompt()?.contains("secret"), "{next:?}");
        }
    }
    Ok(())
}
