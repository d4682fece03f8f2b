//! One case: one corruption of a file, and every read of what is left.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use rusqlite::{Connection, Row};
use talktree::{Durability, Message, Store};

use super::answers::{Answers, ReportedError};
use super::corruption::Corruption;
use crate::Result;

/// The sound store, and the results of all reads.
pub(super) struct Baseline {
    pub(super) bytes: Vec<u8>,
    pub(super) sessions: Vec<String>,
    pub(super) messages: u64,
    pub(super) answers: Answers,
    /// The table or index of each page, counted from 1; free pages are missing.
    pages: BTreeMap<usize, String>,
}

impl Baseline {
    /// Reads everything from a copy of the sound store, because a search updates the index.
    pub(super) fn survey(path: &Path, sessions: Vec<String>) -> Result<Self> {
        let bytes = std::fs::read(path)?;
        let pages = pages(path)?;
        let copy = path.with_extension("copy");
        std::fs::write(&copy, &bytes)?;
        let store = open(&copy)?;
        let verified = store.verify(|_| {})?;
        if let Some(damage) = verified.damages.first() {
            return Err(format!("the store is damaged before it was corrupted: {damage:?}").into());
        }
        let answers = Answers::of(&store, &sessions);
        if let Some((asked, error)) = answers.errors().next() {
            return Err(format!("in the sound store, {asked} fails with {error:?}").into());
        }
        Ok(Self { bytes, sessions, messages: verified.messages, answers, pages })
    }

    /// Returns the part of the file that a corruption hits.
    pub(super) fn part(&self, corruption: Corruption) -> &str {
        match corruption {
            Corruption::Flip { place: ..100, .. } => "header",
            _ => corruption
                .page()
                .map_or("end", |page| self.pages.get(&(page + 1)).map_or("free", String::as_str)),
        }
    }
}

fn pages(path: &Path) -> Result<BTreeMap<usize, String>> {
    let sqlite = Connection::open(path)?;
    let mut statement = sqlite.prepare("SELECT pageno, name, pagetype FROM dbstat")?;
    let page = |row: &Row<'_>| -> rusqlite::Result<(usize, String)> {
        let (name, kind): (String, String) = (row.get(1)?, row.get(2)?);
        Ok((row.get(0)?, format!("{name} {kind}")))
    };
    let pages = statement.query_map([], page)?.collect::<rusqlite::Result<_>>()?;
    Ok(pages)
}

/// What happened in a case.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The part of the file that was corrupted.
    pub(super) part: String,
    /// The error of opening the store.
    pub(super) refused: Option<ReportedError>,
    /// The kinds and descriptions of the damages that `verify` found.
    pub(super) damages: Vec<(&'static str, String)>,
    /// The error of `verify` itself.
    pub(super) verify_failed: Option<ReportedError>,
    /// The reads that failed.
    pub(super) errors: Vec<(String, ReportedError)>,
    /// The reads that succeeded with another value than in the sound store.
    pub(super) different: Vec<String>,
    /// How many sessions read as in the sound store.
    pub(super) readable: usize,
    /// The errors of appends.
    pub(super) append_errors: Vec<ReportedError>,
    /// The sessions in which an acknowledged append reads back differently.
    pub(super) lost: Vec<String>,
}

impl Seen {
    /// Returns whether `verify` reported the damage.
    pub(super) fn is_found(&self) -> bool {
        !self.damages.is_empty() || self.verify_failed.is_some()
    }

    /// Returns the errors of all verbs.
    pub(super) fn all_errors(&self) -> impl Iterator<Item = &ReportedError> {
        let errors = self.errors.iter().map(|(_, error)| error);
        errors.chain(&self.refused).chain(&self.verify_failed).chain(&self.append_errors)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#?}")
    }
}

/// Opens a store without waiting for the disk.
pub(super) fn open(path: &Path) -> talktree::Result<Store> {
    Store::options().durability(Durability::Normal).open(path)
}

/// Corrupts a copy of the store and reads everything.
pub(super) fn run(baseline: &Baseline, corruption: Corruption, path: &Path) -> Result<Seen> {
    let mut bytes = baseline.bytes.clone();
    corruption.apply(&mut bytes);
    let mut seen = if bytes == baseline.bytes {
        // The bytes may be the same, as when two pages of zeroes are swapped.
        Seen { readable: baseline.sessions.len(), ..Seen::default() }
    } else {
        for suffix in ["-wal", "-shm"] {
            let mut beside = path.as_os_str().to_owned();
            beside.push(suffix);
            if Path::new(&beside).exists() {
                std::fs::remove_file(&beside)?;
            }
        }
        std::fs::write(path, &bytes)?;
        examine(baseline, path)?
    };
    seen.part = baseline.part(corruption).to_owned();
    Ok(seen)
}

/// Opens a file, verifies it, reads everything and appends.
pub(super) fn examine(baseline: &Baseline, path: &Path) -> Result<Seen> {
    let mut seen = Seen::default();
    let store = match open(path) {
        Ok(store) => store,
        Err(error) => {
            seen.refused = Some(ReportedError::from(&error));
            return Ok(seen);
        }
    };
    match store.verify(|_| {}) {
        Ok(verified) => {
            seen.damages =
                verified.damages.into_iter().map(|damage| (damage.kind, damage.what)).collect();
        }
        Err(error) => seen.verify_failed = Some(ReportedError::from(&error)),
    }
    let answers = Answers::of(&store, &baseline.sessions);
    seen.errors =
        answers.errors().map(|(asked, error)| (asked.to_owned(), error.clone())).collect();
    seen.different = answers.different(&baseline.answers).into_iter().map(str::to_owned).collect();
    seen.readable =
        baseline.sessions.iter().filter(|id| answers.reads(&baseline.answers, id)).count();
    for id in [baseline.sessions.first(), baseline.sessions.last()].into_iter().flatten() {
        append(&store, id, &mut seen);
    }
    Ok(seen)
}

/// Appends a message and reads it back.
fn append(store: &Store, session: &str, seen: &mut Seen) {
    let message = Message::user("appended after the damage").with_id("after");
    let kept = || -> talktree::Result<bool> {
        let chat = store.session(session)?;
        let id = chat.append(message.clone())?.id;
        Ok(chat.message(&id)?.is_some_and(|read| read.parts == message.parts))
    };
    match kept() {
        Ok(true) => {}
        Ok(false) => seen.lost.push(session.to_owned()),
        Err(error) => seen.append_errors.push(ReportedError::from(&error)),
    }
}
