//! The search index of a store that another version wrote is built again, in batches, while others read and write.

use std::path::Path;

use crate::common::folder;
use crate::common::process::{Other, say, task};
use crate::tables::Tables;
use talktree::{Message, Progress, Result, Store};

/// How many messages the stores have: more than the first two batches.
const MESSAGES: u64 = 10_000;

/// Runs the task of a child process; does nothing as a test.
#[test]
fn child() -> Result<()> {
    let Some((_, path)) = task() else { return Ok(()) };
    let store = Store::open(path)?;
    store.index(|at| {
        say(format!("{} of {}", at.done, at.total));
        // After the first batch it waits, until it is killed.
        if at.done > 0 {
            let _ = std::io::stdin().lines().next();
        }
    })
}

/// Makes a store whose index is of another version.
fn old_store(path: &Path) -> Result<()> {
    let store = Store::open(path)?;
    for session in ["a", "b"] {
        let texts = (0..MESSAGES / 2).map(|n| Message::user(format!("A fox of {session}, {n}")));
        store.session(session)?.append_all(texts)?;
    }
    store.index(|_| {})?;
    drop(store);
    let change = "UPDATE setting SET value = '1' WHERE name = 'index_version'";
    assert_eq!(Tables::of(path).run(change), 1);
    Ok(())
}

fn found(store: &Store, text: &str) -> Result<usize> {
    Ok(store.search(text).limit(2 * MESSAGES as usize).run()?.hits.len())
}

#[test]
fn an_old_index_is_rebuilt_with_progress_while_others_search_and_write() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    old_store(&path)?;
    let store = Store::open(&path)?;
    // One that is read-only leaves the rebuild to the first.
    let (writer, reader) = (Store::open(&path)?, Store::open_read_only(&path)?);
    let chat = writer.session("new")?;
    let (mut all, mut failure): (Vec<Progress>, _) = (Vec::new(), None);
    store.index(|at| {
        let number = all.len();
        let used = chat
            .append(Message::user(format!("A late owl{number}")))
            .and_then(|_| Ok((found(&reader, "fox")?, found(&reader, &format!("owl{number}"))?)));
        match used {
            Ok(counts) => assert_eq!(counts, (MESSAGES as usize, 1), "{at:?}"),
            Err(error) => failure = Some(error),
        }
        all.push(at);
    })?;
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!((all[0].done, all[0].total), (0, MESSAGES));
    assert!(
        all.windows(2).all(|pair| pair[0].done < pair[1].done || pair[1].done == pair[1].total)
    );
    let last = all[all.len() - 1];
    assert_eq!(last.done, last.total);
    // Nothing is left.
    store.index(|at| assert!(at.total < MESSAGES / 2, "{at:?}"))?;
    assert_eq!(found(&store, "fox")?, MESSAGES as usize);
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn a_rebuild_that_is_killed_goes_on() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    old_store(&path)?;
    let mut other = Other::start("index", &path)?;
    assert_eq!(other.hear(), Some(format!("0 of {MESSAGES}")));
    let line = other.hear().unwrap_or_default();
    let done: u64 = line.split(' ').next().and_then(|done| done.parse().ok()).unwrap_or_default();
    assert!(done > 0 && done < MESSAGES, "{line}");
    other.kill();

    let store = Store::open(&path)?;
    let mut all: Vec<Progress> = Vec::new();
    store.index(|at| all.push(at))?;
    assert_eq!((all[0].done, all[0].total), (0, MESSAGES - done));
    assert!(all.len() > 1 && all[all.len() - 1].done == MESSAGES - done, "{all:?}");
    assert_eq!(found(&store, "fox")?, MESSAGES as usize);
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn a_search_without_a_rebuild_finds_everything_in_an_old_store() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    old_store(&path)?;
    // A handle that is read-only cannot rebuild it: what the version change emptied is found all the same.
    drop(Store::open(&path)?);
    let reader = Store::open_read_only(&path)?;
    reader.index(|at| panic!("{at:?}"))?;
    assert_eq!(found(&reader, "fox")?, MESSAGES as usize);
    assert_eq!(found(&Store::open(&path)?, "fox")?, MESSAGES as usize);
    Ok(())
}
