//! What must hold once an erasure that was killed is finished.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use talktree::{Erasure, Message, Store};

use super::fixture::{self, KEPT, Size, Verb};
use crate::Result;

/// What a killed process left of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// The erasure has deleted nothing.
    Untouched,
    /// There is something to finish.
    Begun,
    /// There is nothing to finish.
    Complete,
}

/// Who uses the store while the erasure is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meanwhile {
    Nothing,
    /// A handle that has searched before appends and searches.
    Writer,
    /// A reader keeps the state before, until the first attempt is over.
    Reader,
}

/// Finishes what a killed process left; returns also what is wrong then.
pub(super) fn finished(
    store: Store,
    path: &Path,
    size: Size,
    verb: Verb,
    meanwhile: Meanwhile,
) -> Result<(Left, Vec<String>)> {
    let mut wrong = Vec::new();
    let left = match (store.has_unfinished_erasure()?, fixture::size(&store)?.owned) {
        (true, _) => Left::Begun,
        (false, owned) if owned == size.owned => return Ok((Left::Untouched, wrong)),
        (false, 0) => Left::Complete,
        (false, some) => {
            wrong.push(format!("{some} messages are left, and nothing is to be finished"));
            return Ok((Left::Complete, wrong));
        }
    };
    let added = match meanwhile {
        Meanwhile::Nothing => {
            finish(&store, &mut wrong)?;
            0
        }
        Meanwhile::Writer => beside_writer(&store, path, &mut wrong)?,
        Meanwhile::Reader => {
            beside_reader(&store, path, &mut wrong)?;
            0
        }
    };
    if verb == Verb::RetentionRemoves {
        // Its usage stays the owner's.
        let _ = store.erase(&Erasure::owner(fixture::OWNER).and(Erasure::deleted()))?;
    }
    if store.has_unfinished_erasure()? {
        wrong.push("there is still something to finish".to_owned());
    }
    check_bytes(path, &mut wrong)?;
    check_rest(&store, size.others + added, &mut wrong)?;
    check_terms(&store, path, &mut wrong)?;
    drop(store);
    check_bytes(path, &mut wrong)?;
    Ok((left, wrong))
}

fn finish(store: &Store, wrong: &mut Vec<String>) -> Result<()> {
    if !store.finish_erasure()? {
        wrong.push("the erasure cannot be finished".to_owned());
    }
    Ok(())
}

/// Finishes while another handle appends and searches; returns how many messages it has appended.
fn beside_writer(store: &Store, path: &Path, wrong: &mut Vec<String>) -> Result<u64> {
    let other = Store::open(path)?;
    // It remembers the erased words, and has indexed pending messages.
    other.search(KEPT).run()?;
    let is_over = AtomicBool::new(false);
    let added = std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> talktree::Result<u64> {
            let chat = other.session("meanwhile")?;
            let mut added = 0;
            loop {
                let is_last = is_over.load(Ordering::Relaxed);
                chat.append(Message::user(format!("{KEPT} of word{}", added % 100)))?;
                added += 1;
                other.search(KEPT).run()?;
                if is_last {
                    return Ok(added);
                }
            }
        });
        let done = finish(store, wrong);
        is_over.store(true, Ordering::Relaxed);
        let added = writer.join().map_err(|_| "the writer panicked")??;
        done.map(|()| added)
    })?;
    Ok(added)
}

/// Finishes while a reader keeps an old state of the log, and again afterwards.
fn beside_reader(store: &Store, path: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let reader = Connection::open(path)?;
    reader.execute_batch("BEGIN; SELECT count(*) FROM setting")?;
    let is_complete = store.finish_erasure()?;
    if is_complete && !marks_in_files(path)?.is_empty() {
        wrong.push("the erasure is complete, and the log has erased text".to_owned());
    }
    reader.execute_batch("COMMIT")?;
    finish(store, wrong)
}

fn marks_in_files(path: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // Another process reads the file: to close a descriptor here would drop SQLite's locks.
        let read = std::process::Command::new("cat").arg(&name).output()?.stdout;
        let bytes = read.to_ascii_lowercase();
        for mark in fixture::marks() {
            if let Some(at) = find(&bytes, mark.as_bytes()) {
                let around = &bytes[at.saturating_sub(32)..bytes.len().min(at + 40)];
                let around = around.escape_ascii();
                found.push(format!("{mark} is in talk.db{suffix} at {at}: {around}"));
            }
        }
    }
    Ok(found)
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == mark[0]) {
        let at = from + at;
        if bytes[at..].starts_with(mark) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

fn check_bytes(path: &Path, wrong: &mut Vec<String>) -> Result<()> {
    wrong.extend(marks_in_files(path)?);
    Ok(())
}

/// Checks that all else is there, and that nothing is damaged.
fn check_rest(store: &Store, others: u64, wrong: &mut Vec<String>) -> Result<()> {
    let is = fixture::size(store)?;
    if is != (Size { owned: 0, others }) {
        wrong.push(format!("{is:?} messages are left, not {others}"));
    }
    let hits = store.search(KEPT).limit(10_000).run()?.hits.len() as u64;
    if hits != others {
        wrong.push(format!("a search finds {hits} of {others} messages"));
    }
    wrong.extend(store.verify(|_| {})?.damages.iter().map(|damage| format!("{damage:?}")));
    Ok(())
}

/// Checks that the table of terms has those of all messages, and no others.
fn check_terms(store: &Store, path: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let words = || -> Result<Vec<String>> {
        let sqlite = Connection::open(path)?;
        let mut statement = sqlite.prepare("SELECT term FROM term ORDER BY term")?;
        let words = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(words)
    };
    let found = words()?;
    store.rebuild_search()?;
    let should = words()?;
    if found != should {
        let (found, should) = (found.len(), should.len());
        wrong.push(format!("the table of terms has {found}, not {should}"));
    }
    Ok(())
}
