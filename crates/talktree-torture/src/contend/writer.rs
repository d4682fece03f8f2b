//! One of many writers of a file; it writes and reads until the time is up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use talktree::{Budget, Error, Message, MessageId, Session, Store};

use crate::Result;
use crate::compaction::brief;
use crate::process::{SHARED, durability};
use crate::text::{message, seed_of};

/// The token limit after which the shared session compacts automatically.
const THRESHOLD: u64 = 4_000;
/// The longest path that is forked or read as a whole.
const MAX_WHOLE: usize = 200;

/// How a writer is started as a process.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long)]
    store: PathBuf,
    #[command(flatten)]
    plan: Plan,
    /// `full` or `normal`.
    #[arg(long)]
    durability: String,
}

/// What a writer does.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// The name of the writer and its session; all its words begin with it.
    #[arg(long)]
    pub(crate) name: String,
    /// How long it works.
    #[arg(long)]
    pub(crate) seconds: f64,
}

/// What a writer did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// The ids it appended to its own session, in order.
    pub(crate) own: Vec<String>,
    /// The ids it appended to the shared session, in order.
    pub(crate) shared: Vec<String>,
    /// The sessions it forked, with the length of their paths.
    pub(crate) forks: BTreeMap<String, usize>,
    /// The time of each write.
    pub(crate) writes: Vec<Duration>,
    /// The time of each read.
    pub(crate) reads: Vec<Duration>,
    /// How many compactions were refused because another writer had compacted the range.
    pub(crate) refused_compactions: u64,
    /// How often a verb failed with `Busy`.
    pub(crate) busy: u64,
    /// Wrong results.
    pub(crate) faults: Vec<String>,
}

/// Works as a child process and writes the tally to standard output.
///
/// # Errors
/// If the store cannot be opened.
pub fn run(args: &Args, seed: u64) -> Result<()> {
    let store = Store::options().durability(durability(&args.durability)?).open(&args.store)?;
    let tally = work(&store, &args.plan, seed)?;
    Ok(serde_json::to_writer(std::io::stdout(), &tally)?)
}

/// Works until the time is up.
pub(crate) fn work(store: &Store, plan: &Plan, seed: u64) -> Result<Tally> {
    let errors = Arc::default();
    let mut writer = Writer {
        store,
        own: store.session(plan.name.as_str())?,
        shared: shared_session(store, &errors)?,
        name: plan.name.clone(),
        rng: Rng::with_seed(seed ^ seed_of(&plan.name)),
        count: 0,
        tally: Tally::default(),
    };
    let until = Instant::now() + Duration::from_secs_f64(plan.seconds);
    while Instant::now() < until {
        writer.step();
    }
    let mut tally = writer.tally;
    let errors = std::mem::take(&mut *errors.lock().unwrap_or_else(PoisonError::into_inner));
    tally.refused_compactions = errors.refused;
    tally.busy += errors.busy;
    tally.faults.extend(errors.faults);
    Ok(tally)
}

/// The errors of automatic compactions.
#[derive(Default)]
struct CompactionErrors {
    /// Refused because another writer had compacted the range.
    refused: u64,
    busy: u64,
    faults: Vec<String>,
}

/// Returns the shared session, which compacts automatically.
fn shared_session(
    store: &Store,
    errors: &Arc<Mutex<CompactionErrors>>,
) -> talktree::Result<Session> {
    let errors = Arc::clone(errors);
    let count = move |error: &Error| {
        let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Error::Stale { .. } => errors.refused += 1,
            Error::Busy { .. } => errors.busy += 1,
            error => errors.faults.push(format!("automatic compaction: {error}")),
        }
    };
    store.session_builder(SHARED).summarizer(brief).compact_after(THRESHOLD).on_error(count).open()
}

struct Writer<'a> {
    store: &'a Store,
    own: Session,
    shared: Session,
    name: String,
    rng: Rng,
    /// How many names were used.
    count: u64,
    tally: Tally,
}

impl Writer<'_> {
    /// Runs one random verb.
    fn step(&mut self) {
        match self.rng.u32(..100) {
            0..48 => self.append(1),
            48..52 => self.append(5),
            52..65 => self.share(),
            65 => self.fork(),
            66..68 => self.compare_tokens(),
            68..80 => self.read(|writer| {
                let recent = writer.own.recent(Budget::messages(20))?.messages;
                Ok(recent.into_iter().map(|message| message.id).collect())
            }),
            80..86 => self.read(|writer| {
                let newest = writer.own.iter_rev().take(50);
                newest.map(|message| Ok(message?.id)).collect()
            }),
            86..90 if self.tally.own.len() <= MAX_WHOLE => self.read(|writer| {
                let all = writer.own.history()?;
                Ok(all.into_iter().map(|message| message.id).collect())
            }),
            _ => self.search(),
        }
    }

    fn message(&mut self) -> Message {
        self.count += 1;
        message(&format!("{}n{}", self.name, self.count), self.rng.u32(5..80))
    }

    fn append(&mut self, count: usize) {
        let messages: Vec<Message> = (0..count).map(|_| self.message()).collect();
        let began = Instant::now();
        let answer = self.own.append_all(messages);
        self.tally.writes.push(began.elapsed());
        let appended = self.check(answer).unwrap_or_default();
        self.tally.own.extend(appended.into_iter().map(|it| it.id.to_string()));
    }

    fn share(&mut self) {
        let message = self.message();
        let began = Instant::now();
        let answer = self.shared.append(message);
        self.tally.writes.push(began.elapsed());
        let appended = self.check(answer);
        self.tally.shared.extend(appended.map(|it| it.id.to_string()));
    }

    fn fork(&mut self) {
        let near = self.tally.own.len().min(MAX_WHOLE);
        if near == 0 {
            return;
        }
        let length = self.rng.usize(1..=near);
        let at = MessageId::from(self.tally.own[length - 1].as_str());
        self.count += 1;
        let session = format!("{}f{}", self.name, self.count);
        let began = Instant::now();
        let answer = self.own.fork_as(&session.as_str().into(), &at, "A fork");
        self.tally.writes.push(began.elapsed());
        if self.check(answer).is_some() {
            self.tally.forks.insert(session, length);
        }
    }

    /// Reads the writer's own session, which must hold only its own messages.
    fn read(&mut self, read: impl FnOnce(&Self) -> talktree::Result<Vec<MessageId>>) {
        let began = Instant::now();
        let answer = read(self);
        self.tally.reads.push(began.elapsed());
        let ids = self.check(answer).unwrap_or_default();
        let stem = format!("{}n", self.name);
        if let Some(stranger) = ids.iter().find(|id| !id.as_str().starts_with(&stem)) {
            self.tally
                .faults
                .push(format!("{stranger:?} was read in the session of {:?}", self.name));
        }
    }

    /// Compares the visible tokens of the writer's own session with its history.
    fn compare_tokens(&mut self) {
        if self.tally.own.len() > MAX_WHOLE {
            return;
        }
        let began = Instant::now();
        let answer = self.own.visible_tokens();
        self.tally.reads.push(began.elapsed());
        let history = self.own.history();
        if let (Some(found), Some(history)) = (self.check(answer), self.check(history)) {
            let expected: u64 = history.iter().map(Message::tokens).sum();
            if found != expected {
                let what = format!("{}: {found} visible tokens, not {expected}", self.name);
                self.tally.faults.push(what);
            }
        }
    }

    /// Searches its own session or the whole store for the first word of one of its messages.
    fn search(&mut self) {
        if self.tally.own.is_empty() {
            return;
        }
        let word = self.tally.own[self.rng.usize(..self.tally.own.len())].clone();
        let began = Instant::now();
        let answer = match self.rng.bool() {
            true => self.own.search(word.as_str()).run(),
            false => self.store.search(word.as_str()).run(),
        };
        self.tally.reads.push(began.elapsed());
        if let Some(found) = self.check(answer) {
            let hits: Vec<_> =
                found.hits.iter().map(|hit| (hit.session.as_str(), hit.id.as_str())).collect();
            if hits != [(self.name.as_str(), word.as_str())] {
                self.tally.faults.push(format!("{word:?} finds {hits:?}"));
            }
        }
    }

    /// Returns the value of a verb, or counts its error.
    fn check<T>(&mut self, answer: talktree::Result<T>) -> Option<T> {
        match answer {
            Ok(answer) => return Some(answer),
            Err(Error::Busy { .. }) => self.tally.busy += 1,
            Err(error) => self.tally.faults.push(format!("{}: {error}", self.name)),
        }
        None
    }
}
