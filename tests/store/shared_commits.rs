//! Threads of one process share commits, and processes wait for each other: what a thread was told must hold for it
//! alone. [`child`] is what the child processes run.

use std::collections::HashSet;
use std::sync::mpsc;
use std::thread;

use crate::common::process::{Other, say, task};
use crate::common::{Scratch, folder};
use crate::tables::Tables;
use talktree::{Change, Durability, Error, Message, Result, Store};

const THREADS: usize = 8;

/// Runs the task of a child process; does nothing as a test.
#[test]
fn child() -> Result<()> {
    let Some((task, store)) = task() else { return Ok(()) };
    let store = Store::options().durability(Durability::Full).open(store)?;
    let count = match task.split_once(' ') {
        Some(("append", count)) => count.parse().unwrap_or(usize::MAX),
        other => panic!("unknown task: {other:?}"),
    };
    in_threads(|thread| append(&store, &format!("{}-{thread}", std::process::id()), count))
}

/// Runs `work` in threads of one process; the first error is returned.
fn in_threads(work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS).map(|at| scope.spawn(move || work(at))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}

/// Appends to a session shared by all, and says each id that was acknowledged.
fn append(store: &Store, name: &str, count: usize) -> Result<()> {
    let chat = store.session("s")?;
    for n in 0..count {
        let message = Message::user(format!("said by {name}")).with_id(format!("{name}-{n}"));
        say(chat.append(message)?.id);
    }
    Ok(())
}

#[test]
fn threads_of_two_processes_neither_lose_nor_double_messages() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let others = [(); 2].map(|()| Other::start("append 20", &path));
    let mut acknowledged = Vec::new();
    for other in others {
        acknowledged.extend(other?.wait());
    }
    assert_eq!(acknowledged.len(), 2 * THREADS * 20);

    let path = Store::open(&path)?.session("s")?.raw_history()?;
    let stored: HashSet<&str> = path.iter().map(|message| message.id.as_str()).collect();
    assert_eq!((path.len(), stored.len()), (acknowledged.len(), acknowledged.len()));
    assert!(acknowledged.iter().all(|id| stored.contains(id.as_str())));
    Ok(())
}

#[test]
fn what_a_killed_process_had_acknowledged_to_its_threads_is_there() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    for round in 0..12 {
        let mut other = Other::start("append for ever", &path)?;
        let mut acknowledged: Vec<String> =
            (0..1 + round * 20).filter_map(|_| other.hear()).collect();
        acknowledged.extend(other.kill());
        let store = Store::open(&path)?;
        let chat = store.session("s")?;
        for id in &acknowledged {
            let found = chat.message(&id.as_str().into())?;
            assert!(found.is_some(), "{id} was acknowledged but is lost");
        }
        let damages = store.verify(|_| {})?.damages;
        assert!(damages.is_empty(), "{damages:?}");
    }
    Ok(())
}

#[test]
fn appends_that_fail_do_not_affect_those_beside_them() -> Result<()> {
    let Scratch { store, folder: _folder, .. } = Scratch::new()?;
    in_threads(|thread| {
        let chat = store.session(format!("chat {thread}"))?;
        for n in 0..40 {
            let message = Message::user("hello").with_id(format!("{n}"));
            if (thread + n) % 3 > 0 {
                assert!(chat.append(message)?.is_new);
                continue;
            }
            let answer = chat.append_to(&"no such message".into(), message);
            assert!(matches!(answer, Err(Error::UnknownMessage { .. })), "{answer:?}");
        }
        Ok(())
    })?;
    for thread in 0..THREADS {
        let path = store.session(format!("chat {thread}"))?.raw_history()?;
        let ids: Vec<usize> = path.iter().map(|m| m.id.as_str().parse().unwrap()).collect();
        let expected: Vec<usize> = (0..40).filter(|n| (thread + n) % 3 > 0).collect();
        assert_eq!(ids, expected);
    }
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn each_thread_calls_the_listeners_of_its_own_append_after_the_commit() -> Result<()> {
    let Scratch { store, folder, .. } = Scratch::new()?;
    let reader = Store::open_read_only(folder.path().join("talk.db"))?;
    let (sender, heard) = mpsc::channel();
    let _subscription = store.subscribe(move |event| {
        let Change::Append { ids } = &event.change else { return };
        let stored = reader.session(event.session.clone()).and_then(|chat| chat.message(&ids[0]));
        let is_stored = stored.is_ok_and(|found| found.is_some());
        let _ = sender.send((thread::current().id(), ids[0].clone(), is_stored));
    });
    let appended = std::sync::Mutex::new(HashSet::new());
    in_threads(|thread| {
        let chat = store.session(format!("chat {thread}"))?;
        for n in 0..20 {
            let id = chat.append(Message::user("hello").with_id(format!("{thread}-{n}")))?.id;
            appended.lock().unwrap().insert((thread::current().id(), id, true));
        }
        Ok(())
    })?;
    let heard: Vec<_> = heard.try_iter().collect();
    assert_eq!(heard.len(), THREADS * 20);
    assert_eq!(heard.into_iter().collect::<HashSet<_>>(), appended.into_inner().unwrap());
    Ok(())
}

/// While many threads wrote, no append found the lock free for the search index, and everything stayed pending.
#[test]
fn messages_are_indexed_while_many_threads_append() -> Result<()> {
    let Scratch { store, folder, .. } = Scratch::new()?;
    in_threads(|thread| {
        let chat = store.session(format!("chat {thread}"))?;
        (0..250).try_for_each(|n| chat.append(Message::user(format!("number {n}"))).map(drop))
    })?;
    let tables = Tables::of(&folder.path().join("talk.db"));
    let pending = tables.value("SELECT coalesce(sum(next - unindexed), 0) FROM session");
    let pending: i64 = pending.parse().unwrap();
    // A debug build indexes more slowly than eight threads append; without any indexing all would be pending.
    assert!(pending < 1_600, "{pending} of {} messages are pending", THREADS * 250);
    Ok(())
}
