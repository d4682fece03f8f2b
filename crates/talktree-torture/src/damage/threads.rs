//! Threads that run numbered cases under a time limit.
//!
//! A case that panics is counted as such. A case that hangs cannot be stopped: the process aborts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::Result;

/// The result of a case and the time it took.
pub(super) struct Ended<T> {
    /// `None` if the case panicked.
    pub(super) answer: Option<Result<T>>,
    pub(super) took: Duration,
}

/// How often the time limit is checked.
const TICK: Duration = Duration::from_millis(200);
/// After how many cases progress is printed.
const PROGRESS_EVERY: u64 = 500;

/// Runs the cases `0 .. count` and calls `done` with each, in the order in which they end.
pub(super) fn run_cases<T: Send>(
    threads: usize,
    count: u64,
    limit: Duration,
    case: impl Fn(usize, u64) -> Result<T> + Sync,
    mut done: impl FnMut(u64, Ended<T>),
) -> Result<()> {
    let next = AtomicU64::new(0);
    let begun: Vec<Mutex<Option<(u64, Instant)>>> =
        (0..threads).map(|_| Mutex::new(None)).collect();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for worker in 0..threads {
            let (sender, next, begun, case) = (sender.clone(), &next, &begun[worker], &case);
            scope.spawn(move || {
                loop {
                    let round = next.fetch_add(1, Ordering::Relaxed);
                    if round >= count {
                        break;
                    }
                    let begin = Instant::now();
                    *begun.lock().unwrap_or_else(PoisonError::into_inner) = Some((round, begin));
                    let answer = catch_unwind(AssertUnwindSafe(|| case(worker, round))).ok();
                    *begun.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    let ended = Ended { answer, took: begin.elapsed() };
                    if sender.send((round, ended)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut ended = 0;
        loop {
            match receiver.recv_timeout(TICK) {
                Ok((round, case)) => {
                    done(round, case);
                    ended += 1;
                    if ended % PROGRESS_EVERY == 0 {
                        eprintln!("{ended} of {count} cases");
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    for begun in &begun {
                        let begun = *begun.lock().unwrap_or_else(PoisonError::into_inner);
                        if let Some((round, _)) = begun.filter(|(_, begin)| begin.elapsed() > limit)
                        {
                            // The scope would join the hanging thread forever, so only an abort stops it.
                            eprintln!(
                                "FAILED: case {round} runs for more than {limit:?}; replay with --round {round}"
                            );
                            std::process::abort();
                        }
                    }
                }
            }
        }
    })
}
