//! The process that is killed: it writes to a store until then.

use std::io::Write;
use std::path::{Path, PathBuf};

use talktree::{Compaction, CompactionId, Durability, Message, Parent, Store};

use super::journal::Journal;
use super::model::{Replay, summary_of};
use super::operation::{Log, Operation, read};
use super::random::Choices;
use super::state::short;
use super::transcripts;
use crate::Result;
use crate::text::{MessageSpec, seed_of};

/// The session that all workers append to.
pub(crate) const SHARED: &str = "shared";

/// How a worker is started.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder with the store.
    #[arg(long)]
    folder: PathBuf,
    /// The name of each worker, its session and its log. Several are threads that share one store.
    #[arg(long, required = true)]
    name: Vec<String>,
    /// `full` or `normal`.
    #[arg(long)]
    durability: String,
}

/// Returns the path of the store.
pub(crate) fn store_in(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

/// Returns the path of a worker's log.
pub(crate) fn log_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// Parses the name of a durability.
pub(crate) fn durability(name: &str) -> Result<Durability> {
    match name {
        "full" => Ok(Durability::Full),
        "normal" => Ok(Durability::Normal),
        other => Err(format!("unknown durability {other:?}; use full or normal").into()),
    }
}

/// Writes until it is killed or a verb returns something wrong.
///
/// # Errors
/// If a log cannot be read or written.
pub fn run(args: &Args, seed: u64) -> Result<()> {
    let prepare = |name: &String| Worker::prepare(&args.folder, name, seed);
    let mut workers: Vec<_> = args.name.iter().map(prepare).collect::<Result<_>>()?;
    let options = Store::options().durability(durability(&args.durability)?);

    std::io::stdout().write_all(b".")?;
    std::io::stdout().flush()?;
    workers.iter().try_for_each(|(worker, _)| worker.journal.begin(Operation::Open))?;
    let store = options.open(store_in(&args.folder))?;
    for (worker, _) in &mut workers {
        worker.store = Some(store.clone());
        worker.journal.done()?;
    }
    std::thread::scope(|scope| {
        for (worker, mut choices) in workers {
            scope.spawn(move || {
                if let Err(error) = worker.write(&mut choices) {
                    eprintln!("{error}");
                    // The other threads would go on until they are killed.
                    std::process::exit(1);
                }
            });
        }
    });
    Ok(())
}

/// A running worker.
pub(super) struct Worker {
    folder: PathBuf,
    pub(super) name: String,
    store: Option<Store>,
    pub(super) journal: Journal,
}

impl Worker {
    /// Returns a worker without a store, and its random choices.
    fn prepare(folder: &Path, name: &str, seed: u64) -> Result<(Self, Choices)> {
        let log_path = log_in(folder, name);
        let Replay { model, pending, .. } = Replay::of(&read(&log_path)?)?;
        if let Some(operation) = pending {
            return Err(format!("the log is not settled: {}", short(&operation)).into());
        }
        let choices = Choices::new(seed ^ seed_of(name), name, model.openings);
        let journal = Journal::new(Log::open(&log_path)?, model);
        let (folder, name) = (folder.to_owned(), name.to_owned());
        Ok((Self { folder, name, store: None, journal }, choices))
    }

    fn write(&self, choices: &mut Choices) -> Result<()> {
        loop {
            let operation = self.journal.with(|model| choices.next(model));
            let operation = self.complete(operation)?;
            self.journal.begin(operation.clone())?;
            if let Err(error) = self.perform(&operation) {
                self.journal.wrong(&error.to_string())?;
                return Err(error);
            }
            let backup =
                self.journal.with(|model| model.backup.as_ref().map(|(file, _)| file.clone()));
            self.journal.done()?;
            if let (Operation::Backup { .. }, Some(old)) = (&operation, backup) {
                std::fs::remove_file(self.folder.join(old))?;
            }
        }
    }

    pub(super) fn store(&self) -> Result<&Store> {
        Ok(self.store.as_ref().ok_or("the store is not open")?)
    }

    /// Runs an operation and checks what the verb returns.
    fn perform(&self, operation: &Operation) -> Result<()> {
        let store = self.store()?;
        let chat = store.session(self.name.as_str())?;
        match operation {
            Operation::Open => Ok(()),
            Operation::Append { to, messages } => {
                let parent = to.as_deref().map_or(Parent::Head, |to| Parent::Message(to.into()));
                let answers =
                    chat.append_all_to(&parent, messages.iter().map(MessageSpec::message))?;
                let are_new = answers.iter().all(|answer| answer.is_new && !answer.differs);
                expect(
                    are_new && answers.len() == messages.len(),
                    "a new message is reported as known",
                )
            }
            Operation::Update { message } => {
                expect(chat.update(message.message())?.is_changed, "an update reports no change")
            }
            Operation::Delete { id } => {
                let deleted = chat.delete([&id.as_str().into()])?;
                expect(deleted.messages == [id.as_str()], "a delete lists other messages")
            }
            Operation::ImportCompaction { id, first, last } => {
                let mut compaction =
                    Compaction::new(summary_of(id), first.as_str().into(), last.as_str().into());
                compaction.id = CompactionId::from(id.as_str());
                Ok(chat.import_compaction(&compaction)?)
            }
            Operation::CommitPlan { id, .. } => self.commit_plan(&chat, id),
            Operation::CommitStalePlan { message } => self.commit_stale_plan(&chat, message),
            Operation::AppendAndCompact { message } => self.append_and_compact(message),
            Operation::RemoveCompaction { id } => self.remove_compaction(&chat, id),
            Operation::Split { session } => {
                chat.compact_and_split_as(&session.as_str().into(), summary_of(session))?;
                Ok(())
            }
            Operation::BranchSummary { to, message } => self.branch_summary(&chat, to, message),
            Operation::VisibleTokens { are_words } => self.count_tokens(&chat, *are_words),
            Operation::Label { name, id } => Ok(chat.label(name, &id.as_str().into())?),
            Operation::Checkout { id } => Ok(chat.checkout(&id.as_str().into())?),
            Operation::Fork { session, at } => {
                chat.fork_as(&session.as_str().into(), &at.as_str().into(), "A fork")?;
                Ok(())
            }
            Operation::AppendShared { message } => {
                let answer = self.shared()?.append(message.message())?;
                expect(answer.is_new, "a new message is reported as known")?;
                self.journal.check_errors()
            }
            Operation::Search { id, word } => {
                let found = chat.search(word.as_str()).run()?;
                let is_found = found.hits.len() == 1 && found.hits[0].id == id.as_str();
                expect(is_found, &format!("{word:?} of {id:?} finds {:?}", found.hits))
            }
            Operation::Import { session, count } => {
                let report = import(store, &self.folder, session, *count)?;
                expect(
                    report.added == u64::from(*count),
                    &format!("an import adds {}", report.added),
                )
            }
            Operation::AppendEntries { transcript, entries } => {
                transcripts::append(store, transcript, entries)
            }
            Operation::EraseOwner { transcript } => transcripts::erase(store, transcript).map(drop),
            Operation::Backup { file } => Ok(store.backup(self.folder.join(file), |_| {})?),
            Operation::Create { file, message } => {
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

/// Returns message `number` of an import.
pub(crate) fn imported_text(session: &str, number: u32) -> Message {
    MessageSpec::new(format!("{session}n{number}"), number % 40).message()
}

/// Writes the file of an import and imports it.
pub(crate) fn import(
    store: &Store,
    folder: &Path,
    session: &str,
    count: u32,
) -> Result<talktree_import::ImportReport> {
    let messages = (0..count).map(|number| {
        let message = imported_text(session, number);
        serde_json::json!({"id": message.id.as_str(), "role": "user", "content": message.text()})
    });
    let chat = serde_json::json!({"id": session, "messages": messages.collect::<Vec<_>>()});
    let path = folder.join(format!("{session}.json"));
    std::fs::write(&path, chat.to_string())?;
    Ok(talktree_import::import(store, &path, &talktree_import::ImportOptions::default(), |_| {})?)
}
