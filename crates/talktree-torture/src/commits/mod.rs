//! Threads of one process that share commits: their throughput on a slow disk, and what they are told when a system call
//! fails or the power is cut.
//!
//! Each thread appends numbered messages to a session of its own, so a lost message, a double one and one out of order
//! are found. Which writes share a commit is up to the scheduler, so a replay repeats the faults, not the groups.

mod curve;
mod cuts;
mod faults;

use std::sync::Barrier;

use talktree::{Message, Session, Store};

use crate::{Report, Result, vfs};

/// How long the threads write, and how often a commit of theirs fails.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many milliseconds a sync takes.
    #[arg(long, default_value_t = 4.0)]
    pub sync_ms: f64,
    /// How many seconds each number of threads writes.
    #[arg(long, default_value_t = 4.0)]
    pub seconds: f64,
    /// The numbers of threads that are measured.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64])]
    pub threads: Vec<usize>,
    /// In how many rounds a system call fails.
    #[arg(long, default_value_t = 1_500)]
    pub faults: u64,
    /// After how many power cuts the store is opened.
    #[arg(long, default_value_t = 2_000)]
    pub cuts: usize,
}

/// How many threads write in a round with faults or cuts.
const THREADS: usize = 8;

/// Runs the threads on a slow disk, under faults and before power cuts.
///
/// # Errors
/// If a store cannot be opened without a fault.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let _use = vfs::exclusive();
    curve::run(args, report)?;
    faults::run(args, report)?;
    cuts::run(args, report)
}

/// Returns the session of a thread.
fn session(store: &Store, thread: usize) -> talktree::Result<Session> {
    store.session(format!("thread {thread}"))
}

/// Returns the message that a thread appends in its turn.
fn message(thread: usize, number: usize) -> Message {
    Message::user(format!("{number} {}", "word ".repeat(number * 7 % 60)))
        .with_id(format!("{thread}-{number}"))
}

/// Runs `work` in several threads that begin together, and returns what each returned.
fn in_threads<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
    let start = Barrier::new(count);
    let run = |thread| {
        start.wait();
        work(thread)
    };
    std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..count).map(|thread| scope.spawn(move || run(thread))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread panicked".into()))
            .collect()
    })
}

/// Returns how many messages a session holds, or what is wrong with them: they are numbered from 0.
fn count(store: &Store, thread: usize) -> Result<std::result::Result<usize, String>> {
    let path = session(store, thread)?.raw_history()?;
    let wrong = path.iter().enumerate().find(|(at, found)| {
        let expected = message(thread, *at);
        found.id != expected.id || found.text() != expected.text()
    });
    Ok(match wrong {
        Some((at, found)) => Err(format!("message {at} of thread {thread} is {}", found.id)),
        None => Ok(path.len()),
    })
}
