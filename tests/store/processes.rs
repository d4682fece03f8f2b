//! Several processes on one store, some of which are killed. [`child`] is what the child processes run.

use std::collections::HashSet;

use crate::common::folder;
use crate::common::process::{Other, say, task};
use talktree::{Error, Message, MessageId, Result, Session, Store};
use talktree_import::ImportOptions;

/// Runs the task of a child process; does nothing as a test.
#[test]
fn child() -> Result<()> {
    let Some((task, store)) = task() else { return Ok(()) };
    let store = Store::open(store)?;
    match task.split_once(' ').unwrap_or((&task, "")) {
        ("echo", _) => echo(&store.session("s")?),
        ("append", name) => append(&store.session("s")?, name, 40),
        ("stream", name) => stream(&store.session(name)?),
        ("append_for_ever", name) => append(&store.session("s")?, name, usize::MAX),
        other => panic!("unknown task: {other:?}"),
    }
}

/// Answers each line with a message.
fn echo(chat: &Session) -> Result<()> {
    for line in std::io::stdin().lines() {
        let line = line.map_err(|source| Error::Io { path: "stdin".into(), source })?;
        say(chat.append(Message::assistant(format!("echo of {line}")))?.id);
    }
    Ok(())
}

/// Appends one by one and in batches, and prints the acknowledged ids.
fn append(chat: &Session, name: &str, count: usize) -> Result<()> {
    for n in 0..count {
        let id = |part: &str| format!("{name}-{n}{part}");
        let text = format!("said by {name}, {}", "word ".repeat(n % 300));
        match n % 4 {
            0 => {
                let pair = ["a", "b"].map(|part| Message::user(text.as_str()).with_id(id(part)));
                for answer in chat.append_all(pair)? {
                    say(answer.id);
                }
            }
            _ => say(chat.append(Message::user(text).with_id(id("")))?.id),
        }
    }
    Ok(())
}

/// Streams a reply that does not end, and prints how many bytes it has after each piece.
fn stream(chat: &Session) -> Result<()> {
    chat.append(Message::user("Count."))?;
    let id = chat.begin(Message::assistant(""))?.id;
    for count in 1.. {
        let text = "number ".repeat(600 * count);
        let bytes = text.len();
        chat.save(Message::assistant(text).with_id(id.clone()))?;
        say(bytes);
    }
    Ok(())
}

#[test]
fn another_process_reads_and_finds_an_appended_message_at_once() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    chat.append(Message::user("hello"))?;
    let mut other = Other::start("echo", &path)?;
    for word in ["elephant", "故宫", "zebra"] {
        other.tell(word);
        let id = MessageId::from(other.hear().unwrap_or_default());
        let history = chat.history()?;
        let last = history.last();
        assert_eq!(last.map(|m| (&m.id, m.text())), Some((&id, format!("echo of {word}"))));
        assert_eq!(chat.head()?.as_ref(), Some(&id));
        let found = store.search(word).run()?;
        assert_eq!(found.hits.iter().map(|hit| &hit.id).collect::<Vec<_>>(), [&id]);
        // The child also sees the next message of this process.
        let reply = chat.append(Message::user(format!("{word}, you say?")))?.id;
        assert_eq!(chat.message(&reply)?.and_then(|message| message.parent), Some(id));
    }
    other.wait();
    assert_eq!(chat.path_length()?, 7);
    Ok(())
}

#[test]
fn processes_that_append_at_once_neither_lose_nor_double_messages() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    // The store does not exist yet, so the processes race to create it.
    let others = ["a", "b", "c", "d"].map(|name| Other::start(&format!("append {name}"), &path));
    let mut acknowledged = Vec::new();
    for other in others {
        acknowledged.extend(other?.wait());
    }
    assert_eq!(acknowledged.len(), 4 * 50);

    let path = Store::open(&path)?.session("s")?.raw_history()?;
    let stored: HashSet<&str> = path.iter().map(|message| message.id.as_str()).collect();
    assert_eq!((path.len(), stored.len()), (200, 200));
    assert!(acknowledged.iter().all(|id| stored.contains(id.as_str())));
    Ok(())
}

#[test]
fn acknowledged_messages_survive_a_killed_process() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let mut acknowledged = Vec::new();
    for round in 0..20 {
        let mut other = Other::start(&format!("append_for_ever {round}"), &path)?;
        for _ in 0..1 + round * 3 {
            acknowledged.extend(other.hear());
        }
        acknowledged.extend(other.kill());

        let store = Store::open(&path)?;
        let chat = store.session("s")?;
        let stored: Vec<Message> = chat.raw_history()?;
        let ids: HashSet<&str> = stored.iter().map(|message| message.id.as_str()).collect();
        assert_eq!(ids.len(), stored.len());
        for id in &acknowledged {
            assert!(ids.contains(id.as_str()), "{id} was acknowledged but is lost");
        }
        // A transaction is stored completely or not at all.
        for id in ids.iter().filter_map(|id| id.strip_suffix('a')) {
            assert!(ids.contains(format!("{id}b").as_str()), "half of an append_all was stored");
        }
        chat.append(Message::user("after").with_id(format!("after {round}")))?;
    }
    assert!(acknowledged.len() > 500, "only {} messages were acknowledged", acknowledged.len());
    let verified = Store::open(&path)?.verify(|_| {})?;
    assert!(verified.damages.is_empty(), "{:?}", verified.damages);
    Ok(())
}

/// What had arrived was the last message that the model saw next, and it went on with it.
#[test]
fn a_reply_whose_process_is_killed_is_offered_and_in_no_history() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    for round in 0..6 {
        let name = round.to_string();
        let mut other = Other::start(&format!("stream {name}"), &path)?;
        let mut acknowledged: Vec<String> = (0..=2 * round).filter_map(|_| other.hear()).collect();
        acknowledged.extend(other.kill());

        let store = Store::open(&path)?;
        let chat = store.session(name)?;
        let unfinished = chat.unfinished()?;
        let [reply] = unfinished.as_slice() else { panic!("{unfinished:?}") };
        let bytes = acknowledged.last().and_then(|bytes| bytes.parse().ok());
        assert!(bytes.is_some_and(|bytes| reply.text().len() >= bytes), "{acknowledged:?}");
        let is_shown = || -> Result<bool> {
            assert_eq!(chat.history()?[0].text(), "Count.");
            Ok(chat.history()?.len() > 1)
        };
        assert!(!is_shown()?);
        match round % 2 {
            0 => chat.discard(&reply.id)?,
            _ => chat.finish(reply.clone())?,
        }
        assert_eq!((chat.unfinished()?.len(), is_shown()?), (0, round % 2 == 1));
        assert_eq!(chat.raw_history()?.len(), 1 + round % 2);
        assert_eq!(chat.append(Message::user("Go on."))?.id, chat.history()?[1 + round % 2].id);
        assert_eq!(store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

/// When a process closes any descriptor of a file, the system drops all its locks on that file. `Store::open` once opened
/// and closed the file before SQLite did, which dropped the locks of stores that were already open. An SQLite in another
/// process then took itself for the last user when it closed the file, and removed the write-ahead log.
#[cfg(target_os = "linux")]
#[test]
fn opening_a_store_twice_keeps_the_locks_of_the_first_handle() -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let store = Store::open(&path)?;
    store.session("s")?.append(Message::user("hello"))?;
    let io = |source| Error::Io { path: path.clone(), source };
    let own = format!(" {} ", std::process::id());
    let inode = format!(":{} ", std::fs::metadata(&path).map_err(io)?.ino());
    let has_lock = || -> Result<bool> {
        let locks = std::fs::read_to_string("/proc/locks").map_err(io)?;
        Ok(locks.lines().any(|lock| lock.contains(&own) && lock.contains(&inode)))
    };
    // The system lists the locks in parts: one can be missing if others are taken and given back meanwhile.
    let keeps_lock = || (0..100).try_fold(false, |found, _| Ok(found || has_lock()?));
    assert!(keeps_lock()?);
    let _again = Store::open(&path)?;
    let _reader = Store::open_read_only(&path)?;
    assert!(keeps_lock()?);
    // An import opens no file of an open store, whatever it is called.
    let beside = |suffix: &str| folder.path().join(format!("talk.db{suffix}"));
    std::fs::hard_link(&path, beside("-second")).map_err(io)?;
    std::os::unix::fs::symlink(&path, beside("-link")).map_err(io)?;
    for name in ["", "-wal", "-shm", "-second", "-link"].map(beside) {
        let other = Store::open_in_memory()?;
        let refused = talktree_import::import(&other, &name, &ImportOptions::default(), |_| {});
        assert!(
            matches!(&refused, Err(Error::Import { why, .. }) if why.contains("has open")),
            "{name:?}: {refused:?}"
        );
    }
    assert!(keeps_lock()?);
    Ok(())
}
