//! A store with every kind of content, and one attempt at a verb while a fault is active.
//!
//! The store is copied into a fresh file, the fault begins, the verb runs, the fault ends. What the verb returned must
//! be true, the same handle must keep working, and the reopened file must hold the same and be sound.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use talktree::{Durability, Error, Message, Store};

use crate::scratch::scratch;
use crate::verbs::{Verb, fill};
use crate::{Result, snapshot};

/// Opening an existing store and creating one. Their `run` does nothing: the fault is active while the store opens.
pub(crate) const OPENINGS: [Verb; 2] = [OPEN, CREATE];
const OPEN: Verb =
    Verb { name: "open", changes: false, run: |_, _| Ok(String::new()), first: None };
const CREATE: Verb =
    Verb { name: "create", changes: false, run: |_, _| Ok(String::new()), first: None };

/// The counts of one kind of failure.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) injected: u64,
    pub(crate) failed: u64,
    pub(crate) succeeded: u64,
    /// Verbs that failed although their whole effect was committed.
    pub(crate) committed: u64,
    /// Appends that succeeded and whose automatic compaction failed.
    pub(crate) without_compaction: u64,
    pub(crate) errors: BTreeMap<String, u64>,
}

/// The store that each attempt starts from.
pub(crate) struct Fixture {
    bytes: Vec<u8>,
    /// Its snapshot.
    held: String,
    folder: tempfile::TempDir,
}

/// What makes a verb fail.
pub(crate) trait Trouble {
    /// Activates the fault.
    fn begin(&self);
    /// Deactivates the fault and returns how often it struck.
    fn end(&self) -> u64;
    /// Returns whether the verb must fail with [`Error::DiskFull`].
    fn is_full_disk(&self) -> bool;
}

/// One attempt at a verb.
#[derive(Clone, Copy)]
pub(crate) struct Try<'a> {
    pub(crate) verb: &'a Verb,
    pub(crate) trouble: &'a dyn Trouble,
    pub(crate) expected: &'a Expected,
}

/// What a verb returns, and the snapshot afterwards, if nothing fails.
#[derive(Default)]
pub(crate) struct Expected {
    answer: String,
    after: String,
    /// The same for its first commit, if the second may fail without failing the verb.
    first: Option<(String, String)>,
}

impl Expected {
    /// Returns whether `now` is the snapshot after the first commit alone.
    fn is_without_compaction(&self, now: &str) -> bool {
        self.first.as_ref().is_some_and(|(_, after)| after == now)
    }
}

fn open(path: &Path) -> talktree::Result<Store> {
    Store::options().durability(Durability::Full).open(path)
}

impl Fixture {
    pub(crate) fn new() -> Result<Self> {
        let folder = scratch()?;
        let path = folder.path().join("made.db");
        let store = open(&path)?;
        fill(&store, "")?;
        let held = snapshot(&store)?;
        drop(store);
        Ok(Self { bytes: std::fs::read(&path)?, held, folder })
    }

    /// Copies the store into a fresh file.
    pub(crate) fn copy(&self) -> Result<PathBuf> {
        for entry in std::fs::read_dir(self.folder.path())? {
            std::fs::remove_file(entry?.path())?;
        }
        let path = self.folder.path().join("talk.db");
        std::fs::write(&path, &self.bytes)?;
        Ok(path)
    }

    /// Returns a path at which no file exists yet.
    fn spare(&self) -> PathBuf {
        self.folder.path().join("copy.db")
    }

    /// Runs a verb without a fault and returns what to expect of it.
    pub(crate) fn expected(&self, verb: &Verb) -> Result<Expected> {
        if verb.name == CREATE.name {
            return Ok(Expected::default());
        }
        let run = |run: crate::verbs::Run| -> Result<(String, String)> {
            let store = open(&self.copy()?)?;
            let answer = run(&store, &self.spare())?;
            Ok((answer, snapshot(&store)?))
        };
        let (answer, after) = run(verb.run)?;
        let first = verb.first.map(run).transpose()?;
        let expected = Expected { answer, after, first };
        if verb.changes == (expected.after == self.held)
            || expected.is_without_compaction(&expected.after)
        {
            return Err(format!("the verb {} does not change what it should", verb.name).into());
        }
        Ok(expected)
    }

    /// Runs a verb under a fault; returns whether a call failed.
    pub(crate) fn attempt(&self, one: Try<'_>, figures: &mut Figures) -> Result<bool> {
        let mut path = self.copy()?;
        let mut held = self.held.as_str();
        if one.verb.name == CREATE.name {
            (path, held) = (self.spare(), "");
        }
        let is_opening = OPENINGS.iter().any(|opening| opening.name == one.verb.name);
        if is_opening {
            one.trouble.begin();
        }
        let opened = open(&path);
        let store = match opened {
            Ok(store) => store,
            Err(error) => {
                if one.trouble.end() == 0 {
                    return Err(error.into());
                }
                figures.failed += 1;
                count_error(figures, &error);
                expect(held, &snapshot(&open(&path)?)?, "the store after a failed opening")?;
                return Ok(true);
            }
        };
        if !is_opening {
            one.trouble.begin();
        }
        let answer = (one.verb.run)(&store, &self.spare());
        let struck = one.trouble.end();
        if struck == 0 {
            return Ok(false);
        }
        let now = snapshot(&store)?;
        let expected = one.expected;
        match &answer {
            Ok(answer) => {
                figures.succeeded += 1;
                let is_first = expected.first.as_ref().is_some_and(|(first, _)| first == answer);
                if is_first && expected.is_without_compaction(&now) {
                    figures.without_compaction += 1;
                } else {
                    // The compaction may have been committed although its failure was reported.
                    if !is_first {
                        expect(&expected.answer, answer, "the return value")?;
                    }
                    expect(&expected.after, &now, "the store after a success")?;
                }
            }
            Err(error) => {
                figures.failed += 1;
                count_error(figures, error);
                if one.trouble.is_full_disk() && !matches!(error, Error::DiskFull) {
                    return Err(format!("a full disk is reported as: {error}").into());
                }
                if one.verb.changes
                    && (now == expected.after || expected.is_without_compaction(&now))
                {
                    figures.committed += 1;
                } else {
                    expect(held, &now, "the store after a failure")?;
                }
            }
        }
        self.check_backup(one, answer.is_ok())?;
        self.keeps_working(&store, &path, &now)?;
        Ok(true)
    }

    /// Checks that a backup is complete or absent.
    fn check_backup(&self, one: Try<'_>, is_done: bool) -> Result<()> {
        if one.verb.name != "backup" {
            return Ok(());
        }
        if is_done {
            return expect(&self.held, &snapshot(&open(&self.spare())?)?, "the backup");
        }
        for entry in std::fs::read_dir(self.folder.path())? {
            let name = entry?.file_name();
            if name.to_string_lossy().starts_with("copy") {
                return Err(format!("a backup that failed left {name:?} behind").into());
            }
        }
        Ok(())
    }

    /// Checks that the handle still works, that other handles see the same, and that a reopened store holds the same.
    fn keeps_working(&self, store: &Store, path: &Path, now: &str) -> Result<()> {
        let other = open(path)?;
        expect(now, &snapshot(&other)?, "the store in another handle")?;
        other.session("other")?.append(Message::user("the lock is free"))?;
        store.session("same")?.append(Message::user("works again"))?;
        let found = store.search("works again").run()?.hits.len();
        if found != 1 {
            return Err(format!(
                "a search finds {found} of the 1 message appended after the fault"
            )
            .into());
        }
        let held = snapshot(store)?;
        drop((other, store.clone()));
        let again = open(path)?;
        expect(&held, &snapshot(&again)?, "the reopened store")?;
        let verified = again.verify(|_| {})?;
        match verified.damages.first() {
            Some(damage) => Err(format!("damage: {damage:?}").into()),
            None => Ok(()),
        }
    }
}

/// Counts an error by its text, without the path or page that it names.
fn count_error(figures: &mut Figures, error: &Error) {
    let text = error.to_string();
    let words = match text.contains("unable to get the page") {
        true => "a page could not be read",
        false => text.split(": /").next().unwrap_or_default(),
    };
    *figures.errors.entry(words.to_owned()).or_default() += 1;
}

/// Compares two texts; the error shows the first line that differs.
pub(crate) fn expect(expected: &str, found: &str, what: &str) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let differing = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
    let counts = (expected.lines().count(), found.lines().count());
    Err(format!("{what} differs: {counts:?} lines, first {differing:?}").into())
}
