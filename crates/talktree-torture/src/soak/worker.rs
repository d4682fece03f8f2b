//! A process of the soak: a bot with several threads, each of which plays the people of its own.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use talktree::{
    BoxError, CompactionOptions, Durability, Erasure as Request, Error, Message, MessageId,
    Session, SessionManager, Store,
};

use super::journal::{Erasure, JournalWriter, Times, path_of};
use super::mark::{Kind, Mark};
use super::{Size, key_of, name_of, store_in};
use crate::Result;

/// How many threads of a process write summaries.
const SUMMARIZERS: usize = 2;
/// A model sees this many tokens of a chat before it is compacted.
const WINDOW: u64 = 1_200;
const KEPT: u64 = 400;
/// How long a write waits for others on a server. A host that is cut off is given up after little more.
pub(crate) const BUSY: Duration = Duration::from_secs(3);
/// How long nothing may succeed on a server.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a host waits before it tries again.
const PAUSE: Duration = Duration::from_millis(50);

/// The arguments of one process.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The folder of the store and the journals.
    #[arg(long)]
    pub(crate) folder: PathBuf,
    /// The number of this process.
    #[arg(long)]
    pub(crate) process: u32,
    /// The store, if it is on a server. Then a verb may fail there, and is tried again.
    #[arg(long)]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    size: Size,
}

/// Plays until the messages are written or a file tells it to stop.
///
/// # Errors
/// If the store or a journal cannot be opened.
pub fn run(args: &Args, seed: u64) -> Result<()> {
    let options = Store::options().durability(Durability::Normal);
    let store = match &args.url {
        Some(url) => until_answered(|| options.clone().busy_timeout(BUSY).open_at(url))?,
        None => options.open(store_in(&args.folder))?,
    };
    let (queue, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let jobs = Mutex::new(jobs);
    let slots = args.size.slots_of(args.process);
    std::thread::scope(|scope| {
        for _ in 0..SUMMARIZERS {
            scope.spawn(|| run_jobs(&jobs));
        }
        let failures = Mutex::new(Vec::new());
        let pause = Duration::from_millis(args.size.thinking_ms);
        let report = args.folder.join(format!("faults-{}.log", args.process));
        let on_server = args.url.is_some();
        let bot = SessionManager::builder(&store)
            .summarizer(move |prompt: &str| summarize(prompt, pause))
            .compaction_options(CompactionOptions::default().keep_recent_tokens(KEPT))
            .compact_after(WINDOW)
            .compact_on(move |job| drop(queue.send(job)))
            .on_error(move |error| {
                if !on_server || !is_passing(error) {
                    note(&report, error);
                }
            })
            .build()?;
        std::thread::scope(|scope| {
            for slot in slots {
                let (bot, store, failures) = (&bot, &store, &failures);
                scope.spawn(move || {
                    let rng = Rng::with_seed(seed ^ u64::from(slot) << 32);
                    let done = Slot::open(args, slot, bot, store, rng).and_then(|mut s| s.play());
                    if let Err(error) = done {
                        let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                        failures.push(format!("slot {slot}: {error}"));
                    }
                });
            }
        });
        // This closes the queue, so that the summarizers end.
        drop(bot);
        let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        if failures.is_empty() { Ok(()) } else { Err(failures.join("; ").into()) }
    })
}

fn run_jobs(jobs: &Mutex<Receiver<Box<dyn FnOnce() + Send>>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}

/// Returns a summary with a mark of its own. What it summarizes must all be of one chat.
fn summarize(prompt: &str, pause: Duration) -> std::result::Result<String, BoxError> {
    std::thread::sleep(pause);
    let marks: Vec<Mark> = Mark::all(prompt.as_bytes()).collect();
    let Some(first) = marks.first() else { return Err("FAULT: nothing to summarize".into()) };
    if let Some(other) = marks.iter().find(|mark| !mark.is_beside(first)) {
        return Err(format!("FAULT: {other} is summarized with {first}").into());
    }
    let last = marks.iter().map(|mark| mark.number).max().unwrap_or_default();
    Ok(format!("They talked: {}", Mark { kind: Kind::Summary, number: last, ..*first }))
}

/// Returns whether an error says that the server, or the way there, does not work now.
pub(crate) fn is_passing(error: &Error) -> bool {
    matches!(error, Error::Storage { .. } | Error::Busy { .. } | Error::DiskFull)
}

/// Runs a verb until its answer is no passing error, for two minutes at most.
pub(crate) fn until_answered<T>(
    mut verb: impl FnMut() -> talktree::Result<T>,
) -> talktree::Result<T> {
    let began = Instant::now();
    loop {
        match verb() {
            Err(error) if is_passing(&error) && began.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            answer => return answer,
        }
    }
}

/// Notes an error of a compaction, unless an erasure or a newer message explains it.
fn note(report: &std::path::Path, error: &Error) {
    let is_expected = matches!(
        error,
        Error::Stale { .. }
            | Error::SessionRemoved { .. }
            | Error::SessionInTrash { .. }
            | Error::UnknownSession { .. }
            | Error::PlanOfAnother { .. }
            | Error::SummaryRefused { .. }
            | Error::NothingVisible { .. }
    );
    if !is_expected {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(report);
        let written = file.and_then(|mut file| writeln!(file, "{error:?}"));
        if let Err(error) = written {
            eprintln!("{}: {error}", report.display());
        }
    }
}

/// One thread and its people.
struct Slot<'a> {
    args: &'a Args,
    bot: &'a SessionManager,
    store: &'a Store,
    owners: Vec<u32>,
    log: JournalWriter,
    quota: u64,
    rng: Rng,
}

impl<'a> Slot<'a> {
    fn open(
        args: &'a Args,
        slot: u32,
        bot: &'a SessionManager,
        store: &'a Store,
        rng: Rng,
    ) -> Result<Self> {
        let size = &args.size;
        let owners = (0..size.owners).filter(|owner| owner % size.slots() == slot).collect();
        let log = JournalWriter::open(&path_of(&args.folder, slot))?;
        let quota = size.messages / u64::from(size.slots());
        Ok(Self { args, bot, store, owners, log, quota, rng })
    }

    fn play(&mut self) -> Result<()> {
        let stop = self.args.folder.join(format!("stop-{}", self.args.process));
        let mut succeeded = Instant::now();
        loop {
            let journal = &self.log.journal;
            // On a server a file ends the run, not a number of messages.
            let is_done = self.args.url.is_none() && journal.acknowledged >= self.quota;
            let played = match journal.unfinished {
                Some(erasure) => self.erase(erasure),
                None if is_done || stop.exists() => return Ok(()),
                None => self.step(),
            };
            match played {
                Ok(()) => succeeded = Instant::now(),
                Err(error) => {
                    let is_passing = error.downcast_ref().is_some_and(is_passing);
                    if self.args.url.is_none() || !is_passing || succeeded.elapsed() > PATIENCE {
                        return Err(error);
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Plays a turn, and erases if it is time to.
    fn step(&mut self) -> Result<()> {
        self.turn()?;
        if self.is_erasure_due(u64::from(self.args.size.slots())) {
            let owner = self.owner();
            let journal = &self.log.journal;
            let one = journal.present.iter().next_back().copied();
            self.erase(match one.filter(|_| journal.erasures % 2 == 1) {
                Some(mark) => Erasure::Message(mark),
                None => Erasure::Owner(owner),
            })?;
        }
        Ok(())
    }

    /// Returns whether fewer of this thread's erasures are done than of its messages.
    fn is_erasure_due(&self, slots: u64) -> bool {
        let journal = &self.log.journal;
        let own = self.args.size.erasures.div_ceil(slots);
        journal.erasures < own * journal.acknowledged / self.quota.max(1)
    }

    fn owner(&mut self) -> u32 {
        self.owners[self.rng.usize(..self.owners.len())]
    }

    /// A person writes in a chat, and is answered.
    fn turn(&mut self) -> Result<()> {
        let owner = self.owner();
        let Size { chats, owners, .. } = self.args.size;
        let own = (chats - owner).div_ceil(owners);
        // Few chats are long, most are short.
        let chosen = self.rng.u32(..own).min(self.rng.u32(..own));
        let chat = owner + owners * chosen;

        let mark = self.log.journal.next_mark(owner, chat);
        self.log.begin(mark)?;
        let said = self.message(mark, "user");
        let mut times = Times::default();
        let session =
            times.of("resume", || self.bot.resume(key_of(chat)).owner(name_of(owner)).open())?;
        times.of("append", || self.append(&session, &said))?;
        let history = times.of("history", || session.history());
        self.log.done(&times)?;
        self.check(&history?, mark)?;

        let answer = self.log.journal.next_mark(owner, chat);
        self.log.begin(answer)?;
        self.append_answer(&session, answer)?;
        match self.rng.u32(..60) {
            0 => self.bot.end(session.id(), "the talk was over")?,
            1..4 => self.answer_again(&session, owner, chat)?,
            _ => {}
        }
        Ok(())
    }

    fn answer_again(&mut self, session: &Session, owner: u32, chat: u32) -> Result<()> {
        session.retry()?;
        let mark = self.log.journal.next_mark(owner, chat);
        self.log.begin(mark)?;
        self.append_answer(session, mark)
    }

    fn append_answer(&mut self, session: &Session, mark: Mark) -> Result<()> {
        let answer = self.message(mark, "assistant");
        let mut times = Times::default();
        times.of("append", || self.append(session, &answer))?;
        self.log.done(&times)
    }

    /// Appends a message. On a server the answer may be an error, and the message there or not; then it is appended again.
    fn append(&self, session: &Session, message: &Message) -> talktree::Result<()> {
        let append = || session.append(message.clone()).map(drop);
        if self.args.url.is_some() { until_answered(append) } else { append() }
    }

    fn message(&mut self, mark: Mark, role: &str) -> Message {
        let filler = "some words of a talk ".repeat(self.rng.usize(1..8));
        let text = format!("{filler}{mark}");
        let message = if role == "user" { Message::user(text) } else { Message::assistant(text) };
        message.with_id(mark.to_string())
    }

    /// Checks what a model would see of a chat.
    fn check(&mut self, history: &[Message], newest: Mark) -> Result<()> {
        let texts: Vec<String> = history.iter().map(Message::text).collect();
        let marks: Vec<Mark> = texts.iter().flat_map(|text| Mark::all(text.as_bytes())).collect();
        let foreign = marks.iter().find(|mark| !mark.is_beside(&newest));
        let erased = marks.iter().find(|mark| self.log.journal.erased.contains(mark));
        let is_seen = marks.last() == Some(&newest);
        let fault = match (foreign, erased, is_seen) {
            (Some(foreign), ..) => format!("the history of {newest} has {foreign}"),
            (_, Some(erased), _) => {
                format!("the history of {newest} has {erased}, which was erased")
            }
            (_, _, false) => format!("the history does not end with {newest}"),
            _ => return Ok(()),
        };
        self.log.fault(&fault)
    }

    fn erase(&mut self, erasure: Erasure) -> Result<()> {
        self.log.begin_erasure(erasure)?;
        let mut times = Times::default();
        match erasure {
            Erasure::Owner(owner) => {
                drop(times.of("erase", || self.bot.erase_owner(name_of(owner)))?);
            }
            Erasure::Message(mark) => {
                let id = MessageId::from(mark.to_string());
                for binding in self.bot.bindings(key_of(mark.chat))? {
                    let request = Request::messages(&binding.session, [&id]);
                    match times.of("erase", || self.store.erase(&request)) {
                        Ok(_)
                        | Err(Error::UnknownMessage { .. } | Error::UnknownSession { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        self.log.erased(&times)
    }
}
