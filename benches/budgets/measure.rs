//! Times. Floor and talktree run alternately, so that other load on the machine affects both.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::Result;

/// The times of one kind of work.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Returns the time that this share of the rounds does not exceed, in seconds.
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

/// The times of the floor and of talktree.
#[derive(Default)]
pub(crate) struct Pair {
    pub(crate) floor: Times,
    pub(crate) ours: Times,
}

/// How many rounds are measured: at least `least`, and until `time` is up, but at most `most`.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) least: usize,
    pub(crate) most: usize,
    pub(crate) time: Duration,
}

impl Rounds {
    /// Exactly this many rounds.
    pub(crate) fn exactly(count: usize) -> Self {
        Self { least: count, most: count, time: Duration::ZERO }
    }
}

impl Default for Rounds {
    fn default() -> Self {
        Self { least: 15, most: 2_000, time: Duration::from_millis(1_500) }
    }
}

/// Runs both alternately; each is first in every other round. A closure returns the time of its round.
pub(crate) fn alternate(
    rounds: Rounds,
    mut floor: impl FnMut() -> Result<Duration>,
    mut ours: impl FnMut() -> Result<Duration>,
) -> Result<Pair> {
    // One round to fill the caches.
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

/// Runs one kind of work repeatedly.
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

/// Returns how long `work` took.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let start = Instant::now();
    let answer = work()?;
    let time = start.elapsed();
    black_box(&answer);
    Ok(time)
}

/// Runs `work` `count` times; returns the mean time.
pub(crate) fn timed_each<T>(count: u32, mut work: impl FnMut() -> Result<T>) -> Result<Duration> {
    let time = timed(|| {
        for _ in 0..count {
            black_box(work()?);
        }
        Ok(())
    })?;
    Ok(time / count)
}
