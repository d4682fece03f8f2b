//! How often a work is done, and what is said about it.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::Result;

/// What a rival's process prints, one a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    /// The median time of one operation.
    Time {
        work: String,
        seconds: f64,
        rounds: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Why there is none.
    Why { work: String, why: String },
    /// What was measured.
    Versions { versions: String },
}

impl Line {
    pub(crate) fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, self)?;
        writeln!(out)?;
        Ok(out.flush()?)
    }
}

/// The times of the rounds, in seconds.
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn of(times: Vec<f64>) -> Self {
        Self(times)
    }

    pub(crate) fn line(mut self, work: &str, note: Option<String>) -> Line {
        self.0.sort_by(f64::total_cmp);
        let (seconds, rounds) = (self.0[self.0.len() / 2], self.0.len());
        Line::Time { work: work.to_owned(), seconds, rounds, note }
    }
}

/// Times the work again and again: each round makes something ready outside the clock, is timed,
/// and has its answer checked outside the clock.
///
/// One round to warm up, then at least five and for so many seconds, 500 at the most. No round
/// begins after ten times as long, but for the first that counts.
pub(crate) fn repeat<C, R, A>(
    context: &mut C,
    seconds: f64,
    mut ready: impl FnMut(&mut C) -> Result<R>,
    mut work: impl FnMut(&mut C, R) -> Result<A>,
    mut check: impl FnMut(&mut C, A) -> Result<()>,
) -> Result<Times> {
    let mut times = Vec::new();
    let begin = Instant::now();
    let mut spent = 0.0;
    for round in 0..=500 {
        let made = ready(context)?;
        let start = Instant::now();
        let answer = black_box(work(context, made)?);
        let time = start.elapsed().as_secs_f64();
        check(context, answer)?;
        if round == 0 {
            continue;
        }
        // What is made ready may cost more than the work.
        let is_late = begin.elapsed().as_secs_f64() > 10.0 * seconds;
        times.push(time);
        spent += time;
        if is_late || (times.len() >= 5 && spent >= seconds) {
            break;
        }
    }
    Ok(Times(times))
}
