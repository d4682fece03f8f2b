//! The process that is killed: it writes to a store until then.

use std::io::Write;
use std::path::{Path, PathBuf};

use talktree::{Compaction, CompactionId, Durability, Message, Parent, Store};

use super::deed::{Deed, Log, read};
use super::dice::Dice;
use super::journal::Journal;
use super::model::{Replay, summary_of};
use super::state::short;
use crate::Result;
use crate::text::{Said, seed_of};

/// The session that all workers write to.
pub(crate) const SHARED: &str = "shared";

/// How a worker is started.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder with the store.
    #[arg(long)]
    folder: PathBuf,
    /// The name of the worker, its session and its log.
    #[arg(long)]
    name: String,
    /// Whether commits wait for the disk.
    #[arg(long)]
    durability: String,
}

/// Returns where the store is.
pub(crate) fn store_in(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

/// Returns where a worker's log is.
pub(crate) fn log_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// Returns the durability of this name.
pub(crate) fn durability(name: &str) -> Result<Durability> {
    match name {
        "full" => Ok(Durability::Full),
        "normal" => Ok(Durability::Normal),
        other => Err(format!("no such durability: {other:?}; there are full and normal").into()),
    }
}

/// Works until it is killed, or until a verb answers as it should not.
///
/// # Errors
/// If the log cannot be read or written.
pub fn run(args: &Args, seed: u64) -> Result<()> {
    let log_path = log_in(&args.folder, &args.name);
    let Replay { model, pending, .. } = Replay::of(&read(&log_path)?)?;
    if let Some(deed) = pending {
        return Err(format!("the log is not settled: {}", short(&deed)).into());
    }
    let mut dice = Dice::new(seed ^ seed_of(&args.name), &args.name, model.openings);
    let journal = Journal::new(Log::open(&log_path)?, model);
    let mut worker =
        Worker { folder: args.folder.clone(), name: args.name.clone(), store: None, journal };
    let options = Store::options().durability(durability(&args.durability)?);

    std::io::stdout().write_all(b".")?;
    std::io::stdout().flush()?;
    worker.journal.begin(Deed::Open)?;
    worker.store = Some(options.open(store_in(&args.folder))?);
    worker.journal.done()?;
    loop {
        let deed = worker.journal.with(|model| dice.next(model));
        let deed = worker.resolved(deed)?;
        worker.journal.begin(deed.clone())?;
        if let Err(error) = worker.perform(&deed) {
            worker.journal.wrong(&error.to_string())?;
            return Err(error);
        }
        let backup =
            worker.journal.with(|model| model.backup.as_ref().map(|(file, _)| file.clone()));
        worker.journal.done()?;
        if let (Deed::Backup { .. }, Some(old)) = (&deed, backup) {
            std::fs::remove_file(args.folder.join(old))?;
        }
    }
}

/// What works.
pub(super) struct Worker {
    folder: PathBuf,
    pub(super) name: String,
    store: Option<Store>,
    pub(super) journal: Journal,
}

impl Worker {
    pub(super) fn store(&self) -> Result<&Store> {
        Ok(self.store.as_ref().ok_or("the store is not open")?)
    }

    /// Does a deed, and checks what the verb answers.
    fn perform(&self, deed: &Deed) -> Result<()> {
        let store = self.store()?;
        let chat = store.session(self.name.as_str())?;
        match deed {
            Deed::Open => Ok(()),
            Deed::Append { to, messages } => {
                let place = to.as_deref().map_or(Parent::Head, |to| Parent::Message(to.into()));
                let answers = chat.append_all_to(&place, messages.iter().map(Said::message))?;
                let are_new = answers.iter().all(|answer| answer.is_new && !answer.differs);
                expect(
                    are_new && answers.len() == messages.len(),
                    "a new message is said to be known",
                )
            }
            Deed::Update { message } => expect(
                chat.update(message.message())?.is_changed,
                "an update says that it changed nothing",
            ),
            Deed::Delete { id } => {
                let deleted = chat.delete([&id.as_str().into()])?;
                expect(deleted.messages == [id.as_str()], "a delete names other messages")
            }
            Deed::Compact { id, first, last } => {
                let mut compaction =
                    Compaction::new(summary_of(id), first.as_str().into(), last.as_str().into());
                compaction.id = CompactionId::from(id.as_str());
                Ok(chat.import_compaction(&compaction)?)
            }
            Deed::CommitPlan { id, .. } => self.commit_plan(&chat, id),
            Deed::StaleCompaction { message } => self.compact_stale(&chat, message),
            Deed::AppendAndCompact { message } => self.append_and_compact(message),
            Deed::RemoveCompaction { id } => self.remove_compaction(&chat, id),
            Deed::Split { session } => {
                chat.compact_and_split_as(&session.as_str().into(), summary_of(session))?;
                Ok(())
            }
            Deed::Leave { to, message } => self.leave(&chat, to, message),
            Deed::Tokens { are_words } => self.count_tokens(&chat, *are_words),
            Deed::Label { name, id } => Ok(chat.label(name, &id.as_str().into())?),
            Deed::Checkout { id } => Ok(chat.checkout(&id.as_str().into())?),
            Deed::Fork { session, at } => {
                chat.fork_as(&session.as_str().into(), &at.as_str().into(), "A fork")?;
                Ok(())
            }
            Deed::Share { message } => {
                let answer = self.shared()?.append(message.message())?;
                expect(answer.is_new, "a new message is said to be known")?;
                self.journal.heard()
            }
            Deed::Search { id, word } => {
                let found = chat.search(word.as_str()).run()?;
                let is_found = found.hits.len() == 1 && found.hits[0].id == id.as_str();
                expect(is_found, &format!("{word:?} of {id:?} finds {:?}", found.hits))
            }
            Deed::Import { session, count } => {
                let report = import(store, &self.folder, session, *count)?;
                expect(
                    report.added == u64::from(*count),
                    &format!("an import adds {}", report.added),
                )
            }
            Deed::Backup { file } => Ok(store.backup(self.folder.join(file), |_| {})?),
            Deed::Create { file, message } => {
                let store = Store::open(self.folder.join(file))?;
                store.session(SHARED)?.append(message.message())?;
                Ok(())
            }
        }
    }
}

pub(super) fn expect(is_so: bool, otherwise: &str) -> Result<()> {
    if is_so { Ok(()) } else { Err(otherwise.into()) }
}

/// Returns the text of an imported message.
pub(crate) fn imported_text(session: &str, number: u32) -> Message {
    Said::new(format!("{session}n{number}"), number % 40).message()
}

/// Imports the file that makes this session; it is written first where it is not there.
pub(crate) fn import(
    store: &Store,
    folder: &Path,
    session: &str,
    count: u32,
) -> Result<talktree::import::ImportReport> {
    let messages = (0..count).map(|number| {
        let message = imported_text(session, number);
        serde_json::json!({"id": message.id.as_str(), "role": "user", "content": message.text()})
    });
    let chat = serde_json::json!({"id": session, "messages": messages.collect::<Vec<_>>()});
    let path = folder.join(format!("{session}.json"));
    std::fs::write(&path, chat.to_string())?;
    Ok(talktree_import::import(store, &path, &talktree_import::ImportOptions::default(), |_| {})?)
}
