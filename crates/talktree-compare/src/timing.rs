//! Repeats and times a task, and prints the result.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::Result;

/// What a rival's process prints, one per line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    /// The median time of one operation.
    Time {
        task: String,
        seconds: f64,
        rounds: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Why a task has no time.
    Why { task: String, why: String },
    /// The versions of what was measured.
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

    pub(crate) fn line(mut self, task: &str, note: Option<String>) -> Line {
        self.0.sort_by(f64::total_cmp);
        let (seconds, rounds) = (self.0[self.0.len() / 2], self.0.len());
        Line::Time { task: task.to_owned(), seconds, rounds, note }
    }
}

/// Times a task in rounds. Each round prepares something, runs the task and checks the result; only the task is timed.
///
/// After one round to warm up, there are at least five rounds and enough to fill `seconds`, at most 500. After ten times
/// `seconds` no further round begins, except the first that counts.
pub(crate) fn repeat<C, R, A>(
    context: &mut C,
    seconds: f64,
    mut ready: impl FnMut(&mut C) -> Result<R>,
    mut task: impl FnMut(&mut C, R) -> Result<A>,
    mut check: impl FnMut(&mut C, A) -> Result<()>,
) -> Result<Times> {
    let mut times = Vec::new();
    let begin = Instant::now();
    let mut spent = 0.0;
    for round in 0..=500 {
        let made = ready(context)?;
        let start = Instant::now();
        let answer = black_box(task(context, made)?);
        let time = start.elapsed().as_secs_f64();
        check(context, answer)?;
        if round == 0 {
            continue;
        }
        // The preparation may take longer than the task.
        let is_late = begin.elapsed().as_secs_f64() > 10.0 * seconds;
        times.push(time);
        spent += time;
        if is_late || (times.len() >= 5 && spent >= seconds) {
            break;
        }
    }
    Ok(Times(times))
}
