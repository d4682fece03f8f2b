//! One case: a harm, and everything asked of what is left.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use talktree::{Durability, Message, Store};

use super::answers::{Answers, Told};
use super::harm::Harm;
use super::rows;
use crate::Result;

/// The sound store, and what it answers.
pub(super) struct Ground {
    pub(super) bytes: Vec<u8>,
    pub(super) sessions: Vec<String>,
    pub(super) messages: u64,
    pub(super) answers: Answers,
    /// What each page is part of.
    pages: BTreeMap<usize, String>,
    rows: rows::Rows,
}

impl Ground {
    /// Asks the sound store everything; a copy of it, since a search brings the index up to date.
    pub(super) fn survey(path: &Path, sessions: Vec<String>) -> Result<Self> {
        let bytes = std::fs::read(path)?;
        let pages = rows::pages(path)?;
        let rows = rows::Rows::of(path)?;
        let copy = path.with_extension("copy");
        std::fs::write(&copy, &bytes)?;
        let store = open(&copy)?;
        let verified = store.verify(|_| {})?;
        if let Some(damage) = verified.damages.first() {
            return Err(
                format!("the store is damaged before anything was done to it: {damage:?}").into()
            );
        }
        let answers = Answers::of(&store, &sessions);
        if let Some((asked, error)) = answers.errors().next() {
            return Err(format!("the sound store answers {asked} with {error:?}").into());
        }
        Ok(Self { bytes, sessions, messages: verified.messages, answers, pages, rows })
    }

    /// Returns what a page is part of.
    pub(super) fn part(&self, harm: Harm) -> &str {
        match harm {
            Harm::Flip { place: ..100, .. } => "header",
            _ => harm
                .page()
                .map_or("end", |page| self.pages.get(&(page + 1)).map_or("free", String::as_str)),
        }
    }
}

/// What was seen in a case.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What the page that was harmed is part of.
    pub(super) part: String,
    pub(super) refused: Option<Told>,
    /// What `verify` found: kinds and texts.
    pub(super) damages: Vec<(&'static str, String)>,
    /// The error `verify` ended with.
    pub(super) verify_failed: Option<Told>,
    /// What was asked and answered with an error.
    pub(super) errors: Vec<(String, Told)>,
    /// What was answered otherwise than by the sound store, without an error.
    pub(super) different: Vec<String>,
    /// Columns that differ from the sound store's, told where nothing else tells of the damage.
    pub(super) columns: Vec<String>,
    /// Sessions whose histories read as they were.
    pub(super) readable: usize,
    /// Errors of the appends.
    pub(super) unwritten: Vec<Told>,
    /// Appends that were acknowledged and read back otherwise.
    pub(super) lost: Vec<String>,
}

impl Seen {
    /// Returns whether `verify` told of the damage.
    pub(super) fn is_found(&self) -> bool {
        !self.damages.is_empty() || self.verify_failed.is_some()
    }

    /// Returns the errors of all verbs.
    pub(super) fn told(&self) -> impl Iterator<Item = &Told> {
        let errors = self.errors.iter().map(|(_, told)| told);
        errors.chain(&self.refused).chain(&self.verify_failed).chain(&self.unwritten)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#?}")
    }
}

/// Opens a store as the cases do: they do not wait for the disk.
pub(super) fn open(path: &Path) -> talktree::Result<Store> {
    Store::options().durability(Durability::Normal).open(path)
}

/// Does one harm to a copy of the store and looks at everything.
pub(super) fn run(ground: &Ground, harm: Harm, path: &Path) -> Result<Seen> {
    let mut bytes = ground.bytes.clone();
    harm.apply(&mut bytes);
    let mut seen = if bytes == ground.bytes {
        // Two pages of zeroes exchanged, say.
        Seen { readable: ground.sessions.len(), ..Seen::default() }
    } else {
        for suffix in ["-wal", "-shm"] {
            let mut beside = path.as_os_str().to_owned();
            beside.push(suffix);
            if Path::new(&beside).exists() {
                std::fs::remove_file(&beside)?;
            }
        }
        std::fs::write(path, &bytes)?;
        examine(ground, path)?
    };
    seen.part = ground.part(harm).to_owned();
    Ok(seen)
}

/// Asks a file everything.
pub(super) fn examine(ground: &Ground, path: &Path) -> Result<Seen> {
    let mut seen = Seen::default();
    let store = match open(path) {
        Ok(store) => store,
        Err(error) => {
            seen.refused = Some(Told::from(&error));
            return Ok(seen);
        }
    };
    match store.verify(|_| {}) {
        Ok(verified) => {
            seen.damages =
                verified.damages.into_iter().map(|damage| (damage.kind, damage.what)).collect();
        }
        Err(error) => seen.verify_failed = Some(Told::from(&error)),
    }
    let answers = Answers::of(&store, &ground.sessions);
    seen.errors = answers.errors().map(|(asked, told)| (asked.to_owned(), told.clone())).collect();
    seen.different = answers.different(&ground.answers).into_iter().map(str::to_owned).collect();
    seen.readable = ground.sessions.iter().filter(|id| answers.reads(&ground.answers, id)).count();
    if !seen.is_found() && seen.errors.is_empty() && !seen.different.is_empty() {
        seen.columns = ground.rows.different(path)?;
    }
    for id in [ground.sessions.first(), ground.sessions.last()].into_iter().flatten() {
        append(&store, id, &mut seen);
    }
    Ok(seen)
}

/// Appends a message and reads it back.
fn append(store: &Store, session: &str, seen: &mut Seen) {
    let message = Message::user("said after the damage").with_id("after");
    let kept = || -> talktree::Result<bool> {
        let chat = store.session(session)?;
        let id = chat.append(message.clone())?.id;
        Ok(chat.message(&id)?.is_some_and(|read| read.parts == message.parts))
    };
    match kept() {
        Ok(true) => {}
        Ok(false) => seen.lost.push(session.to_owned()),
        Err(error) => seen.unwritten.push(Told::from(&error)),
    }
}
