//! Threads that work on numbered cases, and someone who watches the clock.
//!
//! A case that panics is told as such. One that goes on for ever cannot be stopped: the work ends with an error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::Result;

/// How a case ended, and after how long.
pub(super) struct Ended<T> {
    /// `None` for a case that panicked.
    pub(super) answer: Option<Result<T>>,
    pub(super) took: Duration,
}

/// How often the clock is looked at.
const TICK: Duration = Duration::from_millis(200);
/// How often people are told how far the work is.
const TOLD_EVERY: u64 = 500;

/// Runs the cases `0 .. count`, each told to `done` in the order they end.
pub(super) fn work<T: Send>(
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
                    if ended % TOLD_EVERY == 0 {
                        eprintln!("{ended} of {count} cases");
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    for begun in &begun {
                        let begun = *begun.lock().unwrap_or_else(PoisonError::into_inner);
                        if let Some((round, _)) = begun.filter(|(_, begin)| begin.elapsed() > limit)
                        {
                            // Its thread would be waited for, for ever: only the end of the process stops it.
                            eprintln!(
                                "FAILED: case {round} goes on for over {limit:?}; again with --round {round}"
                            );
                            std::process::abort();
                        }
                    }
                }
            }
        }
    })
}
