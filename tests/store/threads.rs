//! Many threads on one store.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Scratch, folder};
use crate::tables::Tables;
use talktree::{Durability, Error, Message, MessageId, Result, Session, Store};

const THREADS: usize = 6;
const EACH: usize = 60;

/// Runs `work` in several threads that begin together.
fn in_threads(count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let start = Barrier::new(count);
    let run = |at| {
        start.wait();
        work(at)
    };
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..count).map(|at| scope.spawn(move || run(at))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(answer) => answer,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn numbered(thread: usize, n: usize) -> Message {
    Message::user(format!("{n}")).with_id(format!("{thread}-{n}"))
}

#[test]
fn handles_are_cheap_and_shared() {
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    is_shared::<Store>();
    is_shared::<Session>();
}

#[test]
fn appends_of_many_threads_to_one_session_make_one_path() -> Result<()> {
    for store in [Scratch::new()?.store, Store::open_in_memory()?] {
        let chat = store.session("s")?;
        in_threads(THREADS, |thread| {
            for n in 0..EACH {
                assert!(chat.append(numbered(thread, n))?.is_new);
            }
            Ok(())
        })?;
        let path = chat.raw_history()?;
        assert_eq!(path.len(), THREADS * EACH);
        for thread in 0..THREADS {
            let own = path.iter().filter(|m| m.id.as_str().starts_with(&format!("{thread}-")));
            let numbers: Vec<usize> =
                own.filter_map(|message| message.text().parse().ok()).collect();
            assert!(numbers.is_sorted(), "the messages of one thread stay in order");
        }
        assert_eq!(store.stats()?.branching_messages, 0);
    }
    Ok(())
}

#[test]
fn threads_with_one_session_each_do_not_mix_messages() -> Result<()> {
    let scratch = Scratch::new()?;
    in_threads(THREADS, |thread| {
        let chat = scratch.store.session(format!("chat {thread}"))?;
        for n in 0..EACH {
            chat.append(numbered(thread, n))?;
            assert_eq!(chat.path_length()?, n as u64 + 1);
        }
        Ok(())
    })?;
    assert_eq!(scratch.store.sessions()?.len(), THREADS);
    for thread in 0..THREADS {
        let path = scratch.store.session(format!("chat {thread}"))?.raw_history()?;
        assert_eq!(path.len(), EACH);
        assert!(path.iter().all(|message| message.id.as_str().starts_with(&format!("{thread}-"))));
    }
    Ok(())
}

#[test]
fn readers_see_prefixes_while_others_append() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    let is_done = AtomicBool::new(false);
    in_threads(4, |thread| {
        if thread == 0 {
            for n in 0..200 {
                chat.append_all([numbered(n, 0), numbered(n, 1)])?;
            }
            is_done.store(true, Ordering::SeqCst);
            return Ok(());
        }
        let mut longest = 0;
        while !is_done.load(Ordering::SeqCst) {
            let path = chat.raw_history()?;
            assert!(path.len() >= longest, "no message disappears");
            assert!(path.len().is_multiple_of(2), "both messages of a transaction appear together");
            for (at, message) in path.iter().enumerate() {
                assert_eq!(*message.id.as_str(), *format!("{}-{}", at / 2, at % 2));
            }
            longest = path.len();
        }
        Ok(())
    })?;
    assert_eq!(chat.path_length()?, 400);
    Ok(())
}

#[test]
fn of_racing_appends_to_one_head_exactly_one_wins() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    for round in 0..10 {
        let head = chat.head()?;
        let wins = AtomicUsize::new(0);
        in_threads(THREADS, |thread| {
            match chat.append_if_head(head.as_ref(), numbered(thread, round)) {
                Ok(_) => wins.fetch_add(1, Ordering::SeqCst),
                Err(Error::HeadMoved { expected, found }) => {
                    assert_eq!(expected, head);
                    assert_ne!(found, head);
                    0
                }
                Err(error) => return Err(error),
            };
            Ok(())
        })?;
        assert_eq!(wins.load(Ordering::SeqCst), 1);
    }
    assert_eq!(chat.path_length()?, 10);
    Ok(())
}

#[test]
fn of_racing_appends_of_one_id_exactly_one_is_new() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    let wins = AtomicUsize::new(0);
    in_threads(THREADS, |_| {
        let is_new = chat.append(Message::user("same").with_id("same"))?.is_new;
        wins.fetch_add(usize::from(is_new), Ordering::SeqCst);
        Ok(())
    })?;
    assert_eq!((wins.into_inner(), chat.path_length()?), (1, 1));
    Ok(())
}

#[test]
fn every_verb_at_once_leaves_a_sound_tree() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    let root = chat.append(Message::user("root").with_id("root"))?.id;
    in_threads(THREADS, |thread| {
        for n in 0..EACH / 2 {
            let id = chat.append_to(&root, numbered(thread, n))?.id;
            chat.append_to(&id, Message::user("reply"))?;
            match thread % 3 {
                0 => drop(chat.delete([&id])?),
                1 => drop(chat.add_compaction("summary", &id, &id)?),
                _ => drop((chat.checkout(&id)?, chat.label("here", &id)?)),
            }
            chat.undo_head()?;
            chat.history()?;
        }
        Ok(())
    })?;
    let all: Vec<Message> = chat.all_messages().collect::<Result<_>>()?;
    let ids: HashSet<&MessageId> = all.iter().map(|message| &message.id).collect();
    assert_eq!(ids.len(), 1 + THREADS * (EACH / 2) + THREADS / 3 * 2 * (EACH / 2));
    assert!(
        all.iter().skip(1).all(|message| ids.contains(message.parent.as_ref().unwrap_or(&root)))
    );
    assert_eq!(chat.branches(&root)?.len(), THREADS * (EACH / 2));
    Ok(())
}

#[test]
fn a_panic_in_a_listener_does_not_lock_the_store() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let subscription = chat.subscribe(|_| panic!("the listener fails"));
    let writer = Arc::new(chat.clone());
    // The append is committed, so the panic of the listener does not reach its thread.
    let joined = thread::spawn(move || writer.append(Message::user("heard"))).join();
    assert!(joined.unwrap()?.is_new);
    drop(subscription);
    chat.append(Message::user("after"))?;
    assert_eq!(chat.path_length()?, 2);
    Ok(())
}

/// SQLite restarts its log only when it is fully checkpointed and nobody reads: with a reader at every moment it grew to
/// hundreds of megabytes in seconds.
#[test]
fn the_log_stays_short_with_a_reader_at_every_moment() -> Result<()> {
    let scratch = Scratch::new()?;
    let path = scratch.folder.path().join("talk.db");
    let store = Store::options().durability(Durability::Normal).open(&path)?;
    let chat = store.session("s")?;
    let text = "a word or two ".repeat(1_000);
    let is_over = AtomicBool::new(false);
    let read = || {
        let reader = rusqlite::Connection::open(&path).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            reader.execute_batch("BEGIN; SELECT count(*) FROM session").unwrap();
            thread::sleep(Duration::from_millis(10));
            reader.execute_batch("COMMIT").unwrap();
        }
    };
    let largest = thread::scope(|scope| {
        let _readers = [scope.spawn(read), scope.spawn(read), scope.spawn(read)];
        let mut largest = 0;
        let mut write = || -> Result<()> {
            for _ in 0..3_000 {
                chat.append(Message::user(text.as_str()))?;
                let log = std::fs::metadata(path.with_extension("db-wal"));
                largest = largest.max(log.map_or(0, |log| log.len()));
            }
            Ok(())
        };
        let answer = write();
        is_over.store(true, Ordering::Relaxed);
        answer.map(|()| largest)
    })?;
    assert!(largest > 1 << 20 && largest < 32 << 20, "the log grew to {largest} bytes");
    Ok(())
}

/// SQLite's busy handler backs off to ten attempts per second, so it gets a contended lock only by luck: among sixteen
/// processes that wrote without a pause some waited for eleven seconds.
#[test]
fn a_waiting_writer_gets_a_lock_that_is_free_only_for_moments() -> Result<()> {
    let scratch = Scratch::new()?;
    let path = scratch.folder.path().join("talk.db");
    let chat = scratch.store.session("s")?;
    let is_over = AtomicBool::new(false);
    let waited = thread::scope(|scope| {
        scope.spawn(|| {
            let mut holder = Tables::of(&path).locker();
            while !is_over.load(Ordering::Relaxed) {
                holder.lock();
                thread::sleep(Duration::from_millis(15));
                holder.unlock();
                thread::sleep(Duration::from_micros(1_500));
            }
        });
        let append = |n| {
            // Appends start at varying moments of the holder's cycle.
            thread::sleep(Duration::from_millis(7));
            let began = Instant::now();
            chat.append(numbered(0, n)).map(|_| began.elapsed())
        };
        let answer: Result<Duration> = (0..40).map(append).sum();
        is_over.store(true, Ordering::Relaxed);
        answer
    })?;
    assert!(waited < Duration::from_secs(5), "40 appends waited {waited:?}");
    Ok(())
}

/// The threads of a process waited for each other first, and then one after the other for the other process: the last
/// of sixteen heard after sixteen timeouts that it had waited for one.
#[test]
fn every_waiter_of_a_busy_store_hears_how_long_it_has_waited() -> Result<()> {
    let timeout = Duration::from_millis(300);
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let chat = Store::options().busy_timeout(timeout).open(&path)?.session("s")?;
    let first = chat.append(numbered(0, 0))?.id;
    let mut other = Tables::of(&path).locker();
    other.lock();
    in_threads(16, |thread| {
        let asked = Instant::now();
        // A delete shares its commit with nobody.
        let answer = match thread % 4 {
            0 => chat.delete([&first]).map(drop),
            _ => chat.append(numbered(thread, 1)).map(drop),
        };
        let elapsed = asked.elapsed();
        let Err(Error::Busy { waited_ms }) = answer else { panic!("{answer:?}") };
        let waited = Duration::from_millis(waited_ms);
        assert!(waited >= timeout && waited <= elapsed, "{waited:?} of {elapsed:?}");
        assert!(waited < timeout * 8, "{waited:?}");
        Ok(())
    })?;
    other.unlock();
    chat.append(numbered(0, 1))?;
    assert_eq!(chat.path_length()?, 2);
    Ok(())
}
