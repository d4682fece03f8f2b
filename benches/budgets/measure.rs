//! Times: taken in turns, so that what else the machine does falls on both sides.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::Result;

/// The times one kind of work took.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Returns the time that this share of the rounds stayed under, in seconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = ((sorted.len() - 1) as f64 * share).round() as usize;
        sorted[at].as_secs_f64()
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<Duration>().as_secs_f64() / self.0.len() as f64
    }
}

/// The times of the floor and of ours.
#[derive(Default)]
pub(crate) struct Pair {
    pub(crate) floor: Times,
    pub(crate) ours: Times,
}

/// How long and how often two kinds of work are compared.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) least: usize,
    pub(crate) most: usize,
    pub(crate) time: Duration,
}

impl Rounds {
    /// Exactly this often.
    pub(crate) fn exactly(count: usize) -> Self {
        Self { least: count, most: count, time: Duration::ZERO }
    }
}

impl Default for Rounds {
    fn default() -> Self {
        Self { least: 15, most: 2_000, time: Duration::from_millis(1_500) }
    }
}

/// Runs the two in turns, each first every other time; each says how long its round took.
pub(crate) fn alternate(
    rounds: Rounds,
    mut floor: impl FnMut() -> Result<Duration>,
    mut ours: impl FnMut() -> Result<Duration>,
) -> Result<Pair> {
    // Once each for the caches.
    floor()?;
    ours()?;
    let mut pair = Pair::default();
    let start = Instant::now();
    for round in 0..rounds.most {
        if round % 2 == 0 {
            pair.floor.push(floor()?);
            pair.ours.push(ours()?);
        } else {
            pair.ours.push(ours()?);
            pair.floor.push(floor()?);
        }
        if round + 1 >= rounds.least && start.elapsed() >= rounds.time {
            break;
        }
    }
    Ok(pair)
}

/// Runs one kind of work again and again.
pub(crate) fn repeat(rounds: Rounds, mut ours: impl FnMut() -> Result<Duration>) -> Result<Times> {
    ours()?;
    let mut times = Times::default();
    let start = Instant::now();
    for round in 0..rounds.most {
        times.push(ours()?);
        if round + 1 >= rounds.least && start.elapsed() >= rounds.time {
            break;
        }
    }
    Ok(times)
}

/// Returns how long the work took.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let start = Instant::now();
    let answer = work()?;
    let time = start.elapsed();
    black_box(&answer);
    Ok(time)
}

/// Returns how long the work took, each of so many times.
pub(crate) fn timed_each<T>(count: u32, mut work: impl FnMut() -> Result<T>) -> Result<Duration> {
    let time = timed(|| {
        for _ in 0..count {
            black_box(work()?);
        }
        Ok(())
    })?;
    Ok(time / count)
}
