//! One of many that write to a file and read it, until its time is up.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use talktree::{Budget, Error, Message, MessageId, Session, Store};

use crate::Result;
use crate::compaction::brief;
use crate::kill::worker::{SHARED, durability};
use crate::text::{Said, seed_of};

/// The window of the shared session, which compacts by itself.
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
    /// Whether commits wait for the disk.
    #[arg(long)]
    durability: String,
}

/// What a writer is to do.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// The name of the writer and its session; all its words begin with it.
    #[arg(long)]
    pub(crate) name: String,
    #[arg(long)]
    pub(crate) seconds: f64,
    /// Where each message is acknowledged while the work goes on.
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
}

/// What a writer did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// The ids it appended to its own session, in order.
    pub(crate) own: Vec<String>,
    /// The ids it appended to the shared one.
    pub(crate) shared: Vec<String>,
    /// Sessions it forked, with the length of their paths.
    pub(crate) forks: BTreeMap<String, usize>,
    /// How long each verb took.
    pub(crate) writes: Vec<Duration>,
    pub(crate) reads: Vec<Duration>,
    /// How many compactions were refused, since another had compacted the stretch.
    pub(crate) compactions_refused: u64,
    /// How often a verb answered that the store is busy.
    pub(crate) busy: u64,
    /// What was not as it should be.
    pub(crate) faults: Vec<String>,
}

/// Works as a process of its own, and writes its tally to standard output.
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
    let log = plan.log.as_ref().map(|path| OpenOptions::new().create(true).append(true).open(path));
    let heard = Arc::default();
    let mut writer = Writer {
        store,
        own: store.session(plan.name.as_str())?,
        shared: compaction(store, &heard)?,
        name: plan.name.clone(),
        rng: Rng::with_seed(seed ^ seed_of(&plan.name)),
        log: log.transpose()?,
        count: 0,
        tally: Tally::default(),
    };
    let until = Instant::now() + Duration::from_secs_f64(plan.seconds);
    while Instant::now() < until {
        writer.step()?;
    }
    let mut tally = writer.tally;
    let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    tally.compactions_refused = heard.refused;
    tally.busy += heard.busy;
    tally.faults.extend(heard.faults);
    Ok(tally)
}

/// What was heard of as failed of compactions that followed an append.
#[derive(Default)]
struct Heard {
    /// Refused: another had compacted the stretch meanwhile.
    refused: u64,
    busy: u64,
    faults: Vec<String>,
}

/// Returns the shared session, which all its writers compact.
fn compaction(store: &Store, heard: &Arc<Mutex<Heard>>) -> talktree::Result<Session> {
    let heard = Arc::clone(heard);
    let hear = move |error: &Error| {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Error::Stale { .. } => heard.refused += 1,
            Error::Busy { .. } => heard.busy += 1,
            error => heard.faults.push(format!("a compaction: {error}")),
        }
    };
    store
        .session_builder(SHARED)
        .summarizer(brief)
        .compact_after(THRESHOLD)
        .on_compaction_error(hear)
        .open()
}

struct Writer<'a> {
    store: &'a Store,
    own: Session,
    shared: Session,
    name: String,
    rng: Rng,
    log: Option<std::fs::File>,
    /// How many messages were made.
    count: u64,
    tally: Tally,
}

impl Writer<'_> {
    /// Does one verb.
    fn step(&mut self) -> Result<()> {
        match self.rng.u32(..100) {
            0..48 => self.append(1)?,
            48..52 => self.append(5)?,
            52..65 => self.share()?,
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
        Ok(())
    }

    fn said(&mut self) -> Said {
        self.count += 1;
        Said::new(format!("{}n{}", self.name, self.count), self.rng.u32(5..80))
    }

    fn append(&mut self, count: usize) -> Result<()> {
        let said: Vec<Said> = (0..count).map(|_| self.said()).collect();
        let messages: Vec<_> = said.iter().map(Said::message).collect();
        let began = Instant::now();
        let answer = self.own.append_all(messages);
        self.tally.writes.push(began.elapsed());
        if self.answered(answer).is_some() {
            for said in said {
                self.acknowledge(self.name.clone(), &said.id)?;
                self.tally.own.push(said.id);
            }
        }
        Ok(())
    }

    fn share(&mut self) -> Result<()> {
        let said = self.said();
        let message = said.message();
        let began = Instant::now();
        let answer = self.shared.append(message);
        self.tally.writes.push(began.elapsed());
        if self.answered(answer).is_some() {
            self.acknowledge(SHARED.to_owned(), &said.id)?;
            self.tally.shared.push(said.id);
        }
        Ok(())
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
        if self.answered(answer).is_some() {
            self.tally.forks.insert(session, length);
        }
    }

    /// Reads the own session: nothing of another writer's is in it.
    fn read(&mut self, read: impl FnOnce(&Self) -> talktree::Result<Vec<MessageId>>) {
        let began = Instant::now();
        let answer = read(self);
        self.tally.reads.push(began.elapsed());
        let ids = self.answered(answer).unwrap_or_default();
        let stem = format!("{}n", self.name);
        if let Some(stranger) = ids.iter().find(|id| !id.as_str().starts_with(&stem)) {
            self.tally
                .faults
                .push(format!("{stranger:?} was read in the session of {:?}", self.name));
        }
    }

    /// Asks how many tokens a model sees of the own session, which nobody else writes to.
    fn compare_tokens(&mut self) {
        if self.tally.own.len() > MAX_WHOLE {
            return;
        }
        let began = Instant::now();
        let answer = self.own.visible_tokens();
        self.tally.reads.push(began.elapsed());
        let history = self.own.history();
        if let (Some(found), Some(history)) = (self.answered(answer), self.answered(history)) {
            let expected: u64 = history.iter().map(Message::tokens).sum();
            if found != expected {
                let what = format!("{}: {found} tokens are seen, not {expected}", self.name);
                self.tally.faults.push(what);
            }
        }
    }

    /// Searches the own session or the whole store for a word that this writer said once.
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
        if let Some(found) = self.answered(answer) {
            let hits: Vec<_> =
                found.hits.iter().map(|hit| (hit.session.as_str(), hit.id.as_str())).collect();
            if hits != [(self.name.as_str(), word.as_str())] {
                self.tally.faults.push(format!("{word:?} finds {hits:?}"));
            }
        }
    }

    /// Returns the answer of a verb, and notes an error.
    fn answered<T>(&mut self, answer: talktree::Result<T>) -> Option<T> {
        match answer {
            Ok(answer) => return Some(answer),
            Err(Error::Busy { .. }) => self.tally.busy += 1,
            Err(error) => self.tally.faults.push(format!("{}: {error}", self.name)),
        }
        None
    }

    fn acknowledge(&mut self, session: String, id: &str) -> Result<()> {
        match &mut self.log {
            Some(log) => Ok(log.write_all(format!("{session} {id}\n").as_bytes())?),
            None => Ok(()),
        }
    }
}
