//! A bot for many people for a long time: chats that are resumed, compacted in the background, erased and killed.
//!
//! Processes with several threads play the people. Each text has a mark with its chat, its owner, and the number of the
//! owner's erasures before it. Journals list what was acknowledged. At random moments a process is killed, or restarted.
//! At the end every message is in the chat of its mark, every acknowledged message is stored, and no byte of the files has
//! the mark of an erased text.

pub(crate) mod check;
pub(crate) mod journal;
mod mark;
pub mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use talktree::Store;

use crate::process::Worker;
use crate::spread::Spread;
use crate::{Report, Result};
use journal::{Journal, path_of};

/// How much is played.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The small form, with the same checks, which takes less than a minute.
    #[arg(long)]
    pub quick: bool,
    /// How many take part.
    #[command(flatten)]
    pub size: Size,
    /// How often a process is killed or restarted.
    #[arg(long, default_value_t = 30)]
    pub restarts: u32,
    /// The program to start as a process, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
}

impl Args {
    /// Returns the quick form.
    #[must_use]
    pub fn quick() -> Self {
        Self { quick: true, size: Size::quick(), restarts: 6, program: None }
    }
}

/// How many take part.
#[derive(Debug, Clone, clap::Args)]
pub struct Size {
    /// How many chats there are.
    #[arg(long, default_value_t = 10_000)]
    pub chats: u32,
    /// How many people there are; at most as many as chats.
    #[arg(long, default_value_t = 3_000)]
    pub owners: u32,
    /// How many processes write at once.
    #[arg(long, default_value_t = 2)]
    pub processes: u32,
    /// How many threads each process has.
    #[arg(long, default_value_t = 8)]
    pub threads: u32,
    /// How many messages are written.
    #[arg(long, default_value_t = 1_000_000)]
    pub messages: u64,
    /// How many erasures there are: of a person, and of one message, in turn.
    #[arg(long, default_value_t = 32)]
    pub erasures: u64,
    /// How long a summary takes, in milliseconds.
    #[arg(long, default_value_t = 50)]
    pub thinking_ms: u64,
}

impl Size {
    /// The size of the quick form.
    pub(crate) fn quick() -> Self {
        Self {
            chats: 200,
            owners: 60,
            processes: 2,
            threads: 8,
            messages: 6_000,
            erasures: 32,
            thinking_ms: 20,
        }
    }

    /// Returns how many threads play. Each has people of its own.
    pub(crate) fn slots(&self) -> u32 {
        self.processes * self.threads
    }

    fn slots_of(&self, process: u32) -> std::ops::Range<u32> {
        process * self.threads..(process + 1) * self.threads
    }

    pub(crate) fn args(&self) -> Vec<String> {
        let figures = [
            ("--chats", u64::from(self.chats)),
            ("--owners", u64::from(self.owners)),
            ("--processes", u64::from(self.processes)),
            ("--threads", u64::from(self.threads)),
            ("--messages", self.messages),
            ("--erasures", self.erasures),
            ("--thinking-ms", self.thinking_ms),
        ];
        figures.iter().flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]).collect()
    }
}

/// How often the parent looks at its processes.
const LOOK: Duration = Duration::from_millis(20);

fn store_in(folder: &Path) -> PathBuf {
    folder.join("bot.db")
}

fn key_of(chat: u32) -> String {
    format!("chat:{chat}")
}

pub(crate) fn name_of(owner: u32) -> String {
    format!("person:{owner}")
}

/// Plays, and checks what is left.
///
/// # Errors
/// If a process cannot be started or the store cannot be opened.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let (size, restarts) = match args.quick {
        true => (Size::quick(), 6),
        false => (args.size.clone(), args.restarts),
    };
    if size.owners < size.slots() || size.chats < size.owners {
        return Err("each thread needs a person, and each person a chat".into());
    }
    let folder = tempfile::tempdir()?;
    let mut game = Game {
        args,
        size: &size,
        folder: folder.path(),
        rng: Rng::with_seed(report.seed()),
        restarts: 0,
        kills: 0,
        memory: (0, 0),
        faults: Vec::new(),
    };
    let began = Instant::now();
    game.play(restarts, began)?;
    let seconds = began.elapsed().as_secs_f64();
    let Game { restarts, kills, memory, mut faults, .. } = game;

    let journals = (0..size.slots())
        .map(|slot| Journal::read(&path_of(folder.path(), slot)))
        .collect::<Result<Vec<_>>>()?;
    let checked = Instant::now();
    let path = store_in(folder.path());
    let findings = check::run(Store::open(&path)?, &journals, || {
        let beside = |suffix| format!("{}{suffix}", path.display()).into();
        Ok(["", "-wal", "-shm"].map(beside).into())
    })?;
    let sum = |of: fn(&Journal) -> u64| journals.iter().map(of).sum::<u64>();
    let acknowledged = sum(|journal| journal.acknowledged);
    let mut turns = Spread::default();
    let mut verbs: BTreeMap<&str, Spread> = BTreeMap::new();
    for journal in &journals {
        turns.extend(journal.turns.iter().copied());
        for (verb, times) in &journal.times {
            verbs.entry(verb).or_default().extend(times.iter().copied());
        }
    }

    report.fact("messages acknowledged", acknowledged);
    report.fact("messages a second", format!("{:.0}", acknowledged as f64 / seconds));
    report.fact("messages at the end", findings.messages);
    report.fact("sessions at the end", findings.sessions);
    report.fact("summaries at the end", findings.summaries);
    report.fact("erasures", sum(|journal| journal.erasures));
    report.fact("processes killed", kills);
    report.fact("processes restarted", restarts);
    report.fact("resume + append + history", &turns);
    for (verb, times) in &verbs {
        report.fact(format!("of these and others: {verb}"), times);
    }
    report.fact("memory of a process", format!("{} MiB, {} MiB at most", memory.0, memory.1));
    report.fact("file", format!("{:.1} MiB", findings.bytes as f64 / f64::from(1 << 20)));
    report.fact("check", format!("{:.1} s", checked.elapsed().as_secs_f64()));
    faults.extend(journals.iter().flat_map(|journal| journal.faults.clone()));
    faults.extend(findings.faults);
    report.fact("faults found", faults.len());
    let mut replay = format!("just soak --seed {}", report.seed());
    match args.quick {
        true => replay.push_str(" --quick"),
        false => {
            replay.push_str(&format!(" {} --restarts {}", size.args().join(" "), args.restarts))
        }
    }
    for fault in faults {
        report.failure(fault, &replay);
    }
    Ok(())
}

/// The running processes.
struct Game<'a> {
    args: &'a Args,
    size: &'a Size,
    folder: &'a Path,
    rng: Rng,
    restarts: u32,
    kills: u32,
    /// The average memory of the processes at the end, and the maximum of one, in MiB.
    memory: (u64, u64),
    faults: Vec<String>,
}

impl Game<'_> {
    fn play(&mut self, restarts: u32, began: Instant) -> Result<()> {
        let mut running: Vec<(u32, Worker)> = (0..self.size.processes)
            .map(|process| Ok((process, self.start(process)?)))
            .collect::<Result<_>>()?;
        let mut told = Instant::now();
        while !running.is_empty() {
            std::thread::sleep(LOOK);
            let written = journal::written(self.folder, self.size.slots());
            if told.elapsed() > Duration::from_secs(30) {
                told = Instant::now();
                let left = self.size.messages.saturating_sub(written) as f64;
                let minutes = began.elapsed().as_secs_f64() / 60.0 * left / written.max(1) as f64;
                eprintln!("soak: {written} messages written, about {minutes:.0} minutes to go");
            }
            for (_, worker) in &running {
                self.note_memory(worker);
            }
            // Restarts are spread evenly over the messages; the process and the moment are random.
            let due = written * u64::from(restarts + 1) / self.size.messages.max(1);
            let happened = self.restarts + self.kills;
            if u64::from(happened) < due.min(u64::from(restarts)) {
                let chosen = self.rng.usize(..running.len());
                let (process, worker) = running.swap_remove(chosen);
                let moment = Duration::from_micros(self.rng.u64(..50_000));
                std::thread::sleep(moment);
                self.restart(process, worker)?;
                running.push((process, self.start(process)?));
                continue;
            }
            let mut left = Vec::new();
            for (process, mut worker) in running {
                match worker.has_ended()? {
                    true => drop(worker.wait()?),
                    false => left.push((process, worker)),
                }
            }
            running = left;
        }
        for process in 0..self.size.processes {
            let report = self.folder.join(format!("faults-{process}.log"));
            let text = std::fs::read_to_string(report).unwrap_or_default();
            self.faults.extend(text.lines().take(20).map(str::to_owned));
        }
        Ok(())
    }

    /// Kills a process, or tells it to stop.
    fn restart(&mut self, process: u32, mut worker: Worker) -> Result<()> {
        if self.rng.u32(..3) > 0 {
            self.kills += 1;
            return worker.kill();
        }
        self.restarts += 1;
        let stop = self.folder.join(format!("stop-{process}"));
        std::fs::write(&stop, "")?;
        worker.wait()?;
        Ok(std::fs::remove_file(stop)?)
    }

    fn start(&mut self, process: u32) -> Result<Worker> {
        let folder = self.folder.to_str().ok_or("the path is not UTF-8")?;
        let (seed, process) = (self.rng.u32(..).to_string(), process.to_string());
        let figures = self.size.args();
        let mut args = vec!["soak-worker", "--seed", &seed, "--folder", folder];
        args.extend(["--process", &process]);
        args.extend(figures.iter().map(String::as_str));
        Worker::start(self.args.program.as_deref(), args)
    }

    fn note_memory(&mut self, worker: &Worker) {
        if let Some(bytes) = worker.memory() {
            let mib = bytes >> 20;
            self.memory = (mib, self.memory.1.max(mib));
        }
    }
}
